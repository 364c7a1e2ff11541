//! `docs/reference/metrics.md` is what the data file of the metrics and the tables of mapping say. `UPDATE_EXPECT=1`
//! writes it anew.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;

use watchfire_collector::metrics::{self, Kind, Metric};
use watchfire_core::Scope;

const INTRODUCTION: &str = "# Metrics

The metrics that Watchfire knows, made from [`host-collector/src/metrics.csv`](../../host-collector/src/metrics.csv). Base
units; ratios are 0 to 1. A reading outside the plausible range is dropped and counted. The words of DCGM and node_exporter
are mapped on to these at the door (`host-collector/src/mapping/*.csv`); a metric that is not known passes under its own name.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let scopes = [(Scope::Gpu, "Of each GPU"), (Scope::Host, "Of the host"), (Scope::Device, "Of other devices")];
    for (scope, title) in scopes {
        writeln!(
            page,
            "\n## {title}\n\n| metric | unit | kind | plausible | what it is |\n| --- | --- | --- | --- | --- |"
        )
        .unwrap();
        metrics::all().iter().filter(|metric| metric.scope == scope).for_each(|metric| write_row(&mut page, metric));
    }
    page
}

fn write_row(page: &mut String, metric: &Metric) {
    let kind = if metric.kind == Kind::Counter { "counter" } else { "gauge" };
    let Metric { name, unit, help, .. } = metric;
    writeln!(page, "| `{name}` | {unit} | {kind} | {} | {} |", plausible(metric), help.replace('|', "\\|")).unwrap();
}

fn plausible(metric: &Metric) -> String {
    let range = metric.range;
    let above = if range.min_outside { "above" } else { "from" };
    match (range.min.is_finite(), range.max.is_finite()) {
        (true, true) => format!("{above} {} to {}", range.min, range.max),
        (true, false) => format!("{above} {}", range.min),
        (false, true) => format!("to {}", range.max),
        (false, false) => "all".to_owned(),
    }
}

#[test]
fn the_catalogue_is_that_of_the_data() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/metrics.md");
    let expected = page();
    let rows = expected.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, metrics::all().len(), "a metric has a scope without a chapter");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let shipped = std::fs::read_to_string(&file).unwrap();
    assert!(shipped == expected, "run `UPDATE_EXPECT=1 cargo test -p watchfire-collector --test catalogue`");
}
