//! What a pane keeps of its samples, for each family of aggregates.

use sketches_ddsketch::{Config, DDSketch};

use crate::rule::Aggregate;
use crate::time::Time;

/// An aggregate to which samples and later panes can be added.
pub trait Pane: Default + Clone {
    /// Adds a sample.
    fn add(&mut self, time: Time, value: f64);
    /// Adds a later pane.
    fn merge(&mut self, later: &Self);
}

/// The smallest and the largest value.
#[derive(Clone, Debug)]
pub struct Extreme {
    min: f64,
    max: f64,
}

impl Default for Extreme {
    fn default() -> Self {
        Extreme { min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Pane for Extreme {
    fn add(&mut self, _: Time, value: f64) {
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }
    fn merge(&mut self, later: &Self) {
        (self.min, self.max) = (self.min.min(later.min), self.max.max(later.max));
    }
}

impl Extreme {
    pub(super) fn value(&self, aggregate: Aggregate) -> f64 {
        if aggregate == Aggregate::Min { self.min } else { self.max }
    }
}

/// Count, mean and squared deviation (Welford; merged as in Chan, Golub and LeVeque 1979).
#[derive(Clone, Debug, Default)]
pub struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Pane for Moments {
    fn add(&mut self, _: Time, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }
    fn merge(&mut self, later: &Self) {
        let count = self.count + later.count;
        if count == 0.0 {
            return;
        }
        let delta = later.mean - self.mean;
        self.mean += delta * later.count / count;
        self.squares += later.squares + delta * delta * self.count * later.count / count;
        self.count = count;
    }
}

impl Moments {
    pub(super) fn value(&self, aggregate: Aggregate) -> f64 {
        match aggregate {
            Aggregate::Sum => self.mean * self.count,
            Aggregate::Count => self.count,
            Aggregate::Stddev => (self.squares / self.count).max(0.0).sqrt(),
            _ => self.mean,
        }
    }
}

/// A counter: the growth between its first and last sample. A fall is a reset, after which the whole new value
/// has grown.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    first: Option<(Time, f64)>,
    last: (Time, f64),
    increase: f64,
}

fn growth(from: f64, to: f64) -> f64 {
    if to >= from { to - from } else { to }
}

impl Pane for Counter {
    fn add(&mut self, time: Time, value: f64) {
        match self.first {
            None => self.first = Some((time, value)),
            Some(_) if time <= self.last.0 => return,
            Some(_) => self.increase += growth(self.last.1, value),
        }
        self.last = (time, value);
    }
    fn merge(&mut self, later: &Self) {
        let Some((_, later_first)) = later.first else { return };
        if self.first.is_none() {
            *self = later.clone();
            return;
        }
        self.increase += growth(self.last.1, later_first) + later.increase;
        self.last = later.last;
    }
}

impl Counter {
    /// Growth between the first and the last sample in the window, not extrapolated to its edges; none of one
    /// sample alone.
    pub(super) fn value(&self, aggregate: Aggregate) -> Option<f64> {
        let seconds = self.last.0.since(self.first?.0).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        Some(if aggregate == Aggregate::Rate { self.increase / seconds } else { self.increase })
    }
}

/// A least-squares line through (seconds, value), by centred sums.
#[derive(Clone, Debug, Default)]
pub struct Line {
    count: f64,
    mean_s: f64,
    mean: f64,
    squares_s: f64,
    products: f64,
}

impl Pane for Line {
    fn add(&mut self, time: Time, value: f64) {
        let seconds = time.as_millis() as f64 / 1000.0;
        self.merge(&Line { count: 1.0, mean_s: seconds, mean: value, squares_s: 0.0, products: 0.0 });
    }
    fn merge(&mut self, later: &Self) {
        let count = self.count + later.count;
        if count == 0.0 {
            return;
        }
        let (delta_s, delta) = (later.mean_s - self.mean_s, later.mean - self.mean);
        let weight = self.count * later.count / count;
        self.squares_s += later.squares_s + delta_s * delta_s * weight;
        self.products += later.products + delta_s * delta * weight;
        self.mean_s += delta_s * later.count / count;
        self.mean += delta * later.count / count;
        self.count = count;
    }
}

impl Line {
    /// Per second; none where all samples are of one moment.
    pub(super) fn slope(&self) -> Option<f64> {
        (self.squares_s > 0.0).then(|| self.products / self.squares_s)
    }
}

/// A sketch of the values' distribution with 1 % relative error.
#[derive(Clone)]
pub struct Sketch(Box<DDSketch>);

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sketch({} values)", self.0.count())
    }
}

impl Default for Sketch {
    fn default() -> Self {
        Sketch(Box::new(DDSketch::new(Config::defaults())))
    }
}

impl Pane for Sketch {
    fn add(&mut self, _: Time, value: f64) {
        self.0.add(value);
    }
    fn merge(&mut self, later: &Self) {
        // Both have the default configuration, the only thing that could differ.
        let _ = self.0.merge(&later.0);
    }
}

impl Sketch {
    pub(super) fn quantile(&self, quantile: f64) -> Option<f64> {
        self.0.quantile(quantile.clamp(0.0, 1.0)).ok().flatten()
    }
}
