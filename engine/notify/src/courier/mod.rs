//! Carries messages from the outbox to receivers: one lane for each channel, so that a slow or dead receiver never
//! delays another.
//!
//! Everything runs on one thread of its own with its own runtime; looking up host names may add a few short-lived
//! threads. Messages are delivered in order within a channel and group. A message is carried at least once, and
//! twice only if the process ends between a receiver's answer and its record, which is counted
//! (`doubtful`, [`outbox::ChannelTotals`]).

mod lane;
mod progress;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::heartbeat::{Heartbeat, HeartbeatConfig, HeartbeatStatus, Pulse};
use crate::outbox::db::Db;
use crate::outbox::{self, ChannelTotals, OutboxError, Started};
use crate::receiver::{BuildContext, BuildError, Receivers};

pub use lane::GIVEN_UP_AFTER;
use lane::Lane;
use progress::{Progress, Signal};

/// How long deliveries under way may take to end when the courier is stopped.
pub const STOP_WITHIN: Duration = Duration::from_secs(5);

/// One thing that happened to a delivery.
#[derive(Debug)]
pub struct Event<'a> {
    /// The receiver's name.
    pub receiver: &'a str,
    /// The channel's name.
    pub channel: &'a str,
    /// The message's idempotency key; empty if the message could not be read.
    pub key: &'a str,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it.
    Delivered,
    /// It will be tried again.
    Retrying {
        /// When, in milliseconds since the Unix epoch.
        next_ms: i64,
        /// What went wrong.
        why: String,
    },
    /// It is given up.
    Failed {
        /// What went wrong and what to do.
        why: String,
    },
}

/// Is told of each try, on the courier's thread; must not block.
pub type OnEvent = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// What a courier needs beside its receivers.
#[derive(Clone)]
pub struct Options {
    /// Is told of each try.
    pub on_event: OnEvent,
    /// Signs of life to others.
    pub heartbeats: Vec<HeartbeatConfig>,
    /// How long deliveries under way may take to end when the courier is stopped.
    pub stop_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { on_event: Arc::new(|_| {}), heartbeats: Vec::new(), stop_within: STOP_WITHIN }
    }
}

/// The courier could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The outbox cannot be used.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// A heartbeat cannot be made.
    #[error("heartbeat: {0}")]
    Heartbeat(#[from] BuildError),
    /// The system gives no thread or no event queue.
    #[error("cannot start the thread that delivers: {0}")]
    Thread(#[from] std::io::Error),
}

/// How one channel does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelStatus {
    /// Receiver, channel, and counts kept over restarts.
    pub totals: ChannelTotals,
    /// When the channel is next looked at, where something waits, in milliseconds since the Unix epoch.
    pub next_try_ms: Option<i64>,
}

/// Starts couriers.
pub struct Courier;

impl Courier {
    /// Takes over the outbox in `db`, making its tables where they are missing, and begins to deliver.
    ///
    /// Only one courier may work on an outbox at a time: drop the old handle before starting a new one.
    ///
    /// # Errors
    /// The outbox cannot be used, a heartbeat cannot be made, or the system gives no thread.
    pub fn start(
        db: Db,
        receivers: Arc<Receivers>,
        context: &BuildContext,
        options: Options,
    ) -> Result<CourierHandle, StartError> {
        let started = take_over(&db, &receivers, (context.now)())?;
        let pulse = Pulse::default();
        let beats = make_beats(&options.heartbeats, &pulse, context)?;
        let beat_status = beats.iter().map(Heartbeat::status).collect();
        let names: Vec<_> = receivers.names().map(|(of, channel)| (of.to_owned(), channel.to_owned())).collect();
        let progress = Arc::new(Progress::new(names.len()));
        let (signal, signals) = watch::channel(Signal::default());
        let lane = |(index, (receiver, channel)): (usize, &(String, String))| Lane {
            index,
            receiver: receiver.clone(),
            channel: channel.clone(),
            receivers: receivers.clone(),
            db: db.clone(),
            now: context.now.clone(),
            progress: progress.clone(),
            on_event: options.on_event.clone(),
            failures: 0,
            paused_until_ms: None,
            n_done: 0,
        };
        let lanes = names.iter().enumerate().map(lane).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let work = Work { lanes, beats, signals, progress: progress.clone(), stop_within: options.stop_within };
        let thread = std::thread::Builder::new().name("watchfire-notify".into()).spawn(move || work.run(runtime))?;
        let now = context.now.clone();
        Ok(CourierHandle { db, names, signal, progress, started, beat_status, pulse, now, thread: Some(thread) })
    }
}

fn take_over(db: &Db, receivers: &Receivers, now_ms: i64) -> Result<Started, OutboxError> {
    let mut db = db.lock();
    outbox::migrate(&db)?;
    let names: Vec<(&str, &str)> = receivers.names().collect();
    let started = outbox::start(&mut db, &names, now_ms)?;
    outbox::prune(&mut db, now_ms)?;
    if started.doubtful > 0 {
        tracing::warn!(n = started.doubtful, "deliveries were cut short by the last end; receivers may get them twice");
    }
    if started.orphaned > 0 {
        tracing::error!(
            n = started.orphaned,
            "undelivered messages are for channels that are no longer configured; given up"
        );
    }
    Ok(started)
}

fn make_beats(
    configs: &[HeartbeatConfig],
    pulse: &Pulse,
    context: &BuildContext,
) -> Result<Vec<Heartbeat>, BuildError> {
    configs.iter().map(|config| Heartbeat::new(config, pulse.clone(), context)).collect()
}

struct Work {
    lanes: Vec<Lane>,
    beats: Vec<Heartbeat>,
    signals: watch::Receiver<Signal>,
    progress: Arc<Progress>,
    stop_within: Duration,
}

impl Work {
    fn run(self, runtime: Runtime) {
        let progress = self.progress.clone();
        runtime.block_on(self.work());
        // Name look-ups that hang must not hold up the end.
        runtime.shutdown_background();
        progress.ended();
    }

    async fn work(self) {
        let mut beats = JoinSet::new();
        for beat in self.beats {
            beats.spawn(beat.run());
        }
        let mut lanes = JoinSet::new();
        for lane in self.lanes {
            lanes.spawn(lane.run(self.signals.clone()));
        }
        let mut signals = self.signals;
        // The sender's end means stop as well.
        let _ = signals.wait_for(|signal| signal.stop).await;
        beats.abort_all();
        let ending = async { while lanes.join_next().await.is_some() {} };
        if tokio::time::timeout(self.stop_within, ending).await.is_err() {
            tracing::warn!("deliveries under way were cut short; they will be tried again");
        }
    }
}

/// A running courier. Dropping it stops the courier: deliveries under way get [`Options::stop_within`] to end, the
/// rest waits in the outbox. The drop blocks for as long.
pub struct CourierHandle {
    db: Db,
    names: Vec<(String, String)>,
    signal: watch::Sender<Signal>,
    progress: Arc<Progress>,
    started: Started,
    beat_status: Vec<Arc<Mutex<HeartbeatStatus>>>,
    pulse: Pulse,
    now: crate::clock::Clock,
    thread: Option<JoinHandle<()>>,
}

impl CourierHandle {
    /// Has the lanes look for work; to be called after the transaction that put messages in was committed.
    pub fn wake(&self) {
        self.next_generation();
    }

    /// Shows that the engine is alive. Once this was called, heartbeats stop when it is no longer called.
    pub fn pulse(&self) {
        self.pulse.beat((self.now)());
    }

    /// Waits until everything that can be delivered now is: what is left waits to be tried again. Says whether that
    /// came to pass within `timeout`. Blocks the caller's thread.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.progress.wait(self.next_generation(), timeout)
    }

    /// What was found in the outbox at the start.
    pub fn started(&self) -> Started {
        self.started
    }

    /// How each channel does, those first that are configured.
    ///
    /// # Errors
    /// SQLite's.
    pub fn status(&self) -> rusqlite::Result<Vec<ChannelStatus>> {
        let mut totals = outbox::totals(&self.db.lock())?;
        let mut all = Vec::with_capacity(self.names.len());
        for (lane, (receiver, channel)) in self.names.iter().enumerate() {
            let at = totals.iter().position(|one| (&one.receiver, &one.channel) == (receiver, channel));
            let unused =
                || ChannelTotals { receiver: receiver.clone(), channel: channel.clone(), ..Default::default() };
            let totals = at.map_or_else(unused, |at| totals.remove(at));
            all.push(ChannelStatus { totals, next_try_ms: self.progress.next_try_ms(lane) });
        }
        all.extend(totals.into_iter().map(|totals| ChannelStatus { totals, next_try_ms: None }));
        Ok(all)
    }

    /// How each heartbeat does, in the order of the settings.
    pub fn heartbeats(&self) -> Vec<HeartbeatStatus> {
        let read = |status: &Arc<Mutex<HeartbeatStatus>>| status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.beat_status.iter().map(read).collect()
    }

    fn next_generation(&self) -> u64 {
        let mut generation = 0;
        self.signal.send_modify(|signal| {
            signal.generation += 1;
            generation = signal.generation;
        });
        generation
    }
}

impl Drop for CourierHandle {
    fn drop(&mut self) {
        self.signal.send_modify(|signal| signal.stop = true);
        if let Some(thread) = self.thread.take() {
            // A panic on that thread was reported there; what it was doing waits in the outbox.
            let _ = thread.join();
        }
    }
}
