//! The tables, and how older ones become those of today. Nothing is thrown away on the way.

use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::{number, set_number};

/// The steps from one version of the tables to the next; the first makes version 1.
const STEPS: [&str; 2] = [
    "
CREATE TABLE IF NOT EXISTS engine_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS alerts (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS groups (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS rule_state (key TEXT PRIMARY KEY, version INTEGER NOT NULL, slots BLOB NOT NULL) STRICT;
",
    "
CREATE TABLE engine_words (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE conditions (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE rules (key TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT;
CREATE TABLE rule_state_by_rule (
    rule TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, slots BLOB NOT NULL, PRIMARY KEY (rule, key)
) STRICT;
INSERT INTO rule_state_by_rule SELECT json_extract(key, '$.rule'), key, version, slots FROM rule_state
    WHERE json_valid(key) AND json_extract(key, '$.rule') IS NOT NULL;
DROP TABLE rule_state;
ALTER TABLE rule_state_by_rule RENAME TO rule_state;
CREATE TABLE derived (
    id INTEGER PRIMARY KEY, metric TEXT NOT NULL, labels TEXT NOT NULL, stale_ms INTEGER NOT NULL,
    time INTEGER NOT NULL, value REAL NOT NULL
) STRICT;
CREATE INDEX derived_time ON derived (time);
CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, rule TEXT NOT NULL, template TEXT NOT NULL,
    alert TEXT NOT NULL, fingerprint TEXT NOT NULL, labels TEXT NOT NULL, from_state TEXT NOT NULL,
    from_severity TEXT, to_state TEXT NOT NULL, severity TEXT NOT NULL, value REAL, cause TEXT, note TEXT, reason TEXT
) STRICT;
CREATE INDEX history_time ON history (time);
",
];

/// Brings the tables to today's version, in one transaction.
///
/// # Errors
/// SQLite's, or that they are of a newer version.
pub fn migrate(db: &mut Connection) -> Result<(), String> {
    let said = |error: rusqlite::Error| error.to_string();
    let tx = db.transaction().map_err(said)?;
    let found = version(&tx).map_err(said)?;
    let known = STEPS.len();
    let Some(steps) = STEPS.get(found..) else {
        return Err(format!("its tables are of version {found}, of a newer Watchfire; this one knows up to {known}"));
    };
    steps.iter().try_for_each(|step| tx.execute_batch(step)).map_err(said)?;
    set_number(&tx, "schema", i64::try_from(known).unwrap_or(i64::MAX)).map_err(said)?;
    tx.commit().map_err(said)
}

fn version(tx: &Transaction<'_>) -> rusqlite::Result<usize> {
    let made = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'engine_meta'";
    if tx.query_row(made, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(0);
    }
    Ok(number(tx, "schema")?.and_then(|version| usize::try_from(version).ok()).unwrap_or(0))
}

/// Notes what the storage is for: this host as it lives, or one recording. What is stored of the one would be lies
/// about the other.
///
/// # Errors
/// It holds something else.
pub fn take_for(db: &Connection, recording: Option<&str>) -> Result<(), String> {
    let said = |error: rusqlite::Error| error.to_string();
    let query = "SELECT value FROM engine_words WHERE name = 'recording'";
    let found: Option<String> = db.query_row(query, [], |row| row.get(0)).optional().map_err(said)?;
    let used = number(db, "seen").map_err(said)?.is_some();
    match (recording, found) {
        (None, None) => Ok(()),
        (Some(wanted), Some(found)) if wanted == found => Ok(()),
        (Some(wanted), None) if !used => {
            let note = "INSERT INTO engine_words VALUES ('recording', ?1)";
            db.execute(note, [wanted]).map(drop).map_err(said)
        }
        (_, Some(found)) => Err(format!("it holds the run of the recording {found}; give this run another `storage`")),
        (Some(_), None) => Err("it holds what a host really did; give a recording another `storage`".to_owned()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn tables_of_version_1_keep_what_they_hold() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(STEPS[0]).unwrap();
        set_number(&db, "schema", 1).unwrap();
        let key = r#"{"rule":"t/A","target":{"gpu":"0"}}"#;
        db.execute("INSERT INTO rule_state VALUES (?1, 3, x'0000000000000840')", [key]).unwrap();
        migrate(&mut db).unwrap();
        migrate(&mut db).unwrap();
        let (kept, unreadable) = super::super::load(&db).unwrap();
        assert_eq!((unreadable, kept.states.len()), (0, 1));
        assert_eq!((&*kept.states[0].key.rule, kept.states[0].version, &*kept.states[0].slots), ("t/A", 3, &[3.0][..]));
    }

    #[test]
    fn tables_of_a_newer_version_are_left_alone() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db).unwrap();
        set_number(&db, "schema", 99).unwrap();
        let error = migrate(&mut db).unwrap_err();
        assert_eq!(error, "its tables are of version 99, of a newer Watchfire; this one knows up to 2");
        assert_eq!(number(&db, "schema").unwrap(), Some(99));
    }

    #[test]
    fn a_storage_is_for_one_recording_or_for_the_host() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db).unwrap();
        take_for(&db, Some("a.rec")).unwrap();
        take_for(&db, Some("a.rec")).unwrap();
        assert!(take_for(&db, Some("b.rec")).unwrap_err().contains("a.rec"));
        assert!(take_for(&db, None).unwrap_err().contains("a.rec"));
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db).unwrap();
        take_for(&db, None).unwrap();
        set_number(&db, "seen", 5).unwrap();
        take_for(&db, None).unwrap();
        assert!(take_for(&db, Some("a.rec")).unwrap_err().contains("another `storage`"));
    }
}
