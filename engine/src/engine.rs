//! The engine as an agent has it: the core, with rules, storage and delivery around it.

mod capturing;
mod keep;
mod reload;
mod shadowing;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::engine::{Candidate, Engine as Core};
use watchfire_core::route::{Route, RouteTree};
use watchfire_core::{
    Cause, Condition, Effect, Event, Labels, Observation, Occurrence, Reads, Sample, Series, SeriesId, Severity, State,
    Time,
};
use watchfire_notify::{CourierHandle, Db, Receivers};
use watchfire_sandbox::Sandbox;

use crate::builder::{BuildError, Builder};
use crate::catalog::{Catalog, Made, Selection};
use crate::deliver::{self, Texts};
use crate::lock::StorageLock;
use crate::module_store::ModuleStore;
use crate::output::{Alert, Output};
use crate::shadow::Shadow;
use crate::status::{AlertReport, RuleReport, Status, TemplateReport};

/// The alert of a template that could not be loaded.
const TEMPLATE_INVALID: &str = "WatchfireTemplateInvalid";

use keep::Keeper;
pub use reload::{Prepared, Reader};

/// What an engine is made of.
pub(crate) struct Parts {
    pub sandbox: Sandbox,
    pub store: Option<ModuleStore>,
    pub routes: RouteTree,
    pub db: Option<Db>,
    /// Whether `db` outlives the process.
    pub durable: bool,
    /// Keeps other processes away from `db`.
    pub lock: Option<StorageLock>,
    /// Whether what is read is a recording, so that a restart must go on exactly.
    pub is_recording: bool,
    pub selection: Selection,
    pub receivers: Option<Arc<Receivers>>,
    pub courier: Option<CourierHandle>,
}

/// An alerting engine. See the crate's documentation for what it asks of its host.
pub struct Engine {
    core: Core,
    sandbox: Sandbox,
    store: Option<ModuleStore>,
    texts: Texts,
    templates: Vec<TemplateReport>,
    broken: Vec<(String, String)>,
    db: Option<Db>,
    receivers: Option<Arc<Receivers>>,
    courier: Option<CourierHandle>,
    /// Series that collectors keep, by where they keep them.
    known: HashMap<usize, (Arc<Series>, SeriesId)>,
    effects: Vec<Effect>,
    samples: Vec<Sample>,
    restored: bool,
    keeper: Keeper,
    _lock: Option<StorageLock>,
    pending_rules: Option<Catalog>,
    /// What the loaded rules are made of.
    made: HashMap<String, Made>,
    selection: Selection,
    /// What happened before a reload, in the words of then.
    told: Vec<Output>,
    /// How often other templates were loaded.
    generation: u64,
    /// New versions of templates, which tell nobody.
    shadow: Option<Box<Shadow>>,
    /// What is to run in shadow once the engine begins.
    pending_shadow: Option<Catalog>,
    /// Rules whose texts are kept for the ends of their alerts.
    retired: HashSet<String>,
    capturing: Option<capturing::Capturing>,
}

impl Engine {
    /// A builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn assemble(parts: Parts, catalog: Catalog, shadow: Option<Catalog>) -> Result<Self, BuildError> {
        let mut core = Core::new(parts.routes);
        if parts.is_recording {
            core.keep_derived();
        }
        let mut engine = Engine {
            core,
            sandbox: parts.sandbox,
            store: parts.store,
            texts: Texts::new(),
            templates: Vec::new(),
            broken: Vec::new(),
            db: parts.db,
            receivers: parts.receivers,
            courier: parts.courier,
            known: HashMap::new(),
            effects: Vec::new(),
            samples: Vec::new(),
            restored: false,
            keeper: Keeper::new(parts.durable, parts.is_recording),
            _lock: parts.lock,
            pending_rules: None,
            made: HashMap::new(),
            selection: parts.selection,
            told: Vec::new(),
            retired: HashSet::new(),
            generation: 0,
            shadow: None,
            pending_shadow: None,
            capturing: None,
        };
        engine.note_catalog(&catalog);
        engine.core.check(&catalog.rules)?;
        engine.pending_rules = Some(catalog);
        if let Some(shadow) = &shadow {
            Shadow::new().check(shadow)?;
        }
        engine.pending_shadow = shadow;
        Ok(engine)
    }

    /// Texts of rules that are gone are kept until the next reload: what ended is told in the words that it began with.
    fn note_catalog(&mut self, catalog: &Catalog) {
        let before = std::mem::replace(&mut self.texts, catalog.texts.clone());
        let gone = before.into_iter().filter(|(id, _)| !catalog.texts.contains_key(id) && !self.retired.contains(id));
        let gone: Vec<_> = gone.collect();
        self.retired = gone.iter().map(|(id, _)| id.clone()).collect();
        self.texts.extend(gone);
        self.made = catalog.made.clone();
        self.templates = catalog.reports();
        self.broken = catalog.broken_texts();
    }

    /// The rules are loaded at the first moment that the engine is told of: it has no clock to say which that is.
    fn begin(&mut self, now: Time) {
        let Some(catalog) = self.pending_rules.take() else { return };
        let mut effects = std::mem::take(&mut self.effects);
        // What could be wrong was checked when the catalogue was made.
        if let Err(error) = self.core.reload(now, catalog.rules, &mut effects) {
            tracing::error!(%error, "the rules could not be loaded");
        }
        self.effects = effects;
        if !self.restored && !self.keeper.is_looking_back {
            self.restore(now);
        }
        let mut effects = std::mem::take(&mut self.effects);
        for (file, why) in self.broken.clone() {
            self.core.step(now, Event::Condition(invalid_template(&file, Some(&why))), &mut effects);
        }
        self.effects = effects;
        self.begin_shadow(now);
    }

    /// The id of a series, for [`Engine::push`]: the same for the same metric and labels. `every` is how often it
    /// will be pushed; without a new sample for three times that, the last one no longer counts. None where the
    /// engine has as many series as it can hold.
    pub fn series(&mut self, metric: &str, labels: Labels, every: Duration) -> Option<SeriesId> {
        self.core.series(&Arc::new(Series::every(metric, labels, every)))
    }

    /// Takes in values read at `now`. Push all values of a moment before [`Engine::advance`] to that moment.
    pub fn push(&mut self, now: Time, values: &[(SeriesId, f64)]) {
        self.begin(now);
        self.samples.clear();
        self.samples.extend(values.iter().map(|&(series, value)| Sample { series, time: now, value }));
        self.take_samples(now);
    }

    /// Takes in what collectors read. A series that a collector keeps is found without looking at its text.
    pub fn observe(&mut self, now: Time, observations: &[Observation]) {
        self.begin(now);
        self.samples.clear();
        for observation in observations {
            if let Some(series) = self.find(&observation.series) {
                self.samples.push(Sample { series, time: observation.time.min(now), value: observation.value });
            }
        }
        self.take_samples(now);
    }

    fn find(&mut self, series: &Arc<Series>) -> Option<SeriesId> {
        let place = Arc::as_ptr(series) as usize;
        if let Some((kept, id)) = self.known.get(&place)
            && Arc::ptr_eq(kept, series)
        {
            return Some(*id);
        }
        let id = self.core.series(series)?;
        // Collectors that keep their series fill this once; those that do not must not fill it for ever.
        if self.known.len() > 4 * self.core.n_series().max(1024) {
            self.known.clear();
        }
        self.known.insert(place, (series.clone(), id));
        Some(id)
    }

    /// Takes in something that happened, such as an Xid.
    pub fn happened(&mut self, now: Time, event: Occurrence) {
        self.begin(now);
        self.take_event(now, event);
    }

    /// Raises, changes or ends a condition of the agent's own (a source that does not answer, say); its alert goes
    /// the way of all others.
    pub fn condition(&mut self, now: Time, condition: Condition) {
        self.begin(now);
        self.core.step(now, Event::Condition(condition), &mut self.effects);
    }

    /// Lets time pass: judges what is due, stores what changed and hands messages to delivery, in this order.
    /// Answers what happened since the last call.
    pub fn advance(&mut self, now: Time) -> Vec<Output> {
        self.begin(now);
        self.core.step(now, Event::Tick, &mut self.effects);
        let outputs = self.outputs();
        if let Some(shadow) = &mut self.shadow {
            shadow.advance(now);
        }
        self.store(now, &outputs);
        if let Some(courier) = &self.courier {
            courier.pulse();
        }
        outputs
    }

    /// When [`Engine::advance`] must be called next at the latest; none while the engine has not begun.
    pub fn next_deadline(&self) -> Option<Time> {
        let shadow = self.shadow.as_ref().and_then(|shadow| shadow.next_deadline());
        self.core.next_deadline().into_iter().chain(shadow).min()
    }

    fn outputs(&mut self) -> Vec<Output> {
        let effects = std::mem::take(&mut self.effects);
        self.note_history(&effects);
        self.note_for_shadow(&effects);
        let mut outputs = std::mem::take(&mut self.told);
        outputs.extend(effects.into_iter().map(|effect| self.output(effect)));
        outputs
    }

    fn output(&self, effect: Effect) -> Output {
        match effect {
            Effect::Transition(transition) => {
                let annotations = deliver::annotations(&transition.alert, &self.texts);
                let alert = Alert { view: transition.alert, annotations };
                Output::Alert { time: transition.time, alert, from: transition.from.0 }
            }
            Effect::Notify(notification) => Output::Message(deliver::message(&notification, &self.texts)),
            Effect::RuleFailed { rule, failure, retry_at, quarantined } => {
                Output::RuleFailed { rule: rule.to_string(), failure, retry_at, quarantined }
            }
            Effect::StateMigrated { rule, migration } => Output::StateMigrated { rule: rule.to_string(), migration },
            Effect::RuleRecovered { rule } => Output::RuleRecovered { rule: rule.to_string() },
        }
    }

    /// Puts other routes in place. They lead to the receivers that the engine was built with.
    ///
    /// # Errors
    /// As [`Engine::check_routes`]; nothing is changed then.
    pub fn set_routes(&mut self, now: Time, root: Route) -> Result<(), BuildError> {
        self.check_routes(&root)?;
        self.core.set_routes(now, RouteTree::new(root));
        Ok(())
    }

    /// Whether routes lead to receivers that are there.
    ///
    /// # Errors
    /// A route leads to a receiver that the engine was not built with.
    pub fn check_routes(&self, root: &Route) -> Result<(), BuildError> {
        let names = self.receivers.as_ref().map(|receivers| receivers.receiver_names());
        names.map_or(Ok(()), |names| crate::builder::check_receivers(&RouteTree::new(root.clone()), &names))
    }

    /// All alerts that are pending or firing, worst first.
    pub fn alerts(&self) -> Vec<Alert> {
        let mut views: Vec<_> = self.core.alerts().collect();
        views.sort_by_key(|view| (std::cmp::Reverse(view.severity), view.starts_at, view.fingerprint));
        let alert = |view| Alert { annotations: deliver::annotations(&view, &self.texts), view };
        views.into_iter().map(alert).collect()
    }

    /// The ids (`template/alert`) of all rules, by name.
    pub fn rule_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.made.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// The metrics that a rule reads, by its id (`template/alert`).
    pub fn metrics_of(&self, rule: &str) -> Vec<String> {
        let pending = self.pending_rules.iter().flat_map(|catalog| &catalog.rules);
        let pending = pending.filter(|candidate| *candidate.spec().id == *rule);
        let inputs = pending.filter_map(Candidate::descriptor).flat_map(|said| &said.inputs);
        let of_pending = inputs.filter_map(|input| match &input.reads {
            Reads::Metric { name, .. } => Some(name.to_string()),
            Reads::Event { .. } => None,
        });
        of_pending.chain(self.core.metrics_of(rule)).collect()
    }

    /// How the engine and its rules do.
    pub fn status(&self) -> Status {
        let states: Vec<_> = self.core.alerts().map(|view| view.state).collect();
        let pending = states.iter().filter(|state| **state == State::Pending).count();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            templates: self.templates.clone(),
            broken_templates: self.broken.clone(),
            rules: self.core.rules().map(rule_report).collect(),
            series: self.core.n_series(),
            samples_total: self.core.counts().samples_total,
            pending,
            firing: states.len() - pending,
            bytes: self.core.bytes(),
            durable: self.keeper.durable().clone(),
            series_refused_total: self.core.counts().series_refused_total,
            rows_refused_total: self.core.rules().map(|rule| rule.counts.rows_refused_total).sum(),
            messages_lost_total: self.keeper.messages_lost_total(),
            history_dropped_total: self.history_dropped_total(),
            alerts: self.firing(),
            shadow: self.shadow.as_ref().map(|shadow| shadow.status()),
        }
    }

    /// The worst alerts that fire, as `status` shows them.
    fn firing(&self) -> Vec<AlertReport> {
        let mut views: Vec<_> = self.core.alerts().filter(|view| view.state != State::Pending).collect();
        views.sort_by_key(|view| (std::cmp::Reverse(view.severity), view.starts_at, view.fingerprint));
        views.truncate(Status::ALERTS_MAX);
        views.into_iter().map(alert_report).collect()
    }

    /// The delivery, where the engine has one.
    pub fn courier(&self) -> Option<&CourierHandle> {
        self.courier.as_ref()
    }
}

fn alert_report(view: watchfire_core::AlertView) -> AlertReport {
    AlertReport {
        alert: view.alert.to_string(),
        labels: view.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        state: view.state.to_string(),
        severity: view.severity.to_string(),
        since: crate::clock::rfc3339(view.starts_at),
        stale: view.stale,
    }
}

fn rule_report(status: watchfire_core::engine::RuleStatus) -> RuleReport {
    RuleReport {
        id: status.id.to_string(),
        rows: status.rows,
        ticks_total: status.counts.ticks_total,
        ticks_missed_total: status.counts.ticks_missed_total,
        failures_total: status.failures_total,
        last_failure: status.last_failure.map(|failure| failure.to_string()),
        quarantined: status.quarantined,
        rows_refused_total: status.counts.rows_refused_total,
        events_unplaced_total: status.counts.events_unplaced_total,
        bytes: status.bytes,
        state: status.migration.map(|migration| migration.to_string()),
        limit_hits: status.limit_hits.into_iter().map(|(limit, times)| (limit.to_owned(), times)).collect(),
        explain_failures_total: status.counts.explain_failures_total,
    }
}

fn invalid_template(file: &str, why: Option<&str>) -> Condition {
    Condition {
        alert: TEMPLATE_INVALID.into(),
        labels: Labels::new([("file", file)]),
        raise: why.map(|_| Severity::Warning),
        cause: Cause::Software,
        note: why.map(|why| format!("the template is not running: {why}")).unwrap_or_default(),
    }
}
