//! A real Alertmanager, where one is installed, takes what is posted to it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::http_server::HttpServer;
use common::{Rig, alert, message_to, resolved};
use serde_json::Value;
use watchfire_core::Severity::{Critical, Warning};
use watchfire_notify::receiver::alertmanager::AlertmanagerConfig;
use watchfire_notify::{Alert, Message, ReceiverConfig};

const LANE: &str = "alertmanager/0";

struct Alertmanager {
    process: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Alertmanager {
    /// Starts one that tells `hook`. `None`, said aloud, where none is installed.
    fn start(hook: &HttpServer) -> Option<Self> {
        let program = ["prometheus-alertmanager", "alertmanager"]
            .into_iter()
            .find(|program| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success()));
        let Some(program) = program else {
            eprintln!("SKIPPED: no prometheus-alertmanager is installed");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "route: {{receiver: ops, group_by: [alertname], group_wait: 0s, group_interval: 1s}}\n\
             receivers: [{{name: ops, webhook_configs: [{{url: '{}'}}]}}]\n",
            hook.url()
        );
        std::fs::write(dir.path().join("config.yml"), config).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .arg("--config.file=config.yml")
            .arg("--storage.path=data")
            .arg("--cluster.listen-address=")
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(dir.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let running = Alertmanager { process, port, _dir: dir };
        wait_for("it to listen", || running.get("/-/ready").is_some());
        Some(running)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn get(&self, path: &str) -> Option<String> {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    /// Severities of the alerts that fire in it.
    fn firing(&self) -> Vec<String> {
        let alerts: Value = serde_json::from_str(&self.get("/api/v2/alerts").unwrap()).unwrap();
        let severity = |alert: &Value| alert["labels"]["severity"].as_str().unwrap().to_owned();
        let mut firing: Vec<String> = alerts.as_array().unwrap().iter().map(severity).collect();
        firing.sort();
        firing
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + common::SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Alertmanager judges ends by its own clock, so here the real time is used.
fn now_ms() -> i64 {
    watchfire_notify::clock::system()()
}

fn about(mut one: Alert) -> Message {
    one.starts_at_ms = now_ms() - 60_000;
    one.ends_at_ms = one.ends_at_ms.map(|_| now_ms());
    message_to("ops", 3, vec![one])
}

#[test]
fn it_fires_escalates_and_resolves() {
    let hook = HttpServer::start([]);
    let Some(alertmanager) = Alertmanager::start(&hook) else { return };
    let config = AlertmanagerConfig::new(format!("{}/", alertmanager.url()));
    let rig = Rig::new(vec![ReceiverConfig::new("ops").with(config)]);
    rig.now_ms.store(now_ms(), std::sync::atomic::Ordering::SeqCst);
    rig.send(&about(alert(3, Warning)));
    assert_eq!(rig.totals(LANE).delivered, 1, "{}", rig.last_error(LANE));
    assert_eq!(alertmanager.firing(), ["warning"]);
    rig.now_ms.store(now_ms(), std::sync::atomic::Ordering::SeqCst);
    rig.send(&about(alert(3, Critical)));
    wait_for("the escalation", || alertmanager.firing() == ["critical"]);
    rig.send(&about(resolved(alert(3, Critical))));
    wait_for("the end", || alertmanager.firing().is_empty());
    assert_eq!(rig.totals(LANE).failed, 0);
    wait_for("its own receiver to hear of the end", || hook.told().iter().any(|(status, _)| status == "resolved"));
}

#[test]
fn what_it_refuses_is_given_up_with_its_words() {
    let hook = HttpServer::start([]);
    let Some(alertmanager) = Alertmanager::start(&hook) else { return };
    let rig = Rig::new(vec![ReceiverConfig::new("ops").with(AlertmanagerConfig::new(alertmanager.url()))]);
    let mut odd = alert(3, Warning);
    odd.labels.insert("no label name".into(), "x".into());
    rig.send(&message_to("ops", 3, vec![odd]));
    let why = rig.last_error(LANE);
    assert!(why.contains("answered 400") && why.contains("no label name"), "{why}");
    assert_eq!(rig.totals(LANE).failed, 1);
}
