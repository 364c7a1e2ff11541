//! A host with eight H100 that never was: made from published figures, the same on every run, with three faults
//! put in and named. It is what the demo plays; nothing in it was measured.
//!
//! Figures: H100 SXM limit 700 W, slowdown at 87 °C, clocks 345 to 1,980 MHz, 80 GB (NVIDIA's published limits);
//! idle power 56 to 70 W, idle 29 to 35 °C (AcmeTrace, Hu et al., NSDI 2024, power and temperature distributions).

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::sample::STALE_MARKER;
use watchfire_core::{Labels, Observation, Occurrence, Series, Time};

use crate::recording::{Header, Moment, Writer};

/// When it begins: 2026-01-01T00:00:00Z.
pub const START: Time = Time::from_millis(1_767_225_600_000);
/// Seconds between two moments.
pub const INTERVAL_S: u32 = 15;
/// How many moments: 42 minutes and the last.
pub const TICKS: u32 = 42 * TICKS_A_MINUTE + 1;

const TICKS_A_MINUTE: u32 = 60 / INTERVAL_S;
const GPUS: usize = 8;
const HOST: &str = "gpu-node-01";
const MODEL: &str = "NVIDIA H100 80GB HBM3";
const PCI_BUSES: [&str; GPUS] = ["18", "2a", "3a", "5d", "9a", "ab", "ba", "db"];
const MEMORY_BYTES: f64 = 85_520_809_984.0;
const POWER_LIMIT_WATTS: f64 = 700.0;
/// A reading that changes seldom is written when it changes and once a minute.
const SLOW_EVERY: u32 = TICKS_A_MINUTE;

/// Load runs in these minutes.
const LOADS: [(f64, f64); 2] = [(5.0, 21.0), (26.0, 37.0)];
/// The GPU whose cooling fails, when, and when it fails further.
const HOT: (usize, f64, f64) = (5, 8.0, 16.0);
/// The GPU that falls off the bus, and when.
const LOST: (usize, f64) = (3, 31.0);
/// The GPU that is held and not used, from when to when.
const HELD: (usize, f64, f64) = (6, 2.0, 40.0);

/// What the recording says of itself.
pub fn header() -> Header {
    Header::default()
        .with("synthetic", "built from published H100 limits and power/temperature distributions; no GPU was recorded")
        .with("host", HOST)
        .with("injected", "GPU 5: its cooling fails at minute 8 and further at minute 16, until the load ends")
        .with("injected", "GPU 3: it falls off the bus at minute 31 (Xid 79)")
        .with("injected", "GPU 6: a process holds it from minute 2 to minute 40 and uses 12 % of its memory")
}

/// Writes the whole recording.
///
/// # Errors
/// It cannot be written.
pub fn write(to: impl Write) -> io::Result<()> {
    let mut writer = Writer::new(to, &header())?;
    moments().try_for_each(|moment| writer.write(&moment))
}

/// All moments, in order.
pub fn moments() -> impl Iterator<Item = Moment> {
    let mut maker = Maker::new();
    (0..TICKS).map(move |tick| maker.moment(tick))
}

/// Noise without randomness: a linear congruential generator (Knuth's MMIX constants).
#[derive(Debug)]
struct Noise(u64);

impl Noise {
    /// A number from `-spread` to `spread`.
    fn within(&mut self, spread: f64) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = f64::from(u32::try_from(self.0 >> 33).unwrap_or(0)) / f64::from(1u32 << 31);
        (unit * 2.0 - 1.0) * spread
    }
}

/// Whose reading it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Of {
    Gpu(usize),
    Host,
    RootFilesystem,
    Disk,
}

/// One GPU as it is now.
#[derive(Debug)]
struct Gpu {
    celsius: f64,
    watts: f64,
    joules: f64,
    clock_mhz: f64,
    busy: f64,
    memory_used: f64,
    processes: f64,
    throttle: u32,
}

#[derive(Debug)]
struct Maker {
    noise: Noise,
    gpus: Vec<Gpu>,
    /// Series and the last value of each.
    series: HashMap<(Of, &'static str), (Arc<Series>, f64)>,
}

const SW_POWER_CAP: u32 = 0x4;
const IDLE: u32 = 0x1;
const HW_SLOWDOWN: u32 = 0x8;
const SW_THERMAL: u32 = 0x20;
const HW_THERMAL: u32 = 0x40;

impl Maker {
    fn new() -> Self {
        let cold = |_| Gpu {
            celsius: 31.0,
            watts: 65.0,
            joules: 0.0,
            clock_mhz: 345.0,
            busy: 0.0,
            memory_used: 0.006,
            processes: 0.0,
            throttle: IDLE,
        };
        Maker { noise: Noise(20_260_101), gpus: (0..GPUS).map(cold).collect(), series: HashMap::new() }
    }

    fn moment(&mut self, tick: u32) -> Moment {
        let minute = f64::from(tick) / f64::from(TICKS_A_MINUTE);
        let mut moment = Moment::empty(START + Duration::from_secs(u64::from(tick * INTERVAL_S)));
        for index in 0..GPUS {
            let lost = index == LOST.0 && minute >= LOST.1;
            self.put(&mut moment, Of::Gpu(index), "gpu_up", if lost { 0.0 } else { 1.0 });
            match lost {
                false => self.gpu(&mut moment, tick, minute, index),
                true if at_minute(tick, LOST.1) => self.lose(&mut moment, index),
                true => {}
            }
        }
        self.host(&mut moment, tick, minute);
        moment
    }

    fn gpu(&mut self, moment: &mut Moment, tick: u32, minute: f64, index: usize) {
        let held = index == HELD.0 && (HELD.1..HELD.2).contains(&minute);
        let loaded = index != HELD.0 && loaded(minute);
        let noise = &mut self.noise;
        let Some(gpu) = self.gpus.get_mut(index) else { return };
        gpu.run(noise, loaded, held);
        gpu.heat(noise, loaded, target(index, minute, loaded));
        let readings = gpu.readings(noise);
        let flags = gpu.flags();
        for (metric, value) in readings {
            self.put(moment, Of::Gpu(index), metric, value);
        }
        for (metric, value) in flags {
            self.put_slow(moment, tick, Of::Gpu(index), metric, value);
        }
    }

    /// Ends the series of a GPU that falls off the bus.
    fn lose(&mut self, moment: &mut Moment, index: usize) {
        let theirs = |(of, metric): &(Of, &str)| *of == Of::Gpu(index) && *metric != "gpu_up";
        let mut ended: Vec<_> = self.series.iter().filter(|(key, _)| theirs(key)).collect();
        ended.sort_unstable_by_key(|((_, metric), _)| *metric);
        let value = f64::from_bits(STALE_MARKER);
        let marker = |(_, (series, _)): (_, &(Arc<Series>, f64))| Observation {
            series: series.clone(),
            time: moment.time,
            value,
        };
        let markers: Vec<_> = ended.into_iter().map(marker).collect();
        moment.observations.extend(markers);
        let labels = labels(Of::Gpu(index));
        moment.events.push(Occurrence { kind: "xid".into(), labels, time: moment.time, code: 79, job: None });
    }

    fn host(&mut self, moment: &mut Moment, tick: u32, minute: f64) {
        let busy = if loaded(minute) { 0.42 } else { 0.03 };
        let busy = round(busy + self.noise.within(0.02), 3);
        self.put(moment, Of::Host, "host_cpu_busy_ratio", busy);
        let load = round(busy * 192.0 + self.noise.within(0.5), 2);
        self.put(moment, Of::Host, "host_load1", load);
        let available = if loaded(minute) { 0.71 } else { 0.93 };
        let available = round(available + self.noise.within(0.004), 3);
        self.put(moment, Of::Host, "host_memory_available_ratio", available);
        let disk = round(0.03 + self.noise.within(0.02), 3);
        self.put(moment, Of::Disk, "disk_busy_ratio", disk);
        let gpus = if minute >= LOST.1 { 7.0 } else { 8.0 };
        let slow = [
            (Of::Host, "nvml_up", 1.0),
            (Of::Host, "nvml_gpus", gpus),
            (Of::Host, "host_memory_total_bytes", 2_164_203_520_000.0),
            (Of::Host, "host_boot_time_seconds", 1_766_361_600.0),
            (Of::RootFilesystem, "filesystem_avail_ratio", 0.61),
            (Of::RootFilesystem, "filesystem_files_free_ratio", 0.97),
        ];
        for (of, metric, value) in slow {
            self.put_slow(moment, tick, of, metric, value);
        }
    }

    fn put(&mut self, moment: &mut Moment, of: Of, metric: &'static str, value: f64) {
        let interval = Duration::from_secs(u64::from(INTERVAL_S));
        self.write(moment, of, metric, value, interval);
    }

    /// Writes a reading that changes seldom.
    fn put_slow(&mut self, moment: &mut Moment, tick: u32, of: Of, metric: &'static str, value: f64) {
        let same = self.series.get(&(of, metric)).is_some_and(|(_, last)| last.to_bits() == value.to_bits());
        if !same || tick.is_multiple_of(SLOW_EVERY) {
            self.write(moment, of, metric, value, Duration::from_secs(u64::from(INTERVAL_S * SLOW_EVERY)));
        }
    }

    fn write(&mut self, moment: &mut Moment, of: Of, metric: &'static str, value: f64, interval: Duration) {
        let new = || (Arc::new(Series::every(metric, labels(of), interval)), value);
        let (series, last) = self.series.entry((of, metric)).or_insert_with(new);
        *last = value;
        moment.observations.push(Observation { series: series.clone(), time: moment.time, value });
    }
}

impl Gpu {
    /// What runs on it.
    fn run(&mut self, noise: &mut Noise, loaded: bool, held: bool) {
        self.processes = f64::from(u8::from(loaded || held));
        let (busy, memory) = match (loaded, held) {
            (true, _) => (0.97 + noise.within(0.02), 0.88 + noise.within(0.01)),
            (_, true) => (0.01 + noise.within(0.01), 0.12),
            _ => (0.0, 0.006),
        };
        self.busy = round(busy, 2);
        self.memory_used = round(memory, 3);
    }

    /// How warm it gets, and what that does to its clocks and power.
    fn heat(&mut self, noise: &mut Noise, loaded: bool, target: f64) {
        // A third of the way to the balance every 15 s: about what heat pipes and air do.
        self.celsius += (target + noise.within(0.8) - self.celsius) / 3.0;
        self.throttle = match (loaded, self.celsius) {
            (true, 90.0..) => HW_SLOWDOWN | HW_THERMAL | SW_THERMAL,
            (true, 85.0..) => SW_THERMAL,
            (true, _) => SW_POWER_CAP,
            _ if self.processes > 0.0 => 0,
            _ => IDLE,
        };
        let (clock, watts) = match (loaded, self.throttle) {
            (true, mask) if mask & HW_THERMAL != 0 => (975.0, 348.0 + noise.within(12.0)),
            (true, SW_THERMAL) => (1410.0 + round(noise.within(3.0), 0) * 15.0, 505.0 + noise.within(20.0)),
            (true, _) => (1860.0 + round(noise.within(7.0), 0) * 15.0, 632.0 + noise.within(48.0)),
            _ if self.processes > 0.0 => (1980.0, 112.0 + noise.within(3.0)),
            _ => (345.0, 65.0 + noise.within(4.0)),
        };
        self.clock_mhz = clock;
        self.watts = round(watts, 1);
        self.joules += self.watts * f64::from(INTERVAL_S);
    }

    fn readings(&self, noise: &mut Noise) -> [(&'static str, f64); 8] {
        let busy = self.busy;
        let share = |of: f64, spread: f64| round(busy * of + spread, 2).clamp(0.0, 1.0);
        let noise = if busy > 0.5 { noise.within(0.03) } else { 0.0 };
        [
            ("gpu_temperature_celsius", round(self.celsius, 0)),
            ("gpu_power_watts", self.watts),
            ("gpu_energy_joules_total", round(self.joules, 0)),
            ("gpu_utilization_ratio", busy.clamp(0.0, 1.0)),
            ("gpu_memory_busy_ratio", share(0.55, noise)),
            ("gpu_dram_active_ratio", share(0.46, noise)),
            ("gpu_sm_active_ratio", share(0.82, noise)),
            ("gpu_memory_used_ratio", self.memory_used),
        ]
    }

    fn flags(&self) -> [(&'static str, f64); 13] {
        let bit = |bit: u32| f64::from(u8::from(self.throttle & bit != 0));
        [
            ("gpu_memory_temperature_celsius", round(self.celsius, 0) + if self.busy > 0.5 { 9.0 } else { 4.0 }),
            ("gpu_sm_clock_hertz", self.clock_mhz * 1e6),
            ("gpu_memory_used_bytes", round(self.memory_used * MEMORY_BYTES / 1e6, 0) * 1e6),
            ("gpu_memory_total_bytes", MEMORY_BYTES),
            ("gpu_power_limit_watts", POWER_LIMIT_WATTS),
            ("gpu_compute_processes", self.processes),
            ("gpu_throttle_reasons", f64::from(self.throttle)),
            ("gpu_throttle_sw_power_cap", bit(SW_POWER_CAP)),
            ("gpu_throttle_hw_slowdown", bit(HW_SLOWDOWN)),
            ("gpu_throttle_sw_thermal", bit(SW_THERMAL)),
            ("gpu_throttle_hw_thermal", bit(HW_THERMAL)),
            ("gpu_ecc_uncorrected_total", 0.0),
            ("gpu_pcie_link_width", 16.0),
        ]
    }
}

fn loaded(minute: f64) -> bool {
    LOADS.iter().any(|&(from, to)| (from..to).contains(&minute))
}

fn at_minute(tick: u32, minute: f64) -> bool {
    (f64::from(tick) / f64::from(TICKS_A_MINUTE) - minute).abs() < 1e-9
}

/// The temperature at which a GPU would settle.
fn target(index: usize, minute: f64, loaded: bool) -> f64 {
    // GPUs further back in the air stream run warmer.
    let place = f64::from(u8::try_from(index % 4).unwrap_or(0));
    let failing = index == HOT.0 && minute >= HOT.1 && minute < LOADS[0].1;
    match (loaded, failing) {
        (true, true) if minute >= HOT.2 => 93.0,
        (true, true) => 87.5,
        (true, false) => 63.0 + 2.5 * place,
        (false, _) => 29.5 + 1.3 * place,
    }
}

fn labels(of: Of) -> Labels {
    let host = ("host", HOST.to_owned());
    match of {
        Of::Host => Labels::new([host]),
        Of::Disk => Labels::new([host, ("device", "nvme0n1".to_owned())]),
        Of::RootFilesystem => Labels::new([
            host,
            ("device", "/dev/nvme0n1p2".to_owned()),
            ("mountpoint", "/".to_owned()),
            ("fstype", "ext4".to_owned()),
        ]),
        Of::Gpu(index) => Labels::new([
            host,
            ("gpu", index.to_string()),
            ("uuid", format!("GPU-5e7a11ce-0000-4000-8000-{index:012x}")),
            ("pci", format!("0000:{}:00.0", PCI_BUSES.get(index).copied().unwrap_or("00"))),
            ("model", MODEL.to_owned()),
        ]),
    }
}

fn round(value: f64, digits: i32) -> f64 {
    let factor = 10f64.powi(digits);
    // Without `+ 0.0` a small negative number would become -0.
    (value * factor).round() / factor + 0.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use watchfire_core::sample::is_stale_marker;

    /// The readings of one metric of one GPU, by minute.
    fn readings(metric: &str, gpu: usize) -> Vec<(f64, f64)> {
        let gpu = gpu.to_string();
        let all = moments().flat_map(|moment| moment.observations);
        let theirs = all.filter(|one| &*one.series.metric == metric && one.series.labels.get("gpu") == Some(&gpu));
        theirs.map(|one| (one.time.since(START).as_secs_f64() / 60.0, one.value)).collect()
    }

    fn span(readings: &[(f64, f64)], from: f64, to: f64) -> (f64, f64) {
        let within = readings.iter().filter(|(minute, _)| (from..to).contains(minute)).map(|(_, value)| *value);
        within.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| (min.min(value), max.max(value)))
    }

    #[test]
    fn healthy_gpus_stay_within_the_published_figures() {
        for gpu in [0, 1, 2, 4, 7] {
            let celsius = readings("gpu_temperature_celsius", gpu);
            let watts = readings("gpu_power_watts", gpu);
            let (min, max) = span(&celsius, 0.0, 5.0);
            assert!(min >= 29.0 && max <= 35.0, "GPU {gpu} idle {min} to {max} C");
            let (min, max) = span(&celsius, 8.0, 21.0);
            assert!(min >= 60.0 && max <= 74.0, "GPU {gpu} loaded {min} to {max} C");
            let (min, max) = span(&watts, 0.0, 5.0);
            assert!(min >= 60.0 && max <= 70.0, "GPU {gpu} idle {min} to {max} W");
            let (min, max) = span(&watts, 5.0, 21.0);
            assert!(min >= 550.0 && max <= 690.0, "GPU {gpu} loaded {min} to {max} W");
        }
    }

    #[test]
    fn the_injected_faults_are_there_as_named() {
        let hot = readings("gpu_temperature_celsius", 5);
        let (min, max) = span(&hot, 10.0, 16.0);
        assert!(min > 85.0 && max <= 89.0, "{min} to {max}");
        let (min, max) = span(&hot, 17.5, 21.0);
        assert!(min > 90.0 && max < 96.0, "{min} to {max}");
        assert!(span(&hot, 24.0, 26.0).1 < 80.0);
        assert_eq!(span(&readings("gpu_throttle_hw_thermal", 5), 17.5, 21.0).0, 1.0);
        assert!(span(&readings("gpu_sm_clock_hertz", 5), 17.5, 21.0).1 < 1e9);

        let lost = readings("gpu_power_watts", 3);
        assert!(is_stale_marker(lost.last().unwrap().1));
        assert_eq!(lost.last().unwrap().0, 31.0);
        assert_eq!(span(&readings("gpu_up", 3), 31.0, 99.0), (0.0, 0.0));
        let events: Vec<_> = moments().flat_map(|moment| moment.events).collect();
        assert_eq!(events.iter().map(|event| event.code).collect::<Vec<_>>(), [79]);

        assert_eq!(span(&readings("gpu_memory_used_ratio", 6), 2.0, 40.0), (0.12, 0.12));
        assert_eq!(span(&readings("gpu_compute_processes", 6), 2.0, 40.0), (1.0, 1.0));
        assert_eq!(span(&readings("gpu_compute_processes", 6), 40.0, 99.0), (0.0, 0.0));
        assert_eq!(header().injected().count(), 3);
    }

    #[test]
    fn every_metric_is_known_and_every_reading_plausible() {
        for observation in moments().flat_map(|moment| moment.observations) {
            let metric = crate::metrics::find(&observation.series.metric).unwrap();
            let value = observation.value;
            assert!(is_stale_marker(value) || metric.range.holds(value), "{} {value}", metric.name);
        }
    }

    #[test]
    fn the_demos_recording_is_what_is_made_here() {
        let mut made = Vec::new();
        write(&mut made).unwrap();
        assert!(made.len() <= 300 * 1024, "{} bytes", made.len());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/demo/host.rec");
        let kept = std::fs::read(path).unwrap();
        assert!(
            made == kept,
            "src/demo/host.rec is old: cargo run -p watchfire-collector --example synthetic > src/demo/host.rec"
        );
    }
}
