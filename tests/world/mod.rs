//! A running Watchfire and what it talks to, for tests of the whole.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "each test uses a part of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long something that must happen may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary under test.
pub fn watchfire(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_watchfire")).args(args).current_dir(root()).output();
    output.unwrap()
}

/// The project's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a command printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A running `watchfire run`. It is killed when it is dropped.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
}

impl Running {
    /// Starts it and waits until it answers.
    pub fn start(config: &Path, address: SocketAddr) -> Self {
        let running = Running::spawn(config, address);
        eventually("it answers", || running.get("/-/ready"));
        running
    }

    /// Starts it.
    pub fn spawn(config: &Path, address: SocketAddr) -> Self {
        let log = std::fs::File::create(config.with_extension("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_watchfire"));
        let child = command.args(["run", "-c"]).arg(config).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Running { child, address }
    }

    /// What it answers to a GET.
    pub fn get(&self, path: &str) -> Option<String> {
        let text = self.ask("GET", path)?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// The whole answer to a request.
    pub fn ask(&self, method: &str, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// How it does.
    pub fn status(&self) -> Value {
        self.get("/api/v1/status").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Its process.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Ends it without a word: `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end; how long that took, and whether it ended well.
    pub fn terminate(mut self) -> (Duration, bool) {
        let started = Instant::now();
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        let status = self.child.wait().unwrap();
        (started.elapsed(), status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again and again until there is an answer.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let (_keep, never) = channel::<()>();
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(answer) = ask() {
            return answer;
        }
        let _ = never.recv_timeout(Duration::from_millis(20));
    }
    panic!("{what}: not within {PATIENCE:?}");
}

/// An address that nobody listens at.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// One request that a receiver got.
#[derive(Debug)]
pub struct Request {
    pub head: String,
    pub body: Value,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A webhook receiver that accepts everything.
pub fn receive(address: SocketAddr) -> Receiver<Request> {
    let (sender, requests) = channel();
    let listener = eventually("the port is free", || TcpListener::bind(address).ok());
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(take(stream, &sender))));
    requests
}

fn take(mut stream: TcpStream, sender: &Sender<Request>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let head = head.replace("\r\n", "\n");
    let mut request = Request { head, body: Value::Null };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    let _ = sender.send(request);
    Ok(())
}

/// A folder with a configuration in it.
pub struct Place {
    pub folder: tempfile::TempDir,
    pub address: SocketAddr,
    pub hook: SocketAddr,
}

impl Place {
    /// Writes a configuration: NVML from `library` each 200 ms, templates from `template.yaml`, one webhook.
    pub fn new(library: &Path, template: &str) -> Self {
        let place = Place { folder: tempfile::tempdir().unwrap(), address: free_address(), hook: free_address() };
        let text = format!(
            "http: {{listen: {}}}\nhost: h1\nstorage: {{path: ./state}}\nsources:\n  nvml: {{interval: 200ms, library: {}}}\n\
             templates: {{paths: [./template.yaml]}}\n\
             route: {{receiver: ops, group_by: [alertname, host], group_wait: 0s, group_interval: 1s}}\n\
             receivers:\n  - {{name: ops, webhook_configs: [{{url: http://{}/hook}}]}}\n",
            place.address,
            library.display(),
            place.hook,
        );
        std::fs::write(place.config(), text).unwrap();
        std::fs::write(place.folder.path().join("template.yaml"), template).unwrap();
        place
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join("watchfire.yaml")
    }

    pub fn start(&self) -> Running {
        Running::start(&self.config(), self.address)
    }

    /// What it logged, to be shown where a test fails.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.config().with_extension("log")).unwrap_or_default()
    }
}
