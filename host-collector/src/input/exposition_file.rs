//! Exposition text with a time on every sample: families one after the other, times over and over.

use std::path::Path;

use super::error::{InputError, LINES_TOLD_MAX};
use super::timeline::{Rows, Unsorted};
use crate::exposition::{self, Format, Limits, LineError, Options, Refused, Report, Sample};
use crate::mapping::Page;

/// A file's text. A row is the byte at which a sample begins: it is read again when its time comes, so that a
/// sample takes 16 bytes besides its text.
#[derive(Debug)]
pub(super) struct ExpositionRows {
    text: Vec<u8>,
    format: Format,
}

/// Reads a file and finds the time of each sample.
pub(super) fn read(path: &Path, text: Vec<u8>, format: Format) -> Result<Unsorted<ExpositionRows>, InputError> {
    let limits = Limits { samples: u64::MAX, errors_kept: LINES_TOLD_MAX, ..Limits::default() };
    let options = Options { format, limits, strict: false };
    let (mut times, mut timeless) = (Vec::new(), Vec::new());
    let begin = text.as_ptr().addr();
    let report = exposition::parse(&text, &options, &mut |sample| {
        let at = u32::try_from(sample.raw.as_ptr().addr() - begin).unwrap_or(u32::MAX);
        match sample.timestamp {
            _ if sample.created => {}
            Some(time) => times.push((time, at)),
            None => timeless.push(at),
        }
    });
    let report = report.map_err(|refused| InputError::File { path: path.to_owned(), message: hint(&refused) })?;
    check(path, &text, report, &timeless, format)?;
    Ok(Unsorted { rows: ExpositionRows { text, format }, times })
}

fn hint(refused: &Refused) -> String {
    match refused {
        Refused::Incomplete => format!("{refused}; was the file cut off? If it is Prometheus text, call it .prom"),
        _ => refused.to_string(),
    }
}

fn check(path: &Path, text: &[u8], report: Report, timeless: &[u32], format: Format) -> Result<(), InputError> {
    let count = report.error_count + timeless.len() as u64;
    if count == 0 {
        return Ok(());
    }
    let room = LINES_TOLD_MAX.saturating_sub(report.errors.len());
    let mut errors = report.errors;
    errors.extend(timeless.iter().take(room).map(|&at| no_time(text, at as usize, format)));
    errors.sort_by_key(|error| error.line);
    Err(InputError::Lines { path: path.to_owned(), errors, count })
}

fn no_time(text: &[u8], at: usize, format: Format) -> LineError {
    let before = text.get(..at).unwrap_or_default().iter().filter(|&&byte| byte == b'\n').count();
    let unit = if format == Format::Text { "milliseconds" } else { "seconds" };
    let message = format!("a sample without a time: a replay needs one behind every value, in {unit} since 1970");
    LineError { line: before as u64 + 1, column: 1, message }
}

impl Rows for ExpositionRows {
    fn give(&self, row: u32, page: &mut Page<'_>) {
        let rest = self.text.get(row as usize..).unwrap_or_default();
        let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let Ok(line) = std::str::from_utf8(line) else { return };
        let mut labels = Vec::new();
        if let Some(parts) = exposition::parse_line(line.trim_end_matches('\r'), self.format, &mut labels) {
            page.take(&Sample {
                name: &parts.name,
                labels: &labels,
                raw: parts.raw,
                value: parts.value,
                value_text: parts.value_text,
                timestamp: parts.timestamp,
                kind: exposition::Kind::Unknown,
                created: false,
            });
        }
    }
}
