//! A batch and an answer as a script sees them: registered types over plain buffers, not arrays of values.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rhai::{Dynamic, Engine, EvalAltResult, FLOAT, INT, ImmutableString};
use watchfire_core::{Cause, Hit, LimitHit, Outcome, Severity};

use super::settings::Settings;

/// The rows of one tick, shared between the host and the script.
#[derive(Debug, Default)]
pub struct Frame {
    /// Names of the inputs' metrics, in order.
    pub names: Vec<String>,
    /// Number of rows.
    pub rows: usize,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// Seconds between ticks.
    pub interval_s: f64,
    /// inputs × rows.
    pub columns: Vec<f64>,
    /// inputs × rows.
    pub quality: Vec<u8>,
    /// rows.
    pub groups: Vec<u32>,
    /// slots × rows.
    pub state: Vec<f64>,
}

/// `batch` in a script.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The rows.
    pub frame: Arc<Frame>,
    /// The rule's settings.
    pub settings: Settings,
}

/// `batch.column(k)` in a script: can be iterated, with the row as the counter.
#[derive(Clone, Debug)]
struct Column {
    frame: Arc<Frame>,
    input: usize,
}

/// `out` in a script.
#[derive(Clone, Debug)]
pub struct Report {
    said: Arc<Mutex<Said>>,
    rows: usize,
    slots: usize,
    outputs: usize,
    notes: usize,
}

/// What a script has answered so far, and the limit at which it was stopped.
#[derive(Debug, Default)]
struct Said {
    outcome: Outcome,
    limit: Option<LimitHit>,
}

type Answer<T> = Result<T, Box<EvalAltResult>>;

impl Frame {
    /// A value, or `()` where it is not ok: a missing value is no number.
    fn get(&self, input: usize, row: usize) -> Dynamic {
        let at = input * self.rows + row;
        match (self.quality.get(at), self.columns.get(at)) {
            (Some(0), Some(value)) if row < self.rows => Dynamic::from_float(*value),
            _ => Dynamic::UNIT,
        }
    }
}

fn index(value: INT, end: usize, what: &str) -> Answer<usize> {
    let found = usize::try_from(value).ok().filter(|at| *at < end);
    found.ok_or_else(|| format!("{what} {value} is out of range; there are {end}").into())
}

impl Batch {
    fn column(&mut self, input: INT) -> Answer<Column> {
        let input = index(input, self.frame.names.len(), "input")?;
        Ok(Column { frame: self.frame.clone(), input })
    }

    fn named(&mut self, name: ImmutableString) -> Answer<Column> {
        let found = self.frame.names.iter().position(|known| *known == name.as_str());
        let known = || format!("no input reads {name:?}; the inputs are {}", self.frame.names.join(", "));
        Ok(Column { frame: self.frame.clone(), input: found.ok_or_else(known)? })
    }

    fn get(&mut self, input: INT, row: INT) -> Answer<Dynamic> {
        let input = index(input, self.frame.names.len(), "input")?;
        Ok(self.frame.get(input, index(row, self.frame.rows, "row")?))
    }

    fn quality(&mut self, input: INT, row: INT) -> Answer<INT> {
        let at = index(input, self.frame.names.len(), "input")? * self.frame.rows;
        let row = index(row, self.frame.rows, "row")?;
        Ok(self.frame.quality.get(at + row).copied().map_or(1, INT::from))
    }

    fn group(&mut self, row: INT) -> Answer<INT> {
        let row = index(row, self.frame.rows, "row")?;
        Ok(self.frame.groups.get(row).copied().map_or(0, INT::from))
    }

    fn state(&mut self, slot: INT, row: INT) -> Answer<FLOAT> {
        let slots = self.frame.state.len().checked_div(self.frame.rows).unwrap_or(0);
        let at = index(slot, slots, "state slot")? * self.frame.rows + index(row, self.frame.rows, "row")?;
        Ok(self.frame.state[at])
    }
}

impl IntoIterator for Column {
    type Item = Dynamic;
    type IntoIter = Box<dyn Iterator<Item = Dynamic>>;
    fn into_iter(self) -> Self::IntoIter {
        let rows = self.frame.rows;
        Box::new((0..rows).map(move |row| self.frame.get(self.input, row)))
    }
}

impl Report {
    /// An empty answer.
    pub fn new(rows: usize, slots: usize, outputs: usize, notes: usize) -> Self {
        Report { said: Arc::default(), rows, slots, outputs, notes }
    }

    /// The answer; `state` is what the script did not set.
    pub fn take(&self) -> Outcome {
        std::mem::take(&mut self.lock().outcome)
    }

    /// The limit at which the script was stopped.
    pub fn limit(&self) -> Option<LimitHit> {
        self.lock().limit.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> (usize, usize) {
        let said = self.lock();
        (said.outcome.hits.len(), said.outcome.notes.len())
    }

    /// One more of what there may be `allowed` of.
    fn admit(&self, limit: &'static str, there: usize, allowed: usize) -> Answer<()> {
        if there < allowed {
            return Ok(());
        }
        let used = Some(there as u64 + 1);
        let hit = LimitHit { limit, used, allowed: allowed as u64, unit: limit, rows: self.rows };
        let words = hit.to_string();
        self.lock().limit = Some(hit);
        Err(words.into())
    }

    fn hit(&mut self, row: INT, raise: &str, hold: &str, value: Dynamic) -> Answer<()> {
        self.full_hit(row, raise, hold, value, "", "")
    }

    fn hit_cause(&mut self, row: INT, raise: &str, hold: &str, value: Dynamic, cause: &str) -> Answer<()> {
        self.full_hit(row, raise, hold, value, cause, "")
    }

    fn full_hit(&mut self, row: INT, raise: &str, hold: &str, value: Dynamic, cause: &str, note: &str) -> Answer<()> {
        let row = index(row, self.rows, "row")? as u32;
        let (raise, hold, cause) = (level(raise)?, level(hold)?, cause_of(cause)?);
        let value = number(&value)?;
        let (hits, notes) = self.counts();
        self.admit(LimitHit::HITS, hits, self.rows)?;
        let known = self.known_note(note);
        if !note.is_empty() && known.is_none() {
            self.admit(LimitHit::NOTES, notes, self.notes)?;
        }
        let outcome = &mut self.lock().outcome;
        let note = (!note.is_empty()).then(|| {
            known.unwrap_or_else(|| {
                outcome.notes.push(note.to_owned());
                outcome.notes.len() as u32 - 1
            })
        });
        outcome.hits.push(Hit { row, raise, hold: hold.max(raise), value, cause, note });
        Ok(())
    }

    /// The number of a note that was given before: a text is told once.
    fn known_note(&self, note: &str) -> Option<u32> {
        self.lock().outcome.notes.iter().position(|known| known == note).map(|at| at as u32)
    }

    fn set_state(&mut self, batch: Batch, slot: INT, row: INT, value: Dynamic) -> Answer<()> {
        let at = index(slot, self.slots, "state slot")? * self.rows + index(row, self.rows, "row")?;
        let value = number(&value)?;
        let outcome = &mut self.lock().outcome;
        if outcome.state.is_empty() {
            outcome.state.extend_from_slice(&batch.frame.state);
        }
        outcome.state[at] = value;
        Ok(())
    }

    fn derive(&mut self, output: INT, row: INT, value: Dynamic) -> Answer<()> {
        let at = index(output, self.outputs, "output")? * self.rows + index(row, self.rows, "row")?;
        let (value, cells) = (number(&value)?, self.outputs * self.rows);
        let outcome = &mut self.lock().outcome;
        outcome.derived.resize(cells, f64::NAN);
        outcome.derived[at] = value;
        Ok(())
    }
}

fn number(value: &Dynamic) -> Answer<f64> {
    let float = value.as_float().ok().or_else(|| value.as_int().ok().map(|whole| whole as f64));
    float.ok_or_else(|| format!("expected a number, found {}", value.type_name()).into())
}

fn level(word: &str) -> Answer<Option<Severity>> {
    match word {
        "none" | "" => Ok(None),
        _ => word.parse().map(Some).map_err(|error| format!("severity {error}, none").into()),
    }
}

fn cause_of(word: &str) -> Answer<Option<Cause>> {
    match word {
        "" => Ok(None),
        _ => word.parse().map(Some).map_err(|error| format!("cause {error}").into()),
    }
}

/// The number of a note: rows that say the same share one.
/// Registers the types. Nothing else of the host can be reached by a script.
pub fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Batch>("Batch")
        .register_get("rows", |batch: &mut Batch| batch.frame.rows as INT)
        .register_get("now_ms", |batch: &mut Batch| batch.frame.now_ms)
        .register_get("interval", |batch: &mut Batch| batch.frame.interval_s)
        .register_get("settings", |batch: &mut Batch| batch.settings.clone())
        .register_fn("column", Batch::column)
        .register_fn("column", Batch::named)
        .register_fn("get", Batch::get)
        .register_fn("quality", Batch::quality)
        .register_fn("group", Batch::group)
        .register_fn("state", Batch::state);
    engine.register_type_with_name::<Column>("Column").register_iterator::<Column>();
    engine
        .register_type_with_name::<Report>("Report")
        .register_fn("hit", Report::hit)
        .register_fn("hit", Report::hit_cause)
        .register_fn("hit", Report::full_hit)
        .register_fn("set_state", Report::set_state)
        .register_fn("derive", Report::derive);
    // A missing value equals nothing but another missing value.
    engine.register_fn("==", |_: (), _: FLOAT| false).register_fn("==", |_: FLOAT, _: ()| false);
}
