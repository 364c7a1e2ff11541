//! Names and values that tell series, targets and alerts apart.

use std::fmt;
use std::sync::Arc;

/// An ordered set of label names and values. Cheap to clone; names are unique and sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// Builds a set; of two values for one name the later one stays, and an empty value removes the name
    /// (as in Prometheus, where an empty label is no label).
    pub fn new<N: Into<Arc<str>>, V: Into<Arc<str>>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut sorted = std::collections::BTreeMap::<Arc<str>, Arc<str>>::new();
        for (name, value) in pairs {
            sorted.insert(name.into(), value.into());
        }
        Labels(sorted.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(found, _)| (**found).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// This set with `other` laid over it.
    pub fn with(&self, other: &Labels) -> Labels {
        Labels::new(self.0.iter().chain(other.0.iter()).cloned())
    }

    /// Only the names in `names`.
    pub fn only(&self, names: &[impl AsRef<str>]) -> Labels {
        self.filter(|name| names.iter().any(|one| one.as_ref() == name))
    }

    /// Only the names for which `keep` says yes.
    pub fn filter(&self, keep: impl Fn(&str) -> bool) -> Labels {
        Labels(self.0.iter().filter(|(name, _)| keep(name)).cloned().collect())
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// How many labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The 64-bit FNV-1a hash that Prometheus and Alertmanager use as a label set's fingerprint
    /// (name, 0xff, value, 0xff for each label in order; prometheus/common `model/fnv.go`).
    pub fn fingerprint(&self) -> u64 {
        let bytes = self.iter().flat_map(|(name, value)| name.bytes().chain([0xff]).chain(value.bytes()).chain([0xff]));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, value)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value:?}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_win_and_empty_ones_vanish() {
        let labels = Labels::new([("b", "1"), ("a", "1"), ("b", "2"), ("c", "")]);
        assert_eq!(labels.to_string(), r#"{a="1", b="2"}"#);
    }

    #[test]
    fn the_fingerprint_is_that_of_prometheus() {
        // prometheus/common model/labelset_test.go: the empty set is the FNV offset basis.
        assert_eq!(Labels::default().fingerprint(), 14_695_981_039_346_656_037);
        assert_ne!(Labels::new([("a", "bc")]).fingerprint(), Labels::new([("ab", "c")]).fingerprint());
    }
}
