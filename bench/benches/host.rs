//! What `watchfire run` takes on a host with 8 GPUs that are read each second.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to say")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fake_nvml::Fake;

const WARM_UP: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(20);
/// Linux' USER_HZ, which is 100 on all its architectures that Watchfire runs on.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new(folder.path(), "").unwrap();
    let binary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/watchfire");
    let mut child = start(&binary, folder.path(), &fake.library);
    std::thread::sleep(WARM_UP);
    let (before, started) = (cpu_seconds(child.id()), Instant::now());
    std::thread::sleep(WINDOW);
    let share = (cpu_seconds(child.id()) - before) / started.elapsed().as_secs_f64();
    println!(
        "watchfire run, 8 GPUs each second, all shipped templates: {:.2} % of one core, {} MiB RSS",
        share * 100.0,
        rss_mib(child.id())
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

fn start(binary: &Path, folder: &Path, library: &Path) -> Child {
    let config: PathBuf = folder.join("watchfire.yaml");
    let text = format!(
        "http: {{listen: 127.0.0.1:0}}\nstorage: {{path: ./state}}\nsources:\n  nvml: {{interval: 1s, library: {}}}\n",
        library.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(binary);
    command.args(["run", "-c"]).arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = [fields[11], fields[12]].iter().map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / TICKS_PER_SECOND
}

fn rss_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
