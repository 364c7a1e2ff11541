//! `cargo xtask bench`

use crate::setup;
use crate::shell::{self, cargo};

/// Measures in release mode; ARGS go to the benchmark.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    let mut bench = cargo(&["bench", "--package", "watchfire-bench", "--bench", "speed"]);
    if !args.is_empty() {
        bench.arg("--").args(args);
    }
    shell::run(&mut bench)?;
    shell::run(&mut cargo(&["build", "--release", "--quiet", "--package", "watchfire"]))?;
    shell::run(&mut cargo(&["bench", "--package", "watchfire-bench", "--bench", "host"]))
}
