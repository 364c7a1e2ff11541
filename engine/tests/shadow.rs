//! New versions of templates in shadow of those that watch.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::time::Duration;

use watchfire_engine::{Engine, Labels, Output, SeriesId, ShadowRule, ShadowStatus, TemplateSource, Time};

fn template(version: &str, rules: &str) -> TemplateSource {
    let text = format!("template: heat\nversion: {version}\ninterval: 5s\nrules:\n{rules}");
    TemplateSource::Text(format!("heat-{version}.yaml"), text)
}

fn hot(limit: u32, severity: &str, after: &str) -> String {
    format!("  - {{alert: Hot, when: \"gpu_temperature_celsius > {limit}\", severity: {severity}, for: {after}}}\n")
}

struct Rig {
    engine: Engine,
    series: Vec<SeriesId>,
    now: Time,
}

impl Rig {
    fn new(watch: &TemplateSource, shadow: &[TemplateSource]) -> Self {
        let builder = Engine::builder().sources([watch.clone()]).shadow(shadow.to_vec());
        let mut engine = builder.build().unwrap();
        let mut one = |gpu: usize| {
            let labels = Labels::new([("host", "h1".to_owned()), ("uuid", format!("GPU-{gpu}"))]);
            engine.series("gpu_temperature_celsius", labels, Duration::from_secs(5)).unwrap()
        };
        let series = (0..2).map(&mut one).collect();
        Rig { engine, series, now: Time::from_millis(1_700_000_000_000) }
    }

    /// Runs so many ticks at these temperatures; the alerts that were told, and how many messages.
    fn run(&mut self, ticks: usize, heat: [f64; 2]) -> (Vec<String>, usize) {
        let (mut told, mut messages) = (Vec::new(), 0);
        for _ in 0..ticks {
            let values: Vec<(SeriesId, f64)> = self.series.iter().copied().zip(heat).collect();
            self.engine.push(self.now, &values);
            for output in self.engine.advance(self.now) {
                match output {
                    Output::Alert { alert, .. } => {
                        let uuid = alert.view.labels.get("uuid").unwrap_or("-").to_owned();
                        told.push(format!("{} {uuid} {} {}", alert.view.alert, alert.view.state, alert.view.severity));
                    }
                    Output::Message(_) => messages += 1,
                    _ => {}
                }
            }
            self.now = self.now + Duration::from_secs(5);
        }
        (told, messages)
    }

    fn shadow(&self) -> ShadowStatus {
        self.engine.status().shadow.unwrap()
    }
}

fn counts(rule: &ShadowRule) -> (&str, [u64; 3], f64) {
    let totals = [rule.only_old_total, rule.only_new_total, rule.severity_differs_total];
    (&rule.id, totals, rule.seconds_differing)
}

#[test]
fn a_new_version_tells_nobody_and_its_differences_are_counted() {
    let old = template("1.0.0", &hot(85, "warning", "0s"));
    let new = template("2.0.0", &hot(80, "critical", "0s"));
    let mut rig = Rig::new(&old, std::slice::from_ref(&new));
    let mut alone = Rig::new(&old, &[]);
    let phases = [(4, [70.0, 70.0]), (4, [83.0, 70.0]), (4, [90.0, 70.0]), (4, [70.0, 70.0])];
    for (ticks, heat) in phases {
        assert_eq!(rig.run(ticks, heat), alone.run(ticks, heat), "what watches is as if there were no shadow");
    }
    let shadow = rig.shadow();
    assert_eq!((&*shadow.templates[0].name, &*shadow.templates[0].version), ("heat", "2.0.0"));
    assert_eq!(shadow.rules.iter().map(counts).collect::<Vec<_>>(), [("heat/Hot", [0, 1, 1], 40.0)]);
    let latest: Vec<_> = shadow
        .latest
        .iter()
        .map(|one| (&*one.kind, &*one.labels["uuid"], one.old_value, one.new_value, one.new_severity.as_deref()))
        .collect();
    assert_eq!(
        latest,
        [
            ("only_new", "GPU-0", None, Some(83.0), Some("critical")),
            ("severity", "GPU-0", Some(90.0), Some(83.0), Some("critical"))
        ]
    );

    rig.engine.reload(rig.now, &[new], &BTreeMap::new()).unwrap();
    assert!(rig.engine.status().shadow.is_none(), "promoted");
    assert_eq!(rig.run(1, [83.0, 70.0]).0, ["Hot GPU-0 firing critical"]);
}

#[test]
fn what_is_the_same_differs_in_nothing_however_late_it_begins() {
    let rules = hot(80, "warning", "1m");
    let old = template("1.0.0", &rules);
    let mut rig = Rig::new(&old, &[]);
    rig.run(6, [90.0, 70.0]);
    let shadow = [template("1.0.1", &rules)];
    rig.engine.reload_beside(rig.now, std::slice::from_ref(&old), &shadow, &BTreeMap::new()).unwrap();
    rig.run(20, [90.0, 85.0]);
    rig.run(20, [70.0, 85.0]);
    let shadow = rig.shadow();
    assert_eq!(shadow.rules.iter().map(counts).collect::<Vec<_>>(), [("heat/Hot", [0, 0, 0], 0.0)]);
    assert!(shadow.latest.is_empty());
}

#[test]
fn rules_that_only_one_side_has_and_rules_that_fail_are_told_and_hurt_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let script = "fn describe() { #{ name: \"x\", version: \"1.0.0\", scope: \"gpu\", inputs: [#{ metric: \"gpu_temperature_celsius\" }] } }\n\
                  fn evaluate(batch, out) { throw \"no\" }\n";
    std::fs::write(folder.path().join("x.rhai"), script).unwrap();
    let text = "template: heat\nversion: 2.0.0\ninterval: 5s\nrules: [{alert: Fails, module: ./x.rhai}]\n";
    std::fs::write(folder.path().join("template.yaml"), text).unwrap();
    let shadow = TemplateSource::File(folder.path().join("template.yaml"));
    let mut rig = Rig::new(&template("1.0.0", &hot(80, "warning", "0s")), std::slice::from_ref(&shadow));
    let (told, _) = rig.run(20, [90.0, 70.0]);
    assert_eq!(told, ["Hot GPU-0 firing warning"], "no condition of the rule in shadow either");
    assert!(rig.engine.status().rules.iter().all(|rule| rule.failures_total == 0 && rule.ticks_missed_total == 0));
    let status = rig.shadow();
    assert_eq!(counts(&status.rules[1]).1, [1, 0, 0], "the watching rule has no counterpart");
    let fails = &status.rules[0];
    assert!(fails.quarantined && fails.last_failure.as_ref().unwrap().contains("no"), "{fails:?}");

    std::fs::write(folder.path().join("template.yaml"), text.replace("x.rhai", "y.rhai")).unwrap();
    let watch = [template("1.0.0", &hot(80, "warning", "0s"))];
    let refused = rig.engine.reload_beside(rig.now, &watch, &[shadow], &BTreeMap::new()).unwrap_err().to_string();
    assert!(refused.contains("y.rhai"), "{refused}");
    assert_eq!(rig.shadow().rules.len(), 2, "what ran before goes on");
}
