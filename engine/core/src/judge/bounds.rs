//! The limits that a rule ran into, and the evidence that it is asked for within them.

use std::collections::BTreeMap;

use super::Judge;
use crate::row_alert::RowAlert;
use crate::rule::RuleFailure;

impl Judge {
    /// Counts a failure at a limit.
    pub(super) fn note_limit(&mut self, failure: &RuleFailure) {
        if let Some(limit) = failure.limit() {
            *self.limit_hits.entry(limit).or_default() += 1;
        }
    }

    /// How often each limit was hit, by its name: calls that failed at it, and what was cut or dropped.
    pub fn limit_hits(&self) -> BTreeMap<&'static str, u64> {
        let mut all = self.limit_hits.clone();
        for (limit, times) in self.program.limits_touched() {
            *all.entry(limit).or_default() += times;
        }
        all
    }

    /// Evidence is a help, never a condition: a rule that cannot explain itself still alerts. It is asked for as many
    /// rows as an answer may have notes, and no more at this tick once it fails.
    pub(super) fn explain(&mut self, row: u32, alert: &mut RowAlert) {
        let Some(left) = self.explains_left.checked_sub(1) else { return };
        self.explains_left = left;
        match self.program.explain(row) {
            Ok(note) => note.iter().for_each(|note| alert.set_note(note)),
            Err(failure) => {
                self.explains_left = 0;
                self.counts.explain_failures_total += 1;
                self.note_limit(&failure);
            }
        }
    }
}
