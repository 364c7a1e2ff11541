//! Runs the scenarios of templates: the same engine, on a virtual time line.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use watchfire_core::{Observation, Time};
use watchfire_door::{Errors, format_duration};
use watchfire_template::scenario::{START, Scenario, Seen, difference, picture, read, to_yaml};

use crate::bless::bless;
use crate::builder::BuildError;
use crate::catalog::TemplateSource;
use crate::engine::Engine;
use crate::output::Output;

/// What came of one scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its file.
    pub file: String,
    /// Its name; the file's where it cannot be read.
    pub name: String,
    /// What went wrong; none = it passed.
    pub failure: Option<Failed>,
    /// The file with `expect` replaced by what happened, where the scenario could be run.
    pub blessed: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// How a scenario failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It was not run, or says nothing: the scenario or its template is wrong.
    Invalid(String),
    /// A rule failed that should not, or did not that should.
    Rule(String),
    /// Something else happened than was expected: the picture of it, then the differences.
    Differs(String),
}

impl Failed {
    /// In one word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Failed::Invalid(_) => "invalid",
            Failed::Rule(_) => "rule_failed",
            Failed::Differs(_) => "differs",
        }
    }

    /// What people read; several lines.
    pub fn text(&self) -> &str {
        let (Failed::Invalid(text) | Failed::Rule(text) | Failed::Differs(text)) = self;
        text
    }
}

/// What happened in a scenario.
#[derive(Default)]
struct Played {
    seen: Vec<Seen>,
    /// The rules that failed: when, which, why.
    failures: Vec<(Time, String, String)>,
}

/// Runs one scenario of a template.
pub fn run(source: &TemplateSource, file: &str, text: &str) -> Report {
    let begun = Instant::now();
    let mut errors = Errors::default();
    let scenario = read(file, text, &mut errors);
    check_names(source, scenario.as_ref(), &mut errors);
    let name = scenario.as_ref().map_or(file, |scenario| &scenario.name).to_owned();
    let played = match scenario.as_ref().filter(|_| errors.is_empty()) {
        Some(scenario) => play(source, scenario).map(|played| (scenario, played)),
        None => Err(errors.to_string()),
    };
    let (failure, blessed) = match played {
        Ok((scenario, played)) => (judge(scenario, &played), Some(bless(text, &to_yaml(&played.seen)))),
        Err(why) => (Some(Failed::Invalid(why)), None),
    };
    Report { file: file.to_owned(), name, failure, blessed, took: begun.elapsed() }
}

/// Whether a scenario's file, name or one of the alerts that it names contains `part`. One that cannot be read is
/// known by its file.
pub fn is_about(file: &str, text: &str, part: &str) -> bool {
    let scenario = || read(file, text, &mut Errors::default());
    file.contains(part) || scenario().is_some_and(|scenario| scenario.name.contains(part) || scenario.names(part))
}

fn judge(scenario: &Scenario, played: &Played) -> Option<Failed> {
    if let Some(why) = failures(scenario, &played.failures) {
        return Some(Failed::Rule(why));
    }
    if !scenario.is_expecting {
        let why =
            "missing key `expect`\n  hint: `--update` writes what happens now; `expect: []` says that nothing may";
        return Some(Failed::Invalid(why.to_owned()));
    }
    let found = difference(&scenario.expect, &played.seen)?;
    let text = picture(scenario, &played.seen, &found) + found.in_words(&scenario.expect, &played.seen).as_str();
    Some(Failed::Differs(text))
}

/// The first failure of each rule that should not fail, and the rules that should and did not.
fn failures(scenario: &Scenario, failures: &[(Time, String, String)]) -> Option<String> {
    let mut told: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for (time, rule, why) in failures {
        let alert = rule.rsplit('/').next().unwrap_or(rule);
        if !told.contains(&alert) && !scenario.expect_failures.iter().any(|name| name == alert) {
            lines.push(format!("rule {rule} failed at {}: {why}", format_duration(time.since(START))));
        }
        told.push(alert);
    }
    let calm = scenario.expect_failures.iter().filter(|name| !told.contains(&name.as_str()));
    lines.extend(calm.map(|name| format!("rule {name} did not fail; `expect_failures` says that it does")));
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Refuses names of alerts that the template does not have. What is wrong with the template itself is told elsewhere.
fn check_names(source: &TemplateSource, scenario: Option<&Scenario>, errors: &mut Errors) {
    let (Some(scenario), Ok(text)) = (scenario, source.text()) else { return };
    let unseen = &mut Errors::default();
    let Some(template) = watchfire_template::read(&source.file(), &text, &BTreeMap::new(), &[], unseen) else { return };
    let alerts: Vec<&str> = template.rules.iter().map(|rule| &*rule.spec.alert).collect();
    scenario.check_names(&alerts, errors);
}

fn play(source: &TemplateSource, scenario: &Scenario) -> Result<Played, String> {
    let template = source.text().ok().and_then(|text| crate::catalog::name_of(&text)).unwrap_or_default();
    let given = BTreeMap::from([(template, scenario.parameters.clone())]);
    let builder = Engine::builder().sources([source.clone()]).parameters(given).only(&scenario.rules);
    let engine = builder.build_seeing(&mut |catalog| {
        let mut errors = Errors::default();
        scenario.check_reads(&catalog.reads, &mut errors);
        if errors.is_empty() { Ok(()) } else { Err(BuildError::Templates(errors)) }
    });
    let mut engine = engine.map_err(|error| error.to_string())?;
    let mut seen = Played::default();
    let steps = scenario.end.since(START).as_millis() / scenario.interval.as_millis().max(1);
    for step in 0..=u32::try_from(steps).unwrap_or(u32::MAX) {
        let now = START + scenario.interval * step;
        advance_before(&mut engine, now, &mut seen);
        feed(&mut engine, scenario, step as usize, now);
        note(now, engine.advance(now), &mut seen);
    }
    advance_before(&mut engine, scenario.end + std::time::Duration::from_millis(1), &mut seen);
    Ok(seen)
}

fn feed(engine: &mut Engine, scenario: &Scenario, step: usize, now: Time) {
    let observations: Vec<Observation> = scenario
        .series
        .iter()
        .filter_map(|(series, values)| {
            let value = (*values.get(step)?)?;
            Some(Observation { series: series.clone(), time: now, value })
        })
        .collect();
    let happened = |event: &&watchfire_core::Occurrence| event.time <= now && event.time + scenario.interval > now;
    scenario.events.iter().filter(happened).for_each(|event| engine.happened(now, event.clone()));
    engine.observe(now, &observations);
}

/// Lets deadlines before a moment pass, each at its own.
fn advance_before(engine: &mut Engine, moment: Time, seen: &mut Played) {
    while let Some(due) = engine.next_deadline().filter(|due| *due < moment) {
        note(due, engine.advance(due), seen);
    }
}

fn note(now: Time, outputs: Vec<Output>, seen: &mut Played) {
    for output in outputs {
        match output {
            Output::Alert { time, alert, from } => {
                let summary = alert.annotation("summary").unwrap_or_default().to_owned();
                let from = (from, None);
                seen.seen
                    .push(Seen { transition: watchfire_core::Transition { time, alert: alert.view, from }, summary });
            }
            Output::RuleFailed { rule, failure, .. } => seen.failures.push((now, rule, failure.to_string())),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_of_a_rule_that_is_not_there_does_not_pass() {
        let template = "template: t\nversion: 1.0.0\nrules: [{alert: GpuDown, when: gpu_up < 1, severity: warning}]\n";
        let source = TemplateSource::Text("t.yaml".into(), template.into());
        let text = "scenario: s\ninterval: 1s\nrules: [GpuDwon]\nexpect: []\n";
        let failure = run(&source, "s.yaml", text).failure.map(|failed| failed.text().to_owned()).unwrap_or_default();
        assert!(failure.starts_with("s.yaml:3:9: the template has no alert `GpuDwon`"), "{failure}");
        assert_eq!(run(&source, "s.yaml", &text.replace("Dwon", "Down")).failure, None);
    }

    #[test]
    fn what_no_rule_reads_and_no_alert_has_is_refused() {
        let template = "template: t\nversion: 1.0.0\nrules: [{alert: GpuDown, when: gpu_up < 1, severity: warning}]\n";
        let source = TemplateSource::Text("t.yaml".into(), template.into());
        let text = "scenario: s\ninterval: 1s\nseries:\n  - {metric: gpu_upp, labels: {gpu: a}, values: 1}\nevents:\n  - {at: 0s, kind: xidd, code: 79}\nexpect: [{alert: GpuDown, labels: {gpuu: a}}]\n";
        let failure = run(&source, "s.yaml", text).failure.map(|failed| failed.text().to_owned()).unwrap_or_default();
        let told = [
            "no rule of the template reads the metric `gpu_upp`; expected one of gpu_up\n  hint: did you mean `gpu_up`?",
            "no rule of the template reads events of the kind `xidd`; none is known",
            "s.yaml:7:42: no series, event or rule has the label `gpuu`; expected one of gpu",
        ];
        told.iter().for_each(|part| assert!(failure.contains(part), "{failure}"));
    }

    #[test]
    fn a_rule_that_fails_fails_its_scenario_unless_it_should() {
        let scenario = |more: &str| {
            let text = format!("scenario: s\ninterval: 1s\nexpect: []\n{more}");
            read("s.yaml", &text, &mut Errors::default()).expect("a scenario")
        };
        let failed = [(START + Duration::from_secs(5), "t/Bad".to_owned(), "it trapped".to_owned())];
        let played = |failures: &[(Time, String, String)]| Played { seen: Vec::new(), failures: failures.to_vec() };
        let why = judge(&scenario(""), &played(&failed));
        assert_eq!(why, Some(Failed::Rule("rule t/Bad failed at 5s: it trapped".into())));
        assert_eq!(judge(&scenario("expect_failures: [Bad]\n"), &played(&failed)), None);
        let why = judge(&scenario("expect_failures: [Bad]\n"), &played(&[]));
        assert!(matches!(why, Some(Failed::Rule(why)) if why.starts_with("rule Bad did not fail")));
    }

    #[test]
    fn a_scenario_without_expect_cannot_pass_but_can_be_written() {
        let template = "template: t\nversion: 1.0.0\nrules: [{alert: GpuDown, when: gpu_up < 1, severity: warning}]\n";
        let source = TemplateSource::Text("t.yaml".into(), template.into());
        let report = run(&source, "s.yaml", "scenario: s # why\ninterval: 1s\n");
        assert!(matches!(report.failure, Some(Failed::Invalid(_))));
        assert_eq!(report.blessed.as_deref(), Some("scenario: s # why\ninterval: 1s\nexpect: []\n"));
    }

    /// Every shipped template passes its own scenarios: what an author sees with `watchfire test`.
    #[test]
    fn the_shipped_templates_pass_their_scenarios() {
        let mut count = 0;
        for source in crate::load::shipped() {
            for (file, text) in source.scenarios() {
                let report = run(&source, &file, &text);
                assert!(report.failure.is_none(), "{file}: {}", report.failure.as_ref().map_or("", Failed::text));
                count += 1;
            }
        }
        assert!(count >= 12, "only {count} scenarios");
    }
}
