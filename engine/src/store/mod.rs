//! What survives a restart: alerts, groups and rule state, in the database that also holds the outbox, so that
//! an alert and the messages about it are stored in one transaction.

mod stored;

use rusqlite::{Connection, Transaction, params};
use watchfire_core::engine::Changes;
use watchfire_core::group::GroupRecord;
use watchfire_core::record::{AlertKey, AlertRecord, StateRecord};

use stored::{StoredAlert, StoredGroup, StoredKey};

/// The version of the tables below; another version starts empty and is said aloud.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS engine_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS alerts (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS groups (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS rule_state (key TEXT PRIMARY KEY, version INTEGER NOT NULL, slots BLOB NOT NULL) STRICT;
";

/// What was kept over a restart.
#[derive(Debug, Default)]
pub struct Kept {
    /// Alerts that were pending or firing.
    pub alerts: Vec<(AlertKey, AlertRecord)>,
    /// What receivers had been told.
    pub groups: Vec<GroupRecord>,
    /// The numbers that rules keep.
    pub states: Vec<StateRecord>,
    /// Rows that could not be read; they were left out.
    pub unreadable: usize,
}

/// Makes the tables where they are missing.
///
/// # Errors
/// SQLite's.
pub fn migrate(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(SCHEMA)?;
    let found: Option<i64> = db
        .query_row("SELECT value FROM engine_meta WHERE name = 'schema'", [], |row| row.get(0))
        .map(Some)
        .or_else(none_if_empty)?;
    if found.is_some_and(|version| version != SCHEMA_VERSION) {
        tracing::warn!(found, expected = SCHEMA_VERSION, "stored alerts are of another version; starting without them");
        db.execute_batch("DELETE FROM alerts; DELETE FROM groups; DELETE FROM rule_state;")?;
    }
    db.execute("INSERT OR REPLACE INTO engine_meta VALUES ('schema', ?1)", [SCHEMA_VERSION])?;
    Ok(())
}

fn none_if_empty<T>(error: rusqlite::Error) -> rusqlite::Result<Option<T>> {
    if error == rusqlite::Error::QueryReturnedNoRows { Ok(None) } else { Err(error) }
}

/// Stores what changed, within the caller's transaction.
///
/// # Errors
/// SQLite's.
pub fn save(tx: &Transaction<'_>, changes: &Changes) -> rusqlite::Result<()> {
    for (key, record) in &changes.alerts {
        let key = StoredKey::from(key).text();
        put(tx, "alerts", &key, record.as_ref().map(|record| StoredAlert::from(record).text()))?;
    }
    for (key, record) in &changes.groups {
        put(tx, "groups", key, record.as_ref().map(|record| StoredGroup::from(record).text()))?;
    }
    Ok(())
}

fn put(tx: &Transaction<'_>, table: &str, key: &str, record: Option<String>) -> rusqlite::Result<()> {
    match record {
        Some(record) => {
            tx.prepare_cached(&format!("INSERT OR REPLACE INTO {table} VALUES (?1, ?2)"))?.execute([key, &record])
        }
        None => tx.prepare_cached(&format!("DELETE FROM {table} WHERE key = ?1"))?.execute([key]),
    }
    .map(drop)
}

/// Stores the numbers that rules keep, in place of what was stored of them.
///
/// # Errors
/// SQLite's.
pub fn save_states(tx: &Transaction<'_>, states: impl Iterator<Item = StateRecord>) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM rule_state", [])?;
    let mut insert = tx.prepare_cached("INSERT OR REPLACE INTO rule_state VALUES (?1, ?2, ?3)")?;
    for state in states {
        let slots: Vec<u8> = state.slots.iter().flat_map(|slot| slot.to_le_bytes()).collect();
        insert.execute(params![StoredKey::from(&state.key).text(), state.version, slots])?;
    }
    Ok(())
}

/// Reads what was kept. A row that cannot be read is left out and counted, never a reason not to start.
///
/// # Errors
/// SQLite's.
pub fn load(db: &Connection) -> rusqlite::Result<Kept> {
    let mut kept = Kept::default();
    for (key, record) in rows(db, "alerts")? {
        match (StoredKey::read(&key), StoredAlert::read(&record)) {
            (Some(key), Some(record)) => kept.alerts.push((key, record)),
            _ => kept.unreadable += 1,
        }
    }
    for (_, record) in rows(db, "groups")? {
        match StoredGroup::read(&record) {
            Some(group) => kept.groups.push(group),
            None => kept.unreadable += 1,
        }
    }
    let (states, unreadable) = load_states(db)?;
    kept.states = states;
    kept.unreadable += unreadable;
    Ok(kept)
}

fn rows(db: &Connection, table: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut select = db.prepare(&format!("SELECT key, record FROM {table} ORDER BY key"))?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn load_states(db: &Connection) -> rusqlite::Result<(Vec<StateRecord>, usize)> {
    let mut select = db.prepare("SELECT key, version, slots FROM rule_state ORDER BY key")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))?;
    let mut states = (Vec::new(), 0);
    for row in rows {
        let (key, version, slots) = row?;
        let numbers = slots.chunks_exact(8).filter_map(|bytes| Some(f64::from_le_bytes(bytes.try_into().ok()?)));
        match StoredKey::read(&key) {
            Some(key) => states.0.push(StateRecord { key, version, slots: numbers.collect() }),
            None => states.1 += 1,
        }
    }
    Ok(states)
}
