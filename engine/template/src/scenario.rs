//! Scenarios: samples in, alerts out, on one virtual time line.

use std::sync::Arc;
use std::time::Duration;

use watchfire_core::{Cause, Labels, Occurrence, Series, Severity, State, Time, Transition};
use watchfire_door::{Errors, Map, Node, Place};

use crate::timeline::{self, values};

/// Moment 0 of each scenario: 2026-01-01T00:00:00Z.
pub const START: Time = Time::from_millis(1_767_225_600_000);

/// The most intervals that a scenario may last.
const STEPS_MAX: u128 = 1_000_000;

/// One scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub name: String,
    /// Time between the values of a series.
    pub interval: Duration,
    /// Series with their values; none = no sample at that moment.
    pub series: Vec<(Arc<Series>, Vec<Option<f64>>)>,
    /// What happens besides samples.
    pub events: Vec<Occurrence>,
    /// All transitions that must be seen, in order; those of the same moment in any order.
    pub expect: Vec<Expected>,
    /// The line and column of `expect:`, for `--update`.
    pub expect_place: Place,
    /// Only these rules run; all if empty.
    pub rules: Vec<String>,
    /// The template's parameters.
    pub parameters: std::collections::BTreeMap<String, Node>,
    /// When the scenario ends.
    pub end: Time,
}

/// One transition that must be seen. What is none may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// When.
    pub at: Option<Time>,
    /// Which alert.
    pub alert: String,
    /// To which state.
    pub state: Option<State>,
    /// How bad.
    pub severity: Option<Severity>,
    /// Its cause.
    pub cause: Option<Cause>,
    /// The value shown.
    pub value: Option<f64>,
    /// Labels that it must have.
    pub labels: Labels,
    /// A part of its evidence.
    pub note: Option<String>,
    /// Its summary.
    pub summary: Option<String>,
}

/// One transition that was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The transition.
    pub transition: Transition,
    /// Its summary.
    pub summary: String,
}

/// Reads a scenario file.
pub fn read(file: &str, text: &str, errors: &mut Errors) -> Option<Scenario> {
    let mut map = watchfire_door::read(file, text, errors)?.map(errors)?;
    let name = map.require("scenario", errors).and_then(|node| node.word(errors));
    let interval =
        map.require("interval", errors).and_then(|node| node.duration(errors)).filter(|span| !span.is_zero());
    let stale_after = map.take("stale_after").and_then(|node| node.duration(errors));
    let series = read_series(&mut map, stale_after.unwrap_or(Series::STALE_AFTER_DEFAULT), errors);
    let events = list(&mut map, "events", errors).iter().filter_map(|node| event(node, errors)).collect();
    let expect_node = map.require("expect", errors);
    let nodes = expect_node.as_ref().and_then(|node| node.list(errors)).unwrap_or_default();
    let expect = nodes.iter().filter_map(|node| expected(node, errors)).collect();
    let rules = list(&mut map, "rules", errors).iter().filter_map(|node| node.word(errors)).collect();
    let parameters = map.take("parameters").and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
    let end = map.take("end").and_then(|node| node.duration(errors));
    map.finish(errors);
    let interval = interval?;
    let longest = series.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let steps = end.unwrap_or_default().as_millis() / interval.as_millis().max(1);
    if steps > STEPS_MAX {
        errors.add(
            &expect_node.as_ref()?.place().clone(),
            format!("`end` is {steps} intervals away; at most {STEPS_MAX}"),
        );
    }
    let last = START + interval * u32::try_from(longest.saturating_sub(1)).unwrap_or(u32::MAX);
    Some(Scenario {
        name: name?,
        interval,
        series,
        events,
        expect,
        expect_place: expect_node?.place().clone(),
        rules,
        parameters: parameters.into_iter().map(|(name, _, node)| (name, node)).collect(),
        end: end.map_or(last, |end| START + end).max(last),
    })
}

fn list(map: &mut Map, key: &str, errors: &mut Errors) -> Vec<Node> {
    map.take(key).and_then(|node| node.list(errors)).unwrap_or_default()
}

fn read_series(map: &mut Map, stale_after: Duration, errors: &mut Errors) -> Vec<(Arc<Series>, Vec<Option<f64>>)> {
    let nodes = map.take("series").and_then(|node| node.list(errors)).unwrap_or_default();
    nodes.iter().filter_map(|node| one_series(node, stale_after, errors)).collect()
}

fn one_series(node: &Node, stale_after: Duration, errors: &mut Errors) -> Option<(Arc<Series>, Vec<Option<f64>>)> {
    let mut map = node.map(errors)?;
    let metric = map.require("metric", errors).and_then(|node| node.word(errors));
    let labels = labels(&mut map, errors);
    let values = map.require("values", errors).and_then(|node| node.parse_with(errors, values));
    let stale_after = map.take("stale_after").and_then(|node| node.duration(errors)).unwrap_or(stale_after);
    map.finish(errors);
    Some((Arc::new(Series { metric: metric?.into(), labels, stale_after }), values?))
}

fn labels(map: &mut Map, errors: &mut Errors) -> Labels {
    let entries = map.take("labels").and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
    Labels::new(entries.into_iter().filter_map(|(name, _, node)| Some((name, node.text(errors)?))))
}

fn event(node: &Node, errors: &mut Errors) -> Option<Occurrence> {
    let mut map = node.map(errors)?;
    let at = map.require("at", errors).and_then(|node| node.duration(errors));
    let kind = map.require("kind", errors).and_then(|node| node.word(errors));
    let code = map.require("code", errors).and_then(|node| node.parse::<u32>(errors));
    let job = map.take("job").and_then(|node| node.word(errors));
    let labels = labels(&mut map, errors);
    map.finish(errors);
    Some(Occurrence { kind: kind?.into(), labels, time: START + at?, code: code?, job: job.map(Into::into) })
}

fn expected(node: &Node, errors: &mut Errors) -> Option<Expected> {
    let mut map = node.map(errors)?;
    let expected = Expected {
        at: map.take("at").and_then(|node| node.duration(errors)).map(|span| START + span),
        alert: map.require("alert", errors).and_then(|node| node.word(errors)).unwrap_or_default(),
        state: map.take("state").and_then(|node| node.parse_with(errors, state)),
        severity: map.take("severity").and_then(|node| node.parse(errors)),
        cause: map.take("cause").and_then(|node| node.parse(errors)),
        value: map.take("value").and_then(|node| node.f64(errors)),
        labels: labels(&mut map, errors),
        note: map.take("note").and_then(|node| node.text(errors)),
        summary: map.take("summary").and_then(|node| node.text(errors)),
    };
    map.finish(errors);
    Some(expected)
}

fn state(word: &str) -> Result<State, String> {
    let all = [State::Inactive, State::Pending, State::Firing, State::Resolved, State::Unknown];
    let known = all.map(State::as_str).join(", ");
    all.into_iter().find(|state| state.as_str() == word).ok_or_else(|| format!("{word:?} is none of {known}"))
}

impl Expected {
    /// Whether a transition is the one that is meant.
    pub fn matches(&self, seen: &Seen) -> bool {
        let view = &seen.transition.alert;
        let note = view.note.as_deref().unwrap_or("");
        self.at.is_none_or(|at| at == seen.transition.time)
            && self.alert == *view.alert
            && self.state.is_none_or(|state| state == view.state)
            && self.severity.is_none_or(|severity| severity == view.severity)
            && self.cause.is_none_or(|cause| Some(cause) == view.cause)
            && self.value.is_none_or(|value| (value - view.value).abs() <= 1e-9 * value.abs().max(1.0))
            && self.labels.iter().all(|(name, value)| view.labels.get(name) == Some(value))
            && self.note.as_deref().is_none_or(|part| note.contains(part))
            && self.summary.as_deref().is_none_or(|summary| summary == seen.summary)
    }
}

/// Compares what was expected with what was seen.
///
/// # Errors
/// A small diagram of both time lines.
pub fn compare(expect: &[Expected], seen: &[Seen]) -> Result<(), String> {
    let mut left: Vec<&Seen> = seen.iter().collect();
    let mut missing = Vec::new();
    for expected in expect {
        match left.iter().position(|seen| expected.matches(seen)) {
            Some(at) => drop(left.remove(at)),
            None => missing.push(expected),
        }
    }
    if missing.is_empty() && left.is_empty() && in_order(expect, seen) {
        return Ok(());
    }
    Err(timeline::diagram(expect, seen, &missing, &left))
}

fn in_order(expect: &[Expected], seen: &[Seen]) -> bool {
    let mut from = 0;
    expect.iter().filter(|expected| expected.at.is_none()).all(|expected| {
        let found = seen[from..].iter().position(|seen| expected.matches(seen));
        found.map(|at| from += at).is_some()
    })
}

/// What was seen, as the `expect:` of a scenario.
pub fn to_yaml(seen: &[Seen]) -> String {
    if seen.is_empty() {
        return "expect: []\n".to_owned();
    }
    let lines = seen.iter().map(|seen| format!("  - {}\n", timeline::expectation(seen)));
    format!("expect:\n{}", lines.collect::<String>())
}
