//! From the text of a `when:` rule to what is judged.

use rhai::{Engine, Scope as Variables};
use watchfire_core::matcher::to_list;
use watchfire_core::{Aggregate, Descriptor, Input, Reads, RuleFailure, Scope, Severity};

use super::words::{NOW, Read, rewrite};
use super::{Condition, ExpressionSpec};
use crate::scope::aggregate;
use crate::script::sandboxed;
use crate::{Limits, LoadError};

/// On how many made-up rows a rule is tried before it is used.
const TRIALS: u32 = 64;
/// Operations that one row may cost.
const STEPS_PER_ROW: u64 = 1_000;

/// A compiled `when:` rule.
pub struct Compiled {
    engine: Engine,
    pub(super) when: Condition,
    pub(super) until: Option<Condition>,
    pub(super) value: Option<Condition>,
    descriptor: Descriptor,
    severity: Severity,
    reads: Vec<Read>,
    shown: Vec<String>,
}

impl Compiled {
    /// Compiles a rule, and tries it on made-up rows so that a type error shows before it ships.
    pub fn new(spec: ExpressionSpec, limits: &Limits) -> Result<Self, LoadError> {
        let mut engine = sandboxed(limits);
        // Each name in the rewritten text is one of ours.
        engine.set_max_operations(STEPS_PER_ROW).set_strict_variables(false);
        engine.register_fn("either", |is_first: bool, first: f64, second: f64| if is_first { first } else { second });
        let said = |message: String| LoadError::Expression(message);
        let mut reads = Vec::new();
        let mut part = |text: &String| {
            let rewritten = rewrite(text, &spec.parameters, std::mem::take(&mut reads))?;
            reads = rewritten.reads;
            Condition::new(&engine, &rewritten.text, text)
        };
        let when = part(&spec.when).map_err(said)?;
        let until = spec.until.as_ref().map(&mut part).transpose().map_err(said)?;
        let value = spec.value.as_ref().map(&mut part).transpose().map_err(said)?;
        let descriptor = describe(&spec, &reads).map_err(said)?;
        let shown = reads.iter().map(shown).collect();
        let compiled = Compiled { engine, when, until, value, descriptor, severity: spec.severity, reads, shown };
        compiled.try_out().map_err(said)?;
        Ok(compiled)
    }

    /// Names for all that the expression reads, and for the moment.
    pub(super) fn blank(&self) -> Variables<'static> {
        let mut variables = Variables::new();
        variables.push(NOW, 0.0f64);
        for read in &self.reads {
            variables.push(read.variable.clone(), 0.0f64);
            variables.push(read.has(), true);
        }
        variables
    }

    /// Tries the rule on values that make each comparison go both ways somewhere: what stands behind an `&&` is seen
    /// only where what is before it is true.
    fn try_out(&self) -> Result<(), String> {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..TRIALS {
            let mut variables = self.blank();
            for read in &self.reads {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let picked = [0.0, 1.0, -1e18, 1e18, 0.5][usize::try_from(random >> 33).unwrap_or(0) % 5];
                variables.set_value(read.variable.as_str(), if round < 2 { f64::from(round) } else { picked });
            }
            for condition in [Some(&self.when), self.until.as_ref()].into_iter().flatten() {
                self.is_true(condition, &mut variables).map_err(|failure| match failure {
                    RuleFailure::Reported(why) => why,
                    other => other.to_string(),
                })?;
            }
            self.value(&mut variables)?;
        }
        Ok(())
    }

    /// Judges a condition on the values of one row.
    pub(super) fn is_true(
        &self,
        condition: &Condition,
        variables: &mut Variables<'static>,
    ) -> Result<bool, RuleFailure> {
        let said = self.engine.eval_ast_with_scope::<bool>(variables, &condition.ast);
        said.map_err(|error| {
            let words = error.to_string();
            let words = words.split(" (line ").next().unwrap_or_default();
            RuleFailure::Reported(format!("{:?}: {words}", condition.text))
        })
    }

    /// The number to show of one row, where the rule says which.
    pub(super) fn value(&self, variables: &mut Variables<'static>) -> Result<Option<f64>, String> {
        let Some(value) = &self.value else { return Ok(None) };
        let said = self.engine.eval_ast_with_scope::<f64>(variables, &value.ast);
        said.map(Some).map_err(|error| {
            let words = error.to_string();
            format!("{:?}: {}", value.text, words.split(" (line ").next().unwrap_or_default())
        })
    }

    /// What it reads.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub(super) fn severity(&self) -> Severity {
        self.severity
    }

    pub(super) fn reads(&self) -> &[Read] {
        &self.reads
    }

    pub(super) fn shown(&self) -> &[String] {
        &self.shown
    }
}

fn shown(read: &Read) -> String {
    let only = if read.only.is_empty() { String::new() } else { to_list(&read.only) };
    let metric = format!("{}{only}", read.metric);
    match &read.window {
        None => metric,
        Some((function, None, window)) => format!("{function}({metric}, {window})"),
        Some((function, Some(q), window)) => format!("{function}({metric}, {q}, {window})"),
    }
}

fn describe(spec: &ExpressionSpec, reads: &[Read]) -> Result<Descriptor, String> {
    if reads.is_empty() {
        return Err(format!("{:?} reads no metric", spec.when));
    }
    // A rule over devices tells them apart by all labels, whatever its metrics are called.
    let of = |read: &Read| if spec.scope == Some(Scope::Device) { None } else { Scope::of_metric(&read.metric) };
    let told: Vec<Option<Scope>> = reads.iter().map(of).collect();
    let rows = match spec.scope.or_else(|| narrowest(&told)) {
        Some(scope) => scope,
        None => {
            let metric = &reads[0].metric;
            return Err(format!("the name {metric:?} tells no scope; set `scope` to host, gpu, device, job or rank"));
        }
    };
    let inputs = reads.iter().zip(told).map(|(read, told)| input(read, told.unwrap_or(rows)));
    Ok(Descriptor {
        name: spec.name.clone(),
        version: "0".to_owned(),
        scope: rows,
        inputs: inputs.collect::<Result<_, _>>()?,
        outputs: Vec::new(),
        settings_schema: String::new(),
        state_slots: 0,
        state_version: 0,
        needs_labels: false,
        group_by: None,
    })
}

/// A host's value can be spread over its GPUs, not the other way round.
fn narrowest(told: &[Option<Scope>]) -> Option<Scope> {
    told.iter().flatten().copied().max_by_key(|scope| match scope {
        Scope::Host | Scope::Job => 0,
        Scope::Gpu | Scope::Device | Scope::Rank => 1,
    })
}

fn input(read: &Read, scope: Scope) -> Result<Input, String> {
    let (how, window) = match &read.window {
        None => (Aggregate::Last, std::time::Duration::ZERO),
        Some((function, quantile, window)) => (aggregate(function, *quantile)?, crate::script::window(window)?),
    };
    let reads = Reads::Metric { name: read.metric.as_str().into(), aggregate: how };
    Ok(Input { reads, scope, window, required: !read.optional, only: read.only.clone() })
}
