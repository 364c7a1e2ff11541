//! One channel's way: takes what is due, tries, records, waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use watchfire_core::Severity;

use super::progress::{Progress, Signal};
use super::{Event, OnEvent, Outcome};
use crate::clock::{Clock, random_share};
use crate::message::Message;
use crate::outbox::db::Db;
use crate::outbox::{self, Due, Waiting};
use crate::receiver::{Delivery, Receivers};
use crate::verdict::{Verdict, next_try};

/// How long after its first try a delivery is given up (RFC 5321 §4.5.4.1: at least 4-5 days).
pub const GIVEN_UP_AFTER: Duration = Duration::from_secs(5 * 24 * 60 * 60);
/// How long the database is left alone after it failed.
const DB_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest sleep, so that a clock that was put forward is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(30);
/// How many deliveries pass between two clean-ups of the outbox.
const PRUNE_EVERY: u64 = 1_000;

/// One channel's way.
pub(crate) struct Lane {
    pub index: usize,
    pub receiver: String,
    pub channel: String,
    pub receivers: Arc<Receivers>,
    pub db: Db,
    pub now: Clock,
    pub progress: Arc<Progress>,
    pub on_event: OnEvent,
    /// Failed tries in a row, over all messages: a receiver that is down is not asked once per group.
    pub failures: u32,
    /// Until when nothing is tried.
    pub paused_until_ms: Option<i64>,
    /// Deliveries so far.
    pub n_done: u64,
}

enum Step {
    Again,
    Wait(Option<i64>),
}

impl Lane {
    /// Carries messages until it is told to stop. A message under way is carried to its end first.
    pub async fn run(mut self, mut signal: watch::Receiver<Signal>) {
        loop {
            let Signal { generation, stop } = *signal.borrow_and_update();
            if stop {
                return;
            }
            match self.step().await {
                Step::Again => {}
                Step::Wait(until_ms) => {
                    self.progress.idle(self.index, generation, until_ms);
                    if self.wait(until_ms, &mut signal).await.is_err() {
                        return;
                    }
                    self.progress.busy(self.index);
                }
            }
        }
    }

    async fn wait(
        &self,
        until_ms: Option<i64>,
        signal: &mut watch::Receiver<Signal>,
    ) -> Result<(), watch::error::RecvError> {
        let left = until_ms.map_or(SLEEP_MAX, |until_ms| millis(until_ms.saturating_sub((self.now)())));
        match tokio::time::timeout(left.clamp(Duration::from_millis(1), SLEEP_MAX), signal.changed()).await {
            Ok(changed) => changed,
            Err(_) => Ok(()),
        }
    }

    async fn step(&mut self) -> Step {
        let now_ms = (self.now)();
        if let Some(until_ms) = self.paused(now_ms) {
            return Step::Wait(Some(until_ms));
        }
        match self.take(now_ms) {
            Ok(Due::Nothing) => Step::Wait(None),
            Ok(Due::Later(at_ms)) => Step::Wait(Some(at_ms)),
            Ok(Due::Now(waiting)) => {
                self.carry(*waiting).await;
                Step::Again
            }
            Err(error) => {
                tracing::error!(receiver = self.receiver, channel = self.channel, %error, "the outbox cannot be read");
                Step::Wait(Some(now_ms.saturating_add(as_ms(DB_AGAIN_AFTER))))
            }
        }
    }

    /// Until when nothing is tried. A time further ahead than any wait means that the clock was put back.
    fn paused(&mut self, now_ms: i64) -> Option<i64> {
        let longest_ms = as_ms(crate::verdict::RETRY_AFTER_MAX);
        self.paused_until_ms = self.paused_until_ms.filter(|until_ms| (1..=longest_ms).contains(&(until_ms - now_ms)));
        self.paused_until_ms
    }

    /// Takes what is due, and records that it is about to be tried.
    fn take(&self, now_ms: i64) -> rusqlite::Result<Due> {
        let db = self.db.lock();
        let due = outbox::due(&db, &self.receiver, &self.channel, now_ms)?;
        if let Due::Now(waiting) = &due {
            outbox::begin(&db, waiting.id, now_ms)?;
        }
        Ok(due)
    }

    async fn carry(&mut self, waiting: Waiting) {
        let waiting = Arc::new(waiting);
        let verdict = match &waiting.message {
            Ok(_) => self.tell(waiting.clone()).await,
            Err(why) => Verdict::refused(why.clone()),
        };
        let verdict = self.give_up_in_the_end(verdict, &waiting);
        let what = self.settle(&waiting, verdict);
        // Until it is recorded, nothing else is told: trying again would tell it twice.
        while let Err(error) = what.record(&self.db, &waiting, (self.now)()) {
            tracing::error!(receiver = self.receiver, channel = self.channel, %error, "a delivery cannot be recorded");
            tokio::time::sleep(DB_AGAIN_AFTER).await;
        }
        self.report(&waiting, what);
        self.prune_now_and_then();
    }

    /// Tries, in a task of its own: a panic in it costs this message, not the lane.
    async fn tell(&self, waiting: Arc<Waiting>) -> Verdict {
        let (receivers, receiver, channel) = (self.receivers.clone(), self.receiver.clone(), self.channel.clone());
        let telling = tokio::spawn(async move { tell(&receivers, &receiver, &channel, &waiting).await });
        telling.await.unwrap_or_else(|error| Verdict::refused(format!("an error in Watchfire itself: {error}")))
    }

    fn give_up_in_the_end(&self, verdict: Verdict, waiting: &Waiting) -> Verdict {
        let age_ms = waiting.first_ms.map_or(0, |first_ms| (self.now)().saturating_sub(first_ms));
        match verdict {
            Verdict::Retry { why, .. } if age_ms > as_ms(GIVEN_UP_AFTER) => {
                Verdict::refused(format!("given up after 5 days of trying; the last try: {why}"))
            }
            other => other,
        }
    }

    /// What a verdict means for this lane and for the delivery.
    fn settle(&mut self, waiting: &Waiting, verdict: Verdict) -> What {
        let now_ms = (self.now)();
        let what = match verdict {
            Verdict::Delivered => What::Delivered,
            Verdict::Refused { why } => What::Refused(why),
            Verdict::Retry { after, why } => {
                self.failures = self.failures.saturating_add(1);
                self.paused_until_ms = Some(next_try(self.failures, after, now_ms, random_share()));
                let next_ms = next_try(waiting.attempts.saturating_add(1), after, now_ms, random_share());
                return What::Retry { next_ms, pinned: after.is_some(), why };
            }
        };
        // A refusal is an answer too: the receiver is there.
        (self.failures, self.paused_until_ms) = (0, None);
        what
    }

    fn report(&mut self, waiting: &Waiting, what: What) {
        let (receiver, channel) = (&*self.receiver, &*self.channel);
        let outcome = match what {
            What::Delivered => Outcome::Delivered,
            What::Retry { next_ms, why, .. } => {
                tracing::warn!(receiver, channel, %why, "a delivery failed and will be tried again");
                Outcome::Retrying { next_ms, why }
            }
            What::Refused(why) => {
                tracing::error!(receiver, channel, %why, "a delivery failed for good");
                Outcome::Failed { why }
            }
        };
        let key = waiting.message.as_ref().map_or("", |message| &message.key);
        (self.on_event)(&Event { receiver, channel, key, outcome });
    }

    fn prune_now_and_then(&mut self) {
        self.n_done += 1;
        if self.n_done.is_multiple_of(PRUNE_EVERY)
            && let Err(error) = outbox::prune(&mut self.db.lock(), (self.now)())
        {
            tracing::warn!(%error, "old deliveries cannot be cleared away");
        }
    }
}

async fn tell(receivers: &Receivers, receiver: &str, channel: &str, waiting: &Waiting) -> Verdict {
    let (Some(channel), Ok(whole)) = (receivers.channel(receiver, channel), &waiting.message) else {
        return Verdict::refused("the channel is no longer configured");
    };
    let Some(message) = whole.for_channel(channel.send_resolved) else {
        return Verdict::refused("nothing fires in it, and the channel is not told of ends");
    };
    let told = told_of(whole, &message, &waiting.told);
    channel.sender.send(Delivery { message: &message, attempt: waiting.attempts, told: &told }).await
}

/// What was told of the alerts that are left of a message for a channel.
fn told_of(whole: &Message, left: &Message, told: &[Option<Severity>]) -> Vec<Option<Severity>> {
    let all_left = whole.alerts.len() == left.alerts.len();
    let pairs = whole.alerts.iter().zip(told);
    pairs.filter(|(alert, _)| all_left || alert.is_firing()).map(|(_, told)| *told).collect()
}

/// What became of a try.
enum What {
    Delivered,
    Retry { next_ms: i64, pinned: bool, why: String },
    Refused(String),
}

impl What {
    fn record(&self, db: &Db, waiting: &Waiting, now_ms: i64) -> rusqlite::Result<()> {
        let (mut db, id) = (db.lock(), waiting.id);
        match self {
            What::Delivered => outbox::delivered(&mut db, id, waiting.message.as_ref().ok(), now_ms),
            What::Retry { next_ms, pinned, why } => outbox::retry_at(&mut db, id, *next_ms, *pinned, why, now_ms),
            What::Refused(why) => outbox::refused(&mut db, id, why, now_ms),
        }
    }
}

fn as_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
