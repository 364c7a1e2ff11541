//! A limit that a rule ran into, told with its numbers.

use std::fmt;

/// A limit that a call ran into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitHit {
    /// Its name: a field of the sandbox's limits, or [`LimitHit::HITS`].
    pub limit: &'static str,
    /// How much was used or asked for; none where only "more than allowed" is known.
    pub used: Option<u64>,
    /// How much is allowed.
    pub allowed: u64,
    /// What is counted, such as `steps`.
    pub unit: &'static str,
    /// Rows of the batch; 0 where the call had none.
    pub rows: usize,
}

impl LimitHit {
    /// The limit of one hit for a row, which is no setting.
    pub const HITS: &'static str = "hits";
    /// The limit of notes in one answer.
    pub const NOTES: &'static str = "notes";
    /// The wall-clock fuse.
    pub const WALL: &'static str = "wall";
}

impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (allowed, unit) = (grouped(self.allowed), self.unit);
        match self.used {
            Some(used) => write!(f, "used {} of {allowed} {unit} at n={}; ", grouped(used), self.rows)?,
            None => write!(f, "used more than {allowed} {unit} at n={}; ", self.rows)?,
        }
        match self.limit {
            LimitHit::HITS => write!(f, "a row has at most one hit, see docs/limits.md"),
            limit => write!(f, "raise limits.{limit}, or see docs/limits.md"),
        }
    }
}

/// A number with its thousands apart: `1,200,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_used_limit_rows_and_what_to_do() {
        let hit =
            LimitHit { limit: "steps_per_row", used: Some(1_240_113), allowed: 1_200_000, unit: "steps", rows: 512 };
        assert_eq!(
            hit.to_string(),
            "used 1,240,113 of 1,200,000 steps at n=512; raise limits.steps_per_row, or see docs/limits.md"
        );
        let unknown = LimitHit { used: None, allowed: 999, ..hit };
        assert!(unknown.to_string().starts_with("used more than 999 steps at n=512; "));
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_000_000].map(grouped), ["0", "999", "1,000", "1,000,000"]);
    }
}
