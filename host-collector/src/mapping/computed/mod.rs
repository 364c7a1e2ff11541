//! Metrics that no source has and rules want: each one a small function over what a page told.

mod gpu;
mod host;
mod storage;

use std::time::Duration;

use watchfire_core::{Observation, Time};

use super::dropped::Dropped;
use super::slots::{Output, Slots};
use super::state::State;

/// A page whose samples are all in.
pub(super) struct Page<'m> {
    pub slots: &'m mut Slots,
    pub out: &'m mut Vec<Observation>,
    pub dropped: &'m mut Dropped,
    /// Where the page's observations begin in `out`.
    pub start: usize,
    pub now: Time,
    pub number: u64,
    /// How long a GPU may be absent before it counts as gone.
    pub missing_after: Duration,
}

impl Page<'_> {
    fn emit(&mut self, output: &mut Output, value: f64) {
        self.slots.emit_output(output, self.number, self.now, value, self.out);
    }
}

type Compute = fn(&mut State, &mut Page<'_>);

/// All computed metrics, in the order in which they are computed.
const COMPUTED: [(&str, Compute); 9] = [
    ("gpu_memory_used_ratio", gpu::memory_used_ratio),
    ("gpu_up", gpu::up),
    ("host_cpu_busy_ratio", host::cpu_busy_ratio),
    ("host_memory_available_ratio", host::memory_available_ratio),
    ("filesystem_avail_ratio", storage::avail_ratio),
    ("filesystem_files_free_ratio", storage::files_free_ratio),
    ("disk_busy_ratio", storage::disk_busy_ratio),
    ("textfile_age_seconds", storage::textfile_age_seconds),
    // Last: it takes back what the page said of a GPU.
    ("gpu_source_frozen", gpu::source_frozen),
];

/// The names of all computed metrics.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMPUTED.into_iter().map(|(name, _)| name)
}

pub(super) fn compute(state: &mut State, mut page: Page<'_>) {
    for (_, compute) in COMPUTED {
        compute(state, &mut page);
    }
}

/// `part` of `whole` as a ratio from 0 to 1; none where there is no whole.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| (part / whole).clamp(0.0, 1.0))
}
