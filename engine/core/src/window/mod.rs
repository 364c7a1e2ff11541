//! Bounded windows: samples go into at most [`PANES_MAX`] panes, so memory does not grow with the sample rate.

mod histogram;
mod pane;

use std::collections::VecDeque;
use std::time::Duration;

pub use histogram::HistogramWindow;
use pane::{Counter, Extreme, Line, Moments, Pane, Sketch};

use crate::rule::Aggregate;
use crate::time::Time;

/// The most panes of a window.
pub const PANES_MAX: i64 = 16;
/// No pane is narrower.
const PANE_MS_MIN: i64 = 1000;

/// The samples of one series over a span, kept as aggregates.
///
/// A window covers at least its span and at most one pane (a sixteenth of it) more: the oldest pane counts as
/// long as any of it lies within the span. So a `min` over 5 minutes never forgets a dip too early.
#[derive(Debug)]
pub enum Window {
    /// Min, max.
    Extreme(Aggregate, Panes<Extreme>),
    /// Mean, sum, count, standard deviation.
    Moments(Aggregate, Panes<Moments>),
    /// Increase, rate.
    Counter(Aggregate, Panes<Counter>),
    /// Slope.
    Line(Panes<Line>),
    /// Quantile.
    Sketch(f64, Panes<Sketch>),
}

impl Window {
    /// An empty window. `Last` and histograms have no use for one; they get a window of means.
    pub fn new(aggregate: Aggregate, span: Duration) -> Self {
        match aggregate {
            Aggregate::Min | Aggregate::Max => Window::Extreme(aggregate, Panes::new(span)),
            Aggregate::Increase | Aggregate::Rate => Window::Counter(aggregate, Panes::new(span)),
            Aggregate::Slope => Window::Line(Panes::new(span)),
            Aggregate::Quantile(quantile) => Window::Sketch(quantile, Panes::new(span)),
            _ => Window::Moments(aggregate, Panes::new(span)),
        }
    }

    /// Takes a sample in; one older than the window is left out.
    pub fn push(&mut self, time: Time, value: f64) {
        match self {
            Window::Extreme(_, panes) => panes.push(time, value),
            Window::Moments(_, panes) => panes.push(time, value),
            Window::Counter(_, panes) => panes.push(time, value),
            Window::Line(panes) => panes.push(time, value),
            Window::Sketch(_, panes) => panes.push(time, value),
        }
    }

    /// The aggregate at `now`; none where the window holds too few samples to tell.
    pub fn value(&mut self, now: Time) -> Option<f64> {
        match self {
            Window::Extreme(aggregate, panes) => panes.merged(now).map(|all| all.value(*aggregate)),
            Window::Moments(aggregate, panes) => panes.merged(now).map(|all| all.value(*aggregate)),
            Window::Counter(aggregate, panes) => panes.merged(now).and_then(|all| all.value(*aggregate)),
            Window::Line(panes) => panes.merged(now).and_then(|all| all.slope()),
            Window::Sketch(quantile, panes) => panes.merged(now).and_then(|all| all.quantile(*quantile)),
        }
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        size_of::<Window>()
            + match self {
                Window::Extreme(_, panes) => panes.bytes(),
                Window::Moments(_, panes) => panes.bytes(),
                Window::Counter(_, panes) => panes.bytes(),
                Window::Line(panes) => panes.bytes(),
                Window::Sketch(_, panes) => panes.bytes(),
            }
    }
}

/// Panes of one kind. All but the newest are closed, and their merge is kept.
#[derive(Debug)]
pub struct Panes<P> {
    span_ms: i64,
    pane_ms: i64,
    /// Number of each pane since the epoch, with its aggregate; oldest first.
    panes: VecDeque<(i64, P)>,
    closed: Option<P>,
}

impl<P: Pane> Panes<P> {
    fn new(span: Duration) -> Self {
        let span_ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX).max(PANE_MS_MIN);
        let pane_ms = (span_ms + PANES_MAX - 1) / PANES_MAX;
        Panes { span_ms, pane_ms: pane_ms.max(PANE_MS_MIN), panes: VecDeque::new(), closed: None }
    }

    fn push(&mut self, time: Time, value: f64) {
        let number = time.as_millis().div_euclid(self.pane_ms);
        let newest = self.panes.back().map_or(i64::MIN, |(newest, _)| *newest);
        if number > newest {
            self.open(number);
        }
        let Some((_, pane)) = self.panes.iter_mut().rev().find(|(at, _)| *at == number) else { return };
        pane.add(time, value);
        if number < newest {
            self.closed = None;
        }
    }

    fn open(&mut self, number: i64) {
        self.panes.push_back((number, P::default()));
        self.closed = None;
        while self.panes.len() > usize::try_from(PANES_MAX + 1).unwrap_or(usize::MAX) {
            self.panes.pop_front();
        }
    }

    fn merged(&mut self, now: Time) -> Option<P> {
        self.expire(now);
        let closed = match self.closed.take() {
            Some(closed) => closed,
            None => self.merge_closed(),
        };
        let mut all = closed.clone();
        self.closed = Some(closed);
        all.merge(&self.panes.back()?.1);
        Some(all)
    }

    fn expire(&mut self, now: Time) {
        let edge = now.as_millis().saturating_sub(self.span_ms);
        while self.panes.front().is_some_and(|(number, _)| (number + 1).saturating_mul(self.pane_ms) <= edge) {
            self.panes.pop_front();
            self.closed = None;
        }
    }

    fn merge_closed(&self) -> P {
        let mut all = P::default();
        for (_, pane) in self.panes.iter().take(self.panes.len().saturating_sub(1)) {
            all.merge(pane);
        }
        all
    }

    fn bytes(&self) -> usize {
        self.panes.capacity() * size_of::<(i64, P)>()
    }
}

#[cfg(test)]
mod tests;
