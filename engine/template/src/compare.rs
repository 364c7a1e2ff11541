//! Whether what was seen is what was expected.

use std::collections::VecDeque;

use crate::scenario::{Expected, Seen};
use crate::timeline;

/// What is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The expectations that nothing was seen for, by their number.
    pub missing: Vec<usize>,
    /// The transitions that nothing expects, by their number.
    pub unexpected: Vec<usize>,
    /// For each transition, the number of the expectation that it is taken for.
    pub partner: Vec<Option<usize>>,
}

/// Compares what was expected with what was seen: one for one and in order, where transitions of one moment stand in
/// any order. Expectations that all have a moment may be written in any order.
pub fn difference(expect: &[Expected], seen: &[Seen]) -> Option<Difference> {
    let mut order: Vec<usize> = (0..expect.len()).collect();
    if expect.iter().all(|expected| expected.at.is_some()) {
        order.sort_by_key(|at| expect[*at].at);
    }
    let wanted: Vec<&Expected> = order.iter().map(|at| &expect[*at]).collect();
    if wanted.len() == seen.len() && moments_agree(&wanted, seen) {
        return None;
    }
    let partner = pair(&wanted, &seen.iter().collect::<Vec<_>>());
    let partner: Vec<Option<usize>> = partner.into_iter().map(|at| at.map(|at| order[at])).collect();
    let missing = (0..expect.len()).filter(|at| !partner.contains(&Some(*at))).collect();
    let unexpected = (0..seen.len()).filter(|at| partner[*at].is_none()).collect();
    Some(Difference { missing, unexpected, partner })
}

/// As [`difference`], told in words.
///
/// # Errors
/// What is missing, and what is there and was not expected.
pub fn compare(expect: &[Expected], seen: &[Seen]) -> Result<(), String> {
    difference(expect, seen).map_or(Ok(()), |difference| Err(difference.in_words(expect, seen)))
}

impl Difference {
    /// The transitions that are missing, and those that nothing expects, one line each.
    pub fn in_words(&self, expect: &[Expected], seen: &[Seen]) -> String {
        let missing: Vec<&Expected> = self.missing.iter().map(|at| &expect[*at]).collect();
        let left: Vec<&Seen> = self.unexpected.iter().map(|at| &seen[*at]).collect();
        let order = if missing.is_empty() && left.is_empty() { "the order differs\n" } else { "" };
        timeline::list(seen, &missing, &left) + order
    }
}

/// Whether the transitions of each moment are those that are expected next. There are as many of both.
fn moments_agree(mut wanted: &[&Expected], seen: &[Seen]) -> bool {
    seen.chunk_by(|one, other| one.transition.time == other.transition.time).all(|chunk| {
        let (now, later) = wanted.split_at(chunk.len());
        wanted = later;
        let chunk: Vec<&Seen> = chunk.iter().collect();
        pair(now, &chunk).iter().all(Option::is_some)
    })
}

/// For each transition the number of the expectation that it is taken for, such that as many as can be are paired
/// (augmenting paths: an expectation that fits two leaves the one that another needs).
fn pair(wanted: &[&Expected], seen: &[&Seen]) -> Vec<Option<usize>> {
    let mut partner = vec![None; seen.len()];
    for at in 0..wanted.len() {
        place(at, wanted, seen, &mut partner);
    }
    partner
}

/// Finds a transition for one more expectation, others moving on where they can.
fn place(first: usize, wanted: &[&Expected], seen: &[&Seen], partner: &mut [Option<usize>]) {
    let mut reached_by = vec![None; seen.len()];
    let mut open = VecDeque::from([first]);
    while let Some(at) = open.pop_front() {
        for to in 0..seen.len() {
            if reached_by[to].is_some() || !wanted[at].matches(seen[to]) {
                continue;
            }
            reached_by[to] = Some(at);
            match partner[to] {
                Some(other) => open.push_back(other),
                None => return move_on(to, &reached_by, partner),
            }
        }
    }
}

/// Gives a free transition to the expectation that reached it, and the one that it leaves to the one before.
fn move_on(free: usize, reached_by: &[Option<usize>], partner: &mut [Option<usize>]) {
    let mut to = Some(free);
    while let Some(seen) = to {
        to = partner.iter().position(|other| *other == reached_by[seen]);
        partner[seen] = reached_by[seen];
    }
}
