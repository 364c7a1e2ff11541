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
    /// Templates that run in shadow, and what they would have done otherwise.
    pub shadow: Option<ShadowStatus>,
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
    /// What became of the state that another version of it kept, in words.
    pub state: Option<String>,
    /// How often each of its limits was hit, by name: calls that failed at it, and what was cut or dropped.
    pub limit_hits: std::collections::BTreeMap<String, u64>,
    /// Calls for evidence that failed; the alert went out without it.
    pub explain_failures_total: u64,
}

/// Templates that run in shadow.
#[derive(Clone, Debug, Serialize)]
pub struct ShadowStatus {
    /// The templates.
    pub templates: Vec<TemplateReport>,
    /// Templates that could not be loaded: file and what is wrong.
    pub broken_templates: Vec<(String, String)>,
    /// By rule: how much it differed from the one that watches.
    pub rules: Vec<ShadowRule>,
    /// The latest differences, newest last, at most 100.
    pub latest: Vec<ShadowDifference>,
}

/// How much a rule in shadow differed from the one that watches. A rule that only one side has differs whenever it fires.
#[derive(Clone, Debug, Serialize)]
pub struct ShadowRule {
    /// `template/alert`.
    pub id: String,
    /// How often only the rule that watches fired.
    pub only_old_total: u64,
    /// How often only the rule in shadow fired.
    pub only_new_total: u64,
    /// How often both fired with different severities.
    pub severity_differs_total: u64,
    /// How long any of these lasted, in seconds summed over targets.
    pub seconds_differing: f64,
    /// Number of its rows.
    pub rows: usize,
    /// Why its last call failed.
    pub last_failure: Option<String>,
    /// Whether it is quarantined.
    pub quarantined: bool,
}

/// One alert that began to differ.
#[derive(Clone, Debug, Serialize)]
pub struct ShadowDifference {
    /// When, in RFC 3339.
    pub time: String,
    /// `template/alert`.
    pub rule: String,
    /// The target.
    pub labels: BTreeMap<String, String>,
    /// `only_old`, `only_new` or `severity`.
    pub kind: String,
    /// The severity of the rule that watches, where it fires.
    pub old_severity: Option<String>,
    /// The severity of the rule in shadow, where it fires.
    pub new_severity: Option<String>,
    /// The value that the rule that watches shows.
    pub old_value: Option<f64>,
    /// The value that the rule in shadow shows.
    pub new_value: Option<f64>,
}
