//! Six rules that the contract must be able to say. Each fires where it should and not where it should not.
#![allow(clippy::unwrap_used, reason = "tests")]

use watchfire_sdk::prelude::*;
use watchfire_sdk::testing::Bench;

#[derive(serde::Deserialize)]
struct NoSettings {}

/// A rule without settings: its shape and its judgement.
macro_rules! rule {
    ($name:ident, $shape:expr, |$rows:ident, $report:ident| $judge:block) => {
        struct $name;
        impl Rule for $name {
            type Settings = NoSettings;
            const NAME: &'static str = stringify!($name);
            const VERSION: &'static str = "0.1.0";
            fn new(_: NoSettings) -> Result<Self, Vec<SettingError>> {
                Ok($name)
            }
            fn shape(_: Option<&Self>) -> Shape {
                $shape
            }
            fn evaluate(&mut self, $rows: &Rows<'_>, $report: &mut Report) -> Result<(), String> {
                $judge;
                Ok(())
            }
        }
    };
}

const DAY: u64 = 86_400;

// The same application Xid on one card, from two jobs: the card, not the job.
rule!(
    XidRepeat,
    Shape::of(Scope::Gpu).input(events("xid", &[13, 31, 43, 45, 94], EventStat::Count, DAY)).input(events(
        "xid",
        &[13, 31, 43, 45, 94],
        EventStat::DistinctJobs,
        DAY
    )),
    |rows, report| {
        for (row, count) in rows.values(0) {
            if count >= 2.0 && rows.get(1, row).unwrap_or(0.0) >= 2.0 {
                report.hit(row, Level::Warning, Level::Warning, count).cause = Cause::Hardware;
            }
        }
    }
);

// Hardware slowdown in more than 60 % of ten minutes.
rule!(
    ThrottleShare,
    Shape::of(Scope::Gpu).input(window("gpu_throttle_hw_slowdown", Aggregate::Mean, 600)),
    |rows, report| {
        for (row, share) in rows.values(0).filter(|(_, share)| *share > 0.6) {
            report.hit(row, Level::Critical, Level::Critical, share);
        }
    }
);

// The 99th percentile of the time to the first token, from a histogram.
rule!(
    FirstToken,
    Shape::of(Scope::Host)
        .input(window("vllm:time_to_first_token_seconds", Aggregate::HistogramQuantile(0.99), 300).of(Scope::Host)),
    |rows, report| {
        for (row, seconds) in rows.values(0).filter(|(_, seconds)| *seconds > 2.0) {
            report.hit(row, Level::Warning, Level::Warning, seconds);
        }
    }
);

// Corrected errors that grow: the rate doubles against what was kept as usual for this card.
rule!(
    EccSlope,
    Shape::of(Scope::Gpu)
        .input(window("gpu_ecc_corrected_total", Aggregate::Rate, 3600))
        .state(1, 1)
        .output("gpu_ecc_corrected_usual"),
    |rows, report| {
        for (row, rate) in rows.values(0) {
            let usual = rows.state(0)[row];
            report.set_state(rows, 0, row, if usual == 0.0 { rate } else { 0.95 * usual + 0.05 * rate });
            report.derive(0, row, usual);
            if usual > 0.0 && rate > 2.0 * usual {
                report.hit(row, Level::Warning, Level::Warning, rate / usual);
            }
        }
    }
);

// A GPU that told of itself within the day and does not any more: missing is a state that a rule can see.
rule!(VanishedGpu, Shape::of(Scope::Gpu).input(last("gpu_up").optional()), |rows, report| {
    for row in (0..rows.len()).filter(|row| rows.quality(0)[*row] == 2) {
        report.hit(row, Level::Critical, Level::Critical, 0.0).cause = Cause::Hardware;
    }
});

// A rank that is slower than the median of its job.
rule!(Straggler, Shape::of(Scope::Rank).input(last("rank_step_seconds")).group_by("job_id"), |rows, report| {
    for group in 0..rows.groups() as u32 {
        let mut steps: Vec<f64> =
            rows.values(0).filter(|(row, _)| rows.group(*row) == group).map(|(_, step)| step).collect();
        steps.sort_by(f64::total_cmp);
        let Some(median) = steps.get(steps.len() / 2).copied() else { continue };
        for (row, step) in rows.values(0).filter(|(row, step)| rows.group(*row) == group && *step > median / 0.75) {
            let note = report.note(format!("{:.2} of the job's median", step / median));
            report.hit(row, Level::Warning, Level::Warning, step).note = Some(note);
        }
    }
});

fn hits<R: Rule>(bench: &mut Bench<R>, columns: &[&[f64]]) -> Vec<u32> {
    bench.tick(columns).unwrap().hits.iter().map(|hit| hit.row).collect()
}

#[test]
fn an_xid_that_follows_the_card_is_the_cards() {
    let mut bench = Bench::<XidRepeat>::new("{}").unwrap();
    assert_eq!(hits(&mut bench, &[&[3.0, 3.0, 1.0], &[2.0, 1.0, 1.0]]), [0], "one job, or one Xid, is not enough");
}

#[test]
fn slowdown_most_of_the_time_is_critical() {
    let mut bench = Bench::<ThrottleShare>::new("{}").unwrap();
    assert_eq!(hits(&mut bench, &[&[0.7, 0.6, f64::NAN]]), [0]);
}

#[test]
fn a_late_first_token_is_told() {
    let mut bench = Bench::<FirstToken>::new("{}").unwrap();
    assert_eq!(hits(&mut bench, &[&[2.5, 1.9]]), [0]);
}

#[test]
fn growing_errors_are_seen_against_the_cards_own_past() {
    let mut bench = Bench::<EccSlope>::new("{}").unwrap();
    assert_eq!(hits(&mut bench, &[&[1.0, 1.0]]), [] as [u32; 0], "no past yet");
    assert_eq!(hits(&mut bench, &[&[1.1, 2.5]]), [1]);
}

#[test]
fn a_gpu_that_fell_silent_is_not_one_that_never_was() {
    let mut bench = Bench::<VanishedGpu>::new("{}").unwrap();
    assert_eq!(hits(&mut bench, &[&[1.0, f64::NAN]]), [] as [u32; 0], "missing (1) is not stale (2)");
    bench.quality = Some(vec![0, 2]);
    assert_eq!(hits(&mut bench, &[&[1.0, 0.0]]), [1], "it was there and fell silent");
}

#[test]
fn a_slow_rank_is_named_within_its_own_job() {
    let mut bench = Bench::<Straggler>::new("{}").unwrap();
    bench.groups = vec![0, 0, 0, 1, 1, 1];
    assert_eq!(hits(&mut bench, &[&[1.0, 1.0, 1.5, 3.0, 3.0, 3.1]]), [2], "the other job is slow as a whole");
}
