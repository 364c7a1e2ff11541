//! What the example rule costs in each language; `cargo xtask bench languages` builds them first.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to say")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use watchfire_core::{Batch, Outcome, Program, Time};
use watchfire_sandbox::{Module, Sandbox, SandboxConfig};

const LANGUAGES: [&str; 6] = ["rhai", "rust", "c", "go", "js", "python"];
const ROWS: usize = 1_024;
/// Calls in a row: garbage is collected in some of them.
const CALLS: usize = 200;
/// How often a module is started.
const STARTS: usize = 20;

fn main() {
    println!("the example rule, {ROWS} rows, half of them hit; times are medians");
    println!("| language | module | compile | start | ns a row | steps a row | most steps in a call | memory |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    LANGUAGES.iter().for_each(|language| line(language));
}

fn line(language: &str) {
    let ending = if language == "rhai" { "rhai" } else { "wasm" };
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../target/tools/languages/{language}/mostly/mostly.{ending}"));
    let Ok(bytes) = std::fs::read(&file) else {
        return println!("| {language} | not built: its tools are not there |");
    };
    let started = Instant::now();
    let module = load(language, &bytes);
    let compile = started.elapsed();
    let start = median((0..STARTS).map(|_| timed(|| drop(module.start(&json!({})).unwrap()))).collect());
    let mut program = module.start(&json!({})).unwrap();
    let (call, steps, most, memory) = calls(&mut *program);
    println!(
        "| {language} | {} | {} | {} | {:.0} | {} | {most} | {} |",
        size(bytes.len() as u64),
        time(compile),
        time(start),
        call.as_nanos() as f64 / ROWS as f64,
        steps / ROWS as u64,
        if memory == 0 { "-".to_owned() } else { size(memory) },
    );
}

/// Without a cache: what is compiled is compiled.
fn load(language: &str, bytes: &[u8]) -> Module {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    match language {
        "rhai" => sandbox.rhai("mostly", "mostly.rhai", std::str::from_utf8(bytes).unwrap()).unwrap(),
        _ => sandbox.wasm("mostly", bytes).unwrap(),
    }
}

/// The median time and steps of a call, the most steps of one, and the memory.
fn calls(program: &mut dyn Program) -> (Duration, u64, u64, u64) {
    let columns: Vec<f64> = (0..ROWS).map(|row| if row % 2 == 0 { 60.0 } else { 95.0 }).collect();
    let (quality, mut state) = (vec![0; ROWS], vec![0.0; ROWS]);
    let (mut times, mut steps, mut memory) = (Vec::new(), Vec::new(), 0);
    for tick in 0..CALLS {
        let batch = Batch {
            tick: tick as u64,
            now: Time::EPOCH,
            interval: Duration::from_secs(5),
            rows: ROWS,
            columns: &columns,
            quality: &quality,
            groups: &[],
            state: &state,
        };
        let mut out = Outcome::default();
        times.push(timed(|| program.evaluate(&batch, &mut out).unwrap()));
        let usage = program.usage().unwrap();
        steps.push(usage.steps);
        memory = memory.max(usage.memory_bytes.unwrap_or(0));
        state = out.state;
    }
    let most = steps.iter().copied().max().unwrap_or(0);
    (median(times), median(steps), most, memory)
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort();
    all[all.len() / 2]
}

fn time(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.0} µs", seconds * 1e6),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{:.0} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
