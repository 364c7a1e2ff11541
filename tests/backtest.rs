//! `watchfire replay` as a backtest, on recorded heat: pending 00:02, warning 00:07, critical 00:10, resolved 00:13.
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use std::path::Path;

use serde_json::Value;
use world::{root, stdout, watchfire};

const TEMPLATE: &str = "template: t\nversion: 1.0.0\ninterval: 15s\nrules:\n  - {alert: Hot, when: 'gpu_temperature_celsius > LIMIT', severity: warning, for: 5m}\n  - {alert: Cold, when: 'gpu_temperature_celsius < 1', severity: warning}\n";

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn hot() -> String {
    text(&root().join("tests/data/hot.om"))
}

fn template(folder: &Path, name: &str, limit: u32) -> String {
    let file = folder.join(name);
    std::fs::write(&file, TEMPLATE.replace("LIMIT", &limit.to_string())).unwrap();
    text(&file)
}

fn config(folder: &Path) -> String {
    let template = template(folder, "template.yaml", 85);
    let file = folder.join("watchfire.yaml");
    std::fs::write(&file, format!("templates: {{paths: [{template}]}}\n")).unwrap();
    text(&file)
}

fn report(args: &[&str]) -> Value {
    let output = watchfire(&[&["replay", "--json", "--report", "--input", &hot()], args].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| unreachable!("{output:?}"))
}

#[test]
fn numbers_are_those_of_the_transitions() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(&["-c", &config(folder.path())]);
    let alerts = report["alerts"].as_array().unwrap();
    let rule = &report["report"]["rules"][0];
    assert_eq!((rule["rule"].as_str(), rule["alerts"].as_u64()), (Some("t/Hot"), Some(alerts.len() as u64)));
    assert_eq!((rule["firing_seconds"].as_f64(), rule["flaps"].as_u64()), (Some(240.0), Some(0)));
    assert_eq!(report["report"]["silent"], serde_json::json!(["t/Cold"]));
}

#[test]
fn what_was_told_missed_and_false_is_counted_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let fired = report(&["-c", &config])["alerts"][0].clone();
    let labels = text(&folder.path().join("incidents.csv"));
    let started = fired["start"].as_str().unwrap();
    std::fs::write(&labels, format!("start,end,alert\n{started},{started},Hot\n1000000000,1000000060,Hot\n")).unwrap();
    let score = report(&["-c", &config, "--labels", &labels])["score"].clone();
    assert_eq!((score["told"].as_u64(), score["missed"].clone()), (Some(1), serde_json::json!([1])));
    assert_eq!((score["precision"].as_f64(), score["recall"].as_f64()), (Some(1.0), Some(0.5)));
    std::fs::write(&labels, "start,end,alert\n1000000000,1000000060,Hot\n").unwrap();
    let said = stdout(&watchfire(&["replay", "--input", &hot(), "-c", &config, "--labels", &labels]));
    assert!(said.contains("precision 0.0 %") && said.contains("false   ") && said.contains('█'), "{said}");
    std::fs::write(&labels, "start,end\nsoon,later\n").unwrap();
    let wrong = watchfire(&["replay", "--input", &hot(), "-c", &config, "--labels", &labels]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("incidents.csv:2: \"soon\" is no time"), "{wrong:?}");
}

#[test]
fn another_version_is_compared_in_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (template(folder.path(), "old.yaml", 85), template(folder.path(), "new.yaml", 91));
    let diff = |old: &str, new: &str, more: &[&str]| {
        watchfire(&[&["replay", "--input", &hot(), "--diff", old, new], more].concat())
    };
    assert!(stdout(&diff(&old, &old, &["--fail-on-diff"])).ends_with(" the same, 0 changed, 0 only old, 0 only new\n"));
    let changed = diff(&old, &new, &["--fail-on-diff"]);
    assert_eq!(changed.status.code(), Some(1));
    let count = |output: &std::process::Output, word: char| {
        stdout(output).lines().filter(|line| line.starts_with(word)).count()
    };
    assert_eq!(
        count(&changed, '-') + count(&changed, '~'),
        count(&diff(&new, &old, &[]), '+') + count(&diff(&new, &old, &[]), '~')
    );
}

#[test]
fn a_rule_that_fails_fails_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    std::fs::write(folder.path().join("x.rhai"), "fn describe() { #{ name: \"x\", version: \"1.0.0\", scope: \"gpu\", inputs: [#{ metric: \"gpu_temperature_celsius\" }] } }\nfn evaluate(batch, out) { throw \"no\"; }").unwrap();
    std::fs::write(
        folder.path().join("template.yaml"),
        "template: t\nversion: 1.0.0\nrules: [{alert: X, module: ./x.rhai}]\n",
    )
    .unwrap();
    let output = watchfire(&["replay", "-c", &config, "--input", &hot()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
