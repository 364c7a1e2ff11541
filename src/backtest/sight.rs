//! What an alert or an incident looked like: the values of its metrics around it, as a line of text.

use std::collections::BTreeMap;
use std::time::Duration;

use watchfire_collector::recording::Moment;
use watchfire_engine::Time;

/// How much is shown before and after.
pub const AROUND: Duration = Duration::from_secs(15 * 60);
/// Columns of the line.
const COLUMNS: usize = 60;
/// The most series that are shown of one.
const LINES_MAX: usize = 3;
/// The most values that are kept of one series.
const VALUES_MAX: usize = 100_000;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One thing to look at.
#[derive(Debug)]
pub struct Sight {
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// The metrics.
    pub metrics: Vec<String>,
    /// Labels that its series must not contradict.
    pub labels: BTreeMap<String, String>,
    seen: BTreeMap<String, Vec<(Time, f64)>>,
}

impl Sight {
    /// One thing to look at, with some time around it.
    pub fn new(start: Time, end: Time, metrics: Vec<String>, labels: BTreeMap<String, String>) -> Self {
        let from = Time::from_millis(start.as_millis().saturating_sub(AROUND.as_millis() as i64));
        Sight { start: from, end: end + AROUND, metrics, labels, seen: BTreeMap::new() }
    }

    fn look(&mut self, moment: &Moment) {
        if moment.time < self.start || moment.time > self.end {
            return;
        }
        for observation in &moment.observations {
            let series = &observation.series;
            let fits = |(name, value): (&String, &String)| series.labels.get(name).is_none_or(|found| found == value);
            if !self.metrics.iter().any(|metric| **metric == *series.metric) || !self.labels.iter().all(fits) {
                continue;
            }
            let name = format!("{}{{{:?}}}", series.metric, series.labels);
            if self.seen.len() < LINES_MAX || self.seen.contains_key(&name) {
                let values = self.seen.entry(name).or_default();
                if values.len() < VALUES_MAX {
                    values.push((observation.time, observation.value));
                }
            }
        }
    }

    /// One line for each series: name, smallest and largest value, and their course.
    pub fn lines(&self) -> Vec<String> {
        self.seen.iter().map(|(name, values)| format!("{}  {name}", self.line(values))).collect()
    }

    fn line(&self, values: &[(Time, f64)]) -> String {
        let span = self.end.since(self.start).as_millis().max(1) as f64;
        let mut columns: [Option<f64>; COLUMNS] = [None; COLUMNS];
        let good = || values.iter().filter(|(_, value)| value.is_finite());
        for (time, value) in good() {
            let at = (time.since(self.start).as_millis() as f64 / span * COLUMNS as f64) as usize;
            let cell = &mut columns[at.min(COLUMNS - 1)];
            *cell = Some(cell.map_or(*value, |before: f64| before.max(*value)));
        }
        let low = good().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
        let high = good().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
        let bar = |value: &Option<f64>| match value {
            None => '·',
            Some(_) if high <= low => BARS[3],
            Some(value) => BARS[(((value - low) / (high - low) * 7.0).round() as usize).min(7)],
        };
        format!("{} {low:.4}..{high:.4}", columns.iter().map(bar).collect::<String>())
    }
}

/// Looks at all of them in one pass.
pub fn sights(all: &mut [Sight], moment: &Moment) {
    all.iter_mut().for_each(|sight| sight.look(moment));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_drawn_with_gaps_and_extremes() {
        let at = |minutes: i64| Time::from_millis(minutes * 60_000);
        let sight = Sight::new(at(15), at(15), vec![], BTreeMap::new());
        let values: Vec<(Time, f64)> = (0..15).map(|minute| (at(minute), minute as f64)).collect();
        let line = sight.line(&values);
        assert!(
            line.starts_with('▁') && line.contains('█') && line.contains("··") && line.ends_with("0.0000..14.0000"),
            "{line}"
        );
    }
}
