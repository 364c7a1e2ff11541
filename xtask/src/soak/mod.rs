//! `cargo xtask soak`: the long versions of tests that the suite runs shortly.

mod fuzz;
mod kills;

/// The long runs: name, what it does, and how.
type Run = fn(&[String]) -> Result<(), String>;

const RUNS: [(&str, &str, Run); 2] = [
    ("fuzz", "random modules, answers and scripts for 600 s: no panic, no stall, no neighbour harmed", fuzz::run),
    ("kills", "200 kills of a recorded day: the same history, the same notifications", kills::run),
];

/// Runs one of them.
pub fn run(args: &[String]) -> Result<(), String> {
    let name = args.first().map(String::as_str).unwrap_or_default();
    let found = RUNS.iter().find(|(known, ..)| *known == name);
    let lines = || RUNS.iter().map(|(name, what, _)| format!("  {name:<8}{what}")).collect::<Vec<_>>().join("\n");
    let (_, _, run) = found.ok_or_else(|| format!("cargo xtask soak RUN, where RUN is one of\n{}", lines()))?;
    run(&args[1..])
}
