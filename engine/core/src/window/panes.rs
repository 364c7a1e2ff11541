//! The panes of one window: an open one that samples go to, closed ones behind it, and their sum.

use std::collections::VecDeque;
use std::time::Duration;

use super::pane::Pane;
use crate::time::Time;

/// The most closed panes of a window. A span lies over at most this many and the open one.
pub const PANES_MAX: usize = 16;
/// Panes are whole multiples of this, in milliseconds.
const WIDTH_STEP_MS: i64 = 1000;
/// Room is made for this many panes at a time.
const GROWTH: usize = 4;

/// The width of a pane: a sixteenth of the span, rounded up to whole seconds.
pub fn pane_width(span: Duration) -> Duration {
    Duration::from_millis(width_ms(span_ms(span)).unsigned_abs())
}

fn span_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX).max(1)
}

fn width_ms(span: i64) -> i64 {
    let seconds = (span - 1) / (WIDTH_STEP_MS * PANES_MAX as i64) + 1;
    seconds.saturating_mul(WIDTH_STEP_MS)
}

/// The panes of one window. The open pane and the sum of the closed ones lie beside each other, so that neither a
/// sample nor a reading looks at the closed ones, but where one is added or goes.
#[derive(Clone, Debug)]
pub struct Panes<P> {
    span: i64,
    width: i64,
    open: P,
    /// The open pane's last moment.
    open_end: i64,
    /// The newest sample of the oldest closed pane; after every moment where there is none.
    oldest: i64,
    /// Closed panes that hold samples, oldest first.
    closed: VecDeque<P>,
    /// All closed panes as one.
    merged: P,
    is_merged: bool,
    dropped: u32,
}

impl<P: Pane> Panes<P> {
    /// No samples yet.
    pub fn new(span: Duration) -> Self {
        let span = span_ms(span);
        Panes {
            span,
            width: width_ms(span),
            open: P::EMPTY,
            open_end: i64::MIN,
            oldest: i64::MAX,
            closed: VecDeque::new(),
            merged: P::EMPTY,
            is_merged: true,
            dropped: 0,
        }
    }

    /// Takes a sample in; false where it was dropped.
    pub fn push(&mut self, time: Time, value: f64) -> bool {
        let time = time.as_millis();
        if time <= self.open.last() {
            return self.push_late(time, value);
        }
        if time > self.open_end {
            self.roll(time);
        }
        self.open.add(time, value);
        true
    }

    /// Closes the open pane and opens that of `time`.
    fn roll(&mut self, time: i64) {
        if !self.open.is_empty() {
            self.make_room();
            let full = std::mem::replace(&mut self.open, P::EMPTY);
            self.merged.absorb(&full);
            self.closed.push_back(full);
            self.note_oldest();
        }
        self.open_end = self.pane_end(time);
    }

    /// The last moment of the pane of `time`: panes are open at their start and closed at their end, as the
    /// window is.
    fn pane_end(&self, time: i64) -> i64 {
        time.saturating_sub(1).div_euclid(self.width).saturating_add(1).saturating_mul(self.width)
    }

    /// True where the oldest pane had to go: it lies a whole span before the newest sample.
    fn make_room(&mut self) -> bool {
        let is_full = self.closed.len() >= PANES_MAX;
        if is_full {
            self.closed.pop_front();
            self.is_merged = false;
        } else if self.closed.len() == self.closed.capacity() {
            self.closed.reserve_exact(GROWTH);
        }
        is_full
    }

    fn note_oldest(&mut self) {
        self.oldest = self.closed.front().map_or(i64::MAX, P::last);
    }

    fn push_late(&mut self, time: i64, value: f64) -> bool {
        let newest = self.open.last();
        if time == newest || time <= newest.saturating_sub(self.span) {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        let end = self.pane_end(time);
        if end == self.open_end {
            self.open.add(time, value);
        } else {
            self.push_closed(end, time, value);
        }
        true
    }

    fn push_closed(&mut self, end: i64, time: i64, value: f64) {
        let mut at = self.closed.partition_point(|pane| self.pane_end(pane.last()) < end);
        let is_there = self.closed.get(at).is_some_and(|pane| self.pane_end(pane.last()) == end);
        if !is_there {
            at -= usize::from(self.make_room() && at > 0);
            self.closed.insert(at, P::EMPTY);
        }
        self.closed[at].add(time, value);
        self.is_merged = false;
        self.note_oldest();
    }

    /// All samples of the window at `now` as one pane; `None` where there is none.
    pub fn at(&mut self, now: Time) -> Option<P> {
        self.expire(now);
        if self.open.is_empty() {
            return None;
        }
        if !self.is_merged {
            self.merge();
        }
        let mut all = self.merged.clone();
        all.absorb(&self.open);
        Some(all)
    }

    /// Lets go of panes that are outside the window at `now`; true where there was one.
    pub fn expire(&mut self, now: Time) -> bool {
        let now = now.as_millis();
        let (edge, horizon) = (now.saturating_sub(self.span), now.saturating_add(self.span));
        let mut gone = false;
        while self.open.last() > horizon {
            self.forget_open();
            gone = true;
        }
        if self.open.last() <= edge {
            gone |= !self.open.is_empty();
            self.clear();
        }
        while self.oldest <= edge {
            self.closed.pop_front();
            self.note_oldest();
            self.is_merged = false;
            gone = true;
        }
        gone
    }

    /// Undoes samples from the future: the pane before them is open again.
    fn forget_open(&mut self) {
        self.open = self.closed.pop_back().unwrap_or(P::EMPTY);
        self.open_end = if self.open.is_empty() { i64::MIN } else { self.pane_end(self.open.last()) };
        self.is_merged = false;
        self.dropped = self.dropped.saturating_add(1);
        self.note_oldest();
    }

    fn clear(&mut self) {
        self.closed.clear();
        (self.open, self.open_end) = (P::EMPTY, i64::MIN);
        (self.merged, self.is_merged) = (P::EMPTY, true);
        self.oldest = i64::MAX;
    }

    fn merge(&mut self) {
        self.merged = P::EMPTY;
        for pane in &self.closed {
            self.merged.absorb(pane);
        }
        self.is_merged = true;
    }

    /// The number of the pane of `time`; panes count up with time.
    pub fn number(&self, time: Time) -> i64 {
        time.as_millis().saturating_sub(1).div_euclid(self.width)
    }

    /// The number of the oldest pane that is kept.
    pub fn oldest_number(&self) -> i64 {
        self.number(Time::from_millis(self.oldest.min(self.open.last())))
    }

    /// The number of the newest pane.
    pub fn newest_number(&self) -> i64 {
        self.number(Time::from_millis(self.open.last()))
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many samples were dropped.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// Bytes kept beside the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.closed.capacity() * size_of::<P>()
    }
}
