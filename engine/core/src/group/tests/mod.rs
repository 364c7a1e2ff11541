//! Groups on scripted time lines and under random ones.

#![allow(clippy::unwrap_used, reason = "tests")]

mod random;

use super::*;
use crate::effect::Reason;
use crate::matcher::Matcher;
use crate::route::GroupBy;
use crate::severity::Severity::{self, Critical, Emergency, Info, Warning};

fn at(second: i64) -> Time {
    Time::from_millis(second * 1000)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Groups with the alerts that the engine would know.
struct World {
    groups: Groups,
    alerts: BTreeMap<u64, AlertView>,
    sent: Vec<Notification>,
}

impl World {
    fn new(root: Route) -> Self {
        World { groups: Groups::new(RouteTree::new(root)), alerts: BTreeMap::new(), sent: Vec::new() }
    }

    /// Lets time pass up to and including `second`.
    fn to(&mut self, second: i64) {
        while let Some(due) = self.groups.due().filter(|due| *due <= at(second)) {
            self.run(due);
        }
    }

    fn run(&mut self, now: Time) {
        let alerts = &self.alerts;
        self.groups.run(now, &|fingerprint| alerts.get(&fingerprint).cloned(), &mut self.sent);
    }

    /// The alert of a GPU fires, or changes its severity.
    fn fire(&mut self, second: i64, gpu: u64, severity: Severity) {
        self.to(second - 1);
        let was = self.alerts.get(&gpu).map(|alert| alert.starts_at);
        let alert = view(gpu, severity, was.unwrap_or(at(second)));
        self.alerts.insert(gpu, alert.clone());
        self.groups.on_change(at(second), &alert);
        self.to(second);
    }

    fn end(&mut self, second: i64, gpu: u64) {
        self.to(second - 1);
        if let Some(alert) = self.alerts.remove(&gpu) {
            let alert = AlertView { state: State::Resolved, ends_at: Some(at(second)), ..alert };
            self.groups.on_change(at(second), &alert);
        }
        self.to(second);
    }

    /// What was sent, in words: second, receiver, alerts; `r1` is the first repeat.
    fn told(&self) -> Vec<String> {
        self.sent.iter().map(words).collect()
    }
}

fn view(gpu: u64, severity: Severity, starts_at: Time) -> AlertView {
    AlertView {
        fingerprint: gpu,
        rule: "test/Hot".into(),
        template: "test".into(),
        alert: "Hot".into(),
        labels: Labels::new([("host", "h1".to_owned()), ("gpu", gpu.to_string())]),
        state: State::Firing,
        severity,
        value: 90.0,
        cause: None,
        note: None,
        active_at: starts_at,
        starts_at,
        ends_at: None,
        reason: None,
        stale: false,
    }
}

fn words(sent: &Notification) -> String {
    let alert = |alert: &AlertView| {
        let end = if alert.state == State::Resolved { "-" } else { "" };
        format!("{end}{}:{}", alert.fingerprint, alert.severity)
    };
    let alerts: Vec<String> = sent.alerts.iter().map(alert).collect();
    let repeat = if sent.reason == Reason::Repeat { format!(" r{}", sent.repeat) } else { String::new() };
    format!("{} {} {}{repeat}", sent.time.as_millis() / 1000, sent.receiver, alerts.join(" "))
}

/// `group_wait: 30s, group_interval: 5m, repeat_interval: 1h`, grouped by name and host.
fn slow() -> Route {
    Route { group_wait: secs(30), repeat_interval: secs(3600), ..Route::to("ops") }
}

/// Plays a script such as `0:1w 20:1-`: at second 0 the alert of GPU 1 fires as a warning, at second 20 it ends.
fn play(root: Route, script: &str, until: i64) -> Vec<String> {
    let mut world = World::new(root);
    for step in script.split_whitespace() {
        let (second, what) = step.split_once(':').unwrap();
        let (gpu, how) = what.split_at(what.len() - 1);
        let (second, gpu) = (second.parse().unwrap(), gpu.parse().unwrap());
        match Severity::ALL.into_iter().find(|severity| severity.as_str().starts_with(how)) {
            Some(severity) => world.fire(second, gpu, severity),
            None => world.end(second, gpu),
        }
    }
    world.to(until);
    world.told()
}

#[test]
fn time_lines() {
    let cases: [(&str, &str, i64, &[&str]); 14] = [
        ("waits, then repeats", "0:1w", 7300, &["30 ops 1:warning", "3630 ops 1:warning r1", "7230 ops 1:warning r2"]),
        (
            "alerts that come while it waits share the message, worst first, then oldest",
            "0:1i 5:2w 9:3w",
            60,
            &["30 ops 2:warning 3:warning 1:info"],
        ),
        (
            "later changes wait for the interval",
            "0:1w 40:2w 331:3w",
            700,
            &["30 ops 1:warning", "330 ops 1:warning 2:warning", "630 ops 1:warning 2:warning 3:warning"],
        ),
        ("a change at a tick goes with it", "0:1w 330:2w", 700, &["30 ops 1:warning", "330 ops 1:warning 2:warning"]),
        ("an end is told once, with the interval", "0:1w 100:1-", 9000, &["30 ops 1:warning", "330 ops -1:warning"]),
        ("what was never told has no end", "0:1w 20:1-", 9000, &[]),
        (
            "a critical alert goes at once, also the second one",
            "0:1c 7:2e",
            60,
            &["0 ops 1:critical", "7 ops 2:emergency 1:critical"],
        ),
        (
            "growing goes at once",
            "0:1i 100:1w 110:1c",
            400,
            &["30 ops 1:info", "100 ops 1:warning", "110 ops 1:critical"],
        ),
        ("shrinking waits for the interval", "0:1c 100:1w", 400, &["0 ops 1:critical", "300 ops 1:warning"]),
        (
            "growing back before the interval is no news",
            "0:1c 100:1w 200:1c",
            3700,
            &["0 ops 1:critical", "3600 ops 1:critical r1"],
        ),
        (
            "a quick end and a new start between two messages are no news",
            "0:1c 100:1- 160:1c",
            3700,
            &["0 ops 1:critical", "3600 ops 1:critical r1"],
        ),
        (
            "fire, resolve, fire",
            "0:1c 100:1- 400:1c",
            500,
            &["0 ops 1:critical", "300 ops -1:critical", "400 ops 1:critical"],
        ),
        (
            "an urgent message takes what waits with it",
            "0:1w 40:2w 50:1- 60:3c",
            700,
            &["30 ops 1:warning", "60 ops 3:critical 2:warning -1:warning"],
        ),
        (
            "the end is told with the severity that was told",
            "0:1c 10:1w 20:1-",
            700,
            &["0 ops 1:critical", "300 ops -1:critical"],
        ),
    ];
    for (name, script, until, expected) in cases {
        assert_eq!(play(slow(), script, until), expected, "{name}");
    }
}

#[test]
fn the_default_wait_is_none_and_repeats_come_after_four_hours() {
    let told = play(Route::to("ops"), "0:1w", 15_000);
    assert_eq!(told, ["0 ops 1:warning", "14400 ops 1:warning r1"]);
}

#[test]
fn urgent_alerts_of_one_step_share_a_message() {
    let mut world = World::new(slow());
    for gpu in 0..8 {
        let alert = view(gpu, Critical, at(0));
        world.groups.on_change(at(0), &alert);
    }
    assert_eq!(world.groups.due(), Some(at(0)));
    world.run(at(0));
    assert_eq!(world.sent.len(), 1);
    assert_eq!(world.sent[0].alerts.len(), 8);
    assert_eq!(&*world.sent[0].group_key, r#"{}:{alertname="Hot", host="h1"}"#);
    assert_eq!(world.sent[0].group_labels.to_string(), r#"{alertname="Hot", host="h1"}"#);
}

#[test]
fn a_change_just_after_a_message_waits_for_the_next_interval() {
    let mut world = World::new(slow());
    world.fire(0, 1, Warning);
    world.to(30);
    world.fire(30, 2, Warning);
    world.to(329);
    assert_eq!(world.told(), ["30 ops 1:warning"]);
    world.to(330);
    assert_eq!(world.sent.len(), 2);
}

#[test]
fn a_message_shows_the_newest_value() {
    let mut world = World::new(slow());
    world.fire(0, 1, Warning);
    world.alerts.get_mut(&1).unwrap().value = 97.5;
    world.to(30);
    assert_eq!(world.sent[0].alerts[0].value, 97.5);
}

#[test]
fn an_alert_without_data_still_fires() {
    let mut world = World::new(slow());
    world.fire(0, 1, Warning);
    world.alerts.get_mut(&1).unwrap().state = State::Unknown;
    world.to(30);
    let unknown = world.alerts[&1].clone();
    world.groups.on_change(at(40), &unknown);
    world.to(3000);
    assert_eq!(world.told(), ["30 ops 1:warning"]);
}

#[test]
fn telling_the_same_again_changes_nothing() {
    let mut world = World::new(Route::to("ops"));
    for second in 0..10 {
        world.fire(second, 1, Critical);
    }
    assert_eq!(world.told(), ["0 ops 1:critical"]);
}

#[test]
fn groups_without_alerts_are_no_more() {
    let mut world = World::new(Route { group_by: GroupBy::All, ..Route::to("ops") });
    for gpu in 0..100 {
        world.fire(0, gpu, Warning);
    }
    assert_eq!(world.groups.len(), 100);
    for gpu in 0..100 {
        world.end(10, gpu);
    }
    world.to(1000);
    assert!(world.groups.is_empty() && world.groups.homes.is_empty() && world.groups.queue.is_empty());
    assert_eq!(world.groups.due(), None);
    assert!(world.groups.take_changed().iter().all(|(_, record)| record.is_none()));
    assert_eq!(world.groups.take_changed(), []);
}

/// Critical alerts go to `pager`, all others to `ops`.
fn split() -> Route {
    let pager =
        Route { matchers: Matcher::parse_list("severity=~\"critical|emergency\"").unwrap(), ..Route::to("pager") };
    Route { routes: vec![pager], ..Route::to("ops") }
}

#[test]
fn an_alert_that_takes_another_route_ends_on_the_old_one() {
    let script = "0:1w 100:1c 400:1w 1000:1-";
    let expected = [
        "0 ops 1:warning",
        "100 pager 1:critical",
        "300 ops -1:warning",
        "400 ops 1:warning",
        "400 pager -1:critical",
        "1000 ops -1:warning",
    ];
    let mut world = World::new(split());
    assert_eq!(play(split(), script, 5000), expected);
    world.fire(0, 1, Warning);
    world.fire(100, 1, Critical);
    world.to(300);
    let moved = &world.sent[2].alerts[0];
    assert_eq!((moved.reason.as_deref(), moved.ends_at), (Some(MOVED), Some(at(100))));
}

#[test]
fn an_alert_that_comes_back_in_time_never_left() {
    let script = "0:1w 100:1c 200:1w";
    assert_eq!(play(split(), script, 1000), ["0 ops 1:warning", "100 pager 1:critical", "400 pager -1:critical"]);
}

#[test]
fn growing_on_to_a_mild_route_is_still_urgent() {
    let team = Route { matchers: Matcher::parse_list("severity=warning").unwrap(), ..slow() };
    let team = Route { receiver: "team".into(), ..team };
    let script = "0:1i 100:1w";
    let told = play(Route { routes: vec![team], ..slow() }, script, 200);
    assert_eq!(told, ["30 ops 1:info", "100 team 1:warning"]);
}

#[test]
fn a_route_that_continues_tells_both() {
    let first = Route { continue_: true, receiver: "log".into(), ..Route::to("log") };
    let twin = first.clone();
    let root = Route { routes: vec![first, twin, Route::to("pager")], ..Route::to("ops") };
    assert_eq!(play(root, "0:1c", 10), ["0 log 1:critical", "0 pager 1:critical"]);
}

/// A restart at `second`: what was kept goes into new groups, with the alerts that came back.
fn restarted(old: World, second: i64, root: Route) -> World {
    let mut world = World { alerts: old.alerts, ..World::new(root) };
    world.groups.restore(at(second), old.groups.snapshot());
    world
}

#[test]
fn a_restart_tells_nothing_anew() {
    let mut world = World::new(slow());
    world.fire(0, 1, Warning);
    world.fire(10, 2, Critical);
    world.to(20);
    let mut world = restarted(world, 500, slow());
    for alert in world.alerts.clone().values() {
        world.groups.on_change(at(501), alert);
    }
    world.to(3700);
    assert_eq!(world.told(), ["3610 ops 2:critical 1:warning r1"]);
}

#[test]
fn what_a_crash_kept_from_being_told_is_told_after_it() {
    let mut world = World::new(slow());
    world.fire(0, 1, Warning);
    let mut world = restarted(world, 100, slow());
    world.run(at(100));
    assert_eq!(world.told(), ["100 ops 1:warning"]);
    assert_eq!(world.sent[0].alerts[0].starts_at, at(0));
}

#[test]
fn an_end_during_a_restart_is_told_once() {
    let mut world = World::new(Route::to("ops"));
    world.fire(0, 1, Critical);
    world.fire(0, 2, Critical);
    world.end(10, 1);
    // 1 had ended before, and was not told yet; 2 ends when its rule looks again.
    let mut world = restarted(world, 100, Route::to("ops"));
    world.end(105, 2);
    world.to(20_000);
    assert_eq!(world.told(), ["300 ops -1:critical -2:critical"]);
}

#[test]
fn an_alert_that_nothing_reports_after_a_restart_has_ended() {
    let mut world = World::new(Route::to("ops"));
    world.fire(0, 1, Critical);
    world.alerts.clear();
    let mut world = restarted(world, 1000, Route::to("ops"));
    world.to(1000 + 59);
    assert_eq!(world.told(), [] as [&str; 0]);
    world.to(20_000);
    assert_eq!(world.told(), ["1200 ops -1:critical"]);
    assert_eq!(world.sent[0].alerts[0].reason.as_deref(), Some(NOT_BACK));
}

#[test]
fn changed_groups_are_what_a_restart_needs() {
    let mut world = World::new(Route::to("ops"));
    let mut stored = BTreeMap::new();
    for (second, gpu, severity) in
        [(0, 1, Some(Critical)), (5, 2, Some(Warning)), (9, 1, Some(Emergency)), (20, 2, None)]
    {
        match severity {
            Some(severity) => world.fire(second, gpu, severity),
            None => world.end(second, gpu),
        }
        for (key, record) in world.groups.take_changed() {
            match record {
                Some(record) => stored.insert(key, record),
                None => stored.remove(&key),
            };
        }
        assert_eq!(stored.values().cloned().collect::<Vec<_>>(), world.groups.snapshot(), "after second {second}");
    }
}

#[test]
fn the_alerts_of_a_removed_rule_end() {
    let mut world = World::new(Route::to("ops"));
    world.fire(0, 1, Critical);
    world.groups.forget_rule(at(10), "test/Other");
    world.groups.forget_rule(at(10), "test/Hot");
    world.groups.forget_rule(at(10), "test/Hot");
    world.to(5000);
    assert_eq!(world.told(), ["0 ops 1:critical", "300 ops -1:critical"]);
}

#[test]
fn new_routes_move_alerts_and_keep_what_was_told() {
    let mut world = World::new(split());
    world.fire(0, 1, Warning);
    world.fire(0, 2, Critical);
    world.groups.set_routes(at(10), RouteTree::new(split()));
    world.to(600);
    assert_eq!(world.told(), ["0 ops 1:warning", "0 pager 2:critical"], "the same routes change nothing");
    world.groups.set_routes(at(600), RouteTree::to("ops"));
    world.to(600);
    assert_eq!(world.told()[2..], ["600 ops 2:critical 1:warning".to_owned()], "there is no pager to be told the end");
    assert_eq!(world.groups.len(), 1);
}

#[test]
fn no_repeat_interval_is_too_short() {
    let told = play(Route { repeat_interval: Duration::ZERO, ..Route::to("ops") }, "0:1c", 2);
    assert_eq!(told, ["0 ops 1:critical", "1 ops 1:critical r1", "2 ops 1:critical r2"]);
    let mut world = World::new(Route { repeat_interval: Duration::MAX, group_wait: Duration::MAX, ..Route::to("ops") });
    world.fire(0, 1, Warning);
    world.run(Time::MAX);
    assert_eq!(world.sent.len(), 1, "the end of time is no endless loop");
}
