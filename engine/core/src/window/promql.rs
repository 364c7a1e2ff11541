//! Windows that give exactly what Prometheus' functions over a range give: they keep every sample of their span.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Time;

/// The most samples of one window (256 KiB: a day of one every 6 seconds). While a window has had to let go of one
/// that still belongs to it, it gives no value: a part of the samples would answer another question.
pub const SAMPLES_MAX: usize = 16_384;
/// Room is made for this many samples at first.
const SAMPLES_FIRST: usize = 16;

/// A function of Prometheus over the samples of a range, with its meaning to the last bit of its arithmetic
/// (prometheus 2.42 `promql/functions.go`). A range is open at its start, as in Prometheus 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PromQl {
    /// `rate`, extrapolated to the span.
    Rate,
    /// `increase`, extrapolated to the span.
    Increase,
    /// `delta`, extrapolated to the span.
    Delta,
    /// `irate`
    Irate,
    /// `idelta`
    Idelta,
    /// `deriv`
    Deriv,
    /// `predict_linear`, this many seconds ahead.
    PredictLinear(f64),
    /// `avg_over_time`
    AvgOverTime,
    /// `min_over_time`
    MinOverTime,
    /// `max_over_time`
    MaxOverTime,
    /// `sum_over_time`
    SumOverTime,
    /// `count_over_time`
    CountOverTime,
    /// `stddev_over_time`
    StddevOverTime,
    /// `stdvar_over_time`
    StdvarOverTime,
    /// `quantile_over_time`, of a quantile of 0 to 1.
    QuantileOverTime(f64),
    /// `last_over_time`
    LastOverTime,
    /// `present_over_time`
    PresentOverTime,
    /// `changes`
    Changes,
    /// `resets`
    Resets,
}

impl PromQl {
    /// The function that Prometheus calls `name`; `argument` is the number beside the range.
    pub fn named(name: &str, argument: Option<f64>) -> Option<Self> {
        Some(match (name, argument) {
            ("rate", None) => PromQl::Rate,
            ("increase", None) => PromQl::Increase,
            ("delta", None) => PromQl::Delta,
            ("irate", None) => PromQl::Irate,
            ("idelta", None) => PromQl::Idelta,
            ("deriv", None) => PromQl::Deriv,
            ("predict_linear", Some(seconds)) => PromQl::PredictLinear(seconds),
            ("avg_over_time", None) => PromQl::AvgOverTime,
            ("min_over_time", None) => PromQl::MinOverTime,
            ("max_over_time", None) => PromQl::MaxOverTime,
            ("sum_over_time", None) => PromQl::SumOverTime,
            ("count_over_time", None) => PromQl::CountOverTime,
            ("stddev_over_time", None) => PromQl::StddevOverTime,
            ("stdvar_over_time", None) => PromQl::StdvarOverTime,
            ("quantile_over_time", Some(q)) if (0.0..=1.0).contains(&q) => PromQl::QuantileOverTime(q),
            ("last_over_time", None) => PromQl::LastOverTime,
            ("present_over_time", None) => PromQl::PresentOverTime,
            ("changes", None) => PromQl::Changes,
            ("resets", None) => PromQl::Resets,
            _ => return None,
        })
    }
}

/// The samples of one series over a span.
#[derive(Clone, Debug)]
pub struct Samples {
    function: PromQl,
    span_ms: i64,
    /// Times in milliseconds, ascending, with their values.
    kept: VecDeque<(i64, f64)>,
    /// The newest sample that had to go for want of room.
    cut: Option<i64>,
    dropped: u64,
}

impl Samples {
    /// No samples yet.
    pub fn new(function: PromQl, span: Duration) -> Self {
        let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX).max(1);
        Samples { function, span_ms, kept: VecDeque::new(), cut: None, dropped: 0 }
    }

    /// Takes a sample in; false where it is not newer than the newest: it is dropped, as by Prometheus.
    pub fn push(&mut self, time: Time, value: f64) -> bool {
        let time = time.as_millis();
        if self.kept.back().is_some_and(|(newest, _)| time <= *newest) {
            self.dropped += 1;
            return false;
        }
        self.expire(time);
        if self.kept.len() >= SAMPLES_MAX {
            self.cut = self.kept.pop_front().map(|(time, _)| time);
            self.dropped += 1;
        }
        if self.kept.capacity() == 0 {
            self.kept.reserve_exact(SAMPLES_FIRST);
        }
        self.kept.push_back((time, value));
        true
    }

    fn expire(&mut self, now: i64) {
        let edge = now.saturating_sub(self.span_ms);
        while self.kept.front().is_some_and(|(time, _)| *time <= edge) {
            self.kept.pop_front();
        }
        self.cut = self.cut.filter(|time| *time > edge);
    }

    /// What the function gives at `now`. `None` where it has too few samples, where [`SAMPLES_MAX`] did not hold all
    /// of the span's, or where the result is no finite number.
    pub fn value(&mut self, now: Time) -> Option<f64> {
        let now = now.as_millis();
        self.expire(now);
        let samples = &*self.kept.make_contiguous();
        let upto = samples.partition_point(|(time, _)| *time <= now);
        let samples = samples.get(..upto).filter(|samples| !samples.is_empty() && self.cut.is_none())?;
        let span_ms = self.span_ms;
        let value = match self.function {
            PromQl::Rate => {
                let (growth, factor) = extrapolated(samples, span_ms, now, true)?;
                growth * (factor / (span_ms as f64 / 1000.0))
            }
            PromQl::Increase | PromQl::Delta => {
                let (growth, factor) = extrapolated(samples, span_ms, now, self.function == PromQl::Increase)?;
                growth * factor
            }
            PromQl::Irate => instant(samples, true)?,
            PromQl::Idelta => instant(samples, false)?,
            PromQl::Deriv => line(samples, samples.first()?.0)?.0,
            PromQl::PredictLinear(seconds) => {
                let (slope, intercept) = line(samples, now)?;
                slope * seconds + intercept
            }
            PromQl::QuantileOverTime(q) => quantile(samples, q)?,
            other => over_time(other, samples)?,
        };
        value.is_finite().then_some(value)
    }

    /// How many samples were left out.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes kept beside the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<(i64, f64)>()
    }
}

/// `extrapolatedRate` of Prometheus: the growth between the samples, and by how much the span is longer.
fn extrapolated(samples: &[(i64, f64)], span_ms: i64, now: i64, is_counter: bool) -> Option<(f64, f64)> {
    let [(first_at, first), .., (last_at, last)] = samples else { return None };
    let mut growth = last - first;
    if is_counter {
        growth += samples.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[0].1).sum::<f64>();
    }
    let seconds = |from: i64, to: i64| to.saturating_sub(from) as f64 / 1000.0;
    let (mut to_start, to_end) = (seconds(now.saturating_sub(span_ms), *first_at), seconds(*last_at, now));
    let sampled = seconds(*first_at, *last_at);
    let between = sampled / (samples.len() - 1) as f64;
    if is_counter && growth > 0.0 && *first >= 0.0 {
        // A counter does not start below zero.
        to_start = to_start.min(sampled * (first / growth));
    }
    let reach = |gap: f64| if gap < between * 1.1 { gap } else { between / 2.0 };
    Some((growth, (sampled + reach(to_start) + reach(to_end)) / sampled))
}

fn instant(samples: &[(i64, f64)], is_rate: bool) -> Option<f64> {
    let [.., (before_at, before), (last_at, last)] = samples else { return None };
    if !is_rate {
        return Some(last - before);
    }
    let growth = if last < before { *last } else { last - before };
    Some(growth / ((last_at - before_at) as f64 / 1000.0))
}

/// Kahan's sum as Prometheus keeps it.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, more: f64) {
        let sum = self.sum + more;
        let of = if self.sum.abs() >= more.abs() { (self.sum - sum) + more } else { (more - sum) + self.sum };
        *self = Sum { sum, lost: self.lost + of };
    }

    fn total(self) -> f64 {
        self.sum + self.lost
    }
}

/// Slope per second and the value at `origin` of the least-squares line.
fn line(samples: &[(i64, f64)], origin: i64) -> Option<(f64, f64)> {
    let [(_, first), _, ..] = samples else { return None };
    #[expect(clippy::float_cmp, reason = "a constant is the same to the last bit")]
    if samples.iter().all(|(_, value)| value == first) {
        return Some((0.0, *first));
    }
    let (mut x_sum, mut y_sum, mut products, mut squares) =
        (Sum::default(), Sum::default(), Sum::default(), Sum::default());
    for (time, y) in samples {
        let x = time.saturating_sub(origin) as f64 / 1e3;
        x_sum.add(x);
        y_sum.add(*y);
        products.add(x * y);
        squares.add(x * x);
    }
    let count = samples.len() as f64;
    let (x_sum, y_sum) = (x_sum.total(), y_sum.total());
    let slope = (products.total() - x_sum * y_sum / count) / (squares.total() - x_sum * x_sum / count);
    Some((slope, y_sum / count - slope * x_sum / count))
}

fn quantile(samples: &[(i64, f64)], q: f64) -> Option<f64> {
    let mut values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let rank = q * (values.len() as f64 - 1.0);
    let at = |rank: f64| values.get(rank.max(0.0) as usize).copied();
    let weight = rank - rank.floor();
    Some(at(rank.floor())? * (1.0 - weight) + at((rank.floor() + 1.0).min(values.len() as f64 - 1.0))? * weight)
}

fn over_time(function: PromQl, samples: &[(i64, f64)]) -> Option<f64> {
    let values = samples.iter().map(|(_, value)| *value);
    let pairs = || samples.windows(2).map(|pair| (pair[0].1, pair[1].1));
    #[expect(clippy::float_cmp, reason = "a change is any other number")]
    let changes = || pairs().filter(|(before, after)| before != after).count();
    Some(match function {
        PromQl::AvgOverTime => mean(values),
        PromQl::MinOverTime => values.fold(f64::INFINITY, f64::min),
        PromQl::MaxOverTime => values.fold(f64::NEG_INFINITY, f64::max),
        PromQl::SumOverTime => {
            let mut sum = Sum::default();
            values.for_each(|value| sum.add(value));
            sum.total()
        }
        PromQl::CountOverTime => samples.len() as f64,
        PromQl::StdvarOverTime => variance(values),
        PromQl::StddevOverTime => variance(values).sqrt(),
        PromQl::LastOverTime => samples.last()?.1,
        PromQl::PresentOverTime => 1.0,
        PromQl::Changes => changes() as f64,
        PromQl::Resets => pairs().filter(|(before, after)| after < before).count() as f64,
        _ => return None,
    })
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut mean, mut count) = (Sum::default(), 0.0);
    for value in values {
        count += 1.0;
        mean.add(value / count - mean.sum / count);
    }
    mean.total()
}

fn variance(values: impl Iterator<Item = f64>) -> f64 {
    let (mut mean, mut squares, mut count) = (Sum::default(), Sum::default(), 0.0);
    for value in values {
        count += 1.0;
        let apart = value - mean.total();
        mean.add(apart / count);
        squares.add(apart * (value - mean.total()));
    }
    squares.total() / count
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time::from_millis(second * 1000)
    }

    fn value(function: PromQl, span: u64, samples: &[(i64, f64)], now: i64) -> Option<f64> {
        let mut window = Samples::new(function, Duration::from_secs(span));
        assert!(samples.iter().all(|(second, value)| window.push(at(*second), *value)));
        window.value(at(now))
    }

    /// The values are those of prometheus 2.42 for the same samples.
    #[test]
    fn gives_what_prometheus_gives() {
        let counter = [(10, 100.0), (25, 110.0), (40, 5.0), (55, 20.0)];
        let cases = [
            (PromQl::Increase, 60, Some(30.0 * 60.0 / 45.0)),
            (PromQl::Rate, 60, Some(30.0 / 45.0)),
            (PromQl::Delta, 60, Some(-80.0 * 60.0 / 45.0)),
            (PromQl::Irate, 60, Some(1.0)),
            (PromQl::Idelta, 60, Some(15.0)),
            (PromQl::Resets, 60, Some(1.0)),
            (PromQl::Changes, 60, Some(3.0)),
            (PromQl::CountOverTime, 60, Some(4.0)),
            (PromQl::AvgOverTime, 60, Some(58.75)),
            (PromQl::SumOverTime, 60, Some(235.0)),
            (PromQl::MinOverTime, 60, Some(5.0)),
            (PromQl::MaxOverTime, 60, Some(110.0)),
            (PromQl::QuantileOverTime(0.5), 60, Some(60.0)),
            (PromQl::LastOverTime, 60, Some(20.0)),
            (PromQl::PresentOverTime, 60, Some(1.0)),
            (PromQl::Rate, 6, None),
            (PromQl::LastOverTime, 5, None),
        ];
        for (function, span, expected) in cases {
            let got = value(function, span, &counter, 60);
            let same = got.zip(expected).map_or(got == expected, |(got, expected)| (got - expected).abs() < 1e-9);
            assert!(same, "{function:?} over {span} s: {got:?}, expected {expected:?}");
        }
    }

    #[test]
    fn a_line_is_followed_into_the_future() {
        let ramp = [(0, 10.0), (10, 9.0), (20, 8.0), (30, 7.0)];
        assert!((value(PromQl::Deriv, 60, &ramp, 30).unwrap() + 0.1).abs() < 1e-12);
        assert!((value(PromQl::PredictLinear(70.0), 60, &ramp, 30).unwrap()).abs() < 1e-9);
        assert_eq!(value(PromQl::PredictLinear(1e9), 60, &[(0, 3.0), (9, 3.0)], 30), Some(3.0), "a constant stays");
    }

    #[test]
    fn a_window_that_lost_samples_of_its_span_gives_no_value() {
        let mut window = Samples::new(PromQl::CountOverTime, Duration::from_secs(20_000));
        let most = i64::try_from(SAMPLES_MAX).unwrap();
        assert!((1..=most).all(|second| window.push(at(second), 1.0)) && !window.push(at(1), 1.0));
        assert_eq!(window.value(at(most)), Some(SAMPLES_MAX as f64));
        window.push(at(most + 1), 1.0);
        assert_eq!((window.value(at(most + 1)), window.dropped()), (None, 2));
        assert!(window.heap_bytes() <= 2 * SAMPLES_MAX * 16, "{}", window.heap_bytes());
        assert_eq!(window.value(at(20_001)), Some(SAMPLES_MAX as f64), "once it has left the span nothing is wanting");
    }
}
