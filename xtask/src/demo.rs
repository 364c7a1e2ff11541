//! `cargo xtask demo`

use crate::setup;
use crate::shell::{self, cargo, command, say, target};

/// Sets up, builds and runs the demo, with the same build as the tests.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    say("building (some minutes the first time, seconds later)");
    shell::run(&mut cargo(&["build", "--workspace", "--quiet"]))?;
    let binary = target().join("debug/watchfire").display().to_string();
    shell::run(command(&binary, &["demo"]).args(args))
}
