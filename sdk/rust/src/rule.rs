//! What an author writes.

use serde::de::DeserializeOwned;

use crate::{Descriptor, Input, Report, Rows, Scope, SettingError, Target};

/// The version of the contract that this SDK speaks.
pub const CONTRACT: &str = "watchfire:rule@0.1.0";

/// A rule.
pub trait Rule: Sized + 'static {
    /// What a template writes under `with:`. Refuse unknown keys (`#[serde(deny_unknown_fields)]`).
    type Settings: DeserializeOwned;
    /// The module's name.
    const NAME: &'static str;
    /// The module's version.
    const VERSION: &'static str;
    /// JSON Schema of the settings; empty for none.
    const SCHEMA: &'static str = "";

    /// Takes the settings.
    ///
    /// # Errors
    /// All that is wrong with them, each with its path, such as `above.critical`.
    fn new(settings: Self::Settings) -> Result<Self, Vec<SettingError>>;

    /// What it reads, writes and keeps; `rule` is none while it has no settings.
    fn shape(rule: Option<&Self>) -> Shape;

    /// Called when the rows change, where the shape asks for labels or groups.
    ///
    /// # Errors
    /// A sentence for people.
    fn on_targets(&mut self, targets: &[Target]) -> Result<(), String> {
        let _ = targets;
        Ok(())
    }

    /// Judges all rows.
    ///
    /// # Errors
    /// A sentence for people; the rule is then tried again later, and its alerts stay as they are.
    fn evaluate(&mut self, rows: &Rows<'_>, report: &mut Report) -> Result<(), String>;

    /// The evidence for a row of the rows last judged; asked only when an alert starts or grows.
    fn explain(&self, rows: &Rows<'_>, row: usize) -> Option<String> {
        let _ = (rows, row);
        None
    }

    /// Carries the numbers that an older version of the rule kept for one row (as many as its slots then) over to this
    /// version's slots. None where it cannot: the state of all rows then starts clean, and Watchfire says so.
    fn migrate_state(&self, old_version: u32, slots: &[f64]) -> Option<Vec<f64>> {
        let _ = (old_version, slots);
        None
    }
}

/// What a rule reads, writes and keeps.
#[derive(Clone, Debug)]
pub struct Shape {
    scope: Scope,
    inputs: Vec<Input>,
    outputs: Vec<String>,
    state: (u32, u32),
    needs_labels: bool,
    group_by: Option<String>,
}

impl Shape {
    /// A rule whose rows are targets of `scope`.
    pub fn of(scope: Scope) -> Self {
        Shape { scope, inputs: vec![], outputs: vec![], state: (0, 0), needs_labels: false, group_by: None }
    }

    /// Adds an input; its number is how many were added before.
    pub fn input(mut self, input: Input) -> Self {
        self.inputs.push(input);
        self
    }

    /// Adds a derived metric; its number is how many were added before.
    pub fn output(mut self, metric: &str) -> Self {
        self.outputs.push(metric.to_owned());
        self
    }

    /// Keeps `slots` numbers per row; what another `version` kept goes through [`Rule::migrate_state`].
    pub fn state(mut self, slots: u32, version: u32) -> Self {
        self.state = (slots, version);
        self
    }

    /// Wants the rows' labels.
    pub fn labels(mut self) -> Self {
        self.needs_labels = true;
        self
    }

    /// Puts rows with the same value of `label` into one group.
    pub fn group_by(mut self, label: &str) -> Self {
        self.group_by = Some(label.to_owned());
        self
    }

    /// How many numbers are kept per row.
    pub fn n_slots(&self) -> usize {
        self.state.0 as usize
    }

    /// How many derived metrics.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// In the contract's form.
    pub fn describe<R: Rule>(self) -> Descriptor {
        Descriptor {
            contract: CONTRACT.to_owned(),
            name: R::NAME.to_owned(),
            version: R::VERSION.to_owned(),
            scope: self.scope,
            inputs: self.inputs,
            outputs: self.outputs,
            settings_schema: R::SCHEMA.to_owned(),
            state_slots: self.state.0,
            state_version: self.state.1,
            needs_labels: self.needs_labels,
            group_by: self.group_by,
        }
    }
}
