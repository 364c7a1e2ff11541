//! The parser against pages of real exporters and the reference parser's cases.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::time::Instant;

use watchfire_collector::exposition::{Format, Options, Report, parse};

/// The shared data sets, where they are.
fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("WATCHFIRE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let found = root.join("data/exposition").join(path);
    if found.exists() {
        return Some(found);
    }
    println!("skipped: {} is absent", found.display());
    None
}

fn count(page: &[u8], format: Format) -> (u64, Report) {
    let mut samples = 0;
    let report = parse(page, &Options::new(format), &mut |_| samples += 1).unwrap();
    (samples, report)
}

fn format_of(file: &str) -> Format {
    if file.ends_with(".om.txt") { Format::OpenMetrics } else { Format::Text }
}

/// Pages that hold errors on purpose; they are judged by the reference parser's cases below.
fn is_erroneous(file: &str) -> bool {
    file.contains("_error_") || file.contains("non_matching") || file.ends_with("/minimal")
}

#[test]
fn no_sample_of_the_reference_pages_is_lost() {
    let Some(counts) = shared("reference_counts.csv") else { return };
    let mut compared = 0;
    for row in csv::Reader::from_path(&counts).unwrap().records() {
        let row = row.unwrap();
        let file = &row[0];
        // Python refuses negative sums, which Go and we accept; its lines are counted by hand (none is lost).
        let expected = if file.ends_with("alltypes.5mfs.om.txt") { "53" } else { &row[4] };
        if is_erroneous(file) {
            continue;
        }
        let page = std::fs::read(counts.with_file_name(file)).unwrap();
        let (samples, report) = count(&page, format_of(file));
        assert_eq!(samples.to_string(), expected, "{file}: {:?}", report.errors);
        assert_eq!(report.error_count, 0, "{file}: {:?}", report.errors);
        compared += 1;
    }
    println!("{compared} pages compared");
    assert!(compared > 40);
}

#[test]
fn the_reference_cases_agree() {
    let Some(cases) = shared("prometheus-common/parse_error_cases.jsonl") else { return };
    let (mut agree, mut total) = (0, 0);
    for line in std::fs::read_to_string(cases).unwrap().lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let input: Vec<u8> = case["input_latin1"].as_str().unwrap().chars().map(|c| c as u8).collect();
        let expected = case["err_utf8_scheme"].as_str().filter(|error| !error.is_empty());
        let report = count(&input, Format::Text).1;
        total += 1;
        agree += u32::from(expected.is_some() == (report.error_count > 0));
        assert_eq!(expected.is_some(), report.error_count > 0, "{case}: {:?}", report.errors);
    }
    println!("{agree} of {total} cases agree");
    assert_eq!((agree, total), (48, 48));
}

#[test]
fn openmetrics_pages_are_openmetrics_only() {
    for file in ["prometheus/alltypes.5mfs.om.txt", "prometheus/1histogram.om.txt"] {
        let Some(path) = shared(file) else { return };
        let page = std::fs::read(path).unwrap();
        assert!(count(&page, Format::Text).1.error_count > 0, "{file}");
        assert_eq!(count(&page, Format::OpenMetrics).1.error_count, 0, "{file}");
    }
}

#[test]
fn a_big_page_is_read_quickly() {
    let Some(path) = shared("node_exporter/collector/fixtures/e2e-output.txt") else { return };
    let page = std::fs::read(path).unwrap();
    let start = Instant::now();
    let (samples, report) = count(&page, Format::Text);
    let took = start.elapsed();
    println!("{} KB, {samples} samples in {took:?}", page.len() / 1000);
    assert_eq!((samples, report.error_count), (3027, 0));
    // 20 ms is the aim for an optimised build; this only catches a parser gone quadratic.
    assert!(took.as_millis() < 2000, "{took:?}");
}
