//! Prometheus pages over HTTP. Of a scrape that fails nothing is taken in: its series end, `up` is 0.

mod fetch;
mod get;
mod own;

use std::fmt;
use std::time::{Duration, Instant};

use reqwest::{Client, Url};
use watchfire_core::{Labels, Observation, Series, Time};

use crate::exposition::{self, Limits, LineError, Options, Report};
use crate::mapping::{Mapper, Tables};
pub use fetch::Failure;
pub use get::get;
use own::Own;

/// What to scrape, and how.
#[derive(Clone)]
pub struct ScrapeConfig {
    /// The page's address.
    pub url: String,
    /// How often it is scraped; its samples are stale after three intervals.
    pub interval: Duration,
    /// How long a scrape may take as a whole.
    pub timeout: Duration,
    /// The host of all its series, whatever they say. `None`: what they name, else the host of the address.
    pub host: Option<String>,
    /// Labels that all its series get.
    pub labels: Labels,
    /// What a page may hold.
    pub limits: Limits,
    /// Bytes of a page, unpacked; a larger one is refused.
    pub page_bytes: usize,
    /// Whether one bad line refuses the page.
    pub strict: bool,
    /// The mappings; `None` for the built-in ones.
    pub tables: Option<Tables>,
}

impl ScrapeConfig {
    /// How often a page is scraped.
    pub const INTERVAL: Duration = Duration::from_secs(15);
    /// How long a scrape may take.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// Bytes of a page, unpacked.
    pub const PAGE_BYTES: usize = 10 * 1024 * 1024;

    /// A target with the defaults.
    pub fn new(url: impl Into<String>) -> Self {
        ScrapeConfig {
            url: url.into(),
            interval: ScrapeConfig::INTERVAL,
            timeout: ScrapeConfig::TIMEOUT,
            host: None,
            labels: Labels::default(),
            limits: Limits::default(),
            page_bytes: ScrapeConfig::PAGE_BYTES,
            strict: false,
            tables: None,
        }
    }
}

/// The address may hold a password.
impl fmt::Debug for ScrapeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instance = Url::parse(&self.url).map(|url| instance(&url)).unwrap_or_default();
        f.debug_struct("ScrapeConfig")
            .field("instance", &instance)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// Why a target cannot be scraped at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScrapeConfigError {
    /// The address.
    #[error("the scrape url cannot be used: {0}; expected something like http://127.0.0.1:9400/metrics")]
    Url(String),
    /// The times.
    #[error("the scrape timeout ({timeout:?}) must be above 0 and at most the interval ({interval:?})")]
    Timeout {
        /// As configured.
        timeout: Duration,
        /// As configured.
        interval: Duration,
    },
    /// TLS.
    #[error("cannot set up the HTTP client: {0}")]
    Client(String),
}

/// How a scrape went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScrapeOutcome {
    /// The whole page was read.
    Complete,
    /// Some lines could not be read; the others were taken.
    Partial {
        /// How many.
        error_count: u64,
        /// The first of them.
        errors: Vec<LineError>,
    },
    /// Nothing was taken.
    Failed(Failure),
}

/// What a scrape gave.
#[derive(Clone, Debug)]
pub struct ScrapeReport {
    /// The page's samples, computed metrics, stale markers, and `up`, `scrape_duration_seconds`, `scrape_samples`,
    /// `scrape_line_errors` and `scrape_samples_dropped_total` of the target.
    pub observations: Vec<Observation>,
    /// How it went.
    pub outcome: ScrapeOutcome,
    /// How long it took.
    pub duration: Duration,
    /// Samples on the page.
    pub samples: u64,
}

/// Scrapes one target. Needs a tokio runtime with I/O and time.
#[derive(Debug)]
pub struct Scraper {
    config: ScrapeConfig,
    url: Url,
    instance: String,
    client: Client,
    mapper: Mapper,
    own: Own,
}

impl Scraper {
    /// A scraper; nothing is fetched yet.
    ///
    /// # Errors
    /// The address, the times or the system's TLS cannot be used.
    pub fn new(config: ScrapeConfig) -> Result<Self, ScrapeConfigError> {
        let url = parse_url(&config.url)?;
        let ScrapeConfig { timeout, interval, .. } = config;
        if timeout.is_zero() || timeout > interval {
            return Err(ScrapeConfigError::Timeout { timeout, interval });
        }
        let client = fetch::client(&url).map_err(ScrapeConfigError::Client)?;
        let instance = instance(&url);
        let url_host = url.host_str().unwrap_or_default();
        let extra = Labels::new([("instance", instance.as_str())]).with(&config.labels);
        let host = config.host.as_deref().unwrap_or(url_host);
        let own = Own::new(&Labels::new([("host", host)]).with(&extra), interval);
        let stale_after = (interval * 3).max(Series::STALE_AFTER_MIN);
        let mut mapper = Mapper::new(config.host.clone(), stale_after).default_host(url_host).labels(extra);
        if let Some(tables) = &config.tables {
            mapper = mapper.tables(tables.clone());
        }
        Ok(Scraper { config, url, instance, client, mapper, own })
    }

    /// `host:port` of the target.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// How the target is scraped.
    pub fn config(&self) -> &ScrapeConfig {
        &self.config
    }

    /// Scrapes once. Samples without a time of their own are of `now`.
    pub async fn scrape(&mut self, now: Time) -> ScrapeReport {
        let start = Instant::now();
        let ScrapeConfig { timeout, page_bytes, .. } = self.config;
        let fetched = fetch::fetch(&self.client, &self.url, timeout, page_bytes).await;
        let mut observations = Vec::new();
        let read = fetched.and_then(|(format, page)| self.read(&page, format, now, &mut observations));
        let duration = start.elapsed();
        let (outcome, samples) = match read {
            Ok(report) => {
                self.mapper.end_vanished(now, &mut observations);
                let samples = report.samples;
                (outcome(report), samples)
            }
            Err(failure) => {
                tracing::debug!(instance = self.instance, %failure, "scrape failed");
                self.mapper.end_all(now, &mut observations);
                (ScrapeOutcome::Failed(failure), 0)
            }
        };
        self.own.add(&outcome, duration, samples, self.mapper.dropped(), now, &mut observations);
        ScrapeReport { observations, outcome, duration, samples }
    }

    fn read(
        &mut self,
        page: &[u8],
        format: exposition::Format,
        now: Time,
        out: &mut Vec<Observation>,
    ) -> Result<Report, Failure> {
        let options = Options { format, limits: self.config.limits, strict: self.config.strict };
        let mut pass = self.mapper.page(now, out);
        let report = exposition::parse(page, &options, &mut |sample| pass.take(&sample))?;
        pass.finish();
        Ok(report)
    }
}

fn outcome(report: Report) -> ScrapeOutcome {
    match report.error_count {
        0 => ScrapeOutcome::Complete,
        error_count => ScrapeOutcome::Partial { error_count, errors: report.errors },
    }
}

fn parse_url(text: &str) -> Result<Url, ScrapeConfigError> {
    // The text itself may hold a password, so an error does not repeat it.
    let url = Url::parse(text).map_err(|error| ScrapeConfigError::Url(error.to_string()))?;
    match (url.scheme(), url.host_str()) {
        ("http" | "https", Some(_)) => Ok(url),
        (scheme, _) => Err(ScrapeConfigError::Url(format!("found scheme {scheme:?}, expected http or https"))),
    }
}

fn instance(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests;
