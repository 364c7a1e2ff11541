//! A made-up day of a host, for tests that play it: spikes, gaps, counters, events, all from one seed.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use watchfire_collector::recording::{Header, Moment, Writer};
use watchfire_engine::{Labels, Observation, Occurrence, Series, Time};

/// Seconds between two moments.
const EVERY_S: i64 = 15;
/// The GPUs of the host.
const GPUS: usize = 4;
/// When the day begins: 2026-01-01T00:00:00Z.
const BEGIN_MS: i64 = 1_767_225_600_000;

/// Numbers that look random and are the same for the same seed (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.roll().is_multiple_of(n)
    }
}

#[derive(Clone, Copy, Default)]
struct Gpu {
    heat: f64,
    /// Moments for which it runs hot, and for which it tells nothing.
    hot: u64,
    silent: u64,
    ecc: f64,
}

fn series(metric: &str, labels: &Labels) -> Arc<Series> {
    Arc::new(Series::every(metric, labels.clone(), Duration::from_secs(EVERY_S as u64)))
}

/// Writes so many hours of it.
pub fn write(path: &Path, hours: i64, seed: u64) {
    let header = Header::default().with("synthetic", "made for a test");
    let mut writer = Writer::new(std::fs::File::create(path).unwrap(), &header).unwrap();
    let labels =
        |gpu: usize| Labels::new([("host", "h1".to_owned()), ("gpu", gpu.to_string()), ("uuid", format!("GPU-{gpu}"))]);
    let metrics = ["gpu_temperature_celsius", "gpu_power_watts", "gpu_ecc_uncorrected_total", "gpu_utilization_ratio"];
    let all: Vec<Vec<_>> =
        (0..GPUS).map(|gpu| metrics.iter().map(|metric| series(metric, &labels(gpu))).collect()).collect();
    let load = series("host_load1", &Labels::new([("host", "h1")]));
    let (mut dice, mut gpus) = (Dice(seed), [Gpu { heat: 60.0, ..Gpu::default() }; GPUS]);
    for at in 0..hours * 3600 / EVERY_S {
        let time = Time::from_millis(BEGIN_MS + at * EVERY_S * 1000);
        let mut moment = Moment::empty(time);
        for (gpu, series) in gpus.iter_mut().zip(&all) {
            if let Some(values) = gpu.values(&mut dice) {
                let told = series.iter().zip(values).map(|(series, value)| Observation {
                    series: series.clone(),
                    time,
                    value,
                });
                moment.observations.extend(told);
            }
        }
        let wave = (at as f64 / 90.0).sin() * 25.0 + 25.0 + dice.share() * 10.0;
        moment.observations.push(Observation { series: load.clone(), time, value: wave });
        if dice.one_in(300) {
            let gpu = labels(dice.roll() as usize % GPUS);
            let code = if dice.one_in(2) { 79 } else { 31 };
            moment.events.push(Occurrence { kind: "xid".into(), labels: gpu, time, code, job: None });
        }
        writer.write(&moment).unwrap();
    }
}

impl Gpu {
    /// Temperature, power, errors, utilisation; none where it tells nothing.
    fn values(&mut self, dice: &mut Dice) -> Option<[f64; 4]> {
        if self.silent == 0 && dice.one_in(250) {
            self.silent = 1 + dice.roll() % 40;
        }
        if self.hot == 0 && dice.one_in(120) {
            self.hot = 4 + dice.roll() % 60;
        }
        self.silent = self.silent.saturating_sub(1);
        self.hot = self.hot.saturating_sub(1);
        let aim = if self.hot > 0 { 95.0 } else { 62.0 };
        self.heat += (aim - self.heat) * 0.2 + (dice.share() - 0.5) * 4.0;
        self.ecc += if dice.one_in(200) { 1.0 + (dice.roll() % 3) as f64 } else { 0.0 };
        self.ecc *= if dice.one_in(2000) { 0.0 } else { 1.0 };
        let power = 300.0 + (self.heat - 60.0) * 9.0 + dice.share() * 40.0;
        (self.silent == 0).then_some([self.heat, power, self.ecc, dice.share()])
    }
}
