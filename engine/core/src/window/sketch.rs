//! A quantile over a window: the logarithmic bins of DDSketch (Masson, Rim, Lee: VLDB 2019), kept sparse.
//!
//! The mapping from values to bins is that of `sketches-ddsketch`. Its store is dense, 1 KiB for the first sample
//! of each pane; a pane mostly holds a handful of values, so all panes share one ordered list of (bin, pane, count).

use std::sync::LazyLock;
use std::time::Duration;

use sketches_ddsketch::Config;

use super::pane::Stamp;
use super::panes::Panes;
use crate::time::Time;

/// A quantile is within this share of the true one.
pub const RELATIVE_ACCURACY: f64 = 0.01;
/// The most bins of a window, all panes together (48 KiB at 12 bytes). Further values go to the nearest bin.
pub const BINS_MAX: usize = 4096;
/// Values nearer to 0 than this are 0.
const SMALLEST: f64 = 1e-9;

static MAPPING: LazyLock<Config> = LazyLock::new(|| Config::new(RELATIVE_ACCURACY, 1, SMALLEST));

#[derive(Clone, Copy, Debug)]
struct Bin {
    /// Ordered as the values are: negative for negative values, 0 for 0.
    key: i32,
    /// The low bits of the pane's number.
    pane: u32,
    count: u32,
}

/// The values of one window by bin.
#[derive(Clone, Debug)]
pub struct Sketch {
    quantile: f64,
    panes: Panes<Stamp>,
    /// By key, then pane.
    bins: Vec<Bin>,
}

impl Sketch {
    pub fn new(quantile: f64, span: Duration) -> Self {
        Sketch { quantile, panes: Panes::new(span), bins: Vec::new() }
    }

    pub fn push(&mut self, time: Time, value: f64) -> bool {
        let taken = self.panes.push(time, value);
        if taken {
            self.count(key_of(value), self.panes.number(time) as u32);
        }
        taken
    }

    fn count(&mut self, key: i32, pane: u32) {
        match self.bins.binary_search_by_key(&(key, pane), |bin| (bin.key, bin.pane)) {
            Ok(at) => self.bins[at].count = self.bins[at].count.saturating_add(1),
            Err(at) if self.bins.len() < BINS_MAX => self.bins.insert(at, Bin { key, pane, count: 1 }),
            Err(at) => {
                let at = at.min(self.bins.len() - 1);
                self.bins[at].count = self.bins[at].count.saturating_add(1);
            }
        }
    }

    /// The quantile at `now`, between the two nearest values as in Prometheus' `quantile_over_time`.
    pub fn value(&mut self, now: Time) -> Option<f64> {
        self.expire(now);
        let total: u64 = self.bins.iter().map(|bin| u64::from(bin.count)).sum();
        if total == 0 || !(0.0..=1.0).contains(&self.quantile) {
            return None;
        }
        let rank = self.quantile * (total - 1) as f64;
        let (low, high) = (self.at_rank(rank.floor() as u64)?, self.at_rank(rank.ceil() as u64)?);
        Some(low + (high - low) * rank.fract())
    }

    fn at_rank(&self, rank: u64) -> Option<f64> {
        let mut below = 0;
        let bin = self.bins.iter().find(|bin| {
            below += u64::from(bin.count);
            below > rank
        })?;
        Some(value_of(bin.key))
    }

    /// Lets go of the bins of panes that are gone.
    fn expire(&mut self, now: Time) {
        // Rolling may have let a pane go as well, so the bins are looked at even where `expire` finds none.
        self.panes.expire(now);
        if self.panes.is_empty() {
            self.bins.clear();
            return;
        }
        let oldest = self.panes.oldest_number() as u32;
        let kept = (self.panes.newest_number() as u32).wrapping_sub(oldest);
        self.bins.retain(|bin| bin.pane.wrapping_sub(oldest) <= kept);
    }

    pub fn dropped(&self) -> u32 {
        self.panes.dropped()
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.panes.heap_bytes() + self.bins.capacity() * size_of::<Bin>()
    }
}

/// Distance between the bins of the smallest value and of 0.
fn shift() -> i32 {
    1 - MAPPING.key(SMALLEST)
}

fn key_of(value: f64) -> i32 {
    if value.abs() <= SMALLEST {
        return 0;
    }
    let key = MAPPING.key(value.abs()) + shift();
    if value > 0.0 { key } else { -key }
}

fn value_of(key: i32) -> f64 {
    match key.signum() {
        0 => 0.0,
        sign => f64::from(sign) * MAPPING.value(key.abs() - shift()).min(f64::MAX),
    }
}
