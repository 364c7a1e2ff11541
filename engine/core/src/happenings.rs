//! Bounded windows over events, such as the Xids of one GPU.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::rule::EventStat;
use crate::time::Time;

/// The most entries of a window.
pub const EVENTS_MAX: usize = 256;
/// Equal events (same code, same job) within this part of the span share one entry, which leaves the window with
/// its newest event. So the floods of a few codes at once neither fill the window nor are miscounted.
pub const SHARED_PART: u32 = 64;

#[derive(Clone, Debug)]
struct Entry {
    /// Of the first event in it.
    first_at: Time,
    /// Of the newest event in it.
    time: Time,
    code: u32,
    job: Option<Arc<str>>,
    count: u64,
}

/// The events of one target over a span, in order of time.
#[derive(Clone, Debug)]
pub struct EventWindow {
    span: Duration,
    entries: VecDeque<Entry>,
    dropped: u64,
}

impl EventWindow {
    /// An empty window.
    pub fn new(span: Duration) -> Self {
        EventWindow { span, entries: VecDeque::new(), dropped: 0 }
    }

    /// Takes an event in. Where the window is full, the oldest entry gives way.
    pub fn push(&mut self, time: Time, code: u32, job: Option<Arc<str>>) {
        let (first_at, count) = self.take_equal(time, code, job.as_deref()).unwrap_or((time, 0));
        let at = self.entries.partition_point(|entry| entry.time <= time);
        self.entries.insert(at, Entry { first_at, time, code, job, count: count + 1 });
        if self.entries.len() > EVENTS_MAX {
            self.dropped += self.entries.pop_front().map_or(0, |entry| entry.count);
        }
    }

    /// Takes out the entry that an event of this moment shares: its beginning and its count.
    fn take_equal(&mut self, time: Time, code: u32, job: Option<&str>) -> Option<(Time, u64)> {
        let part = self.span / SHARED_PART;
        let shares = |entry: &Entry| {
            entry.code == code && entry.job.as_deref() == job && entry.time <= time && time.since(entry.first_at) < part
        };
        let near = (0..self.entries.len()).rev().take_while(|at| time.since(self.entries[*at].time) < part);
        let at = near.into_iter().find(|at| shares(&self.entries[*at]))?;
        self.entries.remove(at).map(|entry| (entry.first_at, entry.count))
    }

    /// What is asked of the events with one of `codes` (of all where there are none) in `(now - span, now]`:
    /// `Count` and `DistinctJobs` are 0 where there is none, `Age` (in seconds) and `LastCode` are `None`. Events
    /// without a job belong to no job.
    pub fn value(&mut self, now: Time, codes: &[u32], stat: EventStat) -> Option<f64> {
        self.expire(now);
        let mut found = self.entries.iter().filter(|entry| codes.is_empty() || codes.contains(&entry.code));
        match stat {
            EventStat::Count => Some(found.map(|entry| entry.count).sum::<u64>() as f64),
            EventStat::Age => found.next_back().map(|entry| now.since(entry.time).as_secs_f64()),
            EventStat::LastCode => found.next_back().map(|entry| f64::from(entry.code)),
            EventStat::DistinctJobs => {
                Some(found.filter_map(|entry| entry.job.as_deref()).collect::<BTreeSet<_>>().len() as f64)
            }
        }
    }

    fn expire(&mut self, now: Time) {
        let edge = now - self.span;
        while self.entries.front().is_some_and(|entry| entry.time <= edge) {
            self.entries.pop_front();
        }
    }

    /// How many events gave way to newer ones before they were too old.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes kept, the window itself included; the texts of jobs left out.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.entries.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use EventStat::{Age, Count, DistinctJobs, LastCode};

    const SPAN: Duration = Duration::from_secs(600);

    fn at(second: i64) -> Time {
        Time::from_millis(second * 1000)
    }

    fn window(events: &[(i64, u32, &str)]) -> EventWindow {
        let mut window = EventWindow::new(SPAN);
        for (second, code, job) in events {
            window.push(at(*second), *code, (!job.is_empty()).then(|| (*job).into()));
        }
        window
    }

    #[test]
    fn answers_by_code_and_window() {
        let mut window = window(&[(0, 79, "a"), (100, 13, "a"), (200, 94, "b"), (300, 13, ""), (350, 94, "b")]);
        let cases: [(i64, &[u32], EventStat, Option<f64>); 12] = [
            (400, &[], Count, Some(5.0)),
            (400, &[13], Count, Some(2.0)),
            (400, &[13, 79], Count, Some(3.0)),
            (400, &[48], Count, Some(0.0)),
            (400, &[], Age, Some(50.0)),
            (400, &[79], Age, Some(400.0)),
            (400, &[48], Age, None),
            (400, &[13, 79], LastCode, Some(13.0)),
            (400, &[48], LastCode, None),
            (400, &[], DistinctJobs, Some(2.0)),
            (599, &[79], Count, Some(1.0)),
            (600, &[79], Count, Some(0.0)),
        ];
        for (now, codes, stat, expected) in cases {
            assert_eq!(window.value(at(now), codes, stat), expected, "{stat:?} of {codes:?} at {now}");
        }
        assert_eq!(window.value(at(5000), &[], Age), None);
    }

    #[test]
    fn late_events_find_their_place() {
        let mut window = window(&[(100, 1, ""), (50, 2, ""), (75, 3, "")]);
        assert_eq!(window.value(at(100), &[], LastCode), Some(1.0));
        assert_eq!(window.value(at(100), &[2, 3], LastCode), Some(3.0));
        assert_eq!(window.value(at(650), &[], Count), Some(2.0));
    }

    #[test]
    fn a_flood_of_one_code_is_counted_in_full_and_hides_no_other() {
        let mut window = EventWindow::new(SPAN);
        for n in 0..800_000i64 {
            window.push(Time::from_millis(n / 2), 31, Some("job".into()));
            if n == 700_001 {
                window.push(Time::from_millis(n / 2), 79, None);
            }
        }
        assert_eq!(window.value(at(400), &[31], Count), Some(800_000.0));
        assert_eq!(window.value(at(400), &[79], Count), Some(1.0));
        let later = window.value(at(800), &[31], Count).unwrap();
        assert!((400_000.0..=400_000.0 + 20_000.0).contains(&later), "half of it has left: {later}");
        assert_eq!(window.dropped(), 0);
        assert!(window.bytes() < 20_000, "{} bytes", window.bytes());
    }

    #[test]
    fn a_full_window_lets_the_oldest_go_and_counts_it() {
        let mut window = EventWindow::new(SPAN);
        for code in 0..300 {
            window.push(at(1), code, None);
        }
        assert_eq!(window.value(at(1), &[], Count), Some(EVENTS_MAX as f64));
        assert_eq!(window.value(at(1), &[], LastCode), Some(299.0));
        assert_eq!(window.dropped(), 44);
    }
}
