//! `cargo xtask bench`

use crate::shell::{self, cargo};
use crate::{languages, setup};

/// Measures in release mode; ARGS go to the benchmark. `languages` alone compares the languages of rules.
pub fn run(args: &[String]) -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    if args.first().is_some_and(|first| first == "languages") {
        return compare_languages();
    }
    let mut bench = cargo(&["bench", "--package", "watchfire-bench", "--bench", "speed"]);
    if !args.is_empty() {
        bench.arg("--").args(args);
    }
    shell::run(&mut bench)?;
    shell::run(&mut cargo(&["build", "--release", "--quiet", "--package", "watchfire"]))?;
    shell::run(&mut cargo(&["bench", "--package", "watchfire-bench", "--bench", "host"]))
}

/// The test builds the example rule in each language.
fn compare_languages() -> Result<(), String> {
    languages::install();
    shell::run(&mut cargo(&["test", "--package", "watchfire", "--test", "languages"]))?;
    shell::run(&mut cargo(&["bench", "--package", "watchfire-bench", "--bench", "languages"]))
}
