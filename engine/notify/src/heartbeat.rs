//! A heartbeat to a dead-man's switch: when it stops, someone else says that Watchfire is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use watchfire_door::{Errors, Node};

use crate::clock::Clock;
use crate::http::config::HttpConfig;
use crate::http::{Poster, Request};
use crate::receiver::{BuildContext, BuildError, read};
use crate::secret::SecretSource;
use crate::verdict::Verdict;

/// How often a heartbeat is sent.
pub const INTERVAL: Duration = Duration::from_secs(60);
/// How long a heartbeat may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the engine may be silent before heartbeats stop, at least; else three intervals.
pub const PULSE_KEPT: Duration = Duration::from_secs(60);

/// Settings of one heartbeat.
#[derive(Clone, Debug, PartialEq)]
pub struct HeartbeatConfig {
    /// Where to; may hold a token.
    pub url: SecretSource,
    /// How often.
    pub interval: Duration,
    /// GET or POST.
    pub method: Method,
    /// How long one may take.
    pub timeout: Duration,
    /// Authorization, headers, CA.
    pub http: HttpConfig,
}

impl HeartbeatConfig {
    /// A GET to `url` each minute.
    pub fn new(url: impl Into<String>) -> Self {
        HeartbeatConfig {
            url: SecretSource::value(url),
            interval: INTERVAL,
            method: Method::GET,
            timeout: TIMEOUT,
            http: HttpConfig::default(),
        }
    }

    /// Reads `{url, interval, method, timeout, http_config}`; `errors` says what is wrong with it.
    pub fn read(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut map = node.map(errors)?;
        let url = read::url(&mut map, errors);
        let interval = read::span_or(&mut map, "interval", INTERVAL, errors);
        let method = map.take("method").and_then(|node| node.parse_with(errors, method)).unwrap_or(Method::GET);
        let timeout = read::timeout_or(&mut map, TIMEOUT, errors);
        let http = read::http_config(&mut map, errors);
        map.finish(errors);
        Some(HeartbeatConfig { url: url?, interval, method, timeout, http })
    }
}

fn method(word: &str) -> Result<Method, String> {
    match word {
        "GET" | "get" => Ok(Method::GET),
        "POST" | "post" => Ok(Method::POST),
        _ => Err(format!("expected GET or POST, found {word:?}")),
    }
}

/// How a heartbeat does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatStatus {
    /// How many got through since the start.
    pub sent: u64,
    /// How many did not.
    pub failed: u64,
    /// How many did not, in a row.
    pub failed_in_a_row: u64,
    /// How many were held back because the engine was silent.
    pub held_back: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When one got through last, in milliseconds since the Unix epoch.
    pub last_sent_ms: Option<i64>,
}

/// When the engine last showed that it is alive. Until it has done so once, it is taken to be.
#[derive(Clone, Default)]
pub(crate) struct Pulse(Arc<AtomicI64>);

impl Pulse {
    pub fn beat(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::Relaxed);
    }

    fn is_fresh(&self, now_ms: i64, kept: Duration) -> bool {
        let last_ms = self.0.load(Ordering::Relaxed);
        last_ms == 0 || now_ms.saturating_sub(last_ms) <= i64::try_from(kept.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A heartbeat, ready to beat.
pub(crate) struct Heartbeat {
    config: HeartbeatConfig,
    poster: Poster,
    pulse: Pulse,
    now: Clock,
    status: Arc<Mutex<HeartbeatStatus>>,
}

impl Heartbeat {
    pub fn new(config: &HeartbeatConfig, pulse: Pulse, context: &BuildContext) -> Result<Self, BuildError> {
        let poster = Poster::new(&config.http, config.timeout, &[], context)?;
        let (config, now) = (config.clone(), context.now.clone());
        Ok(Heartbeat { config, poster, pulse, now, status: Arc::default() })
    }

    pub fn status(&self) -> Arc<Mutex<HeartbeatStatus>> {
        self.status.clone()
    }

    /// Beats until it is dropped.
    pub async fn run(self) {
        let mut ticks = tokio::time::interval(self.config.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let kept = PULSE_KEPT.max(self.config.interval * 3);
            if self.pulse.is_fresh((self.now)(), kept) {
                self.beat().await;
            } else {
                self.note(|status| status.held_back += 1);
            }
        }
    }

    async fn beat(&self) {
        let verdict = match self.config.url.load() {
            Ok(url) => {
                let method = self.config.method.clone();
                self.poster.send(Request { method, url: url.expose(), key: None, body: None }).await
            }
            Err(error) => Verdict::retry(error.to_string()),
        };
        let now_ms = (self.now)();
        self.note(|status| match verdict {
            Verdict::Delivered => {
                status.sent += 1;
                if std::mem::take(&mut status.failed_in_a_row) > 0 {
                    tracing::info!("heartbeats get through again");
                }
                status.last_sent_ms = Some(now_ms);
            }
            Verdict::Retry { why, .. } | Verdict::Refused { why } => {
                status.failed += 1;
                status.failed_in_a_row += 1;
                // The first, the second, the fourth, …: an address that is gone for a night fills no log.
                if status.failed_in_a_row.is_power_of_two() {
                    tracing::warn!(%why, in_a_row = status.failed_in_a_row, "a heartbeat failed");
                }
                status.last_error = Some(why);
            }
        });
    }

    fn note(&self, change: impl FnOnce(&mut HeartbeatStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_falls_silent_stops_the_heart() {
        let pulse = Pulse::default();
        let kept = Duration::from_secs(60);
        assert!(pulse.is_fresh(1_000_000, kept), "one that never beats by hand is not watched");
        pulse.beat(1_000_000);
        assert!(pulse.is_fresh(1_060_000, kept));
        assert!(!pulse.is_fresh(1_060_001, kept));
        pulse.beat(1_070_000);
        assert!(pulse.is_fresh(1_080_000, kept));
    }
}
