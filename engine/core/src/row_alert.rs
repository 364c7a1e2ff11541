//! The alert of one row: its life together with what is shown of it.

use std::sync::Arc;

use crate::alert::{self, Life, Timing, Verdict};
use crate::effect::{AlertView, State, Transition};
use crate::labels::Labels;
use crate::record::AlertRecord;
use crate::rule::{Hit, RuleSpec};
use crate::severity::{Cause, Severity};
use crate::time::Time;

/// The alert of one row while it is pending or firing.
#[derive(Clone, Debug, PartialEq)]
pub struct RowAlert {
    life: Life,
    active_at: Time,
    starts_at: Time,
    severity: Severity,
    value: f64,
    cause: Option<Cause>,
    note: Option<Arc<str>>,
    state: State,
}

/// What an alert shows: the bits of its value, cause, evidence, state and severity.
pub type Shown = (u64, Option<Cause>, Option<Arc<str>>, State, Severity);

/// What a tick did to a row's alert.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// The alert afterwards, also where it has just ended.
    pub alert: Box<RowAlert>,
    /// What it was before, where it is something else now.
    pub changed_from: Option<(State, Option<Severity>)>,
}

impl RowAlert {
    /// An alert that was kept over a restart.
    pub fn restored(record: &AlertRecord, spec: &RuleSpec, now: Time) -> Self {
        let timing = Timing::from(spec);
        let (worked_out, severity) = alert::state(&record.life, now, timing, spec.missing_after);
        let state = record.state.unwrap_or(worked_out);
        let severity = severity.filter(|_| record.state.is_none());
        RowAlert {
            life: record.life,
            active_at: record.active_at,
            starts_at: record.starts_at,
            severity: severity.unwrap_or(record.severity),
            value: record.value,
            cause: record.cause,
            note: record.note.clone(),
            state,
        }
    }

    /// What is to be kept over a restart.
    pub fn record(&self, labels: Labels) -> AlertRecord {
        AlertRecord {
            labels,
            life: self.life,
            state: Some(self.state),
            active_at: self.active_at,
            starts_at: self.starts_at,
            severity: self.severity,
            value: self.value,
            cause: self.cause,
            note: self.note.clone(),
        }
    }

    /// What it shows beside its state.
    pub fn shown(&self) -> Shown {
        (self.value.to_bits(), self.cause, self.note.clone(), self.state, self.severity)
    }

    /// Its clocks.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Whether it fires, with known data or without.
    pub fn is_firing(&self) -> bool {
        self.life.firing.is_some()
    }

    /// The alert as others see it.
    pub fn view(&self, spec: &RuleSpec, key: &Labels, labels: &Labels) -> AlertView {
        AlertView {
            fingerprint: fingerprint(&spec.id, key),
            rule: spec.id.clone(),
            template: spec.template.clone(),
            alert: spec.alert.clone(),
            labels: labels.with(&spec.labels),
            state: self.state,
            severity: self.severity,
            value: self.value,
            cause: self.cause.or(spec.cause),
            note: self.note.clone(),
            active_at: self.active_at,
            starts_at: self.starts_at,
            ends_at: None,
            reason: None,
            stale: false,
        }
    }

    /// The transition that ends it without its rule's word, such as when its rule is taken away.
    pub fn ended(&self, spec: &RuleSpec, key: &Labels, labels: &Labels, now: Time, reason: &str) -> Transition {
        let state = if self.is_firing() { State::Resolved } else { State::Inactive };
        let from = (self.state, Some(self.severity));
        let view = self.view(spec, key, labels);
        let alert = AlertView { state, ends_at: Some(now), reason: Some(reason.into()), ..view };
        Transition { time: now, alert, from }
    }

    /// Adds the evidence.
    pub fn set_note(&mut self, note: &str) {
        self.note = Some(note.into());
    }

    fn begun(now: Time) -> Self {
        RowAlert {
            life: Life::default(),
            active_at: now,
            starts_at: now,
            severity: Severity::Info,
            value: f64::NAN,
            cause: None,
            note: None,
            state: State::Inactive,
        }
    }

    fn advance(mut self: Box<Self>, now: Time, life: Life, state: State, severity: Option<Severity>) -> Step {
        let was_firing = self.is_firing();
        let from = (self.state, (self.state != State::Inactive).then_some(self.severity));
        if life.firing.is_some() && !was_firing {
            self.starts_at = now;
        }
        self.life = life;
        self.state = if was_firing && state == State::Inactive { State::Resolved } else { state };
        self.severity = severity.unwrap_or(self.severity);
        let changed = self.state != from.0 || (was_firing && Some(self.severity) != from.1);
        Step { alert: self, changed_from: changed.then_some(from) }
    }

    /// Whether it still is: pending or firing, with known data or without.
    pub fn is_active(&self) -> bool {
        matches!(self.state, State::Pending | State::Firing | State::Unknown)
    }

    /// The transition to what it is now.
    pub fn transition(
        &self,
        from: (State, Option<Severity>),
        now: Time,
        spec: &RuleSpec,
        key: &Labels,
        labels: &Labels,
    ) -> Transition {
        let mut alert = self.view(spec, key, labels);
        alert.ends_at = (!self.is_active()).then_some(now);
        Transition { time: now, alert, from }
    }

    fn show(&mut self, hit: Option<(&Hit, &[String])>) {
        let Some((hit, notes)) = hit else { return };
        self.value = hit.value;
        self.cause = hit.cause.or(self.cause);
        if let Some(note) = hit.note.and_then(|at| notes.get(at as usize)) {
            self.note = Some(note.as_str().into());
        }
    }
}

/// The same number for one rule on one target, whatever the severity, over restarts.
pub fn fingerprint(rule: &str, key: &Labels) -> u64 {
    key.with(&Labels::new([("__rule__", rule)])).fingerprint()
}

/// One tick of a row: `verdict` none = its data is missing. `None` where nothing was and nothing is.
pub fn step(
    alert: Option<Box<RowAlert>>,
    now: Time,
    verdict: Option<Verdict>,
    hit: Option<(&Hit, &[String])>,
    spec: &RuleSpec,
) -> Option<Step> {
    let before = alert.as_ref().map(|alert| alert.life).unwrap_or_default();
    let life = match verdict {
        Some(verdict) => alert::next(before, now, verdict, Timing::from(spec)),
        None => alert::next_missing(before, now),
    };
    let (state, severity) = alert::state(&life, now, Timing::from(spec), spec.missing_after);
    if alert.is_none() && state == State::Inactive {
        return None;
    }
    let mut alert = alert.unwrap_or_else(|| Box::new(RowAlert::begun(now)));
    alert.show(hit);
    Some(alert.advance(now, life, state, severity))
}
