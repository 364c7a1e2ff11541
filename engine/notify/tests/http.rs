//! Webhooks over real sockets, against receivers that misbehave in the ways public bug reports tell of.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use common::http_server::{HttpServer, status};
use common::tls_server::{Ca, https};
use common::{Rig, hot, message_to, over};
use watchfire_core::Severity::Critical;
use watchfire_notify::ReceiverConfig;
use watchfire_notify::http::config::{Authorization, HttpConfig};
use watchfire_notify::receiver::webhook::WebhookConfig;
use watchfire_notify::secret::SecretSource;

fn ops(webhook: WebhookConfig) -> Vec<ReceiverConfig> {
    vec![ReceiverConfig::new("ops").with(webhook)]
}

fn rig(server: &HttpServer) -> Rig {
    Rig::new(ops(WebhookConfig::new(server.url())))
}

const LANE: &str = "webhook/0";

#[test]
fn the_request_is_alertmanagers_with_a_key() {
    let server = HttpServer::start([]);
    let rig = rig(&server);
    let message = hot(3);
    rig.send(&message);
    let got = server.got();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].method.as_str(), &*got[0].path), ("POST", "/hook"));
    assert_eq!(got[0].header("content-type"), "application/json");
    assert_eq!(got[0].header("idempotency-key"), message.key);
    assert_eq!(got[0].header("user-agent"), concat!("watchfire/", env!("CARGO_PKG_VERSION")));
    assert_eq!(got[0].body["version"], "4");
    assert_eq!(got[0].body["alerts"][0]["startsAt"], "2026-01-01T00:00:00Z");
    assert_eq!(got[0].body["alerts"][0]["endsAt"], "0001-01-01T00:00:00Z");
    let totals = rig.totals(LANE);
    assert_eq!((totals.queued, totals.delivered, totals.failed), (0, 1, 0));
}

#[test]
fn credentials_come_from_file_or_value_and_are_sent_only_to_the_receiver() {
    let server = HttpServer::start([]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "t0ken\n").unwrap();
    let bearer = Authorization::Scheme { scheme: "Bearer".into(), credentials: SecretSource::File(file) };
    let basic = Authorization::Basic { username: "me".into(), password: SecretSource::value("pw") };
    let with = |authorization| {
        let http = HttpConfig { authorization: Some(authorization), ..HttpConfig::default() };
        WebhookConfig { http, ..WebhookConfig::new(server.url()) }
    };
    let rig = Rig::new(vec![ReceiverConfig::new("ops").with(with(bearer)).with(with(basic))]);
    rig.send(&hot(3));
    let mut sent: Vec<String> = server.got().iter().map(|got| got.header("authorization").to_owned()).collect();
    sent.sort();
    assert_eq!(sent, ["Basic bWU6cHc=", "Bearer t0ken"]);
}

#[test]
fn statuses_are_retried_or_refused_as_their_class_says() {
    for (code, retried) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (408, true),
        (410, false),
        (413, false),
        (422, false),
        (425, true),
        (429, true),
        (500, true),
        (501, false),
        (502, true),
        (503, true),
        (504, true),
    ] {
        let server = HttpServer::start([status(code), status(200)]);
        let rig = rig(&server);
        rig.send(&hot(3));
        assert_eq!(server.got().len(), 1, "{code}: not tried again at once");
        assert_eq!(rig.totals(LANE).failed, u64::from(!retried), "{code}");
        assert!(rig.last_error(LANE).contains(&format!("answered {code}")), "{}", rig.last_error(LANE));
        rig.pass(Duration::from_secs(6));
        assert_eq!(server.got().len(), if retried { 2 } else { 1 }, "{code}");
        assert_eq!(rig.totals(LANE).delivered, u64::from(retried), "{code}");
    }
}

#[test]
fn an_override_has_a_refusal_retried() {
    let server = HttpServer::start([status(403), status(200)]);
    let rig = Rig::new(ops(WebhookConfig { retry_status: vec![403], ..WebhookConfig::new(server.url()) }));
    rig.send(&hot(3));
    rig.pass(Duration::from_secs(6));
    assert_eq!((server.got().len(), rig.totals(LANE).delivered), (2, 1));
}

#[test]
fn the_wait_that_a_receiver_asks_for_is_kept_to_the_millisecond() {
    let later = |value: &str| (429, vec![("retry-after", value.to_owned())], "");
    let json = (429, vec![], r#"{"retry_after": 1.5}"#);
    for (answer, wait_ms) in [(later("7"), 7_000), (later("Thu, 01 Jan 2026 00:00:30 GMT"), 30_000), (json, 1_500)] {
        let server = HttpServer::start([answer, status(200)]);
        let rig = rig(&server);
        rig.send(&hot(3));
        assert_eq!(rig.status(LANE).next_try_ms, Some(common::START_MS + wait_ms));
        rig.pass(Duration::from_millis(u64::try_from(wait_ms).unwrap() - 1));
        assert_eq!(server.got().len(), 1);
        rig.pass(Duration::from_millis(1));
        assert_eq!((server.got().len(), rig.totals(LANE).delivered), (2, 1));
        let keys: Vec<String> = server.got().iter().map(|got| got.header("idempotency-key").to_owned()).collect();
        assert_eq!(keys[0], keys[1], "a retry has the same key");
    }
}

#[test]
fn accepted_means_delivered_and_a_refusal_is_not_repeated() {
    let accepted = HttpServer::start(vec![status(202); 9]);
    let refusing = HttpServer::start(vec![status(400); 9]);
    for server in [&accepted, &refusing] {
        let rig = rig(server);
        rig.send(&hot(3));
        rig.pass(Duration::from_secs(86_400));
        assert_eq!(rig.put(&hot(3)).known, 1);
        rig.pass(Duration::from_secs(86_400));
        assert_eq!(server.got().len(), 1);
        rig.send(&over(3));
        assert_eq!(server.got().len(), 2, "new content is told");
    }
}

#[test]
fn redirects_are_not_followed() {
    for code in [301, 302, 303, 307, 308] {
        let target = HttpServer::start([]);
        let location = format!("http://127.0.0.1:{}/login?session=s3cret", target.port);
        let server = HttpServer::start([(code, vec![("location", location)], "")]);
        let rig = rig(&server);
        rig.send(&hot(3));
        let why = rig.last_error(LANE);
        assert!(why.contains(&format!("answered {code}, a redirect to http://127.0.0.1:{},", target.port)), "{why}");
        assert!(!why.contains("s3cret"), "{why}");
        assert_eq!((rig.totals(LANE).failed, target.got().len(), server.got().len()), (1, 0, 1));
    }
}

#[test]
fn a_receiver_that_is_down_hears_start_and_end_in_order_once_it_is_up() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let rig = Rig::new(ops(WebhookConfig::new(format!("http://{address}/hook"))));
    rig.send(&hot(3));
    rig.send(&over(3));
    let why = rig.last_error(LANE);
    assert!(why.starts_with(&format!("POST http://{address}: cannot connect: Connection refused")), "{why}");
    assert_eq!(rig.totals(LANE).queued, 2);
    let server = HttpServer::on(TcpListener::bind(address).unwrap(), []);
    rig.pass(Duration::from_secs(300));
    assert_eq!(server.told(), [("firing".into(), "3".into()), ("resolved".into(), "3".into())]);
}

#[test]
fn a_receiver_that_is_down_is_not_asked_once_per_group() {
    let server = HttpServer::start(vec![status(503); 100]);
    let rig = rig(&server);
    for gpu in 0..50 {
        rig.send(&hot(gpu));
    }
    assert_eq!(server.got().len(), 1);
    for _ in 0..60 {
        rig.pass(Duration::from_secs(5));
    }
    assert!((5..=9).contains(&server.got().len()), "{} tries in five minutes", server.got().len());
}

#[test]
fn a_message_that_makes_a_receiver_stumble_does_not_hold_up_other_groups() {
    let server = HttpServer::start([status(500), status(200), status(200), status(500), status(200)]);
    let rig = rig(&server);
    rig.send(&hot(1));
    rig.put(&hot(2));
    rig.put(&hot(3));
    rig.pass(Duration::from_secs(6));
    rig.pass(Duration::from_secs(6));
    assert_eq!(rig.totals(LANE).queued, 0);
    let mut delivered: Vec<String> = server.told()[1..].iter().map(|(_, gpu)| gpu.clone()).collect();
    delivered.sort();
    delivered.dedup();
    assert_eq!(delivered, ["1", "2", "3"]);
}

/// A server on a plain thread; what it does with each connection, and how many there were.
fn raw(serve: impl Fn(TcpStream) + Send + 'static) -> (u16, Arc<AtomicU64>) {
    let (listener, n) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(AtomicU64::new(0)));
    let (port, counter) = (listener.local_addr().unwrap().port(), n.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            serve(stream);
        }
    });
    (port, n)
}

fn read_request(stream: &mut TcpStream) {
    let mut buffer = [0; 65536];
    let _ = stream.read(&mut buffer).unwrap();
}

#[test]
fn a_reset_connection_is_tried_again() {
    let (port, n) = raw(|mut stream| {
        // Closing with unread data in the socket sends RST.
        stream.read_exact(&mut [0; 10]).unwrap();
    });
    let rig = Rig::new(ops(WebhookConfig::new(format!("http://127.0.0.1:{port}/hook"))));
    rig.send(&hot(3));
    assert_eq!((rig.totals(LANE).queued, n.load(Ordering::SeqCst)), (1, 1), "{}", rig.last_error(LANE));
    rig.pass(Duration::from_secs(6));
    assert_eq!(n.load(Ordering::SeqCst), 2);
}

#[test]
fn silence_ends_by_the_timeout_and_is_tried_again() {
    let (silent, _) = raw(std::mem::forget);
    let (half, _) = raw(|mut stream| {
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").unwrap();
        std::mem::forget(stream);
    });
    for port in [silent, half] {
        let timeout = Duration::from_millis(200);
        let rig = Rig::new(ops(WebhookConfig { timeout, ..WebhookConfig::new(format!("http://127.0.0.1:{port}/")) }));
        rig.send(&hot(3));
        assert_eq!(rig.last_error(LANE), format!("POST http://127.0.0.1:{port}: no answer within 200ms"));
        assert_eq!(rig.totals(LANE).queued, 1);
    }
}

#[test]
fn a_body_without_end_is_read_up_to_a_limit() {
    let written = Arc::new(AtomicU64::new(0));
    let count = written.clone();
    let (gone, is_gone) = mpsc::channel();
    let (port, _) = raw(move |mut stream| {
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n").unwrap();
        while stream.write_all(&[b'x'; 65536]).is_ok() {
            count.fetch_add(65536, Ordering::SeqCst);
        }
        gone.send(()).unwrap();
    });
    let rig = Rig::new(ops(WebhookConfig::new(format!("http://127.0.0.1:{port}/hook"))));
    rig.send(&hot(3));
    assert_eq!(rig.totals(LANE).delivered, 1, "the status says so");
    is_gone.recv_timeout(common::SOON).expect("the connection is closed, not drained");
    assert!(written.load(Ordering::SeqCst) < 64 << 20, "{} bytes taken", written.load(Ordering::SeqCst));
}

#[test]
fn a_hanging_receiver_delays_no_other() {
    let (hanging, _) = raw(std::mem::forget);
    let server = HttpServer::start([]);
    let mut configs = ops(WebhookConfig::new(format!("http://127.0.0.1:{hanging}/")));
    configs.push(ReceiverConfig::new("night").with(WebhookConfig::new(server.url())));
    let rig = Rig::new(configs);
    rig.put(&hot(3));
    rig.put(&message_to("night", 3, vec![common::alert(3, Critical)]));
    assert!(!rig.handle().flush(Duration::from_millis(300)), "one still hangs");
    assert_eq!(server.got().len(), 1, "the other has it");
}

#[test]
fn twenty_thousand_alerts_go_out_cut_to_size() {
    let server = HttpServer::start([]);
    let rig = Rig::new(ops(WebhookConfig { max_alerts: 100, ..WebhookConfig::new(server.url()) }));
    let alerts =
        (0..20_000).map(|n| watchfire_notify::Alert { fingerprint: n, ..common::alert(3, Critical) }).collect();
    rig.send(&message_to("ops", 3, alerts));
    let body = &server.got()[0].body;
    assert_eq!((body["truncatedAlerts"].as_u64(), body["alerts"].as_array().unwrap().len()), (Some(19_900), 100));
}

#[test]
fn tls_errors_are_final_and_say_what_to_do() {
    let (dir, ca) = (tempfile::tempdir().unwrap(), Ca::new());
    let ca_file = ca.write(dir.path());
    let plain = HttpServer::start([]).port;
    let cases = [
        (https(&ca.issue("localhost", 2001)), true, "the server's certificate has expired; renew it"),
        (https(&ca.issue("other.example", 2100)), true, "the server's certificate is for another host name"),
        (https(&ca.issue("localhost", 2100)), false, "is not signed by a trusted authority; name its CA in tls_config"),
        (plain, true, "the server does not speak TLS on this port (InvalidContentType); use http://"),
    ];
    for (port, trusted, words) in cases {
        let http = HttpConfig { ca_file: trusted.then(|| ca_file.clone()), ..HttpConfig::default() };
        let rig = Rig::new(ops(WebhookConfig { http, ..WebhookConfig::new(format!("https://localhost:{port}/")) }));
        rig.send(&hot(3));
        assert!(rig.last_error(LANE).contains(words), "{}", rig.last_error(LANE));
        assert_eq!((rig.totals(LANE).failed, rig.totals(LANE).queued), (1, 0));
    }
    let http = HttpConfig { ca_file: Some(ca_file), ..HttpConfig::default() };
    let port = https(&ca.issue("localhost", 2100));
    let rig = Rig::new(ops(WebhookConfig { http, ..WebhookConfig::new(format!("https://localhost:{port}/")) }));
    rig.send(&hot(3));
    assert_eq!(rig.totals(LANE).delivered, 1, "{}", rig.last_error(LANE));
}

#[test]
fn tokens_in_urls_are_never_shown() {
    let server = HttpServer::start([status(500), status(404)]);
    let url = format!("http://user:pa55@127.0.0.1:{}/services/T0KEN?key=s3cret", server.port);
    let config = WebhookConfig::new(url);
    let debug = format!("{config:?}");
    let rig = Rig::new(ops(config));
    rig.send(&hot(3));
    let first = rig.last_error(LANE);
    rig.pass(Duration::from_secs(6));
    let events = format!("{:?}", rig.events.lock().unwrap());
    for shown in [debug, first, rig.last_error(LANE), events] {
        assert!(!["pa55", "T0KEN", "s3cret"].iter().any(|secret| shown.contains(secret)), "{shown}");
    }
    assert_eq!(server.got()[0].path, "/services/T0KEN?key=s3cret");
}

/// The environment is read when a client is made, so this runs itself once more with another environment.
#[test]
fn proxies_of_the_environment_are_used() {
    if let Ok(direct) = std::env::var("TEST_RECEIVER") {
        let rig = Rig::new(ops(WebhookConfig::new(direct)));
        rig.send(&hot(3));
        assert_eq!(rig.totals(LANE).delivered, 1, "{}", rig.last_error(LANE));
        return;
    }
    let (proxy, server) = (HttpServer::start([]), HttpServer::start([]));
    let run = |receiver: &str, no_proxy: &str| {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "proxies_of_the_environment_are_used"])
            .env("TEST_RECEIVER", receiver)
            .env("HTTP_PROXY", format!("http://127.0.0.1:{}", proxy.port))
            .env("NO_PROXY", no_proxy)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    run("http://receiver.example/hook", "");
    assert_eq!(proxy.got()[0].path, "http://receiver.example/hook");
    run(&server.url(), "127.0.0.1");
    assert_eq!((proxy.got().len(), server.got().len()), (1, 1));
}
