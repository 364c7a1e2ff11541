//! How far the lanes are, for those who wait for them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What lanes are told: a number that grows at each wake-up, and whether to end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signal {
    pub generation: u64,
    pub stop: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct LaneState {
    /// The wake-up after which the lane last found nothing to do; none while it works.
    idle_since: Option<u64>,
    next_try_ms: Option<i64>,
}

#[derive(Debug, Default)]
struct State {
    lanes: Vec<LaneState>,
    ended: bool,
}

#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

impl Progress {
    pub fn new(lanes: usize) -> Self {
        let state = State { lanes: vec![LaneState::default(); lanes], ended: false };
        Progress { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane works.
    pub fn busy(&self, lane: usize) {
        self.lock().lanes[lane].idle_since = None;
    }

    /// A lane found nothing to do after the wake-up `generation`, and will look again at `next_try_ms`.
    pub fn idle(&self, lane: usize, generation: u64, next_try_ms: Option<i64>) {
        self.lock().lanes[lane] = LaneState { idle_since: Some(generation), next_try_ms };
        self.changed.notify_all();
    }

    /// All lanes have ended.
    pub fn ended(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// When a lane will look again.
    pub fn next_try_ms(&self, lane: usize) -> Option<i64> {
        self.lock().lanes.get(lane).and_then(|lane| lane.next_try_ms)
    }

    /// Waits until every lane found nothing to do after `generation`; says whether that came to pass in time.
    pub fn wait(&self, generation: u64, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if state.lanes.iter().all(|lane| lane.idle_since >= Some(generation)) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.ended || left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lanes_must_have_seen_the_wake_up() {
        let progress = Progress::new(2);
        assert!(!progress.wait(0, Duration::ZERO), "nobody has looked yet");
        progress.idle(0, 3, None);
        progress.idle(1, 2, Some(9));
        assert!(progress.wait(2, Duration::ZERO));
        assert!(!progress.wait(3, Duration::ZERO));
        progress.busy(0);
        assert!(!progress.wait(2, Duration::ZERO));
        assert_eq!(progress.next_try_ms(1), Some(9));
        progress.ended();
        assert!(!progress.wait(9, Duration::from_secs(3600)), "the end ends the wait");
        assert!(Progress::new(0).wait(7, Duration::ZERO));
    }
}
