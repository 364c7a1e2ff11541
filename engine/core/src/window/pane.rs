//! What one pane keeps of its samples, one type for each family of aggregates.

/// No sample: before every moment.
const NEVER: i64 = i64::MIN;

/// The samples of one pane, reduced.
pub trait Pane: Clone {
    /// No samples.
    const EMPTY: Self;
    /// The time of the newest sample in milliseconds; before every moment where there is none.
    fn last(&self) -> i64;
    /// Takes a sample in. Its time may lie before the newest one's.
    fn add(&mut self, time: i64, value: f64);
    /// Takes all samples of a later pane in.
    fn absorb(&mut self, later: &Self);
    /// Whether there is no sample.
    fn is_empty(&self) -> bool {
        self.last() == NEVER
    }
}

/// The newest value.
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    last: i64,
    pub value: f64,
}

impl Pane for Newest {
    const EMPTY: Self = Newest { last: NEVER, value: 0.0 };
    fn last(&self) -> i64 {
        self.last
    }
    fn add(&mut self, time: i64, value: f64) {
        if time > self.last {
            *self = Newest { last: time, value };
        }
    }
    fn absorb(&mut self, later: &Self) {
        self.add(later.last, later.value);
    }
}

/// The least value.
#[derive(Clone, Copy, Debug)]
pub struct Least {
    last: i64,
    pub value: f64,
}

impl Pane for Least {
    const EMPTY: Self = Least { last: NEVER, value: f64::INFINITY };
    fn last(&self) -> i64 {
        self.last
    }
    fn add(&mut self, time: i64, value: f64) {
        self.last = self.last.max(time);
        self.value = self.value.min(value);
    }
    fn absorb(&mut self, later: &Self) {
        self.add(later.last, later.value);
    }
}

/// How many values.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    last: i64,
    pub count: u32,
}

impl Pane for Tally {
    const EMPTY: Self = Tally { last: NEVER, count: 0 };
    fn last(&self) -> i64 {
        self.last
    }
    fn add(&mut self, time: i64, _: f64) {
        self.last = self.last.max(time);
        self.count = self.count.saturating_add(1);
    }
    fn absorb(&mut self, later: &Self) {
        self.last = self.last.max(later.last);
        self.count = self.count.saturating_add(later.count);
    }
}

/// The sum of the values, and how many.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    last: i64,
    count: u32,
    pub sum: f64,
}

impl Total {
    /// The mean; NaN where there is no value.
    pub fn mean(&self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

impl Pane for Total {
    const EMPTY: Self = Total { last: NEVER, count: 0, sum: 0.0 };
    fn last(&self) -> i64 {
        self.last
    }
    fn add(&mut self, time: i64, value: f64) {
        self.absorb(&Total { last: time, count: 1, sum: value });
    }
    fn absorb(&mut self, later: &Self) {
        self.last = self.last.max(later.last);
        self.count = self.count.saturating_add(later.count);
        self.sum += later.sum;
    }
}

/// Count, mean and sum of squared distances from it, updated as Welford does and merged as Chan, Golub and LeVeque
/// do (The American Statistician 37, 1983): no cancellation, however far the values are from 0.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    last: i64,
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// The population standard deviation.
    pub fn stddev(&self) -> f64 {
        (self.squares / self.count).sqrt()
    }
}

impl Pane for Moments {
    const EMPTY: Self = Moments { last: NEVER, count: 0.0, mean: 0.0, squares: 0.0 };
    fn last(&self) -> i64 {
        self.last
    }
    fn add(&mut self, time: i64, value: f64) {
        self.absorb(&Moments { last: time, count: 1.0, mean: value, squares: 0.0 });
    }
    fn absorb(&mut self, later: &Self) {
        let count = self.count + later.count;
        if count == 0.0 {
            return;
        }
        let apart = later.mean - self.mean;
        self.mean += apart * later.count / count;
        self.squares += later.squares + apart * apart * self.count * later.count / count;
        self.count = count;
        self.last = self.last.max(later.last);
    }
}

/// A counter: its first and newest reading and its growth between them. A fall is a reset: the counter began anew
/// at 0, so the whole new reading is growth (as in Prometheus). Nothing is extrapolated beyond the readings.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    first_at: i64,
    last: i64,
    first: f64,
    newest: f64,
    growth: f64,
}

impl Counter {
    /// The growth; `None` where there are fewer than two readings.
    pub fn increase(&self) -> Option<f64> {
        (self.last > self.first_at).then_some(self.growth)
    }

    /// The growth per second between the first and the newest reading.
    pub fn rate(&self) -> Option<f64> {
        Some(self.increase()? / seconds_between(self.first_at, self.last))
    }
}

fn growth(from: f64, to: f64) -> f64 {
    if to >= from { to - from } else { to }
}

impl Pane for Counter {
    const EMPTY: Self = Counter { first_at: NEVER, last: NEVER, first: 0.0, newest: 0.0, growth: 0.0 };
    fn last(&self) -> i64 {
        self.last
    }
    /// A late reading between two others changes nothing: it shows neither more growth nor, by itself, a reset.
    fn add(&mut self, time: i64, value: f64) {
        let reading = Counter { first_at: time, last: time, first: value, newest: value, growth: 0.0 };
        if time > self.last {
            self.absorb(&reading);
        } else if time < self.first_at {
            let later = std::mem::replace(self, reading);
            self.absorb(&later);
        }
    }
    fn absorb(&mut self, later: &Self) {
        if self.is_empty() {
            *self = *later;
        } else if !later.is_empty() {
            self.growth += growth(self.newest, later.first) + later.growth;
            (self.last, self.newest) = (later.last, later.newest);
        }
    }
}

/// The sums of a least-squares line, with times and values measured from their means so that nothing cancels.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    last: i64,
    count: f64,
    /// Seconds after the newest sample (so never above 0): seconds since the epoch would lose digits.
    mean_time: f64,
    mean_value: f64,
    time_squares: f64,
    products: f64,
}

impl Line {
    /// Growth per second along the line; `None` where all samples are of one moment.
    pub fn slope(&self) -> Option<f64> {
        (self.time_squares > 0.0).then(|| self.products / self.time_squares)
    }
}

impl Pane for Line {
    const EMPTY: Self =
        Line { last: NEVER, count: 0.0, mean_time: 0.0, mean_value: 0.0, time_squares: 0.0, products: 0.0 };
    fn last(&self) -> i64 {
        self.last
    }
    fn add(&mut self, time: i64, value: f64) {
        self.absorb(&Line { last: time, count: 1.0, mean_value: value, ..Line::EMPTY });
    }
    fn absorb(&mut self, later: &Self) {
        if self.is_empty() {
            *self = *later;
            return;
        }
        let (count, last) = (self.count + later.count, self.last.max(later.last));
        let mean_time = self.mean_time - seconds_between(self.last, last);
        let time_apart = later.mean_time - seconds_between(later.last, last) - mean_time;
        let apart = later.mean_value - self.mean_value;
        let weight = self.count * later.count / count;
        self.time_squares += later.time_squares + time_apart * time_apart * weight;
        self.products += later.products + time_apart * apart * weight;
        self.mean_time = mean_time + time_apart * later.count / count;
        self.mean_value += apart * later.count / count;
        (self.count, self.last) = (count, last);
    }
}

fn seconds_between(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64 / 1000.0
}

/// Only when: for windows that keep their samples elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Stamp(i64);

impl Pane for Stamp {
    const EMPTY: Self = Stamp(NEVER);
    fn last(&self) -> i64 {
        self.0
    }
    fn add(&mut self, time: i64, _: f64) {
        self.0 = self.0.max(time);
    }
    fn absorb(&mut self, later: &Self) {
        self.0 = self.0.max(later.0);
    }
}
