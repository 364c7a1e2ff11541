//! Modules that are small, and large for a compiler. Each is refused by its numbers, or compiles within its limits.

use crate::world::{Hostile, expect, fate, fate_of, load, sandbox, with_contract};
use watchfire_sandbox::{Limits, LoadError};

fn more(more: String) -> Hostile {
    Hostile { more, ..Hostile::default() }
}

#[test]
fn what_multiplies_in_a_compiler_is_refused_by_its_numbers() {
    let sums = |count: usize| {
        format!("(func (local i32) {})", "(local.set 0 (i32.add (local.get 0) (i32.const 1)))".repeat(count))
    };
    let branches = format!("(func (block (result {0}) unreachable) {1})", "i64 ".repeat(17), "drop ".repeat(17));
    let cases = [
        ("a function of 270 KB", more(sums(40_000)), "load: limit function_bytes"),
        ("a function of 200 KB", more(sums(28_000)), "ok"),
        ("20,000 functions more", more("(func)".repeat(20_000)), "load: limit functions"),
        ("10,001 locals", more(format!("(func (local {}))", "i64 ".repeat(10_001))), "load: bomb"),
        ("10,000 locals", more(format!("(func (local {}))", "i64 ".repeat(10_000))), "ok"),
        ("17 results", more(branches), "load: bomb"),
        ("1,000 results", more(format!("(type (func (result {})))", "i32 ".repeat(1000))), "load: bomb"),
        ("1,000 parameters", more(format!("(type (func (param {})))", "i32 ".repeat(1000))), "load: bomb"),
    ];
    expect(cases.map(|(name, rule, expected)| (name.to_owned(), fate(&rule), expected.to_owned())));
}

#[test]
fn deep_and_wide_code_within_the_limits_compiles() {
    let deep = |depth: usize| format!("(func {}{})", "(block ".repeat(depth), ")".repeat(depth));
    let table = format!("(func (block (br_table {}(i32.const 0))))", "0 ".repeat(60_000));
    let ifs = format!("(func (param i32) {}{})", "(if (local.get 0) (then ".repeat(2_000), "))".repeat(2_000));
    let cases = [
        ("2,000 blocks deep", more(deep(2_000)), "ok"),
        ("2,000 ifs deep", more(ifs), "ok"),
        ("a table of 60,000 branches", more(table), "ok"),
        (
            "10,000 types",
            more((0..10_000).map(|n| format!("(type (func (param {})))", "i32 ".repeat(n % 200))).collect()),
            "ok",
        ),
        ("10,000 globals", more("(global i32 (i32.const 0))".repeat(10_000)), "ok"),
        (
            "10,000 exports",
            more(format!(
                "(func $f) {}",
                (0..10_000).map(|n| format!("(export \"e{n}\" (func $f))")).collect::<String>()
            )),
            "ok|load: compile",
        ),
        ("10,000 pieces of data", more("(data (i32.const 16384) \"x\")".repeat(10_000)), "ok"),
    ];
    expect(cases.map(|(name, rule, expected)| (name.to_owned(), fate(&rule), expected.to_owned())));
}

/// Written as bytes: the text format's reader is not what is tested here.
#[test]
fn blocks_nested_80_000_deep_are_an_error_or_compile() {
    let depth = 80_000;
    let mut function = wasm_encoder::Function::new([]);
    for _ in 0..depth {
        function.instructions().block(wasm_encoder::BlockType::Empty);
    }
    (0..=depth).for_each(|_| {
        function.instructions().end();
    });
    let mut module = wasm_encoder::Module::new();
    let mut types = wasm_encoder::TypeSection::new();
    types.ty().function([], []);
    let mut functions = wasm_encoder::FunctionSection::new();
    functions.function(0);
    let mut code = wasm_encoder::CodeSection::new();
    code.function(&function);
    module.section(&types).section(&functions).section(&code);
    let bytes = module.finish();
    assert!(bytes.len() < 256 << 10, "it is within the limit of one function");
    assert_eq!(fate_of(&with_contract(bytes)), "load: compile", "it lacks the contract's functions");
}

#[test]
fn custom_sections_and_names_cost_nothing() {
    let mut module = Hostile::default().bytes();
    for at in 0..1000 {
        crate::world::append(&mut module, &format!("junk{at}"), &[0x55; 1000]);
    }
    crate::world::append(&mut module, "name", &[0xff; 10_000]);
    crate::world::append(&mut module, "producers", &[0xff; 10_000]);
    assert!(["ok", "load: compile"].contains(&fate_of(&module).as_str()));
}

#[test]
fn a_compilation_that_was_given_up_is_counted_until_it_ends() {
    let limits = Limits { compile: std::time::Duration::ZERO, ..Limits::default() };
    let impatient = sandbox(limits);
    let module = Hostile::default().bytes();
    let given_up = |_: usize| impatient.wasm("x", &module).map(drop).unwrap_err();
    let refused: Vec<LoadError> = (0..20).map(given_up).collect();
    let known = |error: &LoadError| matches!(error, LoadError::CompileTime(_) | LoadError::CompilersBusy(2));
    assert!(refused.iter().all(known), "{refused:?}");
    assert!(load(&module).is_ok(), "another sandbox is not concerned");
}
