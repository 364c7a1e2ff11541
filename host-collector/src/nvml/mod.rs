//! NVML: every reading with its own outcome, every GPU by its UUID, one lost GPU never hiding the others.
//!
//! Calls that a driver lacks, answers that it cannot give and GPUs that are gone are states, told by their own
//! metric and logged when they change, not at each poll.

mod driver;
mod gpu;
mod outcome;
mod readings;
mod thread;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::{Labels, Observation, Series, Time};

use driver::Driver;
pub use driver::{State, retry_after};
use gpu::Gpus;
pub use outcome::Outcome;
pub use thread::{NvmlHandle, spawn};

/// How NVML is read.
#[derive(Clone, Debug)]
pub struct NvmlConfig {
    /// The library; `libnvidia-ml.so.1` if none.
    pub library: Option<PathBuf>,
    /// How often it is polled: samples go stale after three polls without them.
    pub interval: Duration,
    /// The label `host`.
    pub host: String,
}

/// What one poll found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollReport {
    /// GPUs that answered.
    pub gpus: usize,
    /// UUIDs (or `index N`) of GPUs that are lost or gone.
    pub lost: Vec<String>,
    /// Calls that failed: the GPU, the metric, how.
    pub errors: Vec<(String, &'static str, Outcome)>,
    /// Readings dropped because no sensor can say them.
    pub dropped: usize,
}

/// The NVML of one host.
pub struct NvmlSource {
    config: NvmlConfig,
    driver: Driver,
    gpus: Gpus,
    nvml_up: Arc<Series>,
    nvml_gpus: Arc<Series>,
}

impl NvmlSource {
    /// Nothing is loaded before the first poll.
    pub fn new(config: NvmlConfig) -> Self {
        let labels = Labels::new([("host", config.host.as_str())]);
        let series = |metric: &str| Arc::new(Series::every(metric, labels.clone(), config.interval));
        NvmlSource {
            nvml_up: series("nvml_up"),
            nvml_gpus: series("nvml_gpus"),
            driver: Driver::new(config.library.clone()),
            gpus: Gpus::new(config.host.clone(), config.interval),
            config,
        }
    }

    /// How it is read.
    pub fn config(&self) -> &NvmlConfig {
        &self.config
    }

    /// The state of the driver at the last poll.
    pub fn state(&self) -> &State {
        self.driver.state()
    }

    /// Reads all GPUs and appends what they say.
    pub fn poll(&mut self, now: Time, out: &mut Vec<Observation>) -> PollReport {
        let mut report = PollReport::default();
        let count = self.driver.get(now).and_then(|nvml| nvml.device_count().map_err(driver::state_of));
        match count {
            Ok(count) => {
                self.driver.works();
                tell(out, &self.nvml_up, now, 1.0);
                tell(out, &self.nvml_gpus, now, f64::from(count));
                if let Ok(nvml) = self.driver.get(now) {
                    self.gpus.poll(nvml, count, now, out, &mut report);
                }
            }
            Err(state) => self.down(state, now, out),
        }
        report
    }

    /// The driver does not answer. Where there is no NVIDIA device at all that is no fault.
    fn down(&mut self, state: State, now: Time, out: &mut Vec<Observation>) {
        let is_absent = state == State::NoDevice;
        self.driver.failed(state, now);
        if !is_absent {
            tell(out, &self.nvml_up, now, 0.0);
            self.gpus.all_silent(now, out);
        }
    }
}

pub(crate) fn tell(out: &mut Vec<Observation>, series: &Arc<Series>, time: Time, value: f64) {
    out.push(Observation { series: series.clone(), time, value });
}
