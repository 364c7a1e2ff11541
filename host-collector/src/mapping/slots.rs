//! The series that a mapper gives out: found by number, each with the page that last had it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::sample::STALE_MARKER;
use watchfire_core::{Labels, Observation, Series, Time};

/// The series that a mapper gives out.
#[derive(Debug)]
pub(super) struct Slots {
    list: Vec<Slot>,
    index: HashMap<Arc<Series>, u32>,
    stale_after: Duration,
    generation: u32,
}

#[derive(Debug)]
struct Slot {
    series: Arc<Series>,
    page: u64,
    /// It was given out and has not been ended.
    live: bool,
}

/// A series that is computed: its slot is looked up once, and again after a purge.
#[derive(Debug)]
pub(super) struct Output {
    metric: &'static str,
    labels: Labels,
    slot: Option<(u32, u32)>,
}

impl Output {
    pub fn new(metric: &'static str, labels: Labels) -> Self {
        Output { metric, labels, slot: None }
    }
}

impl Slots {
    pub fn new(stale_after: Duration) -> Self {
        Slots { list: Vec::new(), index: HashMap::new(), stale_after, generation: 0 }
    }

    /// The slot of a series, made where there is none.
    pub fn find(&mut self, metric: &str, labels: Labels) -> u32 {
        let series = Arc::new(Series { metric: metric.into(), labels, stale_after: self.stale_after });
        if let Some(&slot) = self.index.get(&series) {
            return slot;
        }
        let slot = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.index.insert(series.clone(), slot);
        self.list.push(Slot { series, page: 0, live: false });
        slot
    }

    /// Gives out a value. False where the page has had one for this series.
    pub fn emit(&mut self, slot: u32, page: u64, time: Time, value: f64, out: &mut Vec<Observation>) -> bool {
        let Some(slot) = self.list.get_mut(slot as usize) else { return false };
        if slot.page == page {
            return false;
        }
        slot.page = page;
        slot.live = true;
        out.push(Observation { series: slot.series.clone(), time, value });
        true
    }

    /// As [`Slots::emit`], for a computed series.
    pub fn emit_output(&mut self, output: &mut Output, page: u64, time: Time, value: f64, out: &mut Vec<Observation>) {
        let slot = match output.slot {
            Some((generation, slot)) if generation == self.generation => slot,
            _ => {
                let slot = self.find(output.metric, output.labels.clone());
                output.slot = Some((self.generation, slot));
                slot
            }
        };
        self.emit(slot, page, time, value, out);
    }

    /// Takes back that `page` had this series.
    pub fn forget_page(&mut self, series: &Arc<Series>) {
        if let Some(slot) = self.index.get(series).and_then(|&slot| self.list.get_mut(slot as usize)) {
            slot.page = 0;
        }
    }

    /// Ends the live series that `page` has not had; all of them for page `None`.
    pub fn end(&mut self, page: Option<u64>, time: Time, out: &mut Vec<Observation>) {
        for slot in self.list.iter_mut().filter(|slot| slot.live && Some(slot.page) != page) {
            slot.live = false;
            let series = slot.series.clone();
            out.push(Observation { series, time, value: f64::from_bits(STALE_MARKER) });
        }
    }

    /// Forgets the series that have ended; all numbers given out before are void.
    pub fn purge(&mut self) {
        self.list.retain(|slot| slot.live);
        self.index = self.list.iter().zip(0..).map(|(slot, number)| (slot.series.clone(), number)).collect();
        self.generation += 1;
    }

    /// How many series are known.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}
