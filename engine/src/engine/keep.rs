//! What outlives the process: stored with the messages about it, in one transaction.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::record::{Changes, Drift};
use watchfire_core::{Effect, Event, Observation, Occurrence, Time};
use watchfire_notify::message::Message;
use watchfire_notify::{Db, outbox};

use super::{Engine, TEMPLATE_INVALID, invalid_template};
use crate::output::Output;
use crate::store::{self, HistoryRow, Page};

/// How often what moves with each tick is stored.
const DRIFT_EVERY: Duration = Duration::from_secs(60);
/// How often it is stored that the engine lives, so that a later start knows how long it was down.
const SEEN_EVERY: Duration = Duration::from_secs(10);
/// After the storage could not be written, it is tried again after this.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The most messages, and the most transitions, that wait in memory while the storage cannot be written.
pub(super) const BACKLOG_MAX: usize = 10_000;
/// After so many transitions the history is looked through for old ones.
const PRUNE_EVERY: u64 = 1_000;
/// Derived values are kept for the widest window and this long, for those that read their last value only.
const DERIVED_KEPT_FOR: Duration = Duration::from_secs(3600);

/// What waits to be stored, and how the storage does.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Whether what is read is a recording: each write is then a whole picture of one moment.
    is_recording: bool,
    /// Whether what was read before a restart is being read again.
    pub(super) is_looking_back: bool,
    in_memory: bool,
    durable: Result<(), String>,
    messages: VecDeque<Message>,
    history: VecDeque<HistoryRow>,
    gone: BTreeSet<Arc<str>>,
    /// A write failed: the next one stores all anew.
    anew: bool,
    /// The last moment whose deadlines were run.
    judged_at: Option<Time>,
    drift_at: Option<Time>,
    seen_at: Option<Time>,
    retry_at: Option<Time>,
    lost_total: u64,
    since_prune: u64,
}

impl Keeper {
    pub(super) fn new(is_durable: bool, is_recording: bool) -> Self {
        Keeper {
            is_recording,
            is_looking_back: false,
            in_memory: !is_durable,
            durable: if is_durable { Ok(()) } else { Err("no storage was given".to_owned()) },
            messages: VecDeque::new(),
            history: VecDeque::new(),
            gone: BTreeSet::new(),
            anew: false,
            judged_at: None,
            drift_at: None,
            seen_at: None,
            retry_at: None,
            lost_total: 0,
            since_prune: PRUNE_EVERY,
        }
    }

    pub(super) fn durable(&self) -> &Result<(), String> {
        &self.durable
    }

    pub(super) fn messages_lost_total(&self) -> u64 {
        self.lost_total
    }

    fn is_due(&self, at: Option<Time>, now: Time, every: Duration) -> bool {
        // A clock that was set back makes it due as well.
        at.is_none_or(|at| now.since(at) >= every || at > now)
    }

    /// Lets go of the oldest where too much waits.
    fn bound(&mut self) {
        let over = self.messages.len().saturating_sub(BACKLOG_MAX);
        let over_history = self.history.len().saturating_sub(BACKLOG_MAX);
        self.messages.drain(..over);
        self.history.drain(..over_history);
        if over + over_history > 0 {
            self.lost_total += (over + over_history) as u64;
            tracing::error!(
                messages = over,
                transitions = over_history,
                "lost: the storage cannot be written, and no more than {BACKLOG_MAX} of each wait in memory"
            );
        }
    }
}

impl Engine {
    pub(super) fn restore(&mut self, now: Time) {
        self.restored = true;
        let Some(db) = &self.db else { return };
        let (kept, unreadable) = match store::load(&db.lock()) {
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(%error, "stored alerts could not be read; starting without them");
                return;
            }
        };
        if unreadable > 0 {
            tracing::error!(rows = unreadable, "some of what was stored could not be read and was left out");
        }
        let templates: Vec<String> = kept
            .conditions
            .iter()
            .filter(|view| &*view.alert == TEMPLATE_INVALID)
            .filter_map(|view| view.labels.get("file").map(str::to_owned))
            .collect();
        self.core.restore(now, kept, &mut self.effects);
        for file in templates.iter().filter(|file| !self.broken.iter().any(|(broken, _)| broken == *file)) {
            self.core.step(now, Event::Condition(invalid_template(file, None)), &mut self.effects);
        }
    }

    /// Where a recorded run stopped: the moment of its last write; none where it begins.
    pub fn position(&self) -> Option<Time> {
        let db = self.db.as_ref().filter(|_| self.keeper.is_recording && !self.restored)?;
        store::seen(&db.lock()).ok().flatten()
    }

    /// Takes in again what a recording held at `time`, before [`Engine::position`]: windows fill, and nothing is judged
    /// or told. [`Engine::resume`] ends it.
    pub fn look_back(&mut self, time: Time, observations: &[Observation], events: Vec<Occurrence>) {
        self.keeper.is_looking_back = true;
        self.begin(time);
        self.pass_over(time);
        for event in events {
            self.take_event(time, event);
        }
        self.observe(time, observations);
    }

    /// Goes on with a recorded run at `position`: all is as it was when that was stored.
    pub fn resume(&mut self, position: Time) {
        self.begin(position);
        self.keeper.is_looking_back = false;
        self.pass_over(position + Duration::from_millis(1));
        if !self.restored {
            self.restore(position);
        }
        (self.keeper.judged_at, self.keeper.drift_at) = (Some(position), Some(position));
    }

    pub(super) fn note_history(&mut self, effects: &[Effect]) {
        if self.db.is_none() {
            return;
        }
        let rows = effects.iter().filter_map(|effect| match effect {
            Effect::Transition(transition) => Some(HistoryRow::from(transition)),
            _ => None,
        });
        self.keeper.history.extend(rows);
    }

    /// Stores alerts, what became of them, and messages in one transaction: none can be lost without the others.
    pub(super) fn store(&mut self, now: Time, outputs: &[Output]) {
        self.keeper.judged_at = Some(now);
        let changes = self.core.take_changes();
        let Some(db) = self.db.clone() else { return };
        let messages = outputs.iter().filter_map(|output| match output {
            Output::Message(message) => Some(message.clone()),
            _ => None,
        });
        self.keeper.messages.extend(messages);
        self.keeper.gone.extend(changes.gone.iter().cloned());
        let keeper = &self.keeper;
        let waits = !changes.is_empty() || !keeper.messages.is_empty() || !keeper.history.is_empty() || keeper.anew;
        let drift_due = keeper.is_due(keeper.drift_at, now, DRIFT_EVERY);
        let seen_due = !keeper.is_recording && keeper.is_due(keeper.seen_at, now, SEEN_EVERY);
        if !waits && !drift_due && !seen_due {
            return;
        }
        if keeper.retry_at.is_some_and(|at| now < at && at.since(now) <= RETRY_AFTER) {
            self.core.taint();
            self.keeper.bound();
            return;
        }
        let drift = (drift_due || keeper.is_recording || keeper.anew).then(|| self.core.take_drift());
        match self.write(&db, now, &changes, drift.as_ref()) {
            Ok(()) => self.stored(now, drift.is_some()),
            Err(error) => self.not_stored(now, &error),
        }
    }

    fn write(&self, db: &Db, now: Time, changes: &Changes, drift: Option<&Drift>) -> Result<(), outbox::OutboxError> {
        let keeper = &self.keeper;
        let mut connection = db.lock();
        let tx = connection.transaction()?;
        store::save(&tx, changes, &keeper.gone, keeper.anew)?;
        if let Some(drift) = drift {
            let since = now - self.core.longest_window() - DERIVED_KEPT_FOR;
            store::save_drift(&tx, drift, since)?;
        }
        store::set_number(&tx, "seen", now.as_millis())?;
        store::add(&tx, &keeper.history)?;
        if keeper.since_prune + keeper.history.len() as u64 >= PRUNE_EVERY {
            store::prune(&tx, now)?;
        }
        for message in &keeper.messages {
            let channels = self.receivers.as_ref().map(|receivers| receivers.targets(message)).unwrap_or_default();
            outbox::enqueue(&tx, message, &channels)?;
        }
        tx.commit()?;
        Ok(())
    }

    fn stored(&mut self, now: Time, with_drift: bool) {
        let keeper = &mut self.keeper;
        if with_drift {
            keeper.drift_at = Some(now);
        }
        (keeper.seen_at, keeper.retry_at, keeper.anew) = (Some(now), None, false);
        keeper.gone.clear();
        let rows = std::mem::take(&mut keeper.history).len() as u64;
        keeper.since_prune = (keeper.since_prune + rows) % PRUNE_EVERY;
        if keeper.durable.is_err() && !keeper.in_memory {
            tracing::info!("alerts are stored again");
            keeper.durable = Ok(());
        }
        if !std::mem::take(&mut keeper.messages).is_empty()
            && let Some(courier) = &self.courier
        {
            courier.wake();
        }
    }

    /// What was to be stored is not forgotten: all of it counts as changed, and the next write stores it anew.
    fn not_stored(&mut self, now: Time, error: &outbox::OutboxError) {
        let why = error.to_string();
        if self.keeper.durable.is_ok() {
            tracing::error!(why, "alerts cannot be stored; messages wait in memory until they can");
        }
        self.keeper.durable = Err(why);
        self.keeper.anew = true;
        self.keeper.retry_at = Some(now + RETRY_AFTER);
        self.keeper.bound();
        self.core.taint();
    }

    /// What became of alerts, oldest first; nothing where the engine has no storage.
    ///
    /// # Errors
    /// The storage cannot be read.
    pub fn history(&self, page: Page) -> Result<Vec<HistoryRow>, String> {
        let Some(db) = &self.db else { return Ok(Vec::new()) };
        store::history(&db.lock(), page).map_err(|error| format!("the history cannot be read: {error}"))
    }

    pub(super) fn history_dropped_total(&self) -> u64 {
        let dropped = |db: &Db| store::number(&db.lock(), "history_dropped").ok().flatten();
        self.db.as_ref().and_then(dropped).and_then(|dropped| u64::try_from(dropped).ok()).unwrap_or(0)
    }

    /// Stores all that moves, before an orderly end. Of a recorded run it is the picture of the last moment that was
    /// judged, for what was due since was not.
    pub fn close(&mut self, now: Time) {
        let now = if self.keeper.is_recording { self.keeper.judged_at } else { Some(now) };
        let Some(now) = now else { return };
        self.keeper.drift_at = None;
        self.keeper.retry_at = None;
        self.store(now, &[]);
    }
}
