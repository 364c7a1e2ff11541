//! `watchfire capture` on a running Watchfire, and `replay` of what it wrote.
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use std::path::Path;

use fake_nvml::Fake;
use serde_json::Value;
use world::{Place, Running, root, stdout, watchfire};

const HEAT: &str = "template: heat\nversion: 1.0.0\ninterval: 200ms\nrules:\n  - {alert: Hot, when: 'gpu_temperature_celsius > 1.5', severity: warning}\n";

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn capture(running: &Running, rule: &str, file: &str) -> std::process::Output {
    let url = format!("http://{}", running.address);
    watchfire(&["capture", rule, "--for", "1m", "--calls", "3", "-o", file, "--url", &url])
}

fn replay(file: &str, more: &[&str]) -> (Option<i32>, String) {
    let output = watchfire(&[&["replay", "--input", file, "--fail-on-diff"], more].concat());
    (output.status.code(), stdout(&output))
}

#[test]
fn a_rule_is_captured_while_it_runs_and_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new(folder.path(), "").unwrap();
    let place = Place::new(&fake.library, HEAT);
    let running = place.start();
    let file = text(&folder.path().join("hot.capture"));
    let done = capture(&running, "Hot", &file);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let nobody = capture(&running, "Cold", &file);
    assert_eq!(nobody.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("there is no rule Cold"), "{nobody:?}");
    drop(running);

    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let calls = kept["calls"].as_array().unwrap();
    assert!(calls.len() >= 3 && calls[0]["rows"] == 8, "{kept}");
    let (code, said) = replay(&file, &[]);
    assert!(code == Some(0) && said.contains("heat/Hot") && said.contains("8 hits"), "{said}");

    let template = text(&place.folder.path().join("template.yaml"));
    let (code, said) = replay(&file, &["--template", &template]);
    assert!(code == Some(0) && said.ends_with(" 0 answered otherwise\n"), "{said}");
    std::fs::write(&template, HEAT.replace("1.5", "150")).unwrap();
    let (code, said) = replay(&file, &["--template", &template]);
    assert!(code == Some(1) && said.contains("row 7: raise warning") && said.contains("-> no hit"), "{said}");
    let (code, lines) = replay(&file, &["--template", &template, "--json"]);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert!(code == Some(1) && first["differs"] == true && first["answer"]["outcome"]["hits"] == serde_json::json!([]));
}

#[test]
fn what_is_no_capture_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = text(&folder.path().join("bad.capture"));
    std::fs::write(&file, "{\"watchfire_capture\": 1}").unwrap();
    assert_eq!(replay(&file, &[]).0, Some(1));
    let samples = text(&root().join("tests/data/hot.om"));
    let output = watchfire(&["replay", "--input", &samples, "--module", "x.wasm"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("are for a capture"), "{output:?}");
    assert_eq!(watchfire(&["replay", "--input", &samples]).status.code(), Some(2));
}
