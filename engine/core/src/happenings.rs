//! Windows of events, such as the Xids of one GPU.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::rule::EventStat;
use crate::time::Time;

/// The most events kept for one input and row; of more, the oldest are dropped.
pub const EVENTS_MAX: usize = 256;

/// The events of one target over a span.
#[derive(Debug)]
pub struct EventWindow {
    span: Duration,
    events: VecDeque<(Time, u32, Option<Arc<str>>)>,
}

impl EventWindow {
    /// An empty window.
    pub fn new(span: Duration) -> Self {
        EventWindow { span, events: VecDeque::new() }
    }

    /// Takes an event in.
    pub fn push(&mut self, time: Time, code: u32, job: Option<Arc<str>>) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back((time, code, job));
    }

    /// What is asked of the events with one of `codes` (none = all) at `now`; none where there is none to tell of.
    pub fn value(&mut self, now: Time, codes: &[u32], stat: EventStat) -> Option<f64> {
        let edge = now - self.span;
        self.events.retain(|(time, ..)| *time > edge);
        let wanted = self.events.iter().filter(|(_, code, _)| codes.is_empty() || codes.contains(code));
        match stat {
            EventStat::Count => Some(wanted.count() as f64),
            EventStat::Age => wanted.map(|(time, ..)| *time).max().map(|last| now.since(last).as_secs_f64()),
            EventStat::LastCode => wanted.max_by_key(|(time, ..)| *time).map(|(_, code, _)| f64::from(*code)),
            EventStat::DistinctJobs => Some(wanted.filter_map(|(.., job)| job.as_deref()).collect::<BTreeSet<_>>().len() as f64),
        }
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.events.capacity() * size_of::<(Time, u32, Option<Arc<str>>)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> EventWindow {
        let mut window = EventWindow::new(Duration::from_secs(60));
        for (second, code, job) in [(1, 13, "a"), (10, 31, "a"), (20, 13, "b")] {
            window.push(Time::from_millis(second * 1000), code, Some(job.into()));
        }
        window
    }

    #[test]
    fn answers_each_question() {
        let now = Time::from_millis(30_000);
        let cases = [
            (&[][..], EventStat::Count, Some(3.0)),
            (&[13][..], EventStat::Count, Some(2.0)),
            (&[31][..], EventStat::Age, Some(20.0)),
            (&[][..], EventStat::LastCode, Some(13.0)),
            (&[13][..], EventStat::DistinctJobs, Some(2.0)),
            (&[79][..], EventStat::Count, Some(0.0)),
            (&[79][..], EventStat::Age, None),
        ];
        for (codes, stat, expected) in cases {
            assert_eq!(window().value(now, codes, stat), expected, "{codes:?} {stat:?}");
        }
    }

    #[test]
    fn forgets_what_is_too_old_and_what_is_too_much() {
        assert_eq!(window().value(Time::from_millis(75_000), &[], EventStat::Count), Some(1.0));
        let mut full = EventWindow::new(Duration::from_secs(60));
        for _ in 0..EVENTS_MAX + 10 {
            full.push(Time::from_millis(1), 95, None);
        }
        assert_eq!(full.value(Time::from_millis(2), &[], EventStat::Count), Some(EVENTS_MAX as f64));
    }
}
