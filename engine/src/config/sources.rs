//! The `sources:` of a host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use watchfire_door::{Errors, Map, Node};

use super::recording::RecordingSource;

/// What is read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// NVML; none = not read.
    pub nvml: Option<NvmlSource>,
    /// Prometheus pages.
    pub scrape: Vec<ScrapeSource>,
    /// Recorded samples in place of all others.
    pub recording: Option<RecordingSource>,
}

/// How NVML is read.
#[derive(Clone, Debug)]
pub struct NvmlSource {
    /// How often.
    pub interval: Duration,
    /// The library; `libnvidia-ml.so.1` if none.
    pub library: Option<PathBuf>,
}

impl Default for NvmlSource {
    fn default() -> Self {
        NvmlSource { interval: Duration::from_secs(1), library: None }
    }
}

/// How one Prometheus page is read.
#[derive(Clone, Debug)]
pub struct ScrapeSource {
    /// Where.
    pub url: String,
    /// How often.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The label `host` of what it tells, where the page itself names none.
    pub host: Option<String>,
    /// More labels.
    pub labels: Vec<(String, String)>,
    /// Whether one bad line refuses the whole page.
    pub strict: bool,
}

impl Sources {
    pub(super) fn read(node: Option<Node>, folder: &Path, errors: &mut Errors) -> Self {
        let Some(mut map) = node.and_then(|node| node.map(errors)) else { return Sources::default() };
        let nvml = map.take("nvml").and_then(|node| nvml(&node, errors));
        let pages = map.take("scrape").and_then(|node| node.list(errors)).unwrap_or_default();
        let scrape: Vec<ScrapeSource> = pages.iter().filter_map(|node| page(node, errors)).collect();
        let node = map.take("recording");
        let recording = node.as_ref().and_then(|node| RecordingSource::read(node, folder, errors));
        if let (Some(node), true) = (&node, nvml.is_some() || !scrape.is_empty()) {
            let hint = "take out `nvml` and `scrape`, or run the recording by a configuration of its own";
            errors.hint(node.place(), "a recording is played alone: its time is not that of other sources", hint);
        }
        map.finish(errors);
        Sources { nvml, scrape, recording }
    }
}

fn nvml(node: &Node, errors: &mut Errors) -> Option<NvmlSource> {
    // `nvml:` alone means its defaults.
    if node.as_text() == Some("") {
        return Some(NvmlSource::default());
    }
    let mut map = node.map(errors)?;
    let interval = span(&mut map, "interval", NvmlSource::default().interval, errors);
    let library = map.take("library").and_then(|node| node.word(errors)).map(PathBuf::from);
    map.finish(errors);
    Some(NvmlSource { interval, library })
}

fn page(node: &Node, errors: &mut Errors) -> Option<ScrapeSource> {
    let mut map = node.map(errors)?;
    let url = map.require("url", errors).and_then(|node| node.parse_with(errors, page_url));
    let interval = span(&mut map, "interval", Duration::from_secs(15), errors);
    let timeout = span(&mut map, "timeout", interval.min(Duration::from_secs(10)), errors);
    let labels = map.take("labels").and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
    let source = ScrapeSource {
        url: url.unwrap_or_default(),
        interval,
        timeout,
        host: map.take("host").and_then(|node| node.word(errors)),
        labels: labels.into_iter().filter_map(|(name, _, node)| Some((name, node.text(errors)?))).collect(),
        strict: map.take("strict").and_then(|node| node.bool(errors)).unwrap_or(false),
    };
    map.finish(errors);
    Some(source)
}

fn page_url(text: &str) -> Result<String, String> {
    let good = text.starts_with("http://") || text.starts_with("https://");
    if good { Ok(text.to_owned()) } else { Err(format!("{text:?} is no page; expected http://… or https://…")) }
}

fn span(map: &mut Map, key: &str, default: Duration, errors: &mut Errors) -> Duration {
    let Some(node) = map.take(key) else { return default };
    let span = node.duration(errors).unwrap_or(default);
    if span.is_zero() {
        errors.add(node.place(), format!("`{key}` must be longer than 0s"));
    }
    span
}
