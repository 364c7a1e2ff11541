//! The author's path, with nothing but the binary and what a language itself needs.
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use world::{root, stdout};

fn watchfire(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_watchfire")).args(args).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    stdout(output) + &String::from_utf8_lossy(&output.stderr)
}

/// A new rule in an empty folder.
fn new_rule(folder: &Path, name: &str, language: &str) -> PathBuf {
    let output = watchfire(folder, &["new", "rule", name, "--lang", language]);
    assert!(output.status.success(), "{}", said(&output));
    folder.join(name)
}

#[test]
fn a_new_rhai_rule_and_a_new_template_pass_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let rule = new_rule(folder.path(), "fan-still", "rhai");
    assert!(watchfire(folder.path(), &["new", "template", "my-gpus"]).status.success());
    for made in [rule, folder.path().join("my-gpus")] {
        let output = watchfire(&made, &["test"]);
        assert!(said(&output).ends_with("2 passed, 0 failed\n"), "{}", said(&output));
        assert!(watchfire(&made, &["check", "."]).status.success());
    }
}

#[test]
fn a_new_rust_rule_is_built_tested_and_says_how_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let rule = new_rule(folder.path(), "hot-card", "rust");
    let output = watchfire(&rule, &["test"]);
    assert!(stdout(&output).ends_with("2 passed, 0 failed\n"), "{}", said(&output));
    assert!(said(&output).contains("built ./hot-card.wasm"));
    assert!(!said(&watchfire(&rule, &["test"])).contains("built"), "what is built is not built again");
    let built: serde_json::Value = serde_json::from_str(&stdout(&watchfire(&rule, &["build", "--json"]))).unwrap();
    let manifest = &built["manifest"];
    assert_eq!(manifest["contract"], "watchfire:rule@0.1.0");
    assert_eq!(manifest["needs"]["inputs"][0], "gpu_temperature_celsius");
    assert_eq!(manifest["source_sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn what_is_no_name_or_no_language_or_there_already_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], words: &str| {
        let output = watchfire(folder.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(said(&output).contains(words), "{args:?}: {}", said(&output));
    };
    refused(&["new", "rule", "../x"], "is no name for a rule");
    refused(&["new", "rule", "x", "--lang", "cobol"], "expected one of rhai, rust");
    new_rule(folder.path(), "x", "rhai");
    refused(&["new", "rule", "x"], "is there already");
    refused(&["build", "x"], "there is nothing to build");
}

/// A rule that is built for WASI is refused with what to do about it.
#[test]
fn a_module_that_imports_wasi_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let rule = new_rule(folder.path(), "x", "rhai");
    let module = wat::parse_str(
        r#"(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32))))"#,
    );
    std::fs::write(rule.join("x.wasm"), module.unwrap()).unwrap();
    let template = std::fs::read_to_string(rule.join("template.yaml")).unwrap();
    std::fs::write(rule.join("template.yaml"), template.replace("x.rhai", "x.wasm")).unwrap();
    let words = said(&watchfire(&rule, &["check", "."]));
    assert!(words.contains("wasi_snapshot_preview1.fd_write") && words.contains("wasm32-unknown-unknown"), "{words}");
}

/// The SDK that a scaffold carries is this repository's.
#[test]
fn a_scaffold_carries_the_whole_sdk() {
    let folder = tempfile::tempdir().unwrap();
    let carried = new_rule(folder.path(), "x", "rust").join("vendor/watchfire-sdk");
    let own = root().join("sdk/rust/src");
    for entry in std::fs::read_dir(&own).unwrap().flatten() {
        let copy = carried.join("src").join(entry.file_name());
        assert!(copy.exists(), "src/author/lang/rust.rs does not list {}", entry.path().display());
        assert_eq!(std::fs::read(copy).unwrap(), std::fs::read(entry.path()).unwrap());
    }
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest = std::fs::read_to_string(carried.join("Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]\n").nth(1).unwrap();
    for line in dependencies.lines() {
        assert!(workspace.contains(line), "{line} is not the workspace's version");
    }
}

#[test]
fn inspect_shows_what_a_module_is_and_why_another_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let rule = new_rule(folder.path(), "x", "rhai");
    let about: serde_json::Value =
        serde_json::from_str(&stdout(&watchfire(&rule, &["inspect", "x.rhai", "--json"]))).unwrap();
    assert_eq!(
        (about["kind"].as_str(), about["inputs"][0]["metric"].as_str()),
        (Some("Rhai script"), Some("gpu_temperature_celsius"))
    );
    std::fs::write(rule.join("junk.wasm"), "junk\x1b[2J").unwrap();
    let output = watchfire(&rule, &["inspect", "junk.wasm"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("begins with \"junk\""), "{}", said(&output));
}

#[test]
fn bench_counts_the_same_steps_each_time_and_fails_where_they_grow() {
    let folder = tempfile::tempdir().unwrap();
    let rule = new_rule(folder.path(), "x", "rhai");
    let bench = |more: &[&str]| watchfire(&rule, &[&["bench", "--rows", "8,64", "--json"], more].concat());
    let figures = |output: &Output| serde_json::from_str::<serde_json::Value>(&stdout(output)).unwrap();
    let first = bench(&["--save", "bench.json"]);
    let second = bench(&["--baseline", "bench.json", "--tolerance", "0"]);
    assert!(second.status.success(), "{}", said(&second));
    assert_eq!(figures(&first)["rows"][1]["steps"], figures(&second)["rows"][1]["steps"]);
    let text = std::fs::read_to_string(rule.join("x.rhai")).unwrap();
    let slower = text.replace("let before =", "for n in range(0, 50) {}\n        let before =");
    std::fs::write(rule.join("x.rhai"), slower).unwrap();
    let grown = bench(&["--baseline", "bench.json"]);
    assert_eq!(grown.status.code(), Some(1), "{}", said(&grown));
    assert!(said(&grown).contains("more than 5 % above"), "{}", said(&grown));
}
