//! `cargo xtask test`

use crate::shell::{self, cargo};
use crate::{languages, setup};

/// Sets up and runs all tests; cargo's own closing lines are the last ones.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    setup::peers();
    languages::install();
    shell::run(cargo(&["test", "--workspace", "--no-fail-fast"]).args(args))
}
