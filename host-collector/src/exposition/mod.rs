//! Prometheus text 0.0.4 and OpenMetrics 1.0, read in one pass with names and labels borrowed from the page.
//!
//! A line that cannot be read is an error of that line alone: one bad label must not blind a whole page. The
//! parsers found on crates.io refuse the page at the first error and own what they read, so this one is ours.

mod cursor;
mod families;
mod line;
mod number;

use std::borrow::Cow;
use std::fmt;

use cursor::{Cursor, Fault};
use families::{Families, Found};
pub(crate) use line::Parts;

/// How a page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4: timestamps in milliseconds, no exemplars.
    Text,
    /// OpenMetrics 1.0: timestamps in seconds, exemplars, `# EOF` at the end.
    OpenMetrics,
}

impl Format {
    /// The format that a `Content-Type` header tells. A page without one is read as text.
    ///
    /// # Errors
    /// A type that is no exposition, such as HTML: the sentence says which.
    pub fn of_content_type(header: Option<&str>) -> Result<Format, String> {
        let header = header.unwrap_or("text/plain");
        let media = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media.as_str() {
            "application/openmetrics-text" => Ok(Format::OpenMetrics),
            "text/plain" | "" | "application/octet-stream" => Ok(Format::Text),
            "text/html" => Err("the answer is an HTML page (a login page?), expected metrics".to_owned()),
            other => Err(format!("the answer is {}, expected text/plain or OpenMetrics", line::found(other))),
        }
    }
}

/// The type that a page gives to a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// None, `unknown` or `untyped`.
    #[default]
    Unknown,
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Buckets, sum and count.
    Histogram,
    /// Buckets that may fall.
    GaugeHistogram,
    /// Quantiles, sum and count.
    Summary,
    /// Text in labels.
    Info,
    /// One of several states.
    StateSet,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Unknown,
        Kind::Counter,
        Kind::Gauge,
        Kind::Histogram,
        Kind::GaugeHistogram,
        Kind::Summary,
        Kind::Info,
        Kind::StateSet,
    ];

    /// The word in a `# TYPE` line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Unknown => "unknown",
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::GaugeHistogram => "gaugehistogram",
            Kind::Summary => "summary",
            Kind::Info => "info",
            Kind::StateSet => "stateset",
        }
    }

    fn has_suffix(self, suffix: &str) -> bool {
        match self {
            Kind::Histogram => matches!(suffix, "bucket" | "sum" | "count" | "created"),
            Kind::GaugeHistogram => matches!(suffix, "bucket" | "gsum" | "gcount"),
            Kind::Summary => matches!(suffix, "sum" | "count" | "created"),
            Kind::Counter => matches!(suffix, "total" | "created"),
            Kind::Info => suffix == "info",
            Kind::Gauge | Kind::StateSet | Kind::Unknown => false,
        }
    }
}

/// What a page may hold. Each limit has a default named here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Samples of one page; beyond them the page is refused.
    pub samples: u64,
    /// Labels of one sample; a sample with more is a line error.
    pub labels: usize,
    /// Bytes of one label value; a longer one is a line error.
    pub value_bytes: usize,
    /// Bytes of a metric's or label's name; a longer one is a line error.
    pub name_bytes: usize,
    /// Line errors that are kept with their text; all are counted.
    pub errors_kept: usize,
}

impl Limits {
    /// Samples of one page.
    pub const SAMPLES: u64 = 50_000;
    /// Labels of one sample.
    pub const LABELS: usize = 64;
    /// Bytes of one label value.
    pub const VALUE_BYTES: usize = 1024;
    /// Bytes of a name.
    pub const NAME_BYTES: usize = 512;
    /// Line errors kept with their text.
    pub const ERRORS_KEPT: usize = 20;
}

impl Limits {
    /// For text whose length something else bounds.
    pub(crate) const NONE: Limits = Limits {
        samples: u64::MAX,
        labels: usize::MAX,
        value_bytes: usize::MAX,
        name_bytes: usize::MAX,
        errors_kept: Limits::ERRORS_KEPT,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            samples: Limits::SAMPLES,
            labels: Limits::LABELS,
            value_bytes: Limits::VALUE_BYTES,
            name_bytes: Limits::NAME_BYTES,
            errors_kept: Limits::ERRORS_KEPT,
        }
    }
}

/// One label of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its value, escapes undone; borrowed where there was none.
    pub value: Cow<'a, str>,
}

/// One sample of a page.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// Its labels, in the order of the page, names unique.
    pub labels: &'a [Label<'a>],
    /// Name and labels as they are written: the same text is the same series.
    pub raw: &'a str,
    /// Its value.
    pub value: f64,
    /// The value as it is written: a bit mask needs more digits than a double has.
    pub value_text: &'a str,
    /// Milliseconds since the Unix epoch, where the page gives a time.
    pub timestamp: Option<i64>,
    /// The type that the page gives to its family.
    pub kind: Kind,
    /// It says when its series was created (`_created`), which is no measurement.
    pub created: bool,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The line, from 1.
    pub line: u64,
    /// The character within it, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// Why a page is refused as a whole. What was given to the sink of it must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// An HTML page.
    #[error("the answer is an HTML page (a login page?), expected metrics")]
    Html,
    /// OpenMetrics without its end.
    #[error("the page is incomplete: OpenMetrics ends with a line `# EOF`")]
    Incomplete,
    /// More samples than the limit.
    #[error("the page has more than {0} samples, the limit")]
    TooManySamples(u64),
    /// A bad line where all have to be good.
    #[error("the page has a bad line and must be strict: {0}")]
    BadLine(LineError),
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Format::Text { "Prometheus text" } else { "OpenMetrics" })
    }
}

/// What was read of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines of the page.
    pub lines: u64,
    /// Samples given to the sink.
    pub samples: u64,
    /// Lines that could not be read.
    pub error_count: u64,
    /// The first of them.
    pub errors: Vec<LineError>,
}

/// How a page is read.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How it is written.
    pub format: Format,
    /// What it may hold.
    pub limits: Limits,
    /// Whether one bad line refuses the page.
    pub strict: bool,
}

impl Options {
    /// The default limits, bad lines tolerated.
    pub fn new(format: Format) -> Self {
        Options { format, limits: Limits::default(), strict: false }
    }
}

/// Reads a page and gives each sample to `sink`, in order.
///
/// # Errors
/// The page is refused as a whole; whatever the sink was given must not be used.
pub fn parse(page: &[u8], options: &Options, sink: &mut impl FnMut(Sample<'_>)) -> Result<Report, Refused> {
    let page = page.strip_prefix(b"\xef\xbb\xbf").unwrap_or(page);
    if page.trim_ascii_start().starts_with(b"<") {
        return Err(Refused::Html);
    }
    if options.format == Format::OpenMetrics && !is_complete(page) {
        return Err(Refused::Incomplete);
    }
    let mut reader = Reader { options, report: Report::default(), families: Families::default(), labels: Vec::new() };
    let mut rest = page;
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| byte == b'\n');
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(1..).unwrap_or_default();
        reader.report.lines += 1;
        let at_end = rest.trim_ascii().is_empty();
        if let Err(fault) = reader.line(line, end.is_some(), at_end, sink) {
            reader.fault(line, &fault)?;
        }
        if reader.report.samples > options.limits.samples {
            return Err(Refused::TooManySamples(options.limits.samples));
        }
    }
    Ok(reader.report)
}

fn is_complete(page: &[u8]) -> bool {
    let end = page.trim_ascii_end();
    end.strip_suffix(EOF.as_bytes()).is_some_and(|before| before.is_empty() || before.ends_with(b"\n"))
}

/// The last line of OpenMetrics.
const EOF: &str = "# EOF";

struct Reader<'a, 'o> {
    options: &'o Options,
    report: Report,
    families: Families<'a>,
    /// Reused from line to line.
    labels: Vec<Label<'a>>,
}

impl<'a> Reader<'a, '_> {
    fn line(
        &mut self,
        line: &'a [u8],
        ended: bool,
        at_end: bool,
        sink: &mut impl FnMut(Sample<'_>),
    ) -> Result<(), Fault> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line).map_err(|error| (error.valid_up_to(), "invalid UTF-8".into()))?;
        let format = self.options.format;
        if !ended && format == Format::Text {
            // Half a number looks like a number.
            return Err((text.len(), "unexpected end of the page within a line".into()));
        }
        match text.trim_ascii_start().bytes().next() {
            None => Ok(()),
            Some(b'#') if format == Format::OpenMetrics && text == EOF && !at_end => {
                Err((0, "text follows behind \"# EOF\"".into()))
            }
            Some(b'#') => self.families.comment(text, format),
            Some(_) => self.sample(text, sink),
        }
    }

    fn sample(&mut self, text: &'a str, sink: &mut impl FnMut(Sample<'_>)) -> Result<(), Fault> {
        let parts = line::sample(text, self.options.format, &self.options.limits, &mut self.labels)?;
        let found = self.families.sample(&parts.name);
        check_kind(&parts, found.kind, &self.labels)?;
        self.report.samples += 1;
        sink(whole(&parts, &self.labels, found));
        Ok(())
    }

    fn fault(&mut self, line: &[u8], fault: &Fault) -> Result<(), Refused> {
        let error = located(self.report.lines, line, fault);
        if self.options.strict {
            return Err(Refused::BadLine(error));
        }
        self.report.error_count += 1;
        if self.report.errors.len() < self.options.limits.errors_kept {
            self.report.errors.push(error);
        }
        Ok(())
    }
}

fn located(line: u64, text: &[u8], (at, message): &Fault) -> LineError {
    let before = text.get(..*at).unwrap_or(text);
    LineError { line, column: String::from_utf8_lossy(before).chars().count() + 1, message: message.to_string() }
}

fn whole<'s>(parts: &'s Parts<'s>, labels: &'s [Label<'s>], found: Found) -> Sample<'s> {
    Sample {
        name: &parts.name,
        labels,
        raw: parts.raw,
        value: parts.value,
        value_text: parts.value_text,
        timestamp: parts.timestamp,
        kind: found.kind,
        created: found.created,
    }
}

/// What the types `histogram` and `summary` demand of a sample.
fn check_kind(parts: &Parts<'_>, kind: Kind, labels: &[Label<'_>]) -> Result<(), Fault> {
    let bound = match kind {
        Kind::Histogram | Kind::GaugeHistogram => "le",
        Kind::Summary => "quantile",
        _ => return Ok(()),
    };
    let label = labels.iter().find(|label| label.name == bound);
    if label.is_some_and(|label| number::value(&label.value).is_none()) {
        return Err((0, format!("expected float as value of label {bound:?}").into()));
    }
    let counts = parts.name.ends_with("_count") || parts.name.ends_with("_bucket");
    if kind == Kind::Histogram && counts && parts.value < 0.0 {
        return Err((0, format!("negative count of histogram {}", line::found(&parts.name)).into()));
    }
    Ok(())
}

/// Reads one sample line that was read before, without its family.
pub(crate) fn parse_line<'a>(line: &'a str, format: Format, labels: &mut Vec<Label<'a>>) -> Option<Parts<'a>> {
    line::sample(line, format, &Limits::NONE, labels).ok()
}

/// Reads a series such as `name{label="value"}` and answers its name and what stands behind it.
/// An error is the byte where and what is wrong.
pub(crate) fn parse_series<'a>(
    text: &'a str,
    labels: &mut Vec<Label<'a>>,
) -> Result<(Cow<'a, str>, &'a str), (usize, String)> {
    let mut cursor = Cursor::new(text);
    let name = line::series(&mut cursor, &Limits::NONE, labels).map_err(|(at, why)| (at, why.into_owned()))?;
    Ok((name, cursor.rest()))
}

/// Reads a label set such as `{label="value"}` and answers what stands behind it.
pub(crate) fn parse_labels<'a>(text: &'a str, labels: &mut Vec<Label<'a>>) -> Result<&'a str, (usize, String)> {
    let mut cursor = Cursor::new(text);
    line::labels(&mut cursor, &Limits::NONE, labels).map_err(|(at, why)| (at, why.into_owned()))?;
    Ok(cursor.rest())
}

/// Reads a text in quotes; none where there is nothing.
pub(crate) fn parse_quoted(text: &str) -> Result<Option<Cow<'_, str>>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut cursor = Cursor::new(text);
    let quoted = cursor.quoted().map_err(|(_, why)| why.into_owned())?;
    if cursor.rest().is_empty() {
        Ok(Some(quoted))
    } else {
        Err(format!("found {:?} behind the quotes", cursor.rest()))
    }
}

/// Reads a number as sample values are written.
pub(crate) fn parse_value(text: &str) -> Option<f64> {
    number::value(text)
}

#[cfg(test)]
mod tests;
