//! The metrics that Watchfire knows, as data (`metrics.csv`): unit, kind, and what readings are plausible.

use std::collections::HashMap;
use std::sync::LazyLock;

use watchfire_core::Scope;

use crate::table::{self, Row, TableError};

/// How the values of a metric behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows, until it is reset.
    Counter,
}

/// One metric that Watchfire knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, in base units.
    pub name: String,
    /// Its unit in words: `celsius`, `bytes`, `ratio`, `bool`, …
    pub unit: String,
    /// How its values behave, whatever type a page gives it.
    pub kind: Kind,
    /// Whose value it is.
    pub scope: Scope,
    /// What readings are believed.
    pub range: Range,
    /// One sentence for people.
    pub help: String,
}

/// The readings that are plausible: `min` to `max`, both included unless `min_outside`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The smallest; negative infinity for no bound.
    pub min: f64,
    /// Whether `min` itself is implausible.
    pub min_outside: bool,
    /// The largest; infinity for no bound.
    pub max: f64,
}

impl Range {
    /// Every reading.
    pub const ALL: Range = Range { min: f64::NEG_INFINITY, min_outside: false, max: f64::INFINITY };

    /// Whether `value` lies within. NaN does: it is an invalid reading, which is told as such.
    pub fn holds(self, value: f64) -> bool {
        let below = if self.min_outside { value <= self.min } else { value < self.min };
        !(below || value > self.max)
    }
}

/// The clock event reasons of NVML (nvml.h, `nvmlClocksEventReason…`): bit and the 0/1 metric that it becomes.
pub const THROTTLES: [(u64, &str); 9] = [
    (0x1, "gpu_throttle_idle"),
    (0x2, "gpu_throttle_app_clocks"),
    (0x4, "gpu_throttle_sw_power_cap"),
    (0x8, "gpu_throttle_hw_slowdown"),
    (0x10, "gpu_throttle_sync_boost"),
    (0x20, "gpu_throttle_sw_thermal"),
    (0x40, "gpu_throttle_hw_thermal"),
    (0x80, "gpu_throttle_hw_power_brake"),
    (0x100, "gpu_throttle_display_clock"),
];

const FILE: &str = "metrics.csv";
const COLUMNS: usize = 7;

static TABLE: LazyLock<Vec<Metric>> = LazyLock::new(|| read(include_str!("metrics.csv")).unwrap_or_default());
static BY_NAME: LazyLock<HashMap<&'static str, &'static Metric>> =
    LazyLock::new(|| all().iter().map(|metric| (metric.name.as_str(), metric)).collect());

/// All metrics, in the order of the file.
pub fn all() -> &'static [Metric] {
    &TABLE
}

/// The metric called `name`.
pub fn find(name: &str) -> Option<&'static Metric> {
    BY_NAME.get(name).copied()
}

/// Whether `value` is a reading to be believed. Of an unknown metric everything is.
pub fn plausible(name: &str, value: f64) -> bool {
    find(name).is_none_or(|metric| metric.range.holds(value))
}

fn read(text: &str) -> Result<Vec<Metric>, TableError> {
    table::rows(FILE, text, COLUMNS, COLUMNS)?.iter().map(metric).collect()
}

fn metric(row: &Row) -> Result<Metric, TableError> {
    let [name, unit, kind, scope, min, max, help] = row.cells.as_slice() else {
        return Err(row.error(FILE, format!("expected {COLUMNS} columns")));
    };
    let kind = match kind.as_str() {
        "gauge" => Kind::Gauge,
        "counter" => Kind::Counter,
        _ => return Err(row.error(FILE, format!("found kind {kind:?}, expected gauge or counter"))),
    };
    let scope = Scope::ALL.into_iter().find(|one| one.as_str() == scope);
    let scope = scope.ok_or_else(|| row.error(FILE, "the scope is none of host, gpu, device, job, rank"))?;
    let range = Range {
        min: bound(row, min.trim_start_matches('>'), f64::NEG_INFINITY)?,
        min_outside: min.starts_with('>'),
        max: bound(row, max, f64::INFINITY)?,
    };
    Ok(Metric { name: name.clone(), unit: unit.clone(), kind, scope, range, help: help.clone() })
}

fn bound(row: &Row, cell: &str, none: f64) -> Result<f64, TableError> {
    if cell.is_empty() {
        return Ok(none);
    }
    cell.parse().map_err(|_| row.error(FILE, format!("found bound {cell:?}, expected a number or nothing")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_and_names_are_unique_and_sound() {
        let table = read(include_str!("metrics.csv")).unwrap();
        assert_eq!(table.len(), BY_NAME.len(), "a name stands twice");
        for metric in &table {
            assert!(metric.range.min < metric.range.max, "{}", metric.name);
            assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
            assert_eq!(metric.unit == "ratio", metric.name.ends_with("_ratio"), "{}", metric.name);
            assert!(!metric.help.is_empty(), "{}", metric.name);
            let told = Scope::of_metric(&metric.name);
            assert!(told.is_none_or(|told| told == metric.scope), "{}", metric.name);
        }
        assert!(THROTTLES.iter().all(|(_, name)| find(name).is_some()));
    }

    #[test]
    fn readings_no_sensor_gives_are_implausible() {
        // NVIDIA/dcgm-exporter#312, intel/xpumanager#130.
        for value in [-40.0, 345.0, 82505.0, 200_000.0, 644_245_923.0, 4_278_190_080.0] {
            assert!(!plausible("gpu_temperature_celsius", value), "{value}");
        }
        for value in [-39.0, 0.0, 54.0, 150.0, f64::NAN] {
            assert!(plausible("gpu_temperature_celsius", value), "{value}");
        }
        assert!(!plausible("gpu_power_watts", 3.69e12));
        assert!(plausible("anything_else", 1e300));
    }

    #[test]
    fn a_bad_row_is_told_with_file_and_line() {
        let error = read("# x\na,b,wheel,gpu,0,1,help\n").unwrap_err();
        assert_eq!(error.to_string(), "metrics.csv:2: found kind \"wheel\", expected gauge or counter");
        let error = read("a,b,gauge,gpu,zero,1,help\n").unwrap_err();
        assert_eq!(error.to_string(), "metrics.csv:1: found bound \"zero\", expected a number or nothing");
    }
}
