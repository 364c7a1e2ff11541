//! Medians and ratios of one run: machines are noisy, so nothing is compared with another day's figure.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How often each thing is measured.
pub const ROUNDS: usize = 15;
/// How long one measurement runs at least.
const ROUND_MIN: Duration = Duration::from_millis(20);

/// The median time of one call, in nanoseconds, of each of `calls`, measured in turns so that a noisy moment hits all
/// alike.
pub fn medians<const N: usize>(mut calls: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (call, times) in calls.iter_mut().zip(&mut times) {
            times.push(once(call));
        }
    }
    times.map(median)
}

fn once(call: &mut dyn FnMut()) -> f64 {
    let (started, mut n) = (Instant::now(), 0u32);
    while n == 0 || started.elapsed() < ROUND_MIN {
        black_box(&mut *call)();
        n += 1;
    }
    started.elapsed().as_nanos() as f64 / f64::from(n)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
