//! A configured WebAssembly rule.

use std::sync::Arc;

use wasmtime::component::InstancePre;
use watchfire_core::{Batch, Descriptor, LimitHit, Outcome, Program, RuleFailure, Target, Usage};

use super::bindings::types;
use super::store::{Guest, Live};
use super::{Host, convert};
use crate::log::RuleLog;
use crate::{Limits, LoadError};

/// A configured WebAssembly rule. Its instance is thrown away at any failure and built anew at the next call.
pub struct WasmProgram {
    host: Arc<Host>,
    pre: InstancePre<Guest>,
    limits: Limits,
    settings: String,
    descriptor: Descriptor,
    targets: Vec<types::Target>,
    live: Option<Live>,
    batch: types::Batch,
    usage: Option<Usage>,
    log: RuleLog,
    notes_cut_total: u64,
}

impl WasmProgram {
    /// Instantiates and configures a module, and asks it what it is.
    pub fn start(
        host: Arc<Host>,
        name: &str,
        pre: InstancePre<Guest>,
        limits: Limits,
        settings: String,
    ) -> Result<Self, LoadError> {
        let log = RuleLog::new(name, &limits);
        let mut live = Live::new(&host, &log, &pre, &limits)?;
        live.configure(&settings)?;
        let descriptor = live.describe()?;
        Ok(WasmProgram {
            host,
            pre,
            limits,
            settings,
            descriptor,
            targets: Vec::new(),
            live: Some(live),
            batch: convert::empty_batch(),
            usage: None,
            log,
            notes_cut_total: 0,
        })
    }

    /// Calls into the instance, and throws it away where that fails.
    fn with_live<T>(
        &mut self,
        call: impl FnOnce(&mut Live, &types::Batch) -> Result<T, RuleFailure>,
    ) -> Result<T, RuleFailure> {
        let mut live = match self.live.take() {
            Some(live) => live,
            None => self.revive()?,
        };
        let said = call(&mut live, &self.batch)?;
        self.live = Some(live);
        Ok(said)
    }

    fn revive(&self) -> Result<Live, RuleFailure> {
        let mut live = Live::new(&self.host, &self.log, &self.pre, &self.limits)?;
        live.configure(&self.settings).map_err(|error| match error {
            LoadError::Failed(failure) => failure,
            other => RuleFailure::Reported(other.to_string()),
        })?;
        if !self.targets.is_empty() {
            live.on_targets(&self.targets)?;
        }
        Ok(live)
    }

    /// A batch that the rule's memory cannot hold is the host's to refuse: inside, it would look like the author's
    /// fault.
    fn check_size(&self, batch: &Batch<'_>) -> Result<(), RuleFailure> {
        let bytes = (batch.columns.len() + batch.state.len()) * 8 + batch.quality.len() + batch.groups.len() * 4;
        if bytes > self.limits.memory_bytes / 2 {
            let allowed = (self.limits.memory_bytes / 2) as u64;
            return Err(RuleFailure::Limit(LimitHit {
                limit: "memory_bytes",
                used: Some(bytes as u64),
                allowed,
                unit: "bytes of memory for the batch alone (half of what the rule may have)",
                rows: batch.rows,
            }));
        }
        Ok(())
    }
}

impl Program for WasmProgram {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn on_targets(&mut self, targets: &[Target]) -> Result<(), RuleFailure> {
        self.targets = targets.iter().map(convert::target).collect();
        let targets = std::mem::take(&mut self.targets);
        let said = self.with_live(|live, _| live.on_targets(&targets));
        self.targets = targets;
        said
    }

    fn evaluate(&mut self, batch: &Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
        self.check_size(batch)?;
        convert::batch(batch, &mut self.batch);
        let outputs = self.descriptor.outputs.len();
        let said = self.with_live(|live, batch| live.evaluate(batch, outputs))?;
        let steps_budget = self.limits.steps(batch.rows).0;
        let used = self.live.as_ref().map(|live| (live.steps_used(steps_budget), live.memory_peak()));
        let cells = self.descriptor.state_slots as usize * batch.rows;
        let taken = convert::outcome(said, &self.limits, cells, batch.rows, out);
        let taken = taken.map(|cut| self.notes_cut_total += cut);
        let checked = taken.and_then(|()| out.check(batch.rows, &self.descriptor));
        self.usage = used.map(|(steps, memory)| Usage {
            steps,
            steps_budget,
            memory_bytes: Some(memory),
            output_bytes: out.bytes(),
        });
        if checked.is_err() {
            self.live = None;
        }
        checked
    }

    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        let note_bytes = self.limits.note_bytes;
        let said = self.with_live(|live, _| live.explain(row))?;
        Ok(said.map(|note| Limits::cut(&note, note_bytes).to_owned()))
    }

    fn migrate_state(
        &mut self,
        version: u32,
        slots: u32,
        rows: usize,
        state: &[f64],
    ) -> Result<Option<Vec<f64>>, RuleFailure> {
        // A store of its own: whatever migration does to its memory, judging begins afresh.
        let slots_now = self.descriptor.state_slots as usize;
        self.revive()?.migrate_state(version, slots, rows, state, slots_now)
    }

    fn limits_touched(&self) -> Vec<(&'static str, u64)> {
        let mut touched = self.log.touched().to_vec();
        touched.push(("note_bytes", self.notes_cut_total));
        touched.retain(|(_, times)| *times > 0);
        touched
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }
}
