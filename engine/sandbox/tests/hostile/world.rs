//! A rule written by hand, each part of which a test can replace by something hostile.

use std::time::Duration;

use serde_json::json;
use watchfire_core::{Batch, Outcome, Program, RuleFailure, Time};
use watchfire_sandbox::{Limits, LoadError, Module, Sandbox, SandboxConfig};

/// Where the module keeps its answers.
pub const DESCRIPTOR: u32 = 2048;
pub const INPUT: u32 = 2176;
pub const ANSWER: u32 = 4096;
pub const HITS: u32 = 8192;

/// A core module that carries the contract's component type. The default is a rule that answers nothing, and well.
#[derive(Clone)]
pub struct Hostile {
    /// Before everything else: imports and types.
    pub head: String,
    pub memory: String,
    pub realloc: String,
    /// More functions, tables, data and a start function.
    pub more: String,
    pub describe: String,
    pub configure: String,
    pub evaluate: String,
    pub explain: String,
    pub descriptor: Vec<u32>,
    pub input: Vec<u32>,
    pub answer: Vec<u32>,
    pub hits: Vec<u32>,
}

/// A bump allocator that grows the memory; `evaluate` starts it anew.
const REALLOC: &str = "(local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (block $fits (loop $more
        (br_if $fits (i32.le_u (global.get $next) (i32.shl (memory.size) (i32.const 16))))
        (drop (memory.grow (i32.const 1)))
        (br $more)))
    (local.get $at)";

impl Default for Hostile {
    fn default() -> Self {
        Hostile {
            head: String::new(),
            memory: "(memory (export \"memory\") 2)".into(),
            realloc: REALLOC.into(),
            more: String::new(),
            describe: format!("(i32.const {DESCRIPTOR})"),
            configure: "(i32.const 3072)".into(),
            evaluate: format!("(global.set $next (i32.const 65536)) (i32.const {ANSWER})"),
            explain: "(i32.const 3072)".into(),
            // contract, name, version, scope, inputs, outputs, schema, slots, version, labels, group
            descriptor: vec![1024, 20, 1056, 7, 1072, 3, 1, INPUT, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            // metric, name, aggregate last, scope, window, required
            input: vec![0, 0, 1088, 6, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0],
            // ok; hits, notes, state, derived
            answer: vec![0; 10],
            hits: Vec::new(),
        }
    }
}

/// A hit: row, raise and hold, value, no cause, no note.
pub fn hit(row: u32, raise: u8, hold: u8, value: f64) -> Vec<u32> {
    let bits = value.to_bits();
    vec![row, u32::from(raise) | u32::from(hold) << 8, bits as u32, (bits >> 32) as u32, 0, 0, 0, 0]
}

fn data(words: &[u32]) -> String {
    words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("\\{byte:02x}")).collect()
}

impl Hostile {
    /// With another body of `evaluate`.
    pub fn evaluates(body: &str) -> Self {
        Hostile { evaluate: format!("{body} (i32.const {ANSWER})"), ..Hostile::default() }
    }

    /// With other hits.
    pub fn hitting(hits: &[Vec<u32>]) -> Self {
        let mut rule = Hostile { hits: hits.concat(), ..Hostile::default() };
        (rule.answer[1], rule.answer[2]) = (HITS, hits.len() as u32);
        rule
    }

    pub fn text(&self) -> String {
        let rule = "watchfire:rule/rule@0.1.0#";
        let [describe, configure, evaluate, explain, realloc, more, head, memory] = [
            &self.describe,
            &self.configure,
            &self.evaluate,
            &self.explain,
            &self.realloc,
            &self.more,
            &self.head,
            &self.memory,
        ];
        let (descriptor, input) = (data(&self.descriptor), data(&self.input));
        let (answer, hits) = (data(&self.answer), data(&self.hits));
        format!(
            r#"(module {head} {memory}
            (global $next (mut i32) (i32.const 65536))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc})
            (func (export "{rule}describe") (result i32) {describe})
            (func (export "{rule}validate-settings") (param i32 i32) (result i32) (i32.const 3072))
            (func (export "{rule}configure") (param i32 i32) (result i32) {configure})
            (func (export "{rule}on-targets") (param i32 i32) (result i32) (i32.const 3072))
            (func (export "{rule}evaluate") (param i64 i64 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {evaluate})
            (func (export "{rule}explain") (param i32) (result i32) {explain})
            (data (i32.const 1024) "watchfire:rule@0.1.0") (data (i32.const 1056) "hostile")
            (data (i32.const 1072) "1.0") (data (i32.const 1088) "gpu_up")
            (data (i32.const {DESCRIPTOR}) "{descriptor}") (data (i32.const {INPUT}) "{input}")
            (data (i32.const {ANSWER}) "{answer}") (data (i32.const {HITS}) "{hits}")
            {more})"#
        )
    }

    /// The module's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        with_contract(wat::parse_str(self.text()).unwrap())
    }
}

/// A core module with the component type of a rule that does not migrate state.
pub fn with_contract(mut module: Vec<u8>) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/wit")).unwrap();
    let world = resolve.select_world(&[package], Some("watchfire-rule")).unwrap();
    let encoding = wit_component::StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut module, &resolve, world, encoding).unwrap();
    module
}

/// Appends a custom section.
pub fn append(module: &mut Vec<u8>, name: &str, data: &[u8]) {
    let section = wasm_encoder::CustomSection { name: name.into(), data: data.into() };
    wasm_encoder::Section::append_to(&section, module);
}

pub fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::new(SandboxConfig { limits, ..SandboxConfig::default() }).unwrap()
}

pub fn load(bytes: &[u8]) -> Result<Module, LoadError> {
    sandbox(Limits::default()).wasm("hostile", bytes)
}

pub fn start(rule: &Hostile) -> Result<Box<dyn Program>, LoadError> {
    load(&rule.bytes())?.start(&json!({}))
}

/// One tick of so many rows.
pub fn tick(program: &mut dyn Program, rows: usize) -> Result<Outcome, RuleFailure> {
    let (columns, quality) = (vec![1.0; rows], vec![0; rows]);
    let slots = program.descriptor().state_slots as usize;
    let state = vec![0.0; slots * rows];
    let (now, interval) = (Time::from_millis(60_000), Duration::from_secs(15));
    let batch =
        Batch { tick: 0, now, interval, rows, columns: &columns, quality: &quality, groups: &[], state: &state };
    let mut out = Outcome::default();
    program.evaluate(&batch, &mut out)?;
    Ok(out)
}

/// What became of a rule at its load, its start and one tick of two rows, in one word or two.
pub fn fate(rule: &Hostile) -> String {
    fate_of(&rule.bytes())
}

pub fn fate_of(bytes: &[u8]) -> String {
    match load(bytes).and_then(|module| module.start(&json!({}))) {
        Err(error) => format!("load: {}", refusal(&error)),
        Ok(mut program) => match tick(&mut *program, 2) {
            Err(failure) => kind(&failure),
            Ok(_) => "ok".to_owned(),
        },
    }
}

pub fn kind(failure: &RuleFailure) -> String {
    match failure {
        RuleFailure::Limit(hit) => format!("limit {}", hit.limit),
        RuleFailure::Deadline { .. } => "deadline".into(),
        RuleFailure::InvalidOutput(_) => "invalid".into(),
        RuleFailure::Trap(_) => "trap".into(),
        RuleFailure::Reported(_) => "reported".into(),
        other => format!("{other:?}"),
    }
}

pub fn refusal(error: &LoadError) -> String {
    match error {
        LoadError::TooLarge { name, .. } => format!("limit {name}"),
        LoadError::NotWasm(_) => "not wasm".into(),
        LoadError::Import { .. } => "import".into(),
        LoadError::Contract { .. } => "contract".into(),
        LoadError::CompileTime(_) => "limit compile".into(),
        LoadError::Compile(_) => "compile".into(),
        LoadError::Bomb(_) => "bomb".into(),
        LoadError::Describe(_) => "describe".into(),
        LoadError::Failed(failure) => kind(failure),
        LoadError::Limit(hit) => format!("limit {}", hit.limit),
        LoadError::Settings(_) => "settings".into(),
        LoadError::Script { .. } => "script".into(),
        other => format!("{other:?}"),
    }
}

/// Compares the fates of many rules with what is expected, and tells all that differ at once.
pub fn expect(fates: impl IntoIterator<Item = (String, String, String)>) {
    let wrong: Vec<String> = fates
        .into_iter()
        .filter(|(_, found, expected)| !expected.split('|').any(|one| one == found))
        .map(|(name, found, expected)| format!("{name}: {found}, expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
