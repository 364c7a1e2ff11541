//! What differs between the rules that watch and those in shadow.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use watchfire_core::{AlertView, Labels, Severity, State, Time, Transition};

use crate::clock::rfc3339;
use crate::status::{ShadowDifference, TemplateReport};

/// The most differences that are listed; of more, the latest.
pub const LATEST_MAX: usize = 100;

/// How much one rule differed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How often only the watching rule fired.
    pub only_old: u64,
    /// How often only the one in shadow fired.
    pub only_new: u64,
    /// How often both fired with different severities.
    pub severity: u64,
    /// For how many seconds of alerts any of these lasted.
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OnlyOld,
    OnlyNew,
    Severity,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::OnlyOld => "only_old",
            Kind::OnlyNew => "only_new",
            Kind::Severity => "severity",
        }
    }
}

/// One alert as one side has it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    severity: Severity,
    value: f64,
}

/// One alert on both sides; kept while either fires.
#[derive(Debug, Default)]
struct Pair {
    old: Option<Side>,
    new: Option<Side>,
    differs: Option<(Kind, Time)>,
    labels: Labels,
}

impl Pair {
    fn kind(&self) -> Option<Kind> {
        match (self.old, self.new) {
            (Some(_), None) => Some(Kind::OnlyOld),
            (None, Some(_)) => Some(Kind::OnlyNew),
            (Some(old), Some(new)) if old.severity != new.severity => Some(Kind::Severity),
            _ => None,
        }
    }
}

type Key = (Arc<str>, u64);

/// All that differs.
#[derive(Debug, Default)]
pub struct Book {
    templates: HashSet<String>,
    pairs: HashMap<Key, Pair>,
    touched: HashSet<Key>,
    tallies: BTreeMap<Arc<str>, Tally>,
    latest: VecDeque<ShadowDifference>,
    at: Time,
}

impl Book {
    /// Compares these templates from now on; what fires on either side is as it is.
    pub fn begin(
        &mut self,
        now: Time,
        templates: &[TemplateReport],
        old: impl Iterator<Item = AlertView>,
        new: impl Iterator<Item = AlertView>,
    ) {
        self.templates = templates.iter().map(|template| template.name.clone()).collect();
        let gone = |id: &str| !self.templates.contains(id.split_once('/').map_or(id, |(template, _)| template));
        self.pairs.retain(|(rule, _), _| !gone(rule));
        self.tallies.retain(|rule, _| !gone(rule));
        old.for_each(|view| self.set(&view, |pair, side| pair.old = side));
        new.for_each(|view| self.set(&view, |pair, side| pair.new = side));
        self.settle(now);
    }

    fn set(&mut self, view: &AlertView, put: impl FnOnce(&mut Pair, Option<Side>)) {
        if !self.templates.contains(&*view.template) {
            return;
        }
        let key = (view.rule.clone(), view.fingerprint);
        let fires = matches!(view.state, State::Firing | State::Unknown);
        let pair = self.pairs.entry(key.clone()).or_default();
        pair.labels = view.labels.clone();
        put(pair, fires.then_some(Side { severity: view.severity, value: view.value }));
        self.touched.insert(key);
    }

    /// The watching rule did something.
    pub fn note_old(&mut self, transition: &Transition) {
        self.set(&transition.alert, |pair, side| pair.old = side);
    }

    /// The rule in shadow did something.
    pub fn note_new(&mut self, transition: &Transition) {
        self.set(&transition.alert, |pair, side| pair.new = side);
    }

    /// Compares what both sides did up to now.
    pub fn settle(&mut self, now: Time) {
        self.at = now;
        let mut touched: Vec<Key> = self.touched.drain().collect();
        touched.sort_unstable();
        touched.into_iter().for_each(|key| self.settle_one(now, key));
    }

    fn settle_one(&mut self, now: Time, key: Key) {
        let Some(pair) = self.pairs.get_mut(&key) else { return };
        let (was, is) = (pair.differs, pair.kind());
        if was.map(|(kind, _)| kind) != is {
            let tally = self.tallies.entry(key.0.clone()).or_default();
            tally.seconds += was.map_or(0.0, |(_, since)| now.since(since).as_secs_f64());
            pair.differs = is.map(|kind| (kind, now));
            if let Some(kind) = is {
                match kind {
                    Kind::OnlyOld => tally.only_old += 1,
                    Kind::OnlyNew => tally.only_new += 1,
                    Kind::Severity => tally.severity += 1,
                }
                self.latest.push_back(difference(now, &key.0, pair, kind));
                self.latest.drain(..self.latest.len().saturating_sub(LATEST_MAX));
            }
        }
        if pair.old.is_none() && pair.new.is_none() {
            self.pairs.remove(&key);
        }
    }

    /// The sums of these rules and of all that ever differed, with what still lasts.
    pub fn tallies<'a>(&self, rules: impl Iterator<Item = &'a str>) -> BTreeMap<String, Tally> {
        let mut all: BTreeMap<String, Tally> = rules.map(|rule| (rule.to_owned(), Tally::default())).collect();
        all.extend(self.tallies.iter().map(|(rule, tally)| (rule.to_string(), *tally)));
        for ((rule, _), pair) in &self.pairs {
            if let (Some((_, since)), Some(tally)) = (pair.differs, all.get_mut(&**rule)) {
                tally.seconds += self.at.since(since).as_secs_f64();
            }
        }
        all
    }

    /// The latest differences, newest last.
    pub fn latest(&self) -> Vec<ShadowDifference> {
        self.latest.iter().cloned().collect()
    }
}

fn difference(now: Time, rule: &str, pair: &Pair, kind: Kind) -> ShadowDifference {
    let word = |side: Option<Side>| side.map(|side| side.severity.to_string());
    let value = |side: Option<Side>| side.map(|side| side.value).filter(|value| value.is_finite());
    ShadowDifference {
        time: rfc3339(now),
        rule: rule.to_owned(),
        labels: pair.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        kind: kind.as_str().to_owned(),
        old_severity: word(pair.old),
        new_severity: word(pair.new),
        old_value: value(pair.old),
        new_value: value(pair.new),
    }
}
