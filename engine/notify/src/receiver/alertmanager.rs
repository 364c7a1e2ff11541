//! `alertmanager_configs`: an existing Alertmanager, by its API v2.
//!
//! There severity is a label like any other, so a change of severity is another alert: the old label set is
//! resolved and the new one fired. What the channel was told before comes from the outbox.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use serde::Serialize;
use watchfire_core::Severity;
use watchfire_door::{Errors, Node};

use super::{BuildContext, BuildError, Channel, ChannelConfig, Delivery, SendFuture, Sender, read};
use crate::clock::Clock;
use crate::http::config::HttpConfig;
use crate::http::{Poster, Request, join_path};
use crate::message::Alert;
use crate::payload::{annotations, rfc3339};
use crate::secret::SecretSource;
use crate::verdict::Verdict;

/// How long a request may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a firing alert lasts in the Alertmanager without being sent again. Without an end of our own its
/// `resolve_timeout` (5 min) would end it between two of our reminders.
pub const EXPIRES: Duration = Duration::from_secs(24 * 60 * 60);
/// The path of its API (Alertmanager `api/v2/openapi.yaml`).
const PATH: &str = "/api/v2/alerts";

/// One entry of `alertmanager_configs`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertmanagerConfig {
    /// Its base URL; a prefix is kept.
    pub url: SecretSource,
    /// Whether ends are told. Without them an alert ends there by `expires`.
    pub send_resolved: bool,
    /// How long a request may take.
    pub timeout: Duration,
    /// How long a firing alert lasts there without being sent again; must be longer than the route's
    /// `repeat_interval`.
    pub expires: Duration,
    /// Authorization, headers, CA.
    pub http: HttpConfig,
}

impl AlertmanagerConfig {
    /// Posts to the Alertmanager at `url`, with everything else as it is by default.
    pub fn new(url: impl Into<String>) -> Self {
        let http = HttpConfig::default();
        let url = SecretSource::value(url);
        AlertmanagerConfig { url, send_resolved: true, timeout: TIMEOUT, expires: EXPIRES, http }
    }

    /// Reads an entry; `errors` says what is wrong with it.
    pub fn read(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut map = node.map(errors)?;
        let url = read::url(&mut map, errors);
        let config = AlertmanagerConfig {
            send_resolved: read::bool_or(&mut map, "send_resolved", true, errors),
            timeout: read::timeout_or(&mut map, TIMEOUT, errors),
            expires: read::span_or(&mut map, "expires", EXPIRES, errors),
            http: read::http_config(&mut map, errors),
            url: url.clone().unwrap_or(SecretSource::value("")),
        };
        map.finish(errors);
        url.map(|_| config)
    }
}

impl ChannelConfig for AlertmanagerConfig {
    fn kind(&self) -> &'static str {
        "alertmanager"
    }

    fn channels(&self, context: &BuildContext) -> Result<Vec<Channel>, BuildError> {
        let poster = Poster::new(&self.http, self.timeout, &[], context)?;
        let (external_url, now) = (context.external_url.clone(), context.now.clone());
        let sender = Alertmanager { config: self.clone(), poster, external_url, now };
        Ok(vec![Channel { suffix: String::new(), send_resolved: self.send_resolved, sender: Box::new(sender) }])
    }
}

struct Alertmanager {
    config: AlertmanagerConfig,
    poster: Poster,
    external_url: String,
    now: Clock,
}

impl Sender for Alertmanager {
    fn send<'a>(&'a self, delivery: Delivery<'a>) -> SendFuture<'a> {
        Box::pin(async move {
            let url = match self.config.url.load() {
                Ok(url) => join_path(url.expose(), PATH),
                Err(error) => return Verdict::retry(error.to_string()),
            };
            let url = match url {
                Ok(url) => url,
                Err(why) => return Verdict::refused(why),
            };
            let alerts = alerts(&delivery, (self.now)(), self.config.expires, &self.external_url);
            let body = match serde_json::to_vec(&alerts) {
                Ok(body) => body,
                Err(error) => return Verdict::refused(format!("cannot write the alerts as JSON: {error}")),
            };
            let key = Some(&*delivery.message.key);
            self.poster.send(Request { method: Method::POST, url: &url, key, body: Some(body) }).await
        })
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PostedAlert<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    annotations: BTreeMap<String, String>,
    starts_at: String,
    ends_at: String,
    #[serde(rename = "generatorURL", skip_serializing_if = "str::is_empty")]
    generator_url: &'a str,
}

fn alerts<'a>(delivery: &Delivery<'a>, now_ms: i64, expires: Duration, url: &'a str) -> Vec<PostedAlert<'a>> {
    let expires_ms = now_ms.saturating_add(i64::try_from(expires.as_millis()).unwrap_or(i64::MAX));
    let mut posted = Vec::with_capacity(delivery.message.alerts.len());
    for (alert, told) in delivery.message.alerts.iter().zip(delivery.told) {
        if let Some(old) = told.filter(|old| *old != alert.severity) {
            posted.push(post(alert, old, now_ms, url));
        }
        let ends_at_ms = alert.ends_at_ms.filter(|_| !alert.is_firing());
        posted.push(post(alert, alert.severity, ends_at_ms.unwrap_or(expires_ms), url));
    }
    posted
}

fn post<'a>(alert: &'a Alert, severity: Severity, ends_at_ms: i64, url: &'a str) -> PostedAlert<'a> {
    let mut labels: BTreeMap<&str, &str> = alert.labels.iter().map(|(name, value)| (&**name, &**value)).collect();
    labels.insert("severity", severity.as_str());
    PostedAlert {
        labels,
        annotations: annotations(alert),
        starts_at: rfc3339(alert.starts_at_ms),
        // Alertmanager refuses an alert that ends before it starts.
        ends_at: rfc3339(ends_at_ms.max(alert.starts_at_ms)),
        generator_url: url,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::message::tests::{START_MS, alert, message, resolved};
    use serde_json::Value;
    use watchfire_core::Severity::{Critical, Warning};

    fn posted(alerts_of: Vec<Alert>, told: &[Option<Severity>]) -> Vec<(String, String)> {
        let message = message(alerts_of);
        let delivery = Delivery { message: &message, attempt: 0, told };
        let posted = alerts(&delivery, START_MS + 90_000, EXPIRES, "http://watchfire.example");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let posted = serde_json::to_value(&posted).unwrap();
        posted.as_array().unwrap().iter().map(|one| (text(&one["labels"]["severity"]), text(&one["endsAt"]))).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn an_escalation_resolves_the_old_label_set_and_fires_the_new_one() {
        let tomorrow = "2026-01-02T00:01:30Z";
        assert_eq!(posted(vec![alert(3, Warning)], &[None]), pairs(&[("warning", tomorrow)]));
        assert_eq!(posted(vec![alert(3, Warning)], &[Some(Warning)]), pairs(&[("warning", tomorrow)]));
        let escalated = posted(vec![alert(3, Critical)], &[Some(Warning)]);
        assert_eq!(escalated, pairs(&[("warning", "2026-01-01T00:01:30Z"), ("critical", tomorrow)]));
    }

    #[test]
    fn an_end_ends_what_the_alertmanager_was_told() {
        let over = posted(vec![resolved(alert(3, Critical))], &[Some(Warning)]);
        assert_eq!(over, pairs(&[("warning", "2026-01-01T00:01:30Z"), ("critical", "2026-01-01T00:01:00Z")]));
    }

    #[test]
    fn no_alert_ends_before_it_starts() {
        let mut early = resolved(alert(3, Critical));
        early.ends_at_ms = Some(START_MS - 5);
        assert_eq!(posted(vec![early], &[None]), pairs(&[("critical", "2026-01-01T00:00:00Z")]));
    }
}
