//! CSV files: a row is one sample (columns `time`, `metric`, `value`) or, in the wide form, one value for each
//! column that is called like a known metric. All other columns are labels.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use csv::StringRecord;

use super::CsvColumn;
use super::error::{InputError, LINES_TOLD_MAX};
use super::time;
use super::timeline::{Rows, Unsorted};
use crate::exposition::{self, Kind, Label, LineError, Sample};
use crate::mapping::{Page, Tables};
use crate::metrics;

/// Makes a column the values of a metric that is not known.
const METRIC_PREFIX: &str = "metric:";

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Time,
    Metric,
    Value,
    /// The values of this metric.
    ValueOf(String),
    Label(String),
}

/// The samples of a file: each a series and a value.
#[derive(Debug, Default)]
pub(super) struct CsvRows {
    samples: Vec<(u32, f64)>,
    series: Vec<CsvSeries>,
    index: HashMap<String, u32>,
    times: Vec<(i64, u32)>,
}

#[derive(Debug)]
struct CsvSeries {
    raw: String,
    name: String,
    labels: Vec<Label<'static>>,
}

/// Reads a file.
pub(super) fn read(path: &Path, text: &[u8], columns: &[CsvColumn]) -> Result<Unsorted<CsvRows>, InputError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(text);
    let bad_file = |message: String| InputError::File { path: path.to_owned(), message };
    let header = reader.headers().map_err(|error| bad_file(error.to_string()))?.clone();
    let roles = roles(&header, columns).map_err(bad_file)?;
    let (mut rows, mut errors, mut count) = (CsvRows::default(), Vec::new(), 0);
    for record in reader.records() {
        let (line, outcome) = match record {
            Ok(record) => (record.position().map_or(0, csv::Position::line), rows.record(&record, &roles)),
            Err(error) => (error.position().map_or(0, csv::Position::line), Err((1, error.to_string()))),
        };
        if let Err((column, message)) = outcome {
            count += 1;
            if errors.len() < LINES_TOLD_MAX {
                errors.push(LineError { line, column, message });
            }
        }
    }
    if count > 0 {
        return Err(InputError::Lines { path: path.to_owned(), errors, count });
    }
    let times = std::mem::take(&mut rows.times);
    Ok(Unsorted { rows, times })
}

fn roles(header: &StringRecord, columns: &[CsvColumn]) -> Result<Vec<Role>, String> {
    let mut names: Vec<String> = header.iter().map(str::to_owned).collect();
    for CsvColumn { name, column } in columns {
        let at = header.iter().position(|one| one == column);
        let found = at.and_then(|at| names.get_mut(at)).ok_or_else(|| missing(column, header))?;
        found.clone_from(name);
    }
    let roles: Vec<Role> = names.into_iter().map(role).collect();
    check(&roles, header)?;
    Ok(roles)
}

fn missing(column: &str, header: &StringRecord) -> String {
    format!("there is no column {column:?}; found {}", list(header))
}

fn list(header: &StringRecord) -> String {
    header.iter().collect::<Vec<_>>().join(", ")
}

fn role(mut name: String) -> Role {
    match name.as_str() {
        "time" => Role::Time,
        "metric" => Role::Metric,
        "value" => Role::Value,
        _ if name.starts_with(METRIC_PREFIX) => Role::ValueOf(name.split_off(METRIC_PREFIX.len())),
        _ if metrics::find(&name).is_some() || Tables::built_in().knows(&name) => Role::ValueOf(name),
        _ => Role::Label(name),
    }
}

fn check(roles: &[Role], header: &StringRecord) -> Result<(), String> {
    let count = |role: &Role| roles.iter().filter(|one| *one == role).count();
    let (times, metrics, values) = (count(&Role::Time), count(&Role::Metric), count(&Role::Value));
    let wide = roles.iter().any(|role| matches!(role, Role::ValueOf(_)));
    match (times, metrics, values) {
        (1, 1, 1) => Ok(()),
        (1, 0, 0) if wide => Ok(()),
        (0, ..) => Err(format!("no column is called time; found {}; say which with --csv time=COLUMN", list(header))),
        (1, 0, 1) => Err("there is a column value and none called metric; say whose values they are with \
            --csv metric:NAME=value"
            .to_owned()),
        (1, 1, 0) => {
            Err("there is a column metric and none called value; say which with --csv value=COLUMN".to_owned())
        }
        (1, 0, 0) => Err(format!(
            "no column is called like a known metric; found {}; say which with --csv metric:NAME=COLUMN",
            list(header)
        )),
        _ => Err("a column time, metric or value stands twice".to_owned()),
    }
}

/// What is wrong with a row: the column where, from 1, and what.
type Fault = (usize, String);

impl CsvRows {
    fn record(&mut self, record: &StringRecord, roles: &[Role]) -> Result<(), Fault> {
        let cell = |role: &Role| {
            let at = roles.iter().position(|one| one == role)?;
            record.get(at).map(|text| (at + 1, text))
        };
        if record.len() > roles.len() {
            return Err((roles.len() + 1, format!("{} cells, the header has {}", record.len(), roles.len())));
        }
        let (at, text) = cell(&Role::Time).unwrap_or((1, ""));
        let time = time::millis(text).ok_or_else(|| (at, format!("found time {text:?}, expected {TIME_FORMS}")))?;
        if let Some((at, metric)) = cell(&Role::Metric) {
            if metric.is_empty() {
                return Err((at, "no metric is named".to_owned()));
            }
            let (at, value) = cell(&Role::Value).unwrap_or((at, ""));
            return self.sample(time, metric, value, at, record, roles);
        }
        for (at, role) in (1..).zip(roles) {
            if let (Role::ValueOf(metric), Some(value)) = (role, record.get(at - 1)) {
                self.sample(time, metric, value, at, record, roles)?;
            }
        }
        Ok(())
    }

    /// Adds a sample; an empty cell is none.
    fn sample(
        &mut self,
        time: i64,
        metric: &str,
        value: &str,
        at: usize,
        record: &StringRecord,
        roles: &[Role],
    ) -> Result<(), Fault> {
        if value.is_empty() {
            return Ok(());
        }
        let value =
            exposition::parse_value(value).ok_or_else(|| (at, format!("found {value:?}, expected a number")))?;
        let series = self.find(metric, record, roles);
        let row = u32::try_from(self.samples.len()).map_err(|_| (at, "too many samples in one file".to_owned()))?;
        self.samples.push((series, value));
        self.times.push((time, row));
        Ok(())
    }

    fn find(&mut self, metric: &str, record: &StringRecord, roles: &[Role]) -> u32 {
        let named = roles.iter().zip(record).filter_map(|(role, cell)| match role {
            Role::Label(name) if !cell.is_empty() => Some((name.as_str(), cell)),
            _ => None,
        });
        let labels: Vec<(&str, &str)> = named.collect();
        // Not the exposition's spelling, only a text that differs from series to series.
        let raw = format!("{metric} {labels:?}");
        if let Some(&at) = self.index.get(&raw) {
            return at;
        }
        let at = u32::try_from(self.series.len()).unwrap_or(u32::MAX);
        let owned = |(name, value): (&str, &str)| Label {
            name: Cow::Owned(name.to_owned()),
            value: Cow::Owned(value.to_owned()),
        };
        let labels = labels.into_iter().map(owned).collect();
        self.series.push(CsvSeries { raw: raw.clone(), name: metric.to_owned(), labels });
        self.index.insert(raw, at);
        at
    }
}

const TIME_FORMS: &str = "seconds or milliseconds since 1970, or 2026-01-01T00:00:00Z";

impl Rows for CsvRows {
    fn give(&self, row: u32, page: &mut Page<'_>) {
        let Some(&(series, value)) = self.samples.get(row as usize) else { return };
        let Some(series) = self.series.get(series as usize) else { return };
        page.take(&Sample {
            name: &series.name,
            labels: &series.labels,
            raw: &series.raw,
            value,
            value_text: "",
            timestamp: None,
            kind: Kind::Unknown,
            created: false,
        });
    }
}
