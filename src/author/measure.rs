//! What a call of a module costs.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use watchfire_engine::sandbox::{Limits, Module, Sandbox, SandboxConfig};
use watchfire_engine::{Batch, Outcome, Program, Time};

/// How long one measurement runs at least.
const ROUND_MIN: Duration = Duration::from_millis(20);
/// How often each is taken; the median counts.
const ROUNDS: usize = 7;

/// The cost of one call with so many rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Rows of the batch.
    pub rows: usize,
    /// Steps that it took: fuel, or Rhai's operations.
    pub steps: u64,
    /// Steps that it may take.
    pub steps_budget: u64,
    /// Nanoseconds for each row, on this machine at this moment.
    pub ns_per_row: f64,
    /// Linear memory of the module, bytes; 0 for a script.
    pub memory_bytes: u64,
    /// Bytes of the answer.
    pub output_bytes: u64,
    /// Bytes that the answer may have.
    pub output_budget: u64,
}

/// Measures a module with each number of rows.
///
/// # Errors
/// Where it cannot be loaded, or fails.
pub fn measure(
    file: &Path,
    bytes: &[u8],
    settings: &serde_json::Value,
    rows: &[usize],
) -> Result<Vec<Measured>, String> {
    let sandbox = Sandbox::new(SandboxConfig::default()).map_err(|error| error.to_string())?;
    let module = load(&sandbox, file, bytes)?;
    module.validate(settings).map_err(|problems| {
        problems.iter().map(|one| format!("--with: {}: {}", one.path, one.message)).collect::<Vec<_>>().join("\n")
    })?;
    rows.iter().map(|rows| one(&module, settings, (*rows).max(1))).collect()
}

/// A module of a file by its ending.
///
/// # Errors
/// Why it cannot be loaded.
pub fn load(sandbox: &Sandbox, file: &Path, bytes: &[u8]) -> Result<Module, String> {
    let name = file.display().to_string();
    if file.extension().is_some_and(|ending| ending == "rhai") {
        let text = std::str::from_utf8(bytes).map_err(|_| format!("{name} is no UTF-8 text"))?;
        return sandbox.rhai(&name, &name, text).map_err(|error| error.to_string());
    }
    sandbox.wasm(&name, bytes).map_err(|error| error.to_string())
}

fn one(module: &Module, settings: &serde_json::Value, rows: usize) -> Result<Measured, String> {
    let mut program = module.start(settings).map_err(|error| error.to_string())?;
    let descriptor = program.descriptor();
    let (inputs, slots) = (descriptor.inputs.len(), descriptor.state_slots as usize);
    let grouped = descriptor.group_by.is_some();
    let cells = Cells {
        // Half of the rows at 10, half at 100: a rule has something to say of some.
        columns: (0..inputs * rows).map(|cell| if cell % 2 == 0 { 10.0 } else { 100.0 }).collect(),
        quality: vec![0; inputs * rows],
        groups: if grouped { (0..rows).map(|row| u32::try_from(row / 8).unwrap_or(0)).collect() } else { Vec::new() },
        state: vec![0.0; slots * rows],
        rows,
    };
    let mut out = Outcome::default();
    cells.call(&mut *program, &mut out)?;
    let usage = program.usage().ok_or("this kind of module counts nothing")?;
    let ns = median(|| cells.call(&mut *program, &mut out))?;
    let limits = Limits::default();
    Ok(Measured {
        rows,
        steps: usage.steps,
        steps_budget: usage.steps_budget,
        ns_per_row: ns / rows as f64,
        memory_bytes: usage.memory_bytes.unwrap_or(0),
        output_bytes: usage.output_bytes,
        output_budget: limits.output_bytes(rows) as u64,
    })
}

struct Cells {
    columns: Vec<f64>,
    quality: Vec<u8>,
    groups: Vec<u32>,
    state: Vec<f64>,
    rows: usize,
}

impl Cells {
    fn call(&self, program: &mut dyn Program, out: &mut Outcome) -> Result<(), String> {
        let batch = Batch {
            tick: 0,
            now: Time::EPOCH,
            interval: Duration::from_secs(5),
            rows: self.rows,
            columns: &self.columns,
            quality: &self.quality,
            groups: &self.groups,
            state: &self.state,
        };
        out.clear();
        program.evaluate(&batch, out).map_err(|failure| format!("with {} rows: the rule {failure}", self.rows))
    }
}

/// The median time of a call, nanoseconds.
fn median(mut call: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (started, mut calls) = (Instant::now(), 0u32);
        while calls == 0 || started.elapsed() < ROUND_MIN {
            call()?;
            calls += 1;
        }
        times.push(started.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}
