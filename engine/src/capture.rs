//! What a rule was asked and what it answered, exactly: kept while it runs, and asked again of any version of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use watchfire_core::{Batch, Hit, Judged, Labels, Outcome, Program, RuleFailure, Tap, Target, Time};
use watchfire_sandbox::{Sandbox, SandboxConfig};

use crate::catalog::{Catalog, Given, TemplateSource};

/// The version of the form that a capture is written in.
pub const CAPTURE_FORMAT: u32 = 1;
/// The most calls that a capture keeps; of more, the last.
pub const CAPTURE_CALLS_MAX: usize = 1024;
/// The most bytes of numbers and labels that a capture keeps; of more, the last calls.
pub const CAPTURE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The calls of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// [`CAPTURE_FORMAT`].
    pub watchfire_capture: u32,
    /// `template/alert`.
    pub rule: String,
    /// The module's kind and SHA-256, or the expression.
    pub module: String,
    /// Its settings.
    pub settings: serde_json::Value,
    /// Its inputs, in words, in the order of the columns.
    pub inputs: Vec<String>,
    /// Calls that were seen and not kept.
    pub calls_dropped: u64,
    /// Whether a reload changed the rule before the end.
    pub cut_short: bool,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// One call: what was asked and what was answered. Numbers are kept by their bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// [`Batch::tick`].
    pub tick: u64,
    /// The moment, milliseconds since 1970.
    pub now_ms: i64,
    /// Time between ticks, milliseconds.
    pub interval_ms: u64,
    /// What the rows stand for; none where it is as in the call before.
    pub targets: Option<Vec<Row>>,
    /// Number of rows.
    pub rows: usize,
    /// inputs × rows.
    pub columns: Bits,
    /// inputs × rows.
    pub quality: Vec<u8>,
    /// rows, or none.
    pub groups: Vec<u32>,
    /// state slots × rows.
    pub state: Bits,
    /// What it answered.
    pub answer: Answer,
    /// The steps that it took.
    pub steps: Option<u64>,
}

/// What one row stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The number of its group.
    pub group: u32,
}

/// What a rule answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Nothing: why it failed.
    Failed(String),
    /// An outcome.
    Outcome {
        /// Its hits, in order.
        hits: Vec<CapturedHit>,
        /// The state that it left; empty = as it was.
        state: Bits,
        /// Its derived values.
        derived: Bits,
    },
}

/// What it said of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapturedHit {
    /// Which row.
    pub row: u32,
    /// The severity whose condition is met.
    pub raise: Option<String>,
    /// The severity that keeps an alert alive.
    pub hold: Option<String>,
    /// The number to show: one.
    pub value: Bits,
    /// The likely cause.
    pub cause: Option<String>,
    /// Its text.
    pub note: Option<String>,
}

/// Numbers, written as the 16 hexadecimal digits of each one's bits: nothing is lost, whatever they are.
#[derive(Clone, Debug, Default)]
pub struct Bits(pub Vec<f64>);

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| a.to_bits() == b.to_bits())
    }
}

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0.iter().map(|value| format!("{:016x}", value.to_bits())).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || serde::de::Error::custom("expected 16 hexadecimal digits for each number");
        let one = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 16)?;
            u64::from_str_radix(digits, 16).ok().map(f64::from_bits)
        };
        text.as_bytes().chunks(16).map(one).collect::<Option<_>>().map(Bits).ok_or_else(wrong)
    }
}

impl Answer {
    fn of(answer: Result<&Outcome, &RuleFailure>) -> Self {
        let outcome = match answer {
            Ok(outcome) => outcome,
            Err(failure) => return Answer::Failed(failure.to_string()),
        };
        let hit = |hit: &Hit| CapturedHit {
            row: hit.row,
            raise: hit.raise.map(|severity| severity.to_string()),
            hold: hit.hold.map(|severity| severity.to_string()),
            value: Bits(vec![hit.value]),
            cause: hit.cause.map(|cause| cause.as_str().to_owned()),
            note: hit.note.and_then(|note| outcome.notes.get(note as usize).cloned()),
        };
        Answer::Outcome {
            hits: outcome.hits.iter().map(hit).collect(),
            state: Bits(outcome.state.clone()),
            derived: Bits(outcome.derived.clone()),
        }
    }

    /// Its hits; none where it failed.
    pub fn hits(&self) -> &[CapturedHit] {
        match self {
            Answer::Failed(_) => &[],
            Answer::Outcome { hits, .. } => hits,
        }
    }
}

impl Capture {
    /// Reads a capture.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let capture: Capture = serde_json::from_str(text).map_err(|error| format!("it is no capture: {error}"))?;
        match capture.watchfire_capture {
            CAPTURE_FORMAT => Ok(capture),
            other => Err(format!("it is of form {other}, expected {CAPTURE_FORMAT}; use the Watchfire that wrote it")),
        }
    }

    /// Asks a program what this rule was asked: what it answers and the steps that it takes, for each call. Each
    /// call has the state that was captured, so that one that differs does not change those after it.
    ///
    /// # Errors
    /// Where the program reads or keeps another number of values than the captured rule.
    pub fn ask(&self, program: &mut dyn Program) -> Result<Vec<(Answer, Option<u64>)>, String> {
        self.calls.iter().map(|call| call.ask(program)).collect()
    }
}

impl Call {
    fn ask(&self, program: &mut dyn Program) -> Result<(Answer, Option<u64>), String> {
        let said = program.descriptor();
        let wants = said.needs_labels || said.group_by.is_some();
        fits("input", self.columns.0.len(), said.inputs.len(), self.rows)?;
        fits("input", self.quality.len(), said.inputs.len(), self.rows)?;
        fits("state slot", self.state.0.len(), said.state_slots as usize, self.rows)?;
        fits("group", self.groups.len(), usize::from(said.group_by.is_some()), self.rows)?;
        let targets: Option<Vec<Target>> = self.targets.as_ref().map(|rows| rows.iter().map(Row::target).collect());
        let mut out = Outcome::default();
        let told = targets.filter(|_| wants).map_or(Ok(()), |targets| program.on_targets(&targets));
        let answer = told.and_then(|()| program.evaluate(&self.batch(), &mut out));
        let answer = answer.and_then(|()| out.check(self.rows, program.descriptor()));
        Ok((Answer::of(answer.as_ref().map(|()| &out)), program.usage().map(|usage| usage.steps)))
    }

    fn batch(&self) -> Batch<'_> {
        Batch {
            tick: self.tick,
            now: Time::from_millis(self.now_ms),
            interval: Duration::from_millis(self.interval_ms),
            rows: self.rows,
            columns: &self.columns.0,
            quality: &self.quality,
            groups: &self.groups,
            state: &self.state.0,
        }
    }

    fn bytes(&self) -> usize {
        let labels = |row: &Row| row.labels.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
        let targets: usize = self.targets.iter().flatten().map(labels).sum();
        let numbers = (self.columns.0.len() + self.state.0.len()) * 8 + self.quality.len() + self.groups.len() * 4;
        let answered = match &self.answer {
            Answer::Failed(why) => why.len(),
            Answer::Outcome { hits, state, derived } => hits.len() * 96 + (state.0.len() + derived.0.len()) * 8,
        };
        targets + numbers + answered
    }
}

fn fits(what: &str, found: usize, each: usize, rows: usize) -> Result<(), String> {
    if found == each.saturating_mul(rows) {
        return Ok(());
    }
    Err(format!("the rule has {each} {what}(s) for each of {rows} rows, the capture holds {found} numbers for them"))
}

impl Row {
    fn of(target: &Target) -> Self {
        let labels = target.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Row { labels: labels.collect(), group: target.group }
    }

    fn target(&self) -> Target {
        let labels = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Target { labels: Labels::new(labels), group: self.group }
    }
}

/// The calls that were seen, and the newest targets.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    calls: VecDeque<Call>,
    bytes: usize,
    dropped: u64,
    targets: Vec<Row>,
}

impl Ring {
    fn take(&mut self, judged: Judged<'_>) {
        let targets: Vec<Row> = judged.targets.iter().map(Row::of).collect();
        let changed = self.calls.is_empty() || targets != self.targets;
        let batch = judged.batch;
        let call = Call {
            tick: batch.tick,
            now_ms: batch.now.as_millis(),
            interval_ms: u64::try_from(batch.interval.as_millis()).unwrap_or(u64::MAX),
            targets: changed.then(|| targets.clone()),
            rows: batch.rows,
            columns: Bits(batch.columns.to_vec()),
            quality: batch.quality.to_vec(),
            groups: batch.groups.to_vec(),
            state: Bits(batch.state.to_vec()),
            answer: Answer::of(judged.answer),
            steps: judged.usage.map(|usage| usage.steps),
        };
        self.targets = targets;
        self.bytes += call.bytes();
        self.calls.push_back(call);
        while self.calls.len() > CAPTURE_CALLS_MAX || (self.bytes > CAPTURE_BYTES_MAX && self.calls.len() > 1) {
            self.drop_oldest();
        }
    }

    /// The targets of a call that goes are those of the next one, where it says nothing of its own.
    fn drop_oldest(&mut self) {
        let Some(gone) = self.calls.pop_front() else { return };
        self.bytes -= gone.bytes();
        self.dropped += 1;
        if let Some(next) = self.calls.front_mut().filter(|next| next.targets.is_none()) {
            let was = next.bytes();
            next.targets = gone.targets;
            self.bytes += next.bytes() - was;
        }
    }
}

/// What the engine and the tap share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Ring>>);

impl Shared {
    /// How many calls were seen.
    pub fn seen(&self) -> u64 {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.dropped + ring.calls.len() as u64
    }

    /// Whether nobody else holds it: the rule's own half is gone.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Takes the calls out: those that were not kept, and those that were.
    pub fn take(&self) -> (u64, Vec<Call>) {
        let ring = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (ring.dropped, ring.calls.into())
    }
}

impl Tap for Shared {
    fn saw(&mut self, judged: Judged<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(judged);
    }
}

/// The program of one rule of templates.
///
/// # Errors
/// What is wrong with the templates, or that none has the rule.
pub fn program_of(sources: &[TemplateSource], given: &Given, rule: &str) -> Result<Box<dyn Program>, String> {
    let sandbox = Sandbox::new(SandboxConfig::default()).map_err(|error| error.to_string())?;
    let catalog = Catalog::read(sources, given, &sandbox, None);
    if !catalog.broken.is_empty() {
        return Err(catalog.errors().to_string());
    }
    catalog.into_program(rule).ok_or_else(|| format!("the templates have no rule {rule}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ring: &mut Ring, tick: u64, values: &[f64], host: &str) {
        let targets = [Target { labels: Labels::new([("host", host)]), group: 0 }];
        let batch = Batch {
            tick,
            now: Time::from_millis(1),
            interval: Duration::from_secs(1),
            rows: 1,
            columns: values,
            quality: &[0],
            groups: &[],
            state: &[],
        };
        let outcome = Outcome::default();
        ring.take(Judged { batch: &batch, targets: &targets, answer: Ok(&outcome), usage: None });
    }

    #[test]
    fn every_bit_of_a_number_is_kept() {
        let all = Bits(vec![0.1, -0.0, f64::NAN, f64::from_bits(0x7ff0_0000_0000_0002), f64::INFINITY, 5e-324]);
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Bits>(&text).unwrap(), all);
        assert!(serde_json::from_str::<Bits>("\"3ff\"").is_err());
        assert!(serde_json::from_str::<Bits>("\"é000000000000000\"").is_err());
    }

    #[test]
    fn a_capture_keeps_the_last_calls_and_what_their_rows_stand_for() {
        let mut ring = Ring::default();
        (0..CAPTURE_CALLS_MAX as u64 + 3).for_each(|tick| seen(&mut ring, tick, &[1.0], "h1"));
        assert_eq!((ring.calls.len(), ring.dropped), (CAPTURE_CALLS_MAX, 3));
        assert_eq!(ring.calls[0].tick, 3);
        assert_eq!(ring.calls[0].targets.as_ref().unwrap()[0].labels["host"], "h1");
        assert_eq!(ring.bytes, ring.calls.iter().map(Call::bytes).sum::<usize>());
        seen(&mut ring, 9999, &[1.0], "h2");
        assert_eq!(ring.calls.back().unwrap().targets.as_ref().unwrap()[0].labels["host"], "h2");
    }

    #[test]
    fn a_capture_is_bounded_in_bytes() {
        let (mut ring, many) = (Ring::default(), vec![1.0; CAPTURE_BYTES_MAX / 8 / 3]);
        (0..6).for_each(|tick| seen(&mut ring, tick, &many, "h1"));
        assert!(ring.bytes <= CAPTURE_BYTES_MAX && ring.dropped >= 3, "{} {}", ring.bytes, ring.dropped);
    }
}
