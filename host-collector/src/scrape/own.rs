//! What a scraper says of itself.

use std::sync::Arc;
use std::time::Duration;

use watchfire_core::{Labels, Observation, Series, Time};

use super::ScrapeOutcome;
use crate::mapping::{Dropped, Reason};

/// The series of a scraper itself.
#[derive(Debug)]
pub(super) struct Own {
    up: Arc<Series>,
    duration: Arc<Series>,
    samples: Arc<Series>,
    line_errors: Arc<Series>,
    dropped: Vec<(Reason, Arc<Series>)>,
}

impl Own {
    pub fn new(labels: &Labels, interval: Duration) -> Self {
        let series = |metric: &str, labels: Labels| Arc::new(Series::every(metric, labels, interval));
        let of_reason = |reason: Reason| {
            let labels = labels.with(&Labels::new([("reason", reason.as_str())]));
            (reason, series("scrape_samples_dropped_total", labels))
        };
        Own {
            up: series("up", labels.clone()),
            duration: series("scrape_duration_seconds", labels.clone()),
            samples: series("scrape_samples", labels.clone()),
            line_errors: series("scrape_line_errors", labels.clone()),
            dropped: Reason::ALL.into_iter().map(of_reason).collect(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn add(
        &self,
        outcome: &ScrapeOutcome,
        duration: Duration,
        samples: u64,
        dropped: &Dropped,
        time: Time,
        out: &mut Vec<Observation>,
    ) {
        let (up, line_errors) = match outcome {
            ScrapeOutcome::Complete => (1.0, 0),
            ScrapeOutcome::Partial { error_count, .. } => (1.0, *error_count),
            ScrapeOutcome::Failed(_) => (0.0, 0),
        };
        let mut add = |series: &Arc<Series>, value| out.push(Observation { series: series.clone(), time, value });
        add(&self.up, up);
        add(&self.duration, duration.as_secs_f64());
        add(&self.samples, samples as f64);
        add(&self.line_errors, line_errors as f64);
        for (reason, series) in &self.dropped {
            match dropped.get(*reason) {
                0 => {}
                count => add(series, count as f64),
            }
        }
    }
}
