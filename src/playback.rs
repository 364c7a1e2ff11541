//! A recording as the source of `watchfire run`: the engine's clock follows it, and a restart goes on exactly where the
//! last write was.

use std::iter::Peekable;
use std::time::{Duration, Instant};

use watchfire_collector::input::{self, Input, InputOptions};
use watchfire_collector::recording::Moment;
use watchfire_engine::config::{RecordingSource, Speed};
use watchfire_engine::{Engine, Time};

use crate::clock::Clock;
use crate::exit::Failure;
use crate::replaying::{self, GAP_MAX};

/// What is to be done next.
pub enum Step {
    /// Samples come in.
    Moment(Moment),
    /// A deadline passes.
    Deadline(Time),
}

impl Step {
    /// When, in recorded time.
    pub fn time(&self) -> Time {
        match self {
            Step::Moment(moment) => moment.time,
            Step::Deadline(at) => *at,
        }
    }
}

/// A recording that is played.
pub struct Playback {
    inputs: Vec<Peekable<Input>>,
    next: Option<Moment>,
    /// The last moment whose samples were taken in.
    last: Option<Time>,
    ended: bool,
    speed: Speed,
    exit: bool,
    /// When playing began, in real and in recorded time.
    began: Option<(Instant, Time)>,
}

/// What tells one recording from another: its files.
pub fn name(source: &RecordingSource) -> String {
    let whole = |path: &std::path::PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
    source.paths.iter().map(whole).collect::<Vec<_>>().join(" + ")
}

/// Takes in the samples and events of a moment.
pub fn feed(engine: &mut Engine, moment: Moment) {
    for event in moment.events {
        engine.happened(moment.time, event);
    }
    engine.observe(moment.time, &moment.observations);
}

impl Playback {
    /// Opens the files and, where the engine was stopped within them, takes in again what came before.
    pub fn open(source: &RecordingSource, exit: bool, engine: &mut Engine) -> Result<Self, Failure> {
        let options = InputOptions::default();
        let open = |path| Ok(input::open(path, &options).map_err(Failure::wrong)?.peekable());
        let inputs = source.paths.iter().map(|path| open(path)).collect::<Result<_, Failure>>()?;
        let (speed, exit) = (source.speed, exit || source.exit);
        let mut playback = Playback { inputs, next: None, last: None, ended: false, speed, exit, began: None };
        playback.read()?;
        if let Some(position) = engine.position() {
            playback.look_back(position, engine)?;
        }
        Ok(playback)
    }

    fn look_back(&mut self, position: Time, engine: &mut Engine) -> Result<(), Failure> {
        while let Some(moment) = self.next.take_if(|moment| moment.time <= position) {
            engine.look_back(moment.time, &moment.observations, moment.events);
            self.last = Some(moment.time);
            self.read()?;
        }
        engine.resume(position);
        tracing::info!(at = watchfire_engine::clock::rfc3339(position), "going on with the recording");
        Ok(())
    }

    fn read(&mut self) -> Result<(), Failure> {
        self.next = replaying::next(&mut self.inputs)?;
        Ok(())
    }

    /// Whether all ends with the recording.
    pub fn exit(&self) -> bool {
        self.exit
    }

    /// The time at which it stands.
    pub fn clock(&self) -> Clock {
        let first = self.next.as_ref().map(|moment| moment.time);
        Clock::Recorded(self.last.or(first).unwrap_or_default())
    }

    /// What is to be done next; none where it has ended.
    pub fn next(&mut self, engine: &Engine) -> Result<Option<Step>, Failure> {
        let Some(end) = self.next.as_ref().map(|moment| moment.time) else { return Ok(self.finish(engine)) };
        if let Some(due) = engine.next_deadline().filter(|due| *due < end && self.last.is_some()) {
            return Ok(Some(Step::Deadline(self.within_gap(due, end))));
        }
        let moment = self.next.take();
        self.last = Some(end);
        self.read()?;
        Ok(moment.map(Step::Moment))
    }

    /// In a long gap deadlines pass one by one at its start only; what is left of it is jumped over.
    fn within_gap(&self, due: Time, end: Time) -> Time {
        let jumps = self.last.is_some_and(|last| due > last + GAP_MAX);
        if jumps { due.max(end - Duration::from_millis(1)) } else { due }
    }

    /// The deadlines of the last moment itself.
    fn finish(&mut self, engine: &Engine) -> Option<Step> {
        let last = self.last?;
        if let Some(due) = engine.next_deadline().filter(|due| *due < last) {
            return Some(Step::Deadline(due));
        }
        (!std::mem::replace(&mut self.ended, true)).then_some(Step::Deadline(last))
    }

    /// How long to wait until a recorded moment has come.
    pub fn wait(&mut self, at: Time) -> Duration {
        let Speed::Times(times) = self.speed else { return Duration::ZERO };
        let (began, from) = *self.began.get_or_insert((Instant::now(), at));
        at.since(from).div_f64(times).saturating_sub(began.elapsed())
    }
}
