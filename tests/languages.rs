//! One rule in every language (`src/author/scaffold/RULE.md`): the same answers, bit for bit.
//!
//! What is built is kept in `target/tools/languages` until its sources or the way it is built change; its compiled code
//! in `target/tools/compiled`. A language whose tools are not there is named and skipped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use watchfire_engine::sandbox::{Module, Sandbox, SandboxConfig};
use watchfire_engine::{Batch, Outcome, Time};

use world::root;

/// The language that needs no tool, and answers for the others.
const REFERENCE: &str = "rhai";
const OTHERS: [&str; 5] = ["rust", "c", "go", "js", "python"];
const NAME: &str = "mostly";
const TICKS: usize = 6;
const SETTINGS: [&str; 3] =
    ["{}", r#"{"limit": 60.5, "ticks": 3, "share": 0.25}"#, r#"{"limit": -1e3, "ticks": 1, "share": 1}"#];

fn tools() -> PathBuf {
    root().join("target/tools")
}

/// The program, with the tools that `cargo xtask test` has installed.
fn watchfire(folder: &Path, args: &[&str]) -> Output {
    let own = ["js/node_modules/.bin", "python/bin"].map(|folder| tools().join(folder));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap();
    Command::new(env!("CARGO_BIN_EXE_watchfire")).args(args).current_dir(folder).env("PATH", path).output().unwrap()
}

/// The files of a folder, with their contents.
fn contents(folder: &Path) -> String {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let text = |path: &PathBuf| match path.is_dir() {
        true => contents(path),
        false => format!("{}\n{}\n", path.display(), std::fs::read_to_string(path).unwrap()),
    };
    paths.iter().map(text).collect()
}

/// What a built module depends on: the scaffold with its SDK, and how it is built.
fn sources(language: &str, scaffold: &Path) -> String {
    let how = std::fs::read_to_string(root().join(format!("src/author/lang/{language}.rs"))).unwrap();
    let text = contents(scaffold).replace(&scaffold.display().to_string(), "");
    format!("{how}{text}")
}

/// The module of a language; none, said aloud, where its tools are not there.
fn module(language: &str) -> Option<PathBuf> {
    let fresh = tempfile::tempdir().unwrap();
    let made = watchfire(fresh.path(), &["new", "rule", NAME, "--lang", language]);
    assert!(made.status.success(), "{language}: {}", String::from_utf8_lossy(&made.stderr));
    let sources = sources(language, &fresh.path().join(NAME));
    let kept = tools().join("languages").join(language);
    let (seal, file) = (kept.join("sources.txt"), kept.join(NAME).join(file_name(language)));
    if std::fs::read_to_string(&seal).is_ok_and(|kept| kept == sources) && file.exists() {
        return Some(file);
    }
    let _ = std::fs::remove_dir_all(&kept);
    std::fs::create_dir_all(&kept).unwrap();
    assert!(watchfire(&kept, &["new", "rule", NAME, "--lang", language]).status.success());
    if language != REFERENCE {
        let built = watchfire(&kept.join(NAME), &["build"]);
        let why = String::from_utf8_lossy(&built.stderr).into_owned();
        if why.contains("there is no ") {
            eprintln!("SKIPPED {language}: {why}");
            return None;
        }
        assert!(built.status.success(), "{language}: {why}");
    }
    std::fs::write(seal, sources).unwrap();
    Some(file)
}

fn file_name(language: &str) -> String {
    format!("{NAME}.{}", if language == REFERENCE { "rhai" } else { "wasm" })
}

fn load(file: &Path) -> Module {
    let config = SandboxConfig { cache_dir: Some(tools().join("compiled")), ..SandboxConfig::default() };
    let (sandbox, bytes) = (Sandbox::new(config).unwrap(), std::fs::read(file).unwrap());
    if file.extension().is_some_and(|ending| ending == "rhai") {
        return sandbox.rhai(NAME, NAME, std::str::from_utf8(&bytes).unwrap()).unwrap();
    }
    sandbox.wasm(NAME, &bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Values as they come, and those that break arithmetic.
    fn value(&mut self) -> f64 {
        const ODD: [f64; 8] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, f64::MAX, 85.0, 85.000_000_000_000_01];
        match self.next() % 10 {
            0 => ODD[(self.next() % 8) as usize],
            _ => (self.next() % 120_000) as f64 / 1000.0,
        }
    }

    fn quality(&mut self) -> u8 {
        match self.next() % 5 {
            0 => 1 + (self.next() % 3) as u8,
            _ => 0,
        }
    }
}

/// A module's answers to all batches, in words that show each bit.
fn answers(module: &Module, settings: &str) -> String {
    let settings = serde_json::from_str(settings).unwrap();
    let mut program = module.start(&settings).unwrap();
    let mut chance = Chance(0x5eed);
    let mut told = String::new();
    for rows in [0, 1, 7, 64, 1024] {
        let mut state = vec![0.0; rows];
        for tick in 0..TICKS {
            let quality: Vec<u8> = (0..rows).map(|_| chance.quality()).collect();
            let value = |quality: &u8| if *quality == 0 { chance.value() } else { 0.0 };
            let columns: Vec<f64> = quality.iter().map(value).collect();
            let batch = Batch {
                tick: tick as u64,
                now: Time::EPOCH,
                interval: Duration::from_secs(5),
                rows,
                columns: &columns,
                quality: &quality,
                groups: &[],
                state: &state,
            };
            let mut out = Outcome::default();
            program.evaluate(&batch, &mut out).unwrap_or_else(|failure| panic!("{rows} rows: the rule {failure}"));
            told += &words(rows, tick, &out);
            state = if out.state.is_empty() { state } else { out.state };
        }
    }
    told
}

fn words(rows: usize, tick: usize, out: &Outcome) -> String {
    let mut told = format!("{rows} rows, tick {tick}: notes {:?}, derived {:?}\n", out.notes, out.derived);
    for hit in &out.hits {
        let (raise, hold, cause) = (hit.raise, hit.hold, hit.cause);
        let value = hit.value.to_bits();
        told += &format!("  row {} {raise:?} {hold:?} {value:016x} {cause:?} {:?}\n", hit.row, hit.note);
    }
    out.state.iter().for_each(|cell| told += &format!("  {:016x}\n", cell.to_bits()));
    told
}

/// The paths of what is wrong with settings.
fn refused(module: &Module, settings: &str) -> Vec<String> {
    let settings = serde_json::from_str(settings).unwrap();
    let problems = module.validate(&settings).err().unwrap_or_default();
    problems.into_iter().map(|problem| problem.path).collect()
}

#[test]
fn every_language_gives_the_same_answers_bit_for_bit() {
    let reference = load(&module(REFERENCE).unwrap());
    let described = format!("{:?}", reference.describe().unwrap().inputs);
    for language in OTHERS {
        let Some(file) = module(language) else { continue };
        let loaded = load(&file);
        let said = loaded.describe().unwrap();
        assert_eq!((&*said.name, &*said.version, said.state_slots, said.state_version), (NAME, "0.1.0", 1, 1));
        assert_eq!(format!("{:?}", said.inputs), described, "{language}");
        for settings in SETTINGS {
            let expected = answers(&reference, settings);
            assert!(expected.contains("row"), "the batches hit nothing");
            let told = answers(&loaded, settings);
            same(language, &told, &expected);
            same(language, &answers(&loaded, settings), &told);
        }
        // Loaded anew, in another sandbox.
        same(language, &answers(&load(&file), "{}"), &answers(&reference, "{}"));
        assert_eq!(refused(&loaded, r#"{"ticks": 0, "share": 2}"#), ["ticks", "share"], "{language}");
        assert_eq!(refused(&loaded, r#"{"limits": 1}"#), ["limits"], "{language}");
        assert_eq!(refused(&loaded, r#"{"limit": "85"}"#).len(), 1, "{language}");
    }
}

/// The first line in which they differ, in place of all of them.
fn same(language: &str, told: &str, expected: &str) {
    let lines = told.lines().zip(expected.lines());
    let differs = lines.clone().find(|(told, expected)| told != expected);
    assert_eq!(differs, None, "{language} (left) and what is expected");
    assert_eq!(told.lines().count(), expected.lines().count(), "{language}");
}

/// The SDK that a scaffold carries is this repository's, whole.
#[test]
fn scaffolds_carry_the_whole_sdk() {
    for (language, own) in [("c", "sdk/c"), ("go", "sdk/go"), ("js", "sdk/js"), ("python", "sdk/python/watchfire")] {
        let fresh = tempfile::tempdir().unwrap();
        assert!(watchfire(fresh.path(), &["new", "rule", NAME, "--lang", language]).status.success());
        let carried = fresh.path().join(NAME).join("watchfire");
        for folder in ["", "bindings", "libc"] {
            for entry in std::fs::read_dir(root().join(own).join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_code = ["c", "h", "go", "js", "py"].iter().any(|ending| name.ends_with(&format!(".{ending}")));
                if is_code {
                    let copy = carried.join(folder).join(&name);
                    assert_eq!(std::fs::read(&copy).ok(), std::fs::read(entry.path()).ok(), "{}", copy.display());
                }
            }
        }
    }
}
