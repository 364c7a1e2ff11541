//! What survives a restart: alerts, groups and rule state, in the database that also holds the outbox, so that
//! an alert and the messages about it are stored in one transaction.

mod history;
mod schema;
mod stored;

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use watchfire_core::record::{AlertKey, Changes, DerivedRecord, Drift, Kept, RuleRecord, StateRecord};
use watchfire_core::{Labels, Series, Time};

pub use history::{
    HISTORY_ANSWER_MAX, HISTORY_KEPT_FOR, HISTORY_ROWS_MAX, HistoryRow, Page, add, prune, read as history,
};
pub use schema::{migrate, take_for};
use stored::{StoredAlert, StoredGroup, StoredKey, StoredRule, StoredView, store_labels, to_text};

/// The number kept under a name.
///
/// # Errors
/// SQLite's.
pub fn number(db: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut select = db.prepare_cached("SELECT value FROM engine_meta WHERE name = ?1")?;
    select.query_row([name], |row| row.get(0)).optional()
}

/// Keeps a number under a name.
///
/// # Errors
/// SQLite's.
pub fn set_number(db: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT OR REPLACE INTO engine_meta VALUES (?1, ?2)")?.execute(params![name, value]).map(drop)
}

/// The last moment that is known to have been judged.
///
/// # Errors
/// SQLite's.
pub fn seen(db: &Connection) -> rusqlite::Result<Option<Time>> {
    Ok(number(db, "seen")?.map(Time::from_millis))
}

/// Stores what changed, within the caller's transaction. `anew`: in place of all that was stored of alerts, groups and
/// conditions, because an earlier change could not be stored.
///
/// # Errors
/// SQLite's.
pub fn save(tx: &Transaction<'_>, changes: &Changes, gone: &BTreeSet<Arc<str>>, anew: bool) -> rusqlite::Result<()> {
    if anew {
        tx.execute_batch("DELETE FROM alerts; DELETE FROM groups; DELETE FROM conditions;")?;
    }
    for rule in gone {
        tx.execute("DELETE FROM rule_state WHERE rule = ?1", [&**rule])?;
        tx.execute("DELETE FROM rules WHERE key = ?1", [&**rule])?;
    }
    for (key, record) in &changes.alerts {
        let key = StoredKey::from(key).text();
        put(tx, "alerts", &key, record.as_ref().map(|record| StoredAlert::from(record).text()))?;
    }
    for (key, record) in &changes.groups {
        put(tx, "groups", key, record.as_ref().map(|record| StoredGroup::from(record).text()))?;
    }
    for (fingerprint, view) in &changes.conditions {
        let view = view.as_ref().map(|view| to_text(&StoredView::from(view)));
        put(tx, "conditions", &format!("{fingerprint:016x}"), view)?;
    }
    changes.rules.iter().try_for_each(|rule| save_rule(tx, rule))
}

fn save_rule(tx: &Transaction<'_>, rule: &RuleRecord) -> rusqlite::Result<()> {
    put(tx, "rules", &rule.id, Some(to_text(&StoredRule::from(rule))))
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

/// Stores what moves with each tick. The numbers of rules that are not loaded stay as they are.
///
/// # Errors
/// SQLite's.
pub fn save_drift(tx: &Transaction<'_>, drift: &Drift, derived_since: Time) -> rusqlite::Result<()> {
    for (key, record) in &drift.alerts {
        put(tx, "alerts", &StoredKey::from(key).text(), Some(StoredAlert::from(record).text()))?;
    }
    drift.rules.iter().try_for_each(|rule| save_rule(tx, rule))?;
    for (rule, states) in &drift.states {
        save_states(tx, rule, states)?;
    }
    if drift.derived.is_empty() {
        return Ok(());
    }
    drift.derived.iter().try_for_each(|value| save_derived(tx, value))?;
    tx.prepare_cached("DELETE FROM derived WHERE time < ?1")?.execute([derived_since.as_millis()]).map(drop)
}

fn save_states(tx: &Transaction<'_>, rule: &str, states: &[StateRecord]) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM rule_state WHERE rule = ?1")?.execute([rule])?;
    let mut insert = tx.prepare_cached("INSERT OR REPLACE INTO rule_state VALUES (?1, ?2, ?3, ?4)")?;
    for state in states {
        let slots: Vec<u8> = state.slots.iter().flat_map(|slot| slot.to_le_bytes()).collect();
        insert.execute(params![rule, StoredKey::from(&state.key).text(), state.version, slots])?;
    }
    Ok(())
}

fn save_derived(tx: &Transaction<'_>, value: &DerivedRecord) -> rusqlite::Result<()> {
    let series = &value.series;
    let labels = to_text(&store_labels(&series.labels));
    let stale_ms = i64::try_from(series.stale_after.as_millis()).unwrap_or(i64::MAX);
    tx.prepare_cached("INSERT INTO derived (metric, labels, stale_ms, time, value) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![&*series.metric, labels, stale_ms, value.time.as_millis(), value.value])
        .map(drop)
}

/// Reads what was kept, and how many rows could not be read. They are left out, never a reason not to start.
///
/// # Errors
/// SQLite's.
pub fn load(db: &Connection) -> rusqlite::Result<(Kept, usize)> {
    let mut kept = Kept { seen: seen(db)?, ..Kept::default() };
    let mut unreadable = 0;
    for (key, record) in rows(db, "alerts")? {
        let row = StoredKey::read(&key).zip(StoredAlert::read(&record));
        unreadable += keep(&mut kept.alerts, row);
    }
    for (_, record) in rows(db, "groups")? {
        unreadable += keep(&mut kept.groups, StoredGroup::read(&record));
    }
    for (_, record) in rows(db, "conditions")? {
        unreadable += keep(&mut kept.conditions, StoredView::read(&record));
    }
    for (id, record) in rows(db, "rules")? {
        unreadable += keep(&mut kept.rules, StoredRule::read(&id, &record));
    }
    unreadable += load_states(db, &mut kept.states)?;
    unreadable += load_derived(db, &mut kept.derived)?;
    Ok((kept, unreadable))
}

/// Keeps a row; 1 where it could not be read.
fn keep<T>(to: &mut Vec<T>, row: Option<T>) -> usize {
    let unreadable = usize::from(row.is_none());
    to.extend(row);
    unreadable
}

fn rows(db: &Connection, table: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut select = db.prepare(&format!("SELECT key, record FROM {table} ORDER BY key"))?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn load_states(db: &Connection, states: &mut Vec<StateRecord>) -> rusqlite::Result<usize> {
    let mut select = db.prepare("SELECT key, version, slots FROM rule_state ORDER BY rule, key")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))?;
    let mut unreadable = 0;
    for row in rows {
        let (key, version, slots) = row?;
        let slots = slots.chunks_exact(8).filter_map(|bytes| Some(f64::from_le_bytes(bytes.try_into().ok()?)));
        let state = |key: AlertKey| StateRecord { key, version, slots: slots.collect() };
        unreadable += keep(states, StoredKey::read(&key).map(state));
    }
    Ok(unreadable)
}

fn load_derived(db: &Connection, derived: &mut Vec<DerivedRecord>) -> rusqlite::Result<usize> {
    let mut select = db.prepare("SELECT metric, labels, stale_ms, time, value FROM derived ORDER BY id")?;
    let rows = select.query_map([], |row| {
        let (metric, labels): (String, String) = (row.get(0)?, row.get(1)?);
        Ok((metric, labels, row.get::<_, i64>(2)?, row.get(3)?, row.get(4)?))
    })?;
    let mut unreadable = 0;
    for row in rows {
        let (metric, labels, stale_ms, time, value) = row?;
        let labels: Option<std::collections::BTreeMap<String, String>> = serde_json::from_str(&labels).ok();
        let stale_after = std::time::Duration::from_millis(u64::try_from(stale_ms).unwrap_or(0));
        let series = |labels| Series { metric: metric.into(), labels: Labels::new(labels), stale_after };
        let record = |labels| DerivedRecord { series: Arc::new(series(labels)), time: Time::from_millis(time), value };
        unreadable += keep(derived, labels.map(record));
    }
    Ok(unreadable)
}
