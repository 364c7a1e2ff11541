//! Alertmanager's webhook payload, version 4, and the small things that payloads share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::message::{Alert, Message};

/// What Alertmanager writes for "no time" (Go's zero time).
pub const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// The body of a webhook, with Alertmanager's field names (`notify/webhook`, `template.Data`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookBody<'a> {
    version: &'static str,
    group_key: &'a str,
    truncated_alerts: usize,
    status: &'static str,
    receiver: &'a str,
    group_labels: &'a BTreeMap<String, String>,
    common_labels: BTreeMap<String, String>,
    common_annotations: BTreeMap<String, String>,
    #[serde(rename = "externalURL")]
    external_url: &'a str,
    alerts: Vec<WebhookAlert<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookAlert<'a> {
    status: &'static str,
    labels: &'a BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL")]
    generator_url: &'a str,
    fingerprint: String,
}

/// The body for a message. `alerts_max` limits how many alerts are listed (0 = all): the first ones stay, which
/// are the worst, and `truncatedAlerts` counts the rest. Common labels are those of all alerts, listed or not.
pub fn webhook<'a>(message: &'a Message, alerts_max: usize, external_url: &'a str) -> WebhookBody<'a> {
    let listed = if alerts_max == 0 { message.alerts.len() } else { alerts_max.min(message.alerts.len()) };
    WebhookBody {
        version: "4",
        group_key: &message.group_key,
        truncated_alerts: message.alerts.len() - listed,
        status: if message.is_firing() { "firing" } else { "resolved" },
        receiver: &message.receiver,
        group_labels: &message.group_labels,
        common_labels: common(message.alerts.iter().map(|alert| alert.labels.clone())),
        common_annotations: common(message.alerts.iter().map(annotations)),
        external_url,
        alerts: message.alerts[..listed].iter().map(|alert| webhook_alert(alert, external_url)).collect(),
    }
}

fn webhook_alert<'a>(alert: &'a Alert, external_url: &'a str) -> WebhookAlert<'a> {
    WebhookAlert {
        status: alert.status.as_str(),
        labels: &alert.labels,
        annotations: annotations(alert),
        starts_at: rfc3339(alert.starts_at_ms),
        ends_at: alert.ends_at_ms.map_or_else(|| NO_TIME.into(), rfc3339),
        generator_url: external_url,
        fingerprint: format!("{:016x}", alert.fingerprint),
    }
}

/// An alert's annotations with its value, cause and note, where the template has none of these names. So they
/// reach receivers whose payload has no place of its own for them.
pub fn annotations(alert: &Alert) -> BTreeMap<String, String> {
    let mut all = alert.annotations.clone();
    let more = [
        ("value", alert.finite_value().map(|value| value.to_string())),
        ("cause", alert.cause.clone()),
        ("note", alert.note.clone()),
    ];
    for (name, value) in more {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            all.entry(name.into()).or_insert(value);
        }
    }
    all
}

/// The pairs that all maps have.
fn common(mut maps: impl Iterator<Item = BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let first = maps.next().unwrap_or_default();
    maps.fold(first, |mut common, map| {
        common.retain(|name, value| map.get(name) == Some(value));
        common
    })
}

/// RFC 3339 in UTC, milliseconds only where there are any. A time beyond the calendar is put at its edge.
pub fn rfc3339(time_ms: i64) -> String {
    let edge = if time_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(time_ms).unwrap_or(edge).to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::tests::{START_MS, alert, message, resolved};
    use serde_json::Value;
    use watchfire_core::Severity::{Critical, Warning};

    fn json(message: &Message, alerts_max: usize) -> Value {
        serde_json::to_value(webhook(message, alerts_max, "http://watchfire.example:9177")).unwrap()
    }

    /// The paths of a value with the type at each; label and annotation names count as content, not as shape.
    fn shape(value: &Value, path: &str, out: &mut BTreeMap<String, &'static str>) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(items) => {
                items.iter().for_each(|item| shape(item, &format!("{path}[]"), out));
                "array"
            }
            Value::Object(map) if path.ends_with("abels") || path.ends_with("nnotations") => {
                assert!(map.values().all(Value::is_string), "{path} maps to text");
                "text map"
            }
            Value::Object(map) => {
                map.iter().for_each(|(name, item)| shape(item, &format!("{path}.{name}"), out));
                "object"
            }
        };
        assert_eq!(*out.entry(path.into()).or_insert(kind), kind, "{path} has one type");
    }

    fn shape_of(value: &Value) -> BTreeMap<String, &'static str> {
        let mut out = BTreeMap::new();
        shape(value, "", &mut out);
        out
    }

    /// The same alerts as in the requests captured from a real Alertmanager.
    fn captured_alerts() -> (Alert, Alert) {
        let like_captured = |gpu, severity, value| {
            let mut one = alert(gpu, severity);
            one.labels.insert("template".into(), "gpu-thermal".into());
            one.annotations.insert("runbook_url".into(), "https://runbooks.example/gpu?x=1&y=2".into());
            one.annotations.insert("summary".into(), format!("{gpu} on h1 at {value}.0 °C"));
            (one.value, one.cause) = (None, None);
            one
        };
        let mut hot = like_captured(3, Critical, 92);
        hot.annotations.insert("summary".into(), "3 on h1 at 92.0 °C <b>".into());
        (hot, like_captured(5, Warning, 86))
    }

    /// What differs from run to run, and whose URL is meant.
    fn blank(mut body: Value) -> Value {
        body["externalURL"] = Value::Null;
        for alert in body["alerts"].as_array_mut().unwrap() {
            for name in ["startsAt", "endsAt"] {
                if alert[name] != NO_TIME {
                    assert!(alert[name].as_str().unwrap().parse::<Timestamp>().is_ok(), "{alert}");
                    alert[name] = Value::from("a time");
                }
            }
            assert_eq!(alert["fingerprint"].as_str().unwrap().len(), 16);
            alert["fingerprint"] = Value::Null;
            alert["generatorURL"] = Value::Null;
        }
        body
    }

    #[test]
    fn bodies_equal_those_captured_from_a_real_alertmanager() {
        let golden: Value =
            serde_json::from_str(include_str!("../../../tests/data/alertmanager/webhook-v4.json")).unwrap();
        let (hot, warm) = captured_alerts();
        let ours = [
            ("firing", vec![hot.clone(), warm.clone()]),
            ("mixed", vec![resolved(hot), warm.clone()]),
            ("resolved", vec![resolved(warm)]),
        ];
        for (name, alerts) in ours {
            let (ours, theirs) = (json(&message(alerts), 0), golden["requests"][name].clone());
            assert_eq!(shape_of(&ours), shape_of(&theirs), "{name}: names, types and nesting");
            assert_eq!(blank(ours), blank(theirs), "{name}: values");
        }
    }

    #[test]
    fn value_cause_and_note_ride_as_annotations_unless_the_template_has_them() {
        let mut one = alert(3, Critical);
        one.note = Some("12 samples".into());
        one.annotations.insert("cause".into(), "fan".into());
        let body = json(&message(vec![one.clone()]), 0);
        let annotations = &body["alerts"][0]["annotations"];
        assert_eq!((annotations["value"].as_str(), annotations["cause"].as_str()), (Some("92"), Some("fan")));
        assert_eq!(annotations["note"], "12 samples");
        one.value = Some(f64::INFINITY);
        let body = json(&message(vec![one]), 0).to_string();
        assert!(!body.contains("inf") && !body.contains("NaN"), "{body}");
    }

    #[test]
    fn the_worst_stay_when_there_are_too_many() {
        let alerts: Vec<Alert> = (0..7).map(|gpu| alert(gpu, Critical)).collect();
        let body = json(&message(alerts), 3);
        assert_eq!(body["truncatedAlerts"], 4);
        assert_eq!(body["alerts"].as_array().unwrap().len(), 3);
        assert_eq!(body["alerts"][0]["labels"]["gpu"], "0");
        assert_eq!(body["commonLabels"].get("gpu"), None);
    }

    #[test]
    fn twenty_thousand_alerts_are_rendered_within_bounds() {
        let alerts: Vec<Alert> =
            (0..20_000_u64).map(|n| Alert { fingerprint: n, ..alert((n % 8) as u8, Critical) }).collect();
        let message = message(alerts);
        assert_eq!(json(&message, 0)["alerts"].as_array().unwrap().len(), 20_000);
        let body = serde_json::to_vec(&webhook(&message, 100, "")).unwrap();
        assert!(body.len() < 64 * 1024, "{} bytes", body.len());
        assert_eq!(json(&message, 100)["truncatedAlerts"], 19_900);
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(rfc3339(START_MS), "2026-01-01T00:00:00Z");
        assert_eq!(rfc3339(START_MS + 285), "2026-01-01T00:00:00.285Z");
        assert_eq!(rfc3339(i64::MAX), "9999-12-30T22:00:00.999999999Z");
        assert!(rfc3339(i64::MIN).starts_with("-009999"));
    }
}
