//! Pages of real exporters on their way through the mapper.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::time::Duration;

use watchfire_collector::exposition::{Format, Options, parse};
use watchfire_collector::mapping::{Mapper, Reason};
use watchfire_core::{Observation, Time};

fn shared(path: &str) -> Option<Vec<u8>> {
    let root = std::env::var_os("WATCHFIRE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let found = root.join("data/exposition").join(path);
    let read = std::fs::read(&found).ok();
    if read.is_none() {
        println!("skipped: {} is absent", found.display());
    }
    read
}

fn observe(mapper: &mut Mapper, now: i64, page: &[u8]) -> Vec<Observation> {
    let mut out = Vec::new();
    let mut pass = mapper.page(Time::from_millis(now), &mut out);
    parse(page, &Options::new(Format::Text), &mut |sample| pass.take(&sample)).unwrap();
    pass.finish();
    out
}

fn count(observations: &[Observation], metric: &str) -> usize {
    observations.iter().filter(|one| &*one.series.metric == metric).count()
}

#[test]
fn a_page_of_dcgm_exporter_has_eight_whole_gpus() {
    let Some(page) = shared("rendered/dcgm_exporter_v4_8xh100.prom") else { return };
    let mut mapper = Mapper::new(None, Duration::from_secs(45));
    let seen = observe(&mut mapper, 0, &page);
    for metric in
        ["gpu_up", "gpu_temperature_celsius", "gpu_power_watts", "gpu_memory_used_ratio", "gpu_sm_clock_hertz"]
    {
        assert_eq!(count(&seen, metric), 8, "{metric}");
    }
    let foreign: Vec<_> = seen.iter().filter(|one| one.series.metric.starts_with("DCGM_")).collect();
    assert!(foreign.len() <= 8, "only the vGPU licence has no name of ours: {foreign:?}");
    for observation in &seen {
        assert_eq!(observation.series.labels.get("host"), Some("h100-node-01"));
        assert!(observation.series.labels.get("uuid").unwrap().starts_with("GPU-"));
    }
    assert!(mapper.dropped().iter().all(|(_, count)| count == 0), "{:?}", mapper.dropped());
}

#[test]
fn a_page_of_node_exporter_gives_the_hosts_metrics_and_loses_none() {
    let Some(page) = shared("node_exporter/collector/fixtures/e2e-output.txt") else { return };
    let mut mapper = Mapper::new(Some("h1".to_owned()), Duration::from_secs(45));
    observe(&mut mapper, 0, &page);
    let seen = observe(&mut mapper, 15_000, &page);
    assert_eq!(count(&seen, "host_load1"), 1);
    assert_eq!(count(&seen, "host_memory_total_bytes"), 1);
    // This kernel does not tell what is available: nothing is guessed.
    assert_eq!(count(&seen, "host_memory_available_ratio"), 0);
    assert_eq!(count(&seen, "disk_busy_ratio"), 15);
    assert_eq!(count(&seen, "gpu_up"), 0, "a page full of other uuids has no GPU");
    assert_eq!(mapper.dropped().get(Reason::Duplicate), 0);
    assert!(seen.len() >= 3027, "{}", seen.len());
}

#[test]
fn a_page_of_vllm_passes_without_the_times_of_creation() {
    let Some(page) = shared("rendered/vllm_v1_two_engines.prom") else { return };
    let mut mapper = Mapper::new(None, Duration::from_secs(45));
    let seen = observe(&mut mapper, 0, &page);
    let created = mapper.dropped().get(Reason::Created);
    assert_eq!(seen.len() as u64 + created, 164);
    assert!(seen.iter().all(|one| !one.series.metric.ends_with("_created")));
}
