//! `webhook_configs`: Alertmanager's webhook, payload version 4.

use std::time::Duration;

use reqwest::Method;
use watchfire_door::{Errors, Node};

use super::{BuildContext, BuildError, Channel, ChannelConfig, Delivery, SendFuture, Sender, read};
use crate::http::config::HttpConfig;
use crate::http::{Poster, Request};
use crate::payload;
use crate::secret::SecretSource;
use crate::verdict::Verdict;

/// How long a request may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// One entry of `webhook_configs`.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookConfig {
    /// Where to; may hold a token.
    pub url: SecretSource,
    /// Whether ends are told.
    pub send_resolved: bool,
    /// How many alerts are listed; 0 = all.
    pub max_alerts: usize,
    /// How long a request may take.
    pub timeout: Duration,
    /// Authorization, headers, CA.
    pub http: HttpConfig,
    /// Statuses that are tried again beside the usual ones.
    pub retry_status: Vec<u16>,
}

impl WebhookConfig {
    /// Posts to `url`, with everything else as it is by default.
    pub fn new(url: impl Into<String>) -> Self {
        WebhookConfig {
            url: SecretSource::value(url),
            send_resolved: true,
            max_alerts: 0,
            timeout: TIMEOUT,
            http: HttpConfig::default(),
            retry_status: Vec::new(),
        }
    }

    /// Reads an entry; `errors` says what is wrong with it.
    pub fn read(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut map = node.map(errors)?;
        let url = read::url(&mut map, errors);
        let config = WebhookConfig {
            send_resolved: read::bool_or(&mut map, "send_resolved", true, errors),
            max_alerts: read::count_or(&mut map, "max_alerts", 0, errors),
            timeout: read::timeout_or(&mut map, TIMEOUT, errors),
            http: read::http_config(&mut map, errors),
            retry_status: read::statuses(&mut map, errors),
            url: url.clone().unwrap_or(SecretSource::value("")),
        };
        map.finish(errors);
        url.map(|_| config)
    }
}

impl ChannelConfig for WebhookConfig {
    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn channels(&self, context: &BuildContext) -> Result<Vec<Channel>, BuildError> {
        let poster = Poster::new(&self.http, self.timeout, &self.retry_status, context)?;
        let sender = Webhook { config: self.clone(), poster, external_url: context.external_url.clone() };
        Ok(vec![Channel { suffix: String::new(), send_resolved: self.send_resolved, sender: Box::new(sender) }])
    }
}

struct Webhook {
    config: WebhookConfig,
    poster: Poster,
    external_url: String,
}

impl Sender for Webhook {
    fn send<'a>(&'a self, delivery: Delivery<'a>) -> SendFuture<'a> {
        Box::pin(async move {
            let url = match self.config.url.load() {
                Ok(url) => url,
                Err(error) => return Verdict::retry(error.to_string()),
            };
            let body = payload::webhook(delivery.message, self.config.max_alerts, &self.external_url);
            let body = match serde_json::to_vec(&body) {
                Ok(body) => body,
                Err(error) => return Verdict::refused(format!("cannot write the message as JSON: {error}")),
            };
            let key = Some(&*delivery.message.key);
            self.poster.send(Request { method: Method::POST, url: url.expose(), key, body: Some(body) }).await
        })
    }
}
