//! One instance of a rule in a store of its own, and the calls into it. Fuel and fuse are set before every call.

use std::fmt;
use std::time::Duration;

use wasmtime::component::{Instance, InstancePre, TypedFunc};
use wasmtime::{ResourceLimiter, Store, Trap};
use watchfire_core::{Descriptor, LimitHit, RuleFailure};

use super::bindings::watchfire::rule::host as imports;
use super::bindings::{WatchfireRule, types};
use super::{CONTRACT, Host, TICK, convert};
use crate::log::RuleLog;
use crate::{Guards, Limits, LoadError, SettingProblem};

/// What a module may export to carry state over between its versions.
const MIGRATE_INTERFACE: &str = "watchfire:rule/migrate@0.1.0";

/// The version, slots, rows and numbers that are to be carried over.
type MigrateCall<'a> = (u32, u32, u32, &'a [f64]);
type MigrateAnswer = (Result<Vec<f64>, String>,);

/// What the host keeps for one instance.
pub struct Guest {
    limits: Limits,
    log: RuleLog,
    guards: Guards,
    /// The most linear memory that the instance has had, bytes.
    memory_peak: usize,
}

/// A limit of the store that was hit, told by its type.
#[derive(Clone, Debug)]
struct StoreLimit(LimitHit);

impl fmt::Display for StoreLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for StoreLimit {}

fn store_limit(limit: &'static str, unit: &'static str, used: usize, allowed: usize) -> wasmtime::Result<bool> {
    if used <= allowed {
        return Ok(true);
    }
    let (used, allowed) = (Some(used as u64), allowed as u64);
    Err(StoreLimit(LimitHit { limit, used, allowed, unit, rows: 0 }).into())
}

/// A refusal is always a trap, never the -1 that a module may handle as it likes: what the host has left must not
/// decide what a rule answers.
impl ResourceLimiter for Guest {
    /// All memories together: a component may have several, and none ever shrinks.
    fn memory_growing(&mut self, now: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let all = self.memory_peak.saturating_add(desired.saturating_sub(now));
        let grown = store_limit("memory_bytes", "bytes of memory", all, self.limits.memory_bytes)?;
        self.memory_peak = all;
        Ok(grown)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        store_limit("table_elements", "table elements", desired, self.limits.table_elements)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    /// CPython's libraries are instances of their own.
    fn instances(&self) -> usize {
        self.limits.instances
    }

    fn tables(&self) -> usize {
        self.limits.tables
    }

    /// QuickJS' stubs for WASI bring empty ones.
    fn memories(&self) -> usize {
        self.limits.memories
    }
}

impl types::Host for Guest {}

impl imports::Host for Guest {
    fn log(&mut self, line: String) {
        self.log.line(&line);
    }
}

/// How far a call may go.
struct Budget {
    steps: u64,
    /// The limit that sets `steps`.
    steps_limit: &'static str,
    wall: Duration,
    output_bytes: usize,
    rows: usize,
}

/// One instance. Dropped at the first failure.
pub struct Live {
    store: Store<Guest>,
    rule: WatchfireRule,
    instance: Instance,
}

impl Live {
    /// Instantiates a module.
    pub fn new(host: &Host, log: &RuleLog, pre: &InstancePre<Guest>, limits: &Limits) -> Result<Self, RuleFailure> {
        let guest = Guest { limits: limits.clone(), log: log.clone(), guards: host.guards, memory_peak: 0 };
        let mut store = Store::new(&host.engine, guest);
        store.limiter(|guest| guest);
        let budget = init_budget(limits);
        arm(&mut store, &budget).map_err(|error| failure(error, &budget))?;
        let instance = pre.instantiate(&mut store).map_err(|error| failure(error, &budget))?;
        let rule = WatchfireRule::new(&mut store, &instance).map_err(|error| failure(error, &budget))?;
        Ok(Live { store, rule, instance })
    }

    /// Steps that the last call of so much budget took; none where steps are not counted.
    pub fn steps_used(&self, budget: u64) -> u64 {
        self.store.get_fuel().map_or(0, |left| budget.saturating_sub(left))
    }

    /// The most linear memory that it has had, bytes.
    pub fn memory_peak(&self) -> u64 {
        self.store.data().memory_peak as u64
    }

    fn limits(&self) -> Limits {
        self.store.data().limits.clone()
    }

    /// Sets fuel and fuse, calls, and tells by type what went wrong.
    fn call<T>(
        &mut self,
        budget: &Budget,
        call: impl FnOnce(&WatchfireRule, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<T, RuleFailure> {
        self.store.data().log.begin(None);
        let armed = arm(&mut self.store, budget);
        let called = armed.and_then(|()| call(&self.rule, &mut self.store));
        called.map_err(|error| failure(error, budget))
    }

    /// `describe`.
    pub fn describe(&mut self) -> Result<Descriptor, LoadError> {
        let budget = init_budget(&self.limits());
        let said = self.call(&budget, |rule, store| rule.watchfire_rule_rule().call_describe(store))?;
        if said.contract != CONTRACT {
            let found = format!("says that it speaks {:?}", said.contract);
            return Err(LoadError::Contract { found, offered: CONTRACT });
        }
        let descriptor = convert::descriptor(said).map_err(LoadError::Describe)?;
        self.store.data().limits.check_state_slots(descriptor.state_slots).map_err(LoadError::Limit)?;
        Ok(descriptor)
    }

    /// `validate-settings`.
    pub fn validate(&mut self, json: &str) -> Result<(), Vec<SettingProblem>> {
        let budget = init_budget(&self.limits());
        let said = self.call(&budget, |rule, store| rule.watchfire_rule_rule().call_validate_settings(store, json));
        let said = said.map_err(|failure| super::whole(format!("the module {failure}")))?;
        said.map_err(|errors| {
            errors.into_iter().map(|error| SettingProblem { path: error.path, message: error.message }).collect()
        })
    }

    /// `configure`.
    pub fn configure(&mut self, json: &str) -> Result<(), LoadError> {
        let budget = init_budget(&self.limits());
        let said = self.call(&budget, |rule, store| rule.watchfire_rule_rule().call_configure(store, json))?;
        said.map_err(LoadError::Settings)
    }

    /// `on-targets`.
    pub fn on_targets(&mut self, targets: &[types::Target]) -> Result<(), RuleFailure> {
        let budget = init_budget(&self.limits());
        let said = self.call(&budget, |rule, store| rule.watchfire_rule_rule().call_on_targets(store, targets))?;
        said.map_err(RuleFailure::Reported)
    }

    /// `evaluate`.
    pub fn evaluate(&mut self, batch: &types::Batch, outputs: usize) -> Result<types::Outcome, RuleFailure> {
        let (limits, rows) = (self.limits(), batch.rows as usize);
        // What the host itself asks for is no excess: the state comes back as it went in, and derived columns.
        let asked = batch.state.len() * 8 + rows * outputs * 8;
        let output_bytes = limits.output_bytes(rows) + asked;
        let (steps, steps_limit) = limits.steps(rows);
        let budget = Budget { steps, steps_limit, wall: limits.wall, output_bytes, rows };
        self.store.data().log.begin(Some(watchfire_core::Time::from_millis(batch.now_ms)));
        let said = self.call(&budget, |rule, store| rule.watchfire_rule_rule().call_evaluate(store, batch))?;
        said.map_err(RuleFailure::Reported)
    }

    /// `explain`, within what an `evaluate` without rows may take: it may be asked for many rows in one tick.
    pub fn explain(&mut self, row: u32) -> Result<Option<String>, RuleFailure> {
        let limits = self.limits();
        let (steps, steps_limit) = limits.steps(0);
        let budget = Budget { steps, steps_limit, wall: limits.wall, output_bytes: limits.output_bytes_base, rows: 0 };
        let said = self.call(&budget, |rule, store| rule.watchfire_rule_rule().call_explain(store, row))?;
        said.map_err(RuleFailure::Reported)
    }

    /// `migrate-state`, which a module need not export.
    pub fn migrate_state(
        &mut self,
        version: u32,
        slots: u32,
        rows: usize,
        state: &[f64],
        slots_now: usize,
    ) -> Result<Option<Vec<f64>>, RuleFailure> {
        let limits = self.limits();
        let output_bytes = limits.output_bytes_base + slots_now * rows * size_of::<f64>();
        let budget = Budget { output_bytes, rows, ..init_budget(&limits) };
        let Some(migrate) = self.migrate_export().map_err(|error| failure(error, &budget))? else { return Ok(None) };
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let (said,) = self.call(&budget, |_, store| migrate.call(store, (version, slots, rows, state)))?;
        said.map(Some).map_err(RuleFailure::Reported)
    }

    fn migrate_export<'a>(&mut self) -> wasmtime::Result<Option<TypedFunc<MigrateCall<'a>, MigrateAnswer>>> {
        let Some(interface) = self.instance.get_export_index(&mut self.store, None, MIGRATE_INTERFACE) else {
            return Ok(None);
        };
        match self.instance.get_export_index(&mut self.store, Some(&interface), "migrate-state") {
            Some(function) => self.instance.get_typed_func(&mut self.store, function).map(Some),
            None => Ok(None),
        }
    }
}

fn init_budget(limits: &Limits) -> Budget {
    let (steps, wall, output_bytes) = (limits.steps_init, limits.wall_init, limits.output_bytes_base);
    Budget { steps, steps_limit: "steps_init", wall, output_bytes, rows: 0 }
}

fn arm(store: &mut Store<Guest>, budget: &Budget) -> wasmtime::Result<()> {
    if store.data().guards.fuel {
        store.set_fuel(budget.steps)?;
    }
    let ticks = budget.wall.as_millis().div_ceil(TICK.as_millis()) + 1;
    store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX));
    store.set_hostcall_fuel(budget.output_bytes);
    Ok(())
}

fn failure(error: wasmtime::Error, budget: &Budget) -> RuleFailure {
    if let Some(StoreLimit(hit)) = error.downcast_ref() {
        return RuleFailure::Limit(LimitHit { rows: budget.rows, ..hit.clone() });
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => hit(budget, budget.steps_limit, Some(budget.steps), budget.steps, "steps"),
        Some(Trap::Interrupt) => RuleFailure::Deadline { limit: budget.wall },
        Some(trap) => RuleFailure::Trap(trap.to_string()),
        None => other_failure(&error, budget),
    }
}

fn hit(budget: &Budget, limit: &'static str, used: Option<u64>, allowed: u64, unit: &'static str) -> RuleFailure {
    RuleFailure::Limit(LimitHit { limit, used, allowed, unit, rows: budget.rows })
}

/// The failures that wasmtime tells by their words alone; tests pin them.
fn other_failure(error: &wasmtime::Error, budget: &Budget) -> RuleFailure {
    let words = format!("{error:#}");
    if words.contains("fuel allocated for hostcalls has been exhausted") {
        let limit = if budget.rows == 0 { "output_bytes_base" } else { "output_bytes_per_row" };
        return hit(budget, limit, None, budget.output_bytes as u64, "bytes of output");
    }
    let counted = [("instances", "instance count"), ("tables", "table count"), ("memories", "memory count")];
    let too_many = |what: &str| words.split_once(&format!("{what} too high at ")).map(|(_, rest)| rest.to_owned());
    for (limit, what) in counted {
        let Some(rest) = too_many(what) else { continue };
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let used = digits.parse().ok();
        return hit(budget, limit, used, used.unwrap_or(1) - 1, limit);
    }
    RuleFailure::InvalidOutput(Limits::cut(&words, 500).to_owned())
}
