//! What a crash, a restart and a full queue leave behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::http_server::{HttpServer, status};
use common::{Rig, alert, hot, message_to, over};
use watchfire_core::Severity::{Critical, Warning};
use watchfire_notify::courier::{Courier, GIVEN_UP_AFTER, Options, Outcome};
use watchfire_notify::heartbeat::HeartbeatConfig;
use watchfire_notify::receiver::webhook::WebhookConfig;
use watchfire_notify::receiver::{BuildError, Channel, ChannelConfig, Delivery, SendFuture, Sender};
use watchfire_notify::verdict::Verdict;
use watchfire_notify::{BuildContext, Db, Message, ReceiverConfig, Receivers, outbox};

const LANE: &str = "webhook/0";

fn ops(url: String) -> Vec<ReceiverConfig> {
    vec![ReceiverConfig::new("ops").with(WebhookConfig::new(url))]
}

/// Enqueue, lose everything but the file, open again, deliver: same key, same start, then the end.
#[test]
fn a_process_that_dies_before_delivery_loses_nothing() {
    let server = HttpServer::start([]);
    let mut rig = Rig::stopped(ops(server.url()));
    let message = hot(3);
    {
        let db = rig.db();
        outbox::migrate(&db.lock()).unwrap();
        common::put(&db, &rig.receivers(), &message);
    }
    rig.start();
    assert!(rig.handle().flush(common::SOON));
    assert_eq!(rig.put(&message).known, 1, "the same notification built again after a crash");
    rig.send(&over(3));
    let got = server.got();
    assert_eq!(got[0].header("idempotency-key"), message.key);
    assert_eq!(got[0].body["alerts"][0]["startsAt"], "2026-01-01T00:00:00Z");
    assert_eq!(server.told(), [("firing".into(), "3".into()), ("resolved".into(), "3".into())]);
    rig.stop();
    rig.start();
    assert_eq!(rig.put(&over(3)).known, 1, "and the end built again");
    assert!(rig.handle().flush(common::SOON));
    assert_eq!(server.got().len(), 2);
}

#[test]
fn a_receiver_that_was_down_over_a_restart_is_told_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let mut rig = Rig::new(ops(format!("http://{address}/hook")));
    rig.send(&hot(3));
    for _ in 0..10 {
        rig.pass(Duration::from_secs(300));
    }
    assert_eq!(rig.totals(LANE).queued, 1);
    rig.stop();
    let server = HttpServer::on(TcpListener::bind(address).unwrap(), []);
    rig.start();
    assert!(rig.handle().flush(common::SOON));
    assert_eq!(server.told(), [("firing".into(), "3".into())], "no wait of five minutes");
    assert_eq!(rig.handle().started().waiting, 1);
}

#[test]
fn a_stop_lets_the_delivery_under_way_end_and_keeps_the_rest() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut rig = Rig::new(ops(format!("http://127.0.0.1:{port}/hook")));
    rig.put(&hot(3));
    rig.put(&hot(4));
    rig.handle().wake();
    let (stream, _) = listener.accept().unwrap();
    let answer = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let mut stream = stream;
        let _ = stream.read(&mut [0; 65536]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    rig.stop();
    answer.join().unwrap();
    drop(listener);
    let db = rig.db();
    let totals = outbox::totals(&db.lock()).unwrap();
    assert_eq!((totals[0].delivered + totals[0].queued, totals[0].failed), (2, 0));
    assert!(totals[0].delivered >= 1, "the one under way was carried to its end");
    assert_eq!(outbox::start(&mut db.lock(), &[("ops", LANE)], 0).unwrap().doubtful, 0);
}

#[test]
fn a_stop_cuts_a_hanging_delivery_short_and_counts_it_as_doubtful() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rig = Rig::stopped(ops(format!("http://127.0.0.1:{port}/hook")));
    let (db, receivers) = (rig.db(), rig.receivers());
    let options = Options { stop_within: Duration::from_millis(50), ..Options::default() };
    let handle = Courier::start(db.clone(), receivers.clone(), &rig.context(), options.clone()).unwrap();
    common::put(&db, &receivers, &hot(3));
    handle.wake();
    let (stream, _) = listener.accept().unwrap();
    drop(handle);
    drop(stream);
    let handle = Courier::start(db, receivers, &rig.context(), options).unwrap();
    assert_eq!(handle.started().doubtful, 1);
    assert_eq!(handle.status().unwrap()[0].totals.doubtful, 1);
}

#[test]
fn what_can_never_be_delivered_is_given_up_after_days() {
    let server = HttpServer::start(vec![status(503); 10_000]);
    let rig = Rig::new(ops(server.url()));
    rig.send(&hot(3));
    rig.pass(GIVEN_UP_AFTER - Duration::from_secs(1));
    assert_eq!(rig.totals(LANE).queued, 1);
    rig.pass(Duration::from_secs(301));
    assert_eq!((rig.totals(LANE).queued, rig.totals(LANE).failed), (0, 1));
    assert!(rig.last_error(LANE).starts_with("given up after 5 days of trying; the last try: POST"));
}

#[test]
fn each_try_is_reported() {
    let server = HttpServer::start([status(500), status(200), status(404)]);
    let rig = Rig::new(ops(server.url()));
    rig.send(&hot(3));
    rig.pass(Duration::from_secs(6));
    rig.send(&hot(4));
    let events = rig.events.lock().unwrap();
    let kinds: Vec<&str> = events
        .iter()
        .map(|(_, outcome)| match outcome {
            Outcome::Delivered => "delivered",
            Outcome::Retrying { .. } => "retrying",
            Outcome::Failed { .. } => "failed",
        })
        .collect();
    assert_eq!(kinds, ["retrying", "delivered", "failed"]);
}

#[test]
fn without_send_resolved_only_what_fires_is_told() {
    let server = HttpServer::start([]);
    let config = WebhookConfig { send_resolved: false, ..WebhookConfig::new(server.url()) };
    let rig = Rig::new(vec![ReceiverConfig::new("ops").with(config)]);
    assert_eq!(rig.put(&over(3)).added, 0);
    let mixed = message_to("ops", 3, vec![alert(3, Critical), common::resolved(alert(4, Warning))]);
    rig.send(&mixed);
    assert_eq!(server.got().len(), 1);
    assert_eq!(server.got()[0].body["alerts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_receiver_without_channels_takes_messages_and_tells_nobody() {
    let rig = Rig::new(vec![ReceiverConfig::new("ops")]);
    let unknown = Message { receiver: "nobody".into(), ..hot(3) };
    assert_eq!((rig.put(&hot(3)).added, rig.put(&unknown).added), (0, 0));
    assert!(rig.handle().flush(common::SOON));
}

#[test]
fn a_burst_is_delivered_whole_and_in_order_per_group() {
    let server = HttpServer::start([]);
    let rig = Rig::new(ops(server.url()));
    for gpu in 0..50 {
        rig.put(&hot(gpu));
        rig.put(&over(gpu));
    }
    assert!(rig.handle().flush(common::SOON));
    let told = server.told();
    assert_eq!(told.len(), 100);
    for gpu in 0..50 {
        let of: Vec<&str> = told.iter().filter(|(_, of)| *of == gpu.to_string()).map(|(status, _)| &**status).collect();
        assert_eq!(of, ["firing", "resolved"]);
    }
}

/// A channel of an embedder's own, which panics at GPU 3.
#[derive(Debug, Clone)]
struct Own;

impl ChannelConfig for Own {
    fn kind(&self) -> &'static str {
        "own"
    }

    fn channels(&self, _: &BuildContext) -> Result<Vec<Channel>, BuildError> {
        Ok(vec![Channel { suffix: String::new(), send_resolved: true, sender: Box::new(Own) }])
    }
}

impl Sender for Own {
    fn send<'a>(&'a self, delivery: Delivery<'a>) -> SendFuture<'a> {
        let gpu = delivery.message.alerts[0].labels["gpu"].clone();
        Box::pin(async move {
            assert_ne!(gpu, "3", "stumbles");
            Verdict::Delivered
        })
    }
}

#[test]
fn a_panic_costs_one_message_and_not_the_channel() {
    let rig = Rig::new(vec![ReceiverConfig::new("ops").with(Own)]);
    for gpu in 2..5 {
        rig.send(&hot(gpu));
    }
    let totals = rig.totals("own/0");
    assert_eq!((totals.delivered, totals.failed, totals.queued), (2, 1, 0));
    assert!(rig.last_error("own/0").starts_with("an error in Watchfire itself: task"));
}

#[test]
fn a_heart_beats_until_the_engine_falls_silent() {
    let server = HttpServer::start([status(200), status(500)]);
    let rig = Rig::stopped(vec![]);
    let heartbeat = HeartbeatConfig { interval: Duration::from_millis(5), ..HeartbeatConfig::new(server.url()) };
    let options = Options { heartbeats: vec![heartbeat], ..Options::default() };
    let db = Db::memory().unwrap();
    let none = Receivers::build(&[], &rig.context()).unwrap();
    let handle = Courier::start(db, none, &rig.context(), options).unwrap();
    let wait_for = |what: &dyn Fn(&watchfire_notify::heartbeat::HeartbeatStatus) -> bool| {
        let deadline = std::time::Instant::now() + common::SOON;
        while !what(&handle.heartbeats()[0]) {
            assert!(std::time::Instant::now() < deadline, "{:?}", handle.heartbeats());
            std::thread::yield_now();
        }
    };
    wait_for(&|status| status.sent >= 3 && status.failed == 1);
    let why = handle.heartbeats()[0].last_error.clone().unwrap();
    assert_eq!(why, format!("GET http://127.0.0.1:{}: answered 500", server.port));
    handle.pulse();
    rig.now_ms.fetch_add(61_000, Ordering::SeqCst);
    wait_for(&|status| status.held_back >= 3);
    let sent = handle.heartbeats()[0].sent;
    wait_for(&|status| status.held_back >= 6);
    assert_eq!(handle.heartbeats()[0].sent, sent);
    handle.pulse();
    wait_for(&|status| status.sent > sent);
}
