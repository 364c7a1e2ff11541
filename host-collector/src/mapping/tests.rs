#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::exposition::{Format, Options, parse};
use watchfire_core::sample::is_stale_marker;

const STALE: Duration = Duration::from_secs(45);

fn mapper() -> Mapper {
    Mapper::new(None, STALE)
}

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1000)
}

fn observe(mapper: &mut Mapper, now: Time, text: &str) -> Vec<Observation> {
    let mut out = Vec::new();
    let mut page = mapper.page(now, &mut out);
    parse(text.as_bytes(), &Options::new(Format::Text), &mut |sample| page.take(&sample)).unwrap();
    page.finish();
    out
}

fn shown(observation: &Observation) -> String {
    format!("{}{} {}", observation.series.metric, observation.series.labels, observation.value)
}

fn all(mapper: &mut Mapper, seconds: i64, text: &str) -> Vec<String> {
    observe(mapper, at(seconds), text).iter().map(shown).collect()
}

/// The values of one metric.
fn values(observations: &[Observation], metric: &str) -> Vec<f64> {
    observations.iter().filter(|one| &*one.series.metric == metric).map(|one| one.value).collect()
}

const DCGM: &str = r#"{gpu="0",UUID="GPU-a",pci_bus_id="00000000:1A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="h1",DCGM_FI_DRIVER_VERSION="580.105.08"}"#;

#[test]
fn dcgm_words_become_ours() {
    let text =
        format!("DCGM_FI_DEV_GPU_TEMP{DCGM} 86\nDCGM_FI_DEV_SM_CLOCK{DCGM} 1980\nDCGM_FI_DEV_GPU_UTIL{DCGM} 97\n");
    let labels = r#"{gpu="0", host="h1", model="NVIDIA H100 80GB HBM3", pci="0000:1a:00.0", uuid="GPU-a"}"#;
    assert_eq!(
        all(&mut mapper(), 0, &text),
        [
            format!("gpu_temperature_celsius{labels} 86"),
            format!("gpu_sm_clock_hertz{labels} 1980000000"),
            format!("gpu_utilization_ratio{labels} 0.97"),
            format!("gpu_up{labels} 1"),
        ]
    );
}

#[test]
fn our_words_and_unknown_ones_pass_with_their_labels() {
    let text = "gpu_temperature_celsius{gpu=\"0\",uuid=\"GPU-a\",host=\"h1\",device=\"x\"} 70\nother{b=\"2\"} NaN\n";
    let seen = all(&mut mapper(), 0, text);
    assert_eq!(seen[0], r#"gpu_temperature_celsius{device="x", gpu="0", host="h1", uuid="GPU-a"} 70"#);
    assert_eq!(seen[1], r#"other{b="2"} NaN"#);
    assert_eq!(seen[2], r#"gpu_up{gpu="0", host="h1", uuid="GPU-a"} 1"#);
}

#[test]
fn an_unknown_dcgm_metric_keeps_its_name_and_gets_our_labels() {
    let seen = all(&mut mapper(), 0, "DCGM_EXP_NEW{gpu=\"0\",UUID=\"GPU-a\",modelName=\"<<<NOT_FOUND>>>\"} 3\n");
    assert_eq!(seen[0], r#"DCGM_EXP_NEW{gpu="0", uuid="GPU-a"} 3"#);
}

#[test]
fn dcgm_blanks_are_dropped_and_counted() {
    let mut mapper = mapper();
    for (page, blank) in
        ["9223372036854775794", "9223372036854776000", "2147483632", "140737488355331"].iter().enumerate()
    {
        let text = format!("DCGM_FI_DEV_MEMORY_TEMP{DCGM} {blank}\n");
        let seen = all(&mut mapper, 15, &text);
        assert_eq!(seen.len(), 1, "only gpu_up: {seen:?}");
        assert_eq!(mapper.dropped().get(Reason::Blank), page as u64 + 1);
    }
    let other = observe(&mut mapper, at(30), "some_bytes 2147483632\n");
    assert_eq!(values(&other, "some_bytes"), [2_147_483_632.0], "other sources have no blanks");
}

#[test]
fn implausible_readings_are_dropped_and_counted() {
    let mut mapper = mapper();
    let mut seen = Vec::new();
    for (page, value) in ["54", "55", "82505", "55", "345", "54"].iter().enumerate() {
        let text = format!("DCGM_FI_DEV_GPU_TEMP{DCGM} {value}\n");
        seen.extend(values(&observe(&mut mapper, at(page as i64 * 15), &text), "gpu_temperature_celsius"));
    }
    assert_eq!(seen, [54.0, 55.0, 55.0, 54.0]);
    assert_eq!(mapper.dropped().get(Reason::Implausible), 2);
}

#[test]
fn a_mask_is_split_and_its_unknown_bits_are_kept() {
    let cases = [("0", 0), ("4", 0x4), ("72", 0x48), ("9223372036854775808", 0), ("9223372036854776320", 0)];
    for (text, bits) in cases {
        let page = format!("DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{gpu=\"0\",UUID=\"u\"}} {text}\n");
        let seen = observe(&mut mapper(), at(0), &page);
        if text.len() > 10 {
            assert!(values(&seen, "gpu_throttle_reasons").is_empty(), "a signed number that large is a blank");
            continue;
        }
        for (bit, metric) in crate::metrics::THROTTLES {
            assert_eq!(values(&seen, metric), [f64::from(u8::from(bits & bit != 0))], "{text} {metric}");
        }
    }
    let seen =
        observe(&mut mapper(), at(0), "DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu=\"0\",UUID=\"u\"} 4611686018427387972\n");
    assert_eq!(values(&seen, "gpu_throttle_hw_thermal"), [1.0], "0x4000000000000044");
    assert_eq!(values(&seen, "gpu_throttle_sw_power_cap"), [1.0]);
    assert_eq!(values(&seen, "gpu_throttle_reasons").len(), 1);
}

#[test]
fn used_memory_counts_the_reserved_part() {
    let used = "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"u\"} 10\nDCGM_FI_DEV_FB_FREE{gpu=\"0\",UUID=\"u\"} 80300\n";
    let seen = observe(&mut mapper(), at(0), &format!("{used}DCGM_FI_DEV_FB_RESERVED{{gpu=\"0\",UUID=\"u\"}} 1249\n"));
    assert_eq!(values(&seen, "gpu_memory_used_ratio"), [10.0 / 81_559.0]);
    assert_eq!(values(&seen, "gpu_memory_total_bytes"), [81_559.0 * 1_048_576.0]);
    let seen = observe(&mut mapper(), at(0), used);
    let ratio = seen.iter().find(|one| &*one.series.metric == "gpu_memory_used_ratio").unwrap();
    assert_eq!(ratio.value, 10.0 / 80_310.0);
    assert_eq!(ratio.series.labels.get("denominator"), Some("used+free"));
}

fn temperatures(gpus: impl IntoIterator<Item = u32>) -> String {
    gpus.into_iter().map(|gpu| format!("DCGM_FI_DEV_GPU_TEMP{{gpu=\"{gpu}\",UUID=\"GPU-{gpu}\"}} 50\n")).collect()
}

/// The GPUs that are said to be down.
fn down(observations: &[Observation]) -> Vec<String> {
    let down = observations.iter().filter(|one| &*one.series.metric == "gpu_up" && one.value == 0.0);
    down.map(|one| one.series.labels.get("uuid").unwrap_or("?").to_owned()).collect()
}

#[test]
fn a_gpu_that_leaves_the_page_is_down_at_once() {
    let mut mapper = mapper();
    for page in 0..10 {
        let seen = observe(&mut mapper, at(page * 15), &temperatures(0..8));
        assert_eq!(values(&seen, "gpu_up"), [1.0; 8]);
    }
    let seen = observe(&mut mapper, at(150), &temperatures((0..8).filter(|&gpu| gpu != 3)));
    assert_eq!(down(&seen), ["GPU-3"]);
    assert_eq!(values(&seen, "gpu_up").len(), 8);
    let mut ended = Vec::new();
    mapper.end_vanished(at(150), &mut ended);
    assert_eq!(ended.iter().map(|one| &*one.series.metric).collect::<Vec<_>>(), ["gpu_temperature_celsius"]);
    assert!(is_stale_marker(ended[0].value));
    let back = observe(&mut mapper, at(165), &temperatures(0..8));
    assert_eq!(values(&back, "gpu_up"), [1.0; 8]);
}

#[test]
fn a_page_without_any_gpu_is_an_exporter_that_starts() {
    let mut mapper = mapper();
    observe(&mut mapper, at(0), &temperatures(0..2));
    assert!(down(&observe(&mut mapper, at(15), "x 1\n")).is_empty());
    assert!(down(&observe(&mut mapper, at(60), "x 1\n")).is_empty());
    assert_eq!(down(&observe(&mut mapper, at(75), "x 1\n")), ["GPU-0", "GPU-1"]);
    let later = 75 + 24 * 3600 + 60;
    assert!(down(&observe(&mut mapper, at(later), "x 1\n")).is_empty(), "after a day it is no longer missed");
}

#[test]
fn an_index_that_moves_moves_with_its_uuid() {
    let mut mapper = mapper();
    observe(&mut mapper, at(0), &temperatures(0..3));
    let moved =
        "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-0\"} 50\nDCGM_FI_DEV_GPU_TEMP{gpu=\"1\",UUID=\"GPU-2\"} 50\n";
    let seen = observe(&mut mapper, at(15), moved);
    assert_eq!(down(&seen), ["GPU-1"]);
    assert!(seen.iter().any(|one| shown(one) == "gpu_up{gpu=\"1\", uuid=\"GPU-2\"} 1"));
}

#[test]
fn a_frozen_source_is_not_believed_after_five_minutes() {
    let mut mapper = mapper();
    let page = |energy: u32| {
        format!("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{DCGM} {energy}\nDCGM_FI_DEV_POWER_USAGE{DCGM} 312.4\n")
    };
    for number in 0..40 {
        let seen = observe(&mut mapper, at(number * 15), &page(123_456));
        // The second page is the first that repeats one.
        let frozen = number * 15 >= 315;
        assert_eq!(values(&seen, "gpu_source_frozen"), [f64::from(u8::from(frozen))], "page {number}");
        assert_eq!(values(&seen, "gpu_power_watts").is_empty(), frozen, "page {number}");
        assert_eq!(values(&seen, "gpu_up").is_empty(), frozen, "page {number}");
    }
    assert!(mapper.dropped().get(Reason::Frozen) > 0);
    let seen = observe(&mut mapper, at(600), &page(123_999));
    assert_eq!((values(&seen, "gpu_power_watts"), values(&seen, "gpu_source_frozen")), (vec![312.4], vec![0.0]));
}

fn cpu(idle: f64, user: f64, iowait: f64) -> String {
    let modes = [("idle", idle), ("user", user), ("iowait", iowait)];
    modes.map(|(mode, value)| format!("node_cpu_seconds_total{{cpu=\"0\",mode=\"{mode}\"}} {value}\n")).concat()
}

#[test]
fn cpu_busy_is_what_grew_between_two_pages() {
    let mut mapper = Mapper::new(Some("h1".to_owned()), STALE);
    let mut busy = |seconds: i64, text: &str| values(&observe(&mut mapper, at(seconds), text), "host_cpu_busy_ratio");
    assert!(busy(0, &cpu(100.0, 50.0, 0.0)).is_empty(), "one page says nothing");
    assert_eq!(busy(15, &cpu(105.0, 58.0, 2.0)), [8.0 / 15.0]);
    assert!(busy(30, &cpu(1.0, 1.0, 0.0)).is_empty(), "a restart");
    assert_eq!(busy(45, &cpu(2.0, 4.0, 0.0)), [0.75]);
    let more = format!("{}node_cpu_seconds_total{{cpu=\"1\",mode=\"user\"}} 9999\n", cpu(3.0, 5.0, 0.0));
    assert!(busy(60, &more).is_empty(), "a CPU came");
}

#[test]
fn host_words_are_computed() {
    let fs = |kind: &str, value: &str| {
        let labels =
            |mount: &str, fstype: &str| format!("{{device=\"/dev/x\",mountpoint=\"{mount}\",fstype=\"{fstype}\"}}");
        format!("{kind}{} {value}\n{kind}{} {value}\n", labels("/", "ext4"), labels("/run", "tmpfs"))
    };
    let text = [
        "node_load1 0.21\nnode_memory_MemTotal_bytes 8e9\nnode_memory_MemAvailable_bytes 6e9\n".to_owned(),
        fs("node_filesystem_avail_bytes", "25"),
        fs("node_filesystem_size_bytes", "100"),
        fs("node_filesystem_files_free", "0"),
        fs("node_filesystem_files", "0"),
    ]
    .concat();
    let mut mapper = Mapper::new(Some("h1".to_owned()), STALE);
    let seen = all(&mut mapper, 0, &text);
    let wanted = |start: &str| seen.iter().filter(|one| one.starts_with(start)).cloned().collect::<Vec<_>>();
    assert_eq!(wanted("host_load1"), [r#"host_load1{host="h1"} 0.21"#]);
    assert_eq!(wanted("host_memory_available_ratio"), [r#"host_memory_available_ratio{host="h1"} 0.75"#]);
    let labels = r#"{device="/dev/x", fstype="ext4", host="h1", mountpoint="/"}"#;
    assert_eq!(wanted("filesystem_"), [format!("filesystem_avail_ratio{labels} 0.25")]);
}

#[test]
fn disks_are_busy_by_the_time_between_pages_and_text_files_have_an_age() {
    let mut mapper = mapper();
    let text = |busy: f64| {
        format!(
            "node_disk_io_time_seconds_total{{device=\"nvme0n1\"}} {busy}\nnode_textfile_mtime_seconds{{file=\"a\"}} 900\n"
        )
    };
    let first = observe(&mut mapper, at(1000), &text(10.0));
    assert!(values(&first, "disk_busy_ratio").is_empty());
    assert_eq!(values(&first, "textfile_age_seconds"), [100.0]);
    assert_eq!(values(&observe(&mut mapper, at(1015), &text(16.0)), "disk_busy_ratio"), [0.4]);
    assert_eq!(values(&observe(&mut mapper, at(1030), &text(99.0)), "disk_busy_ratio"), [1.0]);
    assert!(values(&observe(&mut mapper, at(1045), &text(0.0)), "disk_busy_ratio").is_empty(), "a restart");
}

#[test]
fn a_warm_page_hands_out_the_same_series() {
    let mut mapper = mapper();
    let first = observe(&mut mapper, at(0), &temperatures(0..8));
    let second = observe(&mut mapper, at(15), &temperatures(0..8));
    for (one, other) in first.iter().zip(&second) {
        assert!(std::sync::Arc::ptr_eq(&one.series, &other.series), "{}", shown(one));
    }
}

#[test]
fn the_memory_for_series_is_bounded_and_live_series_survive_its_purge() {
    let mut mapper = mapper();
    let page = |from: usize| -> String {
        let churn = (from..from + 30_000).map(|at| format!("churn{{id=\"{at}\"}} 1\n")).collect::<String>();
        format!("keeps 1\n{churn}")
    };
    let mut ended = Vec::new();
    for number in 0..12 {
        observe(&mut mapper, at(number * 15), &page(number as usize * 30_000));
        mapper.end_vanished(at(number * 15), &mut ended);
        // What was remembered, the page that overran it, and the page that lived through the purge.
        assert!(mapper.series_known() <= CACHE_SERIES + 2 * 50_000, "{}", mapper.series_known());
    }
    assert!(!ended.iter().any(|one| &*one.series.metric == "keeps"), "a series that is there must not be ended");
    assert_eq!(ended.len(), 11 * 30_000, "each churned series is ended once");
}

#[test]
fn a_second_value_of_a_page_and_one_from_the_future_are_dropped() {
    let mut mapper = mapper();
    let seen = observe(&mut mapper, at(0), "a 1\na 2\nb 3 700000\n# TYPE c counter\nc_total 1\nc_created 5\n");
    assert_eq!((values(&seen, "a"), values(&seen, "b").len()), (vec![1.0], 0));
    let counts: Vec<_> = mapper.dropped().iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counts, [(Reason::Duplicate, 1), (Reason::Created, 1), (Reason::Future, 1)]);
}

#[test]
fn an_unfinished_page_leaves_nothing() {
    let (mut mapper, mut out) = (mapper(), vec![]);
    let mut page = mapper.page(at(0), &mut out);
    parse(b"a 1\n", &Options::new(Format::Text), &mut |sample| page.take(&sample)).unwrap();
    drop(page);
    assert!(out.is_empty());
}

#[test]
fn hosts_come_from_the_target_the_page_or_the_instance() {
    let first = |mut mapper: Mapper, text: &str| {
        observe(&mut mapper, at(0), text)[0].series.labels.get("host").map(str::to_owned)
    };
    let forced = || Mapper::new(Some("forced".to_owned()), STALE);
    assert_eq!(first(forced(), "a{host=\"own\"} 1\n").as_deref(), Some("forced"));
    assert_eq!(first(mapper().default_host("url"), "a{host=\"own\"} 1\n").as_deref(), Some("own"));
    assert_eq!(first(mapper().default_host("url"), "a 1\n").as_deref(), Some("url"));
    assert_eq!(first(mapper(), "a{instance=\"10.0.0.1:9100\"} 1\n").as_deref(), Some("10.0.0.1"));
    assert_eq!(first(mapper(), "a{instance=\"[::1]:9100\"} 1\n").as_deref(), Some("[::1]"));
    assert_eq!(first(mapper(), "a 1\n"), None);
}

#[test]
fn labels_of_the_target_win_and_the_pages_own_are_kept() {
    let mut mapper = mapper().labels(Labels::new([("instance", "i:1")]));
    assert_eq!(all(&mut mapper, 0, "a{instance=\"x\"} 1\n"), [r#"a{exported_instance="x", instance="i:1"} 1"#]);
}

#[test]
fn a_rate_that_is_typed_a_counter_is_a_gauge_here() {
    let metric = crate::metrics::find("gpu_nvlink_bytes_per_second").unwrap();
    assert_eq!(metric.kind, crate::metrics::Kind::Gauge);
    let text = "# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL counter\nDCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{gpu=\"0\"} 57\n";
    assert_eq!(values(&observe(&mut mapper(), at(0), text), "gpu_nvlink_bytes_per_second"), [57e6]);
}
