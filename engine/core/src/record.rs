//! Plain values that are kept over a restart. Their stored form is the shell's business.

use std::sync::Arc;

use crate::alert::Life;
use crate::labels::Labels;
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
