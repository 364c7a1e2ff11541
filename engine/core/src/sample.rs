//! What a host tells: series and their samples. The only types that collectors share with the engine.

use std::sync::Arc;
use std::time::Duration;

use crate::labels::Labels;
use crate::time::Time;

/// A metric of one thing: what a collector promises to send, again and again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Series {
    /// The metric's name in Prometheus words and base units, such as `gpu_temperature_celsius`.
    pub metric: Arc<str>,
    /// Whose metric it is: `host`, `gpu`, `uuid`, `pci`, `model`, …
    pub labels: Labels,
    /// Without a new sample for this long the last one no longer counts (usually three intervals of its source).
    pub stale_after: Duration,
}

impl Series {
    /// How long a sample counts where its source's interval is unknown (Prometheus' look-back).
    pub const STALE_AFTER_DEFAULT: Duration = Duration::from_secs(300);
    /// No source is so fast that a sample goes stale sooner than this.
    pub const STALE_AFTER_MIN: Duration = Duration::from_secs(10);

    /// A series whose samples come every `interval`: stale after three of them, at least
    /// [`Series::STALE_AFTER_MIN`].
    pub fn every(metric: impl Into<Arc<str>>, labels: Labels, interval: Duration) -> Self {
        let stale_after = (interval * 3).max(Series::STALE_AFTER_MIN);
        Series { metric: metric.into(), labels, stale_after }
    }
}

/// One reading as a collector hands it over. Collectors keep the `Arc` of a series and clone it for each
/// reading: the engine then finds the series without looking at its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Which series.
    pub series: Arc<Series>,
    /// When it was read.
    pub time: Time,
    /// What was read, in the metric's unit. [`STALE_MARKER`] ends the series.
    pub value: f64,
}

/// A series known to one engine. Small and dense, so that a sample needs no look-up by text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u32);

/// One value of a known series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Which series.
    pub series: SeriesId,
    /// When it was read.
    pub time: Time,
    /// What was read. [`STALE_MARKER`] ends the series; any other NaN is an invalid reading.
    pub value: f64,
}

/// The bits of Prometheus' stale marker, a NaN of its own (prometheus `model/value/value.go`).
pub const STALE_MARKER: u64 = 0x7ff0_0000_0000_0002;

/// Whether `value` says that its series has ended. An ordinary NaN does not.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_MARKER
}

/// How far the value of one cell of a batch can be trusted. The numbers are those of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Quality {
    /// A fresh value.
    Ok = 0,
    /// Nothing was ever read.
    Missing = 1,
    /// The last value is too old.
    Stale = 2,
    /// The last reading was no number: NaN or infinite.
    Invalid = 3,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marker_ends_a_series() {
        assert!(is_stale_marker(f64::from_bits(STALE_MARKER)));
        assert!(!is_stale_marker(f64::from_bits(0x7ff8_0000_0000_0001)));
        assert!(!is_stale_marker(f64::NAN));
    }
}
