//! The GPUs of one host, by UUID, and what is known of each between polls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use watchfire_core::sample::STALE_MARKER;
use watchfire_core::{Labels, Observation, Series, Time};

use super::outcome::Outcome;
use super::{PollReport, readings, tell};
use crate::mapping::pci;
use crate::metrics;

/// More power than this many times the enforced limit is a glitch (intel/xpumanager#130 saw 3.69e12 W).
const POWER_OVER_LIMIT: f64 = 2.0;

/// The GPUs of one host.
pub struct Gpus {
    host: String,
    interval: Duration,
    /// By UUID, or `index N` where none was ever read.
    known: BTreeMap<String, Gpu>,
    /// The UUID last seen at each index: a lost GPU no longer tells its own.
    at_index: HashMap<u32, String>,
}

/// One GPU.
struct Gpu {
    labels: Labels,
    series: HashMap<&'static str, Arc<Series>>,
    is_up: bool,
    /// What was logged of each metric.
    said: HashMap<&'static str, Outcome>,
    power_limit: f64,
    seen_at: Time,
}

impl Gpus {
    /// None known yet.
    pub fn new(host: String, interval: Duration) -> Self {
        Gpus { host, interval, known: BTreeMap::new(), at_index: HashMap::new() }
    }

    /// Reads each GPU; those that were known and are not there any more are told as lost.
    pub fn poll(&mut self, nvml: &Nvml, count: u32, now: Time, out: &mut Vec<Observation>, report: &mut PollReport) {
        let mut unreachable = Vec::new();
        for index in 0..count {
            match nvml.device_by_index(index).and_then(|device| Ok((self.identify(&device, index, now, out)?, device)))
            {
                Ok((uuid, device)) => self.read(&uuid, &device, now, out, report),
                Err(error) => unreachable.push((index, error)),
            }
        }
        // Only now is it known which GPUs are elsewhere.
        for (index, error) in unreachable {
            self.unreachable(index, &error, now, out, report);
        }
        self.tell_missing(now, out, report);
    }

    /// The UUID of a device, with its labels brought up to date.
    fn identify(
        &mut self,
        device: &Device<'_>,
        index: u32,
        now: Time,
        out: &mut Vec<Observation>,
    ) -> Result<String, NvmlError> {
        let uuid = device.uuid()?;
        let address = device.pci_info().map(|info| pci::normalise(&info.bus_id));
        let known = self.known.get(&uuid);
        let old = |name: &str| known.and_then(|gpu| gpu.labels.get(name)).unwrap_or("unknown").to_owned();
        let labels = Labels::new([
            ("host", self.host.clone()),
            ("gpu", index.to_string()),
            ("uuid", uuid.clone()),
            ("pci", address.unwrap_or_else(|_| old("pci"))),
            ("model", device.name().unwrap_or_else(|_| old("model"))),
        ]);
        self.at_index.insert(index, uuid.clone());
        let gpu = self.known.entry(uuid.clone()).or_insert_with(|| Gpu::new(labels.clone()));
        gpu.relabel(labels);
        // It was "index N" while it could not tell who it is; that one is not lost, it has a name now.
        if let Some(mut nameless) = self.known.remove(&format!("index {index}")) {
            nameless.up(now, self.interval, out);
        }
        Ok(uuid)
    }

    fn read(
        &mut self,
        uuid: &str,
        device: &Device<'_>,
        now: Time,
        out: &mut Vec<Observation>,
        report: &mut PollReport,
    ) {
        let interval = self.interval;
        let Some(gpu) = self.known.get_mut(uuid) else { return };
        gpu.seen_at = now;
        let mut lost = false;
        readings::read(device, &mut |metric, reading| {
            lost |= reading == Err(Outcome::Lost);
            gpu.take(metric, reading, now, interval, out, report);
        });
        if lost {
            gpu.down(now, interval, out, "it is lost (Xid 79 or alike)");
            report.lost.push(uuid.to_owned());
        } else {
            gpu.up(now, interval, out);
            report.gpus += 1;
        }
    }

    /// A GPU whose handle cannot be had keeps its last known identity.
    fn unreachable(
        &mut self,
        index: u32,
        error: &NvmlError,
        now: Time,
        out: &mut Vec<Observation>,
        report: &mut PollReport,
    ) {
        let name = self.name_at(index, now);
        let labels =
            || Labels::new([("host", self.host.clone()), ("gpu", index.to_string()), ("pci", "unknown".to_owned())]);
        let gpu = self.known.entry(name.clone()).or_insert_with(|| Gpu::new(labels()));
        gpu.seen_at = now;
        gpu.down(now, self.interval, out, &format!("NVML says: {error}"));
        report.errors.push((name.clone(), "handle", Outcome::from(error)));
        report.lost.push(name);
    }

    /// Who is at an index that does not answer: the one seen there last, unless that one was seen elsewhere meanwhile.
    fn name_at(&self, index: u32, now: Time) -> String {
        let last = self.at_index.get(&index);
        let is_gone = |uuid: &&String| self.known.get(*uuid).is_some_and(|gpu| gpu.seen_at < now);
        last.filter(is_gone).cloned().unwrap_or_else(|| format!("index {index}"))
    }

    fn tell_missing(&mut self, now: Time, out: &mut Vec<Observation>, report: &mut PollReport) {
        for (uuid, gpu) in self.known.iter_mut().filter(|(_, gpu)| gpu.seen_at < now) {
            gpu.down(now, self.interval, out, "NVML no longer lists it");
            report.lost.push(uuid.clone());
        }
    }

    /// The driver itself does not answer: nothing is known of any GPU, which is not the same as its being lost.
    pub fn all_silent(&mut self, now: Time, out: &mut Vec<Observation>) {
        for gpu in self.known.values_mut() {
            gpu.end_series(now, out, None);
        }
    }
}

impl Gpu {
    fn new(labels: Labels) -> Self {
        Gpu {
            labels,
            series: HashMap::new(),
            is_up: true,
            said: HashMap::new(),
            power_limit: f64::INFINITY,
            seen_at: Time::EPOCH,
        }
    }

    fn relabel(&mut self, labels: Labels) {
        if self.labels != labels {
            self.labels = labels;
            self.series.clear();
        }
    }

    fn series(&mut self, metric: &'static str, interval: Duration) -> &Arc<Series> {
        let labels = &self.labels;
        self.series.entry(metric).or_insert_with(|| Arc::new(Series::every(metric, labels.clone(), interval)))
    }

    fn take(
        &mut self,
        metric: &'static str,
        reading: Result<f64, Outcome>,
        now: Time,
        interval: Duration,
        out: &mut Vec<Observation>,
        report: &mut PollReport,
    ) {
        match reading {
            Ok(value) if self.is_plausible(metric, value) => {
                self.note(metric, None);
                tell(out, self.series(metric, interval), now, value);
            }
            Ok(_) => report.dropped += 1,
            Err(outcome) => {
                self.note(metric, Some(outcome));
                report.errors.push((self.name().to_owned(), metric, outcome));
            }
        }
    }

    fn is_plausible(&mut self, metric: &str, value: f64) -> bool {
        match metric {
            "gpu_power_limit_watts" => self.power_limit = value,
            "gpu_power_watts" if value > POWER_OVER_LIMIT * self.power_limit => return false,
            _ => {}
        }
        value.is_finite() && metrics::plausible(metric, value)
    }

    fn name(&self) -> &str {
        self.labels.get("uuid").or_else(|| self.labels.get("gpu")).unwrap_or("unknown")
    }

    /// Logs a reading's outcome where it is another than before.
    fn note(&mut self, metric: &'static str, outcome: Option<Outcome>) {
        let before = self.said.get(metric).copied();
        if before == outcome {
            return;
        }
        let gpu = self.name().to_owned();
        match outcome {
            Some(outcome) if outcome.is_permanent() => {
                tracing::info!(gpu, metric, ?outcome, "not readable on this GPU")
            }
            Some(outcome) => tracing::warn!(gpu, metric, ?outcome, "reading fails"),
            None => tracing::info!(gpu, metric, "reading works again"),
        }
        match outcome {
            Some(outcome) => self.said.insert(metric, outcome),
            None => self.said.remove(metric),
        };
    }

    fn up(&mut self, now: Time, interval: Duration, out: &mut Vec<Observation>) {
        if !std::mem::replace(&mut self.is_up, true) {
            tracing::info!(gpu = self.name(), "the GPU answers again");
        }
        tell(out, self.series("gpu_up", interval), now, 1.0);
    }

    fn down(&mut self, now: Time, interval: Duration, out: &mut Vec<Observation>, why: &str) {
        if std::mem::replace(&mut self.is_up, false) {
            tracing::error!(gpu = self.name(), pci = self.labels.get("pci"), why, "the GPU does not answer");
        }
        // Also what a half-lost GPU still told at this poll.
        self.end_series(now, out, Some("gpu_up"));
        tell(out, self.series("gpu_up", interval), now, 0.0);
    }

    /// Ends the series, once: values of a GPU that is gone are not its values.
    fn end_series(&mut self, now: Time, out: &mut Vec<Observation>, but: Option<&str>) {
        let marker = f64::from_bits(STALE_MARKER);
        out.retain(|observation| !self.series.values().any(|series| Arc::ptr_eq(series, &observation.series)));
        for (_, series) in self.series.iter().filter(|(metric, _)| Some(**metric) != but) {
            tell(out, series, now, marker);
        }
        self.series.retain(|metric, _| Some(*metric) == but);
    }
}
