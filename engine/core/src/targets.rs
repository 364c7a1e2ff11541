//! What the rows of a rule stand for: how series find their row.

use std::collections::HashMap;

use crate::labels::Labels;
use crate::rule::{Scope, Target};

/// The most rows of one rule; more are refused and counted.
pub const ROWS_MAX: usize = 200_000;

/// Labels that say where a sample came from, not what it is about.
const ORIGIN_LABELS: [&str; 3] = ["instance", "job", "source"];

/// Whether two series of one target come from the same place, so that one is the other under new labels.
pub fn same_origin(one: &Labels, other: &Labels) -> bool {
    ORIGIN_LABELS.iter().all(|name| one.get(name) == other.get(name))
}

/// The labels that tell one target of a scope from another, or `None` where `labels` lack them.
pub fn key(scope: Scope, labels: &Labels) -> Option<Labels> {
    match scope {
        Scope::Host => Some(labels.only(&["host"])),
        Scope::Gpu => gpu_key(labels),
        Scope::Device => Some(labels.filter(|name| !ORIGIN_LABELS.contains(&name))),
        Scope::Job => with_all(labels, &["job_id"]),
        Scope::Rank => with_all(labels, &["job_id", "rank"]),
    }
}

fn gpu_key(labels: &Labels) -> Option<Labels> {
    with_all(labels, &["uuid"]).or_else(|| with_all(labels, &["host", "gpu"])).or_else(|| with_all(labels, &["gpu"]))
}

fn with_all(labels: &Labels, names: &[&str]) -> Option<Labels> {
    let key = labels.only(names);
    (key.len() == names.len()).then_some(key)
}

/// Whether values of scope `input` can be spread over rows of scope `row`.
pub fn spreads(input: Scope, row: Scope) -> bool {
    input == row
        || match input {
            Scope::Host => row != Scope::Job,
            Scope::Job => true,
            _ => false,
        }
}

/// The rows of one rule. A row keeps its number for the life of the rule.
#[derive(Debug, Default)]
pub struct Rows {
    numbers: HashMap<Labels, u32>,
    keys: Vec<Labels>,
    targets: Vec<Target>,
    groups: HashMap<Option<String>, u32>,
    /// For each wider scope that is spread over the rows: the rows of each of its targets.
    wide: Vec<(Scope, HashMap<Labels, Vec<u32>>)>,
}

impl Rows {
    /// No rows yet, over which values of these scopes are spread.
    pub fn over(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let mut rows = Rows::default();
        for scope in scopes {
            if !rows.wide.iter().any(|(known, _)| *known == scope) {
                rows.wide.push((scope, HashMap::new()));
            }
        }
        rows
    }

    /// The rows that a value of a wider scope's target belongs to.
    pub fn below(&self, scope: Scope, key: &Labels) -> &[u32] {
        let targets = self.wide.iter().find(|(known, _)| *known == scope).map(|(_, targets)| targets);
        targets.and_then(|targets| targets.get(key)).map_or(&[], Vec::as_slice)
    }

    fn place(&mut self, row: u32) {
        let labels = &self.targets[row as usize].labels;
        for (scope, targets) in &mut self.wide {
            if let Some(key) = key(*scope, labels) {
                targets.entry(key).or_default().push(row);
            }
        }
    }

    fn displace(&mut self, row: u32) {
        let labels = &self.targets[row as usize].labels;
        for (scope, targets) in &mut self.wide {
            let Some(key) = key(*scope, labels) else { continue };
            let Some(rows) = targets.get_mut(&key) else { continue };
            rows.retain(|other| *other != row);
            if rows.is_empty() {
                targets.remove(&key);
            }
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The row with `key`.
    pub fn find(&self, key: &Labels) -> Option<u32> {
        self.numbers.get(key).copied()
    }

    /// Adds a row; `None` where [`ROWS_MAX`] is reached.
    pub fn add(&mut self, key: Labels, labels: Labels, group_by: Option<&str>) -> Option<u32> {
        if self.keys.len() >= ROWS_MAX {
            return None;
        }
        let row = u32::try_from(self.keys.len()).ok()?;
        let group = self.group(&labels, group_by);
        self.numbers.insert(key.clone(), row);
        self.keys.push(key);
        self.targets.push(Target { labels, group });
        self.place(row);
        Some(row)
    }

    /// Gives a row new labels (a GPU's index moved). True where they differ.
    pub fn relabel(&mut self, row: u32, labels: &Labels, group_by: Option<&str>) -> bool {
        if self.targets[row as usize].labels == *labels {
            return false;
        }
        let group = self.group(labels, group_by);
        self.displace(row);
        self.targets[row as usize] = Target { labels: labels.clone(), group };
        self.place(row);
        true
    }

    fn group(&mut self, labels: &Labels, group_by: Option<&str>) -> u32 {
        let Some(name) = group_by else { return 0 };
        let fresh = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        *self.groups.entry(labels.get(name).map(str::to_owned)).or_insert(fresh)
    }

    /// What tells the row from others.
    pub fn key(&self, row: u32) -> &Labels {
        &self.keys[row as usize]
    }

    /// The row's labels.
    pub fn labels(&self, row: u32) -> &Labels {
        &self.targets[row as usize].labels
    }

    /// All rows.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_known_by_its_uuid_wherever_its_index_moves() {
        let before = Labels::new([("host", "h"), ("gpu", "5"), ("uuid", "GPU-5")]);
        let after = Labels::new([("host", "h"), ("gpu", "4"), ("uuid", "GPU-5")]);
        assert_eq!(key(Scope::Gpu, &before), key(Scope::Gpu, &after));
    }

    #[test]
    fn keys_of_each_scope() {
        let labels = Labels::new([("host", "h"), ("device", "nvme0"), ("instance", "i"), ("job_id", "7")]);
        let cases = [
            (Scope::Host, Some("{host=\"h\"}")),
            (Scope::Gpu, None),
            (Scope::Device, Some("{device=\"nvme0\", host=\"h\", job_id=\"7\"}")),
            (Scope::Job, Some("{job_id=\"7\"}")),
            (Scope::Rank, None),
        ];
        for (scope, expected) in cases {
            assert_eq!(key(scope, &labels).map(|key| key.to_string()).as_deref(), expected, "{scope:?}");
        }
    }

    #[test]
    fn rows_are_found_by_the_wider_targets_that_they_belong_to() {
        let mut rows = Rows::over([Scope::Host, Scope::Host]);
        let gpu = |host: &str, gpu: &str| Labels::new([("host", host), ("gpu", gpu)]);
        for index in ["0", "1", "2"] {
            rows.add(Labels::new([("gpu", index)]), gpu("a", index), None).unwrap();
        }
        let host = |name: &str| Labels::new([("host", name)]);
        assert_eq!(rows.below(Scope::Host, &host("a")), [0, 1, 2]);
        assert!(rows.relabel(1, &gpu("b", "1"), None));
        assert_eq!((rows.below(Scope::Host, &host("a")), rows.below(Scope::Host, &host("b"))), (&[0, 2][..], &[1][..]));
        assert!(rows.below(Scope::Job, &host("a")).is_empty());
    }

    #[test]
    fn rows_of_one_job_share_a_group() {
        let mut rows = Rows::default();
        for (gpu, job) in [("0", "a"), ("1", "b"), ("2", "a")] {
            let labels = Labels::new([("gpu", gpu), ("job_id", job)]);
            rows.add(labels.only(&["gpu"]), labels, Some("job_id")).unwrap();
        }
        let groups: Vec<u32> = rows.targets().iter().map(|target| target.group).collect();
        assert_eq!(groups, [0, 1, 0]);
    }
}
