//! What becomes of a delivery.

use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

use super::{DELIVERED, REFUSED, status};
use crate::message::Message;

/// How long a finished delivery is kept, so that its key is known again after a crash.
pub const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many finished deliveries are kept.
pub const KEPT_MAX: i64 = 100_000;

/// What was found when a process took over the outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Deliveries that wait.
    pub waiting: usize,
    /// Deliveries that were being sent when the last process ended: the receiver may get them twice.
    pub doubtful: usize,
    /// Deliveries given up because their channel is no longer configured.
    pub orphaned: usize,
}

/// Takes over the outbox: notes what was being sent, gives up what belongs to no channel of `channels` (receiver,
/// channel), and makes due at once what waited only for our own back-off, not what waits because the receiver or its
/// protocol asked for it.
///
/// # Errors
/// SQLite's.
pub fn start(db: &mut Connection, channels: &[(&str, &str)], now_ms: i64) -> rusqlite::Result<Started> {
    let tx = db.transaction()?;
    let mut started = Started::default();
    for (receiver, channel, waiting, sending) in waiting_channels(&tx)? {
        if channels.contains(&(&receiver, &channel)) {
            started.waiting += waiting;
        } else {
            started.orphaned += waiting;
            give_up(&tx, &receiver, &channel, waiting, now_ms)?;
        }
        started.doubtful += sending;
        status::count(&tx, &receiver, &channel, "doubtful", sending)?;
    }
    tx.execute("UPDATE outbox_deliveries SET sending = 0 WHERE state = 0 AND sending = 1", [])?;
    tx.execute("UPDATE outbox_deliveries SET next_ms = 0 WHERE state = 0 AND pinned = 0", [])?;
    tx.commit()?;
    Ok(started)
}

fn waiting_channels(tx: &Transaction<'_>) -> rusqlite::Result<Vec<(String, String, usize, usize)>> {
    let mut select = tx.prepare(
        "SELECT receiver, channel, count(*), sum(sending) FROM outbox_deliveries WHERE state = 0 GROUP BY 1, 2",
    )?;
    let rows = select.query_map([], |row| {
        let n = |column| row.get::<_, i64>(column).map(|n| usize::try_from(n).unwrap_or(0));
        Ok((row.get(0)?, row.get(1)?, n(2)?, n(3)?))
    })?;
    rows.collect()
}

fn give_up(tx: &Transaction<'_>, receiver: &str, channel: &str, n: usize, now_ms: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE outbox_deliveries SET state = ?3, done_ms = ?4, sending = 0
         WHERE state = 0 AND receiver = ?1 AND channel = ?2",
        params![receiver, channel, REFUSED, now_ms],
    )?;
    status::count(tx, receiver, channel, "failed", n)?;
    status::note_error(tx, receiver, channel, "the channel is no longer configured", now_ms)
}

/// Notes that a delivery is about to be tried. Told before the try, so that one cut short by a crash is known.
///
/// # Errors
/// SQLite's.
pub fn begin(db: &Connection, id: i64, now_ms: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE outbox_deliveries SET attempts = attempts + 1, sending = 1, first_ms = coalesce(first_ms, ?2)
               WHERE id = ?1 AND state = 0";
    db.prepare_cached(sql)?.execute([id, now_ms]).map(drop)
}

/// Notes that a channel has a message, and at what severities its alerts fire.
///
/// # Errors
/// SQLite's.
pub fn delivered(db: &mut Connection, id: i64, message: Option<&Message>, now_ms: i64) -> rusqlite::Result<()> {
    let tx = db.transaction()?;
    let (receiver, channel) = finish(&tx, id, DELIVERED, now_ms)?;
    status::count(&tx, &receiver, &channel, "delivered", 1)?;
    if let Some(message) = message {
        remember_told(&tx, &receiver, &channel, message, now_ms)?;
    }
    tx.commit()
}

/// Notes that a delivery is given up.
///
/// # Errors
/// SQLite's.
pub fn refused(db: &mut Connection, id: i64, why: &str, now_ms: i64) -> rusqlite::Result<()> {
    let tx = db.transaction()?;
    let (receiver, channel) = finish(&tx, id, REFUSED, now_ms)?;
    status::count(&tx, &receiver, &channel, "failed", 1)?;
    status::note_error(&tx, &receiver, &channel, why, now_ms)?;
    tx.commit()
}

/// Notes when a delivery is to be tried again. `pinned`: the receiver or its protocol asked for the wait, so a
/// restart does not cut it short.
///
/// # Errors
/// SQLite's.
pub fn retry_at(
    db: &mut Connection,
    id: i64,
    next_ms: i64,
    pinned: bool,
    why: &str,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let tx = db.transaction()?;
    let (receiver, channel): (String, String) = tx
        .prepare_cached(
            "UPDATE outbox_deliveries SET next_ms = ?2, pinned = ?3, sending = 0 WHERE id = ?1
             RETURNING receiver, channel",
        )?
        .query_row(params![id, next_ms, pinned], |row| Ok((row.get(0)?, row.get(1)?)))?;
    status::note_error(&tx, &receiver, &channel, why, now_ms)?;
    tx.commit()
}

/// Ends a delivery, and forgets the message's body once no channel waits for it.
fn finish(tx: &Transaction<'_>, id: i64, state: i64, now_ms: i64) -> rusqlite::Result<(String, String)> {
    let (message, receiver, channel): (i64, _, _) = tx
        .prepare_cached(
            "UPDATE outbox_deliveries SET state = ?2, done_ms = ?3, sending = 0 WHERE id = ?1
             RETURNING message, receiver, channel",
        )?
        .query_row(params![id, state, now_ms], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    tx.prepare_cached(
        "UPDATE outbox_messages SET body = '' WHERE id = ?1
         AND NOT EXISTS (SELECT 1 FROM outbox_deliveries WHERE message = ?1 AND state = 0)",
    )?
    .execute([message])?;
    Ok((receiver, channel))
}

fn remember_told(
    tx: &Transaction<'_>,
    receiver: &str,
    channel: &str,
    message: &Message,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let mut tell = tx.prepare_cached("INSERT OR REPLACE INTO outbox_told VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut forget =
        tx.prepare_cached("DELETE FROM outbox_told WHERE receiver = ?1 AND channel = ?2 AND fingerprint = ?3")?;
    for alert in &message.alerts {
        let fingerprint = alert.fingerprint.cast_signed();
        if alert.is_firing() {
            tell.execute(params![receiver, channel, fingerprint, alert.severity.as_str(), now_ms])?;
        } else {
            forget.execute(params![receiver, channel, fingerprint])?;
        }
    }
    Ok(())
}

/// Forgets finished deliveries that are older than [`KEPT_FOR`] or beyond [`KEPT_MAX`]; answers how many.
///
/// # Errors
/// SQLite's.
pub fn prune(db: &mut Connection, now_ms: i64) -> rusqlite::Result<usize> {
    prune_to(db, now_ms, KEPT_MAX)
}

pub(super) fn prune_to(db: &mut Connection, now_ms: i64, kept_max: i64) -> rusqlite::Result<usize> {
    let oldest_ms = now_ms.saturating_sub(i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX));
    let tx = db.transaction()?;
    let by_age = tx.execute("DELETE FROM outbox_deliveries WHERE state <> 0 AND done_ms < ?1", [oldest_ms])?;
    let by_number = tx.execute(
        "DELETE FROM outbox_deliveries WHERE state <> 0 AND id <= coalesce(
             (SELECT id FROM outbox_deliveries WHERE state <> 0 ORDER BY id DESC LIMIT 1 OFFSET ?1), -1)",
        [kept_max],
    )?;
    if by_age + by_number > 0 {
        tx.execute(
            "DELETE FROM outbox_messages
             WHERE NOT EXISTS (SELECT 1 FROM outbox_deliveries WHERE message = outbox_messages.id)",
            [],
        )?;
    }
    tx.execute("DELETE FROM outbox_told WHERE told_ms < ?1", [oldest_ms])?;
    tx.commit()?;
    Ok(by_age + by_number)
}
