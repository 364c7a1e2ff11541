//! The order in which rules are judged at one moment: a rule that reads a derived metric comes after its writer.

use std::collections::{HashMap, HashSet};

use crate::rule::{Descriptor, Input, Reads};
use crate::targets;

/// Why a set of rules cannot be loaded. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Two rules have one id.
    #[error("rule {0:?} is there twice; alert names must be unique within a template, and template names unique")]
    Twice(String),
    /// A rule that is said to be the same is not loaded.
    #[error("rule {0:?} is said to be unchanged, and is not loaded")]
    NotLoaded(String),
    /// Rules read each other's derived metrics in a circle.
    #[error("rules read each other's derived metrics in a circle: {}; take one of the metrics out", .0.join(" -> "))]
    Circle(Vec<String>),
    /// An input's scope cannot be spread over the rule's rows.
    #[error("rule {rule:?}: input {input:?} is of scope {found}, which cannot be spread over rows of scope {rows}")]
    Scope {
        /// The rule.
        rule: String,
        /// The input's metric or kind of event.
        input: String,
        /// The input's scope.
        found: &'static str,
        /// The rule's scope.
        rows: &'static str,
    },
    /// More state slots than a rule may keep.
    #[error("rule {rule:?} asks for {found} state slots; at most {} are kept per row", Descriptor::STATE_SLOTS_MAX)]
    StateSlots {
        /// The rule.
        rule: String,
        /// What it asks for.
        found: u32,
    },
    /// More inputs or outputs than a rule may have.
    #[error("rule {rule:?} has {found} {what}; at most {limit} are allowed; split it into several rules")]
    TooMany {
        /// The rule.
        rule: String,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many it has.
        found: usize,
        /// How many it may have.
        limit: usize,
    },
}

/// The name of what an input reads.
pub fn name_of(input: &Input) -> &str {
    match &input.reads {
        Reads::Metric { name, .. } => name,
        Reads::Event { kind, .. } => kind,
    }
}

/// Checks what can be checked of one rule alone.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(id: &str, descriptor: &Descriptor) -> Result<(), LoadError> {
    if descriptor.state_slots > Descriptor::STATE_SLOTS_MAX {
        return Err(LoadError::StateSlots { rule: id.to_owned(), found: descriptor.state_slots });
    }
    check_number(id, "inputs", descriptor.inputs.len(), Descriptor::INPUTS_MAX)?;
    check_number(id, "outputs", descriptor.outputs.len(), Descriptor::OUTPUTS_MAX)?;
    let narrow = descriptor.inputs.iter().find(|input| !targets::spreads(input.scope, descriptor.scope));
    narrow.map_or(Ok(()), |input| {
        Err(LoadError::Scope {
            rule: id.to_owned(),
            input: name_of(input).to_owned(),
            found: input.scope.as_str(),
            rows: descriptor.scope.as_str(),
        })
    })
}

fn check_number(id: &str, what: &'static str, found: usize, limit: usize) -> Result<(), LoadError> {
    if found <= limit {
        return Ok(());
    }
    Err(LoadError::TooMany { rule: id.to_owned(), what, found, limit })
}

/// The order of evaluation, as indexes into `rules`; rules that do not depend on each other keep their order.
///
/// # Errors
/// [`LoadError::Circle`] or [`LoadError::Twice`].
pub fn order(rules: &[(&str, &Descriptor)]) -> Result<Vec<usize>, LoadError> {
    let mut ids = HashSet::new();
    if let Some((twice, _)) = rules.iter().find(|(id, _)| !ids.insert(*id)) {
        return Err(LoadError::Twice((*twice).to_owned()));
    }
    let writers = writers(rules);
    let mut visit = Visit { rules, writers: &writers, marks: vec![Mark::New; rules.len()], order: Vec::new() };
    (0..rules.len()).try_for_each(|rule| visit.rule(rule, &mut Vec::new()))?;
    Ok(visit.order)
}

fn writers<'a>(rules: &[(&str, &'a Descriptor)]) -> HashMap<&'a str, Vec<usize>> {
    let mut writers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, (_, descriptor)) in rules.iter().enumerate() {
        for output in &descriptor.outputs {
            writers.entry(output).or_default().push(at);
        }
    }
    writers
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

struct Visit<'a> {
    rules: &'a [(&'a str, &'a Descriptor)],
    writers: &'a HashMap<&'a str, Vec<usize>>,
    marks: Vec<Mark>,
    order: Vec<usize>,
}

impl Visit<'_> {
    /// Places a rule after all that it reads from. `path` is the way here, for the message.
    fn rule(&mut self, at: usize, path: &mut Vec<usize>) -> Result<(), LoadError> {
        path.push(at);
        match self.marks[at] {
            Mark::Done => {}
            Mark::Open => return Err(LoadError::Circle(self.circle(path, at))),
            Mark::New => {
                self.marks[at] = Mark::Open;
                for writer in self.reads_from(at) {
                    self.rule(writer, path)?;
                }
                self.marks[at] = Mark::Done;
                self.order.push(at);
            }
        }
        path.pop();
        Ok(())
    }

    fn reads_from(&self, at: usize) -> Vec<usize> {
        let names = self.rules[at].1.inputs.iter().map(name_of);
        names.filter_map(|name| self.writers.get(name)).flatten().copied().collect()
    }

    fn circle(&self, path: &[usize], at: usize) -> Vec<String> {
        let start = path.iter().position(|&step| step == at).unwrap_or(0);
        path[start..].iter().map(|&step| self.rules[step].0.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Aggregate, Scope};
    use std::time::Duration;

    fn rule(reads: &[&str], writes: &[&str]) -> Descriptor {
        let input = |name: &&str| Input {
            reads: Reads::Metric { name: (*name).into(), aggregate: Aggregate::Last },
            scope: Scope::Gpu,
            window: Duration::ZERO,
            required: true,
            only: Vec::new(),
        };
        Descriptor {
            name: "test".into(),
            version: "1".into(),
            scope: Scope::Gpu,
            inputs: reads.iter().map(input).collect(),
            outputs: writes.iter().map(|name| (*name).into()).collect(),
            settings_schema: String::new(),
            state_slots: 0,
            state_version: 0,
            needs_labels: false,
            group_by: None,
        }
    }

    #[test]
    fn readers_come_after_writers() {
        let (reader, writer, other) = (rule(&["b"], &[]), rule(&["a"], &["b"]), rule(&["a"], &[]));
        assert_eq!(order(&[("reader", &reader), ("writer", &writer), ("other", &other)]), Ok(vec![1, 0, 2]));
    }

    #[test]
    fn a_circle_is_refused_by_name() {
        let (one, two) = (rule(&["a"], &["b"]), rule(&["b"], &["a"]));
        let error = order(&[("t/One", &one), ("t/Two", &two)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "rules read each other's derived metrics in a circle: t/One -> t/Two -> t/One; take one of the metrics out"
        );
    }

    #[test]
    fn a_rule_of_its_own_circle_is_refused() {
        assert!(matches!(order(&[("t/One", &rule(&["a"], &["a"]))]), Err(LoadError::Circle(_))));
    }

    #[test]
    fn inputs_and_outputs_are_limited() {
        let names: Vec<String> = (0..=Descriptor::INPUTS_MAX).map(|at| format!("m{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let said = |reads: &[&str], writes: &[&str]| check("t/R", &rule(reads, writes)).map_err(|e| e.to_string());
        assert_eq!(said(&names[1..], &names[..Descriptor::OUTPUTS_MAX]), Ok(()));
        let error = said(&names, &[]).unwrap_err();
        assert_eq!(error, "rule \"t/R\" has 65 inputs; at most 64 are allowed; split it into several rules");
        assert!(said(&[], &names[..=Descriptor::OUTPUTS_MAX]).unwrap_err().contains("17 outputs; at most 16"));
    }

    #[test]
    fn a_gpu_cannot_be_spread_over_hosts() {
        let mut host = rule(&["gpu_up"], &[]);
        host.scope = Scope::Host;
        assert!(matches!(check("t/Host", &host), Err(LoadError::Scope { found: "gpu", rows: "host", .. })));
    }
}
