//! What a rule keeps over a restart or a reload, and how its alerts end without its word.

use super::Judge;
use crate::effect::Transition;
use crate::labels::Labels;
use crate::record::{AlertKey, AlertRecord, StateRecord};
use crate::row_alert::RowAlert;
use crate::time::Time;

impl Judge {
    /// Ends all its alerts, because the rule is taken away.
    pub fn end(&mut self, now: Time, reason: &str) -> Vec<Transition> {
        let rows = std::mem::take(&mut self.active);
        self.changed.extend(rows.iter());
        let ended = rows.into_iter().filter_map(|row| {
            let alert = self.alerts[row as usize].take()?;
            Some(alert.ended(&self.spec, self.rows.key(row), self.rows.labels(row), now, reason))
        });
        ended.collect()
    }

    /// Puts back an alert that was kept over a restart.
    pub fn restore(&mut self, target: &Labels, record: &AlertRecord, now: Time) {
        let group_by = self.program.descriptor().group_by.clone();
        let found = self.rows.find(target);
        let added = || self.rows.add(target.clone(), record.labels.clone(), group_by.as_deref());
        let Some(row) = found.or_else(added) else { return };
        self.grow();
        let alert = RowAlert::restored(record, &self.spec, now);
        if alert.is_active() && self.alerts[row as usize].is_none() {
            self.active.push(row);
        }
        self.alerts[row as usize] = alert.is_active().then(|| Box::new(alert));
    }

    /// Puts back the numbers that were kept for a target; a row of another version starts clean.
    pub fn restore_state(&mut self, record: &StateRecord) {
        let descriptor = self.program.descriptor();
        if record.version != descriptor.state_version || record.slots.len() != descriptor.state_slots as usize {
            return;
        }
        let group_by = descriptor.group_by.clone();
        let target = &record.key.target;
        let found = self.rows.find(target);
        let added = || self.rows.add(target.clone(), target.clone(), group_by.as_deref());
        let Some(row) = found.or_else(added) else { return };
        self.grow();
        self.lay_out_state();
        for (slot, value) in record.slots.iter().enumerate() {
            self.state[slot * self.state_rows + row as usize] = *value;
        }
    }

    /// The alerts that changed since the last call: their record, or none where they ended.
    pub fn take_changed(&mut self) -> Vec<(AlertKey, Option<AlertRecord>)> {
        let mut rows = std::mem::take(&mut self.changed);
        rows.sort_unstable();
        rows.dedup();
        let key = |row: u32| AlertKey { rule: self.spec.id.clone(), target: self.rows.key(row).clone() };
        rows.into_iter().map(|row| (key(row), self.record_of(row))).collect()
    }

    pub(super) fn record_of(&self, row: u32) -> Option<AlertRecord> {
        self.alerts[row as usize].as_ref().map(|alert| alert.record(self.rows.labels(row).clone()))
    }

    /// The numbers that it keeps for its rows.
    pub fn state_records(&self) -> impl Iterator<Item = StateRecord> + '_ {
        let (slots, rows) = (self.program.descriptor().state_slots as usize, self.state_rows);
        let version = self.program.descriptor().state_version;
        (0..if slots == 0 { 0 } else { rows }).map(move |row| StateRecord {
            key: AlertKey {
                rule: self.spec.id.clone(),
                target: self.rows.key(u32::try_from(row).unwrap_or(0)).clone(),
            },
            version,
            slots: (0..slots).map(|slot| self.state[slot * rows + row]).collect(),
        })
    }
}
