//! `Engine::step` from outside: samples in, effects out, with native programs in place of sandboxed ones.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::{Judgement, World, above, at, expect, gpu, hit, metric, native, spec, stored};
use watchfire_core::engine::Engine;
use watchfire_core::route::RouteTree;
use watchfire_core::{
    Event, EventStat, Hit, Input, Labels, MissingData, Occurrence, Outcome, Reads, RuleFailure, RuleSpec, Scope,
    Severity, State,
};

#[test]
fn one_gpu_fires_and_resolves_beside_a_healthy_one() {
    let rule = native(vec![metric("gpu_temperature_celsius", Scope::Gpu)], above(85.0, Severity::Warning));
    let mut world = World::new(vec![(spec("Hot", 10), rule)]);
    for second in (0..60).step_by(5) {
        let heat = if (10..40).contains(&second) { 90.0 } else { 60.0 };
        world.sample(second, "gpu_temperature_celsius", gpu(0), heat);
        world.sample(second, "gpu_temperature_celsius", gpu(1), 60.0);
    }
    world.tick_to(60);
    expect(
        &world,
        &[
            (10, "Hot", "0", State::Pending, Severity::Warning),
            (20, "Hot", "0", State::Firing, Severity::Warning),
            (40, "Hot", "0", State::Resolved, Severity::Warning),
        ],
    );
}

#[test]
fn a_lost_gpu_neither_fires_nor_resolves_and_then_is_unknown() {
    let rule = native(vec![metric("gpu_temperature_celsius", Scope::Gpu)], above(85.0, Severity::Warning));
    let mut world = World::new(vec![(spec("Hot", 0), rule)]);
    for second in (0..20).step_by(5) {
        world.sample(second, "gpu_temperature_celsius", gpu(0), 90.0);
    }
    world.tick_to(2000);
    let transitions = world.transitions();
    assert_eq!(transitions.len(), 2, "{transitions:?}");
    assert_eq!(transitions[0].3, State::Firing);
    assert_eq!(transitions[1].3, State::Unknown);
    assert_eq!(
        transitions[1].0,
        35 + 900,
        "stale 15 s after the last sample at 15 s, seen at 35 s, unknown 900 s later"
    );
}

#[test]
fn missing_data_can_alert() {
    let spec = RuleSpec { missing_data: MissingData::Alert, ..spec("Silent", 0) };
    let rule = native(vec![metric("gpu_up", Scope::Gpu)], Box::new(|_, _| Ok(())));
    let mut world = World::new(vec![(spec, rule)]);
    world.sample(0, "gpu_up", gpu(3), 1.0);
    world.tick_to(60);
    expect(&world, &[(20, "Silent", "3", State::Firing, Severity::Info)]);
}

#[test]
fn a_host_value_is_spread_over_its_gpus() {
    let inputs = vec![metric("gpu_up", Scope::Gpu), metric("host_load1", Scope::Host)];
    let judge: Judgement = Box::new(|batch, out| {
        for row in 0..batch.rows {
            if batch.columns[batch.rows + row] > 1.0 {
                out.hits.push(hit(row, Severity::Info, batch.columns[batch.rows + row]));
            }
        }
        Ok(())
    });
    let mut world = World::new(vec![(spec("Loaded", 0), native(inputs, judge))]);
    world.sample(0, "gpu_up", gpu(0), 1.0);
    world.sample(0, "host_load1", Labels::new([("host", "h1")]), 9.0);
    world.sample(0, "gpu_up", gpu(1), 1.0);
    world.tick_to(0);
    expect(
        &world,
        &[(0, "Loaded", "0", State::Firing, Severity::Info), (0, "Loaded", "1", State::Firing, Severity::Info)],
    );
}

#[test]
fn a_failing_rule_is_quarantined_and_the_other_misses_no_tick() {
    let good = native(vec![metric("gpu_up", Scope::Gpu)], above(0.5, Severity::Warning));
    let bad = native(vec![metric("gpu_up", Scope::Gpu)], Box::new(|_, _| Err(RuleFailure::Trap("unreachable".into()))));
    let mut world = World::new(vec![(spec("Bad", 0), bad), (spec("Good", 0), good)]);
    world.sample(0, "gpu_up", gpu(0), 1.0);
    world.tick_to(100);
    let status: Vec<_> = world.engine.rules().collect();
    assert!(status[0].quarantined);
    assert_eq!(status[0].failures_total, 4, "at 0, 5, 15 and 45 s; the next try is at 105 s");
    assert_eq!((status[1].counts.ticks_total, status[1].counts.ticks_missed_total), (21, 0));
    let alerts: Vec<_> = world.engine.alerts().map(|view| view.alert.to_string()).collect();
    assert!(alerts.contains(&"WatchfireRuleQuarantined".to_owned()), "{alerts:?}");
}

#[test]
fn junk_is_the_failure_of_its_rule() {
    type Answer = fn(&mut Outcome);
    let answers: [(&str, Answer); 6] = [
        ("a hit for row 7 of 1", |out| out.hits.push(hit(7, Severity::Info, 1.0))),
        ("used 2 of 1 hits", |out| out.hits.extend([hit(0, Severity::Info, 1.0); 2])),
        ("hold is below raise", |out| out.hits.push(Hit { hold: None, ..hit(0, Severity::Info, 1.0) })),
        ("no finite number", |out| out.hits.push(hit(0, Severity::Info, f64::NAN))),
        ("note 4 of 0", |out| out.hits.push(Hit { note: Some(4), ..hit(0, Severity::Info, 1.0) })),
        ("3 state, expected 0 or none", |out| out.state.extend([0.0; 3])),
    ];
    for (expected, answer) in answers {
        let judge: Judgement = Box::new(move |_, out| {
            answer(out);
            Ok(())
        });
        let mut world = World::new(vec![(spec("Junk", 0), native(vec![metric("gpu_up", Scope::Gpu)], judge))]);
        world.sample(0, "gpu_up", gpu(0), 1.0);
        world.tick_to(0);
        let failure = world.engine.rules().next().unwrap().last_failure;
        let text = failure.map(|failure| failure.to_string()).unwrap_or_default();
        assert!(text.contains(expected), "{text:?} should say {expected:?}");
    }
}

#[test]
fn derived_metrics_reach_their_readers_within_the_tick() {
    let judge: Judgement = Box::new(|batch, out| {
        out.derived.extend(batch.columns.iter().map(|value| value * 2.0));
        Ok(())
    });
    let mut writer = native(vec![metric("gpu_up", Scope::Gpu)], judge);
    writer.descriptor.outputs = vec!["gpu_doubled".into()];
    let reader = native(vec![metric("gpu_doubled", Scope::Gpu)], above(1.5, Severity::Info));
    let mut world = World::new(vec![(spec("Reader", 0), reader), (spec("Writer", 0), writer)]);
    world.sample(0, "gpu_up", gpu(0), 1.0);
    world.tick_to(0);
    expect(&world, &[(0, "Reader", "0", State::Firing, Severity::Info)]);
}

#[test]
fn state_is_kept_by_the_host_and_survives_a_failure() {
    let judge: Judgement = Box::new(|batch, out| {
        if batch.tick == 2 && batch.state[0] == 2.0 && batch.now == at(10) {
            return Err(RuleFailure::Trap("once".into()));
        }
        out.state.push(batch.state[0] + 1.0);
        out.hits.push(hit(0, Severity::Info, batch.state[0] + 1.0));
        Ok(())
    });
    let mut rule = native(vec![metric("gpu_up", Scope::Gpu)], judge);
    rule.descriptor.state_slots = 1;
    let mut world = World::new(vec![(spec("Counts", 0), rule)]);
    for second in (0..=20).step_by(5) {
        world.sample(second, "gpu_up", gpu(0), 1.0);
    }
    world.tick_to(20);
    let value = world.engine.alerts().next().unwrap().value;
    assert_eq!(value, 4.0, "five ticks, one of which failed and left the count as it was");
    assert_eq!(world.engine.state_records().next().unwrap().slots, [4.0]);
}

#[test]
fn a_moved_index_keeps_the_alert_on_its_gpu() {
    let rule = native(vec![metric("gpu_temperature_celsius", Scope::Gpu)], above(85.0, Severity::Warning));
    let mut world = World::new(vec![(spec("Hot", 0), rule)]);
    let moved = |index: &str| Labels::new([("host", "h1"), ("gpu", index), ("uuid", "GPU-5")]);
    world.sample(0, "gpu_temperature_celsius", moved("5"), 90.0);
    world.tick_to(0);
    world.sample(5, "gpu_temperature_celsius", moved("4"), 91.0);
    world.tick_to(5);
    let views: Vec<_> = world.engine.alerts().collect();
    assert_eq!(views.len(), 1);
    assert_eq!((views[0].labels.get("gpu"), views[0].value), (Some("4"), 91.0));
    assert_eq!(world.transitions().len(), 1, "no second alert");
}

#[test]
fn a_second_source_takes_over_when_the_first_goes_silent() {
    let rule = native(vec![metric("gpu_temperature_celsius", Scope::Gpu)], above(85.0, Severity::Warning));
    let mut world = World::new(vec![(spec("Hot", 0), rule)]);
    let from = |source: &str| gpu(0).with(&Labels::new([("source", source)]));
    for second in (0..60).step_by(5) {
        if second < 20 {
            world.sample(second, "gpu_temperature_celsius", from("nvml"), 60.0);
        }
        world.sample(second, "gpu_temperature_celsius", from("dcgm"), 90.0);
    }
    world.tick_to(60);
    let transitions = world.transitions();
    assert_eq!(transitions.len(), 1, "{transitions:?}");
    assert_eq!(transitions[0].0, 35, "nvml counts until 15 s after its last sample at 15 s");
}

#[test]
fn events_are_inputs() {
    let input = Input {
        reads: Reads::Event { kind: "xid".into(), codes: vec![79], stat: EventStat::Count },
        scope: Scope::Gpu,
        window: Duration::from_secs(60),
        required: true,
        only: Vec::new(),
    };
    let mut world = World::new(vec![(spec("Xid", 0), native(vec![input], above(0.5, Severity::Critical)))]);
    for (second, code) in [(3, 31), (6, 79)] {
        world.tick_before(second);
        let event = Occurrence { kind: "xid".into(), labels: gpu(3), time: at(second), code, job: None };
        world.engine.step(at(second), Event::Occurred(event), &mut world.effects);
    }
    world.tick_to(80);
    expect(
        &world,
        &[(10, "Xid", "3", State::Firing, Severity::Critical), (70, "Xid", "3", State::Resolved, Severity::Critical)],
    );
}

#[test]
fn a_restart_neither_repeats_nor_forgets() {
    let rules = || {
        let rule = native(vec![metric("gpu_temperature_celsius", Scope::Gpu)], above(85.0, Severity::Warning));
        vec![(spec("Hot", 30), rule)]
    };
    let mut before = World::new(rules());
    for second in (0..=20).step_by(5) {
        before.sample(second, "gpu_temperature_celsius", gpu(0), 90.0);
    }
    before.tick_to(20);
    let (changes, drift) = (before.engine.take_changes(), before.engine.take_drift());

    let mut after = World { engine: Engine::new(RouteTree::to("ops")), effects: Vec::new() };
    after.load(25, rules());
    after.engine.restore(at(25), stored(20, changes, drift), &mut after.effects);
    for second in (25..=60).step_by(5) {
        after.sample(second, "gpu_temperature_celsius", gpu(0), 90.0);
    }
    after.tick_to(60);
    expect(&after, &[(30, "Hot", "0", State::Firing, Severity::Warning)]);
    let active = after.engine.alerts().next().unwrap().active_at;
    assert_eq!(active, at(0), "pending since before the restart");
}

#[test]
fn a_reload_keeps_alerts_of_rules_that_stay_and_ends_those_that_go() {
    let rule = || native(vec![metric("gpu_temperature_celsius", Scope::Gpu)], above(85.0, Severity::Warning));
    let mut world = World::new(vec![(spec("Stays", 0), rule()), (spec("Goes", 0), rule())]);
    world.sample(0, "gpu_temperature_celsius", gpu(0), 90.0);
    world.tick_to(0);
    world.load(1, vec![(spec("Stays", 0), rule())]);
    world.sample(5, "gpu_temperature_celsius", gpu(0), 90.0);
    world.tick_to(10);
    expect(
        &world,
        &[
            (0, "Stays", "0", State::Firing, Severity::Warning),
            (0, "Goes", "0", State::Firing, Severity::Warning),
            (1, "Goes", "0", State::Resolved, Severity::Warning),
        ],
    );
}
