//! Runs a rule natively, for `cargo test`.

use crate::guest::{self, Running};
use crate::{Batch, Outcome, Rule};

/// A rule under test, with the state that the host would keep for it.
#[derive(Debug)]
pub struct Bench<R> {
    running: Running<R>,
    state_slots: usize,
    state: Vec<f64>,
    tick: u64,
    /// rows: the group of each row; none where the rule asks for none.
    pub groups: Vec<u32>,
    /// inputs × rows: 0 is a value, 1 is missing, 2 is stale; where unset, a NaN is missing.
    pub quality: Option<Vec<u8>>,
}

impl<R: Rule> Bench<R> {
    /// Configures the rule.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn new(settings: &str) -> Result<Self, String> {
        let running = guest::configure::<R>(settings)?;
        let state_slots = guest::describe(Some(&running)).state_slots as usize;
        Ok(Bench { running, state_slots, state: Vec::new(), tick: 0, groups: Vec::new(), quality: None })
    }

    /// Runs one tick on columns (inputs × rows); a NaN is a missing value.
    ///
    /// # Errors
    /// The rule's own.
    pub fn tick(&mut self, columns: &[&[f64]]) -> Result<Outcome, String> {
        let rows = columns.first().map_or(0, |column| column.len());
        let cells = || columns.iter().flat_map(|column| column.iter());
        self.state.resize(self.state_slots * rows, 0.0);
        let batch = Batch {
            tick: self.tick,
            now_ms: i64::try_from(self.tick).unwrap_or(0) * 15_000,
            interval_ms: 15_000,
            rows: u32::try_from(rows).unwrap_or(u32::MAX),
            columns: cells().map(|value| if value.is_nan() { 0.0 } else { *value }).collect(),
            quality: self.quality.clone().unwrap_or_else(|| cells().map(|value| u8::from(value.is_nan())).collect()),
            groups: self.groups.clone(),
            state: self.state.clone(),
        };
        let outcome = self.running.evaluate(batch)?;
        self.state = outcome.state.clone().unwrap_or_else(|| std::mem::take(&mut self.state));
        self.tick += 1;
        Ok(outcome)
    }

    /// The evidence for a row of the last tick.
    pub fn explain(&self, row: u32) -> Option<String> {
        self.running.explain(row)
    }
}

/// Configures a rule and runs one tick.
///
/// # Errors
/// What is wrong with the settings, or the rule's own.
pub fn run<R: Rule>(settings: &str, columns: &[&[f64]]) -> Result<Outcome, String> {
    Bench::<R>::new(settings)?.tick(columns)
}
