//! Everything that can happen to the engine.

use std::sync::Arc;

use crate::labels::Labels;
use crate::sample::Sample;
use crate::severity::{Cause, Severity};
use crate::time::Time;

/// Everything that can happen to the engine.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Samples came in. Feed all samples of a moment before the tick of that moment.
    Samples(&'a [Sample]),
    /// Something happened on a target, such as an Xid.
    Occurred(Occurrence),
    /// Watchfire's own condition (a quarantined rule, an invalid template, a lost source) began, grew or ended.
    Condition(Condition),
    /// Time passed: run all deadlines that are due.
    Tick,
}

/// One event of the world, an input for rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The kind, such as `xid`.
    pub kind: Arc<str>,
    /// Where it happened: the labels of a GPU or a host.
    pub labels: Labels,
    /// When.
    pub time: Time,
    /// Its number within the kind.
    pub code: u32,
    /// The job that it hit, where known.
    pub job: Option<Arc<str>>,
}

/// A condition that Watchfire itself watches; its alert goes the way of all others.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The alert's name, such as `WatchfireRuleQuarantined`.
    pub alert: Arc<str>,
    /// What tells one instance from another.
    pub labels: Labels,
    /// How bad it is now; `None` = it ended.
    pub raise: Option<Severity>,
    /// Its cause.
    pub cause: Cause,
    /// One sentence for people.
    pub note: String,
}
