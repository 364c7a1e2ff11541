//! One loaded rule: gathers its columns, asks its program, and turns the answer into the lives of its alerts.

mod bind;
mod bounds;
mod keep;
mod migrate;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::alert::Verdict;
use crate::column::Column;
use crate::effect::{AlertView, Transition};
use crate::health::Health;
use crate::labels::Labels;
use crate::record::{Migration, StateRecord};
use crate::row_alert::{self, RowAlert};
use crate::rule::{Batch, Descriptor, Hit, Input, MissingData, Outcome, Program, Reads, RuleFailure, RuleSpec};
use crate::sample::{Quality, SeriesId};
use crate::series::SeriesTable;
use crate::tap::{Judged, Tap};
use crate::targets::{self, Rows};
use crate::time::Time;

/// Why an alert ends whose target has told nothing for [`RuleSpec::MISSING_END`].
pub const MISSING_TOO_LONG: &str = "no data for 24 hours";
/// No hit for this row.
const NO_HIT: u32 = u32::MAX;

/// One loaded rule.
pub struct Judge {
    spec: RuleSpec,
    program: Box<dyn Program>,
    /// Who watches its calls; none but while they are captured.
    tap: Option<Box<dyn Tap>>,
    rows: Rows,
    columns: Vec<Column>,
    alerts: Vec<Option<Box<RowAlert>>>,
    /// Rows whose alert is pending or firing.
    active: Vec<u32>,
    /// state slots × rows, column-major, for as many rows as at the last good tick.
    state: Vec<f64>,
    state_rows: usize,
    targets_told: bool,
    health: Health,
    tick: u64,
    scratch: Scratch,
    outcome: Outcome,
    /// outputs × rows: the series of each derived value.
    derived: Vec<Vec<Option<SeriesId>>>,
    /// The input whose series name the rows: the first metric of the rule's own scope.
    naming: Option<u32>,
    /// Rows whose alert record changed since it was last asked for.
    changed: Vec<u32>,
    /// Rows whose alert shows something else since it was last asked for.
    drifted: BTreeSet<u32>,
    /// Whether the numbers kept for rows, or the count of ticks, moved since they were last asked for.
    ticked: bool,
    /// Whether its health changed since it was last asked for.
    health_changed: bool,
    /// When it is due next.
    next: Option<Time>,
    /// What became of the state that another version of the rule kept.
    migration: Option<Migration>,
    migration_told: bool,
    /// Hits on rows whose data is missing, and rows refused at [`targets::ROWS_MAX`].
    counts: Counts,
    /// How often calls failed at each limit.
    limit_hits: BTreeMap<&'static str, u64>,
    /// How many more alerts may be explained at this tick.
    explains_left: usize,
}

/// What one rule has left out, since its load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Hits on rows whose required data is missing.
    pub hits_ignored_total: u64,
    /// Targets refused because the rule has [`targets::ROWS_MAX`] rows.
    pub rows_refused_total: u64,
    /// Events that name none of its rows' targets.
    pub events_unplaced_total: u64,
    /// Ticks that came too late to be run.
    pub ticks_missed_total: u64,
    /// Ticks that were run.
    pub ticks_total: u64,
    /// Calls of `explain` that failed: the alert went out without its evidence.
    pub explain_failures_total: u64,
}

#[derive(Default)]
struct Scratch {
    columns: Vec<f64>,
    quality: Vec<u8>,
    groups: Vec<u32>,
    unknown: Vec<bool>,
    hit_of: Vec<u32>,
}

/// What one tick of a rule gave.
pub struct Tick {
    /// Changes of its alerts, in order of rows.
    pub transitions: Vec<Transition>,
    /// Derived values: output, row, value.
    pub derived: Vec<(usize, u32, f64)>,
}

impl Judge {
    /// A rule without rows.
    pub fn new(spec: RuleSpec, program: Box<dyn Program>) -> Self {
        let descriptor = program.descriptor();
        let columns = descriptor.inputs.iter().cloned().map(Column::new).collect();
        let derived = vec![Vec::new(); descriptor.outputs.len()];
        let wide = descriptor.inputs.iter().map(|input| input.scope).filter(|scope| *scope != descriptor.scope);
        let names = |input: &Input| input.scope == descriptor.scope && matches!(input.reads, Reads::Metric { .. });
        let naming = descriptor.inputs.iter().position(names).and_then(|at| u32::try_from(at).ok());
        let rows = Rows::over(wide);
        Judge {
            spec,
            program,
            tap: None,
            rows,
            columns,
            alerts: Vec::new(),
            active: Vec::new(),
            state: Vec::new(),
            state_rows: 0,
            targets_told: false,
            health: Health::default(),
            tick: 0,
            scratch: Scratch::default(),
            outcome: Outcome::default(),
            derived,
            naming,
            changed: Vec::new(),
            drifted: BTreeSet::new(),
            ticked: false,
            health_changed: false,
            next: None,
            migration: None,
            migration_told: true,
            counts: Counts::default(),
            limit_hits: BTreeMap::new(),
            explains_left: 0,
        }
    }

    /// How it is judged.
    pub fn spec(&self) -> &RuleSpec {
        &self.spec
    }

    /// What it reads, in words.
    pub fn inputs_in_words(&self) -> Vec<String> {
        self.program.descriptor().inputs.iter().map(|input| format!("{:?} by {:?}", input.reads, input.scope)).collect()
    }

    /// Sets who watches its calls, or nobody.
    pub fn tap(&mut self, tap: Option<Box<dyn Tap>>) {
        self.tap = tap;
    }

    /// How well its program does.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Notes a good answer. True where the rule had been failing.
    pub fn succeeded(&mut self) -> bool {
        let recovered = self.health.succeeded();
        self.health_changed |= recovered;
        recovered
    }

    /// Notes a failed call; answers how long to wait before the next.
    pub fn failed(&mut self, now: Time, failure: RuleFailure) -> Duration {
        self.health_changed = true;
        self.health.failed(now, failure, self.spec.interval)
    }

    /// Notes when it is due next.
    pub fn set_next(&mut self, next: Time) {
        self.next = Some(next);
    }

    /// Whether it has as many rows as it can have, and had to leave targets out.
    pub fn is_full(&self) -> bool {
        self.counts.rows_refused_total > 0 && self.rows.len() >= targets::ROWS_MAX
    }

    /// What it has left out.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Bytes kept for all its rows.
    pub fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let scratch = (self.scratch.columns.capacity() + self.state.capacity()) * size_of::<f64>()
            + self.scratch.hit_of.capacity() * size_of::<u32>()
            + self.scratch.quality.capacity()
            + self.scratch.unknown.capacity();
        columns + scratch + self.alerts.capacity() * size_of::<Option<Box<RowAlert>>>()
    }

    /// Takes over what an older version of the rule had, where the inputs are the same: rows and windows with
    /// it, else only alerts; and state, where its meaning is the same or the rule can carry it over.
    pub fn inherit(&mut self, mut old: Judge, now: Time) {
        let (new, was) = (self.program.descriptor(), old.program.descriptor());
        let same_state = new.state_slots == was.state_slots && new.state_version == was.state_version;
        if old.spec.interval == self.spec.interval {
            self.next = old.next;
        }
        let other_state: Vec<StateRecord> = if same_state { Vec::new() } else { old.state_records().collect() };
        if new.inputs == was.inputs && new.scope == was.scope && new.group_by == was.group_by {
            self.rows = std::mem::take(&mut old.rows);
            self.columns = std::mem::take(&mut old.columns);
            self.columns.iter_mut().for_each(Column::unbind);
            self.alerts = std::mem::take(&mut old.alerts);
            self.active = std::mem::take(&mut old.active);
            self.changed = std::mem::take(&mut old.changed);
            self.derived.iter_mut().for_each(|rows| rows.resize(self.rows.len(), None));
            if same_state {
                (self.state, self.state_rows) = (std::mem::take(&mut old.state), old.state_rows);
            }
        } else {
            let kept = old.active.iter().filter_map(|row| Some((old.rows.key(*row).clone(), old.record_of(*row)?)));
            for (key, record) in kept.collect::<Vec<_>>() {
                self.restore(&key, &record, None, now);
            }
            if same_state {
                let records: Vec<_> = old.state_records().collect();
                self.restore_states(&records.iter().collect::<Vec<_>>());
            }
        }
        self.restore_states(&other_state.iter().collect::<Vec<_>>());
        // An alert's record holds more than its life: how the rule now words and grades it.
        self.changed.extend(&self.active);
    }

    /// What its program reads and writes.
    pub fn descriptor(&self) -> &Descriptor {
        self.program.descriptor()
    }

    /// Takes a sample into one of its windows.
    pub fn push(&mut self, input: u32, row: u32, id: SeriesId, time: Time, value: f64) {
        self.columns[input as usize].push(row, id, time, value);
    }

    /// Judges all rows at `now`. A quarantined rule is judged in the shadow: whether it answers is all that counts of
    /// it, and a good answer is not applied; its alerts and state move again from the next tick.
    ///
    /// # Errors
    /// The program's failure; alerts and state are as they were.
    pub fn tick(&mut self, now: Time, table: &SeriesTable) -> Result<Tick, RuleFailure> {
        let judged = self.judged(now, table);
        if let Err(failure) = &judged {
            self.note_limit(failure);
        }
        judged?;
        if self.health.is_quarantined() {
            return Ok(Tick { transitions: Vec::new(), derived: Vec::new() });
        }
        let mut tick = Tick { transitions: Vec::new(), derived: self.derived_values() };
        self.keep_state();
        self.apply(now, &mut tick.transitions);
        self.tick += 1;
        self.ticked = true;
        self.counts.ticks_total += 1;
        Ok(tick)
    }

    fn judged(&mut self, now: Time, table: &SeriesTable) -> Result<(), RuleFailure> {
        self.tell_targets()?;
        self.gather(now, table);
        self.evaluate(now)
    }

    fn tell_targets(&mut self) -> Result<(), RuleFailure> {
        let descriptor = self.program.descriptor();
        let wants = descriptor.needs_labels || descriptor.group_by.is_some();
        if wants && !self.targets_told {
            self.program.on_targets(self.rows.targets())?;
            self.targets_told = true;
        }
        Ok(())
    }

    fn gather(&mut self, now: Time, table: &SeriesTable) {
        let (rows, scratch) = (self.rows.len(), &mut self.scratch);
        scratch.columns.resize(rows * self.columns.len(), 0.0);
        scratch.quality.resize(rows * self.columns.len(), 0);
        scratch.unknown.clear();
        scratch.unknown.resize(rows, false);
        scratch.groups.clear();
        if self.program.descriptor().group_by.is_some() {
            scratch.groups.extend(self.rows.targets().iter().map(|target| target.group));
        }
        if rows == 0 {
            return;
        }
        let cells = scratch.columns.chunks_exact_mut(rows).zip(scratch.quality.chunks_exact_mut(rows));
        for (column, (values, quality)) in self.columns.iter_mut().zip(cells) {
            column.gather(now, table, values, quality);
            if column.input().required {
                for (unknown, quality) in scratch.unknown.iter_mut().zip(quality.iter()) {
                    *unknown |= *quality != Quality::Ok as u8;
                }
            }
        }
        self.lay_out_state();
    }

    /// Makes room in the state for rows that came since the last tick.
    fn lay_out_state(&mut self) {
        let (rows, was) = (self.rows.len(), self.state_rows);
        let slots = self.program.descriptor().state_slots as usize;
        if rows == was {
            return;
        }
        let mut state = vec![0.0; slots * rows];
        for slot in 0..slots {
            state[slot * rows..slot * rows + was].copy_from_slice(&self.state[slot * was..(slot + 1) * was]);
        }
        (self.state, self.state_rows) = (state, rows);
    }

    fn evaluate(&mut self, now: Time) -> Result<(), RuleFailure> {
        let rows = self.rows.len();
        let batch = Batch {
            tick: self.tick,
            now,
            interval: self.spec.interval,
            rows,
            columns: &self.scratch.columns,
            quality: &self.scratch.quality,
            groups: &self.scratch.groups,
            state: &self.state,
        };
        self.outcome.clear();
        let answer = self.program.evaluate(&batch, &mut self.outcome);
        let answer = answer.and_then(|()| self.outcome.check(rows, self.program.descriptor()));
        if let Some(tap) = &mut self.tap {
            let (targets, usage) = (self.rows.targets(), self.program.usage());
            tap.saw(Judged { batch: &batch, targets, answer: answer.as_ref().map(|()| &self.outcome), usage });
        }
        answer?;
        self.scratch.hit_of.clear();
        self.scratch.hit_of.resize(rows, NO_HIT);
        for (at, hit) in self.outcome.hits.iter().enumerate() {
            let slot = &mut self.scratch.hit_of[hit.row as usize];
            if *slot != NO_HIT {
                return Err(RuleFailure::InvalidOutput(format!("two hits for row {}", hit.row)));
            }
            *slot = u32::try_from(at).unwrap_or(NO_HIT);
        }
        Ok(())
    }

    fn keep_state(&mut self) {
        if !self.outcome.state.is_empty() {
            std::mem::swap(&mut self.state, &mut self.outcome.state);
        }
    }

    fn derived_values(&self) -> Vec<(usize, u32, f64)> {
        let rows = self.rows.len();
        let values = self.outcome.derived.iter().enumerate().filter(|(_, value)| value.is_finite());
        values.map(|(at, value)| (at / rows, u32::try_from(at % rows).unwrap_or(0), *value)).collect()
    }

    fn apply(&mut self, now: Time, transitions: &mut Vec<Transition>) {
        let mut rows: Vec<u32> = self.outcome.hits.iter().map(|hit| hit.row).chain(self.active.drain(..)).collect();
        if self.spec.missing_data == MissingData::Alert {
            let unknown = self.scratch.unknown.iter().enumerate().filter(|(_, unknown)| **unknown);
            rows.extend(unknown.filter_map(|(row, _)| u32::try_from(row).ok()));
        }
        rows.sort_unstable();
        rows.dedup();
        self.explains_left = Outcome::NOTES_MAX;
        for row in rows {
            transitions.extend(self.apply_row(row, now));
            if self.alerts[row as usize].is_some() {
                self.active.push(row);
            }
        }
    }

    fn apply_row(&mut self, row: u32, now: Time) -> Option<Transition> {
        let at = row as usize;
        let hit = self.outcome.hits.get(self.scratch.hit_of[at] as usize).copied();
        let unknown = self.scratch.unknown[at];
        if unknown && hit.is_some() {
            self.counts.hits_ignored_total += 1;
        }
        let hit = hit.filter(|_| !unknown);
        let verdict = verdict(unknown, hit.as_ref(), &self.spec);
        let shown = hit.as_ref().map(|hit| (hit, self.outcome.notes.as_slice()));
        if verdict.is_none() && self.alerts[at].as_ref().is_some_and(|alert| is_given_up(alert, now, &self.spec)) {
            self.changed.push(row);
            return self.end_row(row, now, MISSING_TOO_LONG);
        }
        let before = self.alerts[at].as_ref().map(|alert| (*alert.life(), alert.shown()));
        let step = row_alert::step(self.alerts[at].take(), now, verdict, shown, &self.spec)?;
        if before.as_ref().map(|(life, _)| life) != Some(step.alert.life()) {
            self.changed.push(row);
        }
        if step.changed_from.is_some() || before.is_some_and(|(_, shown)| step.alert.shown() != shown) {
            self.drifted.insert(row);
        }
        self.settle(row, step, now, hit.is_some_and(|hit| hit.note.is_some()))
    }

    fn settle(&mut self, row: u32, mut step: row_alert::Step, now: Time, has_note: bool) -> Option<Transition> {
        if step.changed_from.is_some() && step.alert.is_firing() && !has_note {
            self.explain(row, &mut step.alert);
        }
        let (key, labels) = (self.rows.key(row), self.rows.labels(row));
        let transition = step.changed_from.map(|from| step.alert.transition(from, now, &self.spec, key, labels));
        if step.alert.is_active() {
            self.alerts[row as usize] = Some(step.alert);
        }
        transition
    }

    /// Notes ticks that came too late to be run.
    pub fn missed(&mut self, ticks: u64) {
        self.counts.ticks_missed_total += ticks;
    }

    /// The series of a derived value, where it is known already.
    pub fn derived_series(&mut self, output: usize, row: u32) -> &mut Option<SeriesId> {
        &mut self.derived[output][row as usize]
    }

    /// The labels of a row.
    pub fn row_labels(&self, row: u32) -> &Labels {
        self.rows.labels(row)
    }

    /// Its pending and firing alerts.
    pub fn views(&self) -> impl Iterator<Item = AlertView> + '_ {
        self.active.iter().filter_map(|row| {
            let alert = self.alerts[*row as usize].as_ref()?;
            let view = alert.view(&self.spec, self.rows.key(*row), self.rows.labels(*row));
            Some(AlertView { stale: self.health.is_quarantined(), ..view })
        })
    }

    /// The names of the metrics that it writes.
    pub fn outputs(&self) -> &[Arc<str>] {
        &self.program.descriptor().outputs
    }

    /// What feeds its inputs.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

fn verdict(unknown: bool, hit: Option<&Hit>, spec: &RuleSpec) -> Option<Verdict> {
    let said = || hit.map_or(Verdict::default(), |hit| Verdict { raise: hit.raise, hold: hit.hold });
    match (unknown, spec.missing_data) {
        (false, _) => Some(said()),
        (true, MissingData::Hold) => None,
        (true, MissingData::Resolve) => Some(Verdict::default()),
        (true, MissingData::Alert) => Some(Verdict { raise: Some(spec.mildest()), hold: Some(spec.mildest()) }),
    }
}

/// Whether an alert has been held without data for so long that its target counts as gone for good.
fn is_given_up(alert: &RowAlert, now: Time, spec: &RuleSpec) -> bool {
    let held = RuleSpec::MISSING_END.max(spec.missing_after);
    alert.life().missing_since.is_some_and(|since| now.since(since) >= held)
}

/// A histogram's row is the same for all its buckets.
fn without_bucket(labels: &Labels) -> Labels {
    if labels.get("le").is_some() { labels.filter(|name| name != "le") } else { labels.clone() }
}
