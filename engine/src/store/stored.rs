//! The stored form of the core's plain values: JSON, so that an operator can read it with `sqlite3`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watchfire_core::alert::Life;
use watchfire_core::record::{AlertKey, AlertRecord};
use watchfire_core::{Labels, PerSeverity, Severity, Time};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredKey {
    rule: String,
    target: BTreeMap<String, String>,
}

impl From<&AlertKey> for StoredKey {
    fn from(key: &AlertKey) -> Self {
        StoredKey { rule: key.rule.to_string(), target: store_labels(&key.target) }
    }
}

impl StoredKey {
    pub(super) fn text(&self) -> String {
        to_text(self)
    }

    pub(super) fn read(text: &str) -> Option<AlertKey> {
        let stored: StoredKey = serde_json::from_str(text).ok()?;
        Some(AlertKey { rule: stored.rule.into(), target: Labels::new(stored.target) })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredAlert {
    labels: BTreeMap<String, String>,
    raised_since: [Option<i64>; 4],
    lowered_since: [Option<i64>; 4],
    firing: Option<String>,
    missing_since: Option<i64>,
    active_at: i64,
    starts_at: i64,
    severity: String,
    /// None where the rule has shown no value yet: JSON has no NaN.
    value: Option<f64>,
    cause: Option<String>,
    note: Option<String>,
}

impl From<&AlertRecord> for StoredAlert {
    fn from(record: &AlertRecord) -> Self {
        StoredAlert {
            labels: store_labels(&record.labels),
            raised_since: store_clocks(&record.life.raised_since),
            lowered_since: store_clocks(&record.life.lowered_since),
            firing: record.life.firing.map(|severity| severity.to_string()),
            missing_since: record.life.missing_since.map(Time::as_millis),
            active_at: record.active_at.as_millis(),
            starts_at: record.starts_at.as_millis(),
            severity: record.severity.to_string(),
            value: record.value.is_finite().then_some(record.value),
            cause: record.cause.map(|cause| cause.to_string()),
            note: record.note.as_deref().map(str::to_owned),
        }
    }
}

impl StoredAlert {
    pub(super) fn text(&self) -> String {
        to_text(self)
    }

    pub(super) fn read(text: &str) -> Option<AlertRecord> {
        let stored: StoredAlert = serde_json::from_str(text).ok()?;
        Some(AlertRecord {
            life: stored.life()?,
            active_at: Time::from_millis(stored.active_at),
            starts_at: Time::from_millis(stored.starts_at),
            severity: stored.severity.parse().ok()?,
            value: stored.value.unwrap_or(f64::NAN),
            cause: stored.cause.as_deref().map(str::parse).transpose().ok()?,
            note: stored.note.map(Into::into),
            labels: Labels::new(stored.labels),
        })
    }

    fn life(&self) -> Option<Life> {
        let firing: Option<Severity> = self.firing.as_deref().map(str::parse).transpose().ok()?;
        Some(Life {
            raised_since: read_clocks(self.raised_since),
            lowered_since: read_clocks(self.lowered_since),
            firing,
            missing_since: self.missing_since.map(Time::from_millis),
        })
    }
}

pub(super) fn store_labels(labels: &Labels) -> BTreeMap<String, String> {
    labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn store_clocks(clocks: &PerSeverity<Option<Time>>) -> [Option<i64>; 4] {
    clocks.0.map(|clock| clock.map(Time::as_millis))
}

fn read_clocks(stored: [Option<i64>; 4]) -> PerSeverity<Option<Time>> {
    PerSeverity(stored.map(|clock| clock.map(Time::from_millis)))
}

/// These types hold only texts, numbers and maps with text keys: writing them cannot fail.
pub(super) fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
