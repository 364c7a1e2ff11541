//! Metrics and their labels, from Prometheus' words into ours.

use promql_parser::label::{MatchOp, Matcher as Foreign};
use promql_parser::parser::VectorSelector;
use watchfire_collector::mapping::{LabelFate, Tables};
use watchfire_engine::Matcher;

use super::Refusal;

/// Labels that Prometheus' service discovery gives, and no exporter.
const DISCOVERED: [&str; 9] =
    ["cluster", "namespace", "pod", "container", "service", "endpoint", "node", "prometheus", "region"];

/// A selector in our words.
pub(super) struct Selector {
    /// The metric as Prometheus calls it.
    pub foreign: String,
    /// The metric with its labels, as an expression has them.
    pub text: String,
    /// One of Prometheus' units is so many of ours.
    pub scale: f64,
}

/// Puts a selector into our words.
pub(super) fn convert(selector: &VectorSelector, remarks: &mut Vec<String>) -> Result<Selector, Refusal> {
    if selector.offset.is_some() {
        return Err(Refusal::new(selector, "`offset` looks at another time; a template looks at now and back from it")
            .instead("compare a window with a longer one, or remember the value in a module's state"));
    }
    if selector.at.is_some() {
        return Err(Refusal::new(selector, "`@` looks at a fixed time; a template looks at now and back from it"));
    }
    let Some(foreign) = selector.name.clone() else {
        return Err(Refusal::new(selector, "it names no metric").instead("write one rule for each metric"));
    };
    if !selector.matchers.or_matchers.is_empty() {
        return Err(Refusal::new(selector, "labels joined by `or` are not of Prometheus"));
    }
    let only = selector.matchers.matchers.iter().filter(|one| one.name != "__name__");
    let only: Vec<String> =
        only.filter_map(|one| matcher(&foreign, one, remarks).transpose()).collect::<Result<_, _>>()?;
    if foreign == "up" && !selector.matchers.matchers.iter().any(|one| one.name == "job" && one.op == MatchOp::Equal) {
        return Err(Refusal::new(selector, "the targets of one host would be one row: `up` differs by `job` and `instance`, which say where a sample came from")
            .instead("write `up{job=\"…\"}`, one rule for each job"));
    }
    let (ours, scale) = Tables::built_in().ours(&foreign).unwrap_or((&foreign, 1.0));
    if ours == foreign {
        // A metric that nobody knows passes under its own name.
    } else {
        add(remarks, format!("{foreign} is {ours} here{}", unit(scale)));
    }
    let only = if only.is_empty() { String::new() } else { format!("{{{}}}", only.join(",")) };
    Ok(Selector { text: format!("{ours}{only}"), foreign, scale })
}

fn unit(scale: f64) -> String {
    let words = match scale {
        1.0 => return String::new(),
        0.01 => "a ratio, no percentage".to_owned(),
        0.001 => "in thousands of its unit".to_owned(),
        1_048_576.0 => "bytes, no MiB".to_owned(),
        1e6 => "in the base unit, no mega".to_owned(),
        other => format!("times {other}"),
    };
    format!(" ({words}); thresholds are changed to that")
}

/// A remark once, however often the metric stands there.
pub(super) fn add(remarks: &mut Vec<String>, remark: String) {
    if !remarks.contains(&remark) {
        remarks.push(remark);
    }
}

/// A matcher in our words; none where it is left out with a remark.
fn matcher(metric: &str, foreign: &Foreign, remarks: &mut Vec<String>) -> Result<Option<String>, Refusal> {
    let label = foreign.name.as_str();
    if label == "job" && metric != "up" {
        add(
            remarks,
            format!("`{foreign}` is left out: each source of Watchfire is one exporter, and its samples have no `job`"),
        );
        return Ok(None);
    }
    if label == "job" || DISCOVERED.contains(&label) {
        add(remarks, format!("`{label}` is no label of the exporter: give it to the source by `labels:`"));
    }
    let name = match Tables::built_in().label(metric, label) {
        LabelFate::Stays => label.to_owned(),
        LabelFate::Renamed { to, rewritten: false } => to,
        LabelFate::Dropped => {
            return Err(Refusal::new(
                foreign,
                format!("the label `{label}` of {metric} does not pass Watchfire's door"),
            ));
        }
        LabelFate::Renamed { to, rewritten: true } => {
            return Err(Refusal::new(
                foreign,
                format!("the label `{label}` is `{to}` here, and written in another way"),
            )
            .instead("choose by `gpu` or `UUID`"));
        }
    };
    let escaped = foreign.value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let text = format!("{name}{}\"{escaped}\"", foreign.op);
    let read = Matcher::parse(&text).map_err(|error| Refusal::new(foreign, error.to_string()))?;
    Ok(Some(read.to_string()))
}

/// The label of a metric in our words; none where it does not pass.
pub(super) fn label(metrics: &[String], foreign: &str) -> Option<String> {
    let fate = metrics.first().map(|metric| Tables::built_in().label(metric, foreign));
    match fate {
        None | Some(LabelFate::Stays) => Some(foreign.to_owned()),
        Some(LabelFate::Renamed { to, .. }) => Some(to),
        Some(LabelFate::Dropped) => None,
    }
}

/// Labels that, with `instance`, tell the series of a family of metrics apart.
const FAMILIES: [(&str, &[&str]); 6] = [
    ("node_filesystem_", &["device", "mountpoint"]),
    ("node_disk_", &["device"]),
    ("node_network_", &["device"]),
    ("node_memory_", &[]),
    ("DCGM_FI_", &["gpu"]),
    ("DCGM_FI_", &["UUID"]),
];

/// Whether `on (labels)` matches the series of these metrics as matching by all labels does.
pub(super) fn identifies(metrics: &[&String], labels: &[String]) -> bool {
    let has = |name: &str| labels.iter().any(|label| label == name);
    FAMILIES.iter().any(|(prefix, needed)| {
        let is_placed = has("instance") || needed.contains(&"UUID");
        metrics.iter().all(|metric| metric.starts_with(prefix)) && is_placed && needed.iter().all(|label| has(label))
    })
}
