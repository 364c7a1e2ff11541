//! The series that one engine knows, with the last sample of each.

use std::collections::HashMap;
use std::sync::Arc;

use crate::labels::Labels;
use crate::sample::{Quality, Sample, Series, SeriesId, is_stale_marker};
use crate::time::Time;

/// The most series that one engine keeps; more are refused and counted.
pub const SERIES_MAX: usize = 4_000_000;

/// The last sample of a series. 24 bytes, so that a column is gathered from few cache lines.
#[derive(Clone, Copy, Debug)]
pub struct Last {
    /// When it was read.
    pub time: Time,
    /// What was read.
    pub value: f64,
    stale_after_ms: u32,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Never,
    Value,
    Invalid,
    Ended,
}

impl Last {
    /// Whether the value counts at `now`.
    pub fn quality(&self, now: Time) -> Quality {
        match self.status {
            Status::Never => Quality::Missing,
            Status::Ended => Quality::Stale,
            _ if self.is_old(now) => Quality::Stale,
            Status::Invalid => Quality::Invalid,
            Status::Value => Quality::Ok,
        }
    }

    fn is_old(&self, now: Time) -> bool {
        now.as_millis().saturating_sub(self.time.as_millis()) > i64::from(self.stale_after_ms)
    }
}

/// Where the samples of a series go besides [`Last`]: a window of one rule's row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sink {
    /// Which rule.
    pub rule: u32,
    /// Which of its inputs.
    pub input: u32,
    /// Which of its rows.
    pub row: u32,
}

/// All series of one engine.
#[derive(Debug, Default)]
pub struct SeriesTable {
    ids: HashMap<(Arc<str>, Labels), SeriesId>,
    lasts: Vec<Last>,
    series: Vec<Arc<Series>>,
    sinks: Vec<Vec<Sink>>,
}

impl SeriesTable {
    /// The id of a series and whether it is new; `None` where [`SERIES_MAX`] is reached.
    pub fn intern(&mut self, series: &Arc<Series>) -> Option<(SeriesId, bool)> {
        let key = (series.metric.clone(), series.labels.clone());
        if let Some(&id) = self.ids.get(&key) {
            return Some((id, false));
        }
        if self.series.len() >= SERIES_MAX {
            return None;
        }
        let id = SeriesId(u32::try_from(self.series.len()).ok()?);
        let stale_after_ms = u32::try_from(series.stale_after.as_millis()).unwrap_or(u32::MAX);
        self.ids.insert(key, id);
        self.series.push(series.clone());
        self.lasts.push(Last { time: Time::EPOCH, value: 0.0, stale_after_ms, status: Status::Never });
        self.sinks.push(Vec::new());
        Some((id, true))
    }

    /// How many series are known.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// What a series is.
    pub fn series(&self, id: SeriesId) -> Option<&Arc<Series>> {
        self.series.get(id.0 as usize)
    }

    /// All ids, oldest first.
    pub fn ids(&self) -> impl Iterator<Item = SeriesId> + use<> {
        (0..u32::try_from(self.series.len()).unwrap_or(u32::MAX)).map(SeriesId)
    }

    /// The last sample of a series.
    pub fn last(&self, id: SeriesId) -> Option<&Last> {
        self.lasts.get(id.0 as usize)
    }

    /// Whether a series has a value that counts at `now`.
    pub fn is_fresh(&self, id: SeriesId, now: Time) -> bool {
        self.last(id).is_some_and(|last| last.quality(now) == Quality::Ok)
    }

    /// Takes a sample in. Answers the windows that want it, none where it is no number, is older than the
    /// last one, or belongs to no known series.
    pub fn take(&mut self, sample: &Sample) -> &[Sink] {
        let at = sample.series.0 as usize;
        let Some(last) = self.lasts.get_mut(at) else { return &[] };
        let late = last.status != Status::Never && sample.time < last.time;
        if !late {
            last.time = sample.time;
            last.status = status_of(sample.value);
        }
        if !sample.value.is_finite() {
            return &[];
        }
        if !late {
            last.value = sample.value;
        }
        &self.sinks[at]
    }

    /// Sends the samples of a series to a window as well.
    pub fn add_sink(&mut self, id: SeriesId, sink: Sink) {
        if let Some(sinks) = self.sinks.get_mut(id.0 as usize)
            && !sinks.contains(&sink)
        {
            sinks.push(sink);
        }
    }

    /// No longer sends the samples of a series to a window.
    pub fn remove_sink(&mut self, id: SeriesId, sink: Sink) {
        if let Some(sinks) = self.sinks.get_mut(id.0 as usize) {
            sinks.retain(|other| *other != sink);
        }
    }

    /// Forgets all windows, before rules are bound anew.
    pub fn clear_sinks(&mut self) {
        self.sinks.iter_mut().for_each(Vec::clear);
    }

    /// Bytes kept for all series, their texts left out.
    pub fn bytes(&self) -> usize {
        let sinks: usize = self.sinks.iter().map(|sinks| sinks.capacity() * size_of::<Sink>()).sum();
        self.lasts.capacity() * size_of::<Last>() + self.sinks.capacity() * size_of::<Vec<Sink>>() + sinks
    }
}

fn status_of(value: f64) -> Status {
    match value {
        _ if is_stale_marker(value) => Status::Ended,
        _ if !value.is_finite() => Status::Invalid,
        _ => Status::Value,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::sample::STALE_MARKER;

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn table() -> (SeriesTable, SeriesId) {
        let mut table = SeriesTable::default();
        let every = std::time::Duration::from_secs(5);
        let series = Arc::new(Series::every("gpu_up", Labels::new([("host", "h1")]), every));
        let (id, new) = table.intern(&series).unwrap();
        assert!(new);
        assert_eq!(table.intern(&series), Some((id, false)));
        (table, id)
    }

    #[test]
    fn quality_tells_missing_stale_ended_and_invalid_apart() {
        let (mut table, id) = table();
        let quality = |table: &SeriesTable, now| table.last(id).unwrap().quality(at(now));
        assert_eq!(quality(&table, 0), Quality::Missing);
        let steps = [
            (0, 1.0, 15, Quality::Ok),
            (0, 1.0, 16, Quality::Stale),
            (20, f64::NAN, 20, Quality::Invalid),
            (25, f64::INFINITY, 25, Quality::Invalid),
            (30, 2.0, 30, Quality::Ok),
            (35, f64::from_bits(STALE_MARKER), 35, Quality::Stale),
            (40, 3.0, 40, Quality::Ok),
        ];
        for (time, value, now, expected) in steps {
            table.take(&Sample { series: id, time: at(time), value });
            assert_eq!(quality(&table, now), expected, "{value} read at {time} seen at {now}");
        }
    }

    #[test]
    fn a_late_sample_does_not_take_the_place_of_a_newer_one() {
        let (mut table, id) = table();
        table.take(&Sample { series: id, time: at(10), value: 1.0 });
        table.take(&Sample { series: id, time: at(5), value: 9.0 });
        assert_eq!(table.last(id).unwrap().value, 1.0);
    }

    #[test]
    fn an_unknown_series_is_ignored() {
        let (mut table, _) = table();
        assert!(table.take(&Sample { series: SeriesId(77), time: at(0), value: 1.0 }).is_empty());
    }
}
