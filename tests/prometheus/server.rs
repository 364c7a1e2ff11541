//! A real Prometheus over samples of a file.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long it may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running Prometheus that collects nothing. It is killed when it is dropped.
pub struct Prometheus {
    child: Child,
    port: u16,
}

/// A series of a query's result: its labels, and its values by time in seconds.
pub type Series = (BTreeMap<String, String>, BTreeMap<i64, f64>);

impl Prometheus {
    /// Whether it is installed.
    pub fn is_there() -> bool {
        ["prometheus", "promtool"].iter().all(|tool| Command::new(tool).arg("--version").output().is_ok())
    }

    /// Starts one over the samples of an OpenMetrics file, with its data in `folder`.
    pub fn over(samples: &Path, folder: &Path) -> Self {
        let made = Command::new("promtool")
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .args([samples, folder])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let config = folder.join("prometheus.yml");
        std::fs::write(&config, "global: {}\n").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--storage.tsdb.retention.time=100y")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Prometheus { child, port };
        let start = Instant::now();
        while server.get("/-/ready").is_none() {
            assert!(start.elapsed() < PATIENCE, "Prometheus does not answer");
            std::thread::yield_now();
        }
        server
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    /// An expression at each step.
    pub fn range(&self, expr: &str, start: i64, end: i64, step: i64) -> Vec<Series> {
        let quoted: String = expr.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query_range?query={quoted}&start={start}&end={end}&step={step}");
        let answer: Value = serde_json::from_str(&self.get(&path).unwrap_or_else(|| panic!("{expr}"))).unwrap();
        answer["data"]["result"].as_array().unwrap().iter().map(series).collect()
    }
}

fn series(result: &Value) -> Series {
    let labels = result["metric"].as_object().unwrap();
    let labels = labels.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
    let point = |pair: &Value| (pair[0].as_f64().unwrap() as i64, pair[1].as_str().unwrap().parse().unwrap());
    (labels, result["values"].as_array().unwrap().iter().map(point).collect())
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
