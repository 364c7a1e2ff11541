//! Rules that mean harm, beside good ones, through the whole engine: the good ones do not notice.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::time::Duration;

use watchfire_engine::{Engine, Labels, Output, State, Time};

/// Seconds that pass.
const SECONDS: i64 = 900;

const GOOD: &str = "template: good
version: 1.0.0
rules:
  - alert: Hot
    module: threshold
    with: {metric: gpu_temperature_celsius, above: {warning: 85}, clear_below: {warning: 80}}
    for: 10s
  - alert: Idle
    when: \"gpu_utilization_ratio < 0.1\"
    severity: info
";

const DEEDS: [&str; 8] = [
    "loop-for-ever",
    "allocate-without-end",
    "million-hits",
    "row-out-of-range",
    "nan-state",
    "report",
    "panic-every-second",
    "two-hits-for-a-row",
];

/// A rule for each deed, in both languages.
fn bad(folder: &Path) -> String {
    let module = folder.join("naughty.wasm");
    std::fs::write(&module, test_rules::module("naughty").unwrap()).unwrap();
    let script = folder.join("naughty.rhai");
    std::fs::write(&script, include_str!("../sandbox/tests/naughty.rhai")).unwrap();
    let mut text = String::from("template: bad\nversion: 1.0.0\nrules:\n");
    for (language, file) in [("Wasm", &module), ("Rhai", &script)] {
        for deed in DEEDS {
            let name: String = deed.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
            text += &format!(
                "  - alert: {language}{name}\n    module: {}\n    with: {{do: {deed}}}\n    interval: 5s\n",
                file.display()
            );
        }
    }
    text
}

fn gpu(index: u32) -> Labels {
    Labels::new([("host", "h".to_owned()), ("gpu", index.to_string()), ("uuid", format!("GPU-{index}"))])
}

struct World {
    engine: Engine,
    /// What became of the good template's alerts.
    told: Vec<(i64, String, String, State)>,
    quarantined: Vec<String>,
}

fn run(texts: &[(&str, String)]) -> World {
    let builder = texts.iter().fold(Engine::builder(), |builder, (name, text)| builder.template_text(name, text));
    let mut world = World { engine: builder.build().unwrap(), told: Vec::new(), quarantined: Vec::new() };
    let metrics = ["gpu_temperature_celsius", "gpu_utilization_ratio", "gpu_up"];
    let series: Vec<_> = (0..4)
        .flat_map(|index| metrics.map(|metric| (metric, index)))
        .map(|(metric, index)| {
            (metric, index, world.engine.series(metric, gpu(index), Duration::from_secs(5)).unwrap())
        })
        .collect();
    for second in (0..SECONDS).step_by(5) {
        let now = Time::from_millis(second * 1000);
        let values: Vec<_> = series.iter().map(|(metric, index, id)| (*id, value(metric, *index, second))).collect();
        world.engine.push(now, &values);
        for output in world.engine.advance(now) {
            world.take(second, output);
        }
    }
    world
}

/// Each GPU is hot and idle at times of its own.
fn value(metric: &str, index: u32, second: i64) -> f64 {
    let phase = (second / 60 + i64::from(index)) % 4;
    match metric {
        "gpu_temperature_celsius" => {
            if phase == 0 {
                90.0
            } else {
                60.0
            }
        }
        "gpu_utilization_ratio" => {
            if phase == 2 {
                0.05
            } else {
                0.9
            }
        }
        _ => 1.0,
    }
}

impl World {
    fn take(&mut self, second: i64, output: Output) {
        match output {
            Output::Alert { alert, .. } if &*alert.view.template == "good" => {
                let gpu = alert.view.labels.get("gpu").unwrap_or("-").to_owned();
                self.told.push((second, alert.view.alert.to_string(), gpu, alert.view.state));
            }
            Output::Alert { alert, .. } if &*alert.view.alert == "WatchfireRuleQuarantined" => {
                self.quarantined.extend(alert.view.labels.get("rule").map(str::to_owned));
            }
            _ => {}
        }
    }

    fn ticks(&self, template: &str) -> Vec<(u64, u64)> {
        let rules = self.engine.status().rules;
        let rules = rules.iter().filter(|rule| rule.id.starts_with(template));
        rules.map(|rule| (rule.ticks_total, rule.ticks_missed_total)).collect()
    }
}

#[test]
fn good_rules_miss_no_tick_and_say_the_same_beside_hostile_ones() {
    let folder = tempfile::tempdir().unwrap();
    let good = ("good.yaml", GOOD.to_owned());
    let alone = run(std::slice::from_ref(&good));
    let together = run(&[("bad.yaml", bad(folder.path())), good]);
    assert!(alone.told.len() > 40, "{:?}", alone.told);
    assert_eq!(together.told, alone.told);
    assert_eq!(together.ticks("good/"), alone.ticks("good/"));
    assert!(together.ticks("good/").iter().all(|(ticks, missed)| *ticks >= 179 && *missed == 0));
    let status = together.engine.status();
    for rule in status.rules.iter().filter(|rule| rule.id.starts_with("bad/")) {
        let fails = rule.failures_total > 0;
        assert!(fails, "{} never failed", rule.id);
        let named = together.quarantined.contains(&rule.id);
        assert!(named, "{} was never told as quarantined", rule.id);
        assert!(rule.failures_total < 15, "{} was tried {} times in {SECONDS} s", rule.id, rule.failures_total);
    }
    let hits: u64 = status.rules.iter().flat_map(|rule| rule.limit_hits.values()).sum();
    assert!(hits > 20, "limits are counted: {hits}");
}

#[test]
fn all_rules_together_have_a_limit_of_memory() {
    let policy = watchfire_engine::sandbox::Policy { total_memory_bytes: 40 << 20, ..Default::default() };
    let rules: String = (0..3)
        .map(|n| {
            format!("  - alert: R{n}\n    module: threshold\n    with: {{metric: gpu_x, above: {{warning: 1}}}}\n")
        })
        .collect();
    let with = |limits: &str| {
        let text =
            format!("template: t\nversion: 1.0.0\nrules:\n{}", rules.replace("    with", &format!("{limits}    with")));
        Engine::builder()
            .policy(policy.clone())
            .template_text("t.yaml", &text)
            .build()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let refused = with("").unwrap_err();
    assert!(refused.contains("R2: with it the rules may use 50,331,648 of 41,943,040 bytes of memory"), "{refused}");
    assert!(!refused.contains("R1:"), "{refused}");
    assert_eq!(with("    limits: {memory_bytes: 8MiB}\n"), Ok(()), "a rule may lower its own");
    let raised = with("    limits: {memory_bytes: 17MiB}\n").unwrap_err();
    assert!(raised.contains("t.yaml:6:13: R0: limits.memory_bytes asks for 17MiB, and 16MiB is the most"), "{raised}");
    let unknown = with("    limits: {memory_byte: 1MiB}\n").unwrap_err();
    assert!(unknown.contains("did you mean `memory_bytes`?"), "{unknown}");
}
