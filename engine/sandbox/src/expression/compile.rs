//! From the text of a `when:` rule to what is judged.

use rhai::{Engine, Scope as Variables};
use watchfire_core::{Aggregate, Descriptor, Input, Reads, RuleFailure, Scope, Severity};

use super::words::{Read, rewrite};
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
    descriptor: Descriptor,
    severity: Severity,
    variables: Vec<String>,
    shown: Vec<String>,
}

impl Compiled {
    /// Compiles a rule, and tries it on made-up rows so that a type error shows before it ships.
    pub fn new(spec: ExpressionSpec, limits: &Limits) -> Result<Self, LoadError> {
        let mut engine = sandboxed(limits);
        // Each name in the rewritten text is one of ours.
        engine.set_max_operations(STEPS_PER_ROW).set_strict_variables(false);
        let said = |message: String| LoadError::Expression(message);
        let first = rewrite(&spec.when, &spec.parameters, Vec::new()).map_err(said)?;
        let when = Condition::new(&engine, &first.text, &spec.when).map_err(said)?;
        let (until, reads) = match &spec.until {
            None => (None, first.reads),
            Some(text) => {
                let second = rewrite(text, &spec.parameters, first.reads).map_err(said)?;
                (Some(Condition::new(&engine, &second.text, text).map_err(said)?), second.reads)
            }
        };
        let descriptor = describe(&spec, &reads).map_err(said)?;
        let (variables, shown) = reads.iter().map(|read| (read.variable.clone(), shown(read))).unzip();
        let compiled = Compiled { engine, when, until, descriptor, severity: spec.severity, variables, shown };
        compiled.try_out().map_err(said)?;
        Ok(compiled)
    }

    /// Tries the rule on values that make each comparison go both ways somewhere: what stands behind an `&&` is seen
    /// only where what is before it is true.
    fn try_out(&self) -> Result<(), String> {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..TRIALS {
            let mut variables = Variables::new();
            for name in &self.variables {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let picked = [0.0, 1.0, -1e18, 1e18, 0.5][usize::try_from(random >> 33).unwrap_or(0) % 5];
                variables.push(name.clone(), if round < 2 { f64::from(round) } else { picked });
            }
            for condition in [Some(&self.when), self.until.as_ref()].into_iter().flatten() {
                self.is_true(condition, &mut variables).map_err(|failure| match failure {
                    RuleFailure::Reported(why) => why,
                    other => other.to_string(),
                })?;
            }
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

    /// What it reads.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub(super) fn severity(&self) -> Severity {
        self.severity
    }

    pub(super) fn variables(&self) -> &[String] {
        &self.variables
    }

    pub(super) fn shown(&self) -> &[String] {
        &self.shown
    }
}

fn shown(read: &Read) -> String {
    match &read.window {
        None => read.metric.clone(),
        Some((function, None, window)) => format!("{function}({}, {window})", read.metric),
        Some((function, Some(q), window)) => format!("{function}({}, {q}, {window})", read.metric),
    }
}

fn describe(spec: &ExpressionSpec, reads: &[Read]) -> Result<Descriptor, String> {
    if reads.is_empty() {
        return Err(format!("{:?} reads no metric", spec.when));
    }
    let told: Vec<Option<Scope>> = reads.iter().map(|read| Scope::of_metric(&read.metric)).collect();
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
    Ok(Input { reads, scope, window, required: true })
}
