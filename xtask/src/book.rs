//! `cargo xtask book`

use crate::shell::{self, say};
use crate::tools::Tool;

const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4" };

/// Makes the book of `docs/`. Its commands and files are tested by `cargo xtask test`.
pub fn run() -> Result<(), String> {
    shell::run(&mut MDBOOK.command(&["build", "docs"])?)?;
    say("the book is at target/book/index.html");
    Ok(())
}
