//! Keeps each channel's queue bounded without losing the newest state of an alert.

use std::collections::HashSet;
use std::ops::AddAssign;

use rusqlite::{Transaction, params};

use super::DROPPED;

/// How many messages may wait for one channel before reminders, and messages whose every alert is spoken of again
/// later in the queue, are dropped, oldest first.
pub const QUEUE_MAX: usize = 1_000;
/// How many messages may wait for one channel at all. Beyond this the oldest are dropped, whatever they say; it
/// takes this many messages about different alerts to a receiver that is down.
pub const QUEUE_HARD_MAX: usize = 10_000;

/// Messages that were dropped to keep a queue bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Reminders.
    pub repeats: usize,
    /// Messages whose every alert is spoken of again later in the queue.
    pub superseded: usize,
    /// Messages that were the last word on an alert: lost.
    pub lost: usize,
}

impl Dropped {
    fn total(self) -> usize {
        self.repeats + self.superseded + self.lost
    }
}

impl AddAssign for Dropped {
    fn add_assign(&mut self, other: Self) {
        self.repeats += other.repeats;
        self.superseded += other.superseded;
        self.lost += other.lost;
    }
}

/// One waiting message of a channel.
struct Queued {
    id: i64,
    is_repeat: bool,
    fingerprints: Vec<u8>,
}

/// Drops what is over the limits for one channel.
pub(super) fn make(tx: &Transaction<'_>, receiver: &str, channel: &str, now_ms: i64) -> rusqlite::Result<Dropped> {
    let count = "SELECT count(*) FROM outbox_deliveries WHERE state = 0 AND receiver = ?1 AND channel = ?2";
    let waiting: i64 = tx.prepare_cached(count)?.query_row([receiver, channel], |row| row.get(0))?;
    let waiting = usize::try_from(waiting).unwrap_or(0);
    if waiting <= QUEUE_MAX {
        return Ok(Dropped::default());
    }
    let (victims, dropped) = choose(&queue(tx, receiver, channel)?, waiting, QUEUE_MAX, QUEUE_HARD_MAX);
    drop_rows(tx, &victims, now_ms)?;
    count_dropped(tx, receiver, channel, dropped)?;
    if dropped.lost > 0 {
        tracing::error!(
            receiver,
            channel,
            lost = dropped.lost,
            limit = QUEUE_HARD_MAX,
            "the queue is full; the oldest messages are lost"
        );
    }
    Ok(dropped)
}

/// What waits, oldest first, without what is being sent right now.
fn queue(tx: &Transaction<'_>, receiver: &str, channel: &str) -> rusqlite::Result<Vec<Queued>> {
    let mut select = tx.prepare_cached(
        "SELECT d.id, m.is_repeat, m.fingerprints FROM outbox_deliveries d JOIN outbox_messages m ON m.id = d.message
         WHERE d.state = 0 AND d.sending = 0 AND d.receiver = ?1 AND d.channel = ?2 ORDER BY d.id",
    )?;
    let rows = select.query_map([receiver, channel], |row| {
        Ok(Queued { id: row.get(0)?, is_repeat: row.get(1)?, fingerprints: row.get(2)? })
    })?;
    rows.collect()
}

/// The rows to drop so that of `waiting` messages at most `max` are left, or at most `hard_max` where the rest must
/// not be dropped.
fn choose(queue: &[Queued], waiting: usize, max: usize, hard_max: usize) -> (Vec<i64>, Dropped) {
    let over = waiting.saturating_sub(max);
    let repeats: Vec<i64> = queue.iter().filter(|one| one.is_repeat).map(|one| one.id).take(over).collect();
    let mut dropped = Dropped { repeats: repeats.len(), ..Dropped::default() };
    let mut victims = repeats;
    let left: Vec<&Queued> = queue.iter().filter(|one| !one.is_repeat).collect();
    let superseded = superseded(&left);
    let more: Vec<i64> = superseded.into_iter().take(over - dropped.total()).collect();
    dropped.superseded = more.len();
    victims.extend(more);
    let over_hard = (waiting - dropped.total()).saturating_sub(hard_max);
    let gone: HashSet<i64> = victims.iter().copied().collect();
    let lost: Vec<i64> = left.iter().map(|one| one.id).filter(|id| !gone.contains(id)).take(over_hard).collect();
    dropped.lost = lost.len();
    victims.extend(lost);
    (victims, dropped)
}

/// Messages whose every alert is spoken of again later, oldest first.
fn superseded(queue: &[&Queued]) -> Vec<i64> {
    let mut later: HashSet<[u8; 8]> = HashSet::new();
    let mut found = Vec::new();
    for one in queue.iter().rev() {
        let fingerprints = one.fingerprints.as_chunks::<8>().0;
        if fingerprints.iter().all(|fingerprint| later.contains(fingerprint)) {
            found.push(one.id);
        }
        later.extend(fingerprints);
    }
    found.reverse();
    found
}

fn drop_rows(tx: &Transaction<'_>, victims: &[i64], now_ms: i64) -> rusqlite::Result<()> {
    let mut update = tx.prepare_cached("UPDATE outbox_deliveries SET state = ?2, done_ms = ?3 WHERE id = ?1")?;
    victims.iter().try_for_each(|id| update.execute(params![id, DROPPED, now_ms]).map(drop))
}

fn count_dropped(tx: &Transaction<'_>, receiver: &str, channel: &str, dropped: Dropped) -> rusqlite::Result<()> {
    super::status::count(tx, receiver, channel, "dropped", dropped.total())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(id: i64, is_repeat: bool, alerts: &[u64]) -> Queued {
        Queued { id, is_repeat, fingerprints: alerts.iter().flat_map(|one| one.to_le_bytes()).collect() }
    }

    #[test]
    fn reminders_go_first_then_what_is_said_again_later_then_the_oldest() {
        let queue = [
            queued(1, false, &[1]),
            queued(2, true, &[1]),
            queued(3, false, &[1, 2]),
            queued(4, false, &[1, 3]),
            queued(5, true, &[1, 3]),
            queued(6, false, &[4]),
        ];
        let chosen = |max, hard_max| choose(&queue, queue.len(), max, hard_max).0;
        assert_eq!(chosen(6, 9), [] as [i64; 0]);
        assert_eq!(chosen(5, 9), [2]);
        assert_eq!(chosen(4, 9), [2, 5]);
        assert_eq!(chosen(3, 9), [2, 5, 1], "alert 1 is spoken of again in 4");
        assert_eq!(chosen(2, 9), [2, 5, 1], "2, 3 and 4 have their last word here");
        let (victims, dropped) = choose(&queue, queue.len(), 1, 2);
        assert_eq!(victims, [2, 5, 1, 3]);
        assert_eq!(dropped, Dropped { repeats: 2, superseded: 1, lost: 1 });
    }

    #[test]
    fn a_reminder_is_no_reason_to_drop_the_change_it_reminds_of() {
        let queue = [queued(1, false, &[1]), queued(2, true, &[1]), queued(3, true, &[1])];
        assert_eq!(choose(&queue, 3, 2, 9).0, [2]);
        assert_eq!(choose(&queue, 3, 0, 9).0, [2, 3]);
    }

    #[test]
    fn of_start_end_start_the_last_stays() {
        let queue = [queued(1, false, &[1]), queued(2, false, &[1]), queued(3, false, &[1])];
        assert_eq!(choose(&queue, 3, 1, 9).0, [1, 2]);
    }
}
