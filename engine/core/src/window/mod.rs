//! Bounded windows over samples: each keeps at most [`PANES_MAX`] closed panes and an open one, however many
//! samples come in.
//!
//! **What a window covers.** `value(now)` counts every sample in `(now - span, now]`. Samples share panes of
//! [`pane_width`]; a pane is left out once its newest sample is too old. So a window may reach back further than
//! its span by less than one pane, never less far: a condition "for all of the last 5 minutes" is never met on
//! fewer than 5 minutes, and a count or an increase never misses a sample that belongs to it. Where `now` lies on
//! a pane's border, or where no pane holds two samples, the value is exact.
//!
//! **What is left out.** A sample older than the newest one by a span or more, a second sample of the newest
//! moment (the first one stays, as in Prometheus), and samples that a broken clock dates more than a span
//! after `now`; all are counted by `dropped`. The caller keeps NaN and infinities away.

mod histogram;
mod pane;
mod panes;
mod promql;
mod sketch;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use histogram::{BUCKETS_MAX, HistogramWindow};
pub use panes::{PANES_MAX, pane_width};
pub use promql::{PromQl, SAMPLES_MAX};
pub use sketch::{BINS_MAX, RELATIVE_ACCURACY};

use crate::rule::Aggregate;
use crate::time::Time;
use pane::{Counter, Least, Line, Moments, Newest, Tally, Total};
use panes::Panes;
use promql::Samples;
use sketch::Sketch;

/// The samples of one series over a span, reduced to what one aggregate needs.
#[derive(Clone, Debug)]
pub struct Window(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Last(Panes<Newest>),
    Min(Panes<Least>),
    /// Keeps the least of the negated values.
    Max(Panes<Least>),
    Mean(Panes<Total>),
    Sum(Panes<Total>),
    Count(Panes<Tally>),
    Stddev(Panes<Moments>),
    Increase(Panes<Counter>),
    Rate(Panes<Counter>),
    Slope(Panes<Line>),
    Quantile(Box<Sketch>),
    PromQl(Samples),
}

impl Window {
    /// An empty window of `span`. [`Aggregate::Last`] gives the newest value within the span. Buckets belong in a
    /// [`HistogramWindow`]: here [`Aggregate::HistogramQuantile`] is a quantile of the plain values.
    pub fn new(aggregate: Aggregate, span: Duration) -> Window {
        Window(match aggregate {
            Aggregate::Last => Kind::Last(Panes::new(span)),
            Aggregate::Min => Kind::Min(Panes::new(span)),
            Aggregate::Max => Kind::Max(Panes::new(span)),
            Aggregate::Mean => Kind::Mean(Panes::new(span)),
            Aggregate::Sum => Kind::Sum(Panes::new(span)),
            Aggregate::Count => Kind::Count(Panes::new(span)),
            Aggregate::Stddev => Kind::Stddev(Panes::new(span)),
            Aggregate::Increase => Kind::Increase(Panes::new(span)),
            Aggregate::Rate => Kind::Rate(Panes::new(span)),
            Aggregate::Slope => Kind::Slope(Panes::new(span)),
            Aggregate::Quantile(q) | Aggregate::HistogramQuantile(q) => Kind::Quantile(Box::new(Sketch::new(q, span))),
            Aggregate::PromQl(function) => Kind::PromQl(Samples::new(function, span)),
        })
    }

    /// Takes a sample in. `value` must be finite.
    pub fn push(&mut self, time: Time, value: f64) {
        match &mut self.0 {
            Kind::Last(panes) => panes.push(time, value),
            Kind::Min(panes) => panes.push(time, value),
            Kind::Max(panes) => panes.push(time, -value),
            Kind::Mean(panes) | Kind::Sum(panes) => panes.push(time, value),
            Kind::Count(panes) => panes.push(time, value),
            Kind::Stddev(panes) => panes.push(time, value),
            Kind::Increase(panes) | Kind::Rate(panes) => panes.push(time, value),
            Kind::Slope(panes) => panes.push(time, value),
            Kind::Quantile(sketch) => sketch.push(time, value),
            Kind::PromQl(samples) => samples.push(time, value),
        };
    }

    /// The aggregate at `now`. `None` where no sample is within the span, where [`Aggregate::Increase`],
    /// [`Aggregate::Rate`] or [`Aggregate::Slope`] have fewer than two (one reading shows no growth), or where
    /// the result is no finite number.
    pub fn value(&mut self, now: Time) -> Option<f64> {
        let value = match &mut self.0 {
            Kind::Last(panes) => panes.at(now)?.value,
            Kind::Min(panes) => panes.at(now)?.value,
            Kind::Max(panes) => -panes.at(now)?.value,
            Kind::Mean(panes) => panes.at(now)?.mean(),
            Kind::Sum(panes) => panes.at(now)?.sum,
            Kind::Count(panes) => f64::from(panes.at(now)?.count),
            Kind::Stddev(panes) => panes.at(now)?.stddev(),
            Kind::Increase(panes) => panes.at(now)?.increase()?,
            Kind::Rate(panes) => panes.at(now)?.rate()?,
            Kind::Slope(panes) => panes.at(now)?.slope()?,
            Kind::Quantile(sketch) => sketch.value(now)?,
            Kind::PromQl(samples) => samples.value(now)?,
        };
        value.is_finite().then_some(value)
    }

    /// How many samples were left out, as the module says.
    pub fn dropped(&self) -> u64 {
        u64::from(match &self.0 {
            Kind::PromQl(samples) => return samples.dropped(),
            Kind::Last(panes) => panes.dropped(),
            Kind::Min(panes) | Kind::Max(panes) => panes.dropped(),
            Kind::Mean(panes) | Kind::Sum(panes) => panes.dropped(),
            Kind::Count(panes) => panes.dropped(),
            Kind::Stddev(panes) => panes.dropped(),
            Kind::Increase(panes) | Kind::Rate(panes) => panes.dropped(),
            Kind::Slope(panes) => panes.dropped(),
            Kind::Quantile(sketch) => sketch.dropped(),
        })
    }

    /// Bytes kept, the window itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.0 {
                Kind::Last(panes) => panes.heap_bytes(),
                Kind::Min(panes) | Kind::Max(panes) => panes.heap_bytes(),
                Kind::Mean(panes) | Kind::Sum(panes) => panes.heap_bytes(),
                Kind::Count(panes) => panes.heap_bytes(),
                Kind::Stddev(panes) => panes.heap_bytes(),
                Kind::Increase(panes) | Kind::Rate(panes) => panes.heap_bytes(),
                Kind::Slope(panes) => panes.heap_bytes(),
                Kind::Quantile(sketch) => sketch.bytes(),
                Kind::PromQl(samples) => samples.heap_bytes(),
            }
    }
}
