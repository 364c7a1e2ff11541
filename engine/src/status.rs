//! What a running engine tells of itself.

use serde::Serialize;

/// What a running engine tells of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Watchfire's version.
    pub version: String,
    /// The templates that are loaded.
    pub templates: Vec<TemplateReport>,
    /// Templates that could not be loaded: file and what is wrong.
    pub broken_templates: Vec<(String, String)>,
    /// The rules, in order of evaluation.
    pub rules: Vec<RuleReport>,
    /// Series that are known.
    pub series: usize,
    /// Samples taken since the start.
    pub samples_total: u64,
    /// Alerts that are pending.
    pub pending: usize,
    /// Alerts that fire.
    pub firing: usize,
    /// Bytes kept for series and rules, texts left out.
    pub bytes: usize,
    /// Whether alerts survive a restart; the reason where they do not.
    pub durable: Result<(), String>,
}

/// A loaded template.
#[derive(Clone, Debug, Serialize)]
pub struct TemplateReport {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How many rules it has.
    pub rules: usize,
}

/// How one rule does.
#[derive(Clone, Debug, Serialize)]
pub struct RuleReport {
    /// `template/alert`.
    pub id: String,
    /// Number of its rows.
    pub rows: usize,
    /// Ticks that were run.
    pub ticks_total: u64,
    /// Ticks that came too late to be run.
    pub ticks_missed_total: u64,
    /// Calls that failed.
    pub failures_total: u64,
    /// Why its last call failed.
    pub last_failure: Option<String>,
    /// Whether it is quarantined.
    pub quarantined: bool,
    /// Bytes kept for its rows.
    pub bytes: usize,
}
