//! The durable outbox: what is to be told, what was told, and what was given up.
//!
//! A message is put in within the transaction that stores the alert state it speaks of, so that neither can be
//! lost without the other. Each channel of its receiver gets its own row, with its own tries.

pub mod db;
mod room;
mod settle;
mod status;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};
use watchfire_core::Severity;

use crate::message::Message;
use crate::verdict::RETRY_AFTER_MAX;

pub use room::{Dropped, QUEUE_HARD_MAX, QUEUE_MAX};
pub use settle::{KEPT_FOR, KEPT_MAX, Started, begin, delivered, prune, refused, retry_at, start};
pub use status::{ChannelTotals, totals};

/// The version of the tables; a newer one is refused, since its messages could not be read.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS outbox_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS outbox_messages (
    id INTEGER PRIMARY KEY,
    receiver TEXT NOT NULL,
    group_key TEXT NOT NULL,
    content_key TEXT NOT NULL,
    nth INTEGER NOT NULL,
    key TEXT NOT NULL,
    is_repeat INTEGER NOT NULL,
    fingerprints BLOB NOT NULL,
    body TEXT NOT NULL,
    checksum BLOB NOT NULL,
    UNIQUE (receiver, content_key, nth)
) STRICT;
CREATE INDEX IF NOT EXISTS outbox_groups ON outbox_messages (receiver, group_key, id);
CREATE TABLE IF NOT EXISTS outbox_deliveries (
    id INTEGER PRIMARY KEY,
    message INTEGER NOT NULL REFERENCES outbox_messages (id),
    receiver TEXT NOT NULL,
    channel TEXT NOT NULL,
    group_key TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    first_ms INTEGER,
    next_ms INTEGER NOT NULL DEFAULT 0,
    pinned INTEGER NOT NULL DEFAULT 0,
    sending INTEGER NOT NULL DEFAULT 0,
    done_ms INTEGER,
    UNIQUE (message, channel)
) STRICT;
CREATE INDEX IF NOT EXISTS outbox_waiting ON outbox_deliveries (receiver, channel, group_key, id) WHERE state = 0;
CREATE INDEX IF NOT EXISTS outbox_done ON outbox_deliveries (done_ms) WHERE state <> 0;
CREATE TABLE IF NOT EXISTS outbox_channels (
    receiver TEXT NOT NULL,
    channel TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    doubtful INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    last_error_ms INTEGER,
    PRIMARY KEY (receiver, channel)
) STRICT;
CREATE TABLE IF NOT EXISTS outbox_told (
    receiver TEXT NOT NULL,
    channel TEXT NOT NULL,
    fingerprint INTEGER NOT NULL,
    severity TEXT NOT NULL,
    told_ms INTEGER NOT NULL,
    PRIMARY KEY (receiver, channel, fingerprint)
) STRICT, WITHOUT ROWID;
";

/// States of a delivery, as stored; 0 is waiting.
const DELIVERED: i64 = 1;
const REFUSED: i64 = 2;
const DROPPED: i64 = 3;

/// The outbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// SQLite's.
    #[error("the outbox failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// Written by a newer build.
    #[error(
        "the outbox has version {found}, this build reads {SCHEMA_VERSION}; start the newer build, or move the database away"
    )]
    Version {
        /// The version found.
        found: i64,
    },
    /// A message cannot be stored.
    #[error("a message for {receiver:?} cannot be stored: {why}")]
    Store {
        /// The message's receiver.
        receiver: String,
        /// Why.
        why: crate::message::StoredError,
    },
}

/// Makes the tables where they are missing.
///
/// # Errors
/// SQLite's, or the tables are of a newer version.
pub fn migrate(db: &Connection) -> Result<(), OutboxError> {
    db.execute_batch(SCHEMA)?;
    let query = "SELECT value FROM outbox_meta WHERE name = 'schema'";
    let found: Option<i64> = db.query_row(query, [], |row| row.get(0)).optional()?;
    match found {
        Some(found) if found > SCHEMA_VERSION => Err(OutboxError::Version { found }),
        _ => {
            db.execute("INSERT OR REPLACE INTO outbox_meta VALUES ('schema', ?1)", [SCHEMA_VERSION])?;
            Ok(())
        }
    }
}

/// What came of putting a message in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enqueued {
    /// Channels that will be told.
    pub added: usize,
    /// Channels that were told, or wait to be told, under the same key.
    pub known: usize,
    /// What had to go for it.
    pub dropped: Dropped,
}

/// Puts a message in for these channels (see [`crate::receiver::Receivers::targets`]), within the caller's
/// transaction.
///
/// A message with the key of the group's latest one is that one, built again after a crash: for a channel that has it,
/// or waits for it, it is not put in again, whatever became of it. A key that is known from further back means that
/// the group has come back to an earlier state (warning, critical, warning again): the message is told under that key
/// with a number behind it.
///
/// Messages of one group are told in the order in which they were put in. A later one does not take the place of
/// an earlier one that is still waiting: a receiver that was down hears of the start, then of the end.
///
/// # Errors
/// SQLite's; the message cannot be stored.
pub fn enqueue(tx: &Transaction<'_>, message: &Message, channels: &[String]) -> Result<Enqueued, OutboxError> {
    let mut enqueued = Enqueued::default();
    if channels.is_empty() {
        return Ok(enqueued);
    }
    let id = store(tx, message)?;
    for channel in channels {
        if add(tx, id, message, channel)? {
            enqueued.added += 1;
            enqueued.dropped += room::make(tx, &message.receiver, channel, message.time_ms)?;
        } else {
            enqueued.known += 1;
        }
    }
    Ok(enqueued)
}

fn add(tx: &Transaction<'_>, id: i64, message: &Message, channel: &str) -> rusqlite::Result<bool> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO outbox_deliveries (message, receiver, channel, group_key) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (message, channel) DO NOTHING",
    )?;
    Ok(insert.execute(params![id, message.receiver, channel, message.group_key])? == 1)
}

/// The row of the message, made unless the group's latest one is the same.
fn store(tx: &Transaction<'_>, message: &Message) -> Result<i64, OutboxError> {
    let latest: Option<(i64, String, i64)> = tx
        .prepare_cached(
            "SELECT id, content_key, nth FROM outbox_messages WHERE receiver = ?1 AND group_key = ?2
             ORDER BY id DESC LIMIT 1",
        )?
        .query_row([&message.receiver, &message.group_key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match latest {
        Some((id, content_key, nth)) if content_key == message.key => restore(tx, id, message, nth)?,
        _ => insert(tx, message)?,
    };
    let query = "SELECT max(id) FROM outbox_messages WHERE receiver = ?1 AND group_key = ?2";
    Ok(tx.prepare_cached(query)?.query_row([&message.receiver, &message.group_key], |row| row.get(0))?)
}

fn insert(tx: &Transaction<'_>, message: &Message) -> Result<(), OutboxError> {
    let known = "SELECT coalesce(max(nth), 0) FROM outbox_messages WHERE receiver = ?1 AND content_key = ?2";
    let known: i64 = tx.prepare_cached(known)?.query_row([&message.receiver, &message.key], |row| row.get(0))?;
    let (key, body, checksum) = body(message, known + 1)?;
    let fingerprints: Vec<u8> = message.alerts.iter().flat_map(|alert| alert.fingerprint.to_le_bytes()).collect();
    let mut insert = tx.prepare_cached(
        "INSERT INTO outbox_messages
         (receiver, group_key, content_key, nth, key, is_repeat, fingerprints, body, checksum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let is_repeat = message.reason == crate::message::Reason::Repeat;
    let (receiver, group_key) = (&message.receiver, &message.group_key);
    let row = params![receiver, group_key, message.key, known + 1, key, is_repeat, fingerprints, body, checksum];
    insert.execute(row)?;
    Ok(())
}

/// Gives a finished message its body back, in case a new channel needs it.
fn restore(tx: &Transaction<'_>, id: i64, message: &Message, nth: i64) -> Result<(), OutboxError> {
    let (_, body, checksum) = body(message, nth)?;
    let sql = "UPDATE outbox_messages SET body = ?2, checksum = ?3 WHERE id = ?1 AND body = ''";
    tx.prepare_cached(sql)?.execute(params![id, body, checksum])?;
    Ok(())
}

/// Key, stored form and checksum of the `nth` message with this content.
fn body(message: &Message, nth: i64) -> Result<(String, String, Vec<u8>), OutboxError> {
    let failed = |why| OutboxError::Store { receiver: message.receiver.clone(), why };
    let key = if nth == 1 { message.key.clone() } else { format!("{}-{nth}", message.key) };
    let body = Message { key: key.clone(), ..message.clone() }.to_stored().map_err(failed)?;
    let checksum = checksum(&message.receiver, &key, &body);
    Ok((key, body, checksum))
}

/// The first 8 bytes of a SHA-256 over what must not change on disk.
fn checksum(receiver: &str, key: &str, body: &str) -> Vec<u8> {
    let mut hash = Sha256::new();
    for text in [receiver, key, body] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize()[..8].to_vec()
}

/// What a channel has to do.
#[derive(Debug)]
pub enum Due {
    /// To be tried now.
    Now(Box<Waiting>),
    /// The earliest that something is to be tried, in milliseconds since the Unix epoch.
    Later(i64),
    /// Nothing waits.
    Nothing,
}

/// A delivery that waits.
#[derive(Debug)]
pub struct Waiting {
    /// Its row.
    pub id: i64,
    /// Tries before.
    pub attempts: u32,
    /// When it was first tried, in milliseconds since the Unix epoch.
    pub first_ms: Option<i64>,
    /// What to tell, or why it cannot be read.
    pub message: Result<Message, String>,
    /// For each alert the severity at which the channel was last told that it fires.
    pub told: Vec<Option<Severity>>,
}

/// What a channel has to do at `now_ms`. Of each group only the oldest message may go; among groups the oldest.
///
/// # Errors
/// SQLite's.
pub fn due(db: &Connection, receiver: &str, channel: &str, now_ms: i64) -> rusqlite::Result<Due> {
    // A bare column beside min() is that of the row with the minimum (sqlite.org/lang_select.html#bareagg).
    let mut select = db.prepare_cached(
        "SELECT id, next_ms FROM (
             SELECT min(id) AS id, next_ms FROM outbox_deliveries
             WHERE state = 0 AND receiver = ?1 AND channel = ?2 GROUP BY group_key
         ) ORDER BY id",
    )?;
    let mut heads = select.query([receiver, channel])?;
    let mut earliest: Option<i64> = None;
    while let Some(head) = heads.next()? {
        let (id, next_ms) = (head.get(0)?, head.get(1)?);
        if is_due(next_ms, now_ms) {
            return Ok(Due::Now(Box::new(waiting(db, id, receiver, channel)?)));
        }
        earliest = Some(earliest.map_or(next_ms, |earliest| earliest.min(next_ms)));
    }
    Ok(earliest.map_or(Due::Nothing, Due::Later))
}

/// A time further ahead than any wait means that the clock was put back: nothing waits for that.
fn is_due(next_ms: i64, now_ms: i64) -> bool {
    let longest_ms = i64::try_from(RETRY_AFTER_MAX.as_millis()).unwrap_or(i64::MAX);
    next_ms <= now_ms || next_ms > now_ms.saturating_add(longest_ms)
}

fn waiting(db: &Connection, id: i64, receiver: &str, channel: &str) -> rusqlite::Result<Waiting> {
    let mut select = db.prepare_cached(
        "SELECT d.attempts, d.first_ms, m.key, m.body, m.checksum FROM outbox_deliveries d
         JOIN outbox_messages m ON m.id = d.message WHERE d.id = ?1",
    )?;
    let (attempts, first_ms, message) = select.query_row([id], |row| {
        let (key, body): (String, String) = (row.get(2)?, row.get(3)?);
        Ok((row.get(0)?, row.get(1)?, read(receiver, &key, &body, &row.get::<_, Vec<u8>>(4)?)))
    })?;
    let told = match &message {
        Ok(message) => told(db, receiver, channel, message)?,
        Err(_) => Vec::new(),
    };
    Ok(Waiting { id, attempts, first_ms, message, told })
}

fn read(receiver: &str, key: &str, body: &str, sum: &[u8]) -> Result<Message, String> {
    if checksum(receiver, key, body) != sum {
        return Err(format!("the stored message {key} is damaged (its checksum differs)"));
    }
    Message::from_stored(body).map_err(|error| error.to_string())
}

fn told(db: &Connection, receiver: &str, channel: &str, message: &Message) -> rusqlite::Result<Vec<Option<Severity>>> {
    let query = "SELECT severity FROM outbox_told WHERE receiver = ?1 AND channel = ?2 AND fingerprint = ?3";
    let mut select = db.prepare_cached(query)?;
    let mut of = |fingerprint: u64| -> rusqlite::Result<Option<Severity>> {
        let row =
            select.query_row(params![receiver, channel, fingerprint.cast_signed()], |row| row.get::<_, String>(0));
        Ok(row.optional()?.and_then(|word| word.parse().ok()))
    };
    message.alerts.iter().map(|alert| of(alert.fingerprint)).collect()
}

#[cfg(test)]
mod tests;
