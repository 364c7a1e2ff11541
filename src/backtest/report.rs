//! Numbers of a replay.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use watchfire_engine::{Severity, Time};

use super::Episode;
use super::judge::quantile;

/// An alert that fires again within this after its end flaps.
pub const FLAP_WITHIN: Duration = Duration::from_secs(15 * 60);
/// A rule that fires for more than this share of the time tells nothing.
const ALWAYS: f64 = 0.95;

/// One rule at one severity.
#[derive(Clone, Debug, Serialize)]
pub struct RuleNumbers {
    /// `template/alert`.
    pub rule: String,
    /// The worst severity of these alerts.
    pub severity: &'static str,
    /// How many alerts.
    pub alerts: usize,
    /// How many a day.
    pub per_day: f64,
    /// Seconds of firing, of all targets together.
    pub firing_seconds: f64,
    /// Seconds that half of them lasted at most.
    pub median_seconds: f64,
    /// Seconds that the longest lasted.
    pub longest_seconds: f64,
    /// How often one fired again within 15 minutes of its end.
    pub flaps: usize,
}

/// The numbers of a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Days from the first to the last sample.
    pub days: f64,
    /// Rules that fired, by name and severity.
    pub rules: Vec<RuleNumbers>,
    /// Rules that never fired.
    pub silent: Vec<String>,
    /// Rules one of whose targets fired nearly all the time.
    pub always: Vec<String>,
    /// Messages a day, by receiver.
    pub messages_per_day: BTreeMap<String, f64>,
    /// Calls of rules that failed, by rule.
    pub failures: BTreeMap<String, u64>,
}

/// Counts.
pub fn report(
    episodes: &[Episode],
    rules: &[String],
    messages: &BTreeMap<String, u64>,
    failures: &BTreeMap<String, u64>,
    span: (Time, Time),
) -> Report {
    let seconds = span.1.since(span.0).as_secs_f64().max(1.0);
    let days = seconds / 86_400.0;
    let mut groups: BTreeMap<(&str, Severity), Vec<&Episode>> = BTreeMap::new();
    episodes.iter().for_each(|one| groups.entry((&one.rule, one.severity)).or_default().push(one));
    let fired = |rule: &&String| episodes.iter().any(|one| one.rule == **rule);
    let mut always: Vec<String> =
        episodes.iter().filter(|one| lasted(one) > ALWAYS * seconds).map(|one| one.rule.clone()).collect();
    always.dedup();
    Report {
        days,
        rules: groups.into_iter().map(|((rule, severity), of)| numbers(rule, severity, &of, days)).collect(),
        silent: rules.iter().filter(|rule| !fired(rule)).cloned().collect(),
        always,
        messages_per_day: messages.iter().map(|(name, count)| (name.clone(), *count as f64 / days)).collect(),
        failures: failures.clone(),
    }
}

fn lasted(episode: &Episode) -> f64 {
    episode.end.since(episode.start).as_secs_f64()
}

fn numbers(rule: &str, severity: Severity, of: &[&Episode], days: f64) -> RuleNumbers {
    let mut lengths: Vec<f64> = of.iter().map(|one| lasted(one)).collect();
    lengths.sort_by(f64::total_cmp);
    RuleNumbers {
        rule: rule.to_owned(),
        severity: severity.as_str(),
        alerts: of.len(),
        per_day: of.len() as f64 / days,
        firing_seconds: lengths.iter().sum(),
        median_seconds: quantile(&lengths, 0.5),
        longest_seconds: lengths.last().copied().unwrap_or(0.0),
        flaps: flaps(of),
    }
}

fn flaps(of: &[&Episode]) -> usize {
    let mut ended: BTreeMap<&BTreeMap<String, String>, Time> = BTreeMap::new();
    let mut count = 0;
    for one in of {
        let before = ended.insert(&one.labels, one.end);
        count += usize::from(before.is_some_and(|end| one.start.since(end) <= FLAP_WITHIN));
    }
    count
}
