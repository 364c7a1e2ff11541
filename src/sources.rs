//! Starts what a configuration says is to be read. Each source has a thread or a task of its own.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use tokio::sync::oneshot;
use watchfire_collector::nvml::{self, NvmlConfig, NvmlHandle, NvmlSource};
use watchfire_collector::scrape::{ScrapeConfig, ScrapeOutcome, Scraper};
use watchfire_engine::config::{Config, ScrapeSource};
use watchfire_engine::{Cause, Condition, Labels, Severity};

use crate::commands::{Input, now};
use crate::config;
use crate::exit::Failure;

/// Failed scrapes in a row after which a target is told as down.
const FAILURES_MAX: u32 = 2;

/// Running sources; they end when this is dropped.
pub struct Running {
    _nvml: Option<NvmlHandle>,
    _scrapes: Option<oneshot::Sender<()>>,
}

/// Starts the sources; what they read goes to `sender`.
pub fn start(config: &Config, sender: SyncSender<Input>) -> Result<Running, Failure> {
    let host = config::host_name(Some(config));
    let nvml = match &config.sources.nvml {
        Some(source) => Some(start_nvml(source, &host, sender.clone())?),
        None => None,
    };
    let scrapes = if config.sources.scrape.is_empty() { None } else { Some(start_scrapes(config, sender)?) };
    Ok(Running { _nvml: nvml, _scrapes: scrapes })
}

fn start_nvml(
    source: &watchfire_engine::config::NvmlSource,
    host: &str,
    sender: SyncSender<Input>,
) -> Result<NvmlHandle, Failure> {
    let config = NvmlConfig { library: source.library.clone(), interval: source.interval, host: host.to_owned() };
    let sink = move |observations| {
        hand_over(&sender, Input::Observations(observations));
    };
    nvml::spawn(NvmlSource::new(config), now, sink).map_err(Failure::could_not)
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
fn start_scrapes(config: &Config, sender: SyncSender<Input>) -> Result<oneshot::Sender<()>, Failure> {
    let scrapers = config.sources.scrape.iter().map(|source| {
        let scraper = Scraper::new(scrape_config(source)).map_err(Failure::wrong)?;
        Ok((scraper, source.interval))
    });
    let scrapers = scrapers.collect::<Result<Vec<_>, Failure>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::could_not)?;
    let (running, ended) = oneshot::channel();
    let work = move || {
        runtime.block_on(async {
            for (scraper, interval) in scrapers {
                tokio::spawn(scrape(scraper, interval, sender.clone()));
            }
            // Nothing is ever sent: the sender's end is what is waited for.
            let _ = ended.await;
        });
    };
    std::thread::Builder::new().name("watchfire-scrape".into()).spawn(work).map_err(Failure::could_not)?;
    Ok(running)
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

async fn scrape(mut scraper: Scraper, interval: Duration, sender: SyncSender<Input>) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failures = 0;
    loop {
        ticks.tick().await;
        let report = scraper.scrape(now()).await;
        failures = if matches!(report.outcome, ScrapeOutcome::Failed(_)) { failures + 1 } else { 0 };
        let condition = source_down(scraper.instance(), failures, &report.outcome);
        if !hand_over(&sender, Input::Condition(condition)) {
            return;
        }
        hand_over(&sender, Input::Observations(report.observations));
    }
}

fn source_down(instance: &str, failures: u32, outcome: &ScrapeOutcome) -> Condition {
    let why = match outcome {
        ScrapeOutcome::Failed(failure) => failure.to_string(),
        _ => String::new(),
    };
    Condition {
        alert: "WatchfireSourceDown".into(),
        labels: Labels::new([("instance", instance)]),
        raise: (failures >= FAILURES_MAX).then_some(Severity::Warning),
        cause: Cause::Telemetry,
        note: format!("{instance} cannot be scraped: {why}"),
    }
}
