//! Plain values that are kept over a restart. Their stored form is the shell's business.

use std::fmt;
use std::sync::Arc;

use crate::alert::Life;
use crate::effect::{AlertView, State};
use crate::group::GroupRecord;
use crate::health::HealthRecord;
use crate::labels::Labels;
use crate::sample::Series;
use crate::severity::{Cause, Severity};
use crate::time::Time;

/// Which alert: one rule on one target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// [`crate::rule::RuleSpec::id`].
    pub rule: Arc<str>,
    /// The labels that tell the target from others.
    pub target: Labels,
}

/// One alert that is pending or firing.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertRecord {
    /// The target's labels.
    pub labels: Labels,
    /// Its clocks.
    pub life: Life,
    /// What it was called at its last tick; worked out from its clocks if none.
    pub state: Option<State>,
    /// When the condition was first met.
    pub active_at: Time,
    /// When it began to fire; equal to `active_at` while pending.
    pub starts_at: Time,
    /// The severity last told.
    pub severity: Severity,
    /// The value that the rule showed last.
    pub value: f64,
    /// The cause that the rule named.
    pub cause: Option<Cause>,
    /// The evidence.
    pub note: Option<Arc<str>>,
}

/// The numbers that a rule keeps for one target.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRecord {
    /// Which rule and target.
    pub key: AlertKey,
    /// [`crate::rule::Descriptor::state_version`].
    pub version: u32,
    /// One number per slot.
    pub slots: Vec<f64>,
}

/// What became of the numbers that another version of a rule kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The version that kept them.
    pub from: u32,
    /// The version that runs.
    pub to: u32,
    /// For how many targets.
    pub rows: usize,
    /// Why they are lost and the rule starts clean; none where they were carried over.
    pub lost: Option<String>,
}

impl fmt::Display for Migration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Migration { from, to, rows, lost } = self;
        match lost {
            None => write!(f, "carried its state of {rows} targets over from state version {from} to {to}"),
            Some(why) => {
                write!(f, "starts clean: its state of {rows} targets is of version {from}, not {to}, and {why}")
            }
        }
    }
}

/// One rule as it stood after its last tick.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRecord {
    /// [`crate::rule::RuleSpec::id`].
    pub id: Arc<str>,
    /// How many ticks it has had: the `tick` of its next batch.
    pub tick: u64,
    /// When its next tick is due. Counts only for a restart that goes on at the very moment that was stored last.
    pub next: Option<Time>,
    /// How well its program did.
    pub health: HealthRecord,
}

/// One value that a rule derived, for the windows of those that read it.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivedRecord {
    /// Its series.
    pub series: Arc<Series>,
    /// When it was derived.
    pub time: Time,
    /// The value.
    pub value: f64,
}

/// Everything that is kept over a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The last moment that is known to have been judged. What lies between it and the restart counts neither for
    /// nor against an alert.
    pub seen: Option<Time>,
    /// Alerts that are pending or firing.
    pub alerts: Vec<(AlertKey, AlertRecord)>,
    /// The numbers that rules keep.
    pub states: Vec<StateRecord>,
    /// What receivers were told.
    pub groups: Vec<GroupRecord>,
    /// Watchfire's own conditions.
    pub conditions: Vec<AlertView>,
    /// The rules.
    pub rules: Vec<RuleRecord>,
    /// Derived values, in order of time.
    pub derived: Vec<DerivedRecord>,
}

/// What changed since it was last asked for: to be stored before the effects are carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Alerts: their record, or none where they ended.
    pub alerts: Vec<(AlertKey, Option<AlertRecord>)>,
    /// Groups: their record, or none where they are empty.
    pub groups: Vec<(Arc<str>, Option<GroupRecord>)>,
    /// Watchfire's own conditions, by fingerprint: none where they ended.
    pub conditions: Vec<(u64, Option<AlertView>)>,
    /// Rules whose health changed.
    pub rules: Vec<RuleRecord>,
    /// Rules that were taken away: all that is kept of them can go.
    pub gone: Vec<Arc<str>>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.alerts.is_empty()
            && self.groups.is_empty()
            && self.conditions.is_empty()
            && self.rules.is_empty()
            && self.gone.is_empty()
    }
}

/// What moves with each tick, without anything having happened: to be stored now and then, and with each change
/// where a restart must go on exactly.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drift {
    /// Active alerts that show another value than before.
    pub alerts: Vec<(AlertKey, AlertRecord)>,
    /// By rule: the numbers that it keeps for its rows, all of them.
    pub states: Vec<(Arc<str>, Vec<StateRecord>)>,
    /// Rules that were judged.
    pub rules: Vec<RuleRecord>,
    /// Derived values that are read by rules; only where [`crate::engine::Engine::keep_derived`] was called.
    pub derived: Vec<DerivedRecord>,
}
