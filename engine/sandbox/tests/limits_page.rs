//! `docs/limits.md` lists each limit as it is.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;

use watchfire_sandbox::{FIELDS, Field, Limits, Policy, Unit};

const BEGIN: &str = "<!-- limits: made by `WATCHFIRE_BLESS=1 cargo test -p watchfire-sandbox --test limits_page` -->\n";
const END: &str = "<!-- end of limits -->";

fn unit(field: &Field) -> &'static str {
    match field.unit {
        Unit::Bytes => "bytes",
        Unit::Steps => "steps",
        Unit::Count => "number",
        Unit::Time => "time",
    }
}

/// What becomes of a call or a file that goes beyond.
fn effect(field: &Field) -> &'static str {
    match field.name {
        "module_bytes" | "script_bytes" | "function_bytes" | "functions" | "compile" | "settings_bytes"
        | "state_slots" | "script_depth" | "script_functions" => "refused at load",
        "steps_init" | "wall_init" | "memories" | "tables" | "instances" => "fails at load or call",
        "note_bytes" | "log_bytes" => "cut, counted",
        "log_lines_per_minute" => "dropped, counted",
        "wall" => "call fails, not held against the rule at once",
        _ => "call fails",
    }
}

fn table() -> String {
    let (standard, large, python) = (Limits::default(), Limits::large(), Limits::python());
    let mut text = String::from(
        "| limit | unit | default | large | bounds | beyond it | what it bounds |\n|---|---|---|---|---|---|---|\n",
    );
    for field in FIELDS {
        let (most, least) = (field.unit.show(field.max), field.unit.show(field.min));
        let (own, of_large, of_python) = (field.show(&standard), field.show(&large), field.show(&python));
        let of_large = match (of_large == own, of_python == of_large) {
            (true, true) => String::new(),
            (_, true) => of_large,
            (_, false) => format!("{of_large}; Python {of_python}"),
        };
        let (name, unit, effect, what) = (field.name, unit(field), effect(field), field.what);
        writeln!(text, "| `{name}` | {unit} | {own} | {of_large} | {least} to {most} | {effect} | {what} |").unwrap();
    }
    text
}

#[test]
fn the_page_lists_each_limit_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("WATCHFIRE_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert_eq!(found, table(), "docs/limits.md is out of date: run this test with WATCHFIRE_BLESS=1");
    let total = Unit::Bytes.show(Policy::TOTAL_MEMORY_BYTES);
    assert!(page.contains(&format!("`total_memory_bytes` | {total}")), "the total is {total}");
}
