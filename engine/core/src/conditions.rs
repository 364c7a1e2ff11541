//! Watchfire's own alerts: a quarantined rule, an invalid template, a lost source.

use std::collections::BTreeMap;
use std::sync::Arc;

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

/// Watchfire's own alerts that fire.
#[derive(Debug, Default)]
pub struct Conditions {
    firing: BTreeMap<(Arc<str>, Labels), AlertView>,
}

impl Conditions {
    /// Takes in that a condition began, grew or ended; the transition, where it is one.
    pub fn set(&mut self, now: Time, condition: Condition) -> Option<Transition> {
        let key = (condition.alert.clone(), condition.labels.clone());
        let old = self.firing.remove(&key);
        let from = old.as_ref().map_or((State::Inactive, None), |view| (view.state, Some(view.severity)));
        let starts_at = old.as_ref().map_or(now, |view| view.starts_at);
        let Some(severity) = condition.raise else {
            return old.map(|view| end(view, now, from));
        };
        let view = view(condition, severity, starts_at);
        self.firing.insert(key, view.clone());
        (from != (State::Firing, Some(severity))).then_some(Transition { time: now, alert: view, from })
    }

    /// The conditions that hold.
    pub fn views(&self) -> impl Iterator<Item = &AlertView> {
        self.firing.values()
    }
}

fn end(view: AlertView, now: Time, from: (State, Option<Severity>)) -> Transition {
    Transition { time: now, alert: AlertView { state: State::Resolved, ends_at: Some(now), ..view }, from }
}

fn view(condition: Condition, severity: Severity, starts_at: Time) -> AlertView {
    let rule: Arc<str> = format!("{TEMPLATE}/{}", condition.alert).into();
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
}
