//! Scenarios: what their files may say, and when what was seen is what was expected.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use watchfire_core::{AlertView, Labels, Severity, State, Transition};
use watchfire_door::Errors;
use watchfire_template::scenario::{START, Scenario, Seen, compare, difference, picture, read, to_yaml};

fn scenario(text: &str) -> (Option<Scenario>, String) {
    let mut errors = Errors::default();
    let scenario = read("FILE", text, &mut errors);
    (scenario, errors.to_string().replace("FILE:", ""))
}

/// What is wrong with a scenario of these lines from line 2.
fn refused(lines: &str) -> String {
    scenario(&format!("scenario: s\n{lines}\n")).1
}

#[test]
fn each_mistake_is_told_at_its_place() {
    let cases = [
        ("interval: 0s\nexpect: []", "2:11: `interval` must be longer than 0s"),
        (
            "intervall: 1s\nexpect: []",
            "1:1: missing key `interval`\n2:1: unknown key `intervall`; expected one of scenario, interval, stale_after, series, events, rules, expect_failures, expect, parameters, end\n  hint: did you mean `interval`?",
        ),
        (
            "interval: 1s\nexpect: [{at: 1s, state: on, severity: bad, valu: 1}]",
            "3:10: missing key `alert`\n3:26: \"on\" is none of inactive, pending, firing, resolved, unknown\n3:40: \"bad\" is none of info, warning, critical, emergency\n3:45: unknown key `valu`; expected one of at, alert, state, severity, cause, value, labels, note, summary\n  hint: did you mean `value`?",
        ),
        (
            "interval: 1s\nseries: [{metric: m, values: 70 hot}]\nexpect: []",
            "3:30: \"hot\" is no value; expected 70, 70x8, 70..90x5, 0+10x6, (70 90)x5, _x3, stale or reset",
        ),
        (
            "interval: 1s\nseries: [{metric: m, values: 1x600000}, {metric: n, values: 1x600000}]\nexpect: []",
            "3:61: the scenario has more than 1000000 values",
        ),
        (
            "interval: 200000000000d\nseries: [{metric: m, values: 1x2000}]\nexpect: []",
            "1:1: the scenario lasts 213503982334d14h25m51s615ms; at most 3660d",
        ),
        ("interval: 1s\nend: 30d\nexpect: []", "1:1: the scenario lasts 2592000 intervals; at most 1000000"),
        (
            "interval: 1s\nevents: [{at: 5y, kind: xid, code: -1}]\nexpect: []",
            "3:15: \"5y\" is no duration; expected a number with ms, s, m, h, d or w, such as 1h30m\n3:36: \"-1\" is no code; expected a whole number from 0 to 4294967295",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(refused(lines), expected, "{lines}");
    }
}

#[test]
fn it_lasts_until_the_last_sample_event_and_end() {
    let end = |lines: &str| scenario(&format!("scenario: s\ninterval: 15s\nexpect: []\n{lines}")).0.unwrap().end;
    let cases = [
        ("", 0),
        ("series: [{metric: m, values: 1x9}]", 120),
        ("series: [{metric: m, values: 1x9}]\nevents: [{at: 3m, kind: xid, code: 79}]", 180),
        ("series: [{metric: m, values: 1x9}]\nend: 5m", 300),
    ];
    for (lines, seconds) in cases {
        assert_eq!(end(lines), START + Duration::from_secs(seconds), "{lines}");
    }
}

#[test]
fn names_of_alerts_that_are_not_there_are_refused() {
    let text = "scenario: s\ninterval: 1s\nrules: [Hott]\nexpect: [{alert: Cold}, {alert: Hot}, {alert: WatchfireRuleQuarantined}]\n";
    let mut errors = Errors::default();
    scenario(text).0.unwrap().check_names(&["Hot", "Lost"], &mut errors);
    assert_eq!(
        errors.to_string().replace("FILE:", ""),
        "3:9: the template has no alert `Hott`; expected one of Hot, Lost\n  hint: did you mean `Hot`?\n4:18: the template has no alert `Cold`; expected one of Hot, Lost"
    );
}

fn seen(second: u64, gpu: &str, state: State) -> Seen {
    let time = START + Duration::from_secs(second);
    let alert = AlertView {
        fingerprint: 1,
        rule: "t/Hot".into(),
        template: "t".into(),
        alert: "Hot".into(),
        labels: Labels::new([("gpu", gpu), ("host", "h \"1\"")]),
        state,
        severity: Severity::Warning,
        value: 1.0,
        cause: None,
        note: None,
        active_at: time,
        starts_at: time,
        ends_at: None,
        reason: None,
        stale: false,
    };
    Seen { transition: Transition { time, alert, from: (State::Inactive, None) }, summary: String::new() }
}

fn compared(expect: &str, seen: &[Seen]) -> Result<(), String> {
    let (scenario, errors) = scenario(&format!("scenario: s\ninterval: 1s\nexpect: {expect}\n"));
    assert_eq!(errors, "", "{expect}");
    compare(&scenario.unwrap().expect, seen)
}

#[test]
fn all_that_is_expected_is_seen_in_order_and_nothing_else() {
    use State::{Firing, Resolved};
    let both = [seen(5, "0", Firing), seen(5, "1", Firing), seen(9, "0", Resolved), seen(9, "1", Resolved)];
    let good = [
        "[{alert: Hot, state: firing}, {alert: Hot, labels: {gpu: \"0\"}}, {alert: Hot, at: 9s}, {alert: Hot}]",
        "[{at: 5s, alert: Hot}, {at: 5s, alert: Hot, labels: {gpu: \"0\"}}, {at: 9s, alert: Hot}, {at: 9s, alert: Hot, labels: {gpu: \"0\"}}]",
        "[{at: 9s, alert: Hot}, {at: 9s, alert: Hot}, {at: 5s, alert: Hot, labels: {gpu: \"1\"}}, {at: 5s, alert: Hot}]",
    ];
    for expect in good {
        assert_eq!(compared(expect, &both), Ok(()), "{expect}");
    }
    let bad = [
        ("[]", "+     5s Hot firing warning"),
        ("[{alert: Hot}, {alert: Hot}, {alert: Hot}]", "+     9s Hot resolved warning"),
        ("[{alert: Hot}, {alert: Hot}, {alert: Hot}, {alert: Hot}, {alert: Hot}]", "-    any Hot"),
        ("[{alert: Hot, state: resolved}, {at: 5s, alert: Hot}, {alert: Hot}, {alert: Hot}]", "the order differs"),
    ];
    for (expect, part) in bad {
        let why = compared(expect, &both).unwrap_err();
        assert!(why.contains(part), "{expect}:\n{why}");
    }
}

#[test]
fn a_failure_is_drawn_with_its_values_and_places() {
    use State::{Firing, Pending, Resolved};
    let seen = [seen(3, "0", Pending), seen(9, "0", Firing), seen(11, "0", Resolved), seen(12, "1", Firing)];
    let text = "scenario: s\ninterval: 1s\nseries:\n  - {metric: temp, labels: {gpu: \"0\"}, values: \"70x3 90.25x9 _ stale\"}\nexpect:\n  - {at: 3s, alert: Hot, state: pending}\n  - {at: 7s, alert: Hot, state: firing, severity: critical}\n  - {at: 11s, alert: Hot, state: resolved}\n";
    let scenario = scenario(text).0.unwrap();
    let found = difference(&scenario.expect, &seen).unwrap();
    let text = picture(&scenario, &seen, &found) + &found.in_words(&scenario.expect, &seen);
    let expected = include_str!("picture.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/picture.txt"), text).unwrap();
        return;
    }
    assert_eq!(text, expected);
}

#[test]
fn what_is_written_of_several_targets_tells_them_apart_and_reads_back() {
    use State::{Firing, Resolved};
    let both = [seen(5, "0", Firing), seen(5, "1", Firing), seen(9, "1", Resolved)];
    let text = to_yaml(&both);
    assert!(text.contains("labels: {gpu: \"1\"}") && !text.contains("host"), "{text}");
    let expect = scenario(&format!("scenario: s\ninterval: 1s\n{text}")).0.unwrap().expect;
    assert_eq!(compare(&expect, &both), Ok(()));
    let other = [seen(5, "0", Firing), seen(5, "1", Firing), seen(9, "0", Resolved)];
    assert!(compare(&expect, &other).is_err());
    assert!(!to_yaml(&both[..1]).contains("labels"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_scenario_is_a_reason_to_panic(interval in "[0-9]{1,19}(ms|s|d|w)", end in "[0-9]{1,19}(ms|s|d|w)", values in "[0-9x.+_ -]{0,12}") {
        let text = format!("scenario: s\ninterval: {interval}\nend: {end}\nevents: [{{at: {end}, kind: k, code: 1}}]\nseries: [{{metric: m, values: \"{values}\"}}]\nexpect: [{{alert: A, at: {end}}}]");
        let (scenario, errors) = scenario(&text);
        proptest::prop_assert!(scenario.is_some() || !errors.is_empty());
    }
}
