//! The engine: events in, effects out.

mod keep;
mod load;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::conditions::{Conditions, LIMIT_REACHED, RULE_QUARANTINED};
use crate::effect::{AlertView, Effect, Notification, State, Transition};
use crate::event::{Condition, Event, Occurrence};
use crate::group::Groups;
use crate::judge::{Counts, Judge};
use crate::labels::Labels;
use crate::record::{AlertKey, AlertRecord, DerivedRecord, Migration};
pub use crate::record::{Changes, Drift, Kept};
use crate::route::RouteTree;
use crate::rule::{Program, RuleFailure, RuleSpec};
use crate::sample::{Sample, Series, SeriesId};
use crate::schedule::{Due, Schedule};
use crate::series::{SERIES_MAX, SeriesTable};
use crate::severity::{Cause, Severity};
use crate::targets::ROWS_MAX;
use crate::time::Time;

pub use load::{Candidate, Reloaded, check_rule};

/// A rule with the program that judges it.
pub type Loaded = (RuleSpec, Box<dyn Program>);

/// The engine. Deterministic: the same calls give the same effects.
pub struct Engine {
    table: SeriesTable,
    /// In order of evaluation.
    judges: Vec<Judge>,
    /// Which inputs (rule, input) read a metric.
    readers: HashMap<String, Vec<(u32, u32)>>,
    schedule: Schedule,
    groups: Groups,
    conditions: Conditions,
    counts: EngineCounts,
    /// What is kept of alerts of rules that are gone: to be forgotten.
    removed: Vec<(AlertKey, Option<AlertRecord>)>,
    /// Rules that were taken away since it was last asked for.
    gone: Vec<Arc<str>>,
    /// Derived values that are to be kept; none where that was not asked for.
    derived: Option<Vec<DerivedRecord>>,
    is_limited: bool,
}

/// What the engine has taken and left out, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Samples taken.
    pub samples_total: u64,
    /// Series refused because [`crate::series::SERIES_MAX`] is reached.
    pub series_refused_total: u64,
}

/// How one rule does.
#[derive(Clone, Debug)]
pub struct RuleStatus {
    /// [`RuleSpec::id`].
    pub id: Arc<str>,
    /// Number of its rows.
    pub rows: usize,
    /// Bytes kept for them.
    pub bytes: usize,
    /// Why its last call failed.
    pub last_failure: Option<RuleFailure>,
    /// How many of its calls failed since it was loaded.
    pub failures_total: u64,
    /// Whether it is quarantined.
    pub quarantined: bool,
    /// What it has left out.
    pub counts: Counts,
    /// What became of the state that another version of it kept.
    pub migration: Option<Migration>,
    /// How often each limit was hit, by its name.
    pub limit_hits: BTreeMap<&'static str, u64>,
    /// When a quarantined rule is tried again is this long after its last failure.
    pub quarantined_for: Option<std::time::Duration>,
}

impl Engine {
    /// An engine without rules whose alerts go the ways of `routes`.
    pub fn new(routes: RouteTree) -> Self {
        Engine {
            table: SeriesTable::default(),
            judges: Vec::new(),
            readers: HashMap::new(),
            schedule: Schedule::default(),
            groups: Groups::new(routes),
            conditions: Conditions::default(),
            counts: EngineCounts::default(),
            removed: Vec::new(),
            gone: Vec::new(),
            derived: None,
            is_limited: false,
        }
    }

    fn bind_all(&mut self) {
        self.readers.clear();
        self.table.clear_sinks();
        self.judges.iter_mut().for_each(Judge::unbind);
        for (rule, judge) in (0u32..).zip(&self.judges) {
            for (input, column) in (0u32..).zip(judge.columns()) {
                let Some(metric) = column.metric() else { continue };
                self.readers.entry(metric).or_default().push((rule, input));
            }
        }
        for id in self.table.ids() {
            self.bind(id);
        }
        self.judges.iter_mut().for_each(Judge::all_bound);
    }

    fn bind(&mut self, id: SeriesId) {
        let Some(series) = self.table.series(id) else { return };
        let Some(readers) = self.readers.get(&*series.metric) else { return };
        for &(rule, input) in readers {
            self.judges[rule as usize].bind(rule, input, id, &mut self.table);
        }
    }

    /// Puts other routes in place. What receivers were told is kept.
    pub fn set_routes(&mut self, now: Time, routes: RouteTree) {
        self.groups.set_routes(now, routes);
        self.schedule.set(Due::Groups, self.groups.due());
    }

    /// The id of a series, which is made known where it is new. `None` where the engine is full of series.
    pub fn series(&mut self, series: &Arc<Series>) -> Option<SeriesId> {
        let Some((id, is_new)) = self.table.intern(series) else {
            self.counts.series_refused_total += 1;
            return None;
        };
        if is_new {
            self.bind(id);
        }
        Some(id)
    }

    /// When time must be told next at the latest: the first deadline.
    pub fn next_deadline(&self) -> Option<Time> {
        self.schedule.next()
    }

    /// Takes in what happened at `now` and appends what is to be done. Times never run backwards: an earlier
    /// `now` than at the last call only makes deadlines late.
    pub fn step(&mut self, now: Time, event: Event<'_>, effects: &mut Vec<Effect>) {
        match event {
            Event::Samples(samples) => self.take(samples),
            Event::Occurred(event) => self.happened(&event),
            Event::Condition(condition) => self.set_condition(now, condition, effects),
            Event::Tick => self.run_due(now, effects),
        }
        if self.groups.due().is_some_and(|due| due <= now) {
            self.run_groups(now, effects);
        }
        self.schedule.set(Due::Groups, self.groups.due());
    }

    fn take(&mut self, samples: &[Sample]) {
        self.counts.samples_total += samples.len() as u64;
        for sample in samples {
            for sink in self.table.take(sample) {
                let judge = &mut self.judges[sink.rule as usize];
                judge.push(sink.input, sink.row, sample.series, sample.time, sample.value);
            }
        }
    }

    fn happened(&mut self, event: &Occurrence) {
        for (rule, judge) in (0u32..).zip(&mut self.judges) {
            judge.happened(rule, event, &mut self.table);
        }
    }

    fn run_due(&mut self, now: Time, effects: &mut Vec<Effect>) {
        while let Some((at, due)) = self.schedule.take_due(now) {
            match due {
                Due::Rule(rule) => self.run_rule(rule, at, now, effects),
                Due::Conditions => self.sweep_conditions(now, effects),
                Due::Groups => self.run_groups(now, effects),
            }
            self.schedule.set(Due::Groups, self.groups.due());
        }
        self.tell_limits(now, effects);
    }

    /// An engine that leaves something out says so for as long as it does.
    fn tell_limits(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let is_full = self.table.len() >= SERIES_MAX && self.counts.series_refused_total > 0;
        let rows = self.judges.iter().find(|judge| judge.is_full()).map(|judge| judge.spec().id.clone());
        if std::mem::replace(&mut self.is_limited, is_full || rows.is_some()) || self.is_limited {
            self.set_condition(now, limit_reached("series", is_full.then(|| "the engine".into())), effects);
            self.set_condition(now, limit_reached("rows", rows), effects);
        }
    }

    fn run_rule(&mut self, rule: usize, at: Time, now: Time, effects: &mut Vec<Effect>) {
        let interval = self.judges[rule].spec().interval;
        let missed = now.since(at).as_millis() / interval.as_millis().max(1);
        self.judges[rule].missed(u64::try_from(missed).unwrap_or(u64::MAX));
        let wait = match self.judges[rule].tick(now, &self.table) {
            Ok(tick) => {
                self.derive(rule, now, &tick.derived);
                for transition in tick.transitions {
                    self.changed(now, transition, effects);
                }
                self.recovered(rule, now, effects);
                interval
            }
            Err(failure) => self.failed(rule, now, failure, effects),
        };
        let next = (now + std::time::Duration::from_millis(1)).align_up(interval);
        let next = if wait > interval { next.max((now + wait).align_up(interval)) } else { next };
        self.judges[rule].set_next(next);
        self.schedule.add(Due::Rule(rule), next);
    }

    /// Feeds derived values back as samples of this moment.
    fn derive(&mut self, rule: usize, now: Time, values: &[(usize, u32, f64)]) {
        for &(output, row, value) in values {
            let Some(series) = self.derived_series(rule, output, row) else { continue };
            self.take(&[Sample { series, time: now, value }]);
            self.keep_value(series, now, value);
        }
    }

    fn derived_series(&mut self, rule: usize, output: usize, row: u32) -> Option<SeriesId> {
        let judge = &mut self.judges[rule];
        if let Some(id) = *judge.derived_series(output, row) {
            return Some(id);
        }
        let (metric, labels) = (judge.outputs()[output].clone(), judge.row_labels(row).clone());
        let series = Arc::new(Series::every(metric, labels, judge.spec().interval));
        let id = self.series(&series)?;
        *self.judges[rule].derived_series(output, row) = Some(id);
        Some(id)
    }

    fn recovered(&mut self, rule: usize, now: Time, effects: &mut Vec<Effect>) {
        let judge = &mut self.judges[rule];
        if judge.succeeded() {
            effects.push(Effect::RuleRecovered { rule: judge.spec().id.clone() });
            let condition = quarantine_of(judge.spec(), None);
            self.set_condition(now, condition, effects);
        }
    }

    fn failed(
        &mut self,
        rule: usize,
        now: Time,
        failure: RuleFailure,
        effects: &mut Vec<Effect>,
    ) -> std::time::Duration {
        let judge = &mut self.judges[rule];
        let spec = judge.spec().clone();
        let wait = judge.failed(now, failure.clone());
        let quarantined = judge.health().is_quarantined();
        let retry_at = now + wait;
        effects.push(Effect::RuleFailed { rule: spec.id.clone(), failure: failure.clone(), retry_at, quarantined });
        if quarantined {
            self.set_condition(now, quarantine_of(&spec, Some(&failure)), effects);
        }
        wait
    }

    fn set_condition(&mut self, now: Time, condition: Condition, effects: &mut Vec<Effect>) {
        if let Some(transition) = self.conditions.set(now, condition) {
            self.changed(now, transition, effects);
        }
    }

    fn changed(&mut self, now: Time, transition: Transition, effects: &mut Vec<Effect>) {
        if matches!(transition.alert.state, State::Firing | State::Resolved) {
            self.groups.on_change(now, &transition.alert);
        }
        effects.push(Effect::Transition(transition));
    }

    fn run_groups(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let views: HashMap<u64, AlertView> =
            self.alerts().filter(|view| view.state != State::Pending).map(|view| (view.fingerprint, view)).collect();
        let mut notifications: Vec<Notification> = Vec::new();
        self.groups.run(now, &|fingerprint| views.get(&fingerprint).cloned(), &mut notifications);
        effects.extend(notifications.into_iter().map(Effect::Notify));
    }

    /// All alerts that are pending or firing.
    pub fn alerts(&self) -> impl Iterator<Item = AlertView> + '_ {
        self.judges.iter().flat_map(Judge::views).chain(self.conditions.views().cloned())
    }

    /// How each rule does, in order of evaluation.
    pub fn rules(&self) -> impl Iterator<Item = RuleStatus> + '_ {
        self.judges.iter().map(|judge| RuleStatus {
            id: judge.spec().id.clone(),
            rows: judge.rows(),
            bytes: judge.bytes(),
            last_failure: judge.health().last_failure().cloned(),
            failures_total: judge.health().failures_total(),
            quarantined: judge.health().is_quarantined(),
            counts: judge.counts(),
            migration: judge.migration().cloned(),
            limit_hits: judge.limit_hits(),
            quarantined_for: judge.health().quarantined_for(),
        })
    }

    /// What the engine has taken and left out.
    pub fn counts(&self) -> EngineCounts {
        self.counts
    }

    /// How many series are known.
    pub fn n_series(&self) -> usize {
        self.table.len()
    }

    /// Bytes kept for series and rules, texts left out.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.judges.iter().map(Judge::bytes).sum::<usize>()
    }

    /// The metrics that a rule reads, by its id.
    pub fn metrics_of(&self, rule: &str) -> Vec<String> {
        let judges = self.judges.iter().filter(|judge| *judge.spec().id == *rule);
        judges.flat_map(|judge| judge.columns().iter().filter_map(|column| column.metric())).collect()
    }

    /// The labels and names of a series.
    pub fn series_of(&self, id: SeriesId) -> Option<&Arc<Series>> {
        self.table.series(id)
    }
}

fn quarantine_of(spec: &RuleSpec, failure: Option<&RuleFailure>) -> Condition {
    Condition {
        alert: RULE_QUARANTINED.into(),
        labels: Labels::new([("rule", spec.id.clone()), ("template", spec.template.clone())]),
        raise: failure.map(|_| Severity::Warning),
        cause: Cause::Software,
        note: failure.map(|failure| format!("rule {} {failure}", spec.id)).unwrap_or_default(),
    }
}

/// `whose`: the rule, or the engine itself, that is full; none where there is room.
fn limit_reached(what: &'static str, whose: Option<Arc<str>>) -> Condition {
    let limit = if what == "rows" { ROWS_MAX } else { SERIES_MAX };
    let note = |whose: Arc<str>| format!("{whose} has {limit} {what}, the most it can have; what is new is left out");
    Condition {
        alert: LIMIT_REACHED.into(),
        labels: Labels::new([("limit", what)]),
        raise: whose.as_ref().map(|_| Severity::Warning),
        cause: Cause::Telemetry,
        note: whose.map(note).unwrap_or_default(),
    }
}
