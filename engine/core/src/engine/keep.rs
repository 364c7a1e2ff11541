//! What the engine keeps over a restart, and how it goes on from there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Engine, quarantine_of};
use crate::conditions::{RESTORED_GRACE, RULE_QUARANTINED};
use crate::effect::{AlertView, Effect, State, Transition};
use crate::group::{NOT_BACK, RULE_REMOVED};
use crate::judge::Judge;
use crate::record::{AlertKey, AlertRecord, Changes, DerivedRecord, Drift, Kept, StateRecord};
use crate::row_alert;
use crate::sample::{Sample, SeriesId};
use crate::schedule::{Due, Schedule};
use crate::time::Time;
use crate::window::pane_width;

impl Engine {
    /// What changed since the last call.
    pub fn take_changes(&mut self) -> Changes {
        let mut alerts = std::mem::take(&mut self.removed);
        alerts.extend(self.judges.iter_mut().flat_map(Judge::take_changed));
        Changes {
            alerts,
            groups: self.groups.take_changed(),
            conditions: self.conditions.take_changed(),
            rules: self.judges.iter_mut().filter_map(Judge::take_health).collect(),
            gone: std::mem::take(&mut self.gone),
        }
    }

    /// What moved since the last call without anything having happened.
    pub fn take_drift(&mut self) -> Drift {
        let mut drift = Drift::default();
        self.judges.iter_mut().for_each(|judge| judge.take_drift(&mut drift));
        drift.derived = self.derived.as_mut().map(std::mem::take).unwrap_or_default();
        drift
    }

    /// All that is counts as changed: what [`Engine::take_changes`] and [`Engine::take_drift`] gave could not be
    /// stored. What ended meanwhile is not told again: all that is to be stored then goes in place of what is.
    pub fn taint(&mut self) {
        self.judges.iter_mut().for_each(Judge::taint);
        self.groups.taint();
        self.conditions.taint();
    }

    /// Keeps derived values for [`Engine::take_drift`], which must then be called again and again: where a restart
    /// must go on exactly, they cannot be read from a source again.
    pub fn keep_derived(&mut self) {
        self.derived.get_or_insert_default();
    }

    pub(super) fn keep_value(&mut self, id: SeriesId, time: Time, value: f64) {
        let (Some(kept), Some(series)) = (&mut self.derived, self.table.series(id)) else { return };
        if self.readers.contains_key(&*series.metric) {
            kept.push(DerivedRecord { series: series.clone(), time, value });
        }
    }

    /// How far back the widest window of any rule looks.
    pub fn longest_window(&self) -> Duration {
        let columns = self.judges.iter().flat_map(|judge| judge.columns());
        let windows = columns.map(|column| column.input().window);
        windows.max().map_or(Duration::ZERO, |window| window + pane_width(window))
    }

    /// The alerts that are pending or firing, as they would be kept.
    pub fn alert_records(&self) -> impl Iterator<Item = (AlertKey, AlertRecord)> + '_ {
        self.judges.iter().flat_map(Judge::alert_records)
    }

    /// The numbers that rules keep for their rows.
    pub fn state_records(&self) -> impl Iterator<Item = StateRecord> + '_ {
        self.judges.iter().flat_map(Judge::state_records)
    }

    /// Lets the deadlines before a moment pass without judging anything, while what was read before a restart is
    /// taken in again: only sources take over from each other as they did.
    pub fn pass_over(&mut self, before: Time) {
        while let Some((at, due)) =
            self.schedule.next().filter(|at| *at < before).and_then(|at| self.schedule.take_due(at))
        {
            let Due::Rule(rule) = due else { continue };
            let judge = &mut self.judges[rule];
            judge.take_over(at, &self.table);
            let next = (at + Duration::from_millis(1)).align_up(judge.spec().interval);
            self.schedule.add(due, next);
        }
    }

    /// Puts back what was kept over a restart, after [`Engine::load`]. Alerts of rules that are not loaded end. Times
    /// after `now`, of a clock that was ahead, count as now.
    pub fn restore(&mut self, now: Time, kept: Kept, effects: &mut Vec<Effect>) {
        let at: HashMap<Arc<str>, usize> =
            self.judges.iter().enumerate().map(|(at, judge)| (judge.spec().id.clone(), at)).collect();
        for record in &kept.rules {
            if let Some(&judge) = at.get(&record.id) {
                self.judges[judge].restore_rule(record, now);
            }
        }
        let mut orphans = Vec::new();
        for (key, record) in kept.alerts {
            match at.get(&key.rule) {
                Some(&judge) => self.judges[judge].restore(&key.target, &record, kept.seen, now),
                None => orphans.push((key, record)),
            }
        }
        self.restore_states(&at, &kept.states);
        self.tell_migrations(effects);
        self.restore_conditions(now, kept.conditions);
        self.groups.restore(now, kept.groups);
        self.bind_all();
        self.restore_derived(kept.derived);
        for (key, record) in orphans {
            self.changed(now, orphaned(now, &key, record), effects);
            self.removed.push((key, None));
        }
        self.tell_untold(now);
        self.schedule_restored(now, kept.seen);
    }

    fn restore_states(&mut self, at: &HashMap<Arc<str>, usize>, states: &[StateRecord]) {
        let mut by_rule: HashMap<usize, Vec<&StateRecord>> = HashMap::new();
        for record in states {
            if let Some(&judge) = at.get(&record.key.rule) {
                by_rule.entry(judge).or_default().push(record);
            }
        }
        for (judge, records) in by_rule {
            self.judges[judge].restore_states(&records);
        }
    }

    /// A rule that is quarantined tells its own condition; whoever told another must do so again.
    fn restore_conditions(&mut self, now: Time, views: Vec<AlertView>) {
        let quarantined = |view: &AlertView| {
            let mut judges = self.judges.iter().filter(|judge| judge.health().is_quarantined());
            *view.alert == *RULE_QUARANTINED
                && judges.any(|judge| quarantine_of(judge.spec(), None).labels == view.labels)
        };
        let told: Vec<bool> = views.iter().map(quarantined).collect();
        for (view, is_told) in views.into_iter().zip(told) {
            self.conditions.restore(view, now, is_told);
        }
    }

    fn restore_derived(&mut self, values: Vec<DerivedRecord>) {
        for DerivedRecord { series, time, value } in values {
            if let Some(series) = self.series(&series) {
                self.take(&[Sample { series, time, value }]);
            }
        }
    }

    /// Tells groups of alerts that fire and that no group holds: what was stored of the one was lost for the other.
    fn tell_untold(&mut self, now: Time) {
        let views: Vec<AlertView> = self.alerts().filter(|view| !self.groups.holds(view.fingerprint)).collect();
        for view in views {
            self.groups.on_change(now, &view);
        }
    }

    fn schedule_restored(&mut self, now: Time, seen: Option<Time>) {
        self.schedule = Schedule::default();
        // What was due up to `seen` was done; only where no time has passed since is the rest still as it was.
        let first = seen.map_or(now, |seen| now.max(seen.min(now) + Duration::from_millis(1)));
        for (rule, judge) in self.judges.iter_mut().enumerate() {
            let kept = judge.next().filter(|_| seen == Some(now));
            let next = kept.unwrap_or_else(|| first.align_up(judge.spec().interval));
            judge.set_next(next);
            self.schedule.add(Due::Rule(rule), next);
        }
        self.schedule.set(Due::Groups, self.groups.due());
        if self.conditions.has_untold() {
            self.schedule.set(Due::Conditions, Some(now + RESTORED_GRACE));
        }
    }

    pub(super) fn sweep_conditions(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for transition in self.conditions.sweep(now, NOT_BACK) {
            self.changed(now, transition, effects);
        }
    }
}

/// The end of an alert whose rule is not loaded any more.
fn orphaned(now: Time, key: &AlertKey, record: AlertRecord) -> Transition {
    let (template, alert) = key.rule.split_once('/').unwrap_or(("", &key.rule));
    let was = if record.life.firing.is_some() { State::Firing } else { State::Pending };
    let alert = AlertView {
        fingerprint: row_alert::fingerprint(&key.rule, &key.target),
        rule: key.rule.clone(),
        template: template.into(),
        alert: alert.into(),
        labels: record.labels,
        state: if was == State::Firing { State::Resolved } else { State::Inactive },
        severity: record.severity,
        value: record.value,
        cause: record.cause,
        note: record.note,
        active_at: record.active_at.min(now),
        starts_at: record.starts_at.min(now),
        ends_at: Some(now),
        reason: Some(RULE_REMOVED.into()),
        stale: false,
    };
    Transition { time: now, from: (was, Some(record.severity)), alert }
}
