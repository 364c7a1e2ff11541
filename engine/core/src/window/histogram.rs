//! Quantiles of classic Prometheus histograms.

use std::time::Duration;

use super::Window;
use crate::rule::Aggregate;
use crate::time::Time;

/// The most buckets of one histogram; more are left out.
pub const BUCKETS_MAX: usize = 256;

/// The buckets of one histogram over a span.
#[derive(Debug)]
pub struct HistogramWindow {
    quantile: f64,
    span: Duration,
    /// Upper bounds, ascending, with the growth of each bucket's counter.
    buckets: Vec<(f64, Window)>,
}

impl HistogramWindow {
    /// An empty histogram.
    pub fn new(quantile: f64, span: Duration) -> Self {
        HistogramWindow { quantile, span, buckets: Vec::new() }
    }

    /// Takes in a sample of the bucket with upper bound `le`.
    pub fn push_bucket(&mut self, le: f64, time: Time, value: f64) {
        if le.is_nan() {
            return;
        }
        let at = self.buckets.partition_point(|(bound, _)| *bound < le);
        if self.buckets.get(at).is_none_or(|(bound, _)| *bound != le) {
            if self.buckets.len() >= BUCKETS_MAX {
                return;
            }
            self.buckets.insert(at, (le, Window::new(Aggregate::Increase, self.span)));
        }
        self.buckets[at].1.push(time, value);
    }

    /// The quantile at `now`, by Prometheus' rules (`promql/quantile.go`, bucketQuantile): linear within a bucket,
    /// the lowest starting at 0, the last finite bound where the quantile lies beyond it. None without a `+Inf`
    /// bucket or without any observation.
    pub fn value(&mut self, now: Time) -> Option<f64> {
        let mut counts: Vec<(f64, f64)> =
            self.buckets.iter_mut().filter_map(|(le, window)| Some((*le, window.value(now)?))).collect();
        for at in 1..counts.len() {
            counts[at].1 = counts[at].1.max(counts[at - 1].1);
        }
        quantile(self.quantile, &counts)
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.buckets.iter().map(|(_, window)| 8 + window.bytes()).sum()
    }
}

fn quantile(q: f64, counts: &[(f64, f64)]) -> Option<f64> {
    let (last_bound, total) = *counts.last()?;
    if last_bound != f64::INFINITY || counts.len() < 2 || total <= 0.0 {
        return None;
    }
    let rank = q.clamp(0.0, 1.0) * total;
    let at = counts.iter().position(|(_, count)| *count >= rank)?;
    if at == counts.len() - 1 {
        return Some(counts[at - 1].0);
    }
    let (upper, count) = counts[at];
    if at == 0 && upper <= 0.0 {
        return Some(upper);
    }
    let (lower, below) = if at == 0 { (0.0, 0.0) } else { counts[at - 1] };
    let within = count - below;
    Some(if within > 0.0 { lower + (upper - lower) * (rank - below) / within } else { upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_as_prometheus_does() {
        let counts = [(0.1, 10.0), (0.2, 30.0), (0.4, 40.0), (f64::INFINITY, 40.0)];
        let cases = [(0.0, 0.0), (0.125, 0.05), (0.5, 0.15), (1.0, 0.4)];
        for (q, expected) in cases {
            let got = quantile(q, &counts).unwrap_or(f64::NAN);
            assert!((got - expected).abs() < 1e-9, "q {q}: {got} is not {expected}");
        }
    }

    #[test]
    fn beyond_the_last_bound_the_last_bound_is_all_that_is_known() {
        assert_eq!(quantile(0.9, &[(1.0, 1.0), (f64::INFINITY, 10.0)]), Some(1.0));
        assert_eq!(quantile(0.9, &[(1.0, 1.0)]), None, "no +Inf bucket");
        assert_eq!(quantile(0.9, &[(1.0, 0.0), (f64::INFINITY, 0.0)]), None, "nothing observed");
    }
}
