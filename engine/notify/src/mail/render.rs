//! The words of an email: subject, plain text, HTML.

use std::collections::BTreeMap;

use jiff::Timestamp;
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use serde::Serialize;
use watchfire_core::Severity;

use crate::message::{Alert, Message};

/// The most alerts that an email lists; the rest is counted.
pub const ALERTS_LISTED_MAX: usize = 100;
/// The longest subject, in characters.
pub const SUBJECT_CHARS_MAX: usize = 150;

const TEXT: &str = include_str!("templates/mail.txt");
const HTML: &str = include_str!("templates/mail.html");

/// Labels that make up a subject, with the word before each value.
const WHERE: [(&str, &str); 3] = [("host", ""), ("gpu", "gpu "), ("job", "job ")];

/// A receiver's own templates, in place of the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates {
    /// The subject.
    pub subject: Option<String>,
    /// The plain text.
    pub text: Option<String>,
    /// The HTML; values are escaped.
    pub html: Option<String>,
}

/// A rendered email.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// One line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The HTML.
    pub html: String,
}

#[derive(Serialize)]
struct Context<'a> {
    title: &'a str,
    status: &'static str,
    receiver: &'a str,
    group_labels: &'a BTreeMap<String, String>,
    alerts: Vec<AlertContext<'a>>,
    more: usize,
    external_url: &'a str,
}

#[derive(Serialize)]
struct AlertContext<'a> {
    status: &'static str,
    severity: &'static str,
    colour: &'static str,
    name: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    annotations: &'a BTreeMap<String, String>,
    summary: &'a str,
    description: &'a str,
    runbook: &'a str,
    since: String,
    ended: Option<String>,
    value: Option<String>,
    cause: Option<&'a str>,
    note: Option<&'a str>,
    template: &'a str,
}

/// Renders a message.
///
/// # Errors
/// One of the receiver's own templates fails; which one and why.
pub fn render(message: &Message, external_url: &str, own: &Templates) -> Result<Rendered, String> {
    let environment = environment();
    let title = title(message);
    let mut context = context(message, &title, external_url);
    let draw = |name: &str, source: &str, context: &Context<'_>| {
        environment.render_named_str(name, source, Serde(context)).map_err(|error| format!("email template {error:#}"))
    };
    let subject = match &own.subject {
        None => title.clone(),
        Some(source) => draw("subject", source, &context)?,
    };
    let subject = one_line(&subject);
    context.title = &subject;
    let text = draw("mail.txt", own.text.as_deref().unwrap_or(TEXT), &context)?;
    let html = draw("mail.html", own.html.as_deref().unwrap_or(HTML), &context)?;
    Ok(Rendered { subject: subject.clone(), text, html })
}

/// Checks that a template can be parsed.
///
/// # Errors
/// What is wrong and in which line.
pub fn check(source: &str) -> Result<(), String> {
    environment().template_from_str(source).map(drop).map_err(|error| format!("{error:#}"))
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // A fixed and valid syntax; were it refused, the default one only leaves more blank lines.
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment
}

fn context<'a>(message: &'a Message, title: &'a str, external_url: &'a str) -> Context<'a> {
    let listed = message.alerts.len().min(ALERTS_LISTED_MAX);
    Context {
        title,
        status: if message.is_firing() { "firing" } else { "resolved" },
        receiver: &message.receiver,
        group_labels: &message.group_labels,
        alerts: message.alerts[..listed].iter().map(alert_context).collect(),
        more: message.alerts.len() - listed,
        external_url,
    }
}

fn alert_context(alert: &Alert) -> AlertContext<'_> {
    let annotation = |name: &str| alert.annotations.get(name).map_or("", String::as_str);
    let shown = alert.labels.iter().filter(|(name, _)| !["alertname", "severity"].contains(&name.as_str()));
    let runbook = annotation("runbook_url");
    AlertContext {
        status: alert.status.as_str(),
        severity: alert.severity.as_str(),
        colour: colour(alert),
        name: alert.name(),
        labels: shown.map(|(name, value)| (&**name, &**value)).collect(),
        annotations: &alert.annotations,
        summary: annotation("summary"),
        description: annotation("description"),
        // Only a link that a mail program may safely open.
        runbook: if runbook.starts_with("https://") || runbook.starts_with("http://") { runbook } else { "" },
        since: moment(alert.starts_at_ms),
        ended: alert.ends_at_ms.filter(|_| !alert.is_firing()).map(moment),
        value: alert.finite_value().map(|value| value.to_string()),
        cause: alert.cause.as_deref(),
        note: alert.note.as_deref(),
        template: &alert.template,
    }
}

fn colour(alert: &Alert) -> &'static str {
    match alert.severity {
        _ if !alert.is_firing() => "#2e7d32",
        Severity::Info => "#1565c0",
        Severity::Warning => "#f9a825",
        Severity::Critical => "#c62828",
        Severity::Emergency => "#6a1b9a",
    }
}

/// `2026-01-01 00:00:00 UTC`.
fn moment(time_ms: i64) -> String {
    let edge = if time_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(time_ms).unwrap_or(edge).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `[FIRING:1 critical, 2 warning] GpuTooHot h1 gpu 3`.
pub fn title(message: &Message) -> String {
    let mut words = vec![state(message)];
    let name = shared(message, "alertname");
    words.push(name.map_or_else(|| format!("{} alerts", message.alerts.len()), str::to_owned));
    for (label, word) in WHERE {
        if let Some(value) = shared(message, label) {
            words.push(format!("{word}{value}"));
        }
    }
    words.join(" ")
}

fn state(message: &Message) -> String {
    let count = |severity| message.alerts.iter().filter(|one| one.is_firing() && one.severity == severity).count();
    let worst_first = Severity::ALL.into_iter().rev().map(|severity| (count(severity), severity));
    let counts: Vec<String> =
        worst_first.filter(|(n, _)| *n > 0).map(|(n, severity)| format!("{n} {severity}")).collect();
    if counts.is_empty() {
        format!("[RESOLVED:{}]", message.alerts.len())
    } else {
        format!("[FIRING:{}]", counts.join(", "))
    }
}

/// The value of a label, where all alerts have the same.
fn shared<'a>(message: &'a Message, label: &str) -> Option<&'a str> {
    let first = message.alerts.first()?.labels.get(label)?;
    message.alerts.iter().all(|alert| alert.labels.get(label) == Some(first)).then_some(first)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    words.join(" ").chars().take(SUBJECT_CHARS_MAX).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::tests::{alert, message, resolved};
    use watchfire_core::Severity::{Critical, Warning};

    #[test]
    fn subjects_say_what_where_and_how_bad() {
        let cases = [
            (vec![alert(3, Critical)], "[FIRING:1 critical] GpuTooHot h1 gpu 3"),
            (
                vec![alert(3, Critical), alert(5, Warning), alert(6, Warning)],
                "[FIRING:1 critical, 2 warning] GpuTooHot h1",
            ),
            (vec![alert(3, Critical), resolved(alert(3, Warning))], "[FIRING:1 critical] GpuTooHot h1 gpu 3"),
            (vec![resolved(alert(3, Critical)), resolved(alert(5, Warning))], "[RESOLVED:2] GpuTooHot h1"),
            (vec![], "[RESOLVED:0] 0 alerts"),
        ];
        for (alerts, subject) in cases {
            assert_eq!(title(&message(alerts)), subject);
        }
        let mut other = alert(3, Critical);
        other.labels.insert("alertname".into(), "GpuLost".into());
        assert_eq!(title(&message(vec![alert(3, Critical), other])), "[FIRING:2 critical] 2 alerts h1 gpu 3");
    }

    #[test]
    fn the_text_is_short_and_complete() {
        let mut hot = alert(3, Critical);
        hot.note = Some("max of 12 samples".into());
        hot.annotations.insert("runbook_url".into(), "https://runbooks.example/gpu".into());
        let over = resolved(alert(5, Warning));
        let mail = render(&message(vec![hot, over]), "https://watchfire.example", &Templates::default()).unwrap();
        insta::assert_snapshot!(mail.text, @r"
        [FIRING:1 critical] GpuTooHot h1

        FIRING critical: GpuTooHot
          3 on h1 at 92.0 °C
          since:   2026-01-01 00:00:00 UTC
          value:   92
          cause:   thermal
          note:    max of 12 samples
          labels:  gpu=3, host=h1
          runbook: https://runbooks.example/gpu

        RESOLVED warning: GpuTooHot
          5 on h1 at 92.0 °C
          since:   2026-01-01 00:00:00 UTC
          ended:   2026-01-01 00:01:00 UTC
          value:   92
          cause:   thermal
          labels:  gpu=5, host=h1

        https://watchfire.example
        ");
    }

    #[test]
    fn html_is_escaped() {
        let mut evil = alert(3, Critical);
        evil.annotations.insert("summary".into(), "<script>alert(1)</script>".into());
        evil.labels.insert("host".into(), r#""><img src=x>"#.into());
        evil.annotations.insert("runbook_url".into(), "javascript:alert(1)".into());
        let html = render(&message(vec![evil.clone()]), "", &Templates::default()).unwrap().html;
        assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("javascript:"), "{html}");
        assert!(html.contains("&lt;script&gt;"), "{html}");
        evil.annotations.insert("runbook_url".into(), r#"https://x/"onclick="y"#.into());
        let html = render(&message(vec![evil]), "", &Templates::default()).unwrap().html;
        assert!(!html.contains(r#"/"onclick="#), "{html}");
    }

    #[test]
    fn own_templates_replace_ours() {
        let own = Templates {
            subject: Some("{{ alerts[0].name }}\n on {{ group_labels.host }}".into()),
            text: Some("{{ title }}".into()),
            html: Some("<b>{{ alerts[0].summary }}</b>".into()),
        };
        let mut one = alert(3, Critical);
        one.annotations.insert("summary".into(), "a<b".into());
        let mail = render(&message(vec![one]), "", &own).unwrap();
        assert_eq!(mail.subject, "GpuTooHot on h1");
        assert_eq!((&*mail.text, &*mail.html), ("GpuTooHot on h1", "<b>a&lt;b</b>"));
        assert!(check("{{ x").unwrap_err().contains("syntax error"));
        assert!(check("{{ x }}").is_ok());
    }

    #[test]
    fn ten_thousand_alerts_make_one_bounded_mail() {
        let alerts: Vec<Alert> = (0..10_000).map(|n| alert((n % 8) as u8, Critical)).collect();
        let mail = render(&message(alerts), "", &Templates::default()).unwrap();
        assert!(mail.text.contains("and 9900 more") && mail.html.contains("and 9900 more"));
        assert!(mail.html.len() < 100_000, "{} bytes", mail.html.len());
    }
}
