//! Each limit is hit once, and the error that hits it has its name and both numbers.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use watchfire_core::{Program, RuleFailure};
use watchfire_sandbox::{Changes, FIELDS, Field, Limits, LoadError, Module, Policy, Sandbox, SandboxConfig};

use crate::world::{Hostile, hit, sandbox, tick};

/// A limit, where it is set, what is run, and words of the error.
struct Case {
    limit: &'static str,
    value: u64,
    run: fn(&Sandbox) -> String,
    said: &'static str,
}

fn said<T>(result: Result<T, impl ToString>) -> String {
    result.map(drop).map_err(|error| error.to_string()).err().unwrap_or_default()
}

fn wasm(sandbox: &Sandbox, rule: &Hostile) -> Result<Box<dyn Program>, LoadError> {
    sandbox.wasm("x", &rule.bytes())?.start(&json!({}))
}

fn run_wasm(sandbox: &Sandbox, rule: &Hostile, rows: usize) -> String {
    match wasm(sandbox, rule) {
        Ok(mut program) => said(tick(&mut *program, rows)),
        Err(error) => error.to_string(),
    }
}

fn run_script(sandbox: &Sandbox, body: &str, rows: usize) -> String {
    let source = format!(
        "fn describe() {{ #{{ name: \"x\", inputs: [#{{ metric: \"gpu_up\" }}] }} }} fn deep(n) {{ if n > 0 {{ deep(n - 1) }} }} fn evaluate(batch, out) {{ {body} }}"
    );
    let started = sandbox.rhai("x", "x.rhai", &source).and_then(|module: Module| module.start(&json!({})));
    match started {
        Ok(mut program) => said(tick(&mut *program, rows)),
        Err(error) => error.to_string(),
    }
}

/// Work for each row: about 7 fuel, 500 times.
const WORK: &str = "(local $n i32) (local.set $n (i32.mul (local.get 3) (i32.const 500))) (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))";

fn notes(count: u32) -> Hostile {
    let mut rule = Hostile::default();
    (rule.answer[3], rule.answer[4]) = (16_384, count);
    rule
}

fn grown(pages: u32) -> Hostile {
    Hostile::evaluates(&format!("(drop (memory.grow (i32.const {pages})))"))
}

fn more(more: &str) -> Hostile {
    Hostile { more: more.into(), ..Hostile::default() }
}

fn cases() -> Vec<Case> {
    let mut cases = wasm_cases();
    cases.extend(script_cases());
    cases
}

#[allow(clippy::too_many_lines, reason = "a table: one case for each limit")]
fn wasm_cases() -> Vec<Case> {
    let case = |limit, value, run, said| Case { limit, value, run, said };
    vec![
        case("module_bytes", 1024, |s| run_wasm(s, &Hostile::default(), 1), "more than its limit of 1,024 bytes"),
        case(
            "function_bytes",
            1024,
            |s| run_wasm(s, &more(&format!("(func {})", "(drop (i32.const 1))".repeat(400))), 1),
            "more than its limit of 1,024 bytes",
        ),
        case("functions", 1, |s| run_wasm(s, &Hostile::default(), 1), "more than its limit of 1 functions"),
        case(
            "compile",
            1,
            |s| {
                (0..20)
                    .map(|_| {
                        run_wasm(
                            s,
                            &more(
                                &"(func (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))".repeat(5000),
                            ),
                            1,
                        )
                    })
                    .find(|said| said.contains("longer"))
                    .unwrap_or_default()
            },
            "longer than 1ms",
        ),
        case(
            "memory_bytes",
            192 << 10,
            |s| run_wasm(s, &grown(2), 1),
            "used 262,144 of 196,608 bytes of memory at n=1",
        ),
        case("memories", 1, |_| String::new(), ""),
        case("tables", 1, |s| run_wasm(s, &more("(table 1 funcref) (table 1 funcref)"), 1), "of 1 tables"),
        case(
            "instances",
            1,
            |s| {
                run_wasm(
                    s,
                    &Hostile {
                        head: "(import \"watchfire:rule/host@0.1.0\" \"log\" (func (param i32 i32)))".into(),
                        ..Hostile::default()
                    },
                    1,
                )
            },
            "of 1 instances",
        ),
        case("table_elements", 7, |s| run_wasm(s, &more("(table 8 funcref)"), 1), "used 8 of 7 table elements"),
        case(
            "steps_base",
            1000,
            |s| run_wasm(s, &Hostile::evaluates("(loop $l (br $l))"), 0),
            "used 1,000 of 1,000 steps at n=0",
        ),
        case(
            "steps_per_row",
            500,
            |s| run_wasm(&s.with_limits(changes("steps_base", 1000)), &Hostile::evaluates(WORK), 10),
            "used 6,000 of 6,000 steps at n=10",
        ),
        case(
            "steps_max",
            2000,
            |s| run_wasm(&s.with_limits(changes("steps_base", 1500)), &Hostile::evaluates(WORK), 10),
            "used 2,000 of 2,000 steps at n=10",
        ),
        case(
            "steps_init",
            1000,
            |s| run_wasm(s, &Hostile { configure: "(loop $l (br $l)) (i32.const 0)".into(), ..Hostile::default() }, 0),
            "used 1,000 of 1,000 steps at n=0",
        ),
        case(
            "wall",
            10,
            |s| {
                run_wasm(
                    &s.with_limits(changes("steps_base", 9_000_000_000)),
                    &Hostile::evaluates("(loop $l (br $l))"),
                    0,
                )
            },
            "still running after 10ms",
        ),
        case(
            "wall_init",
            10,
            |s| {
                run_wasm(
                    &s.with_limits(changes("steps_init", 9_000_000_000)),
                    &Hostile { configure: "(loop $l (br $l)) (i32.const 0)".into(), ..Hostile::default() },
                    0,
                )
            },
            "still running after 10ms",
        ),
        case(
            "output_bytes_base",
            1024,
            |s| {
                run_wasm(
                    s,
                    &Hostile {
                        descriptor: {
                            let mut d = Hostile::default().descriptor;
                            (d[11], d[12]) = (0, 2000);
                            d
                        },
                        ..Hostile::default()
                    },
                    0,
                )
            },
            "used more than 1,024 bytes of output",
        ),
        case(
            "output_bytes_per_row",
            1,
            |s| {
                run_wasm(
                    &s.with_limits(changes("output_bytes_base", 1024)),
                    &Hostile::hitting(&vec![hit(0, 1, 1, 1.0); 60]),
                    60,
                )
            },
            "used more than 1,084 bytes of output at n=60",
        ),
        case("notes", 3, |s| run_wasm(s, &notes(4), 2), "used 4 of 3 notes at n=2"),
        case(
            "state_slots",
            2,
            |s| {
                run_wasm(
                    s,
                    &Hostile {
                        descriptor: {
                            let mut d = Hostile::default().descriptor;
                            d[13] = 3;
                            d
                        },
                        ..Hostile::default()
                    },
                    2,
                )
            },
            "used 3 of 2 state slots",
        ),
        case(
            "settings_bytes",
            10,
            |s| said(s.wasm("x", &Hostile::default().bytes()).unwrap().start(&json!({"x": "0123456789"})).map(drop)),
            "used 18 of 10 bytes of settings",
        ),
        case("note_bytes", 16, |_| String::new(), ""),
        case("log_bytes", 4, |_| String::new(), ""),
        case("log_lines_per_minute", 2, |_| String::new(), ""),
    ]
}

fn script_cases() -> Vec<Case> {
    let case = |limit, value, run, said| Case { limit, value, run, said };
    vec![
        case("script_bytes", 1024, |s| run_script(s, &" ".repeat(1100), 1), "the script has"),
        case("script_steps_base", 100, |s| run_script(s, "loop {}", 0), "of 100 steps at n=0"),
        case(
            "script_steps_per_row",
            20,
            |s| run_script(&s.with_limits(changes("script_steps_base", 100)), "loop {}", 10),
            "of 300 steps at n=10",
        ),
        case(
            "script_steps_max",
            200,
            |s| run_script(&s.with_limits(changes("script_steps_base", 150)), "loop {}", 10),
            "of 200 steps at n=10",
        ),
        case(
            "script_string_bytes",
            16,
            |s| run_script(s, "let t = \"0123456789\"; t += t;", 1),
            "used more than 16 bytes in one text at n=1",
        ),
        case(
            "script_array_elements",
            5,
            |s| run_script(s, "let a = [1, 2, 3]; for n in 0..9 { a += [n]; }", 1),
            "used more than 5 elements in one array at n=1",
        ),
        case(
            "script_map_entries",
            3,
            |s| run_script(s, "let m = #{}; for n in 0..99 { m[`${n}`] = n; }", 1),
            "used more than 3 entries in one map at n=1",
        ),
        case("script_calls", 4, |s| run_script(s, "deep(9)", 1), "used more than 4 calls within calls at n=1"),
        case("script_depth", 4, |s| run_script(s, "let x = 1+(2*(3+(4*(5+(6*7)))));", 1), "maximum complexity"),
        case(
            "script_variables",
            4,
            |s| run_script(s, "let a = 1; let b = 1; let c = 1; let d = 1; let e = 1;", 1),
            "used more than 4 variables at one time at n=1",
        ),
        case("script_functions", 2, |s| run_script(s, "", 1), "functions"),
    ]
}

fn changes(name: &str, value: u64) -> Changes {
    let mut changes = Changes::default();
    changes.set(Field::named(name).unwrap(), value);
    changes
}

/// Set by the operator for all rules. What a test needs beside it, a rule may raise for itself.
fn with(name: &str, value: u64) -> Sandbox {
    let mut most = Changes::default();
    for name in ["steps_base", "steps_init"] {
        most.set(Field::named(name).unwrap(), 10_000_000_000);
    }
    let mut limits = Limits::default().with(&changes(name, value));
    if name.starts_with("wall") {
        limits.steps_max = 10_000_000_000;
    }
    let policy = Policy { most, ..Policy::default() };
    Sandbox::new(SandboxConfig { limits, policy, ..SandboxConfig::default() }).unwrap()
}

#[test]
fn each_limit_has_a_test_that_hits_it_and_an_error_that_names_it() {
    let mut wrong = Vec::new();
    for Case { limit, value, run, said } in cases().iter().filter(|case| !case.said.is_empty()) {
        let found = run(&with(limit, *value));
        let named = found.contains(&format!("limits.{}", limit.trim_end_matches("_init").trim_end_matches("wall_")));
        // What a script's own compiler refuses is told in its words, with the place.
        let by_parser = ["script_depth", "script_functions"].contains(limit) && found.starts_with("x.rhai:");
        if !found.contains(said) || !(named || by_parser) {
            wrong.push(format!("{limit}: expected {said:?} and the limit's name, found {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_limit_is_without_a_test() {
    let tested: BTreeSet<&str> = cases().iter().map(|case| case.limit).collect();
    let all: BTreeSet<&str> = FIELDS.iter().map(|field| field.name).collect();
    assert_eq!(tested, all);
}

#[test]
fn a_rules_own_limits_hold_for_it_and_are_capped_by_the_operator() {
    let ordinary = sandbox(Limits::default());
    let own = |name: &str, value| ordinary.with_limits(changes(name, value));
    let failure = run_wasm(&own("steps_base", 1000), &Hostile::evaluates("(loop $l (br $l))"), 0);
    assert!(failure.contains("used 1,000 of 1,000 steps"), "{failure}");
    assert_eq!(run_wasm(&ordinary, &Hostile::default(), 2), "", "another rule of the same sandbox is not concerned");
    let refused = said(wasm(&own("memory_bytes", 32 << 20), &Hostile::default()));
    assert!(refused.contains("limits.memory_bytes asks for 32MiB, and 16MiB is the most"), "{refused}");
    let refused = run_script(&own("script_steps_max", 30_000_000), "", 1);
    assert!(refused.contains("asks for 30000000, and 20000000 is the most"), "{refused}");
    let mut most = Changes::default();
    most.set(Field::named("memory_bytes").unwrap(), 32 << 20);
    let policy = Policy { most, ..Policy::default() };
    let granting = Sandbox::new(SandboxConfig { policy, ..SandboxConfig::default() }).unwrap();
    let granted = granting.with_limits(changes("memory_bytes", 32 << 20));
    assert_eq!(run_wasm(&granted, &grown(400), 1), "");
    assert!(wasm(&granting.with_limits(changes("memory_bytes", 33 << 20)), &Hostile::default()).is_err());
}

#[test]
fn what_is_cut_or_dropped_is_counted() {
    let limits = Limits { note_bytes: 16, log_bytes: 16, log_lines_per_minute: 3, ..Limits::default() };
    let source = "fn describe() { #{ name: \"x\", inputs: [#{ metric: \"gpu_up\" }] } }\n\
        fn evaluate(batch, out) { for n in 0..5 { print(\"0123456789\"); } out.hit(0, \"info\", \"info\", 1.0, \"\", \"0123456789 0123456789\"); }";
    let mut script = sandbox(limits.clone()).rhai("x", "x.rhai", source).unwrap().start(&json!({})).unwrap();
    let out = tick(&mut *script, 1).unwrap();
    assert_eq!(out.notes, ["0123456789 01234"]);
    assert_eq!(script.limits_touched(), [("log_bytes", 2), ("log_lines_per_minute", 2), ("note_bytes", 1)]);
    let naughty = sandbox(limits).wasm("x", test_rules::module("naughty").unwrap()).unwrap();
    let mut module = naughty.start(&json!({"do": "log-much"})).unwrap();
    tick(&mut *module, 1).unwrap();
    assert_eq!(module.limits_touched(), [("log_lines_per_minute", 997)], "1,000 lines of one byte");
}

#[test]
fn the_memory_that_a_module_may_ask_for_is_known_before_it_starts() {
    let module = sandbox(Limits::default()).wasm("x", &Hostile::default().bytes()).unwrap();
    assert_eq!(module.memory_bytes(), 16 << 20);
    let failure = RuleFailure::Deadline { limit: Duration::from_millis(250) };
    assert_eq!(failure.limit(), Some("wall"));
}
