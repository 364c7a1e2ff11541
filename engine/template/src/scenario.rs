//! Scenarios: samples in, alerts out, on one virtual time line.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::{Cause, Labels, Occurrence, Series, Severity, State, Time, Transition};
use watchfire_door::{Errors, Map, Node, Place, format_duration, nearest};

pub use crate::compare::{Difference, compare, difference};
pub use crate::picture::picture;
use crate::timeline::{self, VALUES_MAX, values};

/// Moment 0 of each scenario: 2026-01-01T00:00:00Z.
pub const START: Time = Time::from_millis(1_767_225_600_000);

/// The longest that a scenario may last: ten years.
const SPAN_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// How the names of Watchfire's own alerts begin; each scenario may expect them.
const OWN_ALERTS: &str = "Watchfire";

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
    /// Whether there is an `expect:`; without one nothing can pass, but what happens can be written.
    pub is_expecting: bool,
    /// Alerts of the rules that must fail (trap, or run out of their budget).
    pub expect_failures: Vec<String>,
    /// Only these rules run; all if empty.
    pub rules: Vec<String>,
    /// The template's parameters.
    pub parameters: std::collections::BTreeMap<String, Node>,
    /// When the scenario ends: after the last sample and event, and not before `end:`.
    pub end: Time,
    /// The alerts' names under `rules:` and `expect:`, and where they stand.
    named: Vec<(String, Place)>,
    /// The metrics of the series, the kinds of the events and the labels of what is expected, and where they stand.
    mentions: Vec<(Mention, String, Place)>,
}

/// What a scenario names besides alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mention {
    Metric,
    Kind,
    Label,
}

/// What the rules of a template read, and the labels that they add.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// Names of metrics.
    pub metrics: BTreeSet<String>,
    /// Kinds of events.
    pub kinds: BTreeSet<String>,
    /// Names of labels.
    pub labels: BTreeSet<String>,
}

impl Scenario {
    /// Whether an alert that it names contains `part`.
    pub fn names(&self, part: &str) -> bool {
        self.named.iter().any(|(name, _)| name.contains(part))
    }

    /// Refuses names under `rules:` and `expect:` that are none of `alerts`: a scenario of a rule that is not there
    /// would pass where nothing is expected.
    pub fn check_names(&self, alerts: &[&str], errors: &mut Errors) {
        let known = |name: &str| alerts.contains(&name) || name.starts_with(OWN_ALERTS);
        for (name, place) in self.named.iter().filter(|(name, _)| !known(name)) {
            let message = format!("the template has no alert `{name}`; expected one of {}", alerts.join(", "));
            match nearest(name, alerts.iter().copied()) {
                Some(near) => errors.hint(place, message, format!("did you mean `{near}`?")),
                None => errors.add(place, message),
            }
        }
    }
}

impl Scenario {
    /// Refuses series and events that no rule reads, and labels that no alert can have: a scenario with them would
    /// show nothing of what it seems to show.
    pub fn check_reads(&self, reads: &Reads, errors: &mut Errors) {
        let series = self.series.iter().map(|(series, _)| &series.labels);
        let labels = series.chain(self.events.iter().map(|event| &event.labels));
        let mut names: BTreeSet<String> = labels.flat_map(Labels::iter).map(|(name, _)| name.to_owned()).collect();
        names.extend(reads.labels.iter().cloned());
        for (mention, name, place) in &self.mentions {
            let (known, what) = match mention {
                Mention::Metric => (&reads.metrics, "no rule of the template reads the metric"),
                Mention::Kind => (&reads.kinds, "no rule of the template reads events of the kind"),
                Mention::Label => (&names, "no series, event or rule has the label"),
            };
            if !known.contains(name) {
                refuse(name, place, what, known, errors);
            }
        }
    }
}

fn refuse(name: &str, place: &Place, what: &str, known: &BTreeSet<String>, errors: &mut Errors) {
    let all = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let expected = if all.is_empty() { "none is known".to_owned() } else { format!("expected one of {all}") };
    let message = format!("{what} `{name}`; {expected}");
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => errors.hint(place, message, format!("did you mean `{near}`?")),
        None => errors.add(place, message),
    }
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
    /// Where it stands.
    pub place: Option<Place>,
}

/// One transition that was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The transition.
    pub transition: Transition,
    /// Its summary.
    pub summary: String,
}

/// Reads a scenario file. What is wrong goes to `errors`; the scenario is only good where nothing was added.
pub fn read(file: &str, text: &str, errors: &mut Errors) -> Option<Scenario> {
    let mut map = watchfire_door::read(file, text, errors)?.map(errors)?;
    let place = map.place().clone();
    let name = map.require("scenario", errors).and_then(|node| node.word(errors));
    let interval = map.require("interval", errors).and_then(|node| crate::read::interval(&node, errors));
    let mut mentions = Vec::new();
    let series = read_series(&mut map, &mut mentions, errors);
    let events: Vec<Occurrence> =
        list(&mut map, "events", errors).iter().filter_map(|node| event(node, &mut mentions, errors)).collect();
    let rules = list(&mut map, "rules", errors);
    let mut named: Vec<(String, Place)> =
        rules.iter().filter_map(|node| Some((node.word(errors)?, node.place().clone()))).collect();
    let rules = named.iter().map(|(name, _)| name.clone()).collect();
    let failing = list(&mut map, "expect_failures", errors);
    let failing: Vec<(String, Place)> =
        failing.iter().filter_map(|node| Some((node.word(errors)?, node.place().clone()))).collect();
    let expect_failures = failing.iter().map(|(name, _)| name.clone()).collect();
    named.extend(failing);
    let expect_node = map.take("expect");
    let is_expecting = expect_node.is_some();
    let expect = read_expect(expect_node.as_ref(), &mut named, &mut mentions, errors);
    let parameters = map.take("parameters").and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
    let end = map.take("end").and_then(|node| node.duration(errors)).unwrap_or_default();
    map.finish(errors);
    let interval = interval.filter(|span| !span.is_zero())?;
    let span = span(interval, &series, &events, end);
    check_span(span, interval, &place, errors);
    Some(Scenario {
        name: name?,
        interval,
        series,
        events,
        expect,
        expect_failures,
        is_expecting,
        rules,
        parameters: parameters.into_iter().map(|(name, _, node)| (name, node)).collect(),
        end: START + span,
        named,
        mentions,
    })
}

fn span(interval: Duration, series: &[Valued], events: &[Occurrence], end: Duration) -> Duration {
    let last = series.iter().map(|(_, values)| values.len()).max().unwrap_or(0).saturating_sub(1);
    let samples = u32::try_from(last).ok().and_then(|last| interval.checked_mul(last)).unwrap_or(Duration::MAX);
    let events = events.iter().map(|event| event.time.since(START));
    events.fold(samples.max(end), Duration::max)
}

fn check_span(span: Duration, interval: Duration, place: &Place, errors: &mut Errors) {
    let steps = span.as_millis() / interval.as_millis().max(1);
    if steps > STEPS_MAX {
        errors.add(place, format!("the scenario lasts {steps} intervals; at most {STEPS_MAX}"));
    }
    if span > SPAN_MAX {
        let (found, most) = (format_duration(span), format_duration(SPAN_MAX));
        errors.add(place, format!("the scenario lasts {found}; at most {most}"));
    }
}

fn list(map: &mut Map, key: &str, errors: &mut Errors) -> Vec<Node> {
    map.take(key).and_then(|node| node.list(errors)).unwrap_or_default()
}

/// A series with its values.
type Valued = (Arc<Series>, Vec<Option<f64>>);

type Mentions = Vec<(Mention, String, Place)>;

fn read_series(map: &mut Map, mentions: &mut Mentions, errors: &mut Errors) -> Vec<Valued> {
    let stale_after = map.take("stale_after").and_then(|node| node.duration(errors));
    let stale_after = stale_after.unwrap_or(Series::STALE_AFTER_DEFAULT);
    let mut room = VALUES_MAX;
    let mut series = Vec::new();
    for node in list(map, "series", errors) {
        let Some(one) = one_series(&node, stale_after, room, errors) else { continue };
        mentions.push((Mention::Metric, one.0.metric.to_string(), node.place_of("metric")));
        room -= one.1.len();
        series.push(one);
    }
    series
}

fn one_series(node: &Node, stale_after: Duration, room: usize, errors: &mut Errors) -> Option<Valued> {
    let mut map = node.map(errors)?;
    let metric = map.require("metric", errors).and_then(|node| node.word(errors));
    let labels = labels(&mut map, errors);
    let values = map.require("values", errors).and_then(|node| node.parse_with(errors, |text| values(text, room)));
    let stale_after = map.take("stale_after").and_then(|node| node.duration(errors)).unwrap_or(stale_after);
    map.finish(errors);
    Some((Arc::new(Series { metric: metric?.into(), labels, stale_after }), values?))
}

fn labels(map: &mut Map, errors: &mut Errors) -> Labels {
    let entries = map.take("labels").and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
    Labels::new(entries.into_iter().filter_map(|(name, _, node)| Some((name, node.text(errors)?))))
}

fn event(node: &Node, mentions: &mut Mentions, errors: &mut Errors) -> Option<Occurrence> {
    let mut map = node.map(errors)?;
    let at = map.require("at", errors).and_then(|node| node.duration(errors));
    let kind = map.require("kind", errors).and_then(|node| node.word(errors));
    mentions.extend(kind.iter().map(|kind| (Mention::Kind, kind.clone(), node.place_of("kind"))));
    let code = map.require("code", errors).and_then(|node| node.parse_with(errors, code));
    let job = map.take("job").and_then(|node| node.word(errors));
    let labels = labels(&mut map, errors);
    map.finish(errors);
    Some(Occurrence { kind: kind?.into(), labels, time: START + at?, code: code?, job: job.map(Into::into) })
}

fn code(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no code; expected a whole number from 0 to {}", u32::MAX))
}

fn read_expect(
    node: Option<&Node>,
    named: &mut Vec<(String, Place)>,
    mentions: &mut Mentions,
    errors: &mut Errors,
) -> Vec<Expected> {
    let mut expect = Vec::new();
    for node in node.and_then(|node| node.list(errors)).unwrap_or_default() {
        let Some(one) = expected(&node, errors) else { continue };
        let label = |name: &str| (Mention::Label, name.to_owned(), node.place_of(&format!("labels.{name}")));
        let is_own = one.alert.starts_with(OWN_ALERTS);
        mentions.extend(one.labels.iter().filter(|_| !is_own).map(|(name, _)| label(name)));
        if !one.alert.is_empty() {
            named.push((one.alert.clone(), node.place_of("alert")));
        }
        expect.push(one);
    }
    expect
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
        place: Some(node.place().clone()),
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

/// What was seen, as the `expect:` of a scenario.
pub fn to_yaml(seen: &[Seen]) -> String {
    if seen.is_empty() {
        return "expect: []\n".to_owned();
    }
    let lines = seen.iter().map(|one| format!("  - {}\n", timeline::expectation(one, &telling(one, seen))));
    format!("expect:\n{}", lines.collect::<String>())
}

/// The labels that tell the target of a transition from those of the same alert's others.
fn telling(one: &Seen, seen: &[Seen]) -> Labels {
    let alert = &one.transition.alert;
    let others = seen.iter().map(|seen| &seen.transition.alert).filter(|other| other.alert == alert.alert);
    let others: Vec<&Labels> = others.map(|other| &other.labels).collect();
    alert.labels.filter(|name| others.iter().any(|other| other.get(name) != alert.labels.get(name)))
}
