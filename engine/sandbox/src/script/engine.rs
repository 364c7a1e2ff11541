//! The raw Rhai engine: what is registered, what is limited, and how a call ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicIteratorPackage, BasicMapPackage, BasicMathPackage, BasicStringPackage,
    LogicPackage, MoreStringPackage, Package,
};
use rhai::{AST, Dynamic, Engine, EvalAltResult, ParseError, Position};
use watchfire_core::RuleFailure;

use super::{compare, frame};
use crate::{Limits, LoadError};

/// How many operations pass between two looks at the clock.
const OPERATIONS_PER_LOOK: u64 = 256;
/// Tokens by which a call that was ended says why.
const STEPS: &str = "steps";
const WALL: &str = "wall";

/// A raw engine with everything limited and nothing registered that blocks, reads a clock or reaches outside.
pub fn sandboxed(limits: &Limits) -> Engine {
    let mut engine = Engine::new_raw();
    ArithmeticPackage::new().register_into_engine(&mut engine);
    LogicPackage::new().register_into_engine(&mut engine);
    BasicMathPackage::new().register_into_engine(&mut engine);
    BasicStringPackage::new().register_into_engine(&mut engine);
    MoreStringPackage::new().register_into_engine(&mut engine);
    BasicArrayPackage::new().register_into_engine(&mut engine);
    BasicMapPackage::new().register_into_engine(&mut engine);
    BasicIteratorPackage::new().register_into_engine(&mut engine);
    engine
        .disable_symbol("eval")
        // Function pointers escape the size limits (currying one into itself doubles it), and closures leak by cycles.
        .disable_symbol("Fn")
        .disable_symbol("curry")
        .set_allow_anonymous_fn(false)
        .set_strict_variables(true)
        .set_fail_on_invalid_map_property(true)
        .set_max_call_levels(Limits::SCRIPT_CALLS_MAX)
        .set_max_expr_depths(Limits::SCRIPT_DEPTH_MAX, Limits::SCRIPT_DEPTH_MAX)
        .set_max_variables(Limits::SCRIPT_VARIABLES_MAX)
        .set_max_functions(Limits::SCRIPT_FUNCTIONS_MAX)
        .set_max_string_size(limits.script_string_bytes)
        .set_max_array_size(limits.script_array_elements)
        .set_max_map_size(limits.script_map_entries);
    engine
}

#[derive(Default)]
struct Budget {
    steps: AtomicU64,
    /// Steps that the call has used.
    used: AtomicU64,
    /// Lines that this call may still print.
    lines: AtomicU64,
}

/// An engine of one script.
pub struct ScriptEngine {
    engine: Engine,
    budget: Arc<Budget>,
    wall: Duration,
    log_lines: u64,
}

thread_local! {
    /// When the call on this thread must have ended.
    static FUSE: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

impl ScriptEngine {
    /// An engine with the types of batches and answers.
    pub fn new(limits: &Limits, file: &str) -> Self {
        let mut engine = sandboxed(limits);
        let budget = Arc::new(Budget::default());
        let watched = budget.clone();
        engine.on_progress(move |operations| ended(operations, &watched));
        let (name, log_bytes) = (file.to_owned(), limits.log_bytes);
        let printed = budget.clone();
        engine.on_print(move |line| {
            let left = printed.lines.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if left.is_ok() {
                tracing::info!(target: "watchfire::rule", rule = name, "{}", Limits::cut(line, log_bytes));
            }
        });
        frame::register(&mut engine);
        compare::register(&mut engine);
        ScriptEngine { engine, budget, wall: limits.wall, log_lines: limits.log_lines as u64 }
    }

    /// Compiles a script.
    pub fn compile(&self, source: &str) -> Result<AST, ParseError> {
        self.engine.compile(source)
    }

    /// Operations of the last call.
    pub fn steps_used(&self) -> u64 {
        self.budget.used.load(Ordering::Relaxed)
    }

    /// Runs a call within a number of operations and the wall-clock fuse. A panic inside is the script's failure.
    pub fn within(
        &self,
        steps: u64,
        rows: usize,
        file: &str,
        call: impl FnOnce(&Engine) -> Result<Dynamic, Box<EvalAltResult>>,
    ) -> Result<Dynamic, RuleFailure> {
        self.budget.steps.store(steps, Ordering::Relaxed);
        self.budget.used.store(0, Ordering::Relaxed);
        self.budget.lines.store(self.log_lines, Ordering::Relaxed);
        FUSE.set(Some(Instant::now() + self.wall));
        let said = catch_unwind(AssertUnwindSafe(|| call(&self.engine)));
        FUSE.set(None);
        match said {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failure(&error, steps, rows, file)),
            Err(_) => Err(RuleFailure::Trap(format!("{file}: the script made its host panic"))),
        }
    }

    fn failure(&self, error: &EvalAltResult, steps: u64, rows: usize, file: &str) -> RuleFailure {
        match innermost(error) {
            EvalAltResult::ErrorTerminated(token, _) if token.to_string() == WALL => {
                RuleFailure::Deadline { limit: self.wall }
            }
            EvalAltResult::ErrorTerminated(..) => RuleFailure::OutOfSteps { limit: steps, rows },
            EvalAltResult::ErrorDataTooLarge(what, at) => {
                let message = format!("{what} is larger than a script may keep (text, array or map)");
                RuleFailure::Trap(placed(file, *at, &message))
            }
            EvalAltResult::ErrorRuntime(said, at) => RuleFailure::Reported(placed(file, *at, &said.to_string())),
            other => RuleFailure::Trap(placed(file, other.position(), &words(other))),
        }
    }
}

fn ended(operations: u64, budget: &Budget) -> Option<Dynamic> {
    budget.used.store(operations, Ordering::Relaxed);
    if operations > budget.steps.load(Ordering::Relaxed) {
        return Some(STEPS.into());
    }
    let look = operations.is_multiple_of(OPERATIONS_PER_LOOK);
    let late = look && FUSE.get().is_some_and(|fuse| Instant::now() > fuse);
    late.then(|| WALL.into())
}

fn innermost(error: &EvalAltResult) -> &EvalAltResult {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => innermost(inner),
        other => other,
    }
}

fn words(error: &EvalAltResult) -> String {
    let mut bare = error.to_string();
    if let Some(at) = bare.rfind(" (line ") {
        bare.truncate(at);
    }
    bare
}

fn placed(file: &str, at: Position, message: &str) -> String {
    match (at.line(), at.position()) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}: {message}"),
        (Some(line), None) => format!("{file}:{line}: {message}"),
        _ => format!("{file}: {message}"),
    }
}

/// A script that does not compile, with its place.
pub fn compile_error(file: &str, error: &ParseError) -> LoadError {
    let at = error.position();
    let message = error.err_type().to_string();
    LoadError::Script {
        file: file.to_owned(),
        line: at.line().unwrap_or(1),
        column: at.position().unwrap_or(1),
        message,
    }
}
