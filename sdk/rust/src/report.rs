//! What a rule answers.

use crate::{Cause, Hit, Level, Outcome, Rows};

/// What a rule answers at one tick.
#[derive(Debug)]
pub struct Report {
    rows: usize,
    hits: Vec<Hit>,
    notes: Vec<String>,
    state: Option<Vec<f64>>,
    derived: Vec<f64>,
}

impl Report {
    /// An empty answer for `rows`.
    pub fn new(rows: &Rows<'_>) -> Self {
        Report { rows: rows.len(), hits: Vec::new(), notes: Vec::new(), state: None, derived: Vec::new() }
    }

    /// Says of a row that `raise` is met now and that `hold` keeps an alert alive (lifted to `raise` where it is
    /// below). `value` is the number to show. Further words go on to the hit that is given back.
    pub fn hit(&mut self, row: usize, raise: Level, hold: Level, value: f64) -> &mut Hit {
        let hold = if (hold as u8) < raise as u8 { raise } else { hold };
        let hit = Hit { row: row as u32, raise, hold, value, cause: Cause::Unknown, note: None };
        self.hits.push(hit);
        let last = self.hits.len() - 1;
        &mut self.hits[last]
    }

    /// Adds a text that hits can point to; answers its number.
    pub fn note(&mut self, text: impl Into<String>) -> u32 {
        self.notes.push(text.into());
        self.notes.len() as u32 - 1
    }

    /// Keeps a number for a row until the next tick. What is not set stays as it was; a row or a slot that is not
    /// there is passed over.
    pub fn set_state(&mut self, rows: &Rows<'_>, slot: usize, row: usize, value: f64) {
        let state = self.state.get_or_insert_with(|| rows.all_state().to_vec());
        if row >= self.rows {
            return;
        }
        if let Some(cell) = state.get_mut(slot * self.rows + row) {
            *cell = value;
        }
    }

    /// Gives a derived metric its value for a row; a row that is not there is passed over.
    pub fn derive(&mut self, output: usize, row: usize, value: f64) {
        if row >= self.rows {
            return;
        }
        let needed = (output + 1) * self.rows;
        if self.derived.len() < needed {
            self.derived.resize(needed, f64::NAN);
        }
        self.derived[output * self.rows + row] = value;
    }

    /// The answer in the contract's form.
    pub fn into_outcome(mut self, outputs: usize) -> Outcome {
        if !self.derived.is_empty() {
            self.derived.resize(outputs * self.rows, f64::NAN);
        }
        Outcome { hits: self.hits, notes: self.notes, state: self.state, derived: self.derived }
    }
}
