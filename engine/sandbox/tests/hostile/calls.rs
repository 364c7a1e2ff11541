//! What a rule does while it is called.

use crate::world::{Hostile, expect, fate, start, tick};

fn more(more: &str, evaluate: &str) -> Hostile {
    Hostile { more: more.into(), ..Hostile::evaluates(evaluate) }
}

#[test]
fn the_rule_they_are_all_made_from_is_good() {
    assert_eq!(fate(&Hostile::default()), "ok");
    assert_eq!(fate(&Hostile::hitting(&[crate::world::hit(1, 1, 2, 0.5)])), "ok");
}

#[test]
fn endless_work_ends_at_a_limit() {
    let fill = "(loop $l (memory.fill (i32.const 16384) (i32.const 1) (i32.const 60000)) (br $l))";
    let copy = "(loop $l (memory.copy (i32.const 16384) (i32.const 20000) (i32.const 60000)) (br $l))";
    let cases = [
        ("loop", Hostile::evaluates("(loop $l (br $l))"), "limit steps_base"),
        ("loop of blocks", Hostile::evaluates("(loop $l (block) (br $l))"), "limit steps_base"),
        ("bulk fill", Hostile::evaluates(fill), "limit steps_base"),
        ("bulk copy", Hostile::evaluates(copy), "limit steps_base"),
        ("recursion", more("(func $r (call $r))", "(call $r)"), "trap|limit steps_base"),
        (
            "recursion with a large frame",
            more(
                "(func $r (param i64 i64 i64 i64) (result i64) (i64.add (call $r (local.get 0) (local.get 1) (local.get 2) (local.get 3)) (i64.mul (local.get 2) (local.get 3))))",
                "(drop (call $r (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))",
            ),
            "trap",
        ),
        (
            "two functions in turns",
            more("(func $a (call $b)) (func $b (call $a))", "(call $a)"),
            "trap|limit steps_base",
        ),
        (
            "indirect recursion",
            more("(table 1 funcref) (elem (i32.const 0) $r) (func $r (call_indirect (i32.const 0)))", "(call $r)"),
            "trap|limit steps_base",
        ),
        (
            "start function",
            Hostile { more: "(func $s (loop $l (br $l))) (start $s)".into(), ..Hostile::default() },
            "load: limit steps_init",
        ),
        (
            "describe",
            Hostile { describe: "(loop $l (br $l)) (i32.const 0)".into(), ..Hostile::default() },
            "load: limit steps_init",
        ),
        (
            "configure",
            Hostile { configure: "(loop $l (br $l)) (i32.const 0)".into(), ..Hostile::default() },
            "load: limit steps_init",
        ),
        (
            "realloc",
            Hostile { realloc: "(loop $l (br $l)) (i32.const 0)".into(), ..Hostile::default() },
            "load: limit steps_init",
        ),
    ];
    expect(cases.map(|(name, rule, expected)| (name.to_owned(), fate(&rule), expected.to_owned())));
}

#[test]
fn memory_and_tables_grow_to_their_limits_and_no_further() {
    let grow = |pages: &str| format!("(loop $l (drop (memory.grow (i32.const {pages}))) (br $l))");
    let table = "(table $t 1 funcref)";
    let cases = [
        ("by pages", Hostile::evaluates(&grow("1")), "limit memory_bytes"),
        ("at once", Hostile::evaluates(&grow("900")), "limit memory_bytes"),
        ("more than its steps pay for", Hostile::evaluates(&grow("65535")), "limit steps_base"),
        ("by more than there is", Hostile::evaluates(&grow("-1")), "limit steps_base"),
        (
            "from the start",
            Hostile { memory: "(memory (export \"memory\") 300)".into(), ..Hostile::default() },
            "load: limit memory_bytes",
        ),
        (
            "beyond its own maximum",
            Hostile { memory: "(memory (export \"memory\") 2 3)".into(), ..Hostile::evaluates(&grow("2")) },
            "trap|invalid",
        ),
        (
            "a table",
            more(table, "(loop $l (drop (table.grow $t (ref.null func) (i32.const 1000))) (br $l))"),
            "limit table_elements|limit steps_base",
        ),
        (
            "a table at once",
            more(table, "(drop (table.grow $t (ref.null func) (i32.const 100000)))"),
            "limit table_elements",
        ),
        ("a large table", more("(table 20001 funcref)", ""), "load: limit table_elements"),
        ("nine tables", more(&"(table 1 funcref)".repeat(9), ""), "load: limit tables"),
    ];
    expect(cases.map(|(name, rule, expected)| (name.to_owned(), fate(&rule), expected.to_owned())));
}

#[test]
fn what_was_used_stays_below_the_limit() {
    // Grows to 255 of 256 pages and stays there.
    let rule = Hostile::evaluates("(drop (memory.grow (i32.sub (i32.const 255) (memory.size))))");
    let mut program = start(&rule).unwrap();
    tick(&mut *program, 2).unwrap();
    assert_eq!(program.usage().unwrap().memory_bytes, Some(255 << 16));
}

#[test]
fn traps_are_traps() {
    let cases = [
        ("unreachable", "unreachable", "trap"),
        ("division by zero", "(drop (i32.div_u (i32.const 1) (i32.const 0)))", "trap"),
        ("overflow", "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))", "trap"),
        ("truncation of NaN", "(drop (i32.trunc_f64_s (f64.const nan)))", "trap"),
        ("load beyond the end", "(drop (i32.load (i32.const -4)))", "trap"),
        ("load with a large offset", "(drop (i32.load offset=0xffffffff (i32.const -1)))", "trap"),
        ("store below zero", "(i64.store (i32.const -8) (i64.const 1))", "trap"),
        ("fill beyond the end", "(memory.fill (i32.const -1) (i32.const 0) (i32.const 100))", "trap|limit steps_base"),
    ];
    expect(cases.map(|(name, body, expected)| (name.to_owned(), fate(&Hostile::evaluates(body)), expected.to_owned())));
    let null = more("(table 2 funcref)", "(call_indirect (i32.const 1))");
    assert_eq!(fate(&null), "trap", "a call of nothing");
    let wrong = more(
        "(table 1 funcref) (elem (i32.const 0) $f) (func $f)",
        "(drop (call_indirect (result i64) (i32.const 0)))",
    );
    assert_eq!(fate(&wrong), "trap", "a call of another type");
}

#[test]
fn an_allocator_that_lies_harms_its_own_rule_alone() {
    let with = |realloc: &str| Hostile { realloc: realloc.into(), ..Hostile::default() };
    let cases = [
        ("beyond the end", with("(i32.const -16)"), "load: invalid|load: trap"),
        ("far beyond the end", with("(i32.const 0x7fffff00)"), "load: invalid|load: trap"),
        ("trap", with("unreachable"), "load: trap"),
        // What it overwrites is its own: the module's texts at 1024 are gone when the host reads them.
        ("over itself", with("(i32.const 4096)"), "ok|invalid|load: invalid|load: contract"),
        ("over its texts", with("(i32.const 1024)"), "load: contract|load: invalid|invalid"),
        ("misaligned", with("(i32.const 65537)"), "invalid"),
        ("zero", with("(i32.const 0)"), "ok"),
    ];
    expect(cases.map(|(name, rule, expected)| (name.to_owned(), fate(&rule), expected.to_owned())));
}

#[test]
fn a_rule_that_fails_at_every_second_tick_is_built_anew_each_time() {
    let rule = Hostile {
        more: "(global $n (mut i32) (i32.const 0))".into(),
        ..Hostile::evaluates("(if (global.get $n) (then unreachable)) (global.set $n (i32.const 1))")
    };
    let mut program = start(&rule).unwrap();
    let fates: Vec<bool> = (0..6).map(|_| tick(&mut *program, 2).is_ok()).collect();
    assert_eq!(fates, [true, false, true, false, true, false], "nothing of a failed instance is left");
}

#[test]
fn evidence_has_the_budget_of_a_tick_without_rows() {
    let rule = Hostile { explain: "(loop $l (br $l)) (i32.const 0)".into(), ..Hostile::default() };
    let mut program = start(&rule).unwrap();
    tick(&mut *program, 2).unwrap();
    let failure = program.explain(0).unwrap_err();
    assert_eq!(failure.limit(), Some("steps_base"), "{failure}");
    assert!(failure.to_string().contains("used 200,000 of 200,000 steps"), "{failure}");
}
