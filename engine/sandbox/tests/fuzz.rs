//! Random harm: mutations of modules, answers and scripts. Nothing may panic here, everything ends in an answer or in
//! an error with a name, and a good rule beside them goes on as if nothing were.
//!
//! The suite runs a short seeded part. `cargo xtask soak fuzz` runs for as long as `WATCHFIRE_SOAK_FUZZ_SECONDS` says,
//! from the seed `WATCHFIRE_SOAK_SEED`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "hostile/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::json;
use watchfire_core::Program;
use watchfire_sandbox::{Limits, LoadError, Module, Sandbox, SandboxConfig, componentize};
use world::{Hostile, hit, kind, refusal, tick};

/// Executions of the short part, of each kind.
const SHORT: usize = 150;
/// Numbers that break things.
const EDGES: [u32; 12] = [0, 1, 2, 7, 0x7f, 0x80, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_ffff];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn sandbox() -> Sandbox {
    let limits = Limits {
        steps_base: 50_000,
        steps_init: 5_000_000,
        memory_bytes: 4 << 20,
        wall: Duration::from_secs(5),
        wall_init: Duration::from_secs(5),
        ..Limits::default()
    };
    Sandbox::new(SandboxConfig { limits, ..SandboxConfig::default() }).unwrap()
}

/// Changes bytes: flips, edges, cuts, copies within, repeats.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 => {
                let edge = random.of(&EDGES).to_le_bytes();
                bytes.iter_mut().skip(at).zip(edge).for_each(|(byte, new)| *byte = new);
            }
            3 => drop(bytes.drain(at.min(end)..end)),
            4 => {
                let part = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, part);
            }
            5 if random.below(8) == 0 => bytes.truncate(at),
            _ if !bytes.is_empty() => bytes[at] = *random.of(&[0, 1, 0x0b, 0x40, 0x7f, 0x80, 0xff, 0x41, 0x20]),
            _ => {}
        }
    }
}

/// An instruction sequence that is well typed: what it does is random.
fn body(random: &mut Random) -> String {
    let mut text = String::from("(local $a i32) (local $x f64)");
    for _ in 0..random.below(12) {
        let number = *random.of(&EDGES);
        text += &match random.below(9) {
            0 => format!("(local.set $a (i32.add (local.get $a) (i32.const {number})))"),
            1 => format!("(i32.store offset={} (local.get $a) (i32.const {number}))", random.below(200_000)),
            2 => format!("(local.set $a (i32.load (i32.const {number})))"),
            3 => format!("(drop (memory.grow (i32.const {})))", number % 70_000),
            4 => format!("(memory.copy (local.get $a) (i32.const {number}) (i32.const {}))", random.below(100_000)),
            5 => "(local.set $x (f64.div (local.get $x) (f64.convert_i32_s (local.get $a))))".to_owned(),
            6 => format!(
                "(loop $l (local.set $a (i32.sub (local.get $a) (i32.const 1))) (br_if $l (i32.gt_s (local.get $a) (i32.const {}))))",
                number as i32
            ),
            7 => "(local.set $a (call_indirect (param i32) (result i32) (local.get $a) (local.get $a)))".to_owned(),
            _ => format!("(memory.fill (i32.const {number}) (local.get $a) (i32.const {}))", random.below(100_000)),
        };
    }
    text
}

/// A rule with random words in its answers and random code.
fn generate(random: &mut Random) -> Hostile {
    let mut rule = Hostile::hitting(&vec![hit(0, 1, 1, 1.0); random.below(4)]);
    rule.evaluate = format!("{} (i32.const {})", body(random), world::ANSWER);
    rule.more =
        "(table 8 funcref) (elem (i32.const 0) $id $id) (func $id (param i32) (result i32) (local.get 0))".into();
    for _ in 0..random.below(3) {
        let edge = *random.of(&EDGES);
        match random.below(4) {
            0 => *pick(random, &mut rule.answer) = edge,
            1 => *pick(random, &mut rule.descriptor) = edge,
            2 => *pick(random, &mut rule.input) = edge,
            _ if !rule.hits.is_empty() => *pick(random, &mut rule.hits) = edge,
            _ => {}
        }
    }
    rule
}

fn pick<'a>(random: &mut Random, words: &'a mut [u32]) -> &'a mut u32 {
    let at = random.below(words.len());
    &mut words[at]
}

/// Starts a module and calls all it has, and says in a word how that ended.
fn outcome(loaded: Result<Module, LoadError>) -> String {
    let started = loaded.and_then(|module| {
        let _ = module.validate(&json!({"do": "good"}));
        module.start(&json!({})).or_else(|_| module.start(&json!({"do": "good"})))
    });
    let mut program = match started {
        Ok(program) => program,
        Err(error) => return format!("load: {}", refusal(&error).split('(').next().unwrap_or_default()),
    };
    let ended: Vec<String> = [0, 1, 2, 40].into_iter().map(|rows| one(&mut *program, rows)).collect();
    ended.into_iter().find(|word| word != "ok").unwrap_or_else(|| "ok".to_owned())
}

fn one(program: &mut dyn Program, rows: usize) -> String {
    let ended = tick(program, rows);
    let _ = program.explain(0);
    ended.map_or_else(|failure| kind(&failure), |_| "ok".to_owned())
}

struct Run {
    sandbox: Sandbox,
    modules: Vec<Vec<u8>>,
    scripts: Vec<String>,
    random: Random,
    counts: BTreeMap<String, u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let naughty = test_rules::module("naughty").unwrap().to_vec();
        let core = Hostile::hitting(&[hit(0, 1, 2, 1.0)]).bytes();
        let component = componentize(&core).unwrap();
        let scripts = vec![
            include_str!("naughty.rhai").to_owned(),
            "fn describe() { #{ name: \"x\", inputs: [#{ metric: \"gpu_up\", window: \"5m\", aggregate: \"mean\" }], state_slots: 2, settings: #{ limit: 1.0 } } }\nfn evaluate(batch, out) { let a = []; let m = #{}; for (v, row) in batch.column(0) { if v != () && v > batch.settings.limit { a.push(v); m[`${row}`] = a; out.hit(row, \"info\", \"warning\", v, \"thermal\", `at ${v}`); out.set_state(batch, 1, row, v); } } }\nfn explain(batch, row) { `is ${batch.get(0, row)}` }".to_owned(),
        ];
        Run {
            sandbox: sandbox(),
            modules: vec![core, component, naughty],
            scripts,
            random: Random(seed),
            counts: BTreeMap::new(),
        }
    }

    /// One execution of each kind.
    fn round(&mut self) {
        let random = &mut self.random;
        let mut module = random.of(&self.modules).clone();
        mutate(random, &mut module);
        let generated = wat::parse_str(generate(random).text()).map(world::with_contract).unwrap_or_default();
        let mut script = random.of(&self.scripts).clone().into_bytes();
        mutate(random, &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        let sandbox = self.sandbox.clone();
        let seed = self.random.0;
        self.execute("mutated", seed, || outcome(sandbox.wasm("fuzz", &module)));
        self.execute("generated", seed, || outcome(sandbox.wasm("fuzz", &generated)));
        self.execute("script", seed, || outcome(sandbox.rhai("fuzz", "fuzz.rhai", &script)));
    }

    fn execute(&mut self, what: &str, seed: u64, run: impl FnOnce() -> String) {
        let ended = catch_unwind(AssertUnwindSafe(run));
        let word =
            ended.unwrap_or_else(|_| panic!("{what}: a panic reached the host; the state of the seed was {seed}"));
        *self.counts.entry(format!("{what} {word}")).or_default() += 1;
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn random_harm_ends_in_errors_with_names() {
    let seconds = setting("WATCHFIRE_SOAK_FUZZ_SECONDS").map(Duration::from_secs);
    let mut run = Run::new(setting("WATCHFIRE_SOAK_SEED").unwrap_or(1));
    let good = run.sandbox.wasm("good", &Hostile::hitting(&[hit(1, 1, 2, 0.5)]).bytes()).unwrap();
    let mut neighbour = good.start(&json!({})).unwrap();
    let expected = tick(&mut *neighbour, 2).unwrap();
    let steps = neighbour.usage();
    let begun = Instant::now();
    let mut rounds = 0;
    while seconds.map_or(rounds < SHORT, |seconds| begun.elapsed() < seconds) {
        run.round();
        rounds += 1;
        if rounds % 10 == 0 {
            assert_eq!(tick(&mut *neighbour, 2).unwrap(), expected, "the neighbour of round {rounds}");
            assert_eq!(neighbour.usage(), steps);
        }
    }
    println!("{} executions in {:?}", rounds * 3, begun.elapsed());
    run.counts.iter().for_each(|(word, times)| println!("{times:>9}  {word}"));
    let stalled: u64 = run.counts.iter().filter(|(word, _)| word.contains("deadline")).map(|(_, times)| times).sum();
    assert_eq!(stalled, 0, "steps run out before the clock does");
}
