//! The mapping files: what a source calls a metric or a label, and what it is here.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::state::Feed;
use crate::table::{self, Row, TableError};

/// The mappings of all sources.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    sources: Vec<Source>,
    metrics: HashMap<String, (usize, MetricRule)>,
    skipped_fstypes: HashSet<String>,
}

/// What holds for all metrics of one source.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    prefixes: Vec<String>,
    labels: HashMap<String, LabelRule>,
    dropped_labels: Vec<String>,
    /// Whether DCGM's "no value" numbers may come.
    pub blanks: bool,
}

/// What becomes of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LabelRule {
    Drop,
    Rename { to: String, pci: bool },
}

/// What becomes of a label at the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelFate {
    /// It passes under its own name.
    Stays,
    /// It does not pass.
    Dropped,
    /// It passes under another name.
    Renamed {
        /// Our name.
        to: String,
        /// Its value is written in another way, too.
        rewritten: bool,
    },
}

/// What becomes of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricRule {
    /// Our name; none where it passes under its own.
    pub ours: Option<String>,
    pub scale: f64,
    pub mask: bool,
    pub feed: Option<Feed>,
}

const BUILT_IN: [(&str, &str); 2] =
    [("dcgm.csv", include_str!("dcgm.csv")), ("node_exporter.csv", include_str!("node_exporter.csv"))];
const COLUMNS: usize = 5;

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables::default();
    for (file, text) in BUILT_IN {
        // Their soundness is tested; a file that is not sound maps nothing.
        let _ = tables.add(file, text);
    }
    tables
});

impl Tables {
    /// The mappings that come with Watchfire: DCGM and node_exporter.
    pub fn built_in() -> &'static Tables {
        &TABLES
    }

    /// Adds a mapping file; what it says of a metric replaces what was said before.
    ///
    /// # Errors
    /// The first mistake, with file and line. Nothing is added then.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), TableError> {
        let mut adding = self.clone();
        let at = adding.sources.len();
        adding.sources.push(Source::default());
        for row in table::rows(file, text, COLUMNS, 2)? {
            adding.row(at, &row).map_err(|message| row.error(file, message))?;
        }
        *self = adding;
        Ok(())
    }

    /// Foreign and own names of all metrics that are renamed, sorted.
    pub fn renamed(&self) -> Vec<(&str, &str)> {
        let named =
            self.metrics.iter().filter_map(|(foreign, (_, rule))| Some((foreign.as_str(), rule.ours.as_deref()?)));
        let mut pairs: Vec<_> = named.collect();
        pairs.sort_unstable();
        pairs
    }

    /// Our name of a metric that is renamed, and the factor from its unit to ours.
    pub fn ours(&self, metric: &str) -> Option<(&str, f64)> {
        let (_, rule) = self.metrics.get(metric)?;
        Some((rule.ours.as_deref()?, rule.scale))
    }

    /// What becomes of a label of a metric.
    pub fn label(&self, metric: &str, label: &str) -> LabelFate {
        match self.find(metric).0.and_then(|source| source.label_rule(label)) {
            None => LabelFate::Stays,
            Some(LabelRule::Drop) => LabelFate::Dropped,
            Some(LabelRule::Rename { to, pci }) => LabelFate::Renamed { to: to.clone(), rewritten: *pci },
        }
    }

    /// Whether a metric of this name has a row or is one of a source's.
    pub fn knows(&self, metric: &str) -> bool {
        self.find(metric).0.is_some()
    }

    pub(super) fn find(&self, metric: &str) -> (Option<&Source>, Option<&MetricRule>) {
        if let Some((source, rule)) = self.metrics.get(metric) {
            return (self.sources.get(*source), Some(rule));
        }
        let has = |source: &&Source| source.prefixes.iter().any(|prefix| metric.starts_with(prefix.as_str()));
        (self.sources.iter().find(has), None)
    }

    pub(super) fn skips_fstype(&self, fstype: &str) -> bool {
        self.skipped_fstypes.contains(fstype)
    }

    fn row(&mut self, at: usize, row: &Row) -> Result<(), String> {
        let [what, foreign, ours, change, feed] = row.cells.as_slice() else {
            return Err(format!("expected {COLUMNS} columns"));
        };
        let Some(source) = self.sources.get_mut(at) else { return Ok(()) };
        match what.as_str() {
            "metric" | "mask" => {
                let rule = metric_rule(ours, change, feed, what == "mask")?;
                self.metrics.insert(foreign.clone(), (at, rule));
            }
            "label" => source.label(foreign, ours, change)?,
            "prefix" => source.prefixes.push(foreign.clone()),
            "blanks" => source.blanks = foreign == "yes",
            "skip_fstype" => {
                self.skipped_fstypes.insert(foreign.clone());
            }
            _ => return Err(format!("found {what:?}, expected metric, mask, label, prefix, blanks or skip_fstype")),
        }
        Ok(())
    }
}

impl Source {
    /// What becomes of a label of this source; none where it stays.
    pub fn label_rule(&self, name: &str) -> Option<&LabelRule> {
        let dropped = || self.dropped_labels.iter().any(|prefix| name.starts_with(prefix.as_str()));
        self.labels.get(name).or_else(|| dropped().then_some(&LabelRule::Drop))
    }

    fn label(&mut self, foreign: &str, ours: &str, change: &str) -> Result<(), String> {
        let rule = match (ours, change) {
            ("", _) => return Err(format!("label {foreign} has no new name; \"-\" drops it")),
            ("-", _) => LabelRule::Drop,
            (to, "" | "pci") => LabelRule::Rename { to: to.to_owned(), pci: change == "pci" },
            _ => return Err(format!("found change {change:?} of label {foreign}, expected nothing or pci")),
        };
        match (foreign.strip_suffix('*'), &rule) {
            (Some(prefix), LabelRule::Drop) => self.dropped_labels.push(prefix.to_owned()),
            (Some(_), _) => return Err(format!("label {foreign}: a name with * can only be dropped (\"-\")")),
            (None, _) => {
                self.labels.insert(foreign.to_owned(), rule);
            }
        }
        Ok(())
    }
}

fn metric_rule(ours: &str, change: &str, feed: &str, mask: bool) -> Result<MetricRule, String> {
    let scale: f64 = change.parse().map_err(|_| format!("found factor {change:?}, expected a number"))?;
    if !(scale.is_finite() && scale > 0.0) {
        return Err(format!("found factor {change:?}, expected one above 0"));
    }
    let feed = match feed {
        "" => None,
        word => Some(Feed::of_word(word).ok_or_else(|| format!("nothing computed is fed by {word:?}"))?),
    };
    let ours = (!ours.is_empty()).then(|| ours.to_owned());
    if mask && ours.is_none() {
        return Err("a mask needs a name of ours".to_owned());
    }
    Ok(MetricRule { ours, scale, mask, feed })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_come_with_it_read_and_name_known_metrics() {
        let mut tables = Tables::default();
        for (file, text) in BUILT_IN {
            tables.add(file, text).unwrap();
        }
        for (foreign, ours) in tables.renamed() {
            assert!(crate::metrics::find(ours).is_some(), "{foreign} becomes {ours}, which is not in metrics.csv");
        }
        assert!(tables.renamed().len() > 60);
    }

    #[test]
    fn a_file_with_comments_commas_marks_and_line_ends_reads() {
        let mut tables = Tables::default();
        let text = "\u{feff}# comment, with comma\r\n\r\nmetric,a_mhz,b_hertz,1e6\r\nlabel,X_*,-,,\r\n";
        tables.add("own.csv", text).unwrap();
        assert_eq!(tables.renamed(), [("a_mhz", "b_hertz")]);
    }

    #[test]
    fn mistakes_are_told_with_file_and_line_and_change_nothing() {
        let cases = [
            (
                "\n#x\nmetrik,a,b,1",
                "own.csv:3: found \"metrik\", expected metric, mask, label, prefix, blanks or skip_fstype",
            ),
            ("metric,a,b,many", "own.csv:1: found factor \"many\", expected a number"),
            ("metric,a,b,-1", "own.csv:1: found factor \"-1\", expected one above 0"),
            ("metric,a,b,1,soup", "own.csv:1: nothing computed is fed by \"soup\""),
            ("label,a", "own.csv:1: label a has no new name; \"-\" drops it"),
            ("label,a*,b", "own.csv:1: label a*: a name with * can only be dropped (\"-\")"),
            ("mask,a,,1", "own.csv:1: a mask needs a name of ours"),
        ];
        for (text, expected) in cases {
            let mut tables = Tables::default();
            let error = tables.add("own.csv", &format!("{text}\nmetric,good,better,1\n")).unwrap_err();
            assert_eq!(error.to_string(), expected);
            assert!(tables.renamed().is_empty());
        }
    }
}
