//! The rules of the house, kept by tests.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE_LINES_MAX: usize = 500;
/// Files that may be longer, and why. A file that has become shorter must leave this list.
const LONG_FILES: [(&str, &str); 1] = [("sdk/rust/src/bindings.rs", "generated from the contract")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files that belong to the project, by path.
fn files(ending: &str) -> Vec<(String, String)> {
    let listed =
        Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).current_dir(root()).output().unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    assert!(!names.is_empty(), "the house's rules are kept in a git checkout: without one nothing can be listed");
    let wanted = names.lines().filter(|name| name.ends_with(ending) && root().join(name).is_file());
    wanted.filter_map(|name| Some((name.to_owned(), std::fs::read_to_string(root().join(name)).ok()?))).collect()
}

fn rust() -> Vec<(String, String)> {
    files(".rs")
}

#[test]
fn files_are_short() {
    for (name, text) in rust() {
        let lines = text.lines().count();
        let excused = LONG_FILES.iter().any(|(file, _)| *file == name);
        assert_eq!(
            lines > FILE_LINES_MAX,
            excused,
            "{name} has {lines} lines; at most {FILE_LINES_MAX}, or a place in LONG_FILES"
        );
    }
}

/// Function length is clippy's `too_many_lines`; that its limit is the same everywhere is this test's.
#[test]
fn functions_are_kept_short_by_clippy_everywhere() {
    let tables = files("clippy.toml");
    assert!(tables.len() >= 2, "the root's and the core's");
    let of_root = &tables.iter().find(|(name, _)| name == "clippy.toml").unwrap().1;
    for (name, text) in &tables {
        for line in of_root.lines().filter(|line| !line.is_empty()) {
            assert!(text.contains(line), "{name} replaces the root's clippy.toml and lacks {line:?}");
        }
    }
    for (name, text) in files("Cargo.toml") {
        assert!(
            name == "Cargo.toml" || text.contains("[lints]\nworkspace = true"),
            "{name} does not take the workspace's lints"
        );
    }
}

#[test]
fn the_core_is_pure() {
    let manifest = std::fs::read_to_string(root().join("engine/core/Cargo.toml")).unwrap();
    assert!(!manifest.contains("[target."), "the core is the same everywhere");
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("[dev-dependencies]").next().unwrap();
    let names: BTreeSet<&str> =
        dependencies.lines().filter_map(|line| line.split(['.', ' ']).next()).filter(|n| !n.is_empty()).collect();
    assert_eq!(
        names,
        BTreeSet::from(["regex", "sketches-ddsketch", "thiserror"]),
        "each new dependency of the core is a decision"
    );
    let banned = ["SystemTime", "Instant", "std::fs", "std::net", "std::thread", "std::env", "tokio", "serde"];
    for (name, text) in rust().into_iter().filter(|(name, _)| name.starts_with("engine/core/src/")) {
        for word in banned {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            assert!(!code.into_iter().any(|line| line.contains(word)), "{name} speaks of {word}");
        }
    }
}

#[test]
fn lists_and_folders_agree() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
        entries.map(stem).filter(|stem| stem != "mod").collect()
    };
    let modules = |file: &str| -> BTreeSet<String> {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let names = text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
        names.filter_map(|line| Some(line.strip_suffix(';')?.to_owned())).collect()
    };
    assert_eq!(stems("src/commands"), modules("src/commands/mod.rs"));
    let receivers = std::fs::read_to_string(root().join("engine/notify/src/receiver/mod.rs")).unwrap();
    for kind in stems("engine/notify/src/receiver").iter().filter(|stem| !stem.starts_with("read")) {
        assert!(receivers.contains(&format!("\"{kind}_configs\"")), "{kind} is not in the list of receivers");
    }
    for entry in std::fs::read_dir(root().join("rules")).unwrap().map(|entry| entry.unwrap().path()) {
        let is_template = entry.join("template.yaml").exists() && entry.join("scenarios").is_dir();
        let known = entry.join("Cargo.toml").exists() || is_template || entry.is_file() || entry.ends_with("src");
        assert!(known, "{} is neither a rule crate nor a template with scenarios", entry.display());
    }
}

#[test]
fn nothing_is_left_for_later() {
    // Put together, so that this file does not find itself.
    let banned =
        [["TO", "DO"], ["FIX", "ME"], ["todo", "!("], ["unimplemented", "!("], ["dbg", "!("], ["#[ig", "nore"]];
    let endings = [".rs", ".rhai", ".yaml", ".toml", ".js", ".py", ".c", ".h", ".go", ".sh", ".wit"];
    for (name, text) in endings.iter().flat_map(|ending| files(ending)).filter(|(name, _)| !name.contains("bindings")) {
        for word in banned.map(|halves| halves.concat()) {
            assert!(!text.contains(&word), "{name} contains {word}");
        }
    }
}

/// Test files that may sleep, and why.
const SLEEPERS: [(&str, &str); 2] = [
    ("engine/notify/tests/alertmanager.rs", "asks a real server again and again"),
    ("tests/fake-nvml/src/host.rs", "a driver that answers late"),
];

#[test]
fn no_test_sleeps_to_let_time_pass() {
    let word = ["thread::", "sleep("].concat();
    let found: Vec<String> = rust()
        .into_iter()
        .filter(|(_, text)| text.contains(&word))
        .map(|(name, _)| name)
        .filter(|name| name.contains("tests"))
        .collect();
    for name in &found {
        assert!(SLEEPERS.iter().any(|(file, _)| file == name), "{name} sleeps: inject the time, or wait for an event");
    }
    assert_eq!(found.len(), SLEEPERS.len(), "a file that no longer sleeps must leave the list");
}

#[test]
fn each_exception_has_its_reason() {
    for (name, text) in rust() {
        for line in
            text.lines().filter(|line| line.trim_start().starts_with("#[allow(") || line.starts_with("#![allow("))
        {
            let whole = text[text.find(line).unwrap()..].split(']').next().unwrap();
            assert!(whole.contains("reason = ") || name.ends_with("bindings.rs"), "{name}: {line}");
        }
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    let banned = ["/work/", "/root/", "/home/", "index.crates.io", "deb.debian.org", "pypi.org"];
    for ending in [".rs", ".md", ".toml", ".yaml", ".rhai", ".py", ".js", ".csv", ".c", ".go", ".wit", ".json", "run"] {
        for (name, text) in
            files(ending).into_iter().filter(|(name, _)| name != "tests/tidy.rs" && name != "Cargo.lock")
        {
            for word in banned {
                assert!(!text.contains(word), "{name} contains {word}");
            }
        }
    }
}

#[test]
fn the_papers_are_in_order() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    assert!(read("ARCHITECTURE.md").lines().count() <= 120, "two pages");
    let tags = ["[FEATURE]", "[ENHANCEMENT]", "[PERF]", "[BUGFIX]", "[SECURITY]", "[CHANGE]"];
    for line in read("CHANGELOG.md").lines().filter(|line| line.starts_with("- ")) {
        assert!(tags.iter().any(|tag| line[2..].starts_with(tag)), "CHANGELOG: {line}");
    }
    let commands = |text: &str| -> Vec<String> {
        let blocks = text.split("```").skip(1).step_by(2);
        blocks
            .flat_map(|block| {
                block
                    .lines()
                    .filter(|line| line.starts_with("cargo ") || line.starts_with("watchfire "))
                    .map(|line| line.split('#').next().unwrap().trim().to_owned())
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let english = commands(&read("README.md"));
    assert!(english.contains(&"cargo xtask demo".to_owned()) && english.contains(&"cargo xtask test".to_owned()));
    assert_eq!(english, commands(&read("README.zh-CN.md")), "both READMEs show the same commands");
}
