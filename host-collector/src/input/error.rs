//! Why an input cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::exposition::LineError;
use crate::recording::RecordingError;

/// The most line errors of one file that are told.
pub(super) const LINES_TOLD_MAX: usize = 20;

/// Why an input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of no known kind.
    #[error("{}: unknown kind of input; expected a recording, .om, .prom or .csv", path.display())]
    Kind {
        /// Which.
        path: PathBuf,
    },
    /// A file that is too large to be sorted in memory.
    #[error("{}: more than {limit} bytes, the limit of a file that is sorted in memory; split it by time", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Bytes.
        limit: u64,
    },
    /// The file as a whole.
    #[error("{}: {message}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Lines of it.
    #[error("{}", lines(path, errors, *count))]
    Lines {
        /// Which file.
        path: PathBuf,
        /// The first errors.
        errors: Vec<LineError>,
        /// How many there are.
        count: u64,
    },
    /// A recording.
    #[error("{}: {source}", path.display())]
    Recording {
        /// Which.
        path: PathBuf,
        /// Why.
        source: RecordingError,
    },
}

fn lines(path: &Path, errors: &[LineError], count: u64) -> String {
    let shown = errors.iter().map(|error| Line { path, error }.to_string());
    let more = count.saturating_sub(errors.len() as u64);
    let more = (more > 0).then(|| format!("{}: {more} more lines cannot be used", path.display()));
    shown.chain(more).collect::<Vec<_>>().join("\n")
}

struct Line<'e> {
    path: &'e Path,
    error: &'e LineError,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineError { line, column, message } = self.error;
        write!(f, "{}:{line}:{column}: {message}", self.path.display())
    }
}
