//! The same for scripts.

use serde_json::json;
use watchfire_core::RuleFailure;
use watchfire_sandbox::{Limits, LoadError, Sandbox};

use crate::world::{expect, kind, refusal, sandbox, tick};

fn script(body: &str, more: &str) -> String {
    format!(
        "fn describe() {{ #{{ name: \"x\", inputs: [#{{ metric: \"gpu_up\" }}], settings: #{{ \"limit\": 1.0, \"deep\": #{{ \"a\": 1.0 }}, \"list\": [1.0] }} }} }}\n{more}\nfn evaluate(batch, out) {{ {body} }}"
    )
}

fn with(sandbox: &Sandbox, source: &str) -> Result<(), Result<RuleFailure, LoadError>> {
    let started = sandbox.rhai("x", "x.rhai", source).and_then(|module| module.start(&json!({})));
    let mut program = started.map_err(Err)?;
    tick(&mut *program, 2).map(drop).map_err(Ok)
}

fn fate(source: &str) -> String {
    match with(&sandbox(Limits::default()), source) {
        Ok(()) => "ok".into(),
        Err(Ok(failure)) => kind(&failure),
        Err(Err(error)) => format!("load: {}", refusal(&error)),
    }
}

fn check(cases: &[(&str, &str)]) {
    expect(cases.iter().map(|(body, expected)| ((*body).to_owned(), fate(&script(body, "")), (*expected).to_owned())));
}

#[test]
fn endless_work_ends_at_a_limit() {
    check(&[
        ("loop {}", "limit script_steps_base"),
        ("while true {}", "limit script_steps_base"),
        ("let x = 0; for n in 0..9223372036854775807 { x += 1; }", "limit script_steps_base"),
        ("let n = 0; do { n += 1 } while n >= 0;", "limit script_steps_base"),
        ("for n in range(0.0, 1e300, 1e-300) {}", "limit script_steps_base|trap|reported"),
        ("for n in range(0, 10, 0) {}", "ok|limit script_steps_base|trap|reported"),
        ("try { loop {} } catch { }", "limit script_steps_base"),
        ("for n in 0..1000000 { try { throw n } catch (e) { } }", "limit script_steps_base"),
    ]);
    assert_eq!(fate(&script("deep(0)", "fn deep(n) { deep(n + 1) }")), "limit script_calls");
    assert_eq!(fate(&script("a()", "fn a() { b() } fn b() { a() }")), "limit script_calls");
    assert_eq!(
        fate(&script("", "fn on_load() { loop {} }").replace("#{ name", "loop {} #{ name")),
        "load: limit steps_init"
    );
}

#[test]
fn texts_arrays_and_maps_grow_to_their_limits() {
    check(&[
        ("let t = \"x\"; loop { t += t; }", "limit script_string_bytes"),
        ("let t = \"x\"; loop { t = t + t; }", "limit script_string_bytes"),
        ("let t = \"x\"; loop { t = `${t}${t}`; }", "limit script_string_bytes"),
        ("let t = \"x\"; t.pad(1000000000, 'y');", "limit script_string_bytes"),
        ("let t = \"ab\"; for n in 0..20 { t.replace(\"a\", t); }", "limit script_string_bytes"),
        ("let a = [1]; loop { a += a; }", "limit script_array_elements"),
        ("let a = []; loop { a.push(1); }", "limit script_array_elements|limit script_steps_base"),
        ("let a = []; a.pad(1000000000, 1);", "limit script_array_elements"),
        ("let a = []; a.pad(4000, 1); let b = [a, a]; let c = [b, b];", "limit script_array_elements"),
        ("let a = [1]; loop { a = [a, a]; }", "limit script_array_elements"),
        (
            "let a = [1]; a.insert(0, a); loop { a.insert(0, a); }",
            "limit script_array_elements|limit script_steps_base",
        ),
        ("let m = #{}; let n = 0; loop { m[n.to_string()] = n; n += 1; }", "limit script_map_entries"),
        ("let m = #{}; for n in 0..9999 { m[`${m.len()}`] = n; }", "limit script_map_entries"),
        (
            "let b = []; b.pad(4000, 1); let a = []; a.pad(4000, 1); for n in 0..4000 { a[n] = b; }",
            "limit script_array_elements",
        ),
        ("let b = []; b.pad(4000, 1); let m = #{}; for n in 0..200 { m[`${n}`] = b; }", "limit script_array_elements"),
        ("let m = #{a: 1}; loop { m = #{a: m, b: m}; }", "limit script_map_entries"),
        ("let m = #{}; loop { m.x = [m, m]; }", "limit script_map_entries|limit script_array_elements"),
        ("let a = [\"x\"]; loop { a[0] += a[0]; }", "limit script_string_bytes"),
        ("let t = \"x\"; t.pad(4000, 'y'); let a = [t, t, t];", "limit script_string_bytes"),
        ("let b = blob(1000000000, 0);", "trap|reported|limit script_array_elements"),
        (
            "let t = \"\"; for n in 0..4000 { t += 'x'; } t.split(\"\").len();",
            "ok|limit script_array_elements|limit script_steps_base",
        ),
    ]);
}

/// As deep as the limit of elements lets it: what looks at it or lets it go walks down to its end.
#[test]
fn values_nested_as_deep_as_they_may_be_fit_on_a_small_stack() {
    let bodies = [
        "let a = []; loop { a = [a]; }",
        "let m = #{}; loop { m = #{a: m}; }",
        "let a = []; loop { a = [#{a: a}]; }",
        "let a = []; for n in 0..4090 { a = [a]; } let b = a; let c = a == b; let t = a.to_string();",
    ];
    for body in bodies {
        let wall = std::time::Duration::from_secs(20);
        let limits = Limits { script_steps_base: 10_000_000, script_map_entries: 1024, wall, ..Limits::default() };
        let run = move || with(&sandbox(limits), &script(body, ""));
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
        let ended = thread.join().unwrap();
        assert!(matches!(ended, Ok(()) | Err(Ok(_))), "{body}: {ended:?}");
    }
}

#[test]
fn nothing_outside_can_be_reached() {
    check(&[
        ("sleep(1);", "trap"),
        ("sleep(1e300);", "trap"),
        ("timestamp();", "trap"),
        ("eval(\"1\");", "load: script|trap"),
        ("import \"x\" as y;", "load: script"),
        ("export let x = 1;", "load: script"),
        ("parse_json(\"{}\");", "trap"),
        ("open_file(\"/etc/passwd\");", "trap"),
        ("exit();", "trap"),
        ("rand();", "trap"),
        ("let f = Fn(\"len\");", "load: script"),
        ("let f = |x| x;", "load: script"),
        ("call(\"deep\");", "trap|load: script"),
        ("debug(1);", "ok|trap"),
        ("is_def_fn(\"evaluate\", 2);", "ok|trap|load: script"),
        ("global::x;", "load: script|trap"),
        ("this.x = 1;", "load: script"),
    ]);
}

#[test]
fn settings_can_be_read_and_never_be_changed() {
    check(&[
        ("if batch.settings.limit != 1.0 || batch.settings[\"limit\"] != 1.0 { throw 1 }", "ok"),
        ("if batch.settings.deep.a != 1.0 { throw 1 }", "ok"),
        ("if \"nope\" in batch.settings || !(\"limit\" in batch.settings) { throw 1 }", "ok"),
        ("if batch.settings.len() != 3 || batch.settings.keys() != [\"deep\", \"limit\", \"list\"] { throw 1 }", "ok"),
        ("batch.settings.nope;", "trap|reported"),
        ("batch.settings.limit = 2.0;", "trap|reported"),
        ("batch.settings[\"limit\"] = 2.0;", "trap|reported"),
        ("let s = batch.settings; s.limit = 2.0;", "trap|reported"),
        ("batch.settings.deep.a = 2.0;", "trap|reported"),
        ("batch.settings = 1;", "trap|reported|load: script"),
        ("batch.settings.clear();", "trap"),
        ("batch.settings.remove(\"limit\");", "trap"),
    ]);
    // What a script changes of a list is its own copy, gone at the next tick.
    let body = "let l = batch.settings.list; if l.len() != 1 { throw \"kept\" } l.push(2.0); batch.settings.list.push(3.0); if batch.settings.list.len() != 1 { throw \"kept\" }";
    let mut program =
        sandbox(Limits::default()).rhai("x", "x.rhai", &script(body, "")).unwrap().start(&json!({})).unwrap();
    for _ in 0..3 {
        assert_eq!(tick(&mut *program, 2).map(drop).map_err(|failure| failure.to_string()), Ok(()));
    }
}

#[test]
fn answers_must_make_sense() {
    check(&[
        ("out.hit(2, \"info\", \"info\", 1.0);", "trap|reported"),
        ("out.hit(-1, \"info\", \"info\", 1.0);", "trap|reported"),
        ("out.hit(0, \"awful\", \"info\", 1.0);", "trap|reported"),
        ("out.hit(0, \"info\", \"info\", \"x\");", "trap|reported"),
        ("out.hit(0, \"info\", \"info\", 0.0 / 0.0);", "invalid|trap"),
        ("for n in 0..3 { out.hit(0, \"info\", \"info\", 1.0); }", "limit hits"),
        ("out.derive(0, 0, 1.0);", "trap|reported"),
        ("out.set_state(batch, 0, 0, 1.0);", "trap|reported"),
        ("batch.column(7);", "trap|reported"),
        ("batch.get(0, 99);", "trap|reported"),
        ("batch.state(0, 0);", "trap|reported"),
        ("out = 1;", "ok|trap|load: script"),
    ]);
    let noted = |rows: usize| {
        let body = "for row in 0..batch.rows { out.hit(row, \"info\", \"info\", 1.0, \"\", `note ${row}`); }";
        let mut program =
            sandbox(Limits::default()).rhai("x", "x.rhai", &script(body, "")).unwrap().start(&json!({})).unwrap();
        tick(&mut *program, rows).map(|out| out.notes.len()).map_err(|failure| kind(&failure))
    };
    assert_eq!((noted(64), noted(65)), (Ok(64), Err("limit notes".to_owned())));
}

#[test]
fn sources_that_are_bombs_are_refused() {
    let nested = |open: &str, close: &str, depth: usize| {
        script(&format!("let x = {}1{};", open.repeat(depth), close.repeat(depth)), "")
    };
    let cases = [
        ("parentheses", nested("(", ")", 10_000), "load: script"),
        ("arrays", nested("[", "]", 10_000), "load: script"),
        ("maps", nested("#{a:", "}", 10_000), "load: script"),
        ("blocks", script(&format!("{}{}", "{".repeat(10_000), "}".repeat(10_000)), ""), "load: script"),
        ("minus", nested("-", "", 10_000), "load: script"),
        ("nots", nested("!", "", 10_000), "load: script"),
        ("sums", script(&format!("let x = {}1;", "1+".repeat(10_000)), ""), "load: script|ok"),
        ("a long array", script(&format!("let x = [{}];", "1,".repeat(5_000)), ""), "load: script"),
        ("a long text", script(&format!("let x = \"{}\";", "x".repeat(5_000)), ""), "load: script"),
        ("a long name", script(&format!("let {} = 1;", "x".repeat(100_000)), ""), "ok|load: script"),
        ("33 functions", script("", &(0..33).map(|n| format!("fn f{n}() {{}}\n")).collect::<String>()), "load: script"),
        (
            "65 variables",
            script(&(0..65).map(|n| format!("let v{n} = 1;")).collect::<String>(), ""),
            "limit script_variables|load: script",
        ),
        ("a large number", script("let x = 99999999999999999999999999;", ""), "load: script|ok"),
        ("300 KB", script(&"let x = 1;".repeat(30_000), ""), "load: limit script_bytes"),
        ("zeros", "\0".repeat(100), "load: script"),
        ("17 slots", script("", "").replace("name:", "state_slots: 17, name:"), "load: limit state_slots"),
        ("an unknown key", script("", "").replace("name:", "nope: 17, name:"), "load: describe"),
    ];
    expect(cases.map(|(name, source, expected)| (name.to_owned(), fate(&source), expected.to_owned())));
}
