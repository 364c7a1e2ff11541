//! Rows: where their values come from, what names them, and when they end.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::{Judgement, World, above, at, expect, gpu, hit, metric, native, spec};
use watchfire_core::{Aggregate, Event, EventStat, Input, Labels, Occurrence, Reads, RuleSpec, Scope, Severity, State};

const HEAT: &str = "gpu_temperature_celsius";

fn host(name: &str) -> Labels {
    Labels::new([("host", name)])
}

fn card(uuid: &str, host: &str) -> Labels {
    Labels::new([("host", host), ("gpu", "0"), ("uuid", uuid)])
}

/// Raises where the second column, that of the host, is above 1.
fn loaded() -> Judgement {
    Box::new(|batch, out| {
        for row in (0..batch.rows).filter(|row| batch.quality[batch.rows + row] == 0) {
            if batch.columns[batch.rows + row] > 1.0 {
                out.hits.push(hit(row, Severity::Info, batch.columns[batch.rows + row]));
            }
        }
        Ok(())
    })
}

#[test]
fn a_card_that_moves_to_another_host_reads_that_hosts_values() {
    let inputs = vec![metric("gpu_up", Scope::Gpu), metric("host_load1", Scope::Host)];
    let mut world = World::new(vec![(spec("Loaded", 0), native(inputs, loaded()))]);
    for (second, place) in [(0, "a"), (5, "b")] {
        world.sample(second, "host_load1", host("a"), 0.5);
        world.sample(second, "host_load1", host("b"), 9.0);
        world.sample(second, "gpu_up", card("GPU-1", place), 1.0);
        world.tick_to(second);
    }
    expect(&world, &[(5, "Loaded", "0", State::Firing, Severity::Info)]);
    assert_eq!(world.engine.alerts().next().unwrap().value, 9.0);
}

#[test]
fn the_first_input_of_the_rules_own_scope_names_its_rows() {
    let inputs = vec![metric("host_load1", Scope::Host), metric("gpu_up", Scope::Gpu)];
    let mut world = World::new(vec![(spec("Any", 0), native(inputs, above(1.0, Severity::Info)))]);
    world.sample(0, "host_load1", host("a"), 9.0);
    let named = |index: &str| card("GPU-1", "a").with(&Labels::new([("gpu", index)]));
    world.sample(0, "gpu_up", named("5"), 1.0);
    world.sample(1, "gpu_up", named("4"), 1.0);
    world.tick_to(5);
    assert_eq!(world.engine.alerts().next().unwrap().labels.get("gpu"), Some("4"));
}

fn increase(name: &str) -> Input {
    let reads = Reads::Metric { name: name.into(), aggregate: Aggregate::Increase };
    Input { reads, scope: Scope::Gpu, window: Duration::from_secs(60), required: true, only: Vec::new() }
}

#[test]
fn the_counters_of_two_sources_do_not_run_into_each_other() {
    let rule = native(vec![increase("gpu_ecc_total")], above(5.0, Severity::Warning));
    let mut world = World::new(vec![(spec("Ecc", 0), rule)]);
    let from = |source: &str| gpu(0).with(&Labels::new([("source", source)]));
    for second in (0..120).step_by(5) {
        world.sample(second, "gpu_ecc_total", from("nvml"), 1000.0);
        if second > 20 {
            world.sample(second, "gpu_ecc_total", from("dcgm"), 5.0);
        }
    }
    world.tick_to(120);
    expect(&world, &[]);
}

#[test]
fn a_target_that_never_comes_back_ends() {
    let rule = native(vec![metric(HEAT, Scope::Gpu)], above(85.0, Severity::Warning));
    let hourly = RuleSpec { interval: Duration::from_secs(600), ..spec("Hot", 0) };
    let mut world = World::new(vec![(hourly, rule)]);
    world.sample(0, HEAT, gpu(0), 90.0);
    world.tick_to(100_000);
    let day = 600 + 24 * 3600;
    let states: Vec<_> = world.transitions().iter().map(|one| (one.0, one.3)).collect();
    assert_eq!(states, [(0, State::Firing), (600 + 1200, State::Unknown), (day, State::Resolved)]);
    assert_eq!(world.engine.alerts().count(), 0);
}

fn quantile() -> Input {
    let reads = Reads::Metric { name: "vllm_seconds".into(), aggregate: Aggregate::HistogramQuantile(0.5) };
    Input { reads, scope: Scope::Host, window: Duration::from_secs(60), required: true, only: Vec::new() }
}

#[test]
fn a_histogram_is_fresh_while_any_of_its_buckets_is() {
    let mut rule = native(vec![quantile()], above(0.1, Severity::Info));
    rule.descriptor.scope = Scope::Host;
    let mut world = World::new(vec![(spec("Slow", 0), rule)]);
    let bucket = |engine: &str, le: &str| Labels::new([("host", "h1"), ("engine", engine), ("le", le)]);
    for second in (0..=60).step_by(5) {
        for le in ["1", "+Inf"] {
            world.sample(second, "vllm_seconds_bucket", bucket("0", le), second as f64);
            if second < 10 {
                world.sample(second, "vllm_seconds_bucket", bucket("1", le), second as f64);
            }
        }
    }
    world.tick_to(60);
    let states: Vec<_> = world.transitions().iter().map(|one| (one.0, one.3)).collect();
    assert_eq!(states, [(5, State::Firing)]);
    let life = world.engine.take_changes().alerts[0].1.clone().unwrap().life;
    assert_eq!(life.missing_since, None, "engine 0 still answers");
}

#[test]
fn an_event_of_a_host_happens_to_all_its_rows_and_one_of_nothing_is_counted() {
    let reads = Reads::Event { kind: "power".into(), codes: Vec::new(), stat: EventStat::Count };
    let event = Input { reads, scope: Scope::Host, window: Duration::from_secs(60), required: false, only: Vec::new() };
    let judge: Judgement = Box::new(|batch, out| {
        let rows = (0..batch.rows).filter(|row| batch.columns[batch.rows + row] > 0.0);
        out.hits.extend(rows.map(|row| hit(row, Severity::Warning, 1.0)));
        Ok(())
    });
    let rule = native(vec![metric("gpu_up", Scope::Gpu), event], judge);
    let mut world = World::new(vec![(spec("Power", 0), rule)]);
    for (uuid, place) in [("GPU-1", "a"), ("GPU-2", "b")] {
        world.sample(0, "gpu_up", card(uuid, place), 1.0);
    }
    for labels in [host("a"), Labels::new([("rack", "7")])] {
        let event = Occurrence { kind: "power".into(), labels, time: at(1), code: 1, job: None };
        world.engine.step(at(1), Event::Occurred(event), &mut world.effects);
    }
    world.tick_to(5);
    let uuids: Vec<_> = world.engine.alerts().map(|view| view.labels.get("uuid").map(str::to_owned)).collect();
    assert_eq!(uuids, [Some("GPU-1".to_owned())]);
    assert_eq!(world.engine.rules().next().unwrap().counts.events_unplaced_total, 1);
}

/// 200,000 targets are the most of one rule: what is beyond is counted and said.
#[test]
fn a_rule_that_is_full_says_so() {
    let mut world =
        World::new(vec![(spec("Up", 0), native(vec![metric("gpu_up", Scope::Gpu)], Box::new(|_, _| Ok(()))))]);
    for index in 0..=watchfire_core::targets::ROWS_MAX as u32 {
        world.feed(0, "gpu_up", gpu(index), 1.0);
    }
    world.tick_to(0);
    let status = world.engine.rules().next().unwrap();
    assert_eq!((status.rows, status.counts.rows_refused_total), (200_000, 1));
    let alert = world.engine.alerts().next().unwrap();
    assert_eq!((&*alert.alert, alert.labels.get("limit")), ("WatchfireLimitReached", Some("rows")));
    assert!(alert.note.unwrap().starts_with("test/Up has 200000 rows"));
    world.load(1, Vec::new());
    world.engine.step(at(10), Event::Tick, &mut world.effects);
    assert_eq!(world.engine.alerts().count(), 0);
}
