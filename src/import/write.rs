//! The text of a template.

use std::fmt::Write as _;
use std::time::Duration;

use watchfire_engine::door::format_duration;

use super::{Converted, Options};

/// The template that holds `rules`.
pub(super) fn template(file: &str, options: &Options, rules: &[Converted]) -> String {
    let mut out = String::new();
    let from = file.rsplit('/').next().unwrap_or(file);
    let _ = writeln!(out, "# Converted from {from} by `watchfire import prometheus-rules`.");
    let _ = writeln!(out, "template: {}", options.template);
    let _ = writeln!(out, "version: 1.0.0");
    let _ = writeln!(out, "description: {}", quoted(&format!("Alerting rules of Prometheus, from {from}")));
    let _ = writeln!(out, "interval: {}", format_duration(options.interval));
    out += "rules:\n";
    rules.iter().for_each(|one| rule(one, options, &mut out));
    out
}

fn rule(rule: &Converted, options: &Options, out: &mut String) {
    let span = |span: Duration| (!span.is_zero()).then(|| format_duration(span));
    let lines = [
        ("when", Some(quoted(&rule.when))),
        ("value", rule.value.as_deref().map(quoted)),
        ("scope", Some("device".to_owned())),
        ("severity", Some(rule.severity.to_owned())),
        ("for", span(rule.hold_for)),
        ("keep_firing_for", span(rule.keep_firing_for)),
        ("interval", span(rule.interval).filter(|_| rule.interval != options.interval)),
        ("missing_data", Some("resolve".to_owned())),
    ];
    let _ = writeln!(out, "  - alert: {}", rule.alert);
    for (key, value) in lines.iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        let _ = writeln!(out, "    {key}: {value}");
    }
    for (key, entries) in [("labels", &rule.labels), ("annotations", &rule.annotations)] {
        if !entries.is_empty() {
            let _ = writeln!(out, "    {key}:");
        }
        for (name, text) in entries {
            let _ = writeln!(out, "      {name}: {}", quoted(text));
        }
    }
}

/// A text that YAML reads back as it is.
fn quoted(text: &str) -> String {
    if text.chars().any(char::is_control) {
        // JSON's quoting is YAML's, too.
        return serde_json::Value::from(text).to_string();
    }
    format!("'{}'", text.replace('\'', "''"))
}
