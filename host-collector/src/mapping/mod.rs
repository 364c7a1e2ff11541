//! The door for foreign samples: a page in the words of DCGM, node_exporter or others becomes observations in
//! ours. What is said already in our words, and what nobody knows, passes unchanged.

mod computed;
mod dropped;
mod learn;
pub mod pci;
mod slots;
mod state;
mod tables;

use std::collections::HashMap;
use std::time::Duration;

use watchfire_core::{Labels, Observation, Time};

use crate::exposition::Sample;
pub use computed::names as computed_metrics;
pub use dropped::{Dropped, Reason};
use learn::{Base, Plan};
use slots::Slots;
use state::State;
pub use tables::{LabelFate, Tables};

/// The most series texts that a mapper remembers from page to page; beyond them it starts to learn anew.
pub const CACHE_SERIES: usize = 100_000;
/// The most bytes of series texts that a mapper remembers.
pub const CACHE_BYTES: usize = 32 * 1024 * 1024;
/// A GPU that was gone for this long is no longer missed.
pub const GPU_FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);
/// A sample whose time stamp is further ahead than this is dropped: it would hide all later ones.
pub const FUTURE_MAX: Duration = Duration::from_secs(600);

/// Turns the pages of one target into observations. Learns each series once: a page like the one before costs
/// no allocation for each sample.
#[derive(Debug)]
pub struct Mapper {
    tables: Tables,
    base: Base,
    missing_after: Duration,
    cache: Cache,
    slots: Slots,
    state: State,
    dropped: Dropped,
    page: u64,
}

#[derive(Debug, Default)]
struct Cache {
    index: HashMap<Box<str>, u32>,
    plans: Vec<Plan>,
    bytes: usize,
}

impl Cache {
    fn add(&mut self, raw: &str, plan: Plan) -> usize {
        let at = self.plans.len();
        self.plans.push(plan);
        self.index.insert(raw.into(), u32::try_from(at).unwrap_or(u32::MAX));
        self.bytes += raw.len();
        at
    }

    fn is_full(&self) -> bool {
        self.plans.len() >= CACHE_SERIES || self.bytes >= CACHE_BYTES
    }
}

impl Mapper {
    /// A mapper of one target. With `host` all its series are that host's, whatever they say themselves; without,
    /// they keep the host that they name. `stale_after`: how long a sample of it counts.
    pub fn new(host: Option<String>, stale_after: Duration) -> Self {
        Mapper {
            tables: Tables::built_in().clone(),
            base: Base { host, ..Base::default() },
            missing_after: Duration::ZERO,
            cache: Cache::default(),
            slots: Slots::new(stale_after),
            state: State::default(),
            dropped: Dropped::default(),
            page: 0,
        }
    }

    /// The host of series that name none. Without it that is the host of their label `instance`, if they have one.
    #[must_use]
    pub fn default_host(mut self, host: impl Into<String>) -> Self {
        self.base.default_host = Some(host.into());
        self
    }

    /// Labels that every series gets; a label of the page with such a name becomes `exported_…`.
    #[must_use]
    pub fn labels(mut self, labels: Labels) -> Self {
        self.base.extra = labels;
        self
    }

    /// Other mappings than the built-in ones.
    #[must_use]
    pub fn tables(mut self, tables: Tables) -> Self {
        self.tables = tables;
        self
    }

    /// How long a GPU may be absent from pages that have others before it counts as gone. Zero, the default, suits
    /// pages that are whole; in a file each GPU may have time stamps of its own.
    #[must_use]
    pub fn missing_after(mut self, span: Duration) -> Self {
        self.missing_after = span;
        self
    }

    /// Begins a page that was read at `now`. Its observations go to `out` once it is finished.
    pub fn page<'m>(&'m mut self, now: Time, out: &'m mut Vec<Observation>) -> Page<'m> {
        self.page += 1;
        let forgotten = |gpu: &state::Gpu| now.since(gpu.seen) > GPU_FORGOTTEN_AFTER;
        if self.cache.is_full() || self.state.gpus.items.iter().any(forgotten) {
            self.cache = Cache::default();
            self.slots.purge();
            self.state.purge(|gpu| !forgotten(gpu));
        }
        let start = out.len();
        Page { mapper: self, out, start, now, done: false }
    }

    /// Ends the series that earlier pages had and the last finished one has not.
    pub fn end_vanished(&mut self, now: Time, out: &mut Vec<Observation>) {
        self.slots.end(Some(self.page), now, out);
    }

    /// Ends all series: the target gave no page.
    pub fn end_all(&mut self, now: Time, out: &mut Vec<Observation>) {
        self.slots.end(None, now, out);
    }

    /// What was read and not believed since the start.
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// How many series it remembers.
    pub fn series_known(&self) -> usize {
        self.slots.len()
    }

    fn take(&mut self, sample: &Sample<'_>, now: Time, out: &mut Vec<Observation>) {
        if sample.created {
            return self.dropped.add(Reason::Created);
        }
        let time = sample.timestamp.map_or(now, Time::from_millis);
        if time > now + FUTURE_MAX {
            return self.dropped.add(Reason::Future);
        }
        let at = self.learned(sample);
        let Some(plan) = self.cache.plans.get(at) else { return };
        if let Some(gpu) = plan.gpu {
            self.state.saw_gpu(gpu, self.page, now, plan.says_up);
        }
        let value = match believed(plan, sample.value) {
            Ok(value) => value,
            Err(reason) => return self.dropped.add(reason),
        };
        let reason = emit(plan, sample, value, &mut self.slots, (self.page, time), out);
        match (reason, plan.fed) {
            (Some(reason), _) => self.dropped.add(reason),
            (None, Some(fed)) => self.state.take(fed, self.page, value),
            (None, None) => {}
        }
    }

    /// The number of the plan for a sample's series.
    fn learned(&mut self, sample: &Sample<'_>) -> usize {
        if let Some(&at) = self.cache.index.get(sample.raw) {
            return at as usize;
        }
        let plan = learn::plan(sample, &self.tables, &self.base, &mut self.slots, &mut self.state);
        self.cache.add(sample.raw, plan)
    }
}

/// The value in our unit, if it is to be believed. A NaN keeps its bits: one of them is the stale marker.
fn believed(plan: &Plan, value: f64) -> Result<f64, Reason> {
    if plan.blanks && dropped::is_blank(value) {
        return Err(Reason::Blank);
    }
    #[expect(clippy::float_cmp, reason = "1 is exact, and then nothing is to be done")]
    let scaled = if value.is_nan() || plan.scale == 1.0 { value } else { value * plan.scale };
    if plan.range.holds(scaled) { Ok(scaled) } else { Err(Reason::Implausible) }
}

/// Gives out a value and, of a mask, its bits. Answers why not.
fn emit(
    plan: &Plan,
    sample: &Sample<'_>,
    value: f64,
    slots: &mut Slots,
    (page, time): (u64, Time),
    out: &mut Vec<Observation>,
) -> Option<Reason> {
    let mask = if plan.bits.is_empty() { None } else { mask(sample) };
    if !plan.bits.is_empty() && mask.is_none() {
        return Some(Reason::Implausible);
    }
    if !slots.emit(plan.slot, page, time, value, out) {
        return Some(Reason::Duplicate);
    }
    for &(bit, slot) in mask.iter().flat_map(|_| plan.bits.iter()) {
        let set = mask.is_some_and(|mask| mask & bit != 0);
        slots.emit(slot, page, time, f64::from(u8::from(set)), out);
    }
    None
}

/// A bit mask, from its text where it is a whole number: a double loses bits above 2^53.
fn mask(sample: &Sample<'_>) -> Option<u64> {
    let whole = sample.value >= 0.0 && sample.value < 18_446_744_073_709_551_615.0 && sample.value.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range was checked")]
    let rounded = whole.then_some(sample.value as u64);
    sample.value_text.parse().ok().or(rounded)
}

/// A page on its way through a mapper. Dropped unfinished, as on an error in its middle, it leaves nothing.
#[derive(Debug)]
pub struct Page<'m> {
    mapper: &'m mut Mapper,
    out: &'m mut Vec<Observation>,
    start: usize,
    now: Time,
    done: bool,
}

impl Page<'_> {
    /// Takes one sample of the page.
    pub fn take(&mut self, sample: &Sample<'_>) {
        self.mapper.take(sample, self.now, self.out);
    }

    /// Ends the page: computed metrics are added.
    pub fn finish(mut self) {
        let Mapper { slots, state, dropped, page, missing_after, .. } = &mut *self.mapper;
        let page = computed::Page {
            slots,
            out: self.out,
            dropped,
            start: self.start,
            now: self.now,
            number: *page,
            missing_after: *missing_after,
        };
        computed::compute(state, page);
        self.done = true;
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.out.truncate(self.start);
        }
    }
}

#[cfg(test)]
mod tests;
