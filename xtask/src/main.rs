//! `cargo xtask`: set-up and the project's jobs. No dependencies, so that it is there within seconds.

mod bench;
mod book;
mod ci;
mod demo;
mod languages;
mod rules;
mod setup;
mod shell;
mod soak;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "cargo xtask JOB [ARGS]

  demo    set up, build, and run `watchfire demo` (ARGS go to it)
  test    set up, and run all tests (ARGS go to `cargo test`)
  rules   find or install the WebAssembly target, and build each rule to a component
  bench   measure, in release mode
  soak    the long version of a test, such as `soak kills`
  book    make the book of docs/ with mdBook
  ci      all that must hold before a change lands

Examples:
  cargo xtask demo --for 20m
  cargo xtask test -- heat
  cargo xtask bench
  cargo xtask bench languages";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let job = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let done = match job.as_str() {
        "demo" => demo::run(&rest),
        "test" => test::run(&rest),
        "rules" => rules::run(),
        "bench" => bench::run(&rest),
        "soak" => soak::run(&rest),
        "book" => book::run(),
        "ci" => ci::run(),
        "" | "help" | "--help" | "-h" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => Err(format!("there is no job {other:?}\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
