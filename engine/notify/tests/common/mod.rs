//! What the tests over real sockets share.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

pub mod http_server;
pub mod smtp_server;
pub mod tls_server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use watchfire_core::Severity;
use watchfire_notify::courier::{Options, Outcome};
use watchfire_notify::outbox::{self, ChannelTotals, Enqueued};
use watchfire_notify::{
    Alert, BuildContext, ChannelStatus, Courier, CourierHandle, Db, Message, Reason, ReceiverConfig, Receivers, Status,
    idempotency_key,
};

pub const START_MS: i64 = 1_767_225_600_000;
/// A limit for what must happen at once; only a broken test comes near it.
pub const SOON: Duration = Duration::from_secs(20);

pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn alert(gpu: u8, severity: Severity) -> Alert {
    let (index, word) = (gpu.to_string(), severity.as_str());
    Alert {
        status: Status::Firing,
        labels: map(&[("alertname", "GpuTooHot"), ("host", "h1"), ("gpu", &index), ("severity", word)]),
        annotations: map(&[("summary", "hot")]),
        starts_at_ms: START_MS,
        ends_at_ms: None,
        fingerprint: u64::from(gpu),
        severity,
        value: Some(92.0),
        cause: Some("thermal".into()),
        template: "gpu-thermal".into(),
        note: None,
    }
}

pub fn resolved(mut alert: Alert) -> Alert {
    (alert.status, alert.ends_at_ms) = (Status::Resolved, Some(START_MS + 60_000));
    alert
}

/// A message to `receiver` about `alerts`, in the group of GPU `gpu`.
pub fn message_to(receiver: &str, gpu: u8, alerts: Vec<Alert>) -> Message {
    let group_key = format!(r#"{{}}:{{gpu="{gpu}"}}"#);
    Message {
        key: idempotency_key(receiver, &group_key, &alerts, 0),
        receiver: receiver.into(),
        group_key,
        group_labels: map(&[("gpu", &gpu.to_string())]),
        alerts,
        time_ms: START_MS,
        reason: Reason::Change,
    }
}

/// GPU `gpu` is too hot, told to `ops`.
pub fn hot(gpu: u8) -> Message {
    message_to("ops", gpu, vec![alert(gpu, Severity::Critical)])
}

/// It is over, told to `ops`.
pub fn over(gpu: u8) -> Message {
    message_to("ops", gpu, vec![resolved(alert(gpu, Severity::Critical))])
}

/// An outbox in a folder of its own, a clock that stands still, and at times a courier.
pub struct Rig {
    pub dir: tempfile::TempDir,
    pub now_ms: Arc<AtomicI64>,
    pub events: Arc<Mutex<Vec<(String, Outcome)>>>,
    configs: Vec<ReceiverConfig>,
    running: Option<(CourierHandle, Arc<Receivers>, Db)>,
}

impl Rig {
    pub fn new(configs: Vec<ReceiverConfig>) -> Self {
        let mut rig = Rig::stopped(configs);
        rig.start();
        rig
    }

    pub fn stopped(configs: Vec<ReceiverConfig>) -> Self {
        let now_ms = Arc::new(AtomicI64::new(START_MS));
        Rig { dir: tempfile::tempdir().unwrap(), now_ms, events: Arc::default(), configs, running: None }
    }

    pub fn context(&self) -> BuildContext {
        let now_ms = self.now_ms.clone();
        BuildContext::new("http://watchfire.example").with_clock(Arc::new(move || now_ms.load(Ordering::SeqCst)))
    }

    pub fn db(&self) -> Db {
        let (db, opened) = Db::open(&self.dir.path().join("watchfire.db")).unwrap();
        assert_eq!(opened.set_aside, None);
        db
    }

    pub fn receivers(&self) -> Arc<Receivers> {
        Receivers::build(&self.configs, &self.context()).unwrap()
    }

    pub fn start(&mut self) {
        let (db, receivers, events) = (self.db(), self.receivers(), self.events.clone());
        let options = Options {
            on_event: Arc::new(move |event| events.lock().unwrap().push((event.channel.into(), event.outcome.clone()))),
            stop_within: Duration::from_secs(1),
            ..Options::default()
        };
        let handle = Courier::start(db.clone(), receivers.clone(), &self.context(), options).unwrap();
        self.running = Some((handle, receivers, db));
    }

    pub fn stop(&mut self) {
        self.running = None;
    }

    pub fn handle(&self) -> &CourierHandle {
        &self.running.as_ref().unwrap().0
    }

    /// Puts a message in as the engine does, without telling the courier.
    pub fn put(&self, message: &Message) -> Enqueued {
        let (_, receivers, db) = self.running.as_ref().unwrap();
        put(db, receivers, message)
    }

    /// Puts a message in and waits until all that can be done now is done.
    pub fn send(&self, message: &Message) {
        self.put(message);
        assert!(self.handle().flush(SOON), "not done in time: {:?}", self.handle().status());
    }

    /// Lets time pass, and waits until all that can be done then is done.
    pub fn pass(&self, span: Duration) {
        self.now_ms.fetch_add(i64::try_from(span.as_millis()).unwrap(), Ordering::SeqCst);
        assert!(self.handle().flush(SOON), "not done in time: {:?}", self.handle().status());
    }

    pub fn status(&self, channel: &str) -> ChannelStatus {
        let all = self.handle().status().unwrap();
        all.into_iter().find(|one| one.totals.channel == channel).unwrap_or_else(|| panic!("no channel {channel}"))
    }

    pub fn totals(&self, channel: &str) -> ChannelTotals {
        self.status(channel).totals
    }

    pub fn last_error(&self, channel: &str) -> String {
        self.totals(channel).last_error.unwrap_or_default()
    }
}

pub fn put(db: &Db, receivers: &Receivers, message: &Message) -> Enqueued {
    let mut db = db.lock();
    let tx = db.transaction().unwrap();
    let enqueued = outbox::enqueue(&tx, message, &receivers.targets(message)).unwrap();
    tx.commit().unwrap();
    enqueued
}

/// The folder of the whole project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
