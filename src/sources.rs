//! Starts what a configuration says is to be read. Each source has a thread or a task of its own.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use watchfire_collector::nvml::{self, NvmlConfig, NvmlHandle, NvmlSource};
use watchfire_collector::scrape::{ScrapeConfig, ScrapeOutcome, ScrapeReport, Scraper};
use watchfire_engine::clock::rfc3339;
use watchfire_engine::config::{Config, ScrapeSource};
use watchfire_engine::{Cause, Condition, Labels, Severity, Time};

use crate::commands::{Input, now};
use crate::config;
use crate::exit::Failure;

/// The alert of a source that does not answer.
const SOURCE_DOWN: &str = "WatchfireSourceDown";
/// NVML is told as silent where no poll has ended for so many intervals, and for [`SILENCE_MIN`].
const SILENT_POLLS: u32 = 10;
/// Slow drivers take seconds for a poll: less than this is no silence.
const SILENCE_MIN: Duration = Duration::from_secs(30);
/// Failed scrapes in a row after which a target is told as down.
const FAILURES_MAX: u32 = 2;

/// Running sources; they end when this is dropped.
pub struct Running {
    nvml: Option<Watched>,
    pages: Vec<Page>,
    _scrapes: Option<oneshot::Sender<()>>,
}

/// A page that is scraped, and how that goes.
#[derive(Clone)]
struct Page {
    labels: Labels,
    state: Arc<Mutex<PageState>>,
}

#[derive(Default)]
struct PageState {
    read_at: Option<Time>,
    /// In a row.
    failures: u32,
    samples: u64,
    last_error: Option<String>,
}

/// The NVML reader, and whether it has been told as silent.
struct Watched {
    handle: NvmlHandle,
    interval: Duration,
    host: String,
    /// What was told last: whether it is silent.
    told: Option<bool>,
}

impl Running {
    /// How each source did when it was last read.
    pub fn status(&self) -> Vec<serde_json::Value> {
        let nvml = self.nvml.iter().map(|nvml| {
            let finished = nvml.handle.has_finished().then(|| rfc3339(nvml.handle.finished_at()));
            json!({"source": "nvml", "read_at": finished, "polls_missed": nvml.handle.polls_missed()})
        });
        let page = |page: &Page| {
            let state = page.state.lock().unwrap_or_else(PoisonError::into_inner);
            let labels: BTreeMap<&str, &str> = page.labels.iter().collect();
            json!({"source": "scrape", "labels": labels, "read_at": state.read_at.map(rfc3339), "failures": state.failures,
                   "samples": state.samples, "last_error": state.last_error})
        };
        nvml.chain(self.pages.iter().map(page)).collect()
    }

    /// What a source's silence, or its end, is to be told as: a driver call that hangs tells nothing by itself.
    pub fn silence(&mut self, now: Time) -> Option<Condition> {
        let nvml = self.nvml.as_mut()?;
        let silent_for = now.since(nvml.handle.finished_at());
        let is_silent = silent_for > SILENCE_MIN.max(nvml.interval * SILENT_POLLS);
        let is_known = is_silent || nvml.handle.has_finished();
        if !is_known || (!is_silent && nvml.told == Some(false)) {
            return None;
        }
        nvml.told = Some(is_silent);
        Some(Condition {
            alert: SOURCE_DOWN.into(),
            labels: Labels::new([("host", nvml.host.as_str()), ("instance", "nvml")]),
            raise: is_silent.then_some(Severity::Warning),
            cause: Cause::Telemetry,
            note: "NVML has not answered: a call hangs in the driver, and its GPUs are not watched".to_owned(),
        })
    }
}

/// Starts the sources; what they read goes to `sender`.
pub fn start(config: &Config, sender: SyncSender<Input>) -> Result<Running, Failure> {
    let host = config::host_name(Some(config));
    let nvml = match &config.sources.nvml {
        Some(source) => Some(start_nvml(source, &host, sender.clone())?),
        None => None,
    };
    if config.sources.scrape.is_empty() {
        return Ok(Running { nvml, pages: Vec::new(), _scrapes: None });
    }
    let (pages, scrapes) = start_scrapes(config, sender)?;
    Ok(Running { nvml, pages, _scrapes: Some(scrapes) })
}

fn start_nvml(
    source: &watchfire_engine::config::NvmlSource,
    host: &str,
    sender: SyncSender<Input>,
) -> Result<Watched, Failure> {
    let config = NvmlConfig { library: source.library.clone(), interval: source.interval, host: host.to_owned() };
    let sink = move |observations| {
        hand_over(&sender, Input::Observations(observations));
    };
    let handle = nvml::spawn(NvmlSource::new(config), now, sink).map_err(Failure::could_not)?;
    Ok(Watched { handle, interval: source.interval, host: host.to_owned(), told: None })
}

/// Hands an input over without waiting: a source that waits would read late. False where the engine has ended.
fn hand_over(sender: &SyncSender<Input>, input: Input) -> bool {
    match sender.try_send(input) {
        Ok(()) => true,
        Err(TrySendError::Full(_)) => {
            tracing::warn!("the engine is overloaded; what a source read was left out");
            true
        }
        Err(TrySendError::Disconnected(_)) => false,
    }
}

/// All scrapes share one thread; they end when the sender that is given back is dropped.
fn start_scrapes(config: &Config, sender: SyncSender<Input>) -> Result<(Vec<Page>, oneshot::Sender<()>), Failure> {
    let sources = &config.sources.scrape;
    let scraper = |source| Scraper::new(scrape_config(source)).map_err(Failure::wrong);
    let scrapers = sources.iter().map(scraper).collect::<Result<Vec<_>, Failure>>()?;
    let names = identities(sources, &scrapers).into_iter();
    let pages: Vec<Page> = names.map(|labels| Page { labels, state: Arc::default() }).collect();
    let watched = pages.clone();
    let intervals: Vec<Duration> = sources.iter().map(|source| source.interval).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::could_not)?;
    let (running, ended) = oneshot::channel();
    let work = move || {
        runtime.block_on(async {
            for ((scraper, page), interval) in scrapers.into_iter().zip(watched).zip(intervals) {
                tokio::spawn(scrape(scraper, page, interval, sender.clone()));
            }
            // Nothing is ever sent: the sender's end is what is waited for.
            let _ = ended.await;
        });
    };
    std::thread::Builder::new().name("watchfire-scrape".into()).spawn(work).map_err(Failure::could_not)?;
    Ok((pages, running))
}

fn scrape_config(source: &ScrapeSource) -> ScrapeConfig {
    ScrapeConfig {
        interval: source.interval,
        timeout: source.timeout,
        host: source.host.clone(),
        labels: Labels::new(source.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
        strict: source.strict,
        ..ScrapeConfig::new(source.url.clone())
    }
}

async fn scrape(mut scraper: Scraper, page: Page, interval: Duration, sender: SyncSender<Input>) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failures = 0;
    loop {
        ticks.tick().await;
        let report = scraper.scrape(now()).await;
        failures = if matches!(report.outcome, ScrapeOutcome::Failed(_)) { failures + 1 } else { 0 };
        page.note(now(), failures, &report);
        let condition = source_down(&page.labels, failures, &report.outcome);
        let told = condition.is_none_or(|condition| hand_over(&sender, Input::Condition(condition)));
        if !told || !hand_over(&sender, Input::Observations(report.observations)) {
            return;
        }
    }
}

impl Page {
    fn note(&self, at: Time, failures: u32, report: &ScrapeReport) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.failures, state.samples) = (failures, report.samples);
        match &report.outcome {
            ScrapeOutcome::Failed(why) => state.last_error = Some(why.to_string()),
            _ => state.read_at = Some(at),
        }
    }
}

/// What tells each page from the others in its condition: several may be on one host and port.
fn identities(sources: &[ScrapeSource], scrapers: &[Scraper]) -> Vec<Labels> {
    let (mut known, mut seen) = (Vec::new(), Vec::<Labels>::new());
    for (source, scraper) in sources.iter().zip(scrapers) {
        let path = path_of(&source.url);
        let own = source.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let path = Some(("path", path)).filter(|(_, path)| *path != "/metrics");
        let labels = Labels::new(own.chain(path).chain([("instance", scraper.instance())]));
        let same = seen.iter().filter(|other| **other == labels).count();
        let nth = (same > 0).then(|| ("page", (same + 1).to_string()));
        seen.push(labels.clone());
        known.push(labels.with(&Labels::new(nth)));
    }
    known
}

/// The path of an address, without its query, which may hold a secret.
fn path_of(url: &str) -> &str {
    let behind = url.split_once("://").map_or(url, |(_, behind)| behind);
    let path = behind.find('/').map_or("/", |at| &behind[at..]);
    path.split(['?', '#']).next().unwrap_or("/")
}

/// None after the first failures: they neither say that it is down nor that it answers.
fn source_down(labels: &Labels, failures: u32, outcome: &ScrapeOutcome) -> Option<Condition> {
    if (1..FAILURES_MAX).contains(&failures) {
        return None;
    }
    let instance = labels.get("instance").unwrap_or_default();
    let why = match outcome {
        ScrapeOutcome::Failed(failure) => failure.to_string(),
        _ => String::new(),
    };
    Some(Condition {
        alert: SOURCE_DOWN.into(),
        labels: labels.clone(),
        raise: (failures >= FAILURES_MAX).then_some(Severity::Warning),
        cause: Cause::Telemetry,
        note: format!("{instance}{} cannot be scraped: {why}", labels.get("path").unwrap_or_default()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn source(url: &str, labels: &[(&str, &str)]) -> ScrapeSource {
        ScrapeSource {
            url: url.to_owned(),
            interval: Duration::from_secs(15),
            timeout: Duration::from_secs(10),
            host: None,
            labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            strict: false,
        }
    }

    #[test]
    fn pages_on_one_port_have_conditions_of_their_own() {
        let sources = [
            source("http://127.0.0.1:9400/metrics", &[]),
            source("http://127.0.0.1:9400/other?token=secret", &[]),
            source("http://127.0.0.1:9400/metrics", &[("engine", "1")]),
            source("http://127.0.0.1:9400/metrics", &[]),
        ];
        let scrapers: Vec<Scraper> =
            sources.iter().map(|source| Scraper::new(scrape_config(source)).unwrap()).collect();
        let names: Vec<String> = identities(&sources, &scrapers).iter().map(Labels::to_string).collect();
        assert_eq!(
            names,
            [
                r#"{instance="127.0.0.1:9400"}"#,
                r#"{instance="127.0.0.1:9400", path="/other"}"#,
                r#"{engine="1", instance="127.0.0.1:9400"}"#,
                r#"{instance="127.0.0.1:9400", page="2"}"#,
            ]
        );
    }

    #[test]
    fn a_driver_call_that_hangs_is_told_and_so_is_its_end() {
        let library = Some("/nonexistent/libnvidia-ml.so.1".into());
        let config = NvmlConfig { library, interval: Duration::from_secs(1), host: "h1".into() };
        let (sender, polled) = std::sync::mpsc::channel();
        let handle =
            nvml::spawn(NvmlSource::new(config), || Time::EPOCH, move |_| sender.send(()).unwrap_or_default()).unwrap();
        polled.recv().unwrap();
        let nvml = Some(Watched { handle, interval: Duration::from_secs(1), host: "h1".into(), told: None });
        let mut running = Running { nvml, pages: Vec::new(), _scrapes: None };
        let mut raised = |second: i64| {
            let told = running.silence(Time::from_millis(second * 1000));
            told.map(|condition| (condition.labels.get("instance").map(str::to_owned), condition.raise))
        };
        let nvml = |raise| Some((Some("nvml".to_owned()), raise));
        assert_eq!(raised(1), nvml(None), "what was told before a restart ends");
        assert_eq!(raised(30), None);
        assert_eq!(raised(31), nvml(Some(Severity::Warning)));
        assert_eq!(raised(2), nvml(None));
        assert_eq!(raised(3), None);
    }

    #[test]
    fn one_failure_says_neither_that_a_page_is_down_nor_that_it_is_up() {
        let labels = Labels::new([("instance", "a:1")]);
        let raised =
            |failures| source_down(&labels, failures, &ScrapeOutcome::Complete).map(|condition| condition.raise);
        assert_eq!((raised(0), raised(1), raised(2)), (Some(None), None, Some(Some(Severity::Warning))));
    }
}
