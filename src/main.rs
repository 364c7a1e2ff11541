//! `watchfire`: one binary, one file per command.

mod author;
mod backtest;
mod cli;
mod clock;
mod commands;
mod config;
mod demo;
mod exit;
mod import;
mod locking;
#[cfg(feature = "oci")]
mod oci;
mod playback;
mod print;
mod replaying;
mod serve;
mod sources;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let cli = cli::Cli::parse();
    // `watchfire … | head` ends quietly. A service must outlive whoever reads its log.
    if !matches!(cli.command, cli::Command::Run(_)) {
        sigpipe::reset();
    }
    commands::start_logging(&cli);
    match commands::run(cli.command) {
        Ok(code) => code.into(),
        Err(error) => {
            anstream::eprintln!("{}", print::failure(&error));
            error.code().into()
        }
    }
}
