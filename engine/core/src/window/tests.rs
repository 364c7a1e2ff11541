//! Windows against the plain list of samples.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SPAN_S: i64 = 160;

fn naive(aggregate: Aggregate, samples: &[(i64, f64)]) -> Option<f64> {
    let values: Vec<f64> = samples.iter().map(|(_, value)| *value).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    match aggregate {
        _ if samples.is_empty() => None,
        Aggregate::Min => values.iter().copied().reduce(f64::min),
        Aggregate::Max => values.iter().copied().reduce(f64::max),
        Aggregate::Mean => Some(mean),
        Aggregate::Sum => Some(values.iter().sum()),
        Aggregate::Count => Some(n),
        Aggregate::Stddev => Some((values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()),
        Aggregate::Increase | Aggregate::Rate => {
            let pairs = values.windows(2).map(|w| if w[1] >= w[0] { w[1] - w[0] } else { w[1] });
            let (increase, seconds) = (pairs.sum::<f64>(), (samples[samples.len() - 1].0 - samples[0].0) as f64);
            (seconds > 0.0).then_some(if aggregate == Aggregate::Rate { increase / seconds } else { increase })
        }
        Aggregate::Slope => {
            let mean_s = samples.iter().map(|(s, _)| *s as f64).sum::<f64>() / n;
            let squares: f64 = samples.iter().map(|(s, _)| (*s as f64 - mean_s).powi(2)).sum();
            let products: f64 = samples.iter().map(|(s, v)| (*s as f64 - mean_s) * (v - mean)).sum();
            (squares > 0.0).then_some(products / squares)
        }
        _ => None,
    }
}

proptest! {
    /// Samples of strictly rising times with gaps; the window is asked at a pane's edge, where it is exact.
    #[test]
    fn agrees_with_the_list_of_samples(steps in prop::collection::vec((1i64..25, 0.0f64..1000.0), 1..80)) {
        let mut second = 0;
        let samples: Vec<(i64, f64)> = steps.iter().map(|(step, value)| { second += step; (second, *value) }).collect();
        let now = (second / 10 + 1) * 10;
        let inside: Vec<_> = samples.iter().copied().filter(|(at, _)| *at >= now - SPAN_S).collect();
        let aggregates = [Aggregate::Min, Aggregate::Max, Aggregate::Mean, Aggregate::Sum, Aggregate::Count,
            Aggregate::Stddev, Aggregate::Increase, Aggregate::Rate, Aggregate::Slope];
        for aggregate in aggregates {
            let mut window = Window::new(aggregate, Duration::from_secs(SPAN_S as u64));
            for (at, value) in &samples {
                window.push(Time::from_millis(at * 1000), *value);
                window.value(Time::from_millis(at * 1000));
            }
            let got = window.value(Time::from_millis(now * 1000));
            match (got, naive(aggregate, &inside)) {
                (Some(got), Some(expected)) => {
                    prop_assert!((got - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{aggregate:?}: {got} is not {expected}");
                }
                (got, expected) => prop_assert_eq!(got, expected, "{:?}", aggregate),
            }
        }
    }

    #[test]
    fn a_quantile_is_within_one_percent(values in prop::collection::vec(0.001f64..1e6, 1..200)) {
        let mut window = Window::new(Aggregate::Quantile(0.5), Duration::from_secs(3600));
        for (at, value) in values.iter().enumerate() {
            window.push(Time::from_millis(at as i64 * 1000), *value);
        }
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let expected = sorted[(0.5 * (sorted.len() - 1) as f64) as usize];
        let got = window.value(Time::from_millis(values.len() as i64 * 1000)).unwrap_or(f64::NAN);
        prop_assert!((got - expected).abs() <= 0.0101 * expected, "{got} is not {expected}");
    }
}

#[test]
fn memory_does_not_grow_with_the_sample_rate() {
    let mut window = Window::new(Aggregate::Mean, Duration::from_secs(300));
    for at in 0..1_000_000 {
        window.push(Time::from_millis(at * 10), 1.0);
    }
    assert!(window.bytes() < 2048, "{} bytes", window.bytes());
}

#[test]
fn an_empty_window_says_nothing() {
    let mut window = Window::new(Aggregate::Max, Duration::from_secs(60));
    window.push(Time::from_millis(0), 5.0);
    assert_eq!(window.value(Time::from_millis(60_000)), Some(5.0), "part of its pane is still inside");
    assert_eq!(window.value(Time::from_millis(70_000)), None);
}

#[test]
fn a_late_sample_goes_to_its_own_pane_and_one_too_old_is_left_out() {
    let mut window = Window::new(Aggregate::Max, Duration::from_secs(160));
    for (second, value) in [(100, 1.0), (110, 1.0), (120, 1.0), (105, 9.0)] {
        window.push(Time::from_millis(second * 1000), value);
    }
    assert_eq!(window.value(Time::from_millis(120_000)), Some(9.0));
    window.push(Time::from_millis(0), 99.0);
    assert_eq!(window.value(Time::from_millis(120_000)), Some(9.0));
}
