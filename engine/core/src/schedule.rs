//! One ordered map of deadlines in place of a timer per thing.

use std::collections::BTreeSet;

use crate::time::Time;

/// What is due. The order is the order of work within one moment: rules in the order in which they read each
/// other's derived metrics, then groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A rule's tick: its place in the order of evaluation.
    Rule(usize),
    /// Conditions that were kept over a restart and not told again end.
    Conditions,
    /// Groups have something to send.
    Groups,
}

/// The deadlines of one engine. Each [`Due`] has at most one.
#[derive(Debug, Default)]
pub struct Schedule {
    queue: BTreeSet<(Time, Due)>,
}

impl Schedule {
    /// Sets the deadline of `due`, in place of any that it had.
    pub fn set(&mut self, due: Due, at: Option<Time>) {
        self.queue.retain(|(_, other)| *other != due);
        self.queue.extend(at.map(|at| (at, due)));
    }

    /// Adds the next deadline of a `due` whose last one was just taken: no search for an old one.
    pub fn add(&mut self, due: Due, at: Time) {
        self.queue.insert((at, due));
    }

    /// The deadline of `due`.
    pub fn at(&self, due: Due) -> Option<Time> {
        self.queue.iter().find(|(_, other)| *other == due).map(|(at, _)| *at)
    }

    /// The first deadline.
    pub fn next(&self) -> Option<Time> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes the first thing due at or before `now`.
    pub fn take_due(&mut self, now: Time) -> Option<(Time, Due)> {
        let first = self.queue.first().filter(|(at, _)| *at <= now).copied()?;
        self.queue.remove(&first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_in_order_of_time_then_of_work() {
        let at = Time::from_millis;
        let mut schedule = Schedule::default();
        schedule.add(Due::Groups, at(10));
        schedule.add(Due::Rule(1), at(10));
        schedule.add(Due::Rule(0), at(10));
        schedule.add(Due::Rule(2), at(11));
        schedule.set(Due::Rule(2), Some(at(5)));
        assert_eq!(schedule.next(), Some(at(5)));
        let order: Vec<Due> = std::iter::from_fn(|| schedule.take_due(at(10))).map(|(_, due)| due).collect();
        assert_eq!(order, [Due::Rule(2), Due::Rule(0), Due::Rule(1), Due::Groups]);
        assert_eq!(schedule.next(), None);
    }
}
