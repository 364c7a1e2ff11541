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
        Rig::of(Engine::builder().sources(sources.to_vec()).build().unwrap())
    }

    fn of(mut engine: Engine) -> Self {
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
    let prepared = touched.engine.reader().read(&sources, &[], &BTreeMap::new()).unwrap();
    let read = started.elapsed();
    let done = touched.engine.swap(touched.now, prepared).unwrap();
    println!("of 1,000 rules: {read:?} to read on any thread, {:?} on the engine's", started.elapsed() - read);
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

/// A script of so many slots that counts, with a migration or without.
fn counter(version: u32, slots: u32, migrate: &str) -> String {
    format!(
        "fn describe() {{ #{{ name: \"count\", version: \"1.0.0\", scope: \"gpu\", state_slots: {slots}, state_version: {version},\n\
         inputs: [#{{ metric: \"gpu_power_watts\" }}] }} }}\n\
         fn evaluate(batch, out) {{ for (value, row) in batch.column(0) {{ let n = batch.state(0, row) + 1.0;\n\
         out.set_state(batch, 0, row, n); out.hit(row, \"info\", \"info\", n); }} }}\n{migrate}\n"
    )
}

/// Runs a counter for five ticks, puts another in its place and runs it once; what the first GPU counts then, and what
/// the rule says of its state.
fn upgrade(script: &str, by_restart: bool) -> (f64, String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.rhai"), counter(1, 1, "")).unwrap();
    let template = "template: t\nversion: 1.0.0\ninterval: 5s\nrules: [{alert: X, module: ./x.rhai}]\n";
    std::fs::write(folder.path().join("t.yaml"), template).unwrap();
    let sources = [TemplateSource::File(folder.path().join("t.yaml"))];
    let storage = folder.path().join("watchfire.db");
    let build = || Engine::builder().sources(sources.to_vec()).storage(&storage).build().unwrap();
    let mut rig = Rig::of(build());
    rig.run(5);
    std::fs::write(folder.path().join("x.rhai"), script).unwrap();
    if by_restart {
        rig.engine.close(rig.now);
        let now = rig.now;
        drop(rig);
        rig = Rig::of(build());
        rig.now = now;
    } else {
        rig.engine.reload(rig.now, &sources, &BTreeMap::new()).unwrap();
    }
    let values: Vec<(SeriesId, f64)> = rig.series.iter().map(|ids| (ids[1], 300.0)).collect();
    rig.engine.push(rig.now, &values);
    let outputs = rig.engine.advance(rig.now);
    let said = outputs.iter().filter_map(|output| match output {
        Output::StateMigrated { rule, migration } => Some(format!("{rule} {migration}")),
        _ => None,
    });
    let state = rig.engine.status().rules[0].state.clone().unwrap_or_default();
    (rig.engine.alerts()[0].view.value, state, said.collect())
}

#[test]
fn another_state_version_is_carried_over_by_the_rule_or_starts_clean_and_says_so() {
    let moves = "fn migrate_state(version, slots) { [slots[0] * 100.0, 2.0] }";
    let fails = "fn migrate_state(version, slots) { throw \"cannot\" }";
    let short = "fn migrate_state(version, slots) { [1.0] }";
    for by_restart in [false, true] {
        let (value, state, said) = upgrade(&counter(2, 2, moves), by_restart);
        assert_eq!(value, 501.0, "by restart: {by_restart}");
        assert_eq!(state, "carried its state of 4 targets over from state version 1 to 2");
        assert_eq!(said, [format!("t/X {state}")], "told once");
        for (script, why) in
            [("", "has no `migrate-state`"), (fails, "cannot"), (short, "must give an array of 2 numbers")]
        {
            let (value, state, said) = upgrade(&counter(2, 2, script), by_restart);
            assert_eq!(value, 1.0, "by restart: {by_restart}: {state}");
            assert!(state.starts_with("starts clean") && state.contains(why), "{state}");
            assert_eq!(said.len(), 1);
        }
        let (value, state, _) = upgrade(&format!("// a remark\n{}", counter(1, 1, "")), by_restart);
        assert_eq!((value, &*state), (6.0, ""), "the same version goes on");
    }
}

#[test]
fn what_was_read_before_another_reload_is_refused() {
    let source = |limit: u32| {
        let rule = format!("{{alert: Hot, when: \"gpu_temperature_celsius > {limit}\", severity: warning}}");
        [TemplateSource::Text("t.yaml".into(), format!("template: t\nversion: 1.0.0\nrules: [{rule}]\n"))]
    };
    let mut rig = Rig::new(&source(60));
    let reader = rig.engine.reader();
    rig.engine.reload(rig.now, &source(70), &BTreeMap::new()).unwrap();
    let prepared = std::thread::spawn(move || reader.read(&source(60), &[], &BTreeMap::new()).unwrap()).join().unwrap();
    let refused = rig.engine.swap(rig.now, prepared).unwrap_err().to_string();
    assert_eq!(refused, "other templates were loaded meanwhile; reload again");
}
