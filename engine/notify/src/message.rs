//! What a receiver is told, in the form in which it is stored and rendered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use watchfire_core::Severity;

/// The version of the stored form of [`Message`].
const STORED_VERSION: u32 = 1;

/// Hex digits of an idempotency key: 128 bits of a SHA-256.
const KEY_HEX_LEN: usize = 32;

/// One message to one receiver about one group of alerts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Same content, same key: see [`idempotency_key`].
    pub key: String,
    /// The receiver's name.
    pub receiver: String,
    /// The group, in Alertmanager's form (`{}/{matchers}:{labels}`).
    pub group_key: String,
    /// The labels that the group's alerts share by `group_by`.
    pub group_labels: BTreeMap<String, String>,
    /// Firing and just-resolved alerts, worst first.
    pub alerts: Vec<Alert>,
    /// When it was asked for, in milliseconds since the Unix epoch.
    pub time_ms: i64,
    /// Why now.
    pub reason: Reason,
}

/// Why a receiver is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Alerts of the group began, grew or ended.
    Change,
    /// Nothing changed for `repeat_interval`.
    Repeat,
}

/// Whether an alert fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It fires, or did when its data went missing.
    Firing,
    /// It has ended.
    Resolved,
}

impl Status {
    /// The word of the webhook payload.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Firing => "firing",
            Status::Resolved => "resolved",
        }
    }
}

/// One alert as it was when the message was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Whether it fires.
    pub status: Status,
    /// All labels, `alertname` and `severity` among them.
    pub labels: BTreeMap<String, String>,
    /// The rendered annotations.
    pub annotations: BTreeMap<String, String>,
    /// When it began to fire, in milliseconds since the Unix epoch.
    pub starts_at_ms: i64,
    /// When it ended, in milliseconds since the Unix epoch; `None` while it fires.
    pub ends_at_ms: Option<i64>,
    /// Same for one rule on one target whatever the severity, over restarts.
    pub fingerprint: u64,
    /// How bad.
    #[serde(with = "severity")]
    pub severity: Severity,
    /// The value that the rule showed last; `None` where there is none. Never NaN or infinite once stored.
    pub value: Option<f64>,
    /// The likely cause, as a word of the contract.
    pub cause: Option<String>,
    /// The template's name.
    pub template: String,
    /// The evidence: the rule's own words.
    pub note: Option<String>,
}

impl Alert {
    /// Whether it fires.
    pub fn is_firing(&self) -> bool {
        self.status == Status::Firing
    }

    /// The label `alertname`, or nothing.
    pub fn name(&self) -> &str {
        self.labels.get("alertname").map_or("", String::as_str)
    }

    /// The value, where it is a number that JSON can carry.
    pub fn finite_value(&self) -> Option<f64> {
        self.value.filter(|value| value.is_finite())
    }
}

/// A stored message could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// Not the JSON that this version writes.
    #[error("the stored message is not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version.
    #[error("the stored message has version {found}, this build reads version {STORED_VERSION}")]
    Version {
        /// The version found.
        found: u32,
    },
}

#[derive(Serialize)]
struct StoredRef<'a> {
    v: u32,
    message: &'a Message,
}

#[derive(Deserialize)]
struct Stored<M> {
    v: u32,
    message: M,
}

impl Message {
    /// Whether any of its alerts fires.
    pub fn is_firing(&self) -> bool {
        self.alerts.iter().any(Alert::is_firing)
    }

    /// The message as a receiver without `send_resolved` gets it: firing alerts only. `None` if none is left.
    pub fn for_channel(&self, send_resolved: bool) -> Option<std::borrow::Cow<'_, Message>> {
        use std::borrow::Cow;
        if send_resolved || self.alerts.iter().all(Alert::is_firing) {
            return (!self.alerts.is_empty()).then_some(Cow::Borrowed(self));
        }
        let alerts: Vec<Alert> = self.alerts.iter().filter(|alert| alert.is_firing()).cloned().collect();
        (!alerts.is_empty()).then(|| Cow::Owned(Message { alerts, ..self.clone() }))
    }

    /// The stored form: JSON with its version.
    ///
    /// # Errors
    /// `serde_json`'s; a message has nothing that JSON cannot carry, since numbers that are not finite become null.
    pub fn to_stored(&self) -> Result<String, StoredError> {
        Ok(serde_json::to_string(&StoredRef { v: STORED_VERSION, message: self })?)
    }

    /// Reads the stored form back.
    ///
    /// # Errors
    /// The text is damaged, or of another version.
    pub fn from_stored(text: &str) -> Result<Message, StoredError> {
        let stored: Stored<serde_json::Value> = serde_json::from_str(text)?;
        if stored.v != STORED_VERSION {
            return Err(StoredError::Version { found: stored.v });
        }
        Ok(serde_json::from_value(stored.message)?)
    }
}

/// The key that tells receivers (and our own outbox) two tries of one message from two messages.
///
/// It depends on the receiver, the group and, for each alert in any order, its fingerprint, status, start and
/// severity, and on `repeat`. So a message rebuilt after a crash has the same key. The caller must give another
/// `repeat` whenever the same content is to be told once more, be it a reminder or a return to an earlier
/// state (warning, critical, warning again): a key that is already known is not sent again.
pub fn idempotency_key(receiver: &str, group_key: &str, alerts: &[Alert], repeat: u64) -> String {
    let mut contents: Vec<_> = alerts.iter().map(content).collect();
    contents.sort_unstable();
    let mut hash = Sha256::new();
    for text in [receiver, group_key] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.update(repeat.to_le_bytes());
    for (fingerprint, status, start, severity) in contents {
        hash.update(fingerprint.to_le_bytes());
        hash.update([status, severity]);
        hash.update(start.to_le_bytes());
    }
    let mut key = hex(&hash.finalize());
    key.truncate(KEY_HEX_LEN);
    key
}

fn content(alert: &Alert) -> (u64, u8, i64, u8) {
    (alert.fingerprint, alert.status as u8, alert.starts_at_ms, alert.severity as u8)
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

mod severity {
    //! A severity is stored as its word.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use watchfire_core::Severity;

    pub fn serialize<S: Serializer>(severity: &Severity, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(severity.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Severity, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
pub(crate) mod tests {
    use super::*;

    pub(crate) const START_MS: i64 = 1_767_225_600_000;

    pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// GPU `gpu` of h1 is too hot.
    pub(crate) fn alert(gpu: u8, severity: Severity) -> Alert {
        let (index, word) = (gpu.to_string(), severity.as_str());
        Alert {
            status: Status::Firing,
            labels: map(&[("alertname", "GpuTooHot"), ("host", "h1"), ("gpu", &index), ("severity", word)]),
            annotations: map(&[("summary", &format!("{gpu} on h1 at 92.0 °C"))]),
            starts_at_ms: START_MS,
            ends_at_ms: None,
            fingerprint: 0x4d90_848e_bef7_0f00 + u64::from(gpu),
            severity,
            value: Some(92.0),
            cause: Some("thermal".into()),
            template: "gpu-thermal".into(),
            note: None,
        }
    }

    /// The same alert, ended.
    pub(crate) fn resolved(mut alert: Alert) -> Alert {
        alert.status = Status::Resolved;
        alert.ends_at_ms = Some(START_MS + 60_000);
        alert
    }

    /// A message to `ops` about these alerts.
    pub(crate) fn message(alerts: Vec<Alert>) -> Message {
        repeated(alerts, 0)
    }

    /// The `repeat`-th reminder of these alerts.
    pub(crate) fn repeated(alerts: Vec<Alert>, repeat: u64) -> Message {
        let group_key = r#"{}:{alertname="GpuTooHot", host="h1"}"#;
        Message {
            key: idempotency_key("ops", group_key, &alerts, repeat),
            receiver: "ops".into(),
            group_key: group_key.into(),
            group_labels: map(&[("alertname", "GpuTooHot"), ("host", "h1")]),
            alerts,
            time_ms: START_MS + 1_000,
            reason: if repeat == 0 { Reason::Change } else { Reason::Repeat },
        }
    }

    #[test]
    fn the_key_is_that_of_the_content() {
        let (hot, warm) = (alert(3, Severity::Critical), alert(5, Severity::Warning));
        let key = |alerts: &[Alert], repeat| idempotency_key("ops", "g", alerts, repeat);
        let base = key(&[hot.clone(), warm.clone()], 0);
        assert_eq!(base, "4cdc46d7f63dcdeee64da019e92ef581", "stable over builds, or a crash during an update doubles");
        assert_eq!(base, key(&[warm.clone(), hot.clone()], 0), "order is no content");
        let mut other = hot.clone();
        other.value = Some(93.0);
        other.note = Some("now 93".into());
        other.ends_at_ms = Some(9);
        assert_eq!(base, key(&[other, warm.clone()], 0), "values move, the message stays");
        let later = Alert { starts_at_ms: START_MS + 1, ..hot.clone() };
        let worse = Alert { severity: Severity::Emergency, ..hot.clone() };
        let different = [
            key(&[hot.clone(), warm.clone()], 1),
            key(&[resolved(hot.clone()), warm.clone()], 0),
            key(&[later, warm.clone()], 0),
            key(&[worse, warm.clone()], 0),
            key(std::slice::from_ref(&hot), 0),
            idempotency_key("op", "sg", &[hot, warm], 0),
        ];
        for key in &different {
            assert_ne!(*key, base);
        }
    }

    #[test]
    fn a_message_is_stored_with_its_version_and_read_back() {
        let mut one = message(vec![alert(3, Severity::Critical), resolved(alert(5, Severity::Warning))]);
        assert_eq!(Message::from_stored(&one.to_stored().unwrap()).unwrap(), one);
        one.alerts[0].value = Some(f64::NAN);
        let text = one.to_stored().unwrap();
        assert!(!text.contains("NaN"), "{text}");
        assert_eq!(Message::from_stored(&text).unwrap().alerts[0].value, None);
    }

    #[test]
    fn another_version_or_junk_is_an_error_that_says_so() {
        let text = message(vec![]).to_stored().unwrap().replace(r#""v":1"#, r#""v":2"#);
        let error = Message::from_stored(&text).unwrap_err().to_string();
        assert_eq!(error, "the stored message has version 2, this build reads version 1");
        assert!(Message::from_stored("{").is_err());
    }

    #[test]
    fn without_send_resolved_only_what_fires_is_left() {
        let mixed = message(vec![alert(3, Severity::Critical), resolved(alert(5, Severity::Warning))]);
        assert_eq!(mixed.for_channel(true).unwrap().alerts.len(), 2);
        assert_eq!(mixed.for_channel(false).unwrap().alerts, mixed.alerts[..1]);
        let over = message(vec![resolved(alert(5, Severity::Warning))]);
        assert!(over.for_channel(false).is_none());
        assert!(over.for_channel(true).is_some());
    }
}
