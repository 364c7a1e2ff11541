//! What is wrong with a file, and where.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Where something stands in a file. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What was found and what was expected.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
    }
}

/// All that is wrong, by place, each thing once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    problems: BTreeSet<Problem>,
    left_out: usize,
}

impl Errors {
    /// The most problems that are kept; of more, only their number is told.
    pub const PROBLEMS_MAX: usize = 200;

    /// Adds a problem.
    pub fn add(&mut self, place: &Place, message: impl Into<String>) {
        self.push(Problem { place: place.clone(), message: message.into(), hint: None });
    }

    /// Adds a problem with what to do about it.
    pub fn hint(&mut self, place: &Place, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Problem { place: place.clone(), message: message.into(), hint: Some(hint.into()) });
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        if self.problems.len() >= Errors::PROBLEMS_MAX {
            self.left_out += 1;
        } else {
            self.problems.insert(problem);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// How many problems are kept.
    pub fn len(&self) -> usize {
        self.problems.len()
    }

    /// The problems, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter()
    }

    /// Takes in the problems of another file.
    pub fn extend(&mut self, other: Errors) {
        other.problems.into_iter().for_each(|problem| self.push(problem));
        self.left_out += other.left_out;
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if at == 0 { "" } else { "\n" })?;
        }
        if self.left_out > 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// The word of `known` that `word` was most likely meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|one| (strsim::damerau_levenshtein(word, one), one));
    let near = scored.filter(|(distance, one)| *distance <= (one.chars().count() / 3).max(1));
    near.min_by_key(|(distance, _)| *distance).map(|(_, one)| one)
}
