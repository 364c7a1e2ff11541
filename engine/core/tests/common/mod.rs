//! Native programs and a small world, for tests from outside.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part of this")]

use std::sync::Arc;
use std::time::Duration;

use watchfire_core::engine::Engine;
use watchfire_core::record::{Changes, Drift, Kept};
use watchfire_core::route::RouteTree;
use watchfire_core::{
    Aggregate, Batch, Cause, Descriptor, Effect, Event, Hit, Input, Labels, MissingData, Observation, Outcome,
    PerSeverity, Program, Reads, RuleFailure, RuleSpec, Sample, Scope, Series, Severity, State, Target, Time,
};

pub type Judgement = Box<dyn FnMut(&Batch<'_>, &mut Outcome) -> Result<(), RuleFailure> + Send>;

pub struct Native {
    pub descriptor: Descriptor,
    pub judge: Judgement,
}

impl Program for Native {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }
    fn on_targets(&mut self, _: &[Target]) -> Result<(), RuleFailure> {
        Ok(())
    }
    fn evaluate(&mut self, batch: &Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
        (self.judge)(batch, out)
    }
    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        Ok(Some(format!("row {row}")))
    }
}

pub fn metric(name: &str, scope: Scope) -> Input {
    let reads = Reads::Metric { name: name.into(), aggregate: Aggregate::Last };
    Input { reads, scope, window: Duration::ZERO, required: true, only: Vec::new() }
}

pub fn native(inputs: Vec<Input>, judge: Judgement) -> Native {
    let descriptor = Descriptor {
        name: "native".into(),
        version: "1".into(),
        scope: Scope::Gpu,
        inputs,
        outputs: Vec::new(),
        settings_schema: String::new(),
        state_slots: 0,
        state_version: 0,
        needs_labels: false,
        group_by: None,
    };
    Native { descriptor, judge }
}

/// Raises `severity` for each row whose first column is above `limit`.
pub fn above(limit: f64, severity: Severity) -> Judgement {
    Box::new(move |batch, out| {
        for row in 0..batch.rows {
            if batch.quality[row] == 0 && batch.columns[row] > limit {
                out.hits.push(hit(row, severity, batch.columns[row]));
            }
        }
        Ok(())
    })
}

pub fn hit(row: usize, severity: Severity, value: f64) -> Hit {
    Hit { row: row as u32, raise: Some(severity), hold: Some(severity), value, cause: None, note: None }
}

pub fn spec(alert: &str, after_s: u64) -> RuleSpec {
    RuleSpec {
        id: format!("test/{alert}").into(),
        template: "test".into(),
        alert: alert.into(),
        labels: Labels::default(),
        hold_for: PerSeverity::all(Some(Duration::from_secs(after_s))),
        keep_firing_for: Duration::ZERO,
        missing_data: MissingData::Hold,
        missing_after: Duration::from_secs(900),
        cause: Some(Cause::Thermal),
        interval: Duration::from_secs(5),
    }
}

pub fn at(second: i64) -> Time {
    Time::from_millis(second * 1000)
}

pub fn gpu(index: u32) -> Labels {
    Labels::new([("host", "h1".to_owned()), ("gpu", index.to_string()), ("uuid", format!("GPU-{index}"))])
}

pub struct World {
    pub engine: Engine,
    pub effects: Vec<Effect>,
}

impl World {
    pub fn new(rules: Vec<(RuleSpec, Native)>) -> Self {
        let mut world = World { engine: Engine::new(RouteTree::to("ops")), effects: Vec::new() };
        world.load(0, rules);
        world
    }

    pub fn load(&mut self, second: i64, rules: Vec<(RuleSpec, Native)>) {
        let rules = rules.into_iter().map(|(spec, native)| (spec, Box::new(native) as Box<dyn Program>)).collect();
        self.engine.load(at(second), rules, &mut self.effects).unwrap();
    }

    pub fn sample(&mut self, second: i64, metric: &str, labels: Labels, value: f64) {
        self.tick_before(second);
        self.feed(second, metric, labels, value);
    }

    /// A sample, without the deadlines before it.
    pub fn feed(&mut self, second: i64, metric: &str, labels: Labels, value: f64) {
        let series = Arc::new(Series::every(metric, labels, Duration::from_secs(5)));
        let observation = Observation { series, time: at(second), value };
        let series = self.engine.series(&observation.series).unwrap();
        let sample = Sample { series, time: observation.time, value };
        self.engine.step(at(second), Event::Samples(&[sample]), &mut self.effects);
    }

    /// Runs the deadlines before a second, one by one.
    pub fn tick_before(&mut self, second: i64) {
        while let Some(due) = self.engine.next_deadline().filter(|due| *due < at(second)) {
            self.engine.step(due, Event::Tick, &mut self.effects);
        }
    }

    pub fn tick_to(&mut self, second: i64) {
        self.tick_before(second + 1);
    }

    /// All transitions so far: second, alert, GPU, state, severity.
    pub fn transitions(&self) -> Vec<(i64, String, String, State, Severity)> {
        let transitions = self.effects.iter().filter_map(|effect| match effect {
            Effect::Transition(transition) => Some(transition),
            _ => None,
        });
        transitions
            .map(|transition| {
                let view = &transition.alert;
                let gpu = view.labels.get("gpu").unwrap_or("-").to_owned();
                (transition.time.as_millis() / 1000, view.alert.to_string(), gpu, view.state, view.severity)
            })
            .collect()
    }
}

pub fn expect(world: &World, expected: &[(i64, &str, &str, State, Severity)]) {
    let got = world.transitions();
    let got: Vec<_> = got
        .iter()
        .map(|(second, alert, gpu, state, severity)| (*second, &**alert, &**gpu, *state, *severity))
        .collect();
    assert_eq!(got, expected);
}

/// What a storage would hold after these were stored in order.
pub fn stored(seen: i64, changes: Changes, drift: Drift) -> Kept {
    let mut alerts: std::collections::BTreeMap<_, _> = changes.alerts.into_iter().collect();
    alerts.extend(drift.alerts.into_iter().map(|(key, record)| (key, Some(record))));
    Kept {
        seen: Some(at(seen)),
        alerts: alerts.into_iter().filter_map(|(key, record)| Some((key, record?))).collect(),
        groups: changes.groups.into_iter().filter_map(|(_, record)| record).collect(),
        conditions: changes.conditions.into_iter().filter_map(|(_, view)| view).collect(),
        rules: drift.rules.into_iter().chain(changes.rules).collect(),
        states: drift.states.into_iter().flat_map(|(_, states)| states).collect(),
        derived: drift.derived,
    }
}
