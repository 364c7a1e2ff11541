//! Samples of a file in order of time, each moment a page for the mapper.

use watchfire_core::Time;

use crate::mapping::{Dropped, Mapper, Page};
use crate::recording::Moment;

/// Samples that are kept in any order and given out one by one.
pub(super) trait Rows {
    /// Gives a sample to a page.
    fn give(&self, row: u32, page: &mut Page<'_>);
}

/// Rows with the time of each, not yet in order.
#[derive(Debug)]
pub(super) struct Unsorted<R> {
    pub rows: R,
    /// Milliseconds since the Unix epoch and the row.
    pub times: Vec<(i64, u32)>,
}

impl<R: Rows> Unsorted<R> {
    /// The same in order, seen through a mapper.
    pub fn over(mut self, mapper: Mapper) -> Timeline<R> {
        self.times.sort_unstable();
        Timeline { rows: self.rows, times: self.times, at: 0, mapper }
    }
}

/// Rows in order of time.
#[derive(Debug)]
pub(super) struct Timeline<R> {
    rows: R,
    times: Vec<(i64, u32)>,
    at: usize,
    mapper: Mapper,
}

impl<R: Rows> Timeline<R> {
    pub fn dropped(&self) -> &Dropped {
        self.mapper.dropped()
    }
}

impl<R: Rows> Iterator for Timeline<R> {
    type Item = Moment;

    fn next(&mut self) -> Option<Moment> {
        let &(millis, _) = self.times.get(self.at)?;
        let mut moment = Moment::empty(Time::from_millis(millis));
        let mut page = self.mapper.page(moment.time, &mut moment.observations);
        while let Some(&(_, row)) = self.times.get(self.at).filter(|(time, _)| *time == millis) {
            self.rows.give(row, &mut page);
            self.at += 1;
        }
        page.finish();
        Some(moment)
    }
}
