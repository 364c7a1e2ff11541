//! Rules that are linked into the process: for embedders who trust their own code, and as the measure of what the
//! sandbox costs. Nothing limits them.

use std::time::Duration;

use watchfire_core::{self as core, Descriptor, Outcome, Program, RuleFailure, Severity, Target};
use watchfire_sdk as sdk;
use watchfire_sdk::guest::{self, Running};

use crate::{LoadError, scope};

/// A rule of `watchfire-sdk` as a program.
pub struct Native<R> {
    running: Running<R>,
    descriptor: Descriptor,
}

impl<R: sdk::Rule> Native<R> {
    /// Configures a rule.
    ///
    /// # Errors
    /// Where it does not take its settings.
    pub fn new(settings: &serde_json::Value) -> Result<Self, LoadError> {
        let running = guest::configure::<R>(&settings.to_string()).map_err(LoadError::Settings)?;
        let descriptor = descriptor(guest::describe(Some(&running))).map_err(LoadError::Describe)?;
        Ok(Native { running, descriptor })
    }
}

impl<R: sdk::Rule + Send> Program for Native<R> {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn on_targets(&mut self, targets: &[Target]) -> Result<(), RuleFailure> {
        let labels = |target: &Target| target.labels.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let targets: Vec<sdk::Target> =
            targets.iter().map(|target| sdk::Target { labels: labels(target), group: target.group }).collect();
        self.running.on_targets(&targets).map_err(RuleFailure::Reported)
    }

    fn evaluate(&mut self, batch: &core::Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
        let batch = sdk::Batch {
            tick: batch.tick,
            now_ms: batch.now.as_millis(),
            interval_ms: u64::try_from(batch.interval.as_millis()).unwrap_or(u64::MAX),
            rows: u32::try_from(batch.rows).unwrap_or(u32::MAX),
            columns: batch.columns.to_vec(),
            quality: batch.quality.to_vec(),
            groups: batch.groups.to_vec(),
            state: batch.state.to_vec(),
        };
        let rows = batch.rows as usize;
        let said = self.running.evaluate(batch).map_err(RuleFailure::Reported)?;
        out.hits.extend(said.hits.iter().map(hit));
        out.notes = said.notes;
        out.state = said.state.unwrap_or_default();
        out.derived = said.derived;
        out.check(rows, &self.descriptor)
    }

    fn migrate_state(
        &mut self,
        version: u32,
        slots: u32,
        rows: usize,
        state: &[f64],
    ) -> Result<Option<Vec<f64>>, RuleFailure> {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        self.running.migrate_state(version, slots, rows, state).map(Some).map_err(RuleFailure::Reported)
    }

    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        Ok(self.running.explain(row))
    }
}

fn hit(said: &sdk::Hit) -> core::Hit {
    let level = |level: sdk::Level| match level {
        sdk::Level::None => None,
        sdk::Level::Info => Some(Severity::Info),
        sdk::Level::Warning => Some(Severity::Warning),
        sdk::Level::Critical => Some(Severity::Critical),
        sdk::Level::Emergency => Some(Severity::Emergency),
    };
    // The contract's causes are the core's, with "unknown" before them.
    let cause = (said.cause as usize).checked_sub(1).and_then(|at| core::Cause::ALL.get(at).copied());
    core::Hit {
        row: said.row,
        raise: level(said.raise),
        hold: level(said.hold),
        value: said.value,
        cause,
        note: said.note,
    }
}

fn descriptor(said: sdk::Descriptor) -> Result<Descriptor, String> {
    Ok(Descriptor {
        name: said.name,
        version: said.version,
        scope: scope_of(said.scope),
        inputs: said.inputs.into_iter().map(input).collect::<Result<_, _>>()?,
        outputs: said.outputs.into_iter().map(Into::into).collect(),
        settings_schema: said.settings_schema,
        state_slots: said.state_slots,
        state_version: said.state_version,
        needs_labels: said.needs_labels,
        group_by: said.group_by.map(Into::into),
    })
}

fn scope_of(said: sdk::Scope) -> core::Scope {
    core::Scope::ALL[said as usize]
}

fn input(said: sdk::Input) -> Result<core::Input, String> {
    let reads = match said.reads {
        sdk::Reads::Metric(metric) => {
            let (name, argument) = match metric.aggregate {
                sdk::Aggregate::Quantile(q) => ("quantile".to_owned(), Some(q)),
                sdk::Aggregate::HistogramQuantile(q) => ("histogram_quantile".to_owned(), Some(q)),
                plain => (format!("{plain:?}").replace("Aggregate::", "").to_lowercase(), None),
            };
            core::Reads::Metric { name: metric.name.into(), aggregate: scope::aggregate(&name, argument)? }
        }
        sdk::Reads::Event(event) => core::Reads::Event {
            kind: event.kind.into(),
            codes: event.codes,
            stat: match event.stat {
                sdk::EventStat::Count => core::EventStat::Count,
                sdk::EventStat::Age => core::EventStat::Age,
                sdk::EventStat::LastCode => core::EventStat::LastCode,
                sdk::EventStat::DistinctJobs => core::EventStat::DistinctJobs,
            },
        },
    };
    let window = Duration::from_millis(said.window_ms);
    Ok(core::Input { reads, scope: scope_of(said.scope), window, required: said.required, only: Vec::new() })
}
