//! New versions of templates beside the old ones: a second core on the same samples, which tells nobody. It has rows,
//! state and failures of its own; what it would have done otherwise is counted.

mod book;

use std::collections::HashMap;
use std::sync::Arc;

use watchfire_core::engine::{Engine as Core, Kept};
use watchfire_core::route::RouteTree;
use watchfire_core::{Effect, Event, LoadError, Occurrence, Sample, SeriesId, Time, Transition};

use crate::catalog::{Catalog, Made};
use crate::status::{ShadowRule, ShadowStatus, TemplateReport};
use book::Book;

/// The receiver that nobody is.
const NOBODY: &str = "shadow";

/// Templates that run in shadow.
pub(crate) struct Shadow {
    core: Core,
    made: HashMap<String, Made>,
    templates: Vec<TemplateReport>,
    broken: Vec<(String, String)>,
    /// By the watching core's id: this one's.
    ids: Vec<Option<SeriesId>>,
    samples: Vec<Sample>,
    effects: Vec<Effect>,
    book: Book,
}

impl Shadow {
    /// Nothing yet.
    pub fn new() -> Self {
        Shadow {
            core: Core::new(RouteTree::to(NOBODY)),
            made: HashMap::new(),
            templates: Vec::new(),
            broken: Vec::new(),
            ids: Vec::new(),
            samples: Vec::new(),
            effects: Vec::new(),
            book: Book::default(),
        }
    }

    /// What its rules are made of.
    pub fn made(&self) -> &HashMap<String, Made> {
        &self.made
    }

    /// Whether its rules would fit together.
    pub fn check(&self, catalog: &Catalog) -> Result<(), LoadError> {
        self.core.check(&catalog.rules)
    }

    /// Puts other templates in shadow. Rules that are new in it begin with the alerts and the state of those of the
    /// same name that watch, so that only what they judge otherwise differs.
    pub fn load(&mut self, now: Time, mut catalog: Catalog, main: &Core) -> Result<(), LoadError> {
        let known: Vec<Arc<str>> = self.core.rules().map(|rule| rule.id).collect();
        let rules = std::mem::take(&mut catalog.rules);
        self.core.reload(now, rules, &mut self.effects)?;
        let fresh: Vec<Arc<str>> = self.core.rules().map(|rule| rule.id).filter(|id| !known.contains(id)).collect();
        if !fresh.is_empty() {
            let kept = Kept {
                alerts: main.alert_records().filter(|(key, _)| fresh.contains(&key.rule)).collect(),
                states: main.state_records().filter(|state| fresh.contains(&state.key.rule)).collect(),
                ..Kept::default()
            };
            self.core.restore(now, kept, &mut self.effects);
        }
        self.templates = catalog.reports();
        self.broken = catalog.broken_texts();
        self.made = catalog.made;
        self.effects.clear();
        self.book.begin(now, &self.templates, main.alerts(), self.core.alerts());
        Ok(())
    }

    /// Takes samples in, by the ids of the core that watches.
    pub fn take(&mut self, now: Time, samples: &[Sample], main: &Core) {
        let mut own = std::mem::take(&mut self.samples);
        own.clear();
        own.extend(
            samples.iter().filter_map(|sample| Some(Sample { series: self.id(sample.series, main)?, ..*sample })),
        );
        self.core.step(now, Event::Samples(&own), &mut self.effects);
        self.samples = own;
    }

    fn id(&mut self, id: SeriesId, main: &Core) -> Option<SeriesId> {
        let at = id.0 as usize;
        if at >= self.ids.len() {
            self.ids.resize(at + 1, None);
        }
        if self.ids[at].is_none() {
            self.ids[at] = self.core.series(main.series_of(id)?);
        }
        self.ids[at]
    }

    /// Takes an event in.
    pub fn happened(&mut self, now: Time, event: Occurrence) {
        self.core.step(now, Event::Occurred(event), &mut self.effects);
    }

    /// Lets deadlines pass without judging.
    pub fn pass_over(&mut self, before: Time) {
        self.core.pass_over(before);
    }

    /// What the core that watches did.
    pub fn note(&mut self, transition: &Transition) {
        self.book.note_old(transition);
    }

    /// Judges what is due, and compares what both did up to now.
    pub fn advance(&mut self, now: Time) {
        self.core.step(now, Event::Tick, &mut self.effects);
        for effect in std::mem::take(&mut self.effects) {
            if let Effect::Transition(transition) = effect {
                self.book.note_new(&transition);
            }
        }
        self.book.settle(now);
        // Nothing of it is stored; what would be must not pile up.
        drop((self.core.take_changes(), self.core.take_drift()));
    }

    /// When it must be advanced next.
    pub fn next_deadline(&self) -> Option<Time> {
        self.core.next_deadline()
    }

    /// What it has seen.
    pub fn status(&self) -> ShadowStatus {
        let rules = self.core.rules().map(|rule| (rule.id.to_string(), rule)).collect::<HashMap<_, _>>();
        let tallies = self.book.tallies(rules.keys().map(String::as_str));
        let rule = |(id, tally): (String, book::Tally)| ShadowRule {
            only_old_total: tally.only_old,
            only_new_total: tally.only_new,
            severity_differs_total: tally.severity,
            seconds_differing: tally.seconds,
            rows: rules.get(&id).map_or(0, |rule| rule.rows),
            last_failure: rules.get(&id).and_then(|rule| rule.last_failure.as_ref()).map(ToString::to_string),
            quarantined: rules.get(&id).is_some_and(|rule| rule.quarantined),
            id,
        };
        ShadowStatus {
            templates: self.templates.clone(),
            broken_templates: self.broken.clone(),
            rules: tallies.into_iter().map(rule).collect(),
            latest: self.book.latest(),
        }
    }
}
