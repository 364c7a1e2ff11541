//! How bad an alert is and what likely causes it.

use std::fmt;
use std::str::FromStr;

/// How bad a condition is. Ordered: `info < warning < critical < emergency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; pages nobody.
    Info,
    /// Needs a look within the working day.
    Warning,
    /// Needs a look now.
    Critical,
    /// Hardware or data is being lost.
    Emergency,
}

impl Severity {
    /// All severities, mildest first.
    pub const ALL: [Severity; 4] = [Severity::Info, Severity::Warning, Severity::Critical, Severity::Emergency];

    /// The word used in templates, labels and payloads.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
            Severity::Emergency => "emergency",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Severity {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        find(&Severity::ALL, Severity::as_str, word)
    }
}

/// One value for each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSeverity<T>(pub [T; 4]);

impl<T> PerSeverity<T> {
    /// The value for `severity`.
    pub fn get(&self, severity: Severity) -> &T {
        &self.0[severity as usize]
    }

    /// The value for `severity`, to be changed.
    pub fn get_mut(&mut self, severity: Severity) -> &mut T {
        &mut self.0[severity as usize]
    }

    /// Severities with their values, mildest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Severity, &T)> {
        Severity::ALL.into_iter().zip(self.0.iter())
    }
}

impl<T: Copy> PerSeverity<T> {
    /// The same value for each severity.
    pub fn all(value: T) -> Self {
        PerSeverity([value; 4])
    }
}

/// The likely cause that an alert names (mission B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A part is broken or breaking.
    Hardware,
    /// Heat.
    Thermal,
    /// Power supply, limits or brakes.
    Power,
    /// A deadlock: busy without progress.
    Hang,
    /// Resources held without use.
    Idle,
    /// Data does not arrive fast enough.
    Supply,
    /// The network or the links between GPUs.
    Communication,
    /// The program, the driver or their settings.
    Software,
    /// Not enough of something.
    Capacity,
    /// The measurement itself: a source, a reader, a rule.
    Telemetry,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 10] = [
        Cause::Hardware,
        Cause::Thermal,
        Cause::Power,
        Cause::Hang,
        Cause::Idle,
        Cause::Supply,
        Cause::Communication,
        Cause::Software,
        Cause::Capacity,
        Cause::Telemetry,
    ];

    /// The word used in templates, payloads and the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::Hardware => "hardware",
            Cause::Thermal => "thermal",
            Cause::Power => "power",
            Cause::Hang => "hang",
            Cause::Idle => "idle",
            Cause::Supply => "supply",
            Cause::Communication => "communication",
            Cause::Software => "software",
            Cause::Capacity => "capacity",
            Cause::Telemetry => "telemetry",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Cause {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        find(&Cause::ALL, Cause::as_str, word)
    }
}

/// A word that is none of a closed list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is none of {expected}")]
pub struct UnknownWord {
    /// What was written.
    pub found: String,
    /// The words that exist, joined by `, `.
    pub expected: String,
}

fn find<T: Copy>(all: &[T], name: fn(T) -> &'static str, word: &str) -> Result<T, UnknownWord> {
    all.iter().copied().find(|&one| name(one) == word).ok_or_else(|| UnknownWord {
        found: word.to_owned(),
        expected: all.iter().map(|&one| name(one)).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for severity in Severity::ALL {
            assert_eq!(severity.as_str().parse(), Ok(severity));
        }
        for cause in Cause::ALL {
            assert_eq!(cause.as_str().parse(), Ok(cause));
        }
    }

    #[test]
    fn an_unknown_word_names_the_choices() {
        let error = "fatal".parse::<Severity>().unwrap_err();
        assert_eq!(error.to_string(), "\"fatal\" is none of info, warning, critical, emergency");
    }
}
