//! Moments on the engine's time line. The core never reads a clock: each call brings its own `now`.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, in milliseconds since the Unix epoch (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The Unix epoch.
    pub const EPOCH: Time = Time(0);
    /// A moment after every other.
    pub const MAX: Time = Time(i64::MAX);

    /// The moment `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Time(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Time passed since `earlier`; zero where `earlier` is later (a clock that stepped back).
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The first multiple of `step` (counted from the epoch) that is at or after this moment.
    /// A zero step gives the moment itself.
    pub fn align_up(self, step: Duration) -> Time {
        let step = millis(step);
        if step == 0 {
            return self;
        }
        let rest = self.0.rem_euclid(step);
        if rest == 0 { self } else { Time(self.0.saturating_add(step - rest)) }
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(millis(span)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(millis(span)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn align_up_lands_on_the_grid() {
        let step = Duration::from_secs(15);
        let cases = [(0, 0), (1, 15_000), (15_000, 15_000), (15_001, 30_000), (-1, 0)];
        for (from, to) in cases {
            assert_eq!(Time::from_millis(from).align_up(step), Time::from_millis(to), "from {from}");
        }
    }

    #[test]
    fn a_clock_that_stepped_back_gives_no_span() {
        assert_eq!(Time::from_millis(5).since(Time::from_millis(9)), Duration::ZERO);
    }
}
