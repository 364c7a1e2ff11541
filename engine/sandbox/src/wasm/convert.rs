//! Between the contract's types and the core's.

use std::time::Duration;

use watchfire_core as core;
use watchfire_core::{Cause, Severity};

use super::bindings::types;

/// What a module says of itself.
pub fn descriptor(said: types::Descriptor) -> Result<core::Descriptor, String> {
    let inputs: Result<Vec<core::Input>, String> = said.inputs.into_iter().map(input).collect();
    Ok(core::Descriptor {
        name: said.name,
        version: said.version,
        scope: scope(said.scope),
        inputs: inputs?,
        outputs: said.outputs.into_iter().map(Into::into).collect(),
        settings_schema: said.settings_schema,
        state_slots: said.state_slots,
        state_version: said.state_version,
        needs_labels: said.needs_labels,
        group_by: said.group_by.map(Into::into),
    })
}

fn input(said: types::Input) -> Result<core::Input, String> {
    let reads = match said.reads {
        types::Reads::Metric(metric) => {
            core::Reads::Metric { name: metric.name.into(), aggregate: aggregate(metric.aggregate)? }
        }
        types::Reads::Event(event) => core::Reads::Event {
            kind: event.kind.into(),
            codes: event.codes,
            stat: match event.stat {
                types::EventStat::Count => core::EventStat::Count,
                types::EventStat::Age => core::EventStat::Age,
                types::EventStat::LastCode => core::EventStat::LastCode,
                types::EventStat::DistinctJobs => core::EventStat::DistinctJobs,
            },
        },
    };
    Ok(core::Input {
        reads,
        scope: scope(said.scope),
        window: Duration::from_millis(said.window_ms),
        required: said.required,
        only: Vec::new(),
    })
}

fn aggregate(said: types::Aggregate) -> Result<core::Aggregate, String> {
    use types::Aggregate as Said;
    Ok(match said {
        Said::Last => core::Aggregate::Last,
        Said::Min => core::Aggregate::Min,
        Said::Max => core::Aggregate::Max,
        Said::Mean => core::Aggregate::Mean,
        Said::Sum => core::Aggregate::Sum,
        Said::Count => core::Aggregate::Count,
        Said::Stddev => core::Aggregate::Stddev,
        Said::Increase => core::Aggregate::Increase,
        Said::Rate => core::Aggregate::Rate,
        Said::Slope => core::Aggregate::Slope,
        Said::Quantile(q) if (0.0..=1.0).contains(&q) => core::Aggregate::Quantile(q),
        Said::HistogramQuantile(q) if (0.0..=1.0).contains(&q) => core::Aggregate::HistogramQuantile(q),
        Said::Quantile(q) | Said::HistogramQuantile(q) => return Err(format!("{q} is no quantile between 0 and 1")),
    })
}

fn scope(said: types::Scope) -> core::Scope {
    match said {
        types::Scope::Host => core::Scope::Host,
        types::Scope::Gpu => core::Scope::Gpu,
        types::Scope::Device => core::Scope::Device,
        types::Scope::Job => core::Scope::Job,
        types::Scope::Rank => core::Scope::Rank,
    }
}

/// A row as a module may see it.
pub fn target(target: &core::Target) -> types::Target {
    let labels = target.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    types::Target { labels: labels.collect(), group: target.group }
}

/// Lays a batch into one whose memory is kept.
pub fn batch(from: &core::Batch<'_>, into: &mut types::Batch) {
    into.tick = from.tick;
    into.now_ms = from.now.as_millis();
    into.interval_ms = u64::try_from(from.interval.as_millis()).unwrap_or(u64::MAX);
    into.rows = u32::try_from(from.rows).unwrap_or(u32::MAX);
    refill(&mut into.columns, from.columns);
    refill(&mut into.quality, from.quality);
    refill(&mut into.groups, from.groups);
    refill(&mut into.state, from.state);
}

fn refill<T: Copy>(into: &mut Vec<T>, from: &[T]) {
    into.clear();
    into.extend_from_slice(from);
}

/// A batch without rows, whose memory is to be filled.
pub fn empty_batch() -> types::Batch {
    types::Batch {
        tick: 0,
        now_ms: 0,
        interval_ms: 0,
        rows: 0,
        columns: Vec::new(),
        quality: Vec::new(),
        groups: Vec::new(),
        state: Vec::new(),
    }
}

/// An answer; how many of its notes were cut.
///
/// Only `none` leaves the state as it was: a list of another length than slots × rows is refused by its reader, but an
/// empty one would look like none.
pub fn outcome(
    said: types::Outcome,
    limits: &crate::Limits,
    cells: usize,
    rows: usize,
    out: &mut core::Outcome,
) -> Result<u64, core::RuleFailure> {
    limits.check_notes(said.notes.len(), rows)?;
    out.hits.extend(said.hits.iter().map(hit));
    out.notes.extend(said.notes);
    let cut = limits.cut_notes(&mut out.notes);
    if let Some(state) = &said.state
        && state.len() != cells
    {
        return Err(core::RuleFailure::InvalidOutput(format!("{} state, expected {cells} or none", state.len())));
    }
    out.state.extend(said.state.unwrap_or_default());
    out.derived.extend(said.derived);
    Ok(cut)
}

fn hit(said: &types::Hit) -> core::Hit {
    core::Hit {
        row: said.row,
        raise: severity(said.raise),
        hold: severity(said.hold),
        value: said.value,
        cause: cause(said.cause),
        note: said.note,
    }
}

fn severity(said: types::Level) -> Option<Severity> {
    match said {
        types::Level::None => None,
        types::Level::Info => Some(Severity::Info),
        types::Level::Warning => Some(Severity::Warning),
        types::Level::Critical => Some(Severity::Critical),
        types::Level::Emergency => Some(Severity::Emergency),
    }
}

fn cause(said: types::Cause) -> Option<Cause> {
    Some(match said {
        types::Cause::Unknown => return None,
        types::Cause::Hardware => Cause::Hardware,
        types::Cause::Thermal => Cause::Thermal,
        types::Cause::Power => Cause::Power,
        types::Cause::Hang => Cause::Hang,
        types::Cause::Idle => Cause::Idle,
        types::Cause::Supply => Cause::Supply,
        types::Cause::Communication => Cause::Communication,
        types::Cause::Software => Cause::Software,
        types::Cause::Capacity => Cause::Capacity,
        types::Cause::Telemetry => Cause::Telemetry,
    })
}
