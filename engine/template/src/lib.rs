//! Templates, their rules and their scenarios, read from YAML into values that cannot be wrong.

mod annotations;
mod compare;
mod parameters;
mod picture;
mod read;
mod rule;
pub mod scenario;
mod timeline;

use std::collections::BTreeMap;

use watchfire_core::{Labels, RuleSpec, Scope, Severity};
use watchfire_door::{Node, Place};

pub use annotations::{Annotations, Context};
pub use parameters::{Parameter, Parameters};
pub use read::read;

/// A template: rules that are bound to hosts together.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The oldest Watchfire that can run it; an older one leaves it out with a warning.
    pub min_version: Option<String>,
    /// What it is for.
    pub description: String,
    /// Labels and facts of the hosts that it is for; each key must be one of its values (`*` at the end matches any
    /// rest).
    pub applies_to: Vec<(String, Vec<String>)>,
    /// What its users may change.
    pub parameters: Parameters,
    /// Its rules, in order.
    pub rules: Vec<TemplateRule>,
}

/// One rule of a template.
#[derive(Clone, Debug)]
pub struct TemplateRule {
    /// How it is judged.
    pub spec: RuleSpec,
    /// The code that decides; none where what was written is wrong.
    pub module: Option<ModuleRef>,
    /// Its settings as JSON.
    pub settings: serde_json::Value,
    /// Its settings as written, to find the place of a setting by its path.
    pub settings_node: Option<Node>,
    /// Its texts for people.
    pub annotations: Annotations,
    /// Its own limits, as written.
    pub limits: Option<Node>,
    /// Where its `module` or `when` stands.
    pub module_place: Place,
    /// Where it stands.
    pub place: Place,
}

/// The code that decides.
#[derive(Clone, Debug, PartialEq)]
pub enum ModuleRef {
    /// A module that Watchfire ships.
    Shipped(String),
    /// A WebAssembly file, as written; relative to the template's file.
    Wasm(String),
    /// A Rhai script, as written; relative to the template's file.
    Rhai(String),
    /// A WebAssembly module of a registry, pinned by digest: `oci://HOST/NAME@sha256:…`.
    Oci(String),
    /// An expression in the template itself.
    Expression {
        /// True while the condition is met.
        when: String,
        /// True where a firing alert ends.
        until: Option<String>,
        /// The number to show, where it is not that of the first metric.
        value: Option<String>,
        /// What is raised.
        severity: Severity,
        /// What a row stands for.
        scope: Option<Scope>,
        /// The values of `$name`.
        parameters: BTreeMap<String, f64>,
    },
}

impl Template {
    /// Whether the template is for a host with these labels and facts.
    pub fn applies_to(&self, host: &Labels) -> bool {
        self.applies_to.iter().all(|(name, values)| {
            let found = host.get(name).unwrap_or("");
            values.iter().any(|value| match value.strip_suffix('*') {
                Some(start) => found.starts_with(start),
                None => found == value,
            })
        })
    }
}
