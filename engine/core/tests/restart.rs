//! What a restart keeps, forgets and says.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Judgement, Native, World, above, at, expect, gpu, hit, metric, native, spec, stored};
use watchfire_core::engine::Engine;
use watchfire_core::record::Kept;
use watchfire_core::route::RouteTree;
use watchfire_core::{
    Aggregate, Cause, Condition, Effect, Event, Input, Labels, Reads, RuleFailure, RuleSpec, Scope, Severity, State,
};

const HEAT: &str = "gpu_temperature_celsius";

fn hot(after_s: u64) -> Vec<(RuleSpec, Native)> {
    vec![(spec("Hot", after_s), native(vec![metric(HEAT, Scope::Gpu)], above(85.0, Severity::Warning)))]
}

fn restarted(second: i64, rules: Vec<(RuleSpec, Native)>, kept: Kept) -> World {
    let mut world = World { engine: Engine::new(RouteTree::to("ops")), effects: Vec::new() };
    world.load(second, rules);
    world.engine.restore(at(second), kept, &mut world.effects);
    world
}

fn kept(world: &mut World, seen: i64) -> Kept {
    stored(seen, world.engine.take_changes(), world.engine.take_drift())
}

fn told(world: &World) -> Vec<(i64, State)> {
    let notified = world.effects.iter().filter_map(|effect| match effect {
        Effect::Notify(told) => Some((told.time.as_millis() / 1000, told.alerts[0].state)),
        _ => None,
    });
    notified.collect()
}

fn heated(until: i64) -> World {
    let mut world = World::new(hot(0));
    for second in (0..=until).step_by(5) {
        world.sample(second, HEAT, gpu(0), 90.0);
    }
    world.tick_to(until);
    world
}

#[test]
fn a_firing_alert_that_no_group_holds_is_told() {
    let mut before = heated(10);
    let kept = Kept { groups: Vec::new(), ..kept(&mut before, 10) };
    let mut after = restarted(12, hot(0), kept);
    after.sample(15, HEAT, gpu(0), 90.0);
    after.tick_to(60);
    expect(&after, &[]);
    assert_eq!(told(&after).len(), 1, "{:?}", after.effects);
}

#[test]
fn the_alert_of_a_rule_that_is_gone_ends_and_is_forgotten() {
    let mut before = heated(10);
    before.tick_to(60);
    let kept = kept(&mut before, 60);
    let mut after = restarted(62, Vec::new(), kept);
    after.tick_to(1000);
    expect(&after, &[(62, "Hot", "0", State::Resolved, Severity::Warning)]);
    assert_eq!(told(&after).iter().map(|(_, state)| *state).collect::<Vec<_>>(), [State::Resolved]);
    assert!(after.engine.take_changes().alerts.iter().all(|(_, record)| record.is_none()));
}

#[test]
fn what_is_kept_of_a_removed_rule_is_forgotten() {
    let mut world = heated(10);
    world.engine.take_changes();
    world.load(11, Vec::new());
    let changes = world.engine.take_changes();
    assert_eq!(changes.alerts.len(), 1);
    assert!(changes.alerts[0].1.is_none());
    assert_eq!(changes.gone, [Arc::<str>::from("test/Hot")]);
}

#[test]
fn downtime_counts_neither_for_nor_against() {
    let mut before = World::new(hot(60));
    for second in (0..=20).step_by(5) {
        before.sample(second, HEAT, gpu(0), 90.0);
    }
    before.tick_to(20);
    let kept = kept(&mut before, 20);
    let mut after = restarted(1022, hot(60), kept);
    for second in (1025..=1100).step_by(5) {
        after.sample(second, HEAT, gpu(0), 90.0);
    }
    after.tick_to(1100);
    expect(&after, &[(1060, "Hot", "0", State::Firing, Severity::Warning)]);
}

#[test]
fn a_clock_that_was_ahead_holds_nothing_up() {
    let mut before = World::new(hot(0));
    before.sample(100_000, HEAT, gpu(0), 90.0);
    before.tick_to(100_000);
    let kept = kept(&mut before, 100_000);
    let mut after = restarted(10, hot(0), kept);
    let starts_at = after.engine.alerts().next().unwrap().starts_at;
    assert_eq!(starts_at, at(10));
    after.sample(15, HEAT, gpu(0), 60.0);
    after.tick_to(400);
    expect(&after, &[(15, "Hot", "0", State::Resolved, Severity::Warning)]);
    assert_eq!(told(&after).last().map(|(_, state)| *state), Some(State::Resolved), "{:?}", after.effects);
}

fn down(raise: Option<Severity>) -> Event<'static> {
    Event::Condition(Condition {
        alert: "WatchfireSourceDown".into(),
        labels: Labels::new([("instance", "a:9400")]),
        raise,
        cause: Cause::Telemetry,
        note: "no answer".into(),
    })
}

#[test]
fn conditions_go_on_over_a_restart_and_end_honestly() {
    let mut before = World::new(Vec::new());
    before.engine.step(at(5), down(Some(Severity::Warning)), &mut before.effects);
    before.tick_to(60);
    let kept = kept(&mut before, 60);

    let mut after = restarted(70, Vec::new(), kept.clone());
    after.tick_to(400);
    after.engine.step(at(400), down(Some(Severity::Warning)), &mut after.effects);
    after.tick_to(3000);
    expect(&after, &[]);
    assert_eq!(after.engine.alerts().next().unwrap().starts_at, at(5));

    let mut silent = restarted(70, Vec::new(), kept);
    silent.tick_to(3000);
    expect(&silent, &[(70 + 900, "WatchfireSourceDown", "-", State::Resolved, Severity::Warning)]);
}

fn failing() -> Vec<(RuleSpec, Native)> {
    let judge: Judgement = Box::new(|_, _| Err(RuleFailure::Trap("unreachable".into())));
    vec![(spec("Bad", 0), native(vec![metric("gpu_up", Scope::Gpu)], judge))]
}

#[test]
fn quarantine_survives_and_ends_with_a_good_answer() {
    let mut before = World::new(failing());
    before.tick_to(100);
    let kept = kept(&mut before, 100);
    let mut exact = restarted(100, failing(), kept.clone());
    before.effects.clear();
    before.tick_to(2000);
    exact.tick_to(2000);
    assert!(!before.effects.is_empty());
    let failed = |world: &World| -> Vec<_> {
        world.effects.iter().filter(|effect| matches!(effect, Effect::RuleFailed { .. })).cloned().collect()
    };
    assert_eq!(failed(&exact), failed(&before), "it is retried when it would have been");

    let good = vec![(spec("Bad", 0), native(vec![metric("gpu_up", Scope::Gpu)], above(1.0, Severity::Info)))];
    let mut after = restarted(100, good, kept);
    after.tick_to(2000);
    let transitions = after.transitions();
    assert_eq!(transitions.len(), 1, "{transitions:?}");
    assert_eq!((&*transitions[0].1, transitions[0].3), ("WatchfireRuleQuarantined", State::Resolved));
}

/// A counter in state slots that derives a metric, and a rule that takes the mean of that over a window.
fn chain() -> Vec<(RuleSpec, Native)> {
    let counts: Judgement = Box::new(|batch, out| {
        for row in 0..batch.rows {
            let next = batch.state[row] + batch.columns[row] + batch.tick as f64;
            out.state.push(next);
            out.derived.push(next);
        }
        Ok(())
    });
    let mut writer = native(vec![metric(HEAT, Scope::Gpu)], counts);
    writer.descriptor.outputs = vec!["gpu_sum".into()];
    writer.descriptor.state_slots = 1;
    let reads = Reads::Metric { name: "gpu_sum".into(), aggregate: Aggregate::Mean };
    let input = Input { reads, scope: Scope::Gpu, window: Duration::from_secs(60), required: true, only: Vec::new() };
    let judge: Judgement = Box::new(|batch, out| {
        for row in (0..batch.rows).filter(|row| batch.quality[*row] == 0) {
            if batch.columns[row] as i64 % 7 < 3 {
                out.hits.push(hit(row, Severity::Warning, batch.columns[row]));
            }
        }
        Ok(())
    });
    vec![(spec("Reads", 10), native(vec![input], judge)), (spec("Counts", 0), writer)]
}

fn heat_at(second: i64) -> f64 {
    60.0 + ((second * 7919) % 31) as f64
}

/// A restart at any tick of a run whose samples are fed again goes on as if nothing had happened.
#[test]
fn a_restart_with_its_samples_fed_again_goes_on_exactly() {
    let end = 600;
    let run = |world: &mut World, from: i64, to: i64| {
        for second in (from..=to).step_by(5) {
            world.sample(second, HEAT, gpu(0), heat_at(second));
        }
        world.tick_to(to);
    };
    let mut whole = World::new(chain());
    run(&mut whole, 0, end);
    let expected = whole.effects.clone();
    assert!(expected.len() > 20, "{}", expected.len());
    for cut in (50..end).step_by(55) {
        let mut before = World::new(chain());
        before.engine.keep_derived();
        run(&mut before, 0, cut);
        let mut after = World { engine: Engine::new(RouteTree::to("ops")), effects: Vec::new() };
        after.load(0, chain());
        for second in (0..=cut).step_by(5) {
            after.engine.pass_over(at(second));
            after.feed(second, HEAT, gpu(0), heat_at(second));
        }
        let kept = kept(&mut before, cut);
        after.engine.restore(at(cut), kept, &mut after.effects);
        run(&mut after, cut + 5, end);
        let got: Vec<Effect> = before.effects.iter().chain(&after.effects).cloned().collect();
        assert_eq!(got, expected, "cut at {cut} s");
    }
}
