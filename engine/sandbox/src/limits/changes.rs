//! What one rule's `limits:` changes, and how far it may.

use std::collections::BTreeMap;
use std::fmt;

use super::{FIELDS, Field, Limits};

/// Limits that are set to other values; time in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes(BTreeMap<&'static str, u64>);

/// A limit that a rule would raise further than the main configuration allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The limit.
    pub name: &'static str,
    /// What the rule asks for, with its unit.
    pub asked: String,
    /// What it may ask for at most, with its unit.
    pub allowed: String,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Raised { name, asked, allowed } = self;
        write!(
            f,
            "limits.{name} asks for {asked}, and {allowed} is the most that a template may have; lower it, or let the operator set limits_max.{name} in the main configuration"
        )
    }
}

impl Changes {
    /// Sets a limit.
    pub fn set(&mut self, field: &'static Field, value: u64) {
        self.0.insert(field.name, value);
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All changes, in the order of [`FIELDS`].
    pub fn iter(&self) -> impl Iterator<Item = (&'static Field, u64)> + '_ {
        FIELDS.iter().filter_map(|field| Some((field, *self.0.get(field.name)?)))
    }

    /// The changes that go above both what holds without them and what `most` grants.
    pub fn above(&self, limits: &Limits, most: &Changes) -> Vec<Raised> {
        let too_high = self.iter().filter_map(|(field, asked)| {
            let allowed = (field.get)(limits).max(most.0.get(field.name).copied().unwrap_or(0));
            let (asked, shown) = ((asked > allowed).then(|| field.unit.show(asked))?, field.unit.show(allowed));
            Some(Raised { name: field.name, asked, allowed: shown })
        });
        too_high.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_rule_lowers_freely_and_raises_as_far_as_it_is_granted() {
        let mut most = Changes::default();
        most.set(Field::named("steps_per_row").unwrap(), 5_000);
        let with = |name: &str, value| {
            let mut changes = Changes::default();
            changes.set(Field::named(name).unwrap(), value);
            changes.above(&Limits::default(), &most)
        };
        assert_eq!(with("memory_bytes", 1 << 20), []);
        assert_eq!(with("memory_bytes", 16 << 20), []);
        assert_eq!(with("steps_per_row", 5_000), []);
        let refused = with("steps_per_row", 5_001).remove(0).to_string();
        assert!(refused.starts_with("limits.steps_per_row asks for 5001, and 5000 is the most"), "{refused}");
        let refused = with("memory_bytes", 32 << 20).remove(0).to_string();
        assert!(refused.starts_with("limits.memory_bytes asks for 32MiB, and 16MiB is the most"), "{refused}");
    }
}
