//! Hosts: CPU and memory.

use super::super::state::{Cpu, State};
use super::{Page, ratio};

/// The share of CPU time between two pages that was neither idle nor waiting for I/O.
pub(super) fn cpu_busy_ratio(state: &mut State, page: &mut Page<'_>) {
    for host in &mut state.hosts.items {
        if host.cpu.page != page.number {
            continue;
        }
        let last = host.last_cpu.replace(host.cpu);
        if let Some(busy) = last.and_then(|last| busy_between(last, host.cpu)) {
            page.emit(&mut host.cpu_busy, busy);
        }
    }
}

/// None where the counters were reset, or where a CPU came or went: its seconds since boot would count at once.
fn busy_between(last: Cpu, now: Cpu) -> Option<f64> {
    let (total, idle) = (now.total - last.total, now.idle - last.idle);
    if now.parts != last.parts || idle < 0.0 {
        return None;
    }
    ratio(total - idle, total)
}

/// Memory that can be had without swapping as a share of the total.
pub(super) fn memory_available_ratio(state: &mut State, page: &mut Page<'_>) {
    for host in &mut state.hosts.items {
        let (available, total) = (host.available.get(page.number), host.total.get(page.number));
        if let Some(ratio) = available.zip(total).and_then(|(available, total)| ratio(available, total)) {
            page.emit(&mut host.available_ratio, ratio);
        }
    }
}
