//! One file per command.

pub mod bench;
pub mod build;
pub mod capture;
mod check;
mod demo;
pub mod import;
pub mod inspect;
pub mod lock;
pub mod new;
#[cfg(feature = "oci")]
pub mod pull;
#[cfg(feature = "oci")]
pub mod push;
mod record;
mod replay;
mod run;
mod status;
mod test;

use std::io::IsTerminal;

pub use run::{Input, now};

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

/// Runs a command.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::New(args) => new::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Lock(args) => lock::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Record(args) => record::run(&args),
        #[cfg(feature = "oci")]
        Command::Pull(args) => pull::run(&args),
        #[cfg(feature = "oci")]
        Command::Push(args) => push::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Status(args) => status::run(&args),
    }
}

/// Logs go to stderr, so that stdout stays what a command prints.
pub fn start_logging(cli: &Cli) {
    let quiet = matches!(cli.command, Command::Demo(_) | Command::Test(_) | Command::Check(_) | Command::Replay(_));
    let level = if quiet && cli.log == "info" { "warn" } else { &cli.log };
    let filter = tracing_subscriber::EnvFilter::try_new(level).unwrap_or_else(|_| "info".into());
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
}
