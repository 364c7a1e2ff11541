//! `cargo xtask test`

use crate::{languages, setup};
use crate::shell::{self, cargo};

/// Sets up and runs all tests; cargo's own closing lines are the last ones.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    setup::peers();
    languages::install();
    shell::run(cargo(&["test", "--workspace", "--no-fail-fast"]).args(args))
}
