//! `cargo xtask soak fuzz [SECONDS] [SEED]`

use crate::setup;
use crate::shell::{self, cargo};

/// Random harm for as many seconds as are asked for, 600 if none are.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    let seconds = args.first().map_or("600", String::as_str);
    let seed = args.get(1).map_or("1", String::as_str);
    let mut command = cargo(&["test", "-p", "watchfire-sandbox", "--test", "fuzz", "--", "--nocapture"]);
    shell::run(command.env("WATCHFIRE_SOAK_FUZZ_SECONDS", seconds).env("WATCHFIRE_SOAK_SEED", seed))
}
