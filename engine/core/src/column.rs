//! One input of one rule: which series feed its rows, and the window of each.

use std::collections::HashMap;
use std::time::Duration;

use crate::happenings::EventWindow;
use crate::labels::Labels;
use crate::rule::{Aggregate, EventStat, Input, Reads};
use crate::sample::{Quality, SeriesId};
use crate::series::SeriesTable;
use crate::targets;
use crate::time::Time;
use crate::window::{HistogramWindow, Window};

/// No series feeds this row.
const NONE: SeriesId = SeriesId(u32::MAX);

/// One input of one rule.
#[derive(Debug)]
pub struct Column {
    input: Input,
    kind: Kind,
    /// rows: the series that feeds each row.
    bound: Vec<SeriesId>,
    /// Other series of the same row, such as the same GPU told by a second source: they take over when the
    /// bound one goes stale.
    spare: HashMap<u32, Vec<SeriesId>>,
    /// Series of a wider scope than the rule's, by their target.
    wide: HashMap<Labels, Vec<SeriesId>>,
    /// While all is bound anew: rows: the series that fed each row before.
    before: Vec<SeriesId>,
}

#[derive(Debug)]
enum Kind {
    Last,
    Window { aggregate: Aggregate, span: Duration, rows: Vec<Option<Box<Window>>> },
    Histogram { quantile: f64, span: Duration, rows: Vec<Option<Box<HistogramWindow>>>, les: HashMap<SeriesId, f64> },
    Events { codes: Vec<u32>, stat: EventStat, span: Duration, rows: Vec<Option<Box<EventWindow>>> },
}

impl Column {
    /// An input without rows.
    pub fn new(input: Input) -> Self {
        let span = input.window;
        let kind = match &input.reads {
            Reads::Metric { aggregate: Aggregate::Last, .. } => Kind::Last,
            Reads::Metric { aggregate: Aggregate::HistogramQuantile(quantile), .. } => {
                Kind::Histogram { quantile: *quantile, span, rows: Vec::new(), les: HashMap::new() }
            }
            Reads::Metric { aggregate, .. } => Kind::Window { aggregate: *aggregate, span, rows: Vec::new() },
            Reads::Event { codes, stat, .. } => {
                Kind::Events { codes: codes.clone(), stat: *stat, span, rows: Vec::new() }
            }
        };
        Column { input, kind, bound: Vec::new(), spare: HashMap::new(), wide: HashMap::new(), before: Vec::new() }
    }

    /// What it reads.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Whether its samples go to windows as well as to the series' last value.
    pub fn is_windowed(&self) -> bool {
        matches!(self.kind, Kind::Window { .. } | Kind::Histogram { .. })
    }

    /// The metric whose series feed it: for a histogram that of its buckets. `None` for events.
    pub fn metric(&self) -> Option<String> {
        match (&self.input.reads, &self.kind) {
            (Reads::Metric { name, .. }, Kind::Histogram { .. }) => Some(format!("{name}_bucket")),
            (Reads::Metric { name, .. }, _) => Some(name.to_string()),
            (Reads::Event { .. }, _) => None,
        }
    }

    /// Makes room for `rows` rows.
    pub fn grow(&mut self, rows: usize) {
        self.bound.resize(rows, NONE);
        match &mut self.kind {
            Kind::Last => {}
            Kind::Window { rows: windows, .. } => windows.resize_with(rows, || None),
            Kind::Histogram { rows: windows, .. } => windows.resize_with(rows, || None),
            Kind::Events { rows: windows, .. } => windows.resize_with(rows, || None),
        }
    }

    /// Forgets which series feed which row, and keeps the windows: all series are to be bound anew, up to
    /// [`Column::all_bound`].
    pub fn unbind(&mut self) {
        if self.before.is_empty() {
            self.before = self.bound.clone();
        }
        self.bound.fill(NONE);
        self.spare.clear();
        self.wide.clear();
    }

    /// All series were bound anew.
    pub fn all_bound(&mut self) {
        self.before = Vec::new();
    }

    /// Lets a series feed a row. Of several series of one source the newest feeds it: it is the same target with new
    /// labels. A series of another source waits until the one that feeds the row goes stale: what two sources count
    /// must not run into each other.
    pub fn bind(&mut self, row: u32, id: SeriesId, labels: &Labels, table: &SeriesTable) {
        if let Kind::Histogram { les, .. } = &mut self.kind {
            les.insert(id, le_of(labels));
        }
        let at = row as usize;
        let old = self.bound[at];
        if old == id || self.spare.get(&row).is_some_and(|spare| spare.contains(&id)) {
            return;
        }
        let fed_before = self.before.get(at).copied().unwrap_or(NONE);
        let wins = old == NONE || fed_before == id || (fed_before != old && is_same_source(old, labels, table));
        let waits = if wins { std::mem::replace(&mut self.bound[at], id) } else { id };
        if waits != NONE {
            self.spare.entry(row).or_default().push(waits);
        }
    }

    /// The series that feeds a row; of a histogram, one of them.
    pub fn feeds(&self, row: u32, id: SeriesId) -> bool {
        self.bound[row as usize] == id
    }

    /// Forgets which series of a wider scope feed a row, and names them. What its window holds is theirs as long as
    /// they are bound again.
    pub fn unbind_row(&mut self, row: u32) -> Vec<SeriesId> {
        let mut ids = self.spare.remove(&row).unwrap_or_default();
        ids.extend(Some(std::mem::replace(&mut self.bound[row as usize], NONE)).filter(|id| *id != NONE));
        ids
    }

    /// Empties a row's window.
    pub fn forget_window(&mut self, row: u32) {
        match &mut self.kind {
            Kind::Window { rows, .. } => rows[row as usize] = None,
            Kind::Histogram { rows, .. } => rows[row as usize] = None,
            Kind::Last | Kind::Events { .. } => {}
        }
    }

    /// Remembers a series of a wider scope by its target.
    pub fn set_wide(&mut self, key: Labels, id: SeriesId) {
        self.wide.entry(key).or_default().push(id);
    }

    /// The series of a wider scope that belong to a row with `key`, oldest first.
    pub fn wide(&self, key: &Labels) -> Vec<SeriesId> {
        self.wide.get(key).cloned().unwrap_or_default()
    }

    /// Takes a sample into a row's window.
    pub fn push(&mut self, row: u32, id: SeriesId, time: Time, value: f64) {
        let at = row as usize;
        match &mut self.kind {
            Kind::Window { aggregate, span, rows } if self.bound[at] == id => {
                rows[at].get_or_insert_with(|| Box::new(Window::new(*aggregate, *span))).push(time, value);
            }
            Kind::Histogram { quantile, span, rows, les } => {
                let le = les.get(&id).copied().unwrap_or(f64::NAN);
                let window = rows[at].get_or_insert_with(|| Box::new(HistogramWindow::new(*quantile, *span)));
                window.push_bucket(le, id.0, time, value);
            }
            _ => {}
        }
    }

    /// Takes an event into a row's window.
    pub fn happened(&mut self, row: u32, event: &crate::event::Occurrence) {
        if let Kind::Events { span, rows, .. } = &mut self.kind {
            let window = rows[row as usize].get_or_insert_with(|| Box::new(EventWindow::new(*span)));
            window.push(event.time, event.code, event.job.clone());
        }
    }

    /// The value of each row at `now`, with its quality; values that are not ok are 0.
    pub fn gather(&mut self, now: Time, table: &SeriesTable, values: &mut [f64], quality: &mut [u8]) {
        if !self.spare.is_empty() {
            self.take_over(now, table);
        }
        for (row, (value, quality)) in values.iter_mut().zip(quality).enumerate() {
            let read = self.read(row, now, table);
            *quality = match read {
                Ok(_) => Quality::Ok as u8,
                Err(bad) => bad as u8,
            };
            *value = read.unwrap_or(0.0);
        }
    }

    fn read(&mut self, row: usize, now: Time, table: &SeriesTable) -> Result<f64, Quality> {
        if let Kind::Events { codes, stat, rows, .. } = &mut self.kind {
            return read_events(rows[row].as_deref_mut(), codes, *stat, now);
        }
        let last = table.last(self.bound[row]).ok_or(Quality::Missing)?;
        let quality = last.quality(now);
        // A range of Prometheus is whatever samples it holds, also of a series that has ended.
        let is_range = matches!(self.kind, Kind::Window { aggregate: Aggregate::PromQl(_), .. });
        if quality != Quality::Ok && !is_range {
            return Err(quality);
        }
        match &mut self.kind {
            Kind::Window { rows, .. } => rows[row].as_mut().and_then(|window| window.value(now)),
            Kind::Histogram { rows, .. } => rows[row].as_mut().and_then(|window| window.value(now)),
            _ => Some(last.value),
        }
        .ok_or(Quality::Missing)
    }

    /// Lets series that are fresh feed the rows whose own has gone stale. All buckets of a histogram feed its window
    /// at all times; the bound one only tells whether it is fresh.
    pub fn take_over(&mut self, now: Time, table: &SeriesTable) {
        for (row, spare) in &mut self.spare {
            let bound = &mut self.bound[*row as usize];
            if table.is_fresh(*bound, now) {
                continue;
            }
            let Some(fresh) = spare.iter_mut().find(|id| table.is_fresh(**id, now)) else { continue };
            std::mem::swap(bound, fresh);
            if let Kind::Window { rows, .. } = &mut self.kind {
                let goes_on = table.series(*bound).is_some_and(|new| is_same_source(*fresh, &new.labels, table));
                rows[*row as usize].take_if(|_| !goes_on);
            }
        }
    }

    /// Bytes kept for all rows.
    pub fn bytes(&self) -> usize {
        let windows: usize = match &self.kind {
            Kind::Last => 0,
            Kind::Window { rows, .. } => rows.iter().flatten().map(|window| window.bytes()).sum(),
            Kind::Histogram { rows, .. } => rows.iter().flatten().map(|window| window.bytes()).sum(),
            Kind::Events { rows, .. } => rows.iter().flatten().map(|window| window.bytes()).sum(),
        };
        windows + self.bound.capacity() * size_of::<SeriesId>()
    }
}

fn is_same_source(one: SeriesId, other: &Labels, table: &SeriesTable) -> bool {
    table.series(one).is_some_and(|one| targets::same_origin(&one.labels, other))
}

/// No event is a fact: a count of 0. The age and the code of an event that never was are missing.
fn read_events(window: Option<&mut EventWindow>, codes: &[u32], stat: EventStat, now: Time) -> Result<f64, Quality> {
    let read = window.and_then(|window| window.value(now, codes, stat));
    match stat {
        EventStat::Count | EventStat::DistinctJobs => Ok(read.unwrap_or(0.0)),
        EventStat::Age | EventStat::LastCode => read.ok_or(Quality::Missing),
    }
}

fn le_of(labels: &Labels) -> f64 {
    labels.get("le").and_then(|le| le.parse().ok()).unwrap_or(f64::NAN)
}
