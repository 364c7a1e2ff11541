//! The repository's own recordings as inputs.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;

use watchfire_collector::input::{InputOptions, open};
use watchfire_collector::recording::Moment;

fn moments(file: &str) -> Vec<Moment> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    open(&path, &InputOptions::default()).unwrap().map(Result::unwrap).collect()
}

/// Seconds since the first moment, and the temperature, at each change of it.
fn changes(moments: &[Moment]) -> Vec<(i64, f64)> {
    let begin = moments[0].time.as_millis();
    let mut changes: Vec<(i64, f64)> = Vec::new();
    for moment in moments {
        let temperature = moment.observations.iter().find(|one| &*one.series.metric == "gpu_temperature_celsius");
        let value = temperature.unwrap().value;
        if changes.last().is_none_or(|(_, last)| *last != value) {
            changes.push(((moment.time.as_millis() - begin) / 1000, value));
        }
    }
    changes
}

#[test]
fn the_same_heat_in_our_words_and_in_those_of_dcgm_is_the_same() {
    let (ours, dcgm) = (moments("tests/data/hot.om"), moments("tests/data/hot-dcgm.om"));
    assert_eq!(ours, dcgm);
    assert_eq!(changes(&ours), [(0, 70.0), (120, 86.0), (480, 92.0), (660, 70.0)]);
    assert_eq!(ours.last().unwrap().time.as_millis() - ours[0].time.as_millis(), 1_260_000);
}

#[test]
fn the_short_heat_lasts_a_quarter_minute_less_than_five() {
    let moments = moments("tests/data/short-heat.om");
    let hot: Vec<i64> = moments
        .iter()
        .filter(|moment| moment.observations.iter().any(|one| one.value == 86.0))
        .map(|moment| moment.time.as_millis())
        .collect();
    assert_eq!(hot.last().unwrap() - hot[0], 285_000);
}

#[test]
fn the_swings_go_over_and_under_85() {
    let changes = changes(&moments("tests/data/swings.om"));
    assert_eq!(changes.len(), 41);
    assert_eq!((changes[0], changes[1], changes[40]), ((0, 84.0), (30, 86.0), (1200, 79.0)));
}

#[test]
fn a_csv_of_another_house_reads_with_its_columns_named() {
    let root = std::env::var_os("WATCHFIRE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join("data/nab/data/realKnownCause/machine_temperature_system_failure.csv");
    if !path.exists() {
        println!("skipped: {} is absent", path.display());
        return;
    }
    let csv = ["time=timestamp", "metric:machine_temperature=value"].map(|column| column.parse().unwrap());
    let options = InputOptions { csv: csv.to_vec(), ..InputOptions::default() };
    let values: usize = open(&path, &options).unwrap().map(|moment| moment.unwrap().observations.len()).sum();
    assert_eq!(values, 22_695 - 12, "one hour of 2014-01-07 stands twice, a value each 5 minutes");
}

#[test]
fn the_demos_recording_reads_and_says_that_it_is_synthetic() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../src/demo/host.rec");
    let mut input = open(&path, &InputOptions::default()).unwrap();
    assert!(input.header().synthetic().is_some());
    assert_eq!(input.header().injected().count(), 3);
    assert_eq!(input.by_ref().map(Result::unwrap).count(), 169);
    assert_eq!(input.note(), None);
}
