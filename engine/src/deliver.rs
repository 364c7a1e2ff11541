//! From the core's notifications to messages with texts.

use std::collections::{BTreeMap, HashMap};

use watchfire_core::{AlertView, Notification, State, Time};
use watchfire_notify::message::{Alert, Message, Reason, Status, idempotency_key};
use watchfire_template::Annotations;

/// The texts of each rule, by its id.
pub(crate) type Texts = HashMap<String, Annotations>;

/// The annotation of an alert whose rule is quarantined.
const STALE: &str = "the rule of this alert is quarantined; the alert stands as it was when the rule last answered";

/// The rendered annotations of an alert. Watchfire's own conditions speak for themselves.
pub(crate) fn annotations(view: &AlertView, texts: &Texts) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = match texts.get(&*view.rule) {
        Some(annotations) => annotations.render(view),
        None => view.note.iter().map(|note| ("summary".to_owned(), note.to_string())).collect(),
    };
    if view.stale {
        texts.push(("stale".to_owned(), STALE.to_owned()));
    }
    texts
}

/// A notification with its texts. Its key tells it from every other one: it is made in the transaction that stores
/// that it was made, so one notification never has two keys.
pub(crate) fn message(notification: &Notification, texts: &Texts) -> Message {
    let alerts: Vec<Alert> = notification.alerts.iter().map(|view| alert(view, texts)).collect();
    let (receiver, group_key) = (notification.receiver.to_string(), notification.group_key.to_string());
    let moment = u64::try_from(notification.time.as_millis()).unwrap_or(0);
    Message {
        key: idempotency_key(&receiver, &group_key, &alerts, moment),
        receiver,
        group_key,
        group_labels: pairs(notification.group_labels.iter()),
        alerts,
        time_ms: notification.time.as_millis(),
        reason: match notification.reason {
            watchfire_core::Reason::Change => Reason::Change,
            watchfire_core::Reason::Repeat => Reason::Repeat,
        },
    }
}

fn alert(view: &AlertView, texts: &Texts) -> Alert {
    let own = [("alertname", &*view.alert), ("severity", view.severity.as_str())];
    Alert {
        status: if view.state == State::Resolved { Status::Resolved } else { Status::Firing },
        labels: pairs(view.labels.iter().chain(own)),
        annotations: annotations(view, texts).into_iter().collect(),
        starts_at_ms: view.starts_at.as_millis(),
        ends_at_ms: view.ends_at.map(Time::as_millis),
        fingerprint: view.fingerprint,
        severity: view.severity,
        value: view.value.is_finite().then_some(view.value),
        cause: view.cause.map(|cause| cause.to_string()),
        template: view.template.to_string(),
        note: view.note.as_deref().map(str::to_owned),
    }
}

fn pairs<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    labels.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
