//! Time, handed in.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Says what time it is, in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The system's clock.
pub fn system() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// A number from 0 to 1, different each time: the standard library's hash keys are random.
pub(crate) fn random_share() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    // 53 bits are what a double can tell apart.
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_lie_between_0_and_1_and_differ() {
        let shares: Vec<f64> = (0..1000).map(|_| random_share()).collect();
        assert!(shares.iter().all(|share| (0.0..1.0).contains(share)));
        assert!(shares.iter().any(|share| *share < 0.1) && shares.iter().any(|share| *share > 0.9));
    }
}
