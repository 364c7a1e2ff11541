//! A configured script.

use std::sync::Arc;

use rhai::{Dynamic, INT, Map};
use watchfire_core::{self as core, Descriptor, Outcome, Program, Reads, RuleFailure, Target, Usage};

use super::Running;
use super::frame::{Batch, Frame, Report};
use crate::Limits;

/// A configured script.
pub struct ScriptProgram {
    running: Running,
    descriptor: Descriptor,
    settings: Dynamic,
    limits: Limits,
    frame: Arc<Frame>,
    usage: Option<Usage>,
}

impl ScriptProgram {
    /// A script with its settings.
    pub fn new(running: Running, descriptor: Descriptor, settings: Dynamic, limits: Limits) -> Self {
        let name = |input: &core::Input| match &input.reads {
            Reads::Metric { name, .. } => name.to_string(),
            Reads::Event { kind, .. } => kind.to_string(),
        };
        let frame = Frame { names: descriptor.inputs.iter().map(name).collect(), ..Frame::default() };
        ScriptProgram {
            running,
            descriptor,
            settings: settings.into_shared(),
            limits,
            frame: Arc::new(frame),
            usage: None,
        }
    }

    /// Lays a batch into the frame. The script has let go of it unless it kept it, which costs a new one.
    fn fill(&mut self, batch: &core::Batch<'_>) {
        if Arc::get_mut(&mut self.frame).is_none() {
            self.frame = Arc::new(Frame { names: self.frame.names.clone(), ..Frame::default() });
        }
        let Some(frame) = Arc::get_mut(&mut self.frame) else { return };
        frame.rows = batch.rows;
        frame.now_ms = batch.now.as_millis();
        frame.interval_s = batch.interval.as_secs_f64();
        refill(&mut frame.columns, batch.columns);
        refill(&mut frame.quality, batch.quality);
        refill(&mut frame.groups, batch.groups);
        refill(&mut frame.state, batch.state);
    }

    fn batch(&self) -> Batch {
        Batch { frame: self.frame.clone(), settings: self.settings.clone() }
    }
}

fn refill<T: Copy>(into: &mut Vec<T>, from: &[T]) {
    into.clear();
    into.extend_from_slice(from);
}

fn target(target: &Target) -> Dynamic {
    let labels: Map = target.labels.iter().map(|(name, value)| (name.into(), value.to_owned().into())).collect();
    let mut map = Map::new();
    map.insert("labels".into(), labels.into());
    map.insert("group".into(), Dynamic::from_int(INT::from(target.group)));
    map.into()
}

impl Program for ScriptProgram {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn on_targets(&mut self, targets: &[Target]) -> Result<(), RuleFailure> {
        if !self.running.has("on_targets", 1) {
            return Ok(());
        }
        let targets: rhai::Array = targets.iter().map(target).collect();
        self.running.call("on_targets", (targets,), self.limits.steps_init, 0).map(drop)
    }

    fn evaluate(&mut self, batch: &core::Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
        self.fill(batch);
        let descriptor = &self.descriptor;
        let report = Report::new(batch.rows, descriptor.state_slots as usize, descriptor.outputs.len());
        let steps = self.limits.steps(batch.rows);
        self.running.call("evaluate", (self.batch(), report.clone()), steps, batch.rows).map(drop)?;
        *out = report.take();
        self.usage = Some(Usage {
            steps: self.running.steps_used(),
            steps_budget: steps,
            memory_bytes: None,
            output_bytes: out.bytes(),
        });
        for note in &mut out.notes {
            note.truncate(Limits::cut(note, self.limits.note_bytes).len());
        }
        out.check(batch.rows, &self.descriptor)
    }

    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        if !self.running.has("explain", 2) {
            return Ok(None);
        }
        let args = (self.batch(), INT::from(row));
        let said = self.running.call("explain", args, self.limits.steps_init, 0)?;
        let text = said.into_immutable_string().ok();
        Ok(text.map(|text| Limits::cut(&text, self.limits.note_bytes).to_owned()))
    }

    /// The script's `migrate_state(version, slots)` is asked for each row: an array in, an array out.
    fn migrate_state(
        &mut self,
        version: u32,
        slots: u32,
        rows: usize,
        state: &[f64],
    ) -> Result<Option<Vec<f64>>, RuleFailure> {
        if !self.running.has("migrate_state", 2) {
            return Ok(None);
        }
        let (own, slots) = (self.descriptor.state_slots as usize, slots as usize);
        let mut migrated = vec![0.0; own * rows];
        for row in 0..rows {
            let kept: rhai::Array = (0..slots).map(|slot| Dynamic::from_float(state[slot * rows + row])).collect();
            let said = self.running.call("migrate_state", (INT::from(version), kept), self.limits.steps_init, 0)?;
            let numbers = super::convert::numbers(&said).filter(|numbers| numbers.len() == own).ok_or_else(|| {
                RuleFailure::InvalidOutput(format!("`migrate_state` must give an array of {own} numbers, found {said}"))
            })?;
            numbers.iter().enumerate().for_each(|(slot, number)| migrated[slot * rows + row] = *number);
        }
        Ok(Some(migrated))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }
}
