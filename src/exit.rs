//! Exit codes: 0 fine, 1 the thing checked is wrong, 2 usage (clap's own), 3 could not run.

use std::fmt;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is fine.
    Fine,
    /// The thing that was checked is wrong.
    Wrong,
    /// The command could not do its work.
    CouldNotRun,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Fine => ExitCode::SUCCESS,
            Exit::Wrong => ExitCode::from(1),
            Exit::CouldNotRun => ExitCode::from(3),
        }
    }
}

/// Why a command ended early, in words for its user.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// What was given is wrong.
    pub fn wrong(message: impl fmt::Display) -> Self {
        Failure { exit: Exit::Wrong, message: message.to_string() }
    }

    /// The command could not do its work.
    pub fn could_not(message: impl fmt::Display) -> Self {
        Failure { exit: Exit::CouldNotRun, message: message.to_string() }
    }

    /// The exit code.
    pub fn code(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
