//! `cargo xtask soak kills [KILLS]`

use crate::setup;
use crate::shell::{self, cargo};

/// As many kills as are asked for, 200 if none are, of a recorded day.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    let kills = args.first().map_or("200", String::as_str);
    let mut command = cargo(&["test", "-p", "watchfire", "--test", "kill", "--", "--nocapture"]);
    shell::run(command.env("WATCHFIRE_KILLS", kills).env("WATCHFIRE_KILL_HOURS", "24"))
}
