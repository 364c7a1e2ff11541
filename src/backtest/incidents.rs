//! What really happened, as a CSV file: `start,end` and any of `alert`, `cause` and labels.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use watchfire_engine::{Time, clock};

use super::Episode;

/// One thing that really happened.
#[derive(Clone, Debug, Serialize)]
pub struct Incident {
    /// Its line in the file.
    pub line: u64,
    /// When it began, milliseconds since 1970.
    #[serde(skip)]
    pub start: Time,
    /// When it was over.
    #[serde(skip)]
    pub end: Time,
    /// The alert that should have told it, where one is named.
    pub alert: Option<String>,
    /// Its cause, where one is named.
    pub cause: Option<String>,
    /// Where it happened.
    pub labels: BTreeMap<String, String>,
}

impl Incident {
    /// Whether an alert speaks of it: they overlap within `slack`, and what both name is the same.
    pub fn is_told_by(&self, episode: &Episode, slack: std::time::Duration) -> bool {
        let overlaps = episode.start <= self.end + slack && episode.end + slack >= self.start;
        let same =
            |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|wanted| found == Some(wanted));
        overlaps
            && same(&self.alert, Some(&episode.alert))
            && same(&self.cause, episode.cause.as_deref())
            && self.labels.iter().all(|(name, value)| episode.labels.get(name).is_none_or(|found| found == value))
    }
}

/// Reads a file. Times are RFC 3339 or seconds since 1970; an empty cell names nothing.
///
/// # Errors
/// All lines that cannot be read, with their places.
pub fn read(path: &Path) -> Result<Vec<Incident>, String> {
    let said = |line: u64, why: &str| format!("{}:{line}: {why}", path.display());
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path).map_err(|error| said(1, &error.to_string()))?;
    let names = reader.headers().map_err(|error| said(1, &error.to_string()))?.clone();
    if !["start", "end"].iter().all(|name| names.iter().any(|found| found == *name)) {
        return Err(said(
            1,
            "the first line must name the columns `start` and `end`; others are `alert`, `cause` and labels",
        ));
    }
    let (mut incidents, mut errors) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let line = record.as_ref().ok().and_then(|record| record.position()).map_or(0, csv::Position::line);
        let read = record.map_err(|error| error.to_string()).and_then(|record| incident(line, &names, &record));
        match read {
            Ok(incident) => incidents.push(incident),
            Err(why) => errors.push(said(line, &why)),
        }
    }
    if errors.is_empty() { Ok(incidents) } else { Err(errors.join("\n")) }
}

fn incident(line: u64, names: &csv::StringRecord, record: &csv::StringRecord) -> Result<Incident, String> {
    let mut cells: BTreeMap<String, String> = names
        .iter()
        .zip(record)
        .filter(|(_, cell)| !cell.is_empty())
        .map(|(n, c)| (n.to_owned(), c.to_owned()))
        .collect();
    let start = time(&cells.remove("start").unwrap_or_default())?;
    let end = time(&cells.remove("end").unwrap_or_default())?;
    if end < start {
        return Err("it ends before it starts".to_owned());
    }
    Ok(Incident { line, start, end, alert: cells.remove("alert"), cause: cells.remove("cause"), labels: cells })
}

fn time(text: &str) -> Result<Time, String> {
    let wrong =
        || format!("{text:?} is no time; expected RFC 3339, such as 2026-01-31T12:00:00Z, or seconds since 1970");
    if let Ok(seconds) = text.parse::<f64>() {
        let millis = (seconds * 1000.0).round();
        return if millis.abs() < 1e15 { Ok(Time::from_millis(millis as i64)) } else { Err(wrong()) };
    }
    clock::parse_rfc3339(text).map_err(|_| wrong())
}
