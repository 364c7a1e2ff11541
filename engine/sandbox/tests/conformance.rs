//! One table of behaviours, run against each runtime.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use serde_json::json;
use watchfire_core::{Batch, Outcome, Program, RuleFailure, Severity, Target, Time};
use watchfire_sandbox::{Limits, LoadError, Module, Native, Sandbox, SandboxConfig};

fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig::default()).unwrap()
}

fn wasm() -> Module {
    sandbox().wasm("naughty", test_rules::module("naughty").unwrap()).unwrap()
}

fn rhai() -> Module {
    sandbox().rhai("naughty", "naughty.rhai", include_str!("naughty.rhai")).unwrap()
}

/// Each runtime's program for a deed.
fn programs(deed: &str) -> Vec<(&'static str, Box<dyn Program>)> {
    let settings = json!({"do": deed});
    vec![("wasm", wasm().start(&settings).unwrap()), ("rhai", rhai().start(&settings).unwrap())]
}

fn batch<'a>(columns: &'a [f64], quality: &'a [u8], groups: &'a [u32], state: &'a [f64]) -> Batch<'a> {
    let (now, interval) = (Time::from_millis(60_000), Duration::from_secs(15));
    Batch { tick: 0, now, interval, rows: columns.len(), columns, quality, groups, state }
}

fn tick(program: &mut dyn Program, state: &[f64]) -> Result<Outcome, RuleFailure> {
    let mut out = Outcome::default();
    program.evaluate(&batch(&[1.0, 2.0, 0.0], &[0, 0, 1], &[0, 1, 0], state), &mut out)?;
    Ok(out)
}

#[test]
fn a_good_rule_answers_the_same_everywhere() {
    let mut all = programs("good");
    let native = Native::<rule_naughty::Naughty>::new(&json!({"do": "good"})).unwrap();
    all.push(("native", Box::new(native)));
    for (name, mut program) in all {
        let target = |job: &str| Target { labels: watchfire_core::Labels::new([("job_id", job)]), group: 0 };
        program.on_targets(&[target("a"), target("b"), target("a")]).unwrap();
        let out = tick(&mut *program, &[5.0, 6.0, 7.0]).unwrap();
        let hits: Vec<_> = out.hits.iter().map(|hit| (hit.row, hit.raise, hit.hold, hit.value, hit.note)).collect();
        let (info, warning) = (Some(Severity::Info), Some(Severity::Warning));
        assert_eq!(
            hits,
            [(0, info, warning, 1.0, Some(0)), (1, info, warning, 2.0, Some(1))],
            "{name}: missing is no value"
        );
        assert_eq!(out.notes, ["group 0", "group 1"], "{name}");
        assert_eq!(out.state, [6.0, 7.0, 8.0], "{name}");
        assert_eq!(&out.derived[..2], [2.0, 4.0], "{name}");
        assert!(out.derived[2].is_nan(), "{name}");
        let explained = program.explain(1).unwrap().unwrap();
        assert!(explained.starts_with("gpu_up is 2"), "{name}: {explained}");
        let descriptor = program.descriptor();
        assert_eq!((descriptor.state_slots, descriptor.group_by.as_deref()), (1, Some("job_id")), "{name}");
    }
}

#[test]
fn what_a_call_took_is_told() {
    for (name, mut program) in programs("good") {
        assert_eq!(program.usage(), None, "{name}: nothing was judged yet");
        let out = tick(&mut *program, &[5.0, 6.0, 7.0]).unwrap();
        let usage = program.usage().unwrap();
        assert_eq!(usage.output_bytes, out.bytes(), "{name}");
        assert!(usage.steps > 10 && usage.steps < usage.steps_budget / 4, "{name}: {usage:?}");
        assert_eq!(usage.memory_bytes.is_some_and(|bytes| bytes > 64 << 10), name == "wasm", "{name}: {usage:?}");
    }
}

#[test]
fn what_goes_wrong_is_a_failure_of_the_rule_and_has_a_name() {
    let limit = |failure: &RuleFailure| failure.limit().unwrap_or_default();
    let is_steps = |failure: &RuleFailure| limit(failure).ends_with("steps_base");
    let is_memory = |failure: &RuleFailure| ["memory_bytes", "script_string_bytes"].contains(&limit(failure));
    let is_junk = |failure: &RuleFailure| {
        matches!(failure, RuleFailure::InvalidOutput(_) | RuleFailure::Trap(_) | RuleFailure::Reported(_))
    };
    let is_large = |failure: &RuleFailure| {
        is_junk(failure) || ["hits", "steps_base", "output_bytes_per_row"].contains(&limit(failure))
    };
    let is_said =
        |failure: &RuleFailure| matches!(failure, RuleFailure::Reported(said) if said.contains("said so itself"));
    type Expected<'a> = &'a dyn Fn(&RuleFailure) -> bool;
    let deeds: [(&str, Expected<'_>); 7] = [
        ("loop-for-ever", &is_steps),
        ("allocate-without-end", &is_memory),
        ("million-hits", &is_large),
        ("row-out-of-range", &is_junk),
        ("nan-state", &is_junk),
        ("report", &is_said),
        ("panic-every-second", &|_| true),
    ];
    for (deed, expected) in deeds {
        for (name, mut program) in programs(deed) {
            let failure = tick(&mut *program, &[1.0, 1.0, 1.0]).unwrap_err();
            assert!(expected(&failure), "{name}, {deed}: {failure}");
        }
    }
}

#[test]
fn a_rule_that_failed_answers_the_next_time() {
    for (name, mut program) in programs("panic-every-second") {
        assert!(tick(&mut *program, &[0.0; 3]).is_ok(), "{name}");
        assert!(tick(&mut *program, &[1.0; 3]).is_err(), "{name}");
        assert_eq!(tick(&mut *program, &[2.0; 3]).unwrap().state, [3.0; 3], "{name}: the host's state is what counts");
    }
}

#[test]
fn settings_are_refused_by_name() {
    for (name, module) in [("wasm", wasm()), ("rhai", rhai())] {
        let problems = module.validate(&json!({"dou": "good"})).unwrap_err();
        assert_eq!(problems[0].path, "dou", "{name}: {problems:?}");
        assert!(module.start(&json!({"dou": "good"})).is_err(), "{name}");
        let large = json!({"do": "x".repeat(70_000)});
        assert!(
            name == "rhai" || module.validate(&large).unwrap_err()[0].message.contains("of 65,536 bytes of settings")
        );
    }
}

#[test]
fn more_wasm_junk_is_told_apart() {
    let limits = Limits {
        memory_bytes: 256 << 20,
        steps_max: u64::MAX,
        steps_base: 4_000_000_000,
        wall: Duration::from_secs(20),
        ..Limits::default()
    };
    let sandbox = Sandbox::new(SandboxConfig { limits, ..SandboxConfig::default() }).unwrap();
    let module = sandbox.wasm("naughty", test_rules::module("naughty").unwrap()).unwrap();
    let fail = |deed: &str| tick(&mut *module.start(&json!({"do": deed})).unwrap(), &[1.0; 3]).unwrap_err();
    assert_eq!(fail("million-hits").limit(), Some("output_bytes_per_row"), "{}", fail("million-hits"));
    for (deed, words) in [("bad-note", "note 9 of 0"), ("nan-state", "no finite number")] {
        let failure = fail(deed);
        assert!(failure.to_string().contains(words), "{deed}: {failure}");
    }
    let mut logs = module.start(&json!({"do": "log-much"})).unwrap();
    assert!(tick(&mut *logs, &[1.0; 3]).is_ok(), "too many lines are dropped, not a failure");
}

#[test]
fn a_batch_beyond_the_rules_memory_is_not_the_rules_fault() {
    let mut program = wasm().start(&json!({"do": "good"})).unwrap();
    let rows = 2 << 20;
    let (columns, quality, state) = (vec![1.0; rows], vec![0; rows], vec![0.0; rows]);
    let failure = program.evaluate(&batch(&columns, &quality, &[], &state), &mut Outcome::default()).unwrap_err();
    assert!(failure.to_string().contains("bytes of memory for the batch alone"), "{failure}");
}

#[test]
fn what_is_no_rule_of_this_contract_is_refused() {
    let load = |bytes: &[u8]| sandbox().wasm("x", bytes).map(|_| ()).unwrap_err();
    let core = |text: &str| wat::parse_str(text).unwrap();
    assert!(matches!(load(b""), LoadError::NotWasm(_)));
    assert!(matches!(load(b"\0asm\x01\0\0\0junk"), LoadError::NotWasm(_)));
    assert!(matches!(load(&vec![0; (4 << 20) + 1]), LoadError::TooLarge { .. }));
    assert!(matches!(load(&core("(module)")), LoadError::Contract { .. }));
    assert!(matches!(load(&core("(component)")), LoadError::Contract { .. }));
    let wasi = load(&core(
        r#"(module (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32))))"#,
    ));
    assert_eq!(
        wasi.to_string(),
        "the module imports \"wasi_snapshot_preview1.fd_write\", which rules cannot have; build for wasm32-unknown-unknown, which needs no WASI, in place of wasm32-wasip1 or wasm32-wasip2"
    );
    let other = core(r#"(component (instance $i) (export "watchfire:rule/rule@9.0.0" (instance $i)))"#);
    assert!(
        load(&other)
            .to_string()
            .starts_with("the module was built for watchfire:rule@9.0.0; this Watchfire runs watchfire:rule@0.1.0")
    );
    let code = wasmtime::Engine::default().precompile_component(&core("(component)")).unwrap();
    assert!(load(&code).to_string().contains("compiled code already"));
}

#[test]
fn a_changed_cache_file_is_never_run() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let load = || {
        let config = SandboxConfig { cache_dir: Some(cache.clone()), ..SandboxConfig::default() };
        Sandbox::new(config).unwrap().wasm("naughty", test_rules::module("naughty").unwrap()).unwrap();
    };
    let code = || {
        std::fs::read_dir(&cache)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.extension().is_some_and(|e| e == "bin"))
            .unwrap()
    };
    load();
    let kept = std::fs::read(code()).unwrap();
    for change in [40, kept.len() / 2, kept.len() - 1] {
        let mut changed = kept.clone();
        changed[change] ^= 1;
        std::fs::write(code(), &changed).unwrap();
        load();
        assert_eq!(std::fs::read(code()).unwrap().len(), kept.len());
        assert_ne!(std::fs::read(code()).unwrap(), changed, "byte {change}: the file was replaced");
    }
    std::fs::write(code(), &kept[..20]).unwrap();
    load();
    assert_eq!(std::fs::read(code()).unwrap().len(), kept.len(), "a torn file was replaced");
}

#[test]
fn scripts_cannot_harm_their_host() {
    for deed in ["recurse", "overflow"] {
        let mut program = rhai().start(&json!({"do": deed})).unwrap();
        let failure = tick(&mut *program, &[1.0; 3]).unwrap_err();
        let calls = failure.limit() == Some("script_calls");
        assert!(if deed == "recurse" { calls } else { matches!(failure, RuleFailure::Trap(_)) }, "{deed}: {failure}");
    }
    let load = |body: &str| {
        let source = format!(
            "fn describe() {{ #{{ name: \"x\", inputs: [#{{ metric: \"gpu_up\" }}] }} }}\nfn evaluate(b, out) {{ {body} }}"
        );
        sandbox().rhai("x", "x.rhai", &source).and_then(|module| module.start(&json!({})))
    };
    let run = |body: &str| {
        load(body)
            .map_err(|error| error.to_string())
            .and_then(|mut program| tick(&mut *program, &[]).map_err(|error| error.to_string()))
    };
    for absent in ["sleep(1e300);", "timestamp();", "eval(\"1\");", "import \"x\" as y;", "parse_json(\"{}\");"] {
        assert!(run(absent).is_err(), "{absent}");
    }
    assert!(run(&format!("let x = {}1{};", "(".repeat(10_000), ")".repeat(10_000))).is_err());
    assert!(run("let a = [1]; for n in 0..60 { a += a; }").unwrap_err().contains("limits.script_array_elements"));
    assert!(
        run("let f = Fn(\"len\"); for i in 0..40 { f = f.curry(f); }").is_err(),
        "function pointers escape size limits"
    );
    assert!(run("let m = #{}; let f = || m; m.f = f;").is_err(), "closures leak");
    assert!(run("let x = -9223372036854775807 - 1; let y = x / -1;").is_err());
    let error = load("let x = ;").map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("x.rhai:2:"), "{error}");
}

#[test]
fn many_rules_fit_into_little_address_space() {
    let kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmSize")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let module = wasm();
    let before = kib();
    let programs: Vec<_> = (0..100).map(|_| module.start(&json!({"do": "good"})).unwrap()).collect();
    let each_mib = (kib() - before) / 1024 / programs.len() as u64;
    assert!(each_mib <= 20, "{each_mib} MiB of address space each");
}

#[test]
fn the_wall_clock_fuse_blows_where_steps_do_not_run_out() {
    let wall = Duration::from_millis(30);
    let most = u64::MAX / 2;
    let limits = Limits { steps_base: most, script_steps_base: most, wall, ..Limits::default() };
    let sandbox = Sandbox::new(SandboxConfig { limits, ..SandboxConfig::default() }).unwrap();
    let settings = json!({"do": "loop-for-ever"});
    let wasm = sandbox.wasm("naughty", test_rules::module("naughty").unwrap()).unwrap().start(&settings).unwrap();
    let rhai = sandbox.rhai("naughty", "naughty.rhai", include_str!("naughty.rhai")).unwrap().start(&settings).unwrap();
    for (name, mut program) in [("wasm", wasm), ("rhai", rhai)] {
        let failure = tick(&mut *program, &[1.0; 3]).unwrap_err();
        assert_eq!(failure, RuleFailure::Deadline { limit: wall }, "{name}");
        assert!(failure.is_inconclusive(), "{name}: a stalled machine is not the rule's fault");
    }
}

#[test]
fn a_module_that_takes_too_long_to_compile_is_refused() {
    let limits = Limits { compile: Duration::ZERO, ..Limits::default() };
    let sandbox = Sandbox::new(SandboxConfig { limits, ..SandboxConfig::default() }).unwrap();
    let refused = sandbox.wasm("naughty", test_rules::module("naughty").unwrap()).map(|_| ()).unwrap_err();
    assert_eq!(refused, LoadError::CompileTime(Duration::ZERO));
}

#[test]
fn long_notes_are_cut_between_characters() {
    let source = "fn describe() { #{ name: \"x\", inputs: [#{ metric: \"gpu_up\" }] } }\n\
        fn evaluate(b, out) { let t = \"é\"; for n in 0..10 { t += t; } out.hit(0, \"info\", \"info\", 1.0, \"\", t); }";
    let mut program = sandbox().rhai("x", "x.rhai", source).unwrap().start(&json!({})).unwrap();
    let note = tick(&mut *program, &[]).unwrap().notes.remove(0);
    assert_eq!((note.len(), note.chars().all(|c| c == 'é')), (256, true));
}

#[test]
fn a_cache_that_others_can_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let config = SandboxConfig { cache_dir: Some(folder.path().to_owned()), ..SandboxConfig::default() };
    Sandbox::new(config).unwrap().wasm("naughty", test_rules::module("naughty").unwrap()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
    let mode = std::fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o777, "and nothing was changed");
}

#[test]
fn state_of_another_version_is_carried_over_the_same_everywhere_within_a_budget() {
    let mut all = programs("good");
    all.push(("native", Box::new(Native::<rule_naughty::Naughty>::new(&json!({"do": "good"})).unwrap())));
    for (name, mut program) in all {
        // Three rows of two slots, column-major.
        let migrated = program.migrate_state(7, 2, 3, &[1.0, 2.0, 3.0, 9.0, 9.0, 9.0]).unwrap();
        assert_eq!(migrated, Some(vec![2.0, 4.0, 6.0]), "{name}");
        assert!(tick(&mut *program, &[0.0, 0.0, 0.0]).is_ok(), "{name} goes on");
    }
    let ask = |deed| wasm().start(&json!({"do": deed})).unwrap().migrate_state(7, 1, 1, &[1.0]).unwrap_err();
    assert!(matches!(ask("report"), RuleFailure::Reported(why) if why.contains("no state of version 7")));
    assert!(matches!(ask("loop-for-ever"), RuleFailure::Limit(hit) if hit.to_string().contains("steps")));
}
