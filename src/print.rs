//! How things look on a terminal. Colours go away by themselves where there is no terminal.

use anstyle::{AnsiColor, Style};
use serde_json::json;
use watchfire_engine::notify::payload;
use watchfire_engine::{Alert, Output, RuleFailure, Severity, State, Time, clock, printable};

use crate::exit::Failure;

fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

fn colour(severity: Severity) -> Style {
    let colour = match severity {
        Severity::Info => AnsiColor::Cyan,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Critical => AnsiColor::Red,
        Severity::Emergency => AnsiColor::Magenta,
    };
    colour.on_default()
}

/// A command's last words.
pub fn failure(failure: &Failure) -> String {
    format!("{} {failure}", paint(AnsiColor::Red.on_default().bold(), "error:"))
}

/// One transition as a person wants to read it: when, what, how bad, and what it means.
pub fn transition(time: Time, alert: &Alert) -> String {
    let view = &alert.view;
    let word = match view.state {
        State::Firing => paint(colour(view.severity).bold(), &format!("{:<9}", "FIRING")),
        State::Resolved => paint(AnsiColor::Green.on_default().bold(), &format!("{:<9}", "resolved")),
        other => paint(Style::new().dimmed(), &format!("{:<9}", other.as_str())),
    };
    let severity = paint(colour(view.severity), &format!("{:<9}", view.severity.as_str()));
    let cause = view.cause.map(|cause| format!(" [{cause}]")).unwrap_or_default();
    let stale = if view.stale { " (stale)" } else { "" };
    let (name, summary) = (&view.alert, printable(alert.summary()));
    format!("{}  {word} {severity} {name:<26} {summary}{cause}{stale}", clock::rfc3339(time))
}

/// One transition as a line of JSON.
pub fn transition_json(time: Time, alert: &Alert) -> String {
    let view = &alert.view;
    let labels: serde_json::Map<String, serde_json::Value> =
        view.labels.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    json!({
        "time": clock::rfc3339(time),
        "alert": &*view.alert,
        "severity": view.severity.as_str(),
        "state": view.state.as_str(),
        "labels": labels,
        "value": view.value.is_finite().then_some(view.value),
        "cause": view.cause.map(|cause| cause.as_str()),
        "template": &*view.template,
    })
    .to_string()
}

/// One message as a line of JSON: the receiver, and the payload that a webhook would get.
pub fn message_json(message: &watchfire_engine::notify::Message) -> String {
    json!({
        "time": clock::rfc3339(Time::from_millis(message.time_ms)),
        "receiver": message.receiver,
        "key": message.key,
        "payload": payload::webhook(message, 0, ""),
    })
    .to_string()
}

/// What a person should know of the rest: rules that fail and recover.
pub fn trouble(output: &Output) -> Option<String> {
    match output {
        Output::RuleFailed { rule, failure, quarantined, .. } => Some(failed(rule, failure, *quarantined)),
        Output::StateMigrated { rule, migration } => Some(format!("rule {rule} {migration}")),
        Output::RuleRecovered { rule } => Some(format!("rule {rule} answers again")),
        _ => None,
    }
}

fn failed(rule: &str, failure: &RuleFailure, quarantined: bool) -> String {
    let fate = if quarantined { "; it is quarantined" } else { "" };
    format!("rule {rule} {}{fate}", printable(&failure.to_string()))
}
