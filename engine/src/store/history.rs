//! What became of alerts: one row for each transition, written in the transaction that stores the alert itself.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, Row, Transaction, params};
use serde::Serialize;
use watchfire_core::{Severity, Time, Transition};

use super::stored::{store_labels, to_text};
use super::{number, set_number};
use crate::clock::rfc3339;

/// How long a transition is kept, in engine time.
pub const HISTORY_KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 3600);
/// The most transitions that are kept; of more, the oldest go and are counted.
pub const HISTORY_ROWS_MAX: i64 = 200_000;
/// The most transitions of one answer.
pub const HISTORY_ANSWER_MAX: usize = 10_000;

/// One transition of one alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryRow {
    /// Its number: later transitions have larger ones. 0 where it is not stored yet.
    pub id: i64,
    /// When, in RFC 3339.
    pub time: String,
    /// `template/alert`.
    pub rule: String,
    /// The template's name.
    pub template: String,
    /// The alert's name.
    pub alert: String,
    /// Which alert, as in messages: 16 hexadecimal digits.
    pub fingerprint: String,
    /// The alert's labels.
    pub labels: BTreeMap<String, String>,
    /// What it was.
    pub from: String,
    /// How bad it was, where it was anything.
    pub from_severity: Option<String>,
    /// What it became.
    pub to: String,
    /// How bad.
    pub severity: String,
    /// The value that the rule showed; none where it has shown none.
    pub value: Option<f64>,
    /// The likely cause.
    pub cause: Option<String>,
    /// The evidence.
    pub note: Option<String>,
    /// Why it ended, where that is not "the condition cleared".
    pub reason: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    #[serde(skip)]
    pub time_ms: i64,
}

impl From<&Transition> for HistoryRow {
    fn from(transition: &Transition) -> Self {
        let (view, (from, from_severity)) = (&transition.alert, transition.from);
        HistoryRow {
            id: 0,
            time: rfc3339(transition.time),
            rule: view.rule.to_string(),
            template: view.template.to_string(),
            alert: view.alert.to_string(),
            fingerprint: format!("{:016x}", view.fingerprint),
            labels: store_labels(&view.labels),
            from: from.to_string(),
            from_severity: from_severity.as_ref().map(Severity::to_string),
            to: view.state.to_string(),
            severity: view.severity.to_string(),
            value: view.value.is_finite().then_some(view.value),
            cause: view.cause.map(|cause| cause.to_string()),
            note: view.note.as_deref().map(str::to_owned),
            reason: view.reason.as_deref().map(str::to_owned),
            time_ms: transition.time.as_millis(),
        }
    }
}

/// Which transitions are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Those of this moment and later.
    pub since: Option<Time>,
    /// Those after the one with this number.
    pub after: i64,
    /// At most so many; [`HISTORY_ANSWER_MAX`] where it is more.
    pub limit: usize,
}

/// Adds transitions, within the caller's transaction.
///
/// # Errors
/// SQLite's.
pub fn add<'a>(tx: &Transaction<'_>, rows: impl IntoIterator<Item = &'a HistoryRow>) -> rusqlite::Result<()> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO history (time, rule, template, alert, fingerprint, labels, from_state, from_severity, to_state,
                              severity, value, cause, note, reason)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    for row in rows {
        insert.execute(params![
            row.time_ms,
            row.rule,
            row.template,
            row.alert,
            row.fingerprint,
            to_text(&row.labels),
            row.from,
            row.from_severity,
            row.to,
            row.severity,
            row.value,
            row.cause,
            row.note,
            row.reason,
        ])?;
    }
    Ok(())
}

/// Forgets transitions that are older than [`HISTORY_KEPT_FOR`] at `now`, or beyond [`HISTORY_ROWS_MAX`]. What was
/// forgotten, ever, is counted under `history_dropped`.
///
/// # Errors
/// SQLite's.
pub fn prune(tx: &Transaction<'_>, now: Time) -> rusqlite::Result<()> {
    prune_to(tx, now, HISTORY_ROWS_MAX)
}

fn prune_to(tx: &Transaction<'_>, now: Time, rows_max: i64) -> rusqlite::Result<()> {
    let oldest = (now - HISTORY_KEPT_FOR).as_millis();
    let by_age = tx.execute("DELETE FROM history WHERE time < ?1", [oldest])?;
    let by_number = tx.execute(
        "DELETE FROM history WHERE id <= coalesce((SELECT id FROM history ORDER BY id DESC LIMIT 1 OFFSET ?1), -1)",
        [rows_max],
    )?;
    let dropped = number(tx, "history_dropped")?.unwrap_or(0);
    set_number(tx, "history_dropped", dropped + i64::try_from(by_age + by_number).unwrap_or(0))
}

/// The transitions of a page, oldest first.
///
/// # Errors
/// SQLite's.
pub fn read(db: &Connection, page: Page) -> rusqlite::Result<Vec<HistoryRow>> {
    let since = page.since.map_or(i64::MIN, Time::as_millis);
    let limit = i64::try_from(page.limit.min(HISTORY_ANSWER_MAX)).unwrap_or(0);
    let mut select = db.prepare_cached(
        "SELECT id, time, rule, template, alert, fingerprint, labels, from_state, from_severity, to_state, severity,
                value, cause, note, reason
         FROM history WHERE time >= ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    )?;
    let rows = select.query_map(params![since, page.after, limit], row)?;
    rows.collect()
}

fn row(row: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    let time_ms = row.get(1)?;
    Ok(HistoryRow {
        id: row.get(0)?,
        time: rfc3339(Time::from_millis(time_ms)),
        rule: row.get(2)?,
        template: row.get(3)?,
        alert: row.get(4)?,
        fingerprint: row.get(5)?,
        labels: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
        from: row.get(7)?,
        from_severity: row.get(8)?,
        to: row.get(9)?,
        severity: row.get(10)?,
        value: row.get(11)?,
        cause: row.get(12)?,
        note: row.get(13)?,
        reason: row.get(14)?,
        time_ms,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn one(second: i64) -> HistoryRow {
        HistoryRow {
            id: 0,
            time: rfc3339(Time::from_millis(second * 1000)),
            rule: "t/A".into(),
            template: "t".into(),
            alert: "A".into(),
            fingerprint: "00ff".into(),
            labels: BTreeMap::from([("gpu".to_owned(), "0".to_owned())]),
            from: "pending".into(),
            from_severity: Some("warning".into()),
            to: "firing".into(),
            severity: "warning".into(),
            value: Some(0.1 + 0.2),
            cause: None,
            note: Some("why".into()),
            reason: None,
            time_ms: second * 1000,
        }
    }

    #[test]
    fn rows_come_back_as_they_were_and_old_ones_go_and_are_counted() {
        let mut db = Connection::open_in_memory().unwrap();
        super::super::migrate(&mut db).unwrap();
        let day = 24 * 3600;
        let rows: Vec<HistoryRow> = [0, 100 * day, 101 * day, 102 * day].into_iter().map(one).collect();
        let tx = db.transaction().unwrap();
        add(&tx, &rows).unwrap();
        let page = Page { limit: usize::MAX, ..Page::default() };
        let numbered = |rows: &[HistoryRow], from: i64| -> Vec<HistoryRow> {
            (from..).zip(rows).map(|(id, row)| HistoryRow { id, ..row.clone() }).collect()
        };
        assert_eq!(read(&tx, page).unwrap(), numbered(&rows, 1));
        let since = Page { since: Some(Time::from_millis(101 * day * 1000)), after: 3, limit: 1 };
        assert_eq!(read(&tx, since).unwrap(), numbered(&rows[3..], 4));
        prune_to(&tx, Time::from_millis(102 * day * 1000), 2).unwrap();
        assert_eq!(read(&tx, page).unwrap(), numbered(&rows[2..], 3), "one was too old, one too many");
        assert_eq!(number(&tx, "history_dropped").unwrap(), Some(2));
    }
}
