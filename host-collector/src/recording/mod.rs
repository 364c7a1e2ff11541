//! Recordings: what sources read, as text that streams, reads well and survives a crash.
//!
//! ```text
//! #watchfire-recording v1
//! # host: h1
//! s 0 45000 gpu_temperature_celsius{gpu="0",host="h1"}
//! t 1767225600000
//! v 0 71
//! e xid 79 {gpu="0",host="h1"}
//! ```
//! `s` names a series (number, milliseconds after which a sample is stale, series), `t` begins a moment
//! (milliseconds since the Unix epoch), `v` is a value of it, `e` an event of it (kind, code, labels, and a job
//! in quotes where one is known). A later `#watchfire-recording` line begins anew with no series known, so that
//! recordings can be joined.

mod reader;
mod writer;

use watchfire_core::{Observation, Occurrence, Time};

pub use reader::Reader;
pub use writer::{Writer, append_to};

/// The first line of a recording.
pub const MAGIC: &str = "#watchfire-recording v1";
/// What the first line of every version begins with.
const MAGIC_ANY: &str = "#watchfire-recording";
/// The most series of a recording.
pub const SERIES_MAX: usize = 1_000_000;
/// The longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 128 * 1024;
/// The most values and events of one moment.
pub const MOMENT_MAX: usize = 2_000_000;
/// The most header lines.
pub const HEADER_MAX: usize = 64;

/// Everything of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When.
    pub time: Time,
    /// What was read.
    pub observations: Vec<Observation>,
    /// What happened.
    pub events: Vec<Occurrence>,
}

impl Moment {
    /// A moment at which nothing was read.
    pub fn empty(time: Time) -> Self {
        Moment { time, observations: Vec::new(), events: Vec::new() }
    }
}

/// What a recording says of itself: keys and values, in order, a key more than once where it has more to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header(pub Vec<(String, String)>);

impl Header {
    /// Adds a line.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.0.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The first value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// All values of `key`.
    pub fn all<'h, 'k>(&'h self, key: &'k str) -> impl Iterator<Item = &'h str> + use<'h, 'k> {
        self.0.iter().filter(move |(one, _)| one == key).map(|(_, value)| value.as_str())
    }

    /// How it was made up, where it was: a synthetic recording must be told as such wherever it is shown.
    pub fn synthetic(&self) -> Option<&str> {
        self.get("synthetic")
    }

    /// The faults that were put into it.
    pub fn injected(&self) -> impl Iterator<Item = &str> {
        self.all("injected")
    }
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file.
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
    /// A line.
    #[error("line {line}, column {column}: {message}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// The byte within it, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

#[cfg(test)]
mod tests;
