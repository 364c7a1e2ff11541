//! Texts for people, rendered with MiniJinja.

use std::io;

use minijinja::{Environment, Error, ErrorKind, Template, Value, context};
use watchfire_core::{AlertView, Labels, Severity, State, Time};
use watchfire_door::{Errors, Node, nearest};

/// The longest text that is kept, bytes; rendering ends there, and a mark is added.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The most steps of MiniJinja that one text may take: it is rendered while other alerts wait.
pub const TEXT_STEPS_MAX: u64 = 100_000;

/// What a text may speak of.
const NAMES: [&str; 7] = ["labels", "alert", "template", "severity", "cause", "note", "value"];

/// The `annotations:` of a rule: name and template text.
#[derive(Clone, Debug, Default)]
pub struct Annotations(Vec<(String, String)>);

/// What a text may speak of.
pub type Context = AlertView;

impl Annotations {
    /// Reads them; a text that does not parse, or that asks for what there is not, is an error with its place.
    pub fn read(node: &Node, errors: &mut Errors) -> Self {
        let Some(map) = node.map(errors) else { return Annotations::default() };
        let mut texts = Vec::new();
        for (name, _, node) in map.entries() {
            let Some(text) = node.text(errors) else { continue };
            match environment().template_from_str(&text) {
                Ok(template) => check(&template, &node, errors),
                Err(error) => errors.add(node.place(), format!("the text does not parse: {}", words(&error))),
            }
            texts.push((name, text));
        }
        Annotations(texts)
    }

    /// The texts about an alert. One that cannot be rendered says so: an alert is never lost for its words.
    pub fn render(&self, alert: &Context) -> Vec<(String, String)> {
        let environment = environment();
        let context = context_of(alert);
        self.0.iter().map(|(name, text)| (name.clone(), render(&environment, text, &context))).collect()
    }
}

fn render(environment: &Environment<'_>, text: &str, context: &Value) -> String {
    let mut out = Bounded::default();
    let template = environment.template_from_str(text);
    let rendered = template.and_then(|template| template.render_captured_to(context, &mut out).map(drop));
    match rendered {
        Err(error) if !out.is_full() => format!("(this text could not be rendered: {})", words(&error)),
        _ => cut(String::from_utf8_lossy(&out.0).into_owned()),
    }
}

/// What was written, up to one byte more than is kept; then writing fails, which ends the rendering.
#[derive(Default)]
struct Bounded(Vec<u8>);

impl Bounded {
    fn is_full(&self) -> bool {
        self.0.len() > TEXT_BYTES_MAX
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = TEXT_BYTES_MAX + 1 - self.0.len();
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        if taken < bytes.len() { Err(io::ErrorKind::WriteZero.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses names that no alert has, and what a trial with an alert of each severity shows to be unknown.
fn check(template: &Template<'_, '_>, node: &Node, errors: &mut Errors) {
    let environment = environment();
    let globals: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
    for name in template.undeclared_variables(false) {
        if NAMES.contains(&name.as_str()) || globals.contains(&name.as_str()) {
            continue;
        }
        let message = format!("the text asks for `{name}`; there is {}", NAMES.join(", "));
        match nearest(&name, NAMES) {
            Some(near) => errors.hint(node.place(), message, format!("did you mean `{near}`?")),
            None => errors.hint(node.place(), message, format!("a label is written `labels.{name}`")),
        }
    }
    for severity in Severity::ALL {
        if let Err(error) = template.render_captured_to(context_of(&sample(severity)), Bounded::default())
            && is_certain(error.kind())
        {
            errors.add(node.place(), format!("the text cannot be rendered: {}", words(&error)));
        }
    }
}

/// Whether an error comes of the text alone, whatever the alert.
fn is_certain(kind: ErrorKind) -> bool {
    use ErrorKind::{OutOfFuel, TooManyArguments, UnknownFilter, UnknownFunction, UnknownMethod, UnknownTest};
    matches!(kind, OutOfFuel | TooManyArguments | UnknownFilter | UnknownFunction | UnknownMethod | UnknownTest)
}

/// An alert for the trial of a text.
fn sample(severity: Severity) -> AlertView {
    AlertView {
        fingerprint: 0,
        rule: "".into(),
        template: "".into(),
        alert: "".into(),
        labels: Labels::default(),
        state: State::Firing,
        severity,
        value: 1.0,
        cause: None,
        note: None,
        active_at: Time::EPOCH,
        starts_at: Time::EPOCH,
        ends_at: None,
        reason: None,
        stale: false,
    }
}

fn context_of(alert: &Context) -> Value {
    let labels = Value::from_pairs(alert.labels.iter());
    context! {
        labels,
        alert => &*alert.alert,
        template => &*alert.template,
        severity => alert.severity.as_str(),
        cause => alert.cause.map_or("", |cause| cause.as_str()),
        note => alert.note.as_deref().unwrap_or_default(),
        value => alert.value,
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(TEXT_STEPS_MAX));
    environment.add_filter("percent", |value: f64| format!("{:.1} %", value * 100.0));
    environment
        .add_filter("round", |value: f64, digits: Option<usize>| format!("{value:.*}", digits.unwrap_or(0).min(12)));
    environment.add_filter("humanize", |value: f64| humanize(value, 1000.0, ["", "k", "M", "G", "T", "P"]));
    environment
        .add_filter("humanize_bytes", |value: f64| humanize(value, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]));
    environment
}

/// With one digit behind the point, in the largest unit of which there is at least one once rounded.
fn humanize(value: f64, step: f64, units: [&str; 6]) -> String {
    let (mut value, mut at) = (value, 0);
    while value.abs() >= step - 0.05 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    format!("{value:.1} {}", units[at]).trim_end().to_owned()
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn words(error: &Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}", error.kind())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use watchfire_core::Cause;

    fn alert() -> AlertView {
        AlertView {
            fingerprint: 1,
            rule: "t/Hot".into(),
            template: "t".into(),
            alert: "Hot".into(),
            labels: Labels::new([("gpu", "3"), ("host", "h1")]),
            state: State::Firing,
            severity: Severity::Warning,
            value: 0.1234,
            cause: Some(Cause::Thermal),
            note: Some("it was hot".into()),
            active_at: Time::EPOCH,
            starts_at: Time::EPOCH,
            ends_at: None,
            reason: None,
            stale: false,
        }
    }

    #[test]
    fn texts_speak_of_the_alert() {
        let cases = [
            ("GPU {{ labels.gpu }} on {{ labels.host }}", "GPU 3 on h1"),
            ("{{ value | percent }} {{ value | round(2) }}", "12.3 % 0.12"),
            ("{{ severity }} {{ cause }} {{ alert }} {{ note }}", "warning thermal Hot it was hot"),
            ("[{{ labels.nothing }}]", "[]"),
            ("{{ 85899345920 | humanize_bytes }}", "80.0 GiB"),
            ("{{ 512 | humanize_bytes }}|{{ 1023.99 | humanize_bytes }}", "512.0 B|1.0 KiB"),
            ("{{ 7 | humanize }}|{{ 999.99 | humanize }}|{{ -1234 | humanize }}", "7.0|1.0 k|-1.2 k"),
            ("{{ labels.gpu | percent }}", "(this text could not be rendered: invalid operation"),
        ];
        for (text, expected) in cases {
            let rendered = Annotations(vec![("summary".into(), text.into())]).render(&alert());
            assert!(rendered[0].1.starts_with(expected), "{text}: {}", rendered[0].1);
        }
    }

    #[test]
    fn a_text_is_bounded() {
        let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}";
        let ends = "{% endfor %}{% endfor %}{% endfor %}";
        let rendered = |text: String| Annotations(vec![("x".into(), text)]).render(&alert()).remove(0).1;
        let long = rendered(format!("{loops}é{ends}"));
        assert!((TEXT_BYTES_MAX..=TEXT_BYTES_MAX + 3).contains(&long.len()) && long.ends_with("é…"), "{}", long.len());
        let whole = rendered("x".repeat(TEXT_BYTES_MAX));
        assert_eq!(whole, "x".repeat(TEXT_BYTES_MAX));
        assert_eq!(rendered(format!("{loops}{ends}")), "(this text could not be rendered: engine ran out of fuel)");
    }
}
