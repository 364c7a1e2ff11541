//! Samples out of a real Prometheus give the same alerts as the file that was put into it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod world;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use world::{eventually, free_address, root, stdout, watchfire};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A Prometheus that holds the samples of a file.
fn start(data: &Path, input: &Path) -> Option<(Server, String)> {
    if !has("prometheus") || !has("promtool") {
        println!("skipped: no prometheus and promtool on this machine");
        return None;
    }
    let store = data.join("store");
    let load = ["tsdb", "create-blocks-from", "openmetrics"];
    let done = Command::new("promtool").args(load).args([input, &store]).stdout(Stdio::null()).status().unwrap();
    assert!(done.success());
    let address = free_address();
    let config = data.join("prometheus.yml");
    std::fs::write(&config, "scrape_configs: []\n").unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", store.display()))
        .arg(format!("--web.listen-address={address}"))
        .arg("--storage.tsdb.retention.time=100y")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server(child);
    eventually("Prometheus answers", || std::net::TcpStream::connect(address).ok());
    let url = format!("http://{address}");
    Some((server, url))
}

#[test]
fn a_replay_out_of_prometheus_is_that_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let input = root().join("tests/data/hot-dcgm.om");
    let Some((_server, url)) = start(folder.path(), &input) else { return };
    let config = folder.path().join("watchfire.yaml");
    std::fs::write(&config, "templates: {}\n").unwrap();
    let config = config.display().to_string();
    let replay = |input: &str, more: &[&str]| {
        watchfire(&[&["replay", "-c", &config, "--json", "--input", input], more].concat())
    };
    let expected = stdout(&replay(&input.display().to_string(), &[]));
    let span = ["--from", "2025-12-31T23:59:00Z", "--to", "2026-01-01T02:30:00Z"];
    let got = eventually("Prometheus is ready", || {
        let output = replay(&url, &span);
        output.status.success().then(|| stdout(&output))
    });
    assert!(expected.lines().count() >= 4, "{expected}");
    assert_eq!(got, expected);
    let without = replay(&url, &[]);
    assert_eq!(without.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&without.stderr).contains("needs --from and --to"));
}
