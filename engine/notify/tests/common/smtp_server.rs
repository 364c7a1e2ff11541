//! A real SMTP server in a process of its own, where there is an interpreter with aiosmtpd.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::tls_server::Ca;

/// The interpreter: `WATCHFIRE_TEST_PYTHON`, else that of `target/test-venv`. `None`, said aloud, where neither can
/// load aiosmtpd.
pub fn python() -> Option<PathBuf> {
    let venv = super::project().join("target/test-venv/bin/python");
    let python = std::env::var_os("WATCHFIRE_TEST_PYTHON").map_or(venv, PathBuf::from);
    let loads = Command::new(&python).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
    if loads.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    eprintln!("SKIPPED: {} cannot load aiosmtpd; set WATCHFIRE_TEST_PYTHON to one that can", python.display());
    None
}

pub struct SmtpServer {
    pub port: u16,
    pub ca_file: PathBuf,
    process: Child,
    events: Arc<Mutex<Vec<Value>>>,
    _dir: tempfile::TempDir,
}

impl SmtpServer {
    /// Starts one with these settings (see `smtp_server.py`), and a certificate for `localhost`.
    pub fn start(mut settings: Value) -> Option<Self> {
        let (python, dir, ca) = (python()?, tempfile::tempdir().unwrap(), Ca::new());
        let identity = ca.issue("localhost", 2100);
        for (name, pem) in [("cert", &identity.cert_pem), ("key", &identity.key_pem)] {
            let path = dir.path().join(name);
            std::fs::write(&path, pem).unwrap();
            settings[name] = json!(path);
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/smtp_server.py");
        let mut command = Command::new(python);
        command.arg(script).arg(settings.to_string()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let (port, events) = (u16::try_from(first["port"].as_u64().unwrap()).unwrap(), Arc::default());
        let log: Arc<Mutex<Vec<Value>>> = Arc::clone(&events);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Some(SmtpServer { port, ca_file: ca.write(dir.path()), process, events, _dir: dir })
    }

    /// The events that have `name`, of which at least `n` must come.
    pub fn events(&self, name: &str, n: usize) -> Vec<Value> {
        let deadline = std::time::Instant::now() + super::SOON;
        loop {
            let events = self.events.lock().unwrap();
            let found: Vec<Value> = events.iter().filter(|event| event.get(name).is_some()).cloned().collect();
            if found.len() >= n {
                return found;
            }
            assert!(std::time::Instant::now() < deadline, "{n} of {name} in {events:?}");
            drop(events);
            std::thread::yield_now();
        }
    }

    pub fn count(&self, name: &str) -> usize {
        self.events(name, 0).len()
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
