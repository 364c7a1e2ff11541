//! The quantile of a classic Prometheus histogram over a window.

use std::time::Duration;

use super::pane::Counter;
use super::panes::Panes;
use crate::time::Time;

/// The most buckets of a histogram; further ones are dropped. Buckets without a reading in the window make room.
pub const BUCKETS_MAX: usize = 512;

/// The buckets of one classic histogram: a counter window for each upper bound.
#[derive(Clone, Debug)]
pub struct HistogramWindow {
    quantile: f64,
    span: Duration,
    /// By upper bound and series: a row may be counted by several (engines, models), each with resets of its own.
    buckets: Vec<((f64, u32), Panes<Counter>)>,
    /// Upper bounds with the growth of their counters, while a value is worked out.
    growth: Vec<(f64, f64)>,
    dropped: u64,
}

impl HistogramWindow {
    /// An empty window of `span` for a quantile of 0 to 1.
    pub fn new(quantile: f64, span: Duration) -> Self {
        HistogramWindow { quantile, span, buckets: Vec::new(), growth: Vec::new(), dropped: 0 }
    }

    /// Takes a reading of the cumulative counter of the bucket up to `le`, of one of the row's series. A bound that is
    /// no number, or a bucket beyond [`BUCKETS_MAX`], is dropped.
    pub fn push_bucket(&mut self, le: f64, series: u32, time: Time, value: f64) {
        match self.buckets.binary_search_by(|((bound, of), _)| bound.total_cmp(&le).then(of.cmp(&series))) {
            Ok(at) => {
                self.buckets[at].1.push(time, value);
            }
            Err(_) if le.is_nan() => self.dropped += 1,
            Err(at) => self.open_bucket(at, (le, series), time, value),
        }
    }

    fn open_bucket(&mut self, mut at: usize, bucket: (f64, u32), time: Time, value: f64) {
        if self.buckets.len() >= BUCKETS_MAX {
            self.forget_ended(time);
            at = self
                .buckets
                .partition_point(|((bound, of), _)| bound.total_cmp(&bucket.0).then(of.cmp(&bucket.1)).is_lt());
        }
        if self.buckets.len() >= BUCKETS_MAX {
            self.dropped += 1;
            return;
        }
        let mut panes = Panes::new(self.span);
        panes.push(time, value);
        self.buckets.insert(at, (bucket, panes));
    }

    /// Lets go of buckets that have no reading within the window, such as those of an engine that was restarted.
    fn forget_ended(&mut self, now: Time) {
        self.buckets.retain_mut(|(_, panes)| {
            panes.expire(now);
            !panes.is_empty()
        });
    }

    /// The quantile of what was counted within the window, as Prometheus' `histogram_quantile` gives it (prometheus
    /// `promql/quantile.go`): linear within a bucket; the second highest bound where it falls into the `+Inf`
    /// bucket. `None` without a `+Inf` bucket, with fewer than two buckets that have two readings, with nothing
    /// counted, and for a quantile outside 0 to 1.
    pub fn value(&mut self, now: Time) -> Option<f64> {
        self.growth.clear();
        for ((le, _), panes) in &mut self.buckets {
            let Some(growth) = panes.at(now).and_then(|counter| counter.increase()) else { continue };
            match self.growth.last_mut() {
                Some((bound, sum)) if *bound == *le => *sum += growth,
                _ => self.growth.push((*le, growth)),
            }
        }
        repair(&mut self.growth);
        interpolate(self.quantile, &self.growth)
    }

    /// How many readings were left out.
    pub fn dropped(&self) -> u64 {
        self.dropped + self.buckets.iter().map(|(_, panes)| u64::from(panes.dropped())).sum::<u64>()
    }

    /// Bytes kept, the window itself included.
    pub fn bytes(&self) -> usize {
        let panes: usize = self.buckets.iter().map(|(_, panes)| panes.heap_bytes()).sum();
        let buckets = self.buckets.capacity() * size_of::<((f64, u32), Panes<Counter>)>();
        size_of::<Self>() + panes + buckets + self.growth.capacity() * size_of::<(f64, f64)>()
    }
}

/// Buckets are cumulative: one that counts less than a smaller one was read at another moment, and counts as much.
fn repair(buckets: &mut [(f64, f64)]) {
    let mut most = 0.0f64;
    for (_, count) in buckets {
        most = most.max(*count);
        *count = most;
    }
}

fn interpolate(quantile: f64, buckets: &[(f64, f64)]) -> Option<f64> {
    let [finite @ .., (top, total)] = buckets else { return None };
    let (highest, _) = finite.last()?;
    if *top != f64::INFINITY || *total <= 0.0 || !(0.0..=1.0).contains(&quantile) {
        return None;
    }
    let rank = quantile * total;
    let Some(at) = finite.iter().position(|(_, count)| *count >= rank) else { return Some(*highest) };
    let (end, count) = finite[at];
    if at == 0 && end <= 0.0 {
        return Some(end);
    }
    let (start, below) = if at == 0 { (0.0, 0.0) } else { finite[at - 1] };
    let share = if count > below { (rank - below) / (count - below) } else { 0.0 };
    Some(start + (end - start) * share)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const INF: f64 = f64::INFINITY;

    fn at(second: i64) -> Time {
        Time::from_millis(second * 1000)
    }

    /// Buckets as in prometheus `promql/promqltest/testdata/histograms.test`: `testhistogram` after its first
    /// step of 10 minutes, and its values there.
    #[test]
    fn gives_the_values_of_prometheus() {
        let positive = [(0.1, 5.0), (0.2, 7.0), (1.0, 11.0), (INF, 12.0)];
        let negative = [(-0.2, 1.0), (-0.1, 2.0), (0.3, 2.0), (INF, 3.0)];
        type Buckets<'a> = &'a [(f64, f64)];
        let cases: [(f64, Buckets, Option<f64>); 12] = [
            (0.0, &positive, Some(0.0)),
            (0.2, &positive, Some(0.048)),
            (0.5, &positive, Some(0.15)),
            (0.8, &positive, Some(0.72)),
            (1.0, &positive, Some(1.0)),
            (0.2, &negative, Some(-0.2)),
            (0.5, &negative, Some(-0.15)),
            (0.8, &negative, Some(0.3)),
            (0.5, &[(0.1, 5.0), (0.2, 7.0)], None),
            (0.5, &[(INF, 5.0)], None),
            (0.5, &[(0.1, 0.0), (INF, 0.0)], None),
            (1.5, &positive, None),
        ];
        for (quantile, buckets, expected) in cases {
            let got = interpolate(quantile, buckets);
            let close = match (got, expected) {
                (Some(got), Some(expected)) => (got - expected).abs() < 1e-12,
                _ => got == expected,
            };
            assert!(close, "quantile {quantile} of {buckets:?}: {got:?}, expected {expected:?}");
        }
    }

    #[test]
    fn counts_only_what_grew_within_the_window() {
        let mut window = HistogramWindow::new(0.5, Duration::from_secs(60));
        for (second, small, all) in [(0, 1000.0, 1000.0), (100, 1000.0, 1000.0), (130, 1001.0, 1004.0)] {
            window.push_bucket(1.0, 0, at(second), small);
            window.push_bucket(2.0, 0, at(second), all);
            window.push_bucket(INF, 0, at(second), all);
        }
        let value = window.value(at(130)).unwrap();
        assert!((value - (1.0 + 1.0 / 3.0)).abs() < 1e-12, "{value}");
        assert_eq!(window.value(at(189)), None, "one reading of each shows no growth");
    }

    #[test]
    fn a_restarted_exporter_counts_from_zero() {
        let mut window = HistogramWindow::new(0.5, Duration::from_secs(60));
        for (second, small, all) in [(10, 500.0, 900.0), (20, 4.0, 4.0)] {
            window.push_bucket(1.0, 0, at(second), small);
            window.push_bucket(INF, 0, at(second), all);
        }
        assert_eq!(window.value(at(20)), Some(0.5));
    }

    #[test]
    fn buckets_read_at_another_moment_are_made_monotone() {
        let mut buckets = [(1.0, 10.0), (2.0, 9.0), (INF, 12.0)];
        repair(&mut buckets);
        assert_eq!(buckets, [(1.0, 10.0), (2.0, 10.0), (INF, 12.0)]);
    }

    #[test]
    fn buckets_are_bounded_and_a_bound_must_be_a_number() {
        let mut window = HistogramWindow::new(0.5, Duration::from_secs(60));
        for le in 0..BUCKETS_MAX {
            window.push_bucket(le as f64, 0, at(1), 1.0);
        }
        window.push_bucket(f64::NAN, 0, at(1), 1.0);
        window.push_bucket(-1.0, 0, at(1), 1.0);
        assert_eq!(window.dropped(), 2);
        assert!(window.bytes() < 100_000, "{}", window.bytes());
    }

    #[test]
    fn buckets_of_series_that_ended_make_room() {
        let mut window = HistogramWindow::new(0.5, Duration::from_secs(60));
        for series in 0..BUCKETS_MAX as u32 {
            window.push_bucket(1.0, series, at(1), 1.0);
        }
        window.push_bucket(2.0, 7, at(30), 1.0);
        assert_eq!(window.dropped(), 1, "all others have been read within the window");
        for second in [100, 110] {
            window.push_bucket(1.0, 9999, at(second), second as f64);
            window.push_bucket(INF, 9999, at(second), second as f64);
        }
        assert_eq!((window.dropped(), window.buckets.len()), (1, 2));
        assert_eq!(window.value(at(110)), Some(0.5));
    }

    #[test]
    fn two_series_of_a_row_are_counted_together_and_reset_apart() {
        let mut window = HistogramWindow::new(0.5, Duration::from_secs(60));
        for (second, first, second_engine) in [(0, 100.0, 5.0), (10, 110.0, 15.0), (20, 10.0, 25.0)] {
            for (series, count) in [(1, first), (2, second_engine)] {
                window.push_bucket(1.0, series, at(second), count);
                window.push_bucket(INF, series, at(second), count);
            }
        }
        assert_eq!(window.value(at(20)), Some(0.5), "20 of one, 20 of the other, all within the first bucket");
    }
}
