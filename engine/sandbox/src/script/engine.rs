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
use watchfire_core::{LimitHit, RuleFailure};

use super::{compare, frame, settings};
use crate::log::RuleLog;
use crate::{Limits, LoadError};

/// How many operations pass between two looks at the clock.
const OPERATIONS_PER_LOOK: u64 = 256;
/// How many uses of variables pass between two looks at their sizes.
const USES_PER_LOOK: u64 = 32;
/// Stack of a call, bytes: address space, of which only what is touched takes memory.
const STACK_BYTES: usize = 64 << 20;
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
        // What a method changes of its object is seen by no check of sizes.
        .disable_symbol("this")
        .set_allow_anonymous_fn(false)
        .set_strict_variables(true)
        .set_fail_on_invalid_map_property(true)
        .set_max_call_levels(limits.script_calls)
        .set_max_expr_depths(limits.script_depth, limits.script_depth)
        .set_max_variables(limits.script_variables)
        .set_max_functions(limits.script_functions)
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
    /// Uses of variables in the call.
    uses: AtomicU64,
}

/// How far a call may go.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// Operations.
    pub steps: u64,
    /// The limit that sets `steps`.
    pub steps_limit: &'static str,
    /// The wall-clock fuse.
    pub wall: Duration,
    /// Rows of the batch; 0 where the call has none.
    pub rows: usize,
}

impl Bounds {
    /// Of an `evaluate` of so many rows, and of an `explain` for none.
    pub fn of_rows(limits: &Limits, rows: usize) -> Self {
        let (steps, steps_limit) = limits.script_steps(rows);
        Bounds { steps, steps_limit, wall: limits.wall, rows }
    }

    /// Of any other call.
    pub fn of_start(limits: &Limits) -> Self {
        Bounds { steps: limits.steps_init, steps_limit: "steps_init", wall: limits.wall_init, rows: 0 }
    }
}

/// Runs something on a stack that is deep enough for any value a script may build: to compare, show or drop a value
/// that is nested as deep as its limit of elements lets it takes a frame for each level, and a stack that overflows
/// ends the process. The value must not leave this stack either.
fn on_own_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, RuleFailure> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("watchfire-script".into()).stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, work);
        let running = running.map_err(|error| RuleFailure::Trap(format!("the host has no thread for it: {error}")))?;
        running.join().map_err(|_| RuleFailure::Trap("the script made its host panic".to_owned()))
    })
}

/// An engine of one script.
pub struct ScriptEngine {
    engine: Engine,
    budget: Arc<Budget>,
    limits: Limits,
    log: RuleLog,
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
        watch_sizes(&mut engine, budget.clone());
        let log = RuleLog::new(file, limits);
        let printed = log.clone();
        engine.on_print(move |line| printed.line(line));
        frame::register(&mut engine);
        settings::register(&mut engine);
        compare::register(&mut engine);
        ScriptEngine { engine, budget, limits: limits.clone(), log }
    }

    /// Compiles a script.
    pub fn compile(&self, source: &str) -> Result<Result<AST, ParseError>, RuleFailure> {
        on_own_stack(|| self.engine.compile(source))
    }

    /// The script's log.
    pub fn log(&self) -> &RuleLog {
        &self.log
    }

    /// Operations of the last call.
    pub fn steps_used(&self) -> u64 {
        self.budget.used.load(Ordering::Relaxed)
    }

    /// Runs a call within a number of operations and the wall-clock fuse, and makes what is wanted of its value. A
    /// panic inside is the script's failure.
    pub fn within<T: Send>(
        &self,
        bounds: Bounds,
        file: &str,
        call: impl FnOnce(&Engine) -> Result<Dynamic, Box<EvalAltResult>> + Send,
        make: fn(Dynamic) -> T,
    ) -> Result<T, RuleFailure> {
        self.budget.steps.store(bounds.steps, Ordering::Relaxed);
        self.budget.used.store(0, Ordering::Relaxed);
        self.budget.uses.store(0, Ordering::Relaxed);
        self.log.begin(None);
        on_own_stack(|| {
            FUSE.set(Some(Instant::now() + bounds.wall));
            let said = catch_unwind(AssertUnwindSafe(|| call(&self.engine).map(make)));
            said.map(|said| said.map_err(|error| self.failure(&error, bounds, file)))
        })?
        .unwrap_or_else(|_| Err(RuleFailure::Trap(format!("{file}: the script made its host panic"))))
    }

    fn failure(&self, error: &EvalAltResult, bounds: Bounds, file: &str) -> RuleFailure {
        let limits = &self.limits;
        let hit = |limit, used, allowed: usize, unit| {
            RuleFailure::Limit(LimitHit { limit, used, allowed: allowed as u64, unit, rows: bounds.rows })
        };
        match innermost(error) {
            EvalAltResult::ErrorTerminated(token, _) if token.to_string() == WALL => {
                RuleFailure::Deadline { limit: bounds.wall }
            }
            EvalAltResult::ErrorTerminated(..) => RuleFailure::Limit(LimitHit {
                limit: bounds.steps_limit,
                used: Some(self.steps_used()),
                allowed: bounds.steps,
                unit: "steps",
                rows: bounds.rows,
            }),
            EvalAltResult::ErrorDataTooLarge(what, _) if what.contains("string") => {
                hit("script_string_bytes", None, limits.script_string_bytes, "bytes in one text")
            }
            EvalAltResult::ErrorDataTooLarge(what, _) if what.contains("map") => {
                hit("script_map_entries", None, limits.script_map_entries, "entries in one map")
            }
            EvalAltResult::ErrorDataTooLarge(..) => {
                hit("script_array_elements", None, limits.script_array_elements, "elements in one array")
            }
            EvalAltResult::ErrorStackOverflow(_) => {
                hit("script_calls", None, limits.script_calls, "calls within calls")
            }
            EvalAltResult::ErrorTooManyVariables(_) => {
                hit("script_variables", None, limits.script_variables, "variables at one time")
            }
            EvalAltResult::ErrorRuntime(said, at) => RuleFailure::Reported(placed(file, *at, &said.to_string())),
            other => RuleFailure::Trap(placed(file, other.position(), &words(other))),
        }
    }
}

/// Rhai checks the size of what an operator or a function makes, not of what an assignment into an array or a map does
/// (`map[key] = value`): so all variables are looked at every few times that one is used.
fn watch_sizes(engine: &mut Engine, budget: Arc<Budget>) {
    #[allow(deprecated, reason = "not deprecated, but marked so because it may change with a release of Rhai")]
    engine.on_var(move |_, _, context| {
        if budget.uses.fetch_add(1, Ordering::Relaxed).is_multiple_of(USES_PER_LOOK) {
            let mut values = context.scope().iter_raw();
            values.try_for_each(|(.., value)| context.engine().ensure_data_size_within_limits(value))?;
        }
        Ok(None)
    });
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
