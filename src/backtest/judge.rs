//! How well alerts fit to what happened.

use std::time::Duration;

use serde::Serialize;

use super::{Episode, Incident};

/// The fit of alerts and incidents.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// Alerts that told an incident.
    pub true_alerts: usize,
    /// Alerts that told none: their places among the episodes.
    pub false_alerts: Vec<usize>,
    /// Incidents that were told.
    pub told: usize,
    /// Incidents that were not: their places in the file.
    pub missed: Vec<usize>,
    /// True alerts among all alerts; none where there was no alert.
    pub precision: Option<f64>,
    /// Incidents told among all; none where there was no incident.
    pub recall: Option<f64>,
    /// The harmonic mean of both.
    pub f1: Option<f64>,
    /// Seconds from the first alert to the incident's start (before it is positive): 10 %, median, 90 %.
    pub lead_seconds: Option<[f64; 3]>,
}

/// Compares alerts with incidents; they belong together where they overlap within `slack` and agree in what both name.
pub fn score(episodes: &[Episode], incidents: &[Incident], slack: Duration) -> Score {
    let is_true = |episode: &Episode| incidents.iter().any(|incident| incident.is_told_by(episode, slack));
    let false_alerts: Vec<usize> = (0..episodes.len()).filter(|at| !is_true(&episodes[*at])).collect();
    let first = |incident: &Incident| episodes.iter().find(|episode| incident.is_told_by(episode, slack));
    let missed: Vec<usize> = (0..incidents.len()).filter(|at| first(&incidents[*at]).is_none()).collect();
    let lead = |incident: &Incident| {
        let episode = first(incident)?;
        Some((incident.start.as_millis() - episode.start.as_millis()) as f64 / 1000.0)
    };
    let mut leads: Vec<f64> = incidents.iter().filter_map(lead).collect();
    leads.sort_by(f64::total_cmp);
    let share = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
    let precision = share(episodes.len() - false_alerts.len(), episodes.len());
    let recall = share(incidents.len() - missed.len(), incidents.len());
    let f1 = precision.zip(recall).map(|(p, r)| if p + r == 0.0 { 0.0 } else { 2.0 * p * r / (p + r) });
    Score {
        true_alerts: episodes.len() - false_alerts.len(),
        told: incidents.len() - missed.len(),
        false_alerts,
        missed,
        precision,
        recall,
        f1,
        lead_seconds: (!leads.is_empty()).then(|| [0.1, 0.5, 0.9].map(|q| quantile(&leads, q))),
    }
}

/// The nearest value at or above a share of sorted ones.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(at.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use watchfire_engine::{Severity, Time};

    use super::*;

    fn episode(start: i64, end: i64, gpu: &str) -> Episode {
        Episode {
            rule: "t/Hot".into(),
            alert: "Hot".into(),
            labels: [("gpu".to_owned(), gpu.to_owned())].into(),
            severity: Severity::Warning,
            cause: None,
            start: Time::from_millis(start * 1000),
            end: Time::from_millis(end * 1000),
            open: false,
            value: 1.0,
        }
    }

    fn incident(start: i64, end: i64, gpu: &str) -> Incident {
        let at = |seconds: i64| Time::from_millis(seconds * 1000);
        Incident {
            line: 2,
            start: at(start),
            end: at(end),
            alert: None,
            cause: None,
            labels: [("gpu".to_owned(), gpu.to_owned())].into(),
        }
    }

    #[test]
    fn overlap_and_labels_decide_and_lead_is_positive_before_the_start() {
        let episodes = [episode(50, 200, "0"), episode(150, 160, "1"), episode(500, 510, "0")];
        let incidents = [incident(100, 200, "0"), incident(900, 950, "0")];
        let score = score(&episodes, &incidents, Duration::ZERO);
        assert_eq!((score.true_alerts, score.false_alerts, score.told, score.missed), (1, vec![1, 2], 1, vec![1]));
        assert_eq!((score.recall, score.lead_seconds), (Some(0.5), Some([50.0; 3])));
        assert!((score.precision.unwrap_or(0.0) - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_to_divide_by_is_no_number() {
        let none = score(&[], &[], Duration::ZERO);
        assert_eq!((none.precision, none.recall, none.f1, none.lead_seconds), (None, None, None, None));
        let late = score(&[episode(210, 220, "0")], &[incident(100, 200, "0")], Duration::from_secs(10));
        assert_eq!((late.f1, late.lead_seconds), (Some(1.0), Some([-110.0; 3])));
    }
}
