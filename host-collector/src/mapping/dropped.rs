//! Why samples were read and not believed.

/// Why a sample was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// DCGM's number for "no value" (dcgm_structs.h: `DCGM_INT32_BLANK` and its like).
    Blank,
    /// A reading that no such sensor gives (`metrics.csv`).
    Implausible,
    /// A second value for a series within one page.
    Duplicate,
    /// The time at which a series was created, which is no measurement.
    Created,
    /// A time stamp too far in the future.
    Future,
    /// The source repeats old values.
    Frozen,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 6] =
        [Reason::Blank, Reason::Implausible, Reason::Duplicate, Reason::Created, Reason::Future, Reason::Frozen];

    /// The word in the label `reason` of `scrape_samples_dropped_total`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Blank => "dcgm_blank",
            Reason::Implausible => "implausible",
            Reason::Duplicate => "duplicate",
            Reason::Created => "created",
            Reason::Future => "future",
            Reason::Frozen => "frozen",
        }
    }
}

/// How many samples were dropped, by reason, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped([u64; Reason::ALL.len()]);

impl Dropped {
    /// How many were dropped for `reason`.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// All reasons with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.into_iter().map(|reason| (reason, self.get(reason)))
    }

    pub(super) fn add(&mut self, reason: Reason) {
        self.0[reason as usize] += 1;
    }
}

/// Whether `value` is one of DCGM's numbers for "no value", "not found", "not supported", "no permission":
/// INT32 0x7ffffff0, FP64 2^47 and INT64 0x7ffffffffffffff0, each with the next 15 (dcgm_structs.h).
/// As a double the INT64 ones are all 2^63, or a little less where text was rounded.
pub(super) fn is_blank(value: f64) -> bool {
    const INT32: f64 = 2_147_483_632.0;
    const FP64: f64 = 140_737_488_355_328.0;
    const INT64: f64 = 9.223_372_036_854_7e18;
    (INT32..INT32 + 16.0).contains(&value) || (FP64..FP64 + 16.0).contains(&value) || value >= INT64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_blank_of_dcgm_is_known() {
        let blanks = ["9223372036854775794", "9223372036854776000", "2147483632", "2147483635", "140737488355331"];
        for text in blanks {
            assert!(text.parse().is_ok_and(is_blank), "{text}");
        }
        for value in [0.0, -1.0, 95.0, 2_147_483_631.0, 2_147_483_648.0, 1.4e14, f64::NAN] {
            assert!(!is_blank(value), "{value}");
        }
    }

    #[test]
    fn reasons_stand_in_their_order() {
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }
}
