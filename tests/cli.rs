//! The command line as a user sees it: words, output, exit codes.
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use serde_json::Value;
use world::{stdout, watchfire};

/// time, alert, severity, state of each line of `--json`.
fn replayed(config: &str, input: &str) -> Vec<(String, String, String, String)> {
    let output = watchfire(&["replay", "-c", config, "--input", input, "--json"]);
    assert!(output.status.success(), "{output:?}");
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let lines = stdout(&output);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| (word(&line, "time"), word(&line, "alert"), word(&line, "severity"), word(&line, "state")))
        .collect()
}

fn expect(got: &[(String, String, String, String)], expected: &[(&str, &str, &str)]) {
    let got: Vec<_> = got.iter().map(|(time, _, severity, state)| (&time[11..19], &**severity, &**state)).collect();
    assert_eq!(got, expected);
}

const MINIMAL: &str = "examples/minimal/watchfire.yaml";

#[test]
fn heat_is_pending_then_warning_then_critical_then_resolved() {
    for input in ["tests/data/hot.om", "tests/data/hot-dcgm.om"] {
        expect(
            &replayed(MINIMAL, input),
            &[
                ("00:02:00", "warning", "pending"),
                ("00:07:00", "warning", "firing"),
                ("00:10:00", "critical", "firing"),
                ("00:13:00", "critical", "resolved"),
            ],
        );
    }
}

#[test]
fn heat_that_is_too_short_fires_nothing() {
    let got = replayed(MINIMAL, "tests/data/short-heat.om");
    expect(&got, &[("00:02:00", "warning", "pending"), ("00:07:00", "warning", "inactive")]);
}

#[test]
fn swings_around_the_limit_fire_once() {
    let got = replayed("tests/data/swings/watchfire.yaml", "tests/data/swings.om");
    let states: Vec<&str> = got.iter().map(|(.., state)| state.as_str()).collect();
    assert_eq!(states, ["firing", "resolved"], "{got:?}");
}

#[test]
fn notifications_are_shown_as_a_webhook_would_get_them() {
    let args = ["replay", "-c", MINIMAL, "--input", "tests/data/hot.om", "--json", "--notifications"];
    let text = stdout(&watchfire(&args));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<&Value> = lines.iter().filter(|line| line["receiver"] == "ops").collect();
    let said = |line: &Value| {
        let alert = &line["payload"]["alerts"][0];
        format!(
            "{} {} {}",
            &line["time"].as_str().unwrap()[11..19],
            line["payload"]["status"],
            alert["labels"]["severity"]
        )
    };
    let said: Vec<String> = told.iter().map(|line| said(line).replace('"', "")).collect();
    assert_eq!(said, ["00:07:00 firing warning", "00:10:00 firing critical", "00:17:00 resolved critical"]);
    assert_eq!(told[0]["payload"]["alerts"][0]["annotations"]["summary"], "GPU 0 on h1 is at 86.0 °C");
}

#[test]
fn check_lists_every_mistake_with_its_place_and_a_hint() {
    let output = watchfire(&["check", "tests/data/five/watchfire.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = include_str!("data/five/expected.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(world::root().join("tests/data/five/expected.txt"), stdout(&output)).unwrap();
        return;
    }
    assert_eq!(stdout(&output), expected);
}

#[test]
fn what_is_shipped_passes_its_own_check_and_scenarios() {
    let checked = watchfire(&["check", "rules", MINIMAL]);
    assert!(checked.status.success(), "{}", stdout(&checked));
    let tested = watchfire(&["test"]);
    assert!(tested.status.success());
    assert!(stdout(&tested).lines().last().unwrap().ends_with(" passed, 0 failed"), "{}", stdout(&tested));
}

#[test]
fn a_scenario_that_fails_shows_its_time_line_and_can_be_blessed() {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = folder.path().join("scenarios");
    std::fs::create_dir(&scenarios).unwrap();
    let template = "template: t\nversion: 1.0.0\nrules:\n  - {alert: Hot, when: \"gpu_temperature_celsius > 85\", severity: warning, for: 1m}\n";
    std::fs::write(folder.path().join("template.yaml"), template).unwrap();
    let scenario = "scenario: hot\ninterval: 30s\nseries:\n  - {metric: gpu_temperature_celsius, labels: {gpu: \"0\"}, values: \"90x10\"}\nexpect: []\n";
    let file = scenarios.join("hot.yaml");
    std::fs::write(&file, scenario).unwrap();
    let path = folder.path().to_str().unwrap();
    let failed = watchfire(&["test", path]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(stdout(&failed).contains("+     1m Hot firing warning"), "{}", stdout(&failed));
    assert!(watchfire(&["test", path, "--update"]).status.success());
    let blessed = std::fs::read_to_string(&file).unwrap();
    assert!(blessed.contains("  - {at: 1m, alert: Hot, state: firing, severity: warning, value: 90}"), "{blessed}");
    let again = watchfire(&["test", path]);
    assert_eq!(stdout(&again).lines().last(), Some("1 passed, 0 failed"));
}

/// A century between two samples must not take a century's worth of ticks.
#[test]
fn a_gap_of_years_is_jumped_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("far.rec");
    let text = "#watchfire-recording v1\ns 0 45000 gpu_up{gpu=\"0\"}\nt 0\nv 0 0\nt 4000000000000\nv 0 1\n";
    std::fs::write(&file, text).unwrap();
    let got = replayed(MINIMAL, file.to_str().unwrap());
    let states: Vec<&str> = got.iter().map(|(.., state)| state.as_str()).collect();
    assert_eq!(states, ["firing", "unknown", "resolved"], "{got:?}");
}

#[test]
fn exit_codes_say_what_happened() {
    let cases: [(&[&str], i32); 5] = [
        (&["check", "rules"], 0),
        (&["check", "tests/data/five/template.yaml"], 1),
        (&["check"], 2),
        (&["check", "nowhere.yaml"], 3),
        (&["status", "--url", "http://127.0.0.1:1"], 3),
    ];
    for (args, code) in cases {
        assert_eq!(watchfire(args).status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn the_demo_shows_delivers_and_ends_well() {
    let output = watchfire(&["demo", "--speed", "1000000"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    for part in [
        "synthetic: ",
        "injected: GPU 3",
        "FIRING",
        "critical",
        "GpuTooHot",
        "GpuLost",
        "delivered 15 webhooks",
        "delivered 5 mails",
    ] {
        assert!(text.contains(part), "{part:?} in:\n{text}");
    }
    let json = stdout(&watchfire(&["demo", "--json", "--for", "20m"]));
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!((&last["alert"], &last["state"]), (&"GpuTooHot".into(), &"firing".into()), "{json}");
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    let command = format!("{} demo --for 20m --json --speed 1000000 | true", env!("CARGO_BIN_EXE_watchfire"));
    let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("panicked"), "{said}");
}
