//! What a rule costs in each runtime, what each guard costs, and what a whole step of the engine costs.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to say")]

use std::time::Duration;

use serde_json::json;
use watchfire_bench::medians;
use watchfire_core::{Batch, Outcome, Program, Severity, Time};
use watchfire_engine::{Engine, Labels, SeriesId};
use watchfire_sandbox::{ExpressionSpec, Guards, Limits, Native, Sandbox, SandboxConfig};

const GPUS: usize = 10_000;
const EVERY: Duration = Duration::from_secs(15);

/// The same limits as `threshold`, in Rhai.
const SCRIPT: &str = r#"
fn describe() { #{ name: "threshold", inputs: [#{ metric: "gpu_temperature_celsius" }] } }
fn evaluate(batch, out) {
    for (value, row) in batch.column(0) {
        if value != () && value > 85.0 { out.hit(row, "warning", "warning", value); }
    }
}
"#;

fn main() {
    println!(
        "threshold rule, 1 % of rows hit; nanoseconds per row, median of {} rounds in turns",
        watchfire_bench::ROUNDS
    );
    [8, 1_024, 100_000].into_iter().for_each(compare);
    guards();
    steps();
}

fn settings() -> serde_json::Value {
    json!({"metric": "gpu_temperature_celsius", "above": {"warning": 85, "critical": 90}, "clear_below": {"warning": 80}})
}

fn sandbox(guards: Guards) -> Sandbox {
    let limits =
        Limits { steps_per_row: 20_000, steps_max: u64::MAX, wall: Duration::from_secs(5), ..Limits::default() };
    Sandbox::new(SandboxConfig { limits, signal_handlers: true, guards, ..SandboxConfig::default() }).unwrap()
}

fn wasm(guards: Guards) -> Box<dyn Program> {
    let module = sandbox(guards).wasm("threshold", watchfire_rules::module("threshold").unwrap()).unwrap();
    module.start(&settings()).unwrap()
}

fn expression() -> Box<dyn Program> {
    let spec = ExpressionSpec {
        name: "threshold".into(),
        when: "gpu_temperature_celsius > 85".into(),
        until: None,
        value: None,
        severity: Severity::Warning,
        scope: None,
        parameters: Default::default(),
    };
    sandbox(Guards::default()).expression(spec).unwrap().start(&json!(null)).unwrap()
}

/// One call of a program on so many rows.
fn call(program: &mut dyn Program, columns: &[f64], quality: &[u8], out: &mut Outcome) {
    let (rows, now) = (columns.len(), Time::from_millis(0));
    let batch = Batch { tick: 0, now, interval: EVERY, rows, columns, quality, groups: &[], state: &[] };
    out.clear();
    program.evaluate(&batch, out).unwrap();
}

fn rows(n: usize) -> (Vec<f64>, Vec<u8>) {
    ((0..n).map(|row| if row % 100 == 7 { 91.0 } else { 60.0 }).collect(), vec![0; n])
}

fn compare(n: usize) {
    let (columns, quality) = rows(n);
    let mut native = Native::<rule_threshold::Threshold>::new(&settings()).unwrap();
    let mut wasm = wasm(Guards::default());
    let mut script =
        sandbox(Guards::default()).rhai("threshold", "threshold.rhai", SCRIPT).unwrap().start(&json!({})).unwrap();
    let mut when = expression();
    let mut outs: [Outcome; 4] = Default::default();
    let [a, b, c, d] = &mut outs;
    let times = medians([
        &mut || call(&mut native, &columns, &quality, a),
        &mut || call(&mut *wasm, &columns, &quality, b),
        &mut || call(&mut *script, &columns, &quality, c),
        &mut || call(&mut *when, &columns, &quality, d),
    ]);
    let [native, wasm, script, when] = times.map(|time| time / n as f64);
    println!(
        "  {n:>7} rows: native {native:7.2}  wasm {wasm:7.2} ({:.2} x native)  rhai {script:7.1}  when: {when:7.1}",
        wasm / native
    );
}

/// Each guard's share: everything on, against everything but that guard.
fn guards() {
    let (columns, quality) = rows(1_024);
    let all = Guards::default();
    let mut programs = [
        all,
        Guards { fuel: false, ..all },
        Guards { fuse: false, ..all },
        Guards { canonical_nans: false, ..all },
        Guards { fuel: false, fuse: false, canonical_nans: false },
    ]
    .map(wasm);
    let mut outs: [Outcome; 5] = Default::default();
    let [p0, p1, p2, p3, p4] = &mut programs;
    let [o0, o1, o2, o3, o4] = &mut outs;
    let [on, fuel, fuse, nans, off] = medians([
        &mut || call(&mut **p0, &columns, &quality, o0),
        &mut || call(&mut **p1, &columns, &quality, o1),
        &mut || call(&mut **p2, &columns, &quality, o2),
        &mut || call(&mut **p3, &columns, &quality, o3),
        &mut || call(&mut **p4, &columns, &quality, o4),
    ]);
    let share = |without: f64| 100.0 * (on - without) / on;
    println!(
        "guards at 1,024 rows: fuel {:.0} %, fuse {:.0} %, canonical NaN {:.0} %, all three {:.0} % of a call",
        share(fuel),
        share(fuse),
        share(nans),
        share(off)
    );
}

const METRICS: [&str; 8] = [
    "gpu_temperature_celsius",
    "gpu_power_watts",
    "gpu_utilization_ratio",
    "gpu_memory_busy_ratio",
    "gpu_memory_used_ratio",
    "gpu_sm_clock_hertz",
    "gpu_ecc_uncorrected_total",
    "gpu_xid_last_code",
];

/// Ten alerts as the peers were given: six on last values, four over 1 or 5 minutes.
fn template(expressions: bool) -> String {
    let last = [
        "gpu_temperature_celsius",
        "gpu_power_watts",
        "gpu_utilization_ratio",
        "gpu_memory_busy_ratio",
        "gpu_memory_used_ratio",
        "gpu_xid_last_code",
    ];
    let windows = [
        ("min", "gpu_temperature_celsius", "5m"),
        ("increase", "gpu_ecc_uncorrected_total", "5m"),
        ("mean", "gpu_sm_clock_hertz", "1m"),
        ("max", "gpu_utilization_ratio", "5m"),
    ];
    let mut text = "template: ten\nversion: 1.0.0\ninterval: 15s\nrules:\n".to_owned();
    for (at, metric) in last.iter().enumerate() {
        text += &match expressions {
            true => format!("  - {{alert: L{at}, when: \"{metric} > 1e12\", severity: warning, for: 5m}}\n"),
            false => format!(
                "  - {{alert: L{at}, module: threshold, with: {{metric: {metric}, above: {{warning: 1e12}}}}, for: 5m}}\n"
            ),
        };
    }
    for (at, (aggregate, metric, window)) in windows.iter().enumerate() {
        text += &match expressions {
            true => format!(
                "  - {{alert: W{at}, when: \"{aggregate}({metric}, \\\"{window}\\\") > 1e12\", severity: warning}}\n"
            ),
            false => format!(
                "  - {{alert: W{at}, module: threshold, with: {{metric: {metric}, aggregate: {aggregate}, window: {window}, above: {{warning: 1e12}}}}}}\n"
            ),
        };
    }
    text
}

struct Fleet {
    engine: Engine,
    series: Vec<SeriesId>,
    values: Vec<(SeriesId, f64)>,
    now: Time,
}

impl Fleet {
    fn new(template: &str) -> Self {
        let mut engine = Engine::builder().template_text("ten.yaml", template).signal_handlers(true).build().unwrap();
        let mut series = Vec::new();
        for gpu in 0..GPUS {
            let labels = Labels::new([
                ("host", format!("h{}", gpu / 8)),
                ("gpu", (gpu % 8).to_string()),
                ("uuid", format!("GPU-{gpu}")),
            ]);
            series.extend(METRICS.iter().map(|metric| engine.series(metric, labels.clone(), EVERY).unwrap()));
        }
        let mut fleet = Fleet { engine, series, values: Vec::new(), now: Time::from_millis(0) };
        // Twenty steps fill the five-minute windows.
        (0..21).for_each(|_| fleet.step());
        fleet
    }

    fn step(&mut self) {
        self.now = self.now + EVERY;
        let moment = (self.now.as_millis() / 1000) as f64;
        self.values.clear();
        self.values.extend(self.series.iter().enumerate().map(|(at, series)| (*series, moment + (at % 97) as f64)));
        self.engine.push(self.now, &self.values);
        self.engine.advance(self.now);
    }
}

fn steps() {
    let per = (GPUS * 10) as f64;
    let (mut modules, mut expressions) = (Fleet::new(&template(false)), Fleet::new(&template(true)));
    let [a, b] = medians([&mut || modules.step(), &mut || expressions.step()]);
    println!("one whole step, {GPUS} GPUs x 8 metrics taken in, 10 rules judged, at 15 s:");
    println!("  module: threshold   {:7.2} ms = {:.3} us per rule and GPU", a / 1e6, a / 1e3 / per);
    println!("  when: expressions   {:7.2} ms = {:.3} us per rule and GPU", b / 1e6, b / 1e3 / per);
    let status = modules.engine.status();
    let rules: usize = status.rules.iter().map(|rule| rule.bytes).sum();
    println!(
        "  kept: {:.0} bytes per GPU and rule, series and windows included ({:.0} by rules alone)",
        status.bytes as f64 / per,
        rules as f64 / per
    );
}
