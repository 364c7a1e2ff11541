//! What people call severities, and which of ours it is.

use super::rules_file::Alert;

/// Words of public rules, in lower case. docs/from-prometheus.md shows the table.
const WORDS: [(&str, &[&str]); 4] = [
    ("emergency", &["emergency", "fatal", "disaster", "p0", "sev0"]),
    ("critical", &["critical", "crit", "page", "high", "error", "major", "p1", "sev1"]),
    ("warning", &["warning", "warn", "average", "medium", "minor", "ticket", "p2", "sev2"]),
    ("info", &["info", "informational", "information", "notice", "low", "none", "debug", "p3", "p4", "sev3"]),
];
/// For a rule that says nothing, or a word that nobody knows.
const UNKNOWN: &str = "warning";

/// The severity of an alert, and its other labels.
pub(super) fn labels(alert: &Alert, remarks: &mut Vec<String>) -> (&'static str, Vec<(String, String)>) {
    let mut severity = None;
    let mut labels = Vec::new();
    for (name, value) in &alert.labels {
        if value.contains("{{") {
            remarks.push(format!("the label {name} is left out: its value {value:?} is computed for each alert"));
        } else if name == "severity" {
            severity = Some(value.as_str());
        } else if name == "alertname" || !is_name(name) {
            remarks.push(format!("the label {name} is left out: a template has no such label"));
        } else {
            labels.push((name.clone(), value.clone()));
        }
    }
    (ours(severity, remarks), labels)
}

fn ours(said: Option<&str>, remarks: &mut Vec<String>) -> &'static str {
    let Some(said) = said else {
        remarks.push(format!("it had no severity; it is a {UNKNOWN}"));
        return UNKNOWN;
    };
    let lower = said.to_ascii_lowercase();
    match WORDS.iter().find(|(_, words)| words.contains(&lower.as_str())) {
        Some((ours, _)) if *ours == said => ours,
        Some((ours, _)) => {
            remarks.push(format!("severity {said} is {ours} here"));
            ours
        }
        None => {
            remarks.push(format!("severity {said} is not known; it is a {UNKNOWN}"));
            UNKNOWN
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
