//! Runs the scenarios of templates: the same engine, on a virtual time line.

use std::collections::BTreeMap;

use watchfire_core::{Observation, Time};
use watchfire_door::Errors;
use watchfire_template::scenario::{START, Scenario, Seen, compare, read, to_yaml};

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
    pub failure: Option<String>,
    /// The file with `expect` replaced by what happened, where the scenario could be run.
    pub blessed: Option<String>,
}

/// Runs one scenario of a template.
pub fn run(source: &TemplateSource, file: &str, text: &str) -> Report {
    let mut errors = Errors::default();
    let scenario = read(file, text, &mut errors);
    check_names(source, scenario.as_ref(), &mut errors);
    let Some(scenario) = scenario.filter(|_| errors.is_empty()) else {
        return Report {
            file: file.to_owned(),
            name: file.to_owned(),
            failure: Some(errors.to_string()),
            blessed: None,
        };
    };
    let name = scenario.name.clone();
    match play(source, &scenario) {
        Ok(seen) => Report {
            file: file.to_owned(),
            name,
            failure: compare(&scenario.expect, &seen).err(),
            blessed: Some(bless(text, &scenario, &seen)),
        },
        Err(why) => Report { file: file.to_owned(), name, failure: Some(why), blessed: None },
    }
}

/// Refuses names of alerts that the template does not have. What is wrong with the template itself is told elsewhere.
fn check_names(source: &TemplateSource, scenario: Option<&Scenario>, errors: &mut Errors) {
    let (Some(scenario), Ok(text)) = (scenario, source.text()) else { return };
    let unseen = &mut Errors::default();
    let Some(template) = watchfire_template::read(&source.file(), &text, &BTreeMap::new(), &[], unseen) else { return };
    let alerts: Vec<&str> = template.rules.iter().map(|rule| &*rule.spec.alert).collect();
    scenario.check_names(&alerts, errors);
}

fn play(source: &TemplateSource, scenario: &Scenario) -> Result<Vec<Seen>, String> {
    let template = source.text().ok().and_then(|text| crate::catalog::name_of(&text)).unwrap_or_default();
    let given = BTreeMap::from([(template, scenario.parameters.clone())]);
    let builder = Engine::builder().sources([source.clone()]).parameters(given).only(&scenario.rules);
    let mut engine = builder.build().map_err(|error| error.to_string())?;
    let mut seen = Vec::new();
    let steps = scenario.end.since(START).as_millis() / scenario.interval.as_millis().max(1);
    for step in 0..=u32::try_from(steps).unwrap_or(u32::MAX) {
        let now = START + scenario.interval * step;
        advance_before(&mut engine, now, &mut seen);
        feed(&mut engine, scenario, step as usize, now);
        note(engine.advance(now), &mut seen);
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
fn advance_before(engine: &mut Engine, moment: Time, seen: &mut Vec<Seen>) {
    while let Some(due) = engine.next_deadline().filter(|due| *due < moment) {
        note(engine.advance(due), seen);
    }
}

fn note(outputs: Vec<Output>, seen: &mut Vec<Seen>) {
    for output in outputs {
        match output {
            Output::Alert { time, alert, from } => {
                let summary = alert.annotation("summary").unwrap_or_default().to_owned();
                let from = (from, None);
                seen.push(Seen { transition: watchfire_core::Transition { time, alert: alert.view, from }, summary });
            }
            Output::RuleFailed { rule, failure, .. } => {
                tracing::warn!(rule, %failure, "a rule failed within a scenario");
            }
            _ => {}
        }
    }
}

/// The file's text with its `expect` replaced: from its key to the next key of the first column.
fn bless(text: &str, scenario: &Scenario, seen: &[Seen]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let line = scenario.expect_place.line.min(lines.len());
    let key = lines[..line].iter().rposition(|line| line.starts_with("expect:")).unwrap_or(line.saturating_sub(1));
    let follows = |line: &&str| !line.is_empty() && !line.starts_with([' ', '-', '#', '\t']);
    let after = lines[key + 1..].iter().position(follows).map_or(lines.len(), |at| key + 1 + at);
    let mut out: Vec<String> = lines[..key].iter().map(|line| (*line).to_owned()).collect();
    out.push(to_yaml(seen).trim_end().to_owned());
    out.extend(lines[after..].iter().map(|line| (*line).to_owned()));
    out.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_of_a_rule_that_is_not_there_does_not_pass() {
        let template = "template: t\nversion: 1.0.0\nrules: [{alert: GpuDown, when: gpu_up < 1, severity: warning}]\n";
        let source = TemplateSource::Text("t.yaml".into(), template.into());
        let text = "scenario: s\ninterval: 1s\nrules: [GpuDwon]\nexpect: []\n";
        let failure = run(&source, "s.yaml", text).failure.unwrap_or_default();
        assert!(failure.starts_with("s.yaml:3:9: the template has no alert `GpuDwon`"), "{failure}");
        assert_eq!(run(&source, "s.yaml", &text.replace("Dwon", "Down")).failure, None);
    }

    /// Every shipped template passes its own scenarios: what an author sees with `watchfire test`.
    #[test]
    fn the_shipped_templates_pass_their_scenarios() {
        let mut count = 0;
        for source in crate::load::shipped() {
            for (file, text) in source.scenarios() {
                let report = run(&source, &file, &text);
                assert!(report.failure.is_none(), "{file}: {}", report.failure.unwrap_or_default());
                count += 1;
            }
        }
        assert!(count >= 12, "only {count} scenarios");
    }
}
