//! How series and events find the rows of a rule.

use super::{Judge, without_bucket};
use crate::column::Column;
use crate::event::Occurrence;
use crate::labels::Labels;
use crate::rule::Reads;
use crate::sample::SeriesId;
use crate::series::{SeriesTable, Sink};
use crate::targets;
use crate::time::Time;

impl Judge {
    /// Forgets which series feed which row; all are to be bound anew, up to [`Judge::all_bound`].
    pub fn unbind(&mut self) {
        self.columns.iter_mut().for_each(Column::unbind);
    }

    /// All series were bound anew.
    pub fn all_bound(&mut self) {
        self.columns.iter_mut().for_each(Column::all_bound);
    }

    /// Binds a series of one of its inputs.
    pub fn bind(&mut self, rule: u32, input: u32, id: SeriesId, table: &mut SeriesTable) {
        let Some(series) = table.series(id).cloned() else { return };
        let reads = self.columns[input as usize].input();
        if !reads.admits(&series.labels) {
            return;
        }
        let scope = reads.scope;
        let Some(key) = targets::key(scope, &series.labels) else { return };
        if scope == self.program.descriptor().scope {
            let labels = without_bucket(&series.labels);
            let Some(row) = self.row(rule, without_bucket(&key), &labels, table) else { return };
            self.attach(rule, input, row, id, &series.labels, table);
            if self.naming == Some(input) && self.columns[input as usize].feeds(row, id) {
                self.rename(rule, row, &labels, table);
            }
            return;
        }
        for row in self.rows.below(scope, &key).to_vec() {
            self.attach(rule, input, row, id, &series.labels, table);
        }
        self.columns[input as usize].set_wide(key, id);
    }

    fn attach(&mut self, rule: u32, input: u32, row: u32, id: SeriesId, labels: &Labels, table: &mut SeriesTable) {
        let column = &mut self.columns[input as usize];
        column.bind(row, id, labels, table);
        if column.is_windowed() {
            table.add_sink(id, Sink { rule, input, row });
        }
    }

    /// The row of a target, made where it is new.
    fn row(&mut self, rule: u32, key: Labels, labels: &Labels, table: &mut SeriesTable) -> Option<u32> {
        if let Some(row) = self.rows.find(&key) {
            return Some(row);
        }
        let group_by = self.program.descriptor().group_by.clone();
        let Some(row) = self.rows.add(key, labels.clone(), group_by.as_deref()) else {
            self.counts.rows_refused_total += 1;
            return None;
        };
        self.targets_told = false;
        self.grow();
        self.attach_wide(rule, row, table);
        Some(row)
    }

    /// Gives a row the labels of the series that names it. What is spread over it may be another target's now.
    fn rename(&mut self, rule: u32, row: u32, labels: &Labels, table: &mut SeriesTable) {
        let group_by = self.program.descriptor().group_by.clone();
        if !self.rows.relabel(row, labels, group_by.as_deref()) {
            return;
        }
        self.targets_told = false;
        self.derived.iter_mut().for_each(|ids| ids[row as usize] = None);
        let fed = self.detach_wide(rule, row, table);
        self.attach_wide(rule, row, table);
        for (input, id) in fed {
            let column = &mut self.columns[input as usize];
            if !column.feeds(row, id) {
                column.forget_window(row);
            }
        }
    }

    pub(super) fn grow(&mut self) {
        let rows = self.rows.len();
        self.columns.iter_mut().for_each(|column| column.grow(rows));
        self.derived.iter_mut().for_each(|ids| ids.resize(rows, None));
        self.alerts.resize_with(rows, || None);
    }

    fn wide_inputs(&self) -> Vec<u32> {
        let scope = self.program.descriptor().scope;
        let inputs = (0u32..).zip(&self.columns).filter(|(_, column)| column.input().scope != scope);
        inputs.map(|(input, _)| input).collect()
    }

    fn attach_wide(&mut self, rule: u32, row: u32, table: &mut SeriesTable) {
        for input in self.wide_inputs() {
            let column = &self.columns[input as usize];
            let key = targets::key(column.input().scope, self.rows.labels(row));
            for id in key.map(|key| column.wide(&key)).unwrap_or_default() {
                let labels = table.series(id).map(|series| series.labels.clone()).unwrap_or_default();
                self.attach(rule, input, row, id, &labels, table);
            }
        }
    }

    /// Takes the wider series off a row; the input and the series that fed it.
    fn detach_wide(&mut self, rule: u32, row: u32, table: &mut SeriesTable) -> Vec<(u32, SeriesId)> {
        let mut fed = Vec::new();
        for input in self.wide_inputs() {
            let ids = self.columns[input as usize].unbind_row(row);
            ids.iter().for_each(|id| table.remove_sink(*id, Sink { rule, input, row }));
            fed.extend(ids.last().map(|id| (input, *id)));
        }
        fed
    }

    /// Takes an event in where one of its inputs reads its kind. An event of a wider target, such as a host, happens
    /// to all rows of that target.
    pub fn happened(&mut self, rule: u32, event: &Occurrence, table: &mut SeriesTable) {
        for input in 0..self.columns.len() {
            let reads = &self.columns[input].input().reads;
            if !matches!(reads, Reads::Event { kind, .. } if *kind == event.kind) {
                continue;
            }
            let rows = self.rows_of(rule, input, event, table);
            if rows.is_empty() {
                self.counts.events_unplaced_total += 1;
            }
            rows.into_iter().for_each(|row| self.columns[input].happened(row, event));
        }
    }

    fn rows_of(&mut self, rule: u32, input: usize, event: &Occurrence, table: &mut SeriesTable) -> Vec<u32> {
        let scope = self.columns[input].input().scope;
        let Some(key) = targets::key(scope, &event.labels) else { return Vec::new() };
        if scope != self.program.descriptor().scope {
            return self.rows.below(scope, &key).to_vec();
        }
        // The labels of an event never rename a row that series have named.
        self.row(rule, key, &event.labels, table).into_iter().collect()
    }

    /// Lets fresh series take over from stale ones, as a tick at `now` would.
    pub fn take_over(&mut self, now: Time, table: &SeriesTable) {
        self.columns.iter_mut().for_each(|column| column.take_over(now, table));
    }
}
