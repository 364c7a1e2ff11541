//! `when:` rules from outside.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use watchfire_core::window::PromQl;
use watchfire_core::{Aggregate, Batch, Labels, Outcome, Program, Reads, Scope, Severity, Time};
use watchfire_sandbox::{ExpressionSpec, Sandbox, SandboxConfig};

fn load(when: &str, until: Option<&str>, scope: Option<Scope>) -> Result<Box<dyn Program>, String> {
    load_showing(when, until, scope, None)
}

fn load_showing(
    when: &str,
    until: Option<&str>,
    scope: Option<Scope>,
    value: Option<&str>,
) -> Result<Box<dyn Program>, String> {
    let spec = ExpressionSpec {
        name: "test".into(),
        when: when.into(),
        until: until.map(str::to_owned),
        value: value.map(str::to_owned),
        severity: Severity::Warning,
        scope,
        parameters: BTreeMap::from([("low".to_owned(), 0.3)]),
    };
    let module = Sandbox::new(SandboxConfig::default()).unwrap().expression(spec).map_err(|error| error.to_string())?;
    module.start(&serde_json::Value::Null).map_err(|error| error.to_string())
}

fn judge(program: &mut dyn Program, columns: &[f64], quality: &[u8], rows: usize) -> Vec<(u32, bool, bool, f64)> {
    let (now, interval) = (Time::EPOCH, Duration::from_secs(5));
    let batch = Batch { tick: 0, now, interval, rows, columns, quality, groups: &[], state: &[] };
    let mut out = Outcome::default();
    program.evaluate(&batch, &mut out).unwrap();
    out.hits.iter().map(|hit| (hit.row, hit.raise.is_some(), hit.hold.is_some(), hit.value)).collect()
}

#[test]
fn raises_while_when_holds_and_holds_until_until() {
    let when = "gpu_memory_used_ratio < $low && gpu_compute_processes > 0";
    let until = "gpu_memory_used_ratio > 0.4 || gpu_compute_processes == 0";
    let mut program = load(when, Some(until), None).unwrap();
    let columns = [0.1, 0.35, 0.5, 0.1, 0.1, /* processes */ 1.0, 2.0, 1.0, 0.0, 1.0];
    let quality = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(
        judge(&mut *program, &columns, &quality, 5),
        [(0, true, true, 0.1), (1, false, true, 0.35)],
        "the fifth row's processes are missing: nothing is said of it"
    );
    assert_eq!(program.explain(0).unwrap().unwrap(), "gpu_memory_used_ratio is 0.1, gpu_compute_processes is 1");
}

#[test]
fn window_functions_become_inputs() {
    let program =
        load("rate(gpu_ecc_corrected_total, \"10m\") > 0.1 && quantile(gpu_power_watts, 0.9, \"5m\") > 1", None, None)
            .unwrap();
    let inputs = &program.descriptor().inputs;
    let aggregates: Vec<Aggregate> = inputs
        .iter()
        .map(|input| match input.reads {
            Reads::Metric { aggregate, .. } => aggregate,
            Reads::Event { .. } => Aggregate::Last,
        })
        .collect();
    assert_eq!(aggregates, [Aggregate::Rate, Aggregate::Quantile(0.9)]);
    assert_eq!(inputs[0].window, Duration::from_secs(600));
}

#[test]
fn the_row_is_the_narrowest_thing_named() {
    assert_eq!(load("host_load1 > 1 && gpu_up < 1", None, None).unwrap().descriptor().scope, Scope::Gpu);
    assert_eq!(load("host_load1 > 1", None, None).unwrap().descriptor().scope, Scope::Host);
    assert_eq!(load("nvml_up < 1", None, Some(Scope::Host)).unwrap().descriptor().scope, Scope::Host);
}

#[test]
fn what_is_wrong_is_said_before_it_ships() {
    let cases = [
        ("gpu_up <", "Script is incomplete"),
        ("gpu_up + 1", "Output type incorrect"),
        ("1 < 2", "reads no metric"),
        ("queue_length > 2", "tells no scope"),
        ("gpu_up < $lwo", "there is no parameter `$lwo`"),
        ("mean(gpu_up, \"5 minutes\") < 1", "is no window"),
        ("sleep(gpu_up)", "sleep"),
        ("gpu_up < 1 && { loop {} }", ""),
    ];
    for (when, expected) in cases {
        let error = load(when, None, None).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{when}: {error}");
    }
}

#[test]
fn what_is_asked_for_with_has_may_be_missing() {
    let when = "has(a_bytes) && a_bytes > 5.0 || has(b_bytes) && b_bytes > 3.0";
    let value = "either(has(a_bytes) && a_bytes > 5.0, a_bytes, b_bytes * 100.0)";
    let mut program = load_showing(when, None, Some(Scope::Device), Some(value)).unwrap();
    let columns = [9.0, 0.0, 1.0, 0.0, /* b */ 0.0, 4.0, 4.0, 0.0];
    let quality = [0, 1, 0, 1, 1, 0, 0, 1];
    let hits = [(0, true, true, 9.0), (1, true, true, 400.0), (2, true, true, 400.0)];
    assert_eq!(judge(&mut *program, &columns, &quality, 4), hits);
    assert!(program.descriptor().inputs.iter().all(|input| !input.required));
    assert_eq!(program.explain(0).unwrap().unwrap(), "a_bytes is 9, b_bytes is missing");
}

#[test]
fn labels_choose_series() {
    let program = load("avail_bytes{fstype!~\"tmpfs|ramfs\"} < now() * 2.0", None, Some(Scope::Device)).unwrap();
    let input = &program.descriptor().inputs[0];
    assert!(input.admits(&Labels::new([("fstype", "ext4")])) && !input.admits(&Labels::new([("fstype", "tmpfs")])));
}

#[test]
fn a_rule_over_devices_tells_gpus_apart_by_all_labels() {
    let program = load("gpu_power_watts > 5.0", None, Some(Scope::Device)).unwrap();
    assert_eq!(program.descriptor().inputs[0].scope, Scope::Device);
}

#[test]
fn functions_of_prometheus_are_inputs() {
    let program = load("promql_predict_linear(gpu_power_watts, 3600, \"6h\") < 0.0", None, None).unwrap();
    let Reads::Metric { aggregate, .. } = &program.descriptor().inputs[0].reads else { unreachable!() };
    assert_eq!(*aggregate, Aggregate::PromQl(PromQl::PredictLinear(3600.0)));
    let error = load("promql_fly(gpu_power_watts, \"6h\") < 0.0", None, None).err().unwrap();
    assert!(error.contains("there is no `promql_fly` that Prometheus has over a range"), "{error}");
}
