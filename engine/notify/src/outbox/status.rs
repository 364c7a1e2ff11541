//! Counts per channel. They are kept over restarts, as counters should be.

use rusqlite::{Connection, params};

/// One channel's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelTotals {
    /// The receiver's name.
    pub receiver: String,
    /// The channel's name.
    pub channel: String,
    /// Messages that wait.
    pub queued: u64,
    /// Messages delivered, ever.
    pub delivered: u64,
    /// Messages given up, ever.
    pub failed: u64,
    /// Messages dropped because the queue was full, ever.
    pub dropped: u64,
    /// Messages that may have been delivered twice, because the process ended between the receiver's answer and its
    /// record, ever.
    pub doubtful: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub last_error_ms: Option<i64>,
}

/// The counts of all channels that were ever used.
///
/// # Errors
/// SQLite's.
pub fn totals(db: &Connection) -> rusqlite::Result<Vec<ChannelTotals>> {
    let mut select = db.prepare_cached(
        "SELECT receiver, channel, sum(queued), sum(delivered), sum(failed), sum(dropped), sum(doubtful),
                max(last_error), max(last_error_ms)
         FROM (
             SELECT receiver, channel, 0 AS queued, delivered, failed, dropped, doubtful, last_error, last_error_ms
             FROM outbox_channels
             UNION ALL
             SELECT receiver, channel, count(*), 0, 0, 0, 0, NULL, NULL FROM outbox_deliveries
             WHERE state = 0 GROUP BY receiver, channel
         ) GROUP BY receiver, channel ORDER BY receiver, channel",
    )?;
    let rows = select.query_map([], |row| {
        let n = |column| row.get::<_, i64>(column).map(|n| u64::try_from(n).unwrap_or(0));
        Ok(ChannelTotals {
            receiver: row.get(0)?,
            channel: row.get(1)?,
            queued: n(2)?,
            delivered: n(3)?,
            failed: n(4)?,
            dropped: n(5)?,
            doubtful: n(6)?,
            last_error: row.get(7)?,
            last_error_ms: row.get(8)?,
        })
    })?;
    rows.collect()
}

/// Adds to one of a channel's counts.
pub(super) fn count(
    db: &Connection,
    receiver: &str,
    channel: &str,
    what: &'static str,
    n: usize,
) -> rusqlite::Result<()> {
    if n == 0 {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO outbox_channels (receiver, channel, {what}) VALUES (?1, ?2, ?3)
         ON CONFLICT (receiver, channel) DO UPDATE SET {what} = {what} + excluded.{what}"
    );
    let n = i64::try_from(n).unwrap_or(i64::MAX);
    db.prepare_cached(&sql)?.execute(params![receiver, channel, n]).map(drop)
}

/// Notes what went wrong last with a channel.
pub(super) fn note_error(
    db: &Connection,
    receiver: &str,
    channel: &str,
    why: &str,
    now_ms: i64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO outbox_channels (receiver, channel, last_error, last_error_ms) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (receiver, channel) DO UPDATE SET last_error = ?3, last_error_ms = ?4";
    db.prepare_cached(sql)?.execute(params![receiver, channel, why, now_ms]).map(drop)
}
