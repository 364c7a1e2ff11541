//! Files that are no rule, or more than one.

use serde_json::json;
use watchfire_sandbox::{Limits, LoadError, Policy, Sandbox, SandboxConfig, manifest};

use crate::world::{Hostile, append, expect, fate, fate_of, load, refusal, with_contract};

fn core(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

fn fates(cases: impl IntoIterator<Item = (impl ToString, Vec<u8>, &'static str)>) {
    expect(cases.into_iter().map(|(name, bytes, expected)| (name.to_string(), fate_of(&bytes), expected.to_owned())));
}

#[test]
fn what_is_no_webassembly_is_refused() {
    let good = Hostile::default().bytes();
    let joined = |start: &[u8]| [start, &good].concat();
    fates([
        ("nothing", Vec::new(), "load: not wasm"),
        ("four bytes", b"\0asm".to_vec(), "load: not wasm"),
        ("an unknown version", b"\0asm\x09\0\0\0".to_vec(), "load: not wasm"),
        ("a program", joined(b"\x7fELF\x02\x01\x01"), "load: not wasm"),
        ("an archive before a module", joined(b"PK\x03\x04"), "load: not wasm"),
        ("a script", b"fn describe() {}".to_vec(), "load: not wasm"),
        ("text of WebAssembly", Hostile::default().text().into_bytes(), "load: not wasm"),
        ("a module before an archive", [&good[..], b"PK\x03\x04junk"].concat(), "load: not wasm"),
        ("a module before a module", [&good[..], &good[..]].concat(), "load: not wasm"),
        ("4 MiB of zeros and one", vec![0; (4 << 20) + 1], "load: not wasm|load: limit module_bytes"),
        ("a module of 33 MiB", [&good[..], &vec![0; 33 << 20]].concat(), "load: limit module_bytes"),
    ]);
}

#[test]
fn a_file_that_ends_early_is_refused_wherever_it_ends() {
    let good = Hostile::default().bytes();
    for parts in 0..64 {
        let end = good.len() * parts / 64;
        assert_ne!(fate_of(&good[..end]), "ok", "{end} of {} bytes", good.len());
    }
}

#[test]
fn compiled_code_is_never_loaded() {
    let mut config = wasmtime::Config::new();
    config.consume_fuel(true).epoch_interruption(true);
    for engine in [wasmtime::Engine::default(), wasmtime::Engine::new(&config).unwrap()] {
        for code in [engine.precompile_component(&core("(component)")), engine.precompile_module(&core("(module)"))] {
            let error = load(&code.unwrap()).map(drop).unwrap_err();
            assert!(matches!(&error, LoadError::NotWasm(_)), "{error}");
        }
    }
}

#[test]
fn nothing_can_be_imported_but_the_log() {
    let import = |module: &str, name: &str, kind: &str| Hostile {
        head: format!("(import \"{module}\" \"{name}\" {kind})"),
        ..Hostile::default()
    };
    let function = "(func (param i32 i32))";
    let wasi = [
        "fd_write",
        "fd_read",
        "path_open",
        "proc_exit",
        "environ_get",
        "args_get",
        "clock_time_get",
        "random_get",
        "sock_accept",
        "poll_oneoff",
        "sched_yield",
    ];
    let wasi = wasi.map(|name| (name, import("wasi_snapshot_preview1", name, function), "load: import"));
    let others = [
        ("log", import("watchfire:rule/host@0.1.0", "log", function), "ok"),
        ("log of another type", import("watchfire:rule/host@0.1.0", "log", "(func (param i64))"), "load: compile"),
        ("exec", import("watchfire:rule/host@0.1.0", "exec", function), "load: compile"),
        (
            "a host of another version",
            import("watchfire:rule/host@9.0.0", "log", function),
            "load: compile|load: import",
        ),
        (
            "a clock of WASI 0.2",
            import("wasi:clocks/monotonic-clock@0.2.0", "now", "(func (result i64))"),
            "load: import",
        ),
        ("env", import("env", "f", function), "load: import"),
        ("a memory", import("env", "memory", "(memory 1)"), "load: import"),
        ("a table", import("env", "table", "(table 1 funcref)"), "load: import"),
        ("a global", import("env", "g", "(global i32)"), "load: import"),
        ("$root", import("$root", "f", function), "load: compile|load: import"),
        ("nothing", import("", "", function), "load: import|load: compile"),
        ("log as a memory", import("watchfire:rule/host@0.1.0", "log", "(memory 1)"), "load: compile|load: import"),
    ];
    expect(
        wasi.into_iter()
            .chain(others)
            .map(|(name, rule, expected)| (name.to_owned(), fate(&rule), expected.to_owned())),
    );
}

#[test]
fn features_that_rules_do_not_have_are_refused() {
    let more = |more: &str| Hostile { more: more.into(), ..Hostile::default() };
    let cases = [
        ("memory64", Hostile { memory: "(memory (export \"memory\") i64 2)".into(), ..Hostile::default() }),
        ("shared memory", Hostile { memory: "(memory (export \"memory\") 2 3 shared)".into(), ..Hostile::default() }),
        (
            "a page of one byte",
            Hostile { memory: "(memory (export \"memory\") 131072 (pagesize 1))".into(), ..Hostile::default() },
        ),
        ("atomics", more("(func (drop (i32.atomic.load (i32.const 0))))")),
        ("structs", more("(type (struct (field i32)))")),
        ("exceptions", more("(tag) (func (throw 0))")),
        (
            "relaxed SIMD",
            more("(func (param v128) (drop (f32x4.relaxed_madd (local.get 0) (local.get 0) (local.get 0))))"),
        ),
        (
            "wide arithmetic",
            more("(func (i64.add128 (i64.const 1) (i64.const 1) (i64.const 1) (i64.const 1)) drop drop)"),
        ),
        ("continuations", more("(type $f (func)) (type $c (cont $f))")),
    ];
    expect(cases.map(|(name, rule)| (name.to_owned(), fate(&rule), "load: compile|load: not wasm".to_owned())));
    // Components of several modules need them; how many there are is a limit.
    assert_eq!(fate(&more("(memory 1)")), "load: limit memories");
}

#[test]
fn components_that_are_no_rule_are_refused() {
    let nested = |depth: usize| format!("{}{}", "(component ".repeat(depth), ")".repeat(depth));
    fates([
        ("empty", core("(component)"), "load: contract"),
        ("nine deep", core(&nested(9)), "load: bomb"),
        ("70 modules", core(&format!("(component {})", "(core module)".repeat(70))), "load: bomb"),
        (
            "a rule of a name only",
            core(r#"(component (instance $i) (export "watchfire:rule/rule@0.1.0" (instance $i)))"#),
            "load: compile|load: contract|load: invalid",
        ),
        ("a resource", core(r#"(component (type (resource (rep i32))))"#), "load: contract|load: compile"),
        (
            "a function of WASI",
            core(r#"(component (import "wasi:cli/environment@0.2.0" (instance (export "f" (func)))))"#),
            "load: contract|load: import",
        ),
        ("a function of nobody", core(r#"(component (import "f" (func)))"#), "load: contract|load: import"),
        ("a module without contract", core("(module)"), "load: contract"),
        ("the contract without functions", with_contract(core("(module)")), "load: compile"),
        (
            "the contract with a memory",
            with_contract(core(r#"(module (memory (export "memory") 1))"#)),
            "load: compile",
        ),
    ]);
}

#[test]
fn a_component_type_that_is_junk_is_refused() {
    let mut cases = Vec::new();
    for data in [&b""[..], b"\0", b"junk", b"\0asm\x0d\0\x01\0", &[0xff; 1000], &[0x80; 64]] {
        for name in
            ["component-type", "component-type:x", "component-type:watchfire:rule@0.1.0:watchfire-rule:encoded world"]
        {
            let mut module = core("(module)");
            append(&mut module, name, data);
            cases.push((format!("{name} {data:?}"), module, "load: contract|load: compile"));
        }
    }
    fates(cases);
}

#[test]
fn a_manifest_is_information_and_bombs_in_it_are_refused() {
    let with = |data: &[u8]| {
        let mut module = Hostile::default().bytes();
        append(&mut module, manifest::SECTION, data);
        module
    };
    let deep = [vec![b'['; 60_000], vec![b']'; 4_000]].concat();
    fates([
        ("an empty object", with(b"{}"), "ok"),
        ("unknown keys", with(br#"{"steps": 1e9, "runtime": "tiny"}"#), "ok"),
        ("no JSON", with(b"junk"), "load: not wasm"),
        ("no text", with(&[0xff, 0xfe]), "load: not wasm"),
        ("nothing", with(b""), "load: not wasm"),
        ("a list without end", with(&deep), "load: not wasm"),
        ("a megabyte", with(&vec![b' '; 1 << 20]), "load: not wasm"),
    ]);
}

#[test]
fn large_modules_have_their_own_limits_where_they_are_granted() {
    let large = |language: &str, pages: u32| {
        let rule = Hostile { memory: format!("(memory (export \"memory\") {pages})"), ..Hostile::default() };
        let manifest = manifest::Manifest { runtime: "large".into(), language: language.into(), ..Default::default() };
        manifest::attach(rule.bytes(), &manifest).unwrap()
    };
    fates([
        ("64 MiB", large("javascript", 1024), "ok"),
        ("more than 64 MiB", large("javascript", 1025), "load: limit memory_bytes"),
        ("128 MiB for Python", large("python", 2048), "ok"),
        ("more for Python", large("python", 2049), "load: limit memory_bytes"),
    ]);
    let padded = |bytes: usize, module: Vec<u8>| {
        let mut module = module;
        append(&mut module, "padding", &vec![0; bytes]);
        module
    };
    fates([
        ("5 MiB", padded(5 << 20, Hostile::default().bytes()), "load: limit module_bytes"),
        ("5 MiB of a large one", padded(5 << 20, large("", 2)), "ok"),
        ("33 MiB of a large one", padded(33 << 20, large("", 2)), "load: limit module_bytes"),
    ]);
    let policy = Policy { large_modules: false, ..Policy::default() };
    let sandbox = Sandbox::new(SandboxConfig { policy, ..SandboxConfig::default() }).unwrap();
    let refused = sandbox.wasm("x", &large("", 2)).map(drop).unwrap_err();
    assert_eq!(refused, LoadError::LargeRefused);
    assert!(sandbox.wasm("x", &Hostile::default().bytes()).is_ok());
}

#[test]
fn settings_beyond_their_size_are_refused_before_the_module_sees_them() {
    let module = load(&Hostile::default().bytes()).unwrap();
    let large = json!({"x": "x".repeat(70_000)});
    assert_eq!(refusal(&module.start(&large).map(drop).unwrap_err()), "limit settings_bytes");
    let words = module.validate(&large).unwrap_err()[0].message.clone();
    assert!(words.contains("limits.settings_bytes"), "{words}");
    assert!(module.start(&json!({"x": "x".repeat(60_000)})).is_ok());
    assert_eq!(Limits::default().settings_bytes, 65_536);
}
