//! Starts what a configuration says is to be read. Each source has a thread or a task of its own.

use std::sync::mpsc::Sender;
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
pub fn start(config: &Config, sender: Sender<Input>) -> Result<Running, Failure> {
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
    sender: Sender<Input>,
) -> Result<NvmlHandle, Failure> {
    let config = NvmlConfig { library: source.library.clone(), interval: source.interval, host: host.to_owned() };
    // The engine's end is the process' end: nobody is left to be told that a send failed.
    let sink = move |observations| drop(sender.send(Input::Observations(observations)));
    nvml::spawn(NvmlSource::new(config), sink).map_err(Failure::could_not)
}

/// All scrapes share one thread; they end when the sender that is given back is dropped.
fn start_scrapes(config: &Config, sender: Sender<Input>) -> Result<oneshot::Sender<()>, Failure> {
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

async fn scrape(mut scraper: Scraper, interval: Duration, sender: Sender<Input>) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failures = 0;
    loop {
        ticks.tick().await;
        let report = scraper.scrape(now()).await;
        failures = if matches!(report.outcome, ScrapeOutcome::Failed(_)) { failures + 1 } else { 0 };
        let condition = source_down(scraper.instance(), failures, &report.outcome);
        let told = sender.send(Input::Condition(condition));
        if told.and_then(|()| sender.send(Input::Observations(report.observations))).is_err() {
            return;
        }
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
