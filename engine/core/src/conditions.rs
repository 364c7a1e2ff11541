//! Watchfire's own alerts: a quarantined rule, an invalid template, a lost source.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::effect::{AlertView, State, Transition};
use crate::event::Condition;
use crate::labels::Labels;
use crate::row_alert;
use crate::severity::Severity;
use crate::time::Time;

/// The template that Watchfire's own alerts name.
pub const TEMPLATE: &str = "watchfire";
/// The alert of a rule that was given up for a while.
pub const RULE_QUARANTINED: &str = "WatchfireRuleQuarantined";

/// The alert of an engine that had to leave series or targets out.
pub const LIMIT_REACHED: &str = "WatchfireLimitReached";
/// Conditions that were kept over a restart have this long to be told again before they count as ended: a source
/// that is read seldom must be given the time to fail again.
pub const RESTORED_GRACE: Duration = Duration::from_secs(15 * 60);

type Key = (Arc<str>, Labels);

/// Watchfire's own alerts that fire.
#[derive(Debug, Default)]
pub struct Conditions {
    firing: BTreeMap<Key, AlertView>,
    /// Those that were kept over a restart and that nobody has told since.
    untold: BTreeSet<Key>,
    changed: BTreeSet<Key>,
}

impl Conditions {
    /// Takes in that a condition began, grew or ended; the transition, where it is one.
    pub fn set(&mut self, now: Time, condition: Condition) -> Option<Transition> {
        let key = (condition.alert.clone(), condition.labels.clone());
        self.untold.remove(&key);
        let old = self.firing.remove(&key);
        let from = old.as_ref().map_or((State::Inactive, None), |view| (view.state, Some(view.severity)));
        let starts_at = old.as_ref().map_or(now, |view| view.starts_at);
        let Some(severity) = condition.raise else {
            return old.map(|view| self.end(key, view, now, None));
        };
        let view = view(condition, severity, starts_at);
        if old.as_ref() != Some(&view) {
            self.changed.insert(key.clone());
        }
        self.firing.insert(key, view.clone());
        (from != (State::Firing, Some(severity))).then_some(Transition { time: now, alert: view, from })
    }

    fn end(&mut self, key: Key, view: AlertView, now: Time, reason: Option<&str>) -> Transition {
        self.changed.insert(key);
        let from = (view.state, Some(view.severity));
        let reason = reason.map(Into::into);
        Transition { time: now, alert: AlertView { state: State::Resolved, ends_at: Some(now), reason, ..view }, from }
    }

    /// Puts back a condition that was kept over a restart. `is_told`: whoever tells it knows that it holds, so it
    /// needs not be told again.
    pub fn restore(&mut self, mut view: AlertView, now: Time, is_told: bool) {
        let key = (view.alert.clone(), view.labels.clone());
        view.active_at = view.active_at.min(now);
        view.starts_at = view.starts_at.min(now);
        if !is_told {
            self.untold.insert(key.clone());
        }
        self.firing.insert(key, view);
    }

    /// Whether a condition holds that was kept over a restart and that nobody has told since.
    pub fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// Ends those that nobody has told since the restart.
    pub fn sweep(&mut self, now: Time, reason: &str) -> Vec<Transition> {
        let untold = std::mem::take(&mut self.untold);
        let ended = untold.into_iter().filter_map(|key| {
            let view = self.firing.remove(&key)?;
            Some(self.end(key, view, now, Some(reason)))
        });
        ended.collect()
    }

    /// All count as changed: they could not be stored.
    pub fn taint(&mut self) {
        self.changed.extend(self.firing.keys().cloned());
    }

    /// Those that changed since the last call, by fingerprint: none where they ended.
    pub fn take_changed(&mut self) -> Vec<(u64, Option<AlertView>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|key| (fingerprint(&key.0, &key.1), self.firing.get(&key).cloned())).collect()
    }

    /// The conditions that hold.
    pub fn views(&self) -> impl Iterator<Item = &AlertView> {
        self.firing.values()
    }
}

fn rule_of(alert: &str) -> Arc<str> {
    format!("{TEMPLATE}/{alert}").into()
}

fn fingerprint(alert: &str, labels: &Labels) -> u64 {
    row_alert::fingerprint(&rule_of(alert), labels)
}

fn view(condition: Condition, severity: Severity, starts_at: Time) -> AlertView {
    let rule = rule_of(&condition.alert);
    AlertView {
        fingerprint: row_alert::fingerprint(&rule, &condition.labels),
        rule,
        template: TEMPLATE.into(),
        alert: condition.alert,
        labels: condition.labels,
        state: State::Firing,
        severity,
        value: 1.0,
        cause: Some(condition.cause),
        note: Some(condition.note.into()),
        active_at: starts_at,
        starts_at,
        ends_at: None,
        reason: None,
        stale: false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::severity::Cause;

    #[test]
    fn fires_once_grows_once_and_ends_once() {
        let mut conditions = Conditions::default();
        let mut set = |second: i64, raise| {
            let condition = Condition {
                alert: "WatchfireSourceDown".into(),
                labels: Labels::new([("host", "h")]),
                raise,
                cause: Cause::Telemetry,
                note: "no answer".into(),
            };
            let changed = conditions.set(Time::from_millis(second * 1000), condition);
            changed.map(|changed| (changed.alert.state, changed.alert.severity, changed.alert.starts_at.as_millis()))
        };
        assert_eq!(set(0, None), None);
        assert_eq!(set(1, Some(Severity::Warning)), Some((State::Firing, Severity::Warning, 1000)));
        assert_eq!(set(2, Some(Severity::Warning)), None);
        assert_eq!(set(3, Some(Severity::Critical)), Some((State::Firing, Severity::Critical, 1000)));
        assert_eq!(set(4, None), Some((State::Resolved, Severity::Critical, 1000)));
        assert_eq!(set(5, None), None);
    }

    #[test]
    fn a_kept_condition_that_nobody_tells_again_ends() {
        let at = |second: i64| Time::from_millis(second * 1000);
        let condition = |instance: &str, raise| Condition {
            alert: "WatchfireSourceDown".into(),
            labels: Labels::new([("instance", instance)]),
            raise,
            cause: Cause::Telemetry,
            note: "no answer".into(),
        };
        let mut before = Conditions::default();
        for instance in ["a", "b"] {
            before.set(at(9), condition(instance, Some(Severity::Warning)));
        }
        let kept: Vec<AlertView> = before.take_changed().into_iter().filter_map(|(_, view)| view).collect();
        assert_eq!((kept.len(), before.take_changed().len()), (2, 0));
        let mut after = Conditions::default();
        kept.into_iter().for_each(|view| after.restore(view, at(5), false));
        assert_eq!(after.set(at(6), condition("a", Some(Severity::Warning))), None, "it goes on, it does not begin");
        assert!(after.has_untold());
        let ended = after.sweep(at(7), "not back");
        assert_eq!(ended.len(), 1);
        assert_eq!((ended[0].alert.labels.get("instance"), ended[0].alert.starts_at), (Some("b"), at(5)));
        assert_eq!(ended[0].alert.reason.as_deref(), Some("not back"));
        assert!(!after.has_untold() && after.views().count() == 1);
    }
}
