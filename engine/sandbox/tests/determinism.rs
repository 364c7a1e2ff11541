//! The same batch gives the same answer, bit for bit and step for step: on every run, in every engine, in every
//! instance. What a step is worth is pinned here by numbers.
#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "hostile/world.rs"]
mod world;

use std::time::Duration;

use serde_json::json;
use watchfire_core::{Batch, Outcome, Program, Time};
use watchfire_sandbox::{Limits, Module, Sandbox, SandboxConfig};
use world::{Hostile, fate, start, tick};

/// Rounds of random batches.
const ROUNDS: usize = 60;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// Ordinary numbers, and those that are not.
    fn value(&mut self) -> f64 {
        match self.below(12) {
            0 => 0.0,
            1 => -0.0,
            2 => f64::from_bits(self.next()),
            3 => f64::MAX,
            4 => f64::MIN_POSITIVE / 3.0,
            _ => f64::from_bits(self.next()) % 100.0,
        }
    }
}

struct Data {
    columns: Vec<f64>,
    quality: Vec<u8>,
    groups: Vec<u32>,
}

fn data(random: &mut Random, inputs: usize, rows: usize) -> Data {
    let quality: Vec<u8> = (0..inputs * rows).map(|_| if random.below(4) == 0 { 1 } else { 0 }).collect();
    let value = |quality: &u8| if *quality == 0 { random.value() } else { 0.0 };
    let columns = quality.iter().map(value).collect();
    Data { columns, groups: (0..rows).map(|row| row as u32 % 3).collect(), quality }
}

/// One tick: the answer as text that tells each bit, and the steps.
fn answer(program: &mut dyn Program, data: &Data, state: &[f64], rows: usize) -> (String, Outcome) {
    let (now, interval) = (Time::from_millis(60_000), Duration::from_secs(15));
    let Data { columns, quality, groups } = data;
    let batch = Batch { tick: 3, now, interval, rows, columns, quality, groups, state };
    let mut out = Outcome::default();
    let said = program.evaluate(&batch, &mut out);
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let hits: Vec<_> =
        out.hits.iter().map(|hit| (hit.row, hit.raise, hit.hold, hit.value.to_bits(), hit.note)).collect();
    let usage = program.usage().map(|usage| (usage.steps, usage.memory_bytes));
    let text = format!("{said:?} {hits:?} {:?} {:?} {:?} {usage:?}", out.notes, bits(&out.state), bits(&out.derived));
    (text, if said.is_ok() { out } else { Outcome::default() })
}

fn sandboxes() -> [Sandbox; 2] {
    [false, true]
        .map(|signal_handlers| Sandbox::new(SandboxConfig { signal_handlers, ..SandboxConfig::default() }).unwrap())
}

type Make = fn(&Sandbox) -> Module;

fn modules() -> [(&'static str, Make, serde_json::Value); 3] {
    let naughty: Make = |sandbox| sandbox.wasm("naughty", test_rules::module("naughty").unwrap()).unwrap();
    let threshold: Make = |sandbox| sandbox.wasm("threshold", watchfire_rules::module("threshold").unwrap()).unwrap();
    let script: Make = |sandbox| sandbox.rhai("naughty", "naughty.rhai", include_str!("naughty.rhai")).unwrap();
    let limits = json!({"metric": "gpu_up", "above": {"warning": 50, "critical": 90}, "clear_below": {"warning": 40}});
    [
        ("naughty", naughty, json!({"do": "good"})),
        ("threshold", threshold, limits),
        ("script", script, json!({"do": "good"})),
    ]
}

#[test]
fn two_engines_and_a_new_instance_in_the_middle_agree_in_each_bit_and_step() {
    for (name, make, settings) in modules() {
        let sandboxes = sandboxes();
        let modules = sandboxes.each_ref().map(make);
        let mut programs = [0, 1, 0].map(|at: usize| modules[at].start(&settings).unwrap());
        let mut random = Random(7);
        let slots = programs[0].descriptor().state_slots as usize;
        for round in 0..ROUNDS {
            let rows = random.below(40);
            let data = data(&mut random, programs[0].descriptor().inputs.len(), rows);
            let state: Vec<f64> = (0..slots * rows).map(|_| random.below(1000) as f64 / 8.0).collect();
            let [first, second, third] =
                programs.each_mut().map(|program| answer(&mut **program, &data, &state, rows).0);
            assert_eq!(first, second, "{name}, round {round}, {rows} rows: bit for bit and step for step");
            // A new instance has another heap, so that what its allocator does may cost other steps.
            let answer = |text: &str| text.rsplit_once(" Some((").map(|(said, _)| said.to_owned());
            assert_eq!(answer(&first), answer(&third), "{name}, round {round}, {rows} rows");
            if round % 7 == 6 {
                programs[2] = modules[0].start(&settings).unwrap();
            }
        }
    }
}

#[test]
fn whatever_makes_no_number_makes_the_same_one() {
    let canonical = |number: &str| {
        format!("(if (i64.ne (i64.reinterpret_f64 {number}) (i64.const 0x7ff8000000000000)) (then unreachable))")
    };
    let numbers = [
        "(f64.div (f64.const 0) (f64.const 0))",
        "(f64.div (f64.const -0) (f64.const 0))",
        "(f64.sqrt (f64.const -1))",
        "(f64.add (f64.const nan:0x4000000000123) (f64.const 1))",
        "(f64.sub (f64.const inf) (f64.const inf))",
        "(f64.mul (f64.const -inf) (f64.const 0))",
        "(f64.min (f64.const nan:0x8000000000001) (f64.const 1))",
        "(f64.max (f64.const 1) (f64.const -nan))",
        "(f64.promote_f32 (f32.div (f32.const 0) (f32.const 0)))",
        "(f64.ceil (f64.const -nan))",
    ];
    for number in numbers {
        // Through a local, so that nothing is computed before the module runs.
        assert_eq!(fate(&Hostile::evaluates(&canonical(number))), "ok", "{number}");
    }
}

/// The fuel of one call. A change here changes what rules may do: it is a change of the contract.
#[test]
fn steps_cost_what_they_have_always_cost() {
    let work = |body: &str| Hostile { more: MORE.into(), ..Hostile::evaluates(body) };
    let cases = [
        ("an empty answer", Hostile::default(), 76),
        ("100 nops and blocks", work(&"nop (block) ".repeat(100)), 74),
        ("100 additions", work(&format!("(f64.const 1) {}drop", "(f64.const 1) f64.add ".repeat(100))), 275),
        ("a call", work("(call $f)"), 78),
        (
            "a loop of 1000",
            work(
                "(local $n i32) (local.set $n (i32.const 1000)) (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
            ),
            5076,
        ),
        ("1000 bytes filled", work("(memory.fill (i32.const 16384) (i32.const 1) (i32.const 1000))"), 1078),
        ("1000 bytes copied", work("(memory.copy (i32.const 16384) (i32.const 20000) (i32.const 1000))"), 1078),
        ("three pages more", work("(drop (memory.grow (i32.const 3)))"), 676),
        ("ten table elements more", work("(drop (table.grow $t (ref.null func) (i32.const 10)))"), 87),
        ("a table of branches", work("(block $a (block $b (br_table $a $b (i32.const 1))))"), 76),
        ("an if and its else", work("(if (i32.const 1) (then nop) (else nop))"), 76),
        ("vectors", work("(drop (f64x2.add (v128.const i64x2 1 2) (v128.const i64x2 3 4)))"), 77),
    ];
    let steps = |rule: &Hostile| {
        let mut program = start(rule).unwrap();
        tick(&mut *program, 100).unwrap();
        program.usage().unwrap().steps
    };
    let found: Vec<_> = cases.iter().map(|(name, rule, _)| (*name, steps(rule))).collect();
    let expected: Vec<_> = cases.iter().map(|(name, _, golden)| (*name, *golden)).collect();
    assert_eq!(found, expected);
}

/// A function of one instruction, and a table.
const MORE: &str = "(table $t 1 funcref) (func $f (local i32) (local.set 0 (i32.const 1)))";

#[test]
fn a_script_costs_what_it_has_always_cost() {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let mut program =
        sandbox.rhai("x", "naughty.rhai", include_str!("naughty.rhai")).unwrap().start(&json!({"do": "good"})).unwrap();
    let mut random = Random(1);
    let steps = [1, 10, 100].map(|rows| {
        let data = Data { columns: vec![1.0; rows], quality: vec![0; rows], groups: vec![0; rows] };
        answer(&mut *program, &data, &vec![random.below(1) as f64; rows], rows);
        program.usage().unwrap().steps
    });
    assert_eq!(steps, SCRIPT_GOLDEN);
    assert!(steps[2] < Limits::default().script_steps(100).0);
}

const SCRIPT_GOLDEN: [u64; 3] = [92, 551, 5141];
