//! Any text as a script: loaded, started and called. Run by `cargo +nightly fuzz run script`.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use watchfire_core::{Batch, Outcome, Time};
use watchfire_sandbox::{Limits, Sandbox, SandboxConfig};

static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let limits = Limits { script_steps_base: 20_000, steps_init: 100_000, ..Limits::default() };
    Sandbox::new(SandboxConfig { limits, ..SandboxConfig::default() }).expect("a sandbox")
});

fuzz_target!(|text: &str| {
    let Ok(mut program) =
        SANDBOX.rhai("fuzz", "fuzz.rhai", text).and_then(|module| module.start(&serde_json::Value::Null))
    else {
        return;
    };
    let slots = program.descriptor().state_slots as usize;
    let inputs = program.descriptor().inputs.len();
    let (columns, quality, state) = (vec![1.0; 3 * inputs], vec![0; 3 * inputs], vec![0.0; 3 * slots]);
    let batch = Batch {
        tick: 0,
        now: Time::from_millis(60_000),
        interval: Duration::from_secs(15),
        rows: 3,
        columns: &columns,
        quality: &quality,
        groups: &[],
        state: &state,
    };
    let _ = program.evaluate(&batch, &mut Outcome::default());
    let _ = program.explain(0);
});
