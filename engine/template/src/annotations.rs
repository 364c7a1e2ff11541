//! Texts for people, rendered with MiniJinja.

use minijinja::{Environment, Value, context};
use watchfire_core::AlertView;
use watchfire_door::{Errors, Node};

/// The longest text that is kept, bytes; more is cut.
pub const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The `annotations:` of a rule: name and template text.
#[derive(Clone, Debug, Default)]
pub struct Annotations(Vec<(String, String)>);

/// What a text may speak of.
pub type Context = AlertView;

impl Annotations {
    /// Reads them; a text that does not parse is an error with its place.
    pub fn read(node: &Node, errors: &mut Errors) -> Self {
        let Some(map) = node.map(errors) else { return Annotations::default() };
        let mut texts = Vec::new();
        for (name, _, node) in map.entries() {
            let Some(text) = node.text(errors) else { continue };
            match environment().template_from_str(&text) {
                Ok(_) => texts.push((name, text)),
                Err(error) => errors.add(node.place(), format!("the text does not parse: {}", words(&error))),
            }
        }
        Annotations(texts)
    }

    /// The texts about an alert. One that cannot be rendered says so: an alert is never lost for its words.
    pub fn render(&self, alert: &Context) -> Vec<(String, String)> {
        let environment = environment();
        let context = context_of(alert);
        let render = |text: &str| {
            let rendered = environment.render_str(text, &context);
            let rendered =
                rendered.unwrap_or_else(|error| format!("(this text could not be rendered: {})", words(&error)));
            cut(rendered)
        };
        self.0.iter().map(|(name, text)| (name.clone(), render(text))).collect()
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
    environment.add_filter("percent", |value: f64| format!("{:.1} %", value * 100.0));
    environment
        .add_filter("round", |value: f64, digits: Option<usize>| format!("{value:.*}", digits.unwrap_or(0).min(12)));
    environment.add_filter("humanize", |value: f64| humanize(value, 1000.0));
    environment.add_filter("humanize_bytes", |value: f64| format!("{}iB", humanize(value, 1024.0)));
    environment
}

fn humanize(value: f64, step: f64) -> String {
    let units = ["", "K", "M", "G", "T", "P"];
    let (mut value, mut at) = (value, 0);
    while value.abs() >= step && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    format!("{value:.1} {}", units[at])
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

fn words(error: &minijinja::Error) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}", error.kind())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use watchfire_core::{Cause, Labels, Severity, State, Time};

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
            ("{{ labels.gpu | percent }}", "(this text could not be rendered: invalid operation"),
        ];
        for (text, expected) in cases {
            let rendered = Annotations(vec![("summary".into(), text.into())]).render(&alert());
            assert!(rendered[0].1.starts_with(expected), "{text}: {}", rendered[0].1);
        }
    }

    #[test]
    fn a_text_is_bounded() {
        let long = Annotations(vec![("x".into(), "{% for n in range(9000) %}é{% endfor %}".into())]);
        assert!(long.render(&alert())[0].1.len() <= TEXT_BYTES_MAX + 3);
    }
}
