//! What came of one try, and when the next one is due.

use std::time::Duration;

/// The wait after the first failed try.
pub const RETRY_FIRST: Duration = Duration::from_secs(5);
/// The longest wait between two tries that the receiver did not ask for.
pub const RETRY_MAX: Duration = Duration::from_secs(5 * 60);
/// The longest wait that a receiver may ask for (`Retry-After`); a longer one is cut to this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// The share of a wait that is taken off at random, so that many hosts do not come back together.
const JITTER_SHARE: f64 = 0.2;

/// What came of one try to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// It may work later.
    Retry {
        /// How long to wait, where the receiver or its protocol says so; else the wait grows with each try.
        after: Option<Duration>,
        /// What went wrong. Never holds a secret.
        why: String,
    },
    /// It will not work until something is changed.
    Refused {
        /// What went wrong and what to do. Never holds a secret.
        why: String,
    },
}

impl Verdict {
    /// To be tried again, with growing waits.
    pub fn retry(why: impl Into<String>) -> Self {
        Verdict::Retry { after: None, why: why.into() }
    }

    /// To be given up.
    pub fn refused(why: impl Into<String>) -> Self {
        Verdict::Refused { why: why.into() }
    }

    /// What went wrong.
    pub fn why(&self) -> Option<&str> {
        match self {
            Verdict::Delivered => None,
            Verdict::Retry { why, .. } | Verdict::Refused { why } => Some(why),
        }
    }
}

/// When to try again, in milliseconds since the Unix epoch, after `attempts` failed tries in a row (1 after the
/// first). The wait doubles from [`RETRY_FIRST`] to [`RETRY_MAX`], less up to a fifth by `jitter` (0 to 1);
/// `after` wins over all that, up to [`RETRY_AFTER_MAX`].
pub fn next_try(attempts: u32, after: Option<Duration>, now_ms: i64, jitter: f64) -> i64 {
    let wait = match after {
        Some(after) => after.min(RETRY_AFTER_MAX),
        None => backoff(attempts).mul_f64(1.0 - JITTER_SHARE * jitter.clamp(0.0, 1.0)),
    };
    now_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

fn backoff(attempts: u32) -> Duration {
    // Beyond 2^16 the wait is at its maximum anyway.
    let doublings = attempts.saturating_sub(1).min(16);
    RETRY_FIRST.saturating_mul(1 << doublings).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_minutes() {
        let waits: Vec<i64> = (0..10).map(|attempts| next_try(attempts, None, 0, 0.0) / 1000).collect();
        assert_eq!(waits, [5, 5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(next_try(u32::MAX, None, 0, 0.0), 300_000);
        assert_eq!(next_try(u32::MAX, None, i64::MAX, 0.0), i64::MAX);
    }

    #[test]
    fn jitter_takes_off_at_most_a_fifth() {
        for (jitter, wait_ms) in [(0.0, 5000), (0.5, 4500), (1.0, 4000), (7.0, 4000), (-1.0, 5000)] {
            assert_eq!(next_try(1, None, 0, jitter), wait_ms);
        }
    }

    #[test]
    fn what_the_receiver_asks_for_wins_up_to_an_hour() {
        let after = |seconds| Some(Duration::from_secs_f64(seconds));
        assert_eq!(next_try(9, after(7.0), 1000, 1.0), 8000);
        assert_eq!(next_try(1, after(1.5), 1000, 1.0), 2500);
        assert_eq!(next_try(1, after(1e9), 0, 0.0), 3_600_000);
    }
}
