//! Groups on a time line: what happens, and what the receiver hears.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::severity::Severity::{Critical, Info, Warning};

fn at(second: i64) -> Time {
    Time::from_millis(second * 1000)
}

fn view(gpu: u32, state: State, severity: Severity) -> AlertView {
    AlertView {
        fingerprint: u64::from(gpu),
        rule: "t/Hot".into(),
        template: "t".into(),
        alert: "Hot".into(),
        labels: Labels::new([("host", "h1".to_owned()), ("gpu", gpu.to_string())]),
        state,
        severity,
        value: 90.0,
        cause: None,
        note: None,
        active_at: at(0),
        starts_at: at(0),
        ends_at: None,
        reason: None,
    }
}

struct World {
    groups: Groups,
    live: BTreeMap<u64, AlertView>,
    heard: Vec<Notification>,
}

impl World {
    fn new(group_wait_s: u64) -> Self {
        let route = Route { group_wait: Duration::from_secs(group_wait_s), ..Route::to("ops") };
        World { groups: Groups::new(RouteTree::new(route)), live: BTreeMap::new(), heard: Vec::new() }
    }

    fn change(&mut self, second: i64, gpu: u32, state: State, severity: Severity) {
        self.run_to(second);
        let view = view(gpu, state, severity);
        self.groups.on_change(at(second), &view, &mut self.heard);
        match state {
            State::Resolved => self.live.remove(&view.fingerprint),
            _ => self.live.insert(view.fingerprint, view),
        };
    }

    fn run_to(&mut self, second: i64) {
        while let Some(due) = self.groups.due().filter(|due| *due < at(second)) {
            let live = self.live.clone();
            self.groups.run(due, &|fingerprint| live.get(&fingerprint).cloned(), &mut self.heard);
        }
    }

    /// Second, then for each alert its GPU and what was said of it.
    fn heard(&self) -> Vec<(i64, String)> {
        let said = |view: &AlertView| format!("{}:{}:{}", view.labels.get("gpu").unwrap(), view.state, view.severity);
        let line = |n: &Notification| n.alerts.iter().map(said).collect::<Vec<_>>().join(" ");
        self.heard.iter().map(|n| (n.time.as_millis() / 1000, line(n))).collect()
    }
}

fn expect(world: &World, expected: &[(i64, &str)]) {
    let heard = world.heard();
    assert_eq!(heard.iter().map(|(second, line)| (*second, &**line)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_group_waits_then_speaks_at_intervals_then_repeats() {
    let mut world = World::new(30);
    world.change(0, 1, State::Firing, Warning);
    world.change(10, 2, State::Firing, Warning);
    world.change(60, 3, State::Firing, Warning);
    world.change(400, 1, State::Resolved, Warning);
    world.run_to(15_500);
    expect(
        &world,
        &[
            (30, "1:firing:warning 2:firing:warning"),
            (330, "1:firing:warning 2:firing:warning 3:firing:warning"),
            (630, "2:firing:warning 3:firing:warning 1:resolved:warning"),
            (15_030, "2:firing:warning 3:firing:warning"),
        ],
    );
    assert_eq!(world.heard.iter().map(|n| n.repeat).collect::<Vec<_>>(), [0, 0, 0, 1]);
}

#[test]
fn critical_firings_and_escalations_go_at_once() {
    let mut world = World::new(30);
    world.change(0, 1, State::Firing, Critical);
    world.change(1, 2, State::Firing, Critical);
    world.change(2, 3, State::Firing, Info);
    world.change(400, 3, State::Firing, Warning);
    world.run_to(1000);
    expect(
        &world,
        &[
            (0, "1:firing:critical"),
            (1, "1:firing:critical 2:firing:critical"),
            (301, "1:firing:critical 2:firing:critical 3:firing:info"),
            (400, "1:firing:critical 2:firing:critical 3:firing:warning"),
        ],
    );
}

#[test]
fn nobody_hears_of_an_end_without_a_beginning() {
    let mut world = World::new(30);
    world.change(0, 1, State::Firing, Warning);
    world.change(20, 1, State::Resolved, Warning);
    world.run_to(1000);
    expect(&world, &[]);
    assert!(world.groups.groups.is_empty());
}

#[test]
fn fires_resolves_and_fires_again() {
    let mut world = World::new(0);
    world.change(0, 1, State::Firing, Critical);
    world.change(300, 1, State::Resolved, Critical);
    world.change(360, 1, State::Firing, Critical);
    world.run_to(1000);
    expect(&world, &[(0, "1:firing:critical"), (300, "1:resolved:critical"), (360, "1:firing:critical")]);
}

#[test]
fn a_restart_repeats_nothing_and_tells_what_ended_meanwhile() {
    let mut world = World::new(0);
    world.change(0, 1, State::Firing, Warning);
    world.change(0, 2, State::Firing, Warning);
    world.run_to(310);
    let records: Vec<GroupRecord> = world.groups.take_changed().into_iter().filter_map(|(_, record)| record).collect();
    let told = world.heard.len();

    let mut after = World::new(0);
    after.groups.restore(records);
    after.live = world.live.clone();
    after.run_to(5000);
    expect(&after, &[]);
    after.live.remove(&2);
    after.change(5000, 2, State::Resolved, Warning);
    after.run_to(6000);
    expect(&after, &[(5000, "1:firing:warning 2:resolved:warning")]);
    assert_eq!(told, 1);
}

#[test]
fn a_receiver_that_heard_of_it_hears_of_its_end_though_the_severity_now_leads_elsewhere() {
    let matchers = vec![crate::matcher::Matcher::parse("severity=critical").unwrap()];
    let pager = Route { matchers, ..Route::to("pager") };
    let tree = RouteTree::new(Route { routes: vec![pager], ..Route::to("ops") });
    let mut world = World { groups: Groups::new(tree), ..World::new(0) };
    world.change(0, 1, State::Firing, Warning);
    world.change(100, 1, State::Firing, Critical);
    world.change(200, 1, State::Resolved, Critical);
    world.run_to(1000);
    let heard: Vec<(i64, &str, State)> =
        world.heard.iter().map(|n| (n.time.as_millis() / 1000, &*n.receiver, n.alerts[0].state)).collect();
    assert!(heard.contains(&(400, "pager", State::Resolved)), "{heard:?}");
    assert!(heard.iter().any(|(_, receiver, state)| *receiver == "ops" && *state == State::Resolved), "{heard:?}");
}
