//! What another version of a template would have changed.

use serde::Serialize;

use super::Episode;

/// One alert that is not the same in both.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Difference {
    /// Only the old version fires.
    OnlyOld {
        /// Its alert.
        old: Episode,
    },
    /// Only the new version fires.
    OnlyNew {
        /// Its alert.
        new: Episode,
    },
    /// Both fire, at other times or otherwise bad.
    Changed {
        /// The old version's alert.
        old: Episode,
        /// The new version's.
        new: Episode,
    },
}

/// The differences, and how many alerts are the same.
pub fn differences(old: &[Episode], new: &[Episode]) -> (Vec<Difference>, usize) {
    let mut left: Vec<&Episode> = new.iter().collect();
    let (mut found, mut same) = (Vec::new(), 0);
    for one in old {
        let partner = left.iter().position(|other| {
            (&other.alert, &other.labels) == (&one.alert, &one.labels)
                && other.start <= one.end
                && other.end >= one.start
        });
        match partner.map(|at| left.remove(at)) {
            None => found.push(Difference::OnlyOld { old: one.clone() }),
            Some(other) if (other.start, other.end, other.severity) == (one.start, one.end, one.severity) => same += 1,
            Some(other) => found.push(Difference::Changed { old: one.clone(), new: other.clone() }),
        }
    }
    found.extend(left.into_iter().map(|one| Difference::OnlyNew { new: one.clone() }));
    (found, same)
}
