//! What a rule is to the engine: what it reads, how its hits become alerts, and the one seam through which
//! its code runs.

use std::sync::Arc;
use std::time::Duration;

use crate::labels::Labels;
use crate::limit::LimitHit;
use crate::matcher::Matcher;
use crate::severity::{Cause, PerSeverity, Severity};
use crate::time::Time;
use crate::window::PromQl;

/// What one row of a rule's batch stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// A host: label `host`.
    Host,
    /// A GPU: label `uuid`, or `host` and `gpu` where a source knows no UUID.
    Gpu,
    /// Any other device (NIC, disk, file system): all its labels.
    Device,
    /// A job over many hosts: label `job_id`.
    Job,
    /// One rank of a job: labels `job_id` and `rank`.
    Rank,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 5] = [Scope::Host, Scope::Gpu, Scope::Device, Scope::Job, Scope::Rank];

    /// The word used in templates and the contract.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Host => "host",
            Scope::Gpu => "gpu",
            Scope::Device => "device",
            Scope::Job => "job",
            Scope::Rank => "rank",
        }
    }

    /// The scope that a metric's name tells: `gpu_…`, `host_…`, `job_…`, `rank_…`, and
    /// `filesystem_…`, `disk_…`, `nic_…` for devices.
    pub fn of_metric(name: &str) -> Option<Scope> {
        let (word, _) = name.split_once('_')?;
        match word {
            "gpu" => Some(Scope::Gpu),
            "host" => Some(Scope::Host),
            "filesystem" | "disk" | "nic" => Some(Scope::Device),
            "job" => Some(Scope::Job),
            "rank" => Some(Scope::Rank),
            _ => None,
        }
    }
}

/// How the samples of a window become one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// The newest value; needs no window.
    Last,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The mean of the values.
    Mean,
    /// The sum of the values.
    Sum,
    /// How many values.
    Count,
    /// The population standard deviation.
    Stddev,
    /// The growth of a counter; a fall is a reset.
    Increase,
    /// [`Aggregate::Increase`] per second of the window's covered time.
    Rate,
    /// The least-squares slope, per second.
    Slope,
    /// A quantile (0 to 1) of the values, within 1 % of the true value.
    Quantile(f64),
    /// A quantile (0 to 1) of a classic Prometheus histogram's `_bucket` series over the window.
    HistogramQuantile(f64),
    /// What a function of Prometheus gives, exactly.
    PromQl(PromQl),
}

/// What is asked of a stream of events within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStat {
    /// How many.
    Count,
    /// Seconds since the newest.
    Age,
    /// The newest one's code.
    LastCode,
    /// From how many different jobs.
    DistinctJobs,
}

/// What an input reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Reads {
    /// A metric.
    Metric {
        /// Its name, in Watchfire's words.
        name: Arc<str>,
        /// How its samples become one number.
        aggregate: Aggregate,
    },
    /// Events, such as Xids.
    Event {
        /// The kind of event, such as `xid`.
        kind: Arc<str>,
        /// Only these codes; empty for all.
        codes: Vec<u32>,
        /// What is asked of them.
        stat: EventStat,
    },
}

/// One column of a rule's batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// What is read.
    pub reads: Reads,
    /// Whose value it is. A wider scope than the rule's is spread over its rows (a host's value over its GPUs).
    pub scope: Scope,
    /// How far back the aggregate looks; zero for [`Aggregate::Last`].
    pub window: Duration,
    /// A row whose required input is not `ok` is *unknown*: it neither fires nor resolves.
    pub required: bool,
    /// Only series whose labels meet all of these; empty for all.
    pub only: Vec<Matcher>,
}

impl Input {
    /// Whether it reads a series with `labels`.
    pub fn admits(&self, labels: &Labels) -> bool {
        self.only.iter().all(|matcher| matcher.matches(labels))
    }
}

/// What a module says of itself once it is configured.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The module's name.
    pub name: String,
    /// The module's version.
    pub version: String,
    /// What its rows stand for.
    pub scope: Scope,
    /// Its columns.
    pub inputs: Vec<Input>,
    /// Names of the derived metrics that it writes.
    pub outputs: Vec<Arc<str>>,
    /// JSON Schema of its settings; empty for none.
    pub settings_schema: String,
    /// Numbers kept for each row between ticks, at most 16.
    pub state_slots: u32,
    /// Version of the meaning of those numbers; another version starts clean.
    pub state_version: u32,
    /// Whether it wants the rows' labels when the inventory changes.
    pub needs_labels: bool,
    /// The label whose value puts rows into one group, such as `job_id`.
    pub group_by: Option<Arc<str>>,
}

impl Descriptor {
    /// The most state slots that a rule may keep per row.
    pub const STATE_SLOTS_MAX: u32 = 16;
    /// The most inputs of a rule.
    pub const INPUTS_MAX: usize = 64;
    /// The most derived metrics that a rule may write.
    pub const OUTPUTS_MAX: usize = 16;
}

/// All rows of one rule at one tick, in columns. `rows` = number of targets.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Ticks of this rule since its load.
    pub tick: u64,
    /// The moment of the tick.
    pub now: Time,
    /// Time between ticks.
    pub interval: Duration,
    /// Number of rows.
    pub rows: usize,
    /// inputs × rows, column-major. Where the quality is not ok the value is 0.
    pub columns: &'a [f64],
    /// inputs × rows, column-major: [`crate::sample::Quality`] as a number.
    pub quality: &'a [u8],
    /// rows: the number of each row's group; empty where the rule asked for none.
    pub groups: &'a [u32],
    /// state slots × rows, column-major: what the last good tick left.
    pub state: &'a [f64],
}

/// What a rule says of one row. Rows without a hit raise and hold nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Which row.
    pub row: u32,
    /// The severity whose condition is met now.
    pub raise: Option<Severity>,
    /// The severity that keeps a firing alert alive; never below `raise`.
    pub hold: Option<Severity>,
    /// The number to show.
    pub value: f64,
    /// The likely cause, where the rule knows better than its template.
    pub cause: Option<Cause>,
    /// Index into [`Outcome::notes`].
    pub note: Option<u32>,
}

/// What a rule answers. Kept between ticks, so that answering allocates nothing once warm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// At most one hit per row.
    pub hits: Vec<Hit>,
    /// Texts that hits point to.
    pub notes: Vec<String>,
    /// state slots × rows; empty = as it was.
    pub state: Vec<f64>,
    /// outputs × rows, column-major; NaN = no value for that row.
    pub derived: Vec<f64>,
}

impl Outcome {
    /// Forgets the last answer and keeps the memory.
    pub fn clear(&mut self) {
        self.hits.clear();
        self.notes.clear();
        self.state.clear();
        self.derived.clear();
    }
}

/// One row as a module may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its labels.
    pub labels: Labels,
    /// The number of its group; 0 where the rule asked for none.
    pub group: u32,
}

/// Why a call of a rule gave no answer. Always the rule's own fault, and only its own.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RuleFailure {
    /// It ran into one of its limits.
    #[error("{0}")]
    Limit(LimitHit),
    /// The wall-clock fuse blew: the machine stalled or a bulk operation was abused. Not the rule's verdict.
    #[error(
        "was still running after {limit:?}; the machine may be overloaded, or raise limits.wall, see docs/limits.md"
    )]
    Deadline {
        /// The fuse.
        limit: Duration,
    },
    /// Its answer made no sense.
    #[error("gave an answer that is not valid: {0}")]
    InvalidOutput(String),
    /// It trapped.
    #[error("trapped: {0}")]
    Trap(String),
    /// It said so itself, a panic's message included.
    #[error("reported: {0}")]
    Reported(String),
    /// A failure from before a restart, in the words that were kept.
    #[error("{0}")]
    Kept(String),
}

impl RuleFailure {
    /// Whether the failure says nothing about the rule (it is tried again and does not count at once).
    pub fn is_inconclusive(&self) -> bool {
        matches!(self, RuleFailure::Deadline { .. })
    }

    /// The name of the limit that was hit, where it was one.
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            RuleFailure::Limit(hit) => Some(hit.limit),
            RuleFailure::Deadline { .. } => Some(LimitHit::WALL),
            _ => None,
        }
    }
}

/// What the last `evaluate` of a program took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Steps used: fuel for WebAssembly, operations for a script.
    pub steps: u64,
    /// Steps that it could have used.
    pub steps_budget: u64,
    /// The most linear memory that it has had, bytes; none where the runtime does not count it.
    pub memory_bytes: Option<u64>,
    /// Bytes of its answer.
    pub output_bytes: u64,
}

/// The code of one configured rule. Implemented by the sandbox's two runtimes, by native Rust rules and by tests.
///
/// A failed call leaves the implementation ready for the next one.
pub trait Program: Send {
    /// What the rule reads and writes; fixed for the life of the program.
    fn descriptor(&self) -> &Descriptor;

    /// Called when the rows change, before the next `evaluate`, where the descriptor asks for labels or groups.
    ///
    /// # Errors
    /// The rule's own failure.
    fn on_targets(&mut self, targets: &[Target]) -> Result<(), RuleFailure>;

    /// Judges all rows at one tick. `out` was cleared.
    ///
    /// # Errors
    /// The rule's own failure; `out` is then meaningless.
    fn evaluate(&mut self, batch: &Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure>;

    /// The evidence for one row of the batch last judged, asked only when an alert starts or grows.
    ///
    /// # Errors
    /// The rule's own failure.
    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure>;

    /// Carries numbers that another version of the rule kept over to this one's meaning: `state` is `slots` × `rows`,
    /// column-major, and so is the answer with this version's slots. None where the rule cannot: they start clean.
    ///
    /// # Errors
    /// The rule's own failure; the numbers start clean.
    fn migrate_state(
        &mut self,
        _version: u32,
        _slots: u32,
        _rows: usize,
        _state: &[f64],
    ) -> Result<Option<Vec<f64>>, RuleFailure> {
        Ok(None)
    }

    /// What the last `evaluate` took; none where nothing counts it.
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// Limits that calls ran into without failing, such as a note that was cut: the limit's name, and how often.
    fn limits_touched(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What happens to an alert whose required data is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingData {
    /// The alert stays as it is, for [`RuleSpec::missing_after`]; then it is *unknown*.
    #[default]
    Hold,
    /// Missing data counts as "condition not met".
    Resolve,
    /// Missing data counts as the rule's mildest severity being met.
    Alert,
}

/// One condition of a template, ready to be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSpec {
    /// `template/alert`: unique among the loaded rules and stable over restarts and reloads.
    pub id: Arc<str>,
    /// The template's name.
    pub template: Arc<str>,
    /// The alert's name.
    pub alert: Arc<str>,
    /// Labels that the template adds to the alert.
    pub labels: Labels,
    /// How long a severity must be raised before it fires; `None` = that severity never fires.
    pub hold_for: PerSeverity<Option<Duration>>,
    /// How long `hold` must be below a severity before that severity ends.
    pub keep_firing_for: Duration,
    /// What missing data means.
    pub missing_data: MissingData,
    /// After this long without data a held alert is *unknown*.
    pub missing_after: Duration,
    /// The cause to name where the module names none.
    pub cause: Option<Cause>,
    /// Time between ticks.
    pub interval: Duration,
}

impl RuleSpec {
    /// How long missing data holds an alert before it is *unknown*.
    pub const MISSING_AFTER_DEFAULT: Duration = Duration::from_secs(15 * 60);
    /// After this long without data a held alert ends: its target is gone for good (a card that was replaced, a job
    /// that is over). A longer [`RuleSpec::missing_after`] counts instead.
    pub const MISSING_END: Duration = Duration::from_secs(24 * 60 * 60);
    /// Time between ticks where nothing else is said.
    pub const INTERVAL_DEFAULT: Duration = Duration::from_secs(5);

    /// The mildest severity that can fire; [`Severity::Warning`] where none is set.
    pub fn mildest(&self) -> Severity {
        let set = self.hold_for.iter().find(|(_, after)| after.is_some());
        set.map_or(Severity::Warning, |(severity, _)| severity)
    }
}

impl Outcome {
    /// The most notes of one answer.
    pub const NOTES_MAX: usize = 64;

    /// Bytes of the answer as it crosses the contract: 32 for a hit, 8 and its text for a note, 8 for a number.
    pub fn bytes(&self) -> u64 {
        let notes: usize = self.notes.iter().map(|note| note.len() + 8).sum();
        (self.hits.len() * 32 + notes + (self.state.len() + self.derived.len()) * 8) as u64
    }

    /// Checks that the answer makes sense for `rows` rows; that no row has two hits is left to its reader.
    ///
    /// # Errors
    /// [`RuleFailure::InvalidOutput`], saying what was wrong.
    pub fn check(&self, rows: usize, descriptor: &Descriptor) -> Result<(), RuleFailure> {
        let slots = descriptor.state_slots as usize;
        check_len("state", self.state.len(), slots * rows)?;
        check_len("derived values", self.derived.len(), descriptor.outputs.len() * rows)?;
        if let Some(at) = self.state.iter().position(|value| !value.is_finite()) {
            return invalid(format!("state[{at}] is {}, which is no finite number", self.state[at]));
        }
        at_most(LimitHit::NOTES, "notes", self.notes.len(), Outcome::NOTES_MAX, rows)?;
        at_most(LimitHit::HITS, "hits", self.hits.len(), rows, rows)?;
        self.hits.iter().try_for_each(|hit| hit.check(rows, self.notes.len()))
    }
}

impl Hit {
    fn check(&self, rows: usize, notes: usize) -> Result<(), RuleFailure> {
        if self.row as usize >= rows {
            return invalid(format!("a hit for row {} of {rows}", self.row));
        }
        if self.hold < self.raise {
            return invalid(format!("row {}: hold is below raise", self.row));
        }
        if !self.value.is_finite() {
            return invalid(format!("row {}: the value is {}, which is no finite number", self.row, self.value));
        }
        match self.note {
            Some(note) if note as usize >= notes => invalid(format!("row {}: note {note} of {notes}", self.row)),
            _ => Ok(()),
        }
    }
}

fn at_most(
    limit: &'static str,
    unit: &'static str,
    used: usize,
    allowed: usize,
    rows: usize,
) -> Result<(), RuleFailure> {
    if used <= allowed {
        return Ok(());
    }
    Err(RuleFailure::Limit(LimitHit { limit, used: Some(used as u64), allowed: allowed as u64, unit, rows }))
}

fn check_len(what: &str, found: usize, expected: usize) -> Result<(), RuleFailure> {
    if found == 0 || found == expected {
        return Ok(());
    }
    invalid(format!("{found} {what}, expected {expected} or none"))
}

fn invalid(what: String) -> Result<(), RuleFailure> {
    Err(RuleFailure::InvalidOutput(what))
}
