//! What a rule sees at one tick.

use crate::Batch;

/// All rows of the rule at one tick.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    batch: &'a Batch,
}

impl<'a> Rows<'a> {
    /// The rows of a batch.
    pub fn new(batch: &'a Batch) -> Self {
        Rows { batch }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.batch.rows as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.batch.rows == 0
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.batch.now_ms
    }

    /// Milliseconds between ticks.
    pub fn interval_ms(&self) -> u64 {
        self.batch.interval_ms
    }

    /// rows: the values of an input; 0 where the quality is not ok. Empty where there is no such input.
    pub fn column(&self, input: usize) -> &'a [f64] {
        part(&self.batch.columns, input, self.len())
    }

    /// rows: the quality of an input: 0 ok, 1 missing, 2 stale, 3 invalid.
    pub fn quality(&self, input: usize) -> &'a [u8] {
        part(&self.batch.quality, input, self.len())
    }

    /// The rows whose value of an input is ok, with the value.
    pub fn values(&self, input: usize) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let cells = self.column(input).iter().zip(self.quality(input));
        cells.enumerate().filter(|(_, (_, quality))| **quality == 0).map(|(row, (value, _))| (row, *value))
    }

    /// One value, where it is ok.
    pub fn get(&self, input: usize, row: usize) -> Option<f64> {
        let ok = *self.quality(input).get(row)? == 0;
        self.column(input).get(row).copied().filter(|_| ok)
    }

    /// The number of the row's group; 0 where the rule asked for none.
    pub fn group(&self, row: usize) -> u32 {
        self.batch.groups.get(row).copied().unwrap_or(0)
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.batch.groups.iter().max().map_or(1, |last| *last as usize + 1)
    }

    /// rows: what the last good tick left in a state slot.
    pub fn state(&self, slot: usize) -> &'a [f64] {
        part(&self.batch.state, slot, self.len())
    }

    pub(crate) fn all_state(&self) -> &'a [f64] {
        &self.batch.state
    }
}

fn part<T>(all: &[T], at: usize, rows: usize) -> &[T] {
    all.get(at * rows..(at + 1) * rows).unwrap_or(&[])
}
