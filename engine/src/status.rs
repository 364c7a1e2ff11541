//! What a running engine tells of itself.

use std::collections::BTreeMap;

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
    /// Series left out because the engine was full.
    pub series_refused_total: u64,
    /// Targets left out because a rule was full.
    pub rows_refused_total: u64,
    /// Messages and transitions lost because the storage could not be written for too long.
    pub messages_lost_total: u64,
    /// Transitions that left the history because it was full or they were too old.
    pub history_dropped_total: u64,
    /// The alerts that fire, worst first, at most [`Status::ALERTS_MAX`].
    pub alerts: Vec<AlertReport>,
}

impl Status {
    /// The most alerts that a status lists; `/api/v1/alerts` has all.
    pub const ALERTS_MAX: usize = 100;
}

/// One alert that fires.
#[derive(Clone, Debug, Serialize)]
pub struct AlertReport {
    /// Its name.
    pub alert: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// `firing` or `unknown`.
    pub state: String,
    /// How bad.
    pub severity: String,
    /// Since when, in RFC 3339.
    pub since: String,
    /// Whether it stands still because its rule is quarantined.
    pub stale: bool,
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
    /// Targets left out because it was full.
    pub rows_refused_total: u64,
    /// Events that belong to none of its targets.
    pub events_unplaced_total: u64,
    /// Bytes kept for its rows.
    pub bytes: usize,
    /// How often each of its limits was hit, by name: calls that failed at it, and what was cut or dropped.
    pub limit_hits: std::collections::BTreeMap<String, u64>,
    /// Calls for evidence that failed; the alert went out without it.
    pub explain_failures_total: u64,
}
