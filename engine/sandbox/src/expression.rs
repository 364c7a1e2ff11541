//! `when:` and `until:`: one Rhai expression over metrics, judged row by row.

mod compile;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::{AST, Engine, Scope as Variables};
use watchfire_core::{self as core, Descriptor, Hit, Outcome, Program, Quality, RuleFailure, Scope, Severity, Target};

pub use compile::Compiled;
use words::NOW;

/// A `when:` rule as a template writes it.
#[derive(Clone, Debug)]
pub struct ExpressionSpec {
    /// The rule's name, for messages.
    pub name: String,
    /// True while the condition is met.
    pub when: String,
    /// True where a firing alert ends; none = where `when` is no longer true.
    pub until: Option<String>,
    /// The number to show; none = that of the first metric.
    pub value: Option<String>,
    /// What is raised while `when` is true.
    pub severity: Severity,
    /// What a row stands for; none = the narrowest scope that the metrics' names tell.
    pub scope: Option<Scope>,
    /// The values of `$name`.
    pub parameters: BTreeMap<String, f64>,
}

/// A compiled expression.
struct Condition {
    ast: AST,
    /// The text as the template has it, for messages.
    text: String,
}

/// The program of a `when:` rule.
pub struct Expression {
    compiled: Arc<Compiled>,
    variables: Variables<'static>,
    /// inputs × rows of the last batch, for `explain`.
    last: Vec<f64>,
    last_quality: Vec<u8>,
    rows: usize,
}

impl Expression {
    /// A program that has judged nothing yet.
    pub fn new(compiled: Arc<Compiled>) -> Self {
        let variables = compiled.blank();
        Expression { compiled, variables, last: Vec::new(), last_quality: Vec::new(), rows: 0 }
    }

    fn load_row(&mut self, batch: &core::Batch<'_>, row: usize) -> bool {
        let mut values = batch.columns.iter().zip(batch.quality).skip(row).step_by(batch.rows);
        for read in self.compiled.reads() {
            let value = values.next().filter(|(_, quality)| **quality == Quality::Ok as u8).map(|(value, _)| *value);
            if value.is_none() && !read.optional {
                return false;
            }
            if read.optional {
                self.variables.set_value(read.has(), value.is_some());
            }
            self.variables.set_value(read.variable.as_str(), value.unwrap_or(f64::NAN));
        }
        true
    }

    fn judge(&mut self, row: usize, value: f64) -> Result<Option<Hit>, RuleFailure> {
        let raised = self.compiled.is_true(&self.compiled.when, &mut self.variables)?;
        let held = match &self.compiled.until {
            Some(until) => !self.compiled.is_true(until, &mut self.variables)?,
            None => raised,
        };
        let severity = self.compiled.severity();
        let raise = raised.then_some(severity);
        let hold = (raised || held).then_some(severity);
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        let shown = hold.and_then(|_| self.compiled.value(&mut self.variables).ok()?);
        let value = shown.filter(|shown| shown.is_finite()).unwrap_or(value);
        Ok(hold.map(|_| Hit { row, raise, hold, value, cause: None, note: None }))
    }
}

impl Program for Expression {
    fn descriptor(&self) -> &Descriptor {
        self.compiled.descriptor()
    }

    fn on_targets(&mut self, _: &[Target]) -> Result<(), RuleFailure> {
        Ok(())
    }

    fn evaluate(&mut self, batch: &core::Batch<'_>, out: &mut Outcome) -> Result<(), RuleFailure> {
        self.rows = batch.rows;
        self.last.clear();
        self.last.extend_from_slice(batch.columns);
        self.last_quality.clear();
        self.last_quality.extend_from_slice(batch.quality);
        self.variables.set_value(NOW, batch.now.as_millis() as f64 / 1000.0);
        for row in 0..batch.rows {
            if self.load_row(batch, row) {
                out.hits.extend(self.judge(row, batch.columns[row])?);
            }
        }
        Ok(())
    }

    fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        if row as usize >= self.rows {
            return Ok(None);
        }
        let values = self.last.iter().zip(&self.last_quality).skip(row as usize).step_by(self.rows);
        let parts: Vec<String> = self
            .compiled
            .shown()
            .iter()
            .zip(values)
            .map(|(name, (value, quality))| match *quality == Quality::Ok as u8 {
                true => format!("{name} is {}", short(*value)),
                false => format!("{name} is missing"),
            })
            .collect();
        Ok(Some(parts.join(", ")))
    }
}

/// At most four significant digits behind the point: evidence is for people.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Condition {
    fn new(engine: &Engine, rewritten: &str, text: &str) -> Result<Self, String> {
        let ast = engine.compile_expression(rewritten).map_err(|error| error.err_type().to_string())?;
        Ok(Condition { ast, text: text.to_owned() })
    }
}
