//! NVML on a thread of its own: a call that hangs holds up nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use watchfire_core::{Observation, Time};

use super::NvmlSource;

/// A running reader. Dropping it asks the thread to end and does not wait: it may hang in the driver.
#[derive(Debug)]
pub struct NvmlHandle {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    missed: AtomicU64,
    finished: AtomicBool,
    /// When the last poll ended, or the thread began.
    finished_ms: AtomicI64,
}

impl NvmlHandle {
    /// Polls that were left out because one before took too long.
    pub fn polls_missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }

    /// When the last poll ended; when the reader was started, where none has.
    pub fn finished_at(&self) -> Time {
        Time::from_millis(self.shared.finished_ms.load(Ordering::Relaxed))
    }

    /// Whether any poll has ended.
    pub fn has_finished(&self) -> bool {
        self.shared.finished.load(Ordering::Relaxed)
    }
}

impl Drop for NvmlHandle {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Polls until the handle is dropped; each poll's samples are of `clock`'s time and go to `sink`.
///
/// # Errors
/// Where no thread can be had.
pub fn spawn(
    mut source: NvmlSource,
    clock: impl Fn() -> Time + Send + 'static,
    mut sink: impl FnMut(Vec<Observation>) + Send + 'static,
) -> std::io::Result<NvmlHandle> {
    let shared = Arc::new(Shared::default());
    shared.finished_ms.store(clock().as_millis(), Ordering::Relaxed);
    let seen = shared.clone();
    let interval = source.config().interval;
    let work = move || {
        let mut next = Instant::now();
        while !seen.stop.load(Ordering::Relaxed) {
            let mut observations = Vec::new();
            source.poll(clock(), &mut observations);
            seen.finished_ms.store(clock().as_millis(), Ordering::Relaxed);
            seen.finished.store(true, Ordering::Relaxed);
            sink(observations);
            next += interval;
            let missed = skip(&mut next, Instant::now(), interval);
            seen.missed.fetch_add(missed, Ordering::Relaxed);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    };
    std::thread::Builder::new().name("watchfire-nvml".into()).spawn(work)?;
    Ok(NvmlHandle { shared })
}

/// Moves the next poll past those whose time has gone.
fn skip(next: &mut Instant, now: Instant, interval: Duration) -> u64 {
    let mut missed = 0;
    while *next < now && !interval.is_zero() {
        *next += interval;
        missed += 1;
    }
    missed
}
