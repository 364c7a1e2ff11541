//! Everything the engine can ask for. The shell carries effects out, in order, and durably before it goes on.

use std::fmt;
use std::sync::Arc;

use crate::labels::Labels;
use crate::record::Migration;
use crate::rule::RuleFailure;
use crate::severity::{Cause, Severity};
use crate::time::Time;

/// Everything the engine can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An alert changed.
    Transition(Transition),
    /// A receiver is to be told.
    Notify(Notification),
    /// A call of a rule failed; its alerts stay as they are.
    RuleFailed {
        /// [`crate::rule::RuleSpec::id`].
        rule: Arc<str>,
        /// Why.
        failure: RuleFailure,
        /// When it is tried again.
        retry_at: Time,
        /// Whether it is now quarantined.
        quarantined: bool,
    },
    /// A rule met numbers that another version of it kept.
    StateMigrated {
        /// [`crate::rule::RuleSpec::id`].
        rule: Arc<str>,
        /// What became of them.
        migration: Migration,
    },
    /// A rule that had failed answers again.
    RuleRecovered {
        /// [`crate::rule::RuleSpec::id`].
        rule: Arc<str>,
    },
}

/// What an alert changed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The condition is no longer met, and never fired.
    Inactive,
    /// The condition is met, not yet for long enough.
    Pending,
    /// The alert fires.
    Firing,
    /// The alert fired and has ended.
    Resolved,
    /// The alert fires, but its data has been missing for too long to say that it still should.
    Unknown,
}

impl State {
    /// The word used in output and payloads.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Inactive => "inactive",
            State::Pending => "pending",
            State::Firing => "firing",
            State::Resolved => "resolved",
            State::Unknown => "unknown",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One alert as it is at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertView {
    /// Same for one rule on one target whatever the severity, over restarts.
    pub fingerprint: u64,
    /// [`crate::rule::RuleSpec::id`], or `watchfire/NAME` for Watchfire's own conditions.
    pub rule: Arc<str>,
    /// The template's name.
    pub template: Arc<str>,
    /// The alert's name.
    pub alert: Arc<str>,
    /// The target's labels with those of the template; without `alertname` and `severity`.
    pub labels: Labels,
    /// What it is now.
    pub state: State,
    /// How bad. While pending: the severity that is raised.
    pub severity: Severity,
    /// The value that the rule showed last.
    pub value: f64,
    /// The likely cause.
    pub cause: Option<Cause>,
    /// The evidence: the rule's own words.
    pub note: Option<Arc<str>>,
    /// When the condition was first met.
    pub active_at: Time,
    /// When it began to fire; equal to `active_at` while pending.
    pub starts_at: Time,
    /// When it ended.
    pub ends_at: Option<Time>,
    /// Why it ended, where that is not "the condition cleared".
    pub reason: Option<Arc<str>>,
    /// Whether its rule is quarantined: the alert stands as it was when the rule last answered.
    pub stale: bool,
}

/// An alert changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// When.
    pub time: Time,
    /// The alert after the change.
    pub alert: AlertView,
    /// What it was before.
    pub from: (State, Option<Severity>),
}

/// Why a receiver is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Alerts of the group began, grew or ended.
    Change,
    /// Nothing changed for `repeat_interval`.
    Repeat,
}

/// One message to one receiver about one group of alerts.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// When it was asked for.
    pub time: Time,
    /// The receiver's name.
    pub receiver: Arc<str>,
    /// The group: stable over restarts, same form as Alertmanager's (`{}/{matchers}:{labels}`).
    pub group_key: Arc<str>,
    /// The labels that the group's alerts share by `group_by`.
    pub group_labels: Labels,
    /// Firing and just-resolved alerts, worst first.
    pub alerts: Vec<AlertView>,
    /// Why now.
    pub reason: Reason,
    /// How often this content was repeated before; part of the idempotency key.
    pub repeat: u64,
}
