//! What becomes of a series, found out once when it is first seen.

use std::borrow::Cow;

use watchfire_core::{Labels, Scope};

use super::pci;
use super::slots::Slots;
use super::state::{Fed, Feed, Filesystem, Gpu, Host, Memory, Reading, State};
use super::tables::{LabelRule, MetricRule, Source, Tables};
use crate::exposition::{Label, Sample};
use crate::metrics::{self, Range, THROTTLES};

/// What becomes of the samples of one foreign series.
#[derive(Debug)]
pub(super) struct Plan {
    /// Where the value goes.
    pub slot: u32,
    pub scale: f64,
    pub range: Range,
    /// Whether DCGM's "no value" numbers may come.
    pub blanks: bool,
    /// Of a bit mask: the slot of each bit.
    pub bits: Box<[(u64, u32)]>,
    pub fed: Option<Fed>,
    /// The GPU that it tells of.
    pub gpu: Option<u32>,
    /// It says itself whether that GPU is up.
    pub says_up: bool,
}

/// The labels that every series of a target gets.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    /// The host of all series, whatever the page says.
    pub host: Option<String>,
    /// The host of series that name none.
    pub default_host: Option<String>,
    /// Further labels.
    pub extra: Labels,
}

/// The labels that tell which GPU a series is of, and which part of it.
const GPU_LABELS: [&str; 5] = ["host", "gpu", "uuid", "pci", "model"];
const MIG_LABELS: [&str; 2] = ["mig", "mig_profile"];
const HOST_LABELS: [&str; 2] = ["host", "instance"];

/// Finds out what becomes of a sample's series.
pub(super) fn plan(sample: &Sample<'_>, tables: &Tables, base: &Base, slots: &mut Slots, state: &mut State) -> Plan {
    let (source, rule) = tables.find(sample.name);
    let labels = labels(sample, source, base);
    let name = rule.and_then(|rule| rule.ours.as_deref()).unwrap_or(sample.name);
    let gpu = gpu(name, source, &labels, base, state);
    Plan {
        slot: slots.find(name, labels.clone()),
        scale: rule.map_or(1.0, |rule| rule.scale),
        range: metrics::find(name).map_or(Range::ALL, |metric| metric.range),
        blanks: source.is_some_and(|source| source.blanks),
        bits: rule.filter(|rule| rule.mask).map(|_| bits(&labels, slots)).unwrap_or_default(),
        fed: rule.and_then(|rule| fed(rule, &labels, gpu, base, tables, state)),
        gpu,
        says_up: name == "gpu_up",
    }
}

fn bits(labels: &Labels, slots: &mut Slots) -> Box<[(u64, u32)]> {
    THROTTLES.into_iter().map(|(bit, metric)| (bit, slots.find(metric, labels.clone()))).collect()
}

/// A sample's labels in our words, with those of the target laid over them.
fn labels(sample: &Sample<'_>, source: Option<&Source>, base: &Base) -> Labels {
    let own = sample.labels.iter().filter_map(|label| own_label(label, source, base));
    let mut pairs: Vec<(Cow<'_, str>, Cow<'_, str>)> = own.collect();
    if let Some(host) = host(&pairs, base) {
        pairs.push((Cow::Borrowed("host"), Cow::Owned(host)));
    }
    pairs.extend(base.extra.iter().map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value))));
    Labels::new(pairs)
}

fn own_label<'s>(
    label: &'s Label<'_>,
    source: Option<&'s Source>,
    base: &Base,
) -> Option<(Cow<'s, str>, Cow<'s, str>)> {
    let value = Cow::Borrowed(&*label.value);
    if source.is_some_and(|source| source.blanks) && value.starts_with("<<<") {
        // DCGM's texts for "no value": <<<NULL>>>, <<<NOT_FOUND>>>, <<<NOT_SUPPORTED>>>, <<<NOT_PERM>>>.
        return None;
    }
    match source.and_then(|source| source.label_rule(&label.name)) {
        Some(LabelRule::Drop) => None,
        Some(LabelRule::Rename { to, pci: true }) => Some((Cow::Borrowed(to), Cow::Owned(pci::normalise(&value)))),
        Some(LabelRule::Rename { to, pci: false }) => Some((Cow::Borrowed(to), value)),
        // As Prometheus does with a label that the target sets itself.
        None if base.extra.get(&label.name).is_some() => Some((Cow::Owned(format!("exported_{}", label.name)), value)),
        None => Some((Cow::Borrowed(&label.name), value)),
    }
}

/// The host to set: the target's, else none where the series names one, else the default or that of `instance`.
fn host(pairs: &[(Cow<'_, str>, Cow<'_, str>)], base: &Base) -> Option<String> {
    let value = |name: &str| pairs.iter().find(|(one, _)| one == name).map(|(_, value)| &**value);
    if base.host.is_some() || value("host").is_some() {
        return base.host.clone();
    }
    base.default_host.clone().or_else(|| value("instance").map(|instance| without_port(instance).to_owned()))
}

/// The host of `host:port`, `[::1]:port` or a bare host.
pub(super) fn without_port(instance: &str) -> &str {
    match instance.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.contains(':') => host,
        Some((host, _)) if host.ends_with(']') => host,
        _ => instance,
    }
}

/// The GPU that a series tells of, noted where it is new.
fn gpu(name: &str, source: Option<&Source>, labels: &Labels, base: &Base, state: &mut State) -> Option<u32> {
    let of_gpu = Scope::of_metric(name) == Some(Scope::Gpu) || source.is_some_and(|source| source.blanks);
    let key = gpu_key(labels).filter(|_| of_gpu)?;
    let labels = labels.only(&GPU_LABELS).with(&base.extra);
    let at = state.gpus.find(key, |key| Gpu::new(key, labels.clone()));
    if let Some(gpu) = state.gpus.items.get_mut(at as usize) {
        gpu.relabel(labels);
    }
    Some(at)
}

fn gpu_key(labels: &Labels) -> Option<Labels> {
    let by_uuid = labels.only(&["uuid"]);
    if !by_uuid.is_empty() {
        return Some(by_uuid);
    }
    labels.get("gpu")?;
    Some(labels.only(&["host", "gpu"]))
}

/// What a series feeds, and which thing it is of, noted where it is new.
fn fed(
    rule: &MetricRule,
    labels: &Labels,
    gpu: Option<u32>,
    base: &Base,
    tables: &Tables,
    state: &mut State,
) -> Option<Fed> {
    let feed = rule.feed?;
    let at = match feed {
        Feed::GpuEnergy | Feed::GpuPower => gpu?,
        Feed::FbUsed | Feed::FbFree | Feed::FbReserved | Feed::FbTotal => {
            let names: Vec<&str> = GPU_LABELS.into_iter().chain(MIG_LABELS).collect();
            state.memories.find(labels.only(&names).with(&base.extra), Memory::new)
        }
        Feed::CpuSeconds | Feed::MemoryAvailable | Feed::MemoryTotal => {
            state.hosts.find(labels.only(&HOST_LABELS).with(&base.extra), Host::new)
        }
        Feed::FsAvail | Feed::FsSize | Feed::FsFilesFree | Feed::FsFiles => {
            if labels.get("fstype").is_some_and(|fstype| tables.skips_fstype(fstype)) {
                return None;
            }
            state.filesystems.find(labels.filter(|name| name != "device_error"), Filesystem::new)
        }
        Feed::DiskIo => state.disks.find(labels.clone(), |key| Reading::new("disk_busy_ratio", key)),
        Feed::TextfileMtime => state.textfiles.find(labels.clone(), |key| Reading::new("textfile_age_seconds", key)),
    };
    let idle = matches!(labels.get("mode"), Some("idle" | "iowait"));
    Some(Fed { feed, at, idle })
}
