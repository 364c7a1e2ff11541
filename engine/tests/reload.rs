//! A reload touches only what has changed.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use watchfire_engine::{Alert, Engine, Labels, Output, Reloaded, SeriesId, TemplateSource, Time};

const SCRIPT: &str = r#"
fn describe() { #{ name: "count", version: "1.0.0", scope: "gpu", state_slots: 1, state_version: 1,
    inputs: [#{ metric: "gpu_power_watts" }] } }
fn evaluate(batch, out) {
    for (value, row) in batch.column(0) {
        if value == () { continue; }
        let n = batch.state(0, row) + 1.0;
        out.set_state(batch, 0, row, n);
        if n > 20.0 { out.hit(row, "info", "info", n); }
    }
}"#;

/// Ten templates of a hundred rules each, of three kinds.
fn templates(folder: &std::path::Path) -> Vec<TemplateSource> {
    std::fs::write(folder.join("count.rhai"), SCRIPT).unwrap();
    let rule = |n: usize| match n % 3 {
        0 => format!(
            "  - {{alert: R{n}, when: \"mean(gpu_temperature_celsius, \\\"60s\\\") > {}\", severity: warning, for: 2m}}\n",
            60 + n % 30
        ),
        1 => format!(
            "  - {{alert: R{n}, module: threshold, with: {{metric: gpu_temperature_celsius, above: {{warning: {}}}}}}}\n",
            60 + n % 30
        ),
        _ => format!("  - {{alert: R{n}, module: ./count.rhai}}\n"),
    };
    (0..10)
        .map(|t| {
            let rules: String = (t * 100..(t + 1) * 100).map(rule).collect();
            let file = folder.join(format!("t{t}.yaml"));
            std::fs::write(&file, format!("template: t{t}\nversion: 1.0.0\ninterval: 5s\nrules:\n{rules}")).unwrap();
            TemplateSource::File(file)
        })
        .collect()
}

struct Rig {
    engine: Engine,
    series: Vec<[SeriesId; 2]>,
    now: Time,
}

impl Rig {
    fn new(sources: &[TemplateSource]) -> Self {
        let mut engine = Engine::builder().sources(sources.to_vec()).build().unwrap();
        let mut one = |gpu: usize| {
            let labels = Labels::new([("host", "h1".to_owned()), ("uuid", format!("GPU-{gpu}"))]);
            ["gpu_temperature_celsius", "gpu_power_watts"]
                .map(|metric| engine.series(metric, labels.clone(), Duration::from_secs(5)).unwrap())
        };
        let series = (0..4).map(&mut one).collect();
        Rig { engine, series, now: Time::from_millis(1_700_000_000_000) }
    }

    /// Runs so many ticks; what happened in them.
    fn run(&mut self, ticks: usize) -> Vec<String> {
        let mut told = Vec::new();
        for _ in 0..ticks {
            let values: Vec<(SeriesId, f64)> = self
                .series
                .iter()
                .zip(0..)
                .flat_map(|(ids, gpu)| [(ids[0], 62.0 + f64::from(gpu) * 9.0), (ids[1], 300.0)])
                .collect();
            self.engine.push(self.now, &values);
            told.extend(self.engine.advance(self.now).iter().filter_map(transition));
            self.now = self.now + Duration::from_secs(5);
        }
        told
    }
}

fn transition(output: &Output) -> Option<String> {
    let Output::Alert { time, alert, .. } = output else { return None };
    let view = &alert.view;
    Some(format!(
        "{time:?} {} {:?} {} {} {}",
        view.alert,
        view.labels.get("uuid"),
        view.state,
        view.severity,
        view.value
    ))
}

fn picture(alerts: &[Alert]) -> Vec<String> {
    let mut lines: Vec<String> = alerts
        .iter()
        .map(|one| {
            format!(
                "{} {:?} {} {:?} {:?}",
                one.view.alert, one.view.labels, one.view.state, one.view.active_at, one.view.starts_at
            )
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn of_a_thousand_rules_only_the_one_that_changed_is_built_and_nothing_else_moves() {
    let folder = tempfile::tempdir().unwrap();
    let sources = templates(folder.path());
    let (mut touched, mut left_alone) = (Rig::new(&sources), Rig::new(&sources));
    for rig in [&mut touched, &mut left_alone] {
        rig.run(15);
    }
    let before = picture(&touched.engine.alerts());
    assert!(before.iter().any(|line| line.contains("pending")) && before.iter().any(|line| line.contains("firing")));

    let file = folder.path().join("t3.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let changed = text.replace(
        "{alert: R301, module: threshold, with: {metric: gpu_temperature_celsius, above: {warning: 61}}}",
        "{alert: R301, module: threshold, with: {metric: gpu_temperature_celsius, above: {warning: 109}}}",
    );
    assert_ne!(text, changed);
    std::fs::write(&file, changed).unwrap();
    let started = std::time::Instant::now();
    let done = touched.engine.reload(touched.now, &sources, &BTreeMap::new()).unwrap();
    println!("the reload of 1,000 rules took {:?}", started.elapsed());
    assert_eq!(done, Reloaded { kept: 999, rebuilt: 1, added: 0, removed: 0 });
    assert_eq!(picture(&touched.engine.alerts()), before, "no alert changes by the reload itself");

    let of_others =
        |told: Vec<String>| -> Vec<String> { told.into_iter().filter(|line| !line.contains(" R301 ")).collect() };
    assert_eq!(of_others(touched.run(40)), of_others(left_alone.run(40)), "windows, state and pending alerts go on");
    let status = touched.engine.status();
    let missed: u64 = status.rules.iter().map(|rule| rule.ticks_missed_total).sum();
    let others = |engine: &Engine| engine.status().rules.into_iter().filter(|rule| !rule.id.ends_with("/R301"));
    let ticks = |engine: &Engine| others(engine).map(|rule| rule.ticks_total).sum::<u64>();
    assert_eq!((missed, ticks(&touched.engine)), (0, ticks(&left_alone.engine)));
}

#[test]
fn what_is_unchanged_in_content_is_unchanged_and_what_is_gone_ends_in_its_own_words() {
    let rule = |text: &str| format!("template: t\nversion: 1.0.0\ninterval: 5s\nrules:\n{text}");
    let hot = "  - {alert: Hot, when: \"gpu_temperature_celsius > 60\", severity: warning, annotations: {summary: 'hot {{ labels.uuid }}'}}\n";
    let busy = "  - {alert: Busy, when: \"gpu_power_watts > 100\", severity: warning}\n";
    let source = |text: String| [TemplateSource::Text("t.yaml".into(), text)];
    let mut rig = Rig::new(&source(rule(&format!("{hot}{busy}"))));
    rig.run(3);
    let moved = source(rule(&format!("  # a remark\n{busy}{hot}")));
    let done = rig.engine.reload(rig.now, &moved, &BTreeMap::new()).unwrap();
    assert_eq!(done, Reloaded { kept: 2, ..Reloaded::default() });
    let done = rig.engine.reload(rig.now, &source(rule(busy)), &BTreeMap::new()).unwrap();
    assert_eq!(done, Reloaded { kept: 1, removed: 1, ..Reloaded::default() });
    let ended: Vec<String> = rig
        .engine
        .advance(rig.now)
        .iter()
        .filter_map(|output| match output {
            Output::Alert { alert, .. } => Some(format!("{} {}", alert.view.state, alert.summary())),
            _ => None,
        })
        .collect();
    assert_eq!(ended, ["resolved hot GPU-0", "resolved hot GPU-1", "resolved hot GPU-2", "resolved hot GPU-3"]);
}

#[test]
fn a_rule_that_is_mended_leaves_its_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let script = |body: &str| {
        format!(
            "fn describe() {{ #{{ name: \"x\", version: \"1.0.0\", scope: \"gpu\", inputs: [#{{ metric: \"gpu_power_watts\" }}] }} }}\nfn evaluate(batch, out) {{ {body} }}"
        )
    };
    std::fs::write(folder.path().join("x.rhai"), script("throw \"no\";")).unwrap();
    std::fs::write(
        folder.path().join("t.yaml"),
        "template: t\nversion: 1.0.0\ninterval: 5s\nrules: [{alert: X, module: ./x.rhai}]\n",
    )
    .unwrap();
    let sources = [TemplateSource::File(folder.path().join("t.yaml"))];
    let mut rig = Rig::new(&sources);
    rig.run(20);
    let quarantined =
        |rig: &Rig| rig.engine.alerts().iter().any(|alert| &*alert.view.alert == "WatchfireRuleQuarantined");
    assert!(quarantined(&rig));
    std::fs::write(folder.path().join("x.rhai"), script("")).unwrap();
    rig.engine.reload(rig.now, &sources, &BTreeMap::new()).unwrap();
    rig.run(1);
    assert!(!quarantined(&rig));
    assert!(!rig.engine.status().rules[0].quarantined);
}
