//! Windows against a model that keeps every sample and computes each aggregate from its definition.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

const PLAIN: [Aggregate; 9] = [
    Aggregate::Last,
    Aggregate::Min,
    Aggregate::Max,
    Aggregate::Mean,
    Aggregate::Sum,
    Aggregate::Count,
    Aggregate::Stddev,
    Aggregate::Slope,
    Aggregate::Quantile(0.9),
];
const COUNTERS: [Aggregate; 2] = [Aggregate::Increase, Aggregate::Rate];

type Reading = (i64, f64);

/// The aggregate by its definition. `samples` are ordered by time.
fn naive(aggregate: Aggregate, samples: &[Reading]) -> Option<f64> {
    let (&(first_at, _), &(last_at, last)) = (samples.first()?, samples.last()?);
    let values = || samples.iter().map(|(_, value)| *value);
    let (n, seconds) = (samples.len() as f64, (last_at - first_at) as f64 / 1000.0);
    let mean = values().sum::<f64>() / n;
    let grown =
        || samples.windows(2).map(|pair| if pair[1].1 >= pair[0].1 { pair[1].1 - pair[0].1 } else { pair[1].1 });
    match aggregate {
        Aggregate::Last => Some(last),
        Aggregate::Min => values().reduce(f64::min),
        Aggregate::Max => values().reduce(f64::max),
        Aggregate::Mean => Some(mean),
        Aggregate::Sum => Some(values().sum()),
        Aggregate::Count => Some(n),
        Aggregate::Stddev => Some((values().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt()),
        Aggregate::Increase => (samples.len() > 1).then(|| grown().sum()),
        Aggregate::Rate => (samples.len() > 1).then(|| grown().sum::<f64>() / seconds),
        Aggregate::Slope => naive_slope(samples, first_at, mean),
        Aggregate::Quantile(quantile) | Aggregate::HistogramQuantile(quantile) => {
            let mut sorted: Vec<f64> = values().collect();
            sorted.sort_by(f64::total_cmp);
            let rank = quantile * (n - 1.0);
            let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
            Some(low + (high - low) * rank.fract())
        }
        Aggregate::PromQl(_) => None,
    }
}

fn naive_slope(samples: &[Reading], first_at: i64, mean: f64) -> Option<f64> {
    let times: Vec<f64> = samples.iter().map(|(at, _)| (at - first_at) as f64 / 1000.0).collect();
    let mean_time = times.iter().sum::<f64>() / times.len() as f64;
    let spread: f64 = times.iter().map(|time| (time - mean_time).powi(2)).sum();
    let products: f64 = times.iter().zip(samples).map(|(time, (_, value))| (time - mean_time) * (value - mean)).sum();
    (spread > 0.0).then(|| products / spread)
}

fn is_close(aggregate: Aggregate, got: Option<f64>, expected: Option<f64>, scale: f64) -> bool {
    let share = if matches!(aggregate, Aggregate::Quantile(_)) { RELATIVE_ACCURACY } else { 1e-9 };
    match (got, expected) {
        (Some(got), Some(expected)) => (got - expected).abs() <= share * scale * 1.001 + 1e-6,
        _ => got.is_some() == expected.is_some(),
    }
}

fn ms(value: i64) -> Time {
    Time::from_millis(value)
}

/// Samples in order, no two of one moment.
fn in_order(steps: &[(i64, f64)]) -> Vec<Reading> {
    let mut at = 1_700_000_000_000;
    let place = |(step, value): &(i64, f64)| {
        at += step;
        (at, *value)
    };
    steps.iter().map(place).collect()
}

fn within(samples: &[Reading], after: i64, until: i64) -> Vec<Reading> {
    let mut inside: Vec<Reading> = samples.iter().filter(|(at, _)| *at > after && *at <= until).copied().collect();
    inside.sort_by_key(|(at, _)| *at);
    inside
}

/// Every value that the window may give at `now`: its old edge may lie up to a pane early.
fn allowed(aggregate: Aggregate, samples: &[Reading], now: i64, span: i64, width: i64) -> Vec<Option<f64>> {
    let edge = now - span;
    let edges = samples.iter().map(|(at, _)| *at - 1).filter(|at| *at < edge && *at > edge - width);
    edges.chain([edge]).map(|edge| naive(aggregate, &within(samples, edge, now))).collect()
}

fn check_stream(aggregate: Aggregate, span_ms: u64, samples: &[Reading]) -> Result<(), TestCaseError> {
    let span = Duration::from_millis(span_ms);
    let (span_i, width) = (span_ms as i64, pane_width(span).as_millis() as i64);
    let (mut window, mut unread) = (Window::new(aggregate, span), Window::new(aggregate, span));
    let scale = samples.iter().map(|(_, value)| value.abs()).fold(1.0, f64::max) * samples.len() as f64;
    let scale = if matches!(aggregate, Aggregate::Quantile(_)) { scale / samples.len() as f64 } else { scale };
    for (upto, (at, value)) in samples.iter().enumerate() {
        window.push(ms(*at), *value);
        unread.push(ms(*at), *value);
        let seen = &samples[..=upto];
        let mut moments = [*at, *at + width / 3, at.div_euclid(width) * width + width];
        moments.sort_unstable();
        for now in moments {
            if samples.get(upto + 1).is_some_and(|(next, _)| *next <= now) {
                continue;
            }
            let (got, choices) = (window.value(ms(now)), allowed(aggregate, seen, now, span_i, width));
            prop_assert!(
                choices.iter().any(|expected| is_close(aggregate, got, *expected, scale)),
                "{aggregate:?} over {span:?} at {now}: {got:?} is none of {choices:?}"
            );
            let fresh = unread.clone().value(ms(now));
            prop_assert!(is_close(aggregate, fresh, got, scale), "{aggregate:?}: {fresh:?} unread, {got:?} read");
            if now % width == 0 && span_i % width == 0 {
                let exact = naive(aggregate, &within(seen, now - span_i, now));
                prop_assert!(
                    is_close(aggregate, got, exact, scale),
                    "{aggregate:?} at a border: {got:?}, not {exact:?}"
                );
            }
        }
        let panes = (PANES_MAX + 4) * 48;
        let bins = if matches!(aggregate, Aggregate::Quantile(_)) { BINS_MAX * 12 } else { 0 };
        prop_assert!(window.bytes() <= 400 + panes + bins, "{} bytes", window.bytes());
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<(i64, f64)>> {
    // Mostly regular, sometimes dense, sometimes a gap that empties the window.
    let step = prop_oneof![6 => Just(1000i64), 3 => 1i64..3000, 1 => 1000i64..200_000];
    prop::collection::vec((step, -100.0f64..100.0), 1..120)
}

/// Readings of a counter that restarts now and then.
fn counter(steps: &[(i64, f64)]) -> Vec<(i64, f64)> {
    let mut count = 1e6;
    let read = |(step, value): &(i64, f64)| {
        count = if *value < -95.0 { value.abs() / 10.0 } else { count + value.abs().floor() };
        (*step, count)
    };
    steps.iter().map(read).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn plain_aggregates_agree_with_their_definitions(steps in steps(), span in prop_oneof![Just(16_000u64), Just(64_000), 500u64..90_000]) {
        let samples = in_order(&steps);
        for aggregate in PLAIN {
            check_stream(aggregate, span, &samples)?;
        }
    }

    #[test]
    fn counters_agree_with_their_definitions(steps in steps(), span in prop_oneof![Just(16_000u64), Just(64_000), 500u64..90_000]) {
        let samples = in_order(&counter(&steps));
        for aggregate in COUNTERS {
            check_stream(aggregate, span, &samples)?;
        }
    }

    /// Late samples end in the pane where they belong: any order within the span gives the same value.
    #[test]
    fn order_does_not_matter_within_the_span(steps in prop::collection::vec((1i64..900, -100.0f64..100.0), 2..60), seed in any::<u64>()) {
        let span = Duration::from_secs(64);
        for aggregate in PLAIN.into_iter().chain(COUNTERS) {
            let is_counter = COUNTERS.contains(&aggregate);
            let grown = |steps: &[(i64, f64)]| steps.iter().map(|(step, value)| (*step, value.abs())).scan(0.0, |sum, (step, value)| {
                *sum += value;
                Some((step, *sum))
            }).collect::<Vec<_>>();
            let samples = in_order(&if is_counter { grown(&steps) } else { steps.clone() });
            let (mut ordered, mut mixed) = (Window::new(aggregate, span), Window::new(aggregate, span));
            samples.iter().for_each(|(at, value)| ordered.push(ms(*at), *value));
            shuffled(&samples, seed).iter().for_each(|(at, value)| mixed.push(ms(*at), *value));
            let now = ms(samples.last().unwrap().0);
            let (one, other) = (ordered.value(now), mixed.value(now));
            prop_assert!(is_close(aggregate, other, one, 1e4), "{aggregate:?}: {one:?} in order, {other:?} mixed");
            prop_assert_eq!(mixed.dropped(), 0);
        }
    }
}

fn shuffled(samples: &[Reading], mut seed: u64) -> Vec<Reading> {
    let mut mixed = samples.to_vec();
    for at in (1..mixed.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        mixed.swap(at, (seed >> 33) as usize % (at + 1));
    }
    mixed
}

fn filled(aggregate: Aggregate, span_s: u64, samples: &[(i64, f64)]) -> Window {
    let mut window = Window::new(aggregate, Duration::from_secs(span_s));
    samples.iter().for_each(|(second, value)| window.push(ms(second * 1000), *value));
    window
}

#[test]
fn an_empty_window_has_no_value_whatever_is_asked() {
    for aggregate in PLAIN.into_iter().chain(COUNTERS) {
        let mut window = Window::new(aggregate, Duration::from_secs(60));
        assert_eq!(window.value(ms(0)), None, "{aggregate:?}");
        window.push(ms(0), 1.0);
        window.push(ms(1000), 1.0);
        assert!(window.value(ms(59_999)).is_some(), "{aggregate:?}");
        assert_eq!(window.value(ms(61_000)), None, "{aggregate:?} after the samples left");
    }
}

#[test]
fn a_counter_that_fell_began_anew() {
    // NVIDIA/dcgm-exporter#417: 21 + 39 + 19.
    let readings = [(0, 57.0), (15, 21.0), (30, 60.0), (45, 19.0)];
    assert_eq!(filled(Aggregate::Increase, 300, &readings).value(ms(45_000)), Some(79.0));
    assert_eq!(filled(Aggregate::Rate, 300, &readings).value(ms(45_000)), Some(79.0 / 45.0));
}

#[test]
fn one_reading_shows_no_growth() {
    for aggregate in [Aggregate::Increase, Aggregate::Rate, Aggregate::Slope] {
        assert_eq!(filled(aggregate, 60, &[(1, 5.0)]).value(ms(1000)), None, "{aggregate:?}");
    }
}

#[test]
fn our_own_gap_is_no_growth_of_the_counter() {
    let mut window = filled(Aggregate::Increase, 300, &[(0, 100.0), (600, 5.0)]);
    assert_eq!(window.value(ms(600_000)), None, "what grew during the gap is unknown");
}

#[test]
fn the_step_between_panes_is_counted() {
    let readings: Vec<(i64, f64)> = (0..=32).map(|second| (second, second as f64)).collect();
    assert_eq!(filled(Aggregate::Increase, 16, &readings).value(ms(32_000)), Some(15.0), "17 to 32");
}

#[test]
fn what_is_too_late_or_doubled_is_dropped_and_counted() {
    let mut window = filled(Aggregate::Count, 60, &[(100, 1.0), (100, 2.0), (40, 1.0), (41, 1.0)]);
    assert_eq!(window.dropped(), 2);
    assert_eq!(window.value(ms(100_000)), Some(2.0));
}

#[test]
fn a_broken_clock_blinds_the_window_no_longer_than_to_the_next_reading() {
    let mut window = filled(Aggregate::Mean, 60, &[(10, 4.0), (20, 6.0), (1_000_000, 99.0)]);
    assert_eq!(window.value(ms(20_000)), Some(5.0));
    window.push(ms(25_000), 8.0);
    assert_eq!(window.value(ms(25_000)), Some(6.0));
    assert_eq!(window.dropped(), 1);
}

#[test]
fn a_shared_pane_may_reach_back_but_never_forgets() {
    // Panes of 4 s: 1 and 4 share one; at 62 the 1 is too old and the 4 is not.
    let mut window = filled(Aggregate::Min, 60, &[(1, 10.0), (4, 20.0), (62, 50.0)]);
    assert_eq!(window.value(ms(62_000)), Some(10.0), "the condition is not yet met for all of the window");
    assert_eq!(window.value(ms(64_000)), Some(50.0));
}

#[test]
fn moments_keep_their_digits_far_from_zero() {
    let readings: Vec<(i64, f64)> = (0..100).map(|second| (second, 1e9 + f64::from(second as u8 % 2))).collect();
    let stddev = filled(Aggregate::Stddev, 100, &readings).value(ms(99_000)).unwrap();
    assert!((stddev - 0.5).abs() < 1e-7, "{stddev}");
    let slope =
        filled(Aggregate::Slope, 100, &[(0, 1e9), (50, 1e9 + 1.0), (99, 1e9 + 1.98)]).value(ms(99_000)).unwrap();
    assert!((slope - 0.02).abs() < 1e-9, "{slope}");
}

#[test]
fn quantiles_of_extreme_values_stay_numbers() {
    let readings = [(1, f64::MAX), (2, -f64::MAX), (3, 0.0), (4, f64::MIN_POSITIVE), (5, -0.0)];
    let value = |quantile| filled(Aggregate::Quantile(quantile), 60, &readings).value(ms(5000));
    assert_eq!(value(0.5), Some(0.0));
    assert!(value(1.0).unwrap() > 0.98 * f64::MAX);
    assert!(value(0.0).unwrap() < -0.98 * f64::MAX);
    assert_eq!(value(f64::NAN), None);
}

#[test]
fn bins_are_bounded() {
    let mut window = Window::new(Aggregate::Quantile(0.5), Duration::from_secs(3600));
    for at in 0..20_000 {
        window.push(ms(at), 1.02f64.powi((at % 10_000) as i32 - 5000));
    }
    assert!(window.bytes() < 120_000, "{} bytes", window.bytes());
    assert!(window.value(ms(20_000)).is_some());
}

#[test]
fn extreme_times_and_spans_do_no_harm() {
    for span in [Duration::ZERO, Duration::from_millis(1), Duration::MAX] {
        for aggregate in PLAIN.into_iter().chain(COUNTERS) {
            let mut window = Window::new(aggregate, span);
            for at in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX, 5] {
                window.push(ms(at), 1.0);
                for now in [i64::MIN, 0, i64::MAX] {
                    let _ = window.clone().value(ms(now));
                }
            }
        }
    }
}

#[test]
fn a_window_is_small_however_many_samples_it_takes() {
    for (aggregate, most) in
        [(Aggregate::Max, 450), (Aggregate::Count, 450), (Aggregate::Mean, 600), (Aggregate::Increase, 850)]
    {
        let mut window = Window::new(aggregate, Duration::from_secs(300));
        for at in 0..100_000 {
            window.push(ms(at * 100), at as f64);
        }
        assert!(window.bytes() <= most, "{aggregate:?}: {} bytes", window.bytes());
    }
}
