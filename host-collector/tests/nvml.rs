//! NVML through the real wrapper, on a scripted library.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use fake_nvml::{Fake, uuid_of};
use watchfire_collector::nvml::{NvmlConfig, NvmlSource, Outcome, PollReport, State, retry_after};
use watchfire_core::sample::is_stale_marker;
use watchfire_core::{Observation, Time};

struct Host {
    source: NvmlSource,
    fake: Fake,
    second: i64,
    observations: Vec<Observation>,
    _folder: tempfile::TempDir,
}

impl Host {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::new(folder.path(), script).unwrap();
        let interval = Duration::from_secs(1);
        let config = NvmlConfig { library: Some(fake.library.clone()), interval, host: "h1".into() };
        Host { source: NvmlSource::new(config), fake, second: 0, observations: Vec::new(), _folder: folder }
    }

    fn poll(&mut self) -> PollReport {
        self.second += 1;
        self.observations.clear();
        self.source.poll(Time::from_millis(self.second * 1000), &mut self.observations)
    }

    /// The value of a GPU's metric at the last poll; stale markers are no values.
    fn value(&self, gpu: u32, metric: &str) -> Option<f64> {
        let uuid = uuid_of(gpu);
        let of_gpu = |one: &&Observation| one.series.labels.get("uuid") == Some(uuid.as_str());
        let found = self.observations.iter().filter(of_gpu).find(|one| &*one.series.metric == metric)?;
        (!is_stale_marker(found.value)).then_some(found.value)
    }

    fn host_value(&self, metric: &str) -> Option<f64> {
        self.observations.iter().find(|one| &*one.series.metric == metric).map(|one| one.value)
    }
}

#[test]
fn eight_idle_gpus_tell_all_in_base_units() {
    let mut host = Host::new("");
    let report = host.poll();
    assert_eq!((report.gpus, report.lost.len(), report.dropped), (8, 0, 0), "{report:?}");
    let expected = [
        ("gpu_up", 1.0),
        ("gpu_temperature_celsius", 34.0),
        ("gpu_memory_temperature_celsius", 32.0),
        ("gpu_power_watts", 68.0),
        ("gpu_power_limit_watts", 700.0),
        ("gpu_sm_clock_hertz", 345e6),
        ("gpu_sm_clock_max_hertz", 1980e6),
        ("gpu_memory_total_bytes", 85_899_345_920.0),
        ("gpu_memory_used_ratio", 0.0),
        ("gpu_throttle_idle", 1.0),
        ("gpu_throttle_hw_thermal", 0.0),
        ("gpu_pcie_link_width", 16.0),
        ("gpu_pcie_tx_bytes_total", 1e9),
        ("gpu_compute_processes", 0.0),
        ("gpu_energy_joules_total", 600.0),
    ];
    for (metric, value) in expected {
        assert_eq!(host.value(7, metric), Some(value), "{metric}");
    }
    let labels = &host.observations.iter().find(|one| one.series.labels.get("gpu") == Some("3")).unwrap().series.labels;
    assert_eq!(
        labels.to_string(),
        "{gpu=\"3\", host=\"h1\", model=\"NVIDIA H100 80GB HBM3\", pci=\"0000:1d:00.0\", uuid=\"GPU-00000000-0000-0000-0000-000000000003\"}"
    );
    assert_eq!((host.host_value("nvml_up"), host.host_value("nvml_gpus")), (Some(1.0), Some(8.0)));
}

#[test]
fn a_lost_gpu_hides_no_other_and_keeps_its_name() {
    let mut host = Host::new("HandleByIndex_v2 3 poll=5.. -> ret=15");
    (1..5).for_each(|poll| assert_eq!(host.poll().gpus, 8, "poll {poll}"));
    let report = host.poll();
    assert_eq!((report.gpus, report.lost.as_slice()), (7, [uuid_of(3)].as_slice()));
    assert_eq!((host.value(3, "gpu_up"), host.value(3, "gpu_temperature_celsius")), (Some(0.0), None));
    let ended = host.observations.iter().filter(|one| is_stale_marker(one.value)).count();
    assert!(ended > 20, "its other series end: {ended}");
    assert_eq!(host.poll().gpus, 7);
    assert_eq!(host.observations.iter().filter(|one| is_stale_marker(one.value)).count(), 0, "and end only once");
}

#[test]
fn a_gpu_that_is_lost_at_a_call_is_lost() {
    let mut host = Host::new("Temperature 2 poll=2.. -> ret=15");
    host.poll();
    let report = host.poll();
    assert_eq!(report.lost, [uuid_of(2)]);
    assert_eq!((host.value(2, "gpu_up"), host.value(2, "gpu_power_watts")), (Some(0.0), None));
}

#[test]
fn a_gpu_that_was_never_seen_is_told_by_its_index() {
    let mut host = Host::new("HandleByIndex_v2 0 -> ret=15");
    let report = host.poll();
    assert_eq!((report.gpus, report.lost.as_slice()), (7, ["index 0".to_owned()].as_slice()));
    let lost = host.observations.iter().find(|one| &*one.series.metric == "gpu_up" && one.value == 0.0).unwrap();
    assert_eq!(lost.series.labels.to_string(), "{gpu=\"0\", host=\"h1\", pci=\"unknown\"}");
}

#[test]
fn a_gpu_that_is_listed_no_more_is_missing() {
    let mut host = Host::new("gpus 8");
    host.poll();
    host.fake.script("gpus 7\n# longer, so that it is read again").unwrap();
    let report = host.poll();
    assert_eq!((report.gpus, report.lost.as_slice()), (7, [uuid_of(7)].as_slice()));
    assert_eq!(host.value(7, "gpu_up"), Some(0.0));
}

#[test]
fn one_call_that_fails_takes_no_other_with_it() {
    let script =
        "PowerUsage 1 -> ret=3\nTemperature 1 -> ret=999\nMemoryInfo_v2 1 -> ret=13\nFieldValues 1 field=82 -> ret=3";
    let mut host = Host::new(script);
    let report = host.poll();
    assert_eq!(report.gpus, 8);
    for absent in
        ["gpu_power_watts", "gpu_temperature_celsius", "gpu_memory_used_ratio", "gpu_memory_temperature_celsius"]
    {
        assert_eq!(host.value(1, absent), None, "{absent} is absent, not 0");
        assert!(host.value(0, absent).is_some(), "{absent} of the others");
    }
    assert_eq!(host.value(1, "gpu_sm_clock_hertz"), Some(345e6));
    assert_eq!(host.value(1, "gpu_pcie_rx_bytes_total"), Some(1e9), "another field of the same call");
    let outcome =
        |metric: &str| report.errors.iter().find(|(_, found, _)| *found == metric).map(|(.., outcome)| *outcome);
    assert_eq!(outcome("gpu_power_watts"), Some(Outcome::NotSupported));
    assert_eq!(outcome("gpu_temperature_celsius"), Some(Outcome::Failed(999)));
    assert_eq!(outcome("gpu_memory_used_ratio"), Some(Outcome::NoSymbol));
}

#[test]
fn throttle_bits_are_told_one_by_one_and_unknown_ones_are_kept() {
    let cases = [
        (0x0u64, [0.0, 0.0, 0.0, 0.0]),
        (0x1, [1.0, 0.0, 0.0, 0.0]),
        (0x48, [0.0, 0.0, 1.0, 1.0]),
        (0x5, [1.0, 1.0, 0.0, 0.0]),
        (0x4000_0000_0000_0044, [0.0, 1.0, 0.0, 1.0]),
    ];
    for (bits, expected) in cases {
        let mut host = Host::new(&format!("CurrentClocksThrottleReasons 0 -> value={}", bits as f64));
        host.poll();
        let names = ["idle", "sw_power_cap", "hw_slowdown", "hw_thermal"];
        let got = names.map(|name| host.value(0, &format!("gpu_throttle_{name}")).unwrap());
        assert!(bits > 1 << 53 || got == expected, "{bits:#x}: {got:?}");
        assert_eq!(host.value(0, "gpu_throttle_reasons"), Some(bits as f64));
    }
}

#[test]
fn what_no_sensor_can_say_is_dropped_and_counted() {
    let mut host = Host::new("Temperature 0 -> value=82505\nPowerUsage 1 poll=2.. -> value=4000000000");
    assert_eq!(host.poll().dropped, 1);
    assert_eq!(host.value(0, "gpu_temperature_celsius"), None);
    assert_eq!(host.poll().dropped, 2);
    assert_eq!(host.value(1, "gpu_power_watts"), None);
}

#[test]
fn processes_are_counted_whatever_their_memory_says() {
    let mut host = Host::new("ComputeRunningProcesses_v3 0 -> value=3");
    host.poll();
    assert_eq!(host.value(0, "gpu_compute_processes"), Some(3.0));
}

#[test]
fn a_driver_that_does_not_start_is_tried_again_and_recovers() {
    let mut host = Host::new("Init_v2 * -> ret=18");
    host.poll();
    assert_eq!((host.host_value("nvml_up"), host.source.state()), (Some(0.0), &State::Mismatch));
    assert!(host.source.state().words().contains("reboot, or reload the module"));
    host.fake.script("# all is well").unwrap();
    host.poll();
    assert_eq!(host.poll().gpus, 8);
    assert_eq!(host.host_value("nvml_up"), Some(1.0));
    let waits: Vec<u64> = (1..10).map(|failures| retry_after(failures).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
}

#[test]
fn a_driver_that_starts_and_does_not_answer_is_tried_later_and_later_and_shut_down_between() {
    let mut host = Host::new("Count_v2 * -> ret=999");
    (1..36).for_each(|second| assert_eq!((host.poll().gpus, host.host_value("nvml_up")), (0, Some(0.0)), "{second}"));
    host.fake.script("# all is well, and longer than before").unwrap();
    let up = (36..70).find(|_| host.poll().gpus == 8);
    assert_eq!(up, Some(64), "tried at 1, 2, 4, 8, 16, 32 and 64 s");
}

#[test]
fn a_gpu_that_moved_is_not_lost_where_it_was() {
    let mut host = Host::new("gpus 8");
    host.poll();
    // GPU 7 is now found at index 6 as well as its own going silent: index 7 does not answer.
    host.fake.script("UUID 6 -> value=7\nHandleByIndex_v2 7 -> ret=15\n# longer").unwrap();
    let report = host.poll();
    assert_eq!(report.lost, ["index 7".to_owned(), uuid_of(6)], "{report:?}");
    let up = |host: &Host, uuid: &str| -> Vec<f64> {
        let of = |one: &&Observation| &*one.series.metric == "gpu_up" && one.series.labels.get("uuid") == Some(uuid);
        host.observations.iter().filter(of).map(|one| one.value).collect()
    };
    assert_eq!(up(&host, &uuid_of(7)), [1.0]);
}

#[test]
fn a_nameless_gpu_that_gets_its_name_is_lost_no_more() {
    let mut host = Host::new("HandleByIndex_v2 0 poll=1..1 -> ret=15");
    host.poll();
    host.poll();
    let nameless = |one: &&Observation| &*one.series.metric == "gpu_up" && one.series.labels.get("uuid").is_none();
    let told: Vec<f64> = host.observations.iter().filter(nameless).map(|one| one.value).collect();
    assert_eq!(told, [1.0]);
}

#[test]
fn what_a_half_lost_gpu_still_tells_is_not_believed_at_any_poll() {
    let mut host = Host::new("PowerUsage 2 poll=2.. -> ret=15");
    for _ in 0..4 {
        host.poll();
    }
    assert_eq!((host.value(2, "gpu_up"), host.value(2, "gpu_temperature_celsius")), (Some(0.0), None));
}

#[test]
fn a_machine_without_gpus_says_so_and_goes_on() {
    let config = NvmlConfig {
        library: Some("/nonexistent/libnvidia-ml.so.1".into()),
        interval: Duration::from_secs(1),
        host: "h1".into(),
    };
    let mut source = NvmlSource::new(config);
    let mut observations = Vec::new();
    source.poll(Time::from_millis(1000), &mut observations);
    assert!(matches!(source.state(), State::NoDevice | State::NoLibrary));
}
