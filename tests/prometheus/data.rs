//! Half a day of two GPU hosts, made up from a seed: quiet and bad phases, spikes, gaps, counters that start again.

use std::fmt::Write as _;

/// The first evaluation, in seconds since 1970: a whole minute.
pub const START: i64 = 1_700_006_400;
/// How long the samples go on, seconds.
pub const SPAN: i64 = 12 * 3600;
/// Between two scrapes, seconds.
const SCRAPE: i64 = 30;
const HOSTS: [&str; 2] = ["gpu-01", "gpu-02"];
/// When a host's exporters cannot be read, seconds after the start: shorter and longer than Prometheus looks back.
const OUTAGES: [&[(i64, i64)]; 2] = [&[(17_900, 18_080), (30_000, 31_500)], &[(9_000, 9_200), (25_000, 26_300)]];
/// When the first host is started again.
const REBOOT: i64 = 18_000;

/// Numbers that look random and are the same each time (xorshift64*).
struct Random(u64);

impl Random {
    fn of(text: &str) -> Self {
        // FNV-1a.
        Random(
            text.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        )
    }

    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, (low, high): (f64, f64)) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// How a metric moves.
#[derive(Clone, Copy)]
enum Moves {
    /// Between these in quiet phases, and between those in bad ones; rounded to whole numbers.
    Whole((f64, f64), (f64, f64)),
    /// The same, not rounded.
    Between((f64, f64), (f64, f64)),
    /// Grows by as much at each scrape; starts again now and then.
    Counts((f64, f64), (f64, f64)),
    /// Falls from the first to the second share of a size within so many scrapes, and starts again.
    Falls(f64, f64, f64, i64),
    /// Near zero in quiet phases, and away from it step by step in bad ones.
    Drifts(f64),
    /// Never changes.
    Is(f64),
    /// When the host was started.
    Boots,
}

use Moves::{Between, Boots, Counts, Drifts, Falls, Is, Whole};

const OF_GPU: [(&str, &str, Moves); 10] = [
    ("DCGM_FI_DEV_GPU_TEMP", "heat", Whole((60.0, 82.0), (84.0, 95.0))),
    ("DCGM_FI_DEV_MEMORY_TEMP", "hbm", Whole((70.0, 90.0), (95.0, 99.0))),
    ("DCGM_FI_DEV_XID_ERRORS", "xid", Whole((0.0, 0.0), (79.0, 79.0))),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc", Counts((0.0, 0.0), (0.0, 1.4))),
    ("DCGM_FI_DEV_FB_USED", "memory", Whole((700.0, 30_000.0), (77_000.0, 79_000.0))),
    ("DCGM_FI_DEV_FB_FREE", "memory", Whole((40_000.0, 80_000.0), (500.0, 4_100.0))),
    // Not whole: a mean that is its threshold to the last bit may fall on either side where a unit is changed.
    ("DCGM_FI_DEV_GPU_UTIL", "work", Between((0.0, 9.0), (88.0, 100.0))),
    ("DCGM_FI_DEV_POWER_USAGE", "power", Between((90.0, 640.0), (640.0, 700.0))),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pcie", Counts((0.0, 0.6), (1.0, 12.0))),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "remap", Whole((0.0, 0.0), (1.0, 1.0))),
];
const CLOCK: (&str, &str, Moves) = ("DCGM_FI_DEV_SM_CLOCK", "clock", Whole((1_300.0, 1_980.0), (400.0, 1_010.0)));

const OF_HOST: [(&str, &str, Moves); 10] = [
    ("node_timex_offset_seconds", "offset", Drifts(0.002)),
    ("node_timex_sync_status", "ntp", Whole((1.0, 1.0), (0.0, 0.0))),
    ("node_timex_maxerror_seconds", "ntp", Between((0.1, 15.0), (15.9, 30.0))),
    ("node_filefd_allocated", "handles", Whole((10_000.0, 69_000.0), (70_010.0, 95_000.0))),
    ("node_filefd_maximum", "", Is(100_000.0)),
    ("node_vmstat_pgmajfault", "pages", Counts((0.0, 9_000.0), (15_500.0, 60_000.0))),
    ("node_memory_MemAvailable_bytes", "ram", Whole((2e11, 9e11), (2e10, 1.01e11))),
    ("node_memory_MemTotal_bytes", "", Is(1_081_100_128_256.0)),
    ("node_boot_time_seconds", "", Boots),
    ("node_load1", "load", Between((0.0, 20.0), (60.0, 200.0))),
];

const OF_FILESYSTEM: [(&str, &str, Moves); 5] = [
    ("node_filesystem_size_bytes", "", Is(1e12)),
    ("node_filesystem_avail_bytes", "space", Falls(1e12, 0.22, 0.01, 900)),
    ("node_filesystem_readonly", "mount", Whole((0.0, 0.0), (0.0, 1.0))),
    ("node_filesystem_files", "", Is(6.1e7)),
    ("node_filesystem_files_free", "inodes", Whole((6e6, 5e7), (1e5, 3.1e6))),
];
const OF_NETWORK: [(&str, &str, Moves); 2] = [
    ("node_network_receive_packets_total", "packets", Counts((900.0, 4_000.0), (900.0, 4_000.0))),
    ("node_network_receive_errs_total", "cable", Counts((0.0, 3.0), (60.0, 200.0))),
];
const OF_DISK: [(&str, &str, Moves); 3] = [
    ("node_disk_io_time_weighted_seconds_total", "queue", Counts((0.0, 200.0), (310.0, 900.0))),
    ("node_disk_read_time_seconds_total", "reads", Counts((0.0, 0.6), (2.0, 30.0))),
    ("node_disk_reads_completed_total", "reads", Counts((10.0, 100.0), (10.0, 100.0))),
];

struct Series {
    metric: &'static str,
    labels: String,
    host: usize,
    /// What moves together.
    phases: String,
    moves: Moves,
}

/// All series, each metric's one after the other.
fn series() -> Vec<Series> {
    let mut all = Vec::new();
    for (host, name) in HOSTS.into_iter().enumerate() {
        let mut add = |metrics: &[(&'static str, &str, Moves)], thing: &str, labels: &str| {
            for (metric, phases, moves) in metrics {
                let phases = format!("{name} {thing} {phases}");
                all.push(Series { metric, labels: labels.to_owned(), host, phases, moves: *moves });
            }
        };
        for gpu in 0..2 {
            let model = if host + gpu == 2 { "Tesla V100-SXM2-32GB" } else { "NVIDIA H100 80GB HBM3" };
            let labels = format!(
                "gpu=\"{gpu}\",UUID=\"GPU-{host}{gpu}\",device=\"nvidia{gpu}\",modelName=\"{model}\",Hostname=\"{name}\",instance=\"{name}:9400\",job=\"dcgm\""
            );
            add(&OF_GPU, &format!("gpu {gpu}"), &labels);
            add(&[CLOCK], &format!("gpu {gpu}"), &labels);
        }
        let from = format!("instance=\"{name}:9100\",job=\"node-exporter\"");
        add(&OF_HOST, "", &from);
        for (device, fstype, mountpoint) in
            [("/dev/nvme0n1p2", "ext4", "/"), ("/dev/sdb1", "xfs", "/data"), ("tmpfs", "tmpfs", "/run")]
        {
            let labels = format!("device=\"{device}\",fstype=\"{fstype}\",mountpoint=\"{mountpoint}\",{from}");
            add(&OF_FILESYSTEM, mountpoint, &labels);
        }
        add(&OF_NETWORK, "eth0", &format!("device=\"eth0\",{from}"));
        // Nothing comes in: 0 / 0.
        let still = OF_NETWORK.map(|(metric, _, _)| (metric, "", Is(5.0)));
        add(&still, "idle0", &format!("device=\"idle0\",{from}"));
        for device in ["nvme0n1", "sda", "loop0"] {
            add(&OF_DISK, device, &format!("device=\"{device}\",{from}"));
        }
    }
    all.sort_by_key(|series| series.metric);
    all
}

/// OpenMetrics text with the time of each sample.
pub fn exposition() -> String {
    let mut out = String::new();
    for series in series() {
        write(&series, &mut out);
    }
    out + "# EOF\n"
}

fn write(series: &Series, out: &mut String) {
    let (mut phases, mut noise) =
        (Random::of(&series.phases), Random::of(&format!("{}{}", series.metric, series.labels)));
    let mut jitter = Random::of(&format!("{} {}", HOSTS[series.host], series.labels.contains(":9400")));
    let (mut is_bad, mut left, mut value) = (false, 0i64, 0.0);
    for scrape in 0..SPAN / SCRAPE {
        if left == 0 {
            is_bad = !is_bad && scrape > 0;
            left = phases.between(if is_bad { (10.0, 160.0) } else { (30.0, 200.0) }) as i64;
        }
        left -= 1;
        // Never on a whole half minute, where Prometheus 2 and 3 differ about a range's first sample.
        let millis = (scrape * SCRAPE) * 1000 + [7_300, 18_900][series.host] + jitter.between((-400.0, 400.0)) as i64;
        let is_spike = noise.unit() < 0.004;
        value = next(series, value, is_bad != is_spike, scrape, &mut noise);
        let is_out = OUTAGES[series.host].iter().any(|(from, to)| (from * 1000..to * 1000).contains(&millis));
        // A sample may be missing by itself.
        if !is_out && noise.unit() > 0.003 {
            let time = START * 1000 + millis;
            let _ = writeln!(out, "{}{{{}}} {value} {}.{:03}", series.metric, series.labels, time / 1000, time % 1000);
        }
    }
}

fn next(series: &Series, value: f64, is_bad: bool, scrape: i64, noise: &mut Random) -> f64 {
    let of = |quiet, bad| if is_bad { bad } else { quiet };
    match series.moves {
        Whole(quiet, bad) => noise.between(of(quiet, bad)).round(),
        Between(quiet, bad) => noise.between(of(quiet, bad)),
        Counts(quiet, bad) => {
            let start = if scrape == 0 { 1e6 } else { value };
            let is_reset = noise.unit() < 0.002 || (series.host == 0 && scrape == REBOOT / SCRAPE);
            let grown = noise.between(of(quiet, bad)).round();
            if is_reset { grown } else { start + grown }
        }
        Falls(size, from, to, scrapes) => {
            let share = (scrape % scrapes) as f64 / scrapes as f64;
            (size * (from + (to - from) * share + 0.002 * noise.unit())).round()
        }
        Drifts(step) if is_bad => value + if series.host == 0 { step } else { -step } * noise.unit(),
        Drifts(_) => noise.between((-0.04, 0.04)),
        Is(value) => value,
        Boots if series.host == 0 && scrape * SCRAPE >= REBOOT => (START + REBOOT) as f64,
        Boots => (START - 86_400) as f64,
    }
}
