//! A configured script.

use std::sync::Arc;

use rhai::{Dynamic, INT, Map};
use watchfire_core::{self as core, Descriptor, Outcome, Program, Reads, RuleFailure, Target, Usage};

use super::Running;
use super::engine::Bounds;
use super::frame::{Batch, Frame, Report};
use super::settings::Settings;
use crate::Limits;

/// A configured script.
pub struct ScriptProgram {
    running: Running,
    descriptor: Descriptor,
    settings: Settings,
    limits: Limits,
    frame: Arc<Frame>,
    usage: Option<Usage>,
    notes_cut_total: u64,
}

impl ScriptProgram {
    /// A script with its settings.
    pub fn new(running: Running, descriptor: Descriptor, settings: Settings, limits: Limits) -> Self {
        let name = |input: &core::Input| match &input.reads {
            Reads::Metric { name, .. } => name.to_string(),
            Reads::Event { kind, .. } => kind.to_string(),
        };
        let frame = Frame { names: descriptor.inputs.iter().map(name).collect(), ..Frame::default() };
        let frame = Arc::new(frame);
        ScriptProgram { running, descriptor, settings, limits, frame, usage: None, notes_cut_total: 0 }
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
        self.running.call("on_targets", (targets,), Bounds::of_start(&self.limits), drop)
    }

    fn evaluate(&mut self, batch: &core::Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
        self.fill(batch);
        let descriptor = &self.descriptor;
        let (slots, outputs) = (descriptor.state_slots as usize, descriptor.outputs.len());
        let report = Report::new(batch.rows, slots, outputs, self.limits.notes);
        let bounds = Bounds::of_rows(&self.limits, batch.rows);
        self.running.log().begin(Some(batch.now));
        let said = self.running.call("evaluate", (self.batch(), report.clone()), bounds, drop);
        said.map_err(|failure| report.limit().map_or(failure, RuleFailure::Limit))?;
        *out = report.take();
        self.usage = Some(Usage {
            steps: self.running.steps_used(),
            steps_budget: bounds.steps,
            memory_bytes: None,
            output_bytes: out.bytes(),
        });
        self.notes_cut_total += self.limits.cut_notes(&mut out.notes);
        out.check(batch.rows, &self.descriptor)
    }

    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        if !self.running.has("explain", 2) {
            return Ok(None);
        }
        let args = (self.batch(), INT::from(row));
        let text = |said: Dynamic| said.into_immutable_string().ok().map(|text| text.to_string());
        let text = self.running.call("explain", args, Bounds::of_rows(&self.limits, 0), text)?;
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
            let bounds = Bounds::of_start(&self.limits);
            let numbers = |said: Dynamic| super::convert::numbers(&said).ok_or_else(|| said.to_string());
            let said = self.running.call("migrate_state", (INT::from(version), kept), bounds, numbers)?;
            let numbers = said.map_err(|found| odd_state(own, &found))?;
            if numbers.len() != own {
                return Err(odd_state(own, &format!("{numbers:?}")));
            }
            numbers.iter().enumerate().for_each(|(slot, number)| migrated[slot * rows + row] = *number);
        }
        Ok(Some(migrated))
    }

    fn limits_touched(&self) -> Vec<(&'static str, u64)> {
        let mut touched = self.running.log().touched().to_vec();
        touched.push(("note_bytes", self.notes_cut_total));
        touched.retain(|(_, times)| *times > 0);
        touched
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }
}

fn odd_state(own: usize, found: &str) -> RuleFailure {
    RuleFailure::InvalidOutput(format!("`migrate_state` must give an array of {own} numbers, found {found}"))
}
