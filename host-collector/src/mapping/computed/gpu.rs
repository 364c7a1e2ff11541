//! GPUs: presence, memory in use, frozen sources.

use std::collections::HashSet;
use std::time::Duration;

use super::super::dropped::Reason;
use super::super::state::{Gpu, Memory, State};
use super::{Page, ratio};

/// How much longer a page without any GPU is believed to be an exporter that starts.
const ALL_GONE_AFTER: Duration = Duration::from_secs(60);

/// After this long with power drawn and no energy counted a source is frozen (NVIDIA/gpu-monitoring-tools#188).
const FROZEN_AFTER: Duration = Duration::from_secs(300);

/// Used memory as a share of used + free + reserved: used and free alone do not add up to the total
/// (NVIDIA/dcgm-exporter#136). Where the page has no reserved part the series is marked.
pub(super) fn memory_used_ratio(state: &mut State, page: &mut Page<'_>) {
    for memory in &mut state.memories.items {
        one_memory(memory, page);
    }
}

fn one_memory(memory: &mut Memory, page: &mut Page<'_>) {
    let number = page.number;
    let Some(used) = memory.used.get(number) else { return };
    let (free, reserved) = (memory.free.get(number), memory.reserved.get(number));
    let told = memory.total.get(number);
    let added = free.zip(reserved).map(|(free, reserved)| used + free + reserved);
    if let (None, Some(total)) = (told, added) {
        page.emit(&mut memory.total_out, total);
    }
    if let Some(ratio) = told.or(added).and_then(|total| ratio(used, total)) {
        page.emit(&mut memory.ratio, ratio);
    } else if let Some(ratio) = free.and_then(|free| ratio(used, used + free)) {
        page.emit(&mut memory.ratio_without_reserved, ratio);
    }
}

/// 1 for each GPU of the page, 0 for one that an earlier page had: a GPU that falls off the bus simply
/// disappears from an exporter's page (NVIDIA/dcgm-exporter#348).
pub(super) fn up(state: &mut State, page: &mut Page<'_>) {
    let number = page.number;
    let all_here = state.gpus.items.iter().all(|gpu| gpu.page == number);
    let here = state.gpus.items.iter().filter(|gpu| gpu.page == number && !all_here);
    let hosts: HashSet<Option<String>> = here.map(host_of).collect();
    for gpu in &mut state.gpus.items {
        if gpu.page == number {
            if gpu.up_page != number {
                page.emit(&mut gpu.up, 1.0);
            }
            continue;
        }
        let wait = if hosts.contains(&host_of(gpu)) { Duration::ZERO } else { ALL_GONE_AFTER };
        if page.now.since(gpu.seen) > page.missing_after + wait {
            page.emit(&mut gpu.up, 0.0);
        }
    }
}

fn host_of(gpu: &Gpu) -> Option<String> {
    gpu.labels.get("host").map(str::to_owned)
}

/// Whether a GPU's source repeats old values; what it says of such a GPU is taken back.
pub(super) fn source_frozen(state: &mut State, page: &mut Page<'_>) {
    let number = page.number;
    for gpu in state.gpus.items.iter_mut().filter(|gpu| gpu.page == number) {
        let Some(energy) = gpu.energy.get(number) else { continue };
        let still =
            gpu.last_energy.replace(energy) == Some(energy) && gpu.power.get(number).is_some_and(|watts| watts > 0.0);
        gpu.still_since = if still { gpu.still_since.or(Some(page.now)) } else { None };
        let frozen = gpu.still_since.is_some_and(|since| page.now.since(since) >= FROZEN_AFTER);
        if frozen {
            take_back(gpu, page);
        }
        page.emit(&mut gpu.frozen, f64::from(u8::from(frozen)));
    }
}

fn take_back(gpu: &Gpu, page: &mut Page<'_>) {
    let mut kept = page.out.split_off(page.start);
    kept.retain(|observation| {
        let theirs = gpu.key.iter().all(|(name, value)| observation.series.labels.get(name) == Some(value));
        if theirs {
            page.slots.forget_page(&observation.series);
            page.dropped.add(Reason::Frozen);
        }
        !theirs
    });
    page.out.append(&mut kept);
}
