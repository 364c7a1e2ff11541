//! A look at what a rule is asked and what it answers, for whoever captures it.

use crate::rule::{Batch, Outcome, RuleFailure, Target, Usage};

/// One call of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// What it was asked.
    pub batch: &'a Batch<'a>,
    /// What the rows stand for.
    pub targets: &'a [Target],
    /// What it answered.
    pub answer: Result<&'a Outcome, &'a RuleFailure>,
    /// What the call took.
    pub usage: Option<Usage>,
}

/// Sees each call of the rule that it is set on. Changes nothing.
pub trait Tap: Send {
    /// One call.
    fn saw(&mut self, judged: Judged<'_>);
}
