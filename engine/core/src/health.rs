//! How a failing rule is retried, and when it is given up for a while.

use std::collections::VecDeque;
use std::time::Duration;

use crate::rule::RuleFailure;
use crate::time::Time;

/// Failures in a row that put a rule into quarantine.
pub const FAILURES_IN_A_ROW_MAX: u32 = 3;
/// Failures within [`FAILURE_WINDOW`] that put a rule into quarantine.
pub const FAILURES_IN_WINDOW_MAX: usize = 5;
/// The window of [`FAILURES_IN_WINDOW_MAX`].
pub const FAILURE_WINDOW: Duration = Duration::from_secs(600);
/// First wait of a quarantined rule; doubled at each failed retry.
pub const QUARANTINE_FIRST: Duration = Duration::from_secs(30);
/// Longest wait of a quarantined rule.
pub const QUARANTINE_MAX: Duration = Duration::from_secs(3600);
/// Inconclusive failures in a row that count as one real failure each from then on.
pub const INCONCLUSIVE_MAX: u32 = 3;

/// The health of one rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    in_a_row: u32,
    inconclusive: u32,
    recent: VecDeque<Time>,
    quarantine: Option<Duration>,
    /// The wait of the quarantine that it came out of last: it goes on doubling where the rule fails again soon.
    left: Option<Duration>,
    last: Option<RuleFailure>,
    failures_total: u64,
}

/// What is kept of a rule's health over a restart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthRecord {
    /// Failures in a row.
    pub in_a_row: u32,
    /// Inconclusive failures since the last good answer.
    pub inconclusive: u32,
    /// The failures within [`FAILURE_WINDOW`].
    pub recent: Vec<Time>,
    /// The wait of a quarantined rule.
    pub quarantine: Option<Duration>,
    /// Why the last call failed.
    pub last: Option<String>,
    /// Failures, ever.
    pub failures_total: u64,
}

impl Health {
    /// What is to be kept over a restart.
    pub fn record(&self) -> HealthRecord {
        HealthRecord {
            in_a_row: self.in_a_row,
            inconclusive: self.inconclusive,
            recent: self.recent.iter().copied().collect(),
            quarantine: self.quarantine,
            last: self.last.as_ref().map(ToString::to_string),
            failures_total: self.failures_total,
        }
    }

    /// The health that was kept. Times after `now`, of a clock that was ahead, count as now.
    pub fn restored(record: &HealthRecord, now: Time) -> Self {
        Health {
            in_a_row: record.in_a_row,
            inconclusive: record.inconclusive,
            recent: record.recent.iter().rev().take(FAILURES_IN_WINDOW_MAX).rev().map(|at| (*at).min(now)).collect(),
            quarantine: record.quarantine.map(|wait| wait.min(QUARANTINE_MAX)),
            left: None,
            last: record.last.clone().map(RuleFailure::Kept),
            failures_total: record.failures_total,
        }
    }

    /// Whether the rule is quarantined.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine.is_some()
    }

    /// How long a quarantined rule waits from its last failure to its next try.
    pub fn quarantined_for(&self) -> Option<Duration> {
        self.quarantine
    }

    /// Whether the rule's last call failed.
    pub fn is_failing(&self) -> bool {
        self.last.is_some()
    }

    /// Why the rule's last call failed.
    pub fn last_failure(&self) -> Option<&RuleFailure> {
        self.last.as_ref()
    }

    /// How many of its calls have failed since it was first loaded, restarts included.
    pub fn failures_total(&self) -> u64 {
        self.failures_total
    }

    /// Notes a good answer; that of a quarantined rule was a try in the shadow, and brings it back. True where the
    /// rule had been failing.
    pub fn succeeded(&mut self) -> bool {
        self.in_a_row = 0;
        self.inconclusive = 0;
        self.left = self.quarantine.take().or(self.left);
        self.last.take().is_some()
    }

    /// Notes a failure at `now`; answers how long to wait before the next call. `interval` is the rule's own.
    pub fn failed(&mut self, now: Time, failure: RuleFailure, interval: Duration) -> Duration {
        self.failures_total += 1;
        let counts = !failure.is_inconclusive() || self.inconclusive + 1 >= INCONCLUSIVE_MAX;
        self.inconclusive += u32::from(failure.is_inconclusive());
        self.last = Some(failure);
        if !counts {
            return self.quarantine.unwrap_or_default().max(interval);
        }
        self.count(now);
        self.wait(interval)
    }

    fn count(&mut self, now: Time) {
        self.in_a_row += 1;
        self.recent.push_back(now);
        self.recent.retain(|at| now.since(*at) < FAILURE_WINDOW);
        // A rule that was good for a whole window begins anew.
        if self.recent.len() == 1 && self.quarantine.is_none() {
            self.left = None;
        }
    }

    fn wait(&mut self, interval: Duration) -> Duration {
        let given_up = self.in_a_row >= FAILURES_IN_A_ROW_MAX || self.recent.len() >= FAILURES_IN_WINDOW_MAX;
        if given_up {
            let wait =
                self.quarantine.or(self.left.take()).map_or(QUARANTINE_FIRST, |last| (last * 2).min(QUARANTINE_MAX));
            self.quarantine = Some(wait);
            return wait.max(interval);
        }
        interval.saturating_mul(2u32.pow(self.in_a_row.min(FAILURES_IN_A_ROW_MAX) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(5);

    fn trap() -> RuleFailure {
        RuleFailure::Trap("unreachable".into())
    }

    #[test]
    fn backs_off_then_quarantines_then_doubles_up_to_an_hour() {
        let mut health = Health::default();
        let waits: Vec<u64> =
            (0..12).map(|n| health.failed(Time::from_millis(n * 1000), trap(), INTERVAL).as_secs()).collect();
        assert_eq!(waits, [5, 10, 30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        assert!(health.is_quarantined());
        assert!(health.succeeded());
        assert!(!health.is_quarantined());
    }

    #[test]
    fn five_failures_in_ten_minutes_quarantine_even_with_good_ticks_between() {
        let mut health = Health::default();
        for n in 0..5 {
            assert!(!health.is_quarantined(), "after {n} failures");
            health.failed(Time::from_millis(n * 60_000), trap(), INTERVAL);
            if n < 4 {
                health.succeeded();
            }
        }
        assert!(health.is_quarantined());
    }

    #[test]
    fn a_stalled_machine_is_not_the_rules_fault_until_it_repeats() {
        let mut health = Health::default();
        let stall = || RuleFailure::Deadline { limit: Duration::from_millis(250) };
        for n in 0..2 {
            assert_eq!(health.failed(Time::from_millis(n), stall(), INTERVAL), INTERVAL);
        }
        for n in 2..5 {
            health.failed(Time::from_millis(n), stall(), INTERVAL);
        }
        assert!(health.is_quarantined());
    }

    /// Each state met by each event: what it becomes, and how long the next call waits. `F` fails, `S` stalls, `g` is
    /// a good answer; a call a second.
    #[test]
    fn the_table_of_all_states() {
        let quarantined = |seconds| (Some(seconds), seconds);
        let table: [(&str, (Option<u64>, u64)); 14] = [
            ("F", (None, 5)),
            ("FF", (None, 10)),
            ("FFF", quarantined(30)),
            ("FFFF", quarantined(60)),
            ("FgF", (None, 5)),
            ("FFgFF", (None, 10)),
            ("FgFgFgFgF", quarantined(30)),
            ("S", (None, 5)),
            ("SS", (None, 5)),
            ("SSS", (None, 5)),
            ("SSSSS", quarantined(30)),
            ("FFFS", quarantined(30)),
            ("FFFFS", quarantined(60)),
            ("FFFgF", (None, 5)),
        ];
        for (events, (wait, next)) in table {
            let (health, waited) = run(events);
            assert_eq!(
                (health.quarantined_for().map(|wait| wait.as_secs()), waited.as_secs()),
                (wait, next),
                "{events}"
            );
            assert_eq!(health.is_quarantined(), wait.is_some(), "{events}");
        }
    }

    fn run(events: &str) -> (Health, Duration) {
        let (mut health, mut waited) = (Health::default(), Duration::ZERO);
        for (second, event) in (0..).zip(events.chars()) {
            let failure = match event {
                'F' => trap(),
                'S' => RuleFailure::Deadline { limit: Duration::from_millis(250) },
                _ => {
                    health.succeeded();
                    continue;
                }
            };
            waited = health.failed(Time::from_millis(second * 1000), failure, INTERVAL);
        }
        (health, waited)
    }

    #[test]
    fn a_rule_that_comes_back_only_to_fail_waits_longer_each_time_until_it_was_good_for_a_while() {
        let (mut health, _) = run("FFFFg");
        assert_eq!(health.failed(Time::from_millis(8000), trap(), INTERVAL).as_secs(), 120, "60 s doubled, not 30 s");
        health.succeeded();
        let later = Time::from_millis(8000) + FAILURE_WINDOW;
        let waits: Vec<u64> = (0..3).map(|_| health.failed(later, trap(), INTERVAL).as_secs()).collect();
        assert_eq!(waits, [5, 10, 30]);
    }
}
