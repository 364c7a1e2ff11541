//! From alerting rules of Prometheus to a template that means the same, and a report of what could not be said.

mod expression;
mod rules_file;
mod selector;
mod severity;
mod text;
mod write;

use std::time::Duration;

use serde::Serialize;
use watchfire_engine::Engine;
use watchfire_engine::door::Errors;

use rules_file::{Alert, Read};

/// How rules are converted.
#[derive(Clone, Debug)]
pub struct Options {
    /// The template's name: lower-case letters, digits, -.
    pub template: String,
    /// How often groups without an `interval` of their own are evaluated (Prometheus' `evaluation_interval`).
    pub interval: Duration,
}

/// A template made of a file of rules.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The template's text; none where no rule could be converted.
    pub template: Option<String>,
    /// What became of each rule, in the order of the file.
    pub rules: Vec<RuleReport>,
}

/// What became of one rule.
#[derive(Clone, Debug, Serialize)]
pub struct RuleReport {
    /// Its name in Prometheus: the alert's, or that of the recorded series.
    pub rule: String,
    /// Its name in the template, where it was converted.
    pub alert: Option<String>,
    /// The file.
    pub file: String,
    /// The line of its expression.
    pub line: usize,
    /// The column of its expression.
    pub column: usize,
    /// What became of it.
    pub outcome: Outcome,
    /// What its reader should know.
    pub remarks: Vec<String>,
    /// Why it was not converted.
    pub refused: Option<Refusal>,
}

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It means what it meant.
    Converted,
    /// It means what it meant under what its remarks say.
    ConvertedWithRemarks,
    /// It is not in the template.
    NotConverted,
}

/// Why a rule, or a text of it, was not converted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What stands in the way.
    pub reason: String,
    /// The part of the expression that does.
    pub part: String,
    /// What to do instead, where there is something.
    pub instead: Option<String>,
}

impl Refusal {
    fn new(part: impl ToString, reason: impl Into<String>) -> Self {
        Refusal { reason: reason.into(), part: part.to_string(), instead: None }
    }

    fn instead(self, what: impl Into<String>) -> Self {
        Refusal { instead: Some(what.into()), ..self }
    }
}

/// Converts the text of a file of rules: one of Prometheus (`groups:`) or a `PrometheusRule` of its operator.
///
/// # Errors
/// Where the file is no such file; each rule that cannot be converted is told in the report instead.
pub fn convert(file: &str, text: &str, options: &Options) -> Result<Imported, Errors> {
    let mut errors = Errors::default();
    let read = rules_file::read(file, text, options.interval, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut names = Vec::new();
    let (mut written, mut rules) = (Vec::new(), Vec::new());
    for rule in read {
        let report = match rule {
            Read::Recording(recording) => recording.report(),
            Read::Alert(alert) => match convert_one(&alert, &mut names) {
                Ok((rule, report)) => {
                    written.push(rule);
                    report
                }
                Err(refusal) => alert.refused(refusal),
            },
        };
        rules.push(report);
    }
    keep_sound(file, options, &mut written, &mut rules);
    let template = (!written.is_empty()).then(|| write::template(file, options, &written));
    Ok(Imported { template, rules })
}

/// Takes out what the engine would not load: one rule must not cost its reader the template.
fn keep_sound(file: &str, options: &Options, written: &mut Vec<Converted>, reports: &mut [RuleReport]) {
    if unsound(&write::template(file, options, written)).is_none() {
        return;
    }
    written.retain(|rule| {
        let Some(why) = unsound(&write::template(file, options, std::slice::from_ref(rule))) else { return true };
        let report = reports.iter_mut().find(|report| report.alert.as_deref() == Some(&rule.alert));
        if let Some(report) = report {
            let refused = Refusal::new(&rule.when, format!("the engine does not take what it became: {why}"));
            (report.alert, report.outcome, report.refused) = (None, Outcome::NotConverted, Some(refused));
        }
        false
    });
}

/// What is wrong with a template.
fn unsound(template: &str) -> Option<String> {
    let why = Engine::builder().template_text("template.yaml", template).check().err()?;
    Some(why.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A rule as the template will have it.
#[derive(Clone, Debug)]
struct Converted {
    alert: String,
    when: String,
    value: Option<String>,
    hold_for: Duration,
    keep_firing_for: Duration,
    interval: Duration,
    severity: &'static str,
    labels: Vec<(String, String)>,
    annotations: Vec<(String, String)>,
}

fn convert_one(alert: &Alert, names: &mut Vec<String>) -> Result<(Converted, RuleReport), Refusal> {
    let said = expression::convert(&alert.expr)?;
    let mut remarks = said.remarks;
    let (severity, labels) = severity::labels(alert, &mut remarks);
    let name = name(&alert.name, severity, names, &mut remarks);
    let annotations = text::annotations(&alert.annotations, &said.metrics, &mut remarks);
    remarks.extend(alert.group_remarks.iter().cloned());
    let rule = Converted {
        alert: name.clone(),
        when: said.when,
        value: said.value,
        hold_for: alert.hold_for,
        keep_firing_for: alert.keep_firing_for,
        interval: alert.interval,
        severity,
        labels,
        annotations,
    };
    names.push(name.clone());
    Ok((rule, alert.converted(name, remarks)))
}

/// A name that the template takes: letters, digits and _, unlike those before it.
fn name(wanted: &str, severity: &str, taken: &[String], remarks: &mut Vec<String>) -> String {
    let clean: String = wanted.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let clean = if clean.starts_with(|c: char| c.is_ascii_alphabetic()) { clean } else { format!("Alert_{clean}") };
    let mut title = severity.to_owned();
    title[..1].make_ascii_uppercase();
    let mut tries = [clean.clone(), format!("{clean}{title}")].into_iter();
    let numbered = || (2..).map(|n| format!("{clean}{title}{n}"));
    let free = tries.find(|name| !taken.contains(name)).or_else(|| numbered().find(|name| !taken.contains(name)));
    let free = free.unwrap_or(clean);
    if free != wanted {
        remarks
            .push(format!("the alert is called {free}: names are letters, digits and _, and differ within a template"));
    }
    free
}
