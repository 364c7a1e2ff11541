//! The stored form of the core's plain values: JSON, so that an operator can read it with `sqlite3`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use watchfire_core::alert::Life;
use watchfire_core::group::{GroupRecord, MemberRecord, Told};
use watchfire_core::health::HealthRecord;
use watchfire_core::record::{AlertKey, AlertRecord, RuleRecord};
use watchfire_core::{AlertView, Labels, PerSeverity, Severity, State, Time};

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
    /// None in what older versions stored.
    #[serde(default)]
    state: Option<String>,
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
            state: record.state.map(|state| state.to_string()),
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
            state: stored.state.as_deref().and_then(state_of),
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

/// A group. Its alerts are stored whole: what is told of an alert that has ended is what was last seen of it.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredGroup {
    receiver: String,
    group_key: String,
    labels: BTreeMap<String, String>,
    opened_at: i64,
    first_sent_at: Option<i64>,
    last_sent_at: Option<i64>,
    changed_at: Option<i64>,
    urgent_at: Option<i64>,
    repeat: u64,
    members: Vec<StoredMember>,
}

#[derive(Serialize, Deserialize)]
struct StoredMember {
    alert: StoredView,
    told_severity: Option<String>,
    told_starts_at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredView {
    fingerprint: u64,
    rule: String,
    template: String,
    alert: String,
    labels: BTreeMap<String, String>,
    state: String,
    severity: String,
    value: Option<f64>,
    cause: Option<String>,
    note: Option<String>,
    active_at: i64,
    starts_at: i64,
    ends_at: Option<i64>,
    reason: Option<String>,
}

impl From<&GroupRecord> for StoredGroup {
    fn from(group: &GroupRecord) -> Self {
        let millis = |time: Option<Time>| time.map(Time::as_millis);
        StoredGroup {
            receiver: group.receiver.to_string(),
            group_key: group.group_key.to_string(),
            labels: store_labels(&group.labels),
            opened_at: group.opened_at.as_millis(),
            first_sent_at: millis(group.first_sent_at),
            last_sent_at: millis(group.last_sent_at),
            changed_at: millis(group.changed_at),
            urgent_at: millis(group.urgent_at),
            repeat: group.repeat,
            members: group.members.iter().map(StoredMember::from).collect(),
        }
    }
}

impl StoredGroup {
    pub(super) fn text(&self) -> String {
        to_text(self)
    }

    pub(super) fn read(text: &str) -> Option<GroupRecord> {
        let stored: StoredGroup = serde_json::from_str(text).ok()?;
        let time = |millis: Option<i64>| millis.map(Time::from_millis);
        Some(GroupRecord {
            receiver: stored.receiver.into(),
            group_key: stored.group_key.into(),
            labels: Labels::new(stored.labels),
            opened_at: Time::from_millis(stored.opened_at),
            first_sent_at: time(stored.first_sent_at),
            last_sent_at: time(stored.last_sent_at),
            changed_at: time(stored.changed_at),
            urgent_at: time(stored.urgent_at),
            repeat: stored.repeat,
            members: stored.members.into_iter().map(StoredMember::into_record).collect::<Option<_>>()?,
        })
    }
}

impl From<&MemberRecord> for StoredMember {
    fn from(member: &MemberRecord) -> Self {
        StoredMember {
            alert: StoredView::from(&member.alert),
            told_severity: member.told.map(|told| told.severity.to_string()),
            told_starts_at: member.told.map(|told| told.starts_at.as_millis()),
        }
    }
}

impl StoredMember {
    fn into_record(self) -> Option<MemberRecord> {
        let told = match (self.told_severity, self.told_starts_at) {
            (Some(severity), Some(at)) => {
                Some(Told { severity: severity.parse().ok()?, starts_at: Time::from_millis(at) })
            }
            _ => None,
        };
        Some(MemberRecord { alert: self.alert.into_view()?, told })
    }
}

impl From<&AlertView> for StoredView {
    fn from(view: &AlertView) -> Self {
        StoredView {
            fingerprint: view.fingerprint,
            rule: view.rule.to_string(),
            template: view.template.to_string(),
            alert: view.alert.to_string(),
            labels: store_labels(&view.labels),
            state: view.state.to_string(),
            severity: view.severity.to_string(),
            value: view.value.is_finite().then_some(view.value),
            cause: view.cause.map(|cause| cause.to_string()),
            note: view.note.as_deref().map(str::to_owned),
            active_at: view.active_at.as_millis(),
            starts_at: view.starts_at.as_millis(),
            ends_at: view.ends_at.map(Time::as_millis),
            reason: view.reason.as_deref().map(str::to_owned),
        }
    }
}

fn state_of(word: &str) -> Option<State> {
    let states = [State::Inactive, State::Pending, State::Firing, State::Resolved, State::Unknown];
    states.into_iter().find(|state| state.as_str() == word)
}

impl StoredView {
    pub(super) fn read(text: &str) -> Option<AlertView> {
        serde_json::from_str::<StoredView>(text).ok()?.into_view()
    }

    fn into_view(self) -> Option<AlertView> {
        Some(AlertView {
            fingerprint: self.fingerprint,
            rule: self.rule.into(),
            template: self.template.into(),
            alert: self.alert.into(),
            labels: Labels::new(self.labels),
            state: state_of(&self.state)?,
            severity: self.severity.parse().ok()?,
            value: self.value.unwrap_or(f64::NAN),
            cause: self.cause.as_deref().map(str::parse).transpose().ok()?,
            note: self.note.map(Into::into),
            active_at: Time::from_millis(self.active_at),
            starts_at: Time::from_millis(self.starts_at),
            ends_at: self.ends_at.map(Time::from_millis),
            reason: self.reason.map(Into::into),
            stale: false,
        })
    }
}

/// How far a rule had come and how well it did.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRule {
    tick: u64,
    next: Option<i64>,
    in_a_row: u32,
    inconclusive: u32,
    recent: Vec<i64>,
    quarantine_ms: Option<u64>,
    last_failure: Option<String>,
    failures_total: u64,
}

impl From<&RuleRecord> for StoredRule {
    fn from(rule: &RuleRecord) -> Self {
        let health = &rule.health;
        StoredRule {
            tick: rule.tick,
            next: rule.next.map(Time::as_millis),
            in_a_row: health.in_a_row,
            inconclusive: health.inconclusive,
            recent: health.recent.iter().map(|at| at.as_millis()).collect(),
            quarantine_ms: health.quarantine.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            last_failure: health.last.clone(),
            failures_total: health.failures_total,
        }
    }
}

impl StoredRule {
    pub(super) fn read(id: &str, text: &str) -> Option<RuleRecord> {
        let stored: StoredRule = serde_json::from_str(text).ok()?;
        let health = HealthRecord {
            in_a_row: stored.in_a_row,
            inconclusive: stored.inconclusive,
            recent: stored.recent.into_iter().map(Time::from_millis).collect(),
            quarantine: stored.quarantine_ms.map(Duration::from_millis),
            last: stored.last_failure,
            failures_total: stored.failures_total,
        };
        Some(RuleRecord { id: id.into(), tick: stored.tick, next: stored.next.map(Time::from_millis), health })
    }
}
