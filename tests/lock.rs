//! `watchfire lock` and `--locked`.
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use std::path::Path;

use world::{stdout, watchfire};

const TEMPLATE: &str = "template: heat\nversion: 1.0.0\nrules:\n  - {alert: Hot, module: ./hot.rhai}\n  \
    - {alert: Warm, module: threshold, with: {metric: gpu_temperature_celsius, above: {warning: 85}}}\n";
const SCRIPT: &str = "fn describe() { #{ name: \"hot\", version: \"1.0.0\", scope: \"gpu\", inputs: [#{ metric: \"gpu_up\" }] } }\n\
    fn evaluate(batch, out) { }\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("t")).unwrap();
    write("t/template.yaml", TEMPLATE);
    write("t/hot.rhai", SCRIPT);
    write("watchfire.yaml", "templates: {paths: [./t]}\n");
    folder
}

fn ask(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let path = folder.display().to_string();
    let words: Vec<String> = words.iter().map(|word| word.replace("DIR", &path)).collect();
    let output = watchfire(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let text = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.replace(&path, "DIR"))
}

#[test]
fn what_is_locked_is_held_to_and_every_difference_is_listed() {
    let folder = folder();
    let dir = folder.path();
    let (code, text) = ask(dir, &["check", "--locked", "DIR/watchfire.yaml"]);
    assert!(code == Some(1) && text.contains("watchfire.lock") && text.contains("watchfire lock"), "{text}");
    let lock = ["lock", "-c", "DIR/watchfire.yaml"];
    assert_eq!(ask(dir, &lock), (Some(0), "DIR/watchfire.lock: 1 templates, 2 modules\n".to_owned()));
    let written = std::fs::read_to_string(dir.join("watchfire.lock")).unwrap();
    for part in ["\"heat\"", "\"1.0.0\"", "\"./hot.rhai\"", "\"threshold\"", "watchfire:rule@0.1.0"] {
        assert!(written.contains(part), "{part} in {written}");
    }
    ask(dir, &lock);
    assert_eq!(std::fs::read_to_string(dir.join("watchfire.lock")).unwrap(), written, "the same for the same files");
    assert_eq!(ask(dir, &["check", "--locked", "DIR/watchfire.yaml"]).0, Some(0));

    std::fs::write(dir.join("t/hot.rhai"), format!("// a remark\n{SCRIPT}")).unwrap();
    std::fs::write(dir.join("t/template.yaml"), TEMPLATE.replace("1.0.0", "1.0.1")).unwrap();
    let (code, text) = ask(dir, &["check", "--locked", "DIR/watchfire.yaml"]);
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "DIR/t/template.yaml: template heat: version: locked 1.0.0, found 1.0.1",
        "DIR/t/template.yaml: template heat: sha256: locked ",
        "DIR/t/hot.rhai: template heat, module ./hot.rhai: sha256: locked ",
        "DIR/t/hot.rhai: template heat, module ./hot.rhai: bytes: locked ",
        "run `watchfire lock`",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let (code, text) = ask(dir, &["check", "DIR/watchfire.yaml"]);
    assert!(code == Some(0) && text.contains("WARN") && text.contains("found 1.0.1"), "{text}");

    std::fs::write(dir.join("watchfire.yaml"), "templates: {paths: [./t], locked: true}\n").unwrap();
    for words in [
        vec!["run", "-c", "DIR/watchfire.yaml"],
        vec!["check", "DIR/watchfire.yaml"],
        vec!["replay", "-c", "DIR/watchfire.yaml", "--input", "DIR/none.om"],
    ] {
        let (code, text) = ask(dir, &words);
        assert!(code == Some(1) && text.contains("found 1.0.1"), "{words:?}: {text}");
    }
}

#[test]
fn a_template_that_was_not_locked_and_one_that_is_gone_are_told() {
    let folder = folder();
    let dir = folder.path();
    assert_eq!(ask(dir, &["lock", "DIR/t"]).0, Some(0));
    std::fs::write(dir.join("t/template.yaml"), TEMPLATE.replace("template: heat", "template: other")).unwrap();
    let (code, text) = ask(dir, &["test", "--locked", "DIR/t"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("watchfire.lock: template heat: locked it, found nothing"), "{text}");
    assert!(text.contains("DIR/t/template.yaml: template other: locked nothing, found it"), "{text}");
    std::fs::write(dir.join("t/watchfire.lock"), "{\"lock\": 2, \"templates\": {}}").unwrap();
    let (code, text) = ask(dir, &["check", "--locked", "DIR/t"]);
    assert!(code == Some(1) && text.contains("form 2, expected 1"), "{text}");
}
