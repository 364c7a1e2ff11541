//! One sample line: series, value, time, exemplar.

use std::borrow::Cow;

use super::cursor::{Cursor, Fault};
use super::{Format, Label, Limits, number};

/// The parts of a sample line.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub name: Cow<'a, str>,
    /// The series as it is written: name and labels.
    pub raw: &'a str,
    pub value: f64,
    pub value_text: &'a str,
    /// Milliseconds since the Unix epoch.
    pub timestamp: Option<i64>,
}

/// How much of a wrong text an error repeats, in characters.
const FOUND_MAX: usize = 40;

/// Reads one sample line; its labels go to `labels`.
pub(super) fn sample<'a>(
    line: &'a str,
    format: Format,
    limits: &Limits,
    labels: &mut Vec<Label<'a>>,
) -> Result<Parts<'a>, Fault> {
    let mut cursor = Cursor::new(line);
    cursor.blanks();
    let start = cursor.at;
    let name = series(&mut cursor, limits, labels)?;
    let raw = cursor.since(start).trim_end();
    cursor.blanks();
    let (value, value_text) = value(&mut cursor)?;
    cursor.blanks();
    let timestamp = timestamp(&mut cursor, format)?;
    cursor.blanks();
    tail(&mut cursor, format, limits)?;
    Ok(Parts { name, raw, value, value_text, timestamp })
}

/// Reads a series: a name, labels, or both in braces where the name is quoted.
pub(super) fn series<'a>(
    cursor: &mut Cursor<'a>,
    limits: &Limits,
    labels: &mut Vec<Label<'a>>,
) -> Result<Cow<'a, str>, Fault> {
    let start = cursor.at;
    labels.clear();
    let bare = cursor.metric_name();
    let mut name = (!bare.is_empty()).then_some(Cow::Borrowed(bare));
    cursor.blanks();
    if cursor.eat(b'{') {
        label_set(cursor, limits, &mut name, labels)?;
    }
    let name = name.ok_or_else(|| (start, "invalid metric name".into()))?;
    if name.len() > limits.name_bytes {
        return Err((start, over("the metric name", name.len(), "bytes", limits.name_bytes)));
    }
    Ok(name)
}

/// Reads a label set in braces that names no metric.
pub(super) fn labels<'a>(cursor: &mut Cursor<'a>, limits: &Limits, labels: &mut Vec<Label<'a>>) -> Result<(), Fault> {
    let start = cursor.at;
    labels.clear();
    if !cursor.eat(b'{') {
        return Err((start, format!("expected '{{', found {}", found(cursor.rest())).into()));
    }
    let mut name = None;
    label_set(cursor, limits, &mut name, labels)?;
    if name.is_some() { Err((start, "a metric name where only labels belong".into())) } else { Ok(()) }
}

fn label_set<'a>(
    cursor: &mut Cursor<'a>,
    limits: &Limits,
    name: &mut Option<Cow<'a, str>>,
    labels: &mut Vec<Label<'a>>,
) -> Result<(), Fault> {
    loop {
        cursor.blanks();
        if cursor.eat(b'}') {
            return Ok(());
        }
        one_label(cursor, limits, name, labels)?;
        cursor.blanks();
        if !cursor.eat(b',') && cursor.peek() != Some(b'}') {
            return Err((cursor.at, format!("expected ',' or '}}', found {}", found(cursor.rest())).into()));
        }
    }
}

fn one_label<'a>(
    cursor: &mut Cursor<'a>,
    limits: &Limits,
    metric: &mut Option<Cow<'a, str>>,
    labels: &mut Vec<Label<'a>>,
) -> Result<(), Fault> {
    let start = cursor.at;
    let quoted = cursor.peek() == Some(b'"');
    let name = if quoted { cursor.quoted()? } else { Cow::Borrowed(cursor.label_name()) };
    if name.is_empty() {
        return Err((start, format!("invalid label name at {}", found(cursor.rest())).into()));
    }
    cursor.blanks();
    if quoted && matches!(cursor.peek(), Some(b',' | b'}')) {
        let second = metric.replace(name).is_some();
        return if second { Err((start, "multiple metric names".into())) } else { Ok(()) };
    }
    if !cursor.eat(b'=') {
        return Err((cursor.at, format!("expected '=' after label name, found {}", found(cursor.rest())).into()));
    }
    cursor.blanks();
    let value = cursor.quoted()?;
    let label = Label { name, value };
    admit(&label, limits, labels).map_err(|message| (start, message))?;
    labels.push(label);
    Ok(())
}

fn admit(label: &Label<'_>, limits: &Limits, labels: &[Label<'_>]) -> Result<(), Cow<'static, str>> {
    let Label { name, value } = label;
    if name == "__name__" {
        return Err("label name \"__name__\" is reserved".into());
    }
    if labels.iter().any(|other| other.name == *name) {
        return Err(format!("duplicate label name {}", found(name)).into());
    }
    if labels.len() >= limits.labels {
        return Err(over("this sample", labels.len() + 1, "labels or more", limits.labels));
    }
    if name.len() > limits.name_bytes {
        return Err(over("the label name", name.len(), "bytes", limits.name_bytes));
    }
    if value.len() > limits.value_bytes {
        return Err(over(&format!("the value of label {name}"), value.len(), "bytes", limits.value_bytes));
    }
    Ok(())
}

fn over(what: &str, has: usize, unit: &str, limit: usize) -> Cow<'static, str> {
    format!("{what} has {has} {unit}, the limit is {limit}").into()
}

fn value<'a>(cursor: &mut Cursor<'a>) -> Result<(f64, &'a str), Fault> {
    let start = cursor.at;
    let text = cursor.token();
    let wrong = || (start, format!("expected float as value, found {}", found(text)).into());
    Ok((number::value(text).ok_or_else(wrong)?, text))
}

fn timestamp(cursor: &mut Cursor<'_>, format: Format) -> Result<Option<i64>, Fault> {
    if matches!(cursor.peek(), None | Some(b'#')) {
        return Ok(None);
    }
    let start = cursor.at;
    let text = cursor.token();
    let (millis, expected) = match format {
        Format::Text => (number::millis(text), "integer (milliseconds)"),
        Format::OpenMetrics => (number::seconds(text), "number (seconds)"),
    };
    let wrong = || (start, format!("expected {expected} as timestamp, found {}", found(text)).into());
    millis.ok_or_else(wrong).map(Some)
}

/// What may stand behind a sample: nothing, in OpenMetrics an exemplar, which is checked and let go.
fn tail(cursor: &mut Cursor<'_>, format: Format, limits: &Limits) -> Result<(), Fault> {
    let start = cursor.at;
    match (cursor.peek(), format) {
        (None, _) => Ok(()),
        (Some(b'#'), Format::OpenMetrics) => exemplar(cursor, limits),
        (Some(b'#'), Format::Text) => Err((start, "an exemplar in the text format: only OpenMetrics has them".into())),
        _ => Err((start, format!("spurious text after timestamp: {}", found(cursor.rest())).into())),
    }
}

fn exemplar(cursor: &mut Cursor<'_>, limits: &Limits) -> Result<(), Fault> {
    cursor.at += 1;
    cursor.blanks();
    labels(cursor, limits, &mut Vec::new())?;
    cursor.blanks();
    value(cursor)?;
    cursor.blanks();
    timestamp(cursor, Format::OpenMetrics)?;
    cursor.blanks();
    let rest = cursor.rest();
    if rest.is_empty() {
        Ok(())
    } else {
        Err((cursor.at, format!("spurious text after exemplar: {}", found(rest)).into()))
    }
}

/// A wrong text as an error repeats it: quoted and cut.
pub(super) fn found(text: &str) -> String {
    match text.char_indices().nth(FOUND_MAX) {
        _ if text.is_empty() => "nothing".to_owned(),
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
