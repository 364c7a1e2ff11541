//! What a rule keeps over a restart or a reload, and how its alerts end without its word.

use std::time::Duration;

use super::Judge;
use crate::alert;
use crate::effect::Transition;
use crate::health::Health;
use crate::labels::Labels;
use crate::record::{AlertKey, AlertRecord, Drift, RuleRecord, StateRecord};
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

    /// Ends one alert without its rule's word.
    pub(super) fn end_row(&mut self, row: u32, now: Time, reason: &str) -> Option<Transition> {
        let alert = self.alerts[row as usize].take()?;
        Some(alert.ended(&self.spec, self.rows.key(row), self.rows.labels(row), now, reason))
    }

    /// Puts back an alert that was kept over a restart or a reload. `seen`: the last moment that was judged.
    pub fn restore(&mut self, target: &Labels, record: &AlertRecord, seen: Option<Time>, now: Time) {
        let Some(row) = self.row_kept(target, &record.labels) else { return };
        self.grow();
        let record = self.brought_to(record, seen, now);
        let alert = RowAlert::restored(&record, &self.spec, now);
        if alert.is_active() && self.alerts[row as usize].is_none() {
            self.active.push(row);
        }
        if !alert.is_active() {
            self.changed.push(row);
        }
        self.alerts[row as usize] = alert.is_active().then(|| Box::new(alert));
    }

    pub(super) fn row_kept(&mut self, target: &Labels, labels: &Labels) -> Option<u32> {
        let group_by = self.program.descriptor().group_by.clone();
        let found = self.rows.find(target);
        found.or_else(|| self.rows.add(target.clone(), labels.clone(), group_by.as_deref()))
    }

    /// A record whose times are not after `now` (the clock may have been ahead), and whose clocks stood still while
    /// nobody judged.
    fn brought_to(&self, record: &AlertRecord, seen: Option<Time>, now: Time) -> AlertRecord {
        let mut record = record.clone();
        record.life = alert::pass_over(record.life, Duration::ZERO, now);
        record.active_at = record.active_at.min(now);
        record.starts_at = record.starts_at.min(now);
        if let Some(seen) = seen {
            let interval = self.spec.interval;
            let missed = (seen + Duration::from_millis(1)).align_up(interval);
            record.life = alert::pass_over(record.life, now.align_up(interval).since(missed), now);
        }
        record
    }

    /// Puts back how far it had come and how well it did.
    pub fn restore_rule(&mut self, record: &RuleRecord, now: Time) {
        self.tick = record.tick;
        self.next = record.next;
        self.health = Health::restored(&record.health, now);
    }

    /// When it is due next, where that is known.
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    fn rule_record(&self) -> RuleRecord {
        RuleRecord { id: self.spec.id.clone(), tick: self.tick, next: self.next, health: self.health.record() }
    }

    /// Its record, where its health changed since the last call.
    pub fn take_health(&mut self) -> Option<RuleRecord> {
        std::mem::take(&mut self.health_changed).then(|| self.rule_record())
    }

    /// Adds what moved since the last call without anything having happened.
    pub fn take_drift(&mut self, drift: &mut Drift) {
        for row in std::mem::take(&mut self.drifted) {
            let key = AlertKey { rule: self.spec.id.clone(), target: self.rows.key(row).clone() };
            drift.alerts.extend(self.record_of(row).map(|record| (key, record)));
        }
        if std::mem::take(&mut self.ticked) {
            drift.rules.push(self.rule_record());
            let states: Vec<StateRecord> = self.state_records().collect();
            if !states.is_empty() {
                drift.states.push((self.spec.id.clone(), states));
            }
        }
    }

    /// All counts as changed: it could not be stored.
    pub fn taint(&mut self) {
        self.changed.extend(self.active.iter().copied());
        (self.ticked, self.health_changed) = (true, true);
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

    /// Its pending and firing alerts, as they would be kept.
    pub fn alert_records(&self) -> impl Iterator<Item = (AlertKey, AlertRecord)> + '_ {
        let key = |row: u32| AlertKey { rule: self.spec.id.clone(), target: self.rows.key(row).clone() };
        self.active.iter().filter_map(move |row| Some((key(*row), self.record_of(*row)?)))
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
