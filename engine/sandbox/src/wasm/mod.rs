//! WebAssembly rules.
//!
//! # What the cache of compiled code is safe against
//! Compiled code is run as it is found, so a cache file is only used where its seal, made with a secret key that
//! lies in the same folder with mode 0600, is right; anything else is compiled anew and replaced. The folder must
//! belong to the user that runs Watchfire and be writable by nobody else, or no cache is used. Against that user,
//! or root, nothing here helps: they could replace Watchfire itself.

mod bindings;
mod cache;
mod compile;
mod convert;
mod load;
mod program;
mod store;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Config, Engine, OperatorCost, VariableOperatorCost};
use watchfire_core::{Descriptor, LimitHit};

use crate::log::RuleLog;
use crate::{Guards, Limits, LoadError, SandboxConfig, SandboxError, SettingProblem};
use cache::Cache;
pub use load::{check_not_compiled, componentize};
pub use program::WasmProgram;
use store::Guest;

/// The version of the contract that is run here.
pub const CONTRACT: &str = "watchfire:rule@0.1.0";
/// Address space that a memory which outgrew its reservation gets ahead, bytes: each growth beyond moves it.
const GROWTH_BYTES: u64 = 4 << 20;
/// One tick of the wall-clock fuse.
const TICK: Duration = Duration::from_millis(10);

/// What all WebAssembly rules of a sandbox share.
pub struct Host {
    engine: Engine,
    linker: Linker<Guest>,
    cache: Option<Cache>,
    guards: Guards,
    compilers: compile::Compilers,
    /// Its end stops the ticker.
    _ticker: Sender<()>,
}

impl Host {
    /// Sets the engine up and starts its ticker.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let said = |error: wasmtime::Error| SandboxError(format!("{error:#}"));
        let engine = Engine::new(&engine_config(&config)).map_err(said)?;
        let mut linker = Linker::new(&engine);
        bindings::WatchfireRule::add_to_linker::<_, wasmtime::component::HasSelf<_>>(&mut linker, |guest| guest)
            .map_err(said)?;
        let guards = config.guards;
        let cache = config.cache_dir.and_then(|folder| Cache::open(folder, &engine));
        let ticker = start_ticker(&engine).map_err(|error| SandboxError(error.to_string()))?;
        Ok(Host { engine, linker, cache, guards, compilers: compile::Compilers::default(), _ticker: ticker })
    }
}

fn engine_config(config: &SandboxConfig) -> Config {
    let mut engine = Config::new();
    engine
        .consume_fuel(config.guards.fuel)
        .epoch_interruption(config.guards.fuse)
        .cranelift_nan_canonicalization(config.guards.canonical_nans)
        .operator_cost(operator_cost())
        // What is off here would let two machines answer differently, or bring what no compiler of rules needs.
        .relaxed_simd_deterministic(true)
        .wasm_relaxed_simd(false)
        .wasm_shared_everything_threads(false)
        .wasm_memory64(false)
        // What joins the modules of one component has the memories of both; how many there are is a limit.
        .wasm_multi_memory(true)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_stack_switching(false)
        .max_wasm_stack(Limits::WASM_STACK_BYTES)
        .signals_based_traps(config.signal_handlers)
        // Thousands of rules must fit under a limit on address space: reserve what a rule may use, not 4 GiB.
        .memory_reservation(config.limits.memory_bytes as u64)
        .memory_reservation_for_growth(GROWTH_BYTES)
        .memory_guard_size(64 << 10);
    engine
}

/// What each operator costs. Written down here so that a rule's steps do not change with wasmtime; a test pins them.
fn operator_cost() -> OperatorCost {
    OperatorCost {
        Nop: 0,
        Drop: 0,
        Block: 0,
        Loop: 0,
        Unreachable: 0,
        Return: 0,
        Else: 0,
        End: 0,
        variable: VariableOperatorCost {
            memory_copy_per_byte: 1,
            memory_fill_per_byte: 1,
            memory_init_per_byte: 1,
            // The host clears each new page of 64 KiB, and moves the memory where it has outgrown its place.
            memory_grow_per_page: 200,
            table_copy_per_element: 1,
            table_fill_per_element: 1,
            table_init_per_element: 1,
            table_grow_per_element: 1,
            ..VariableOperatorCost::new()
        },
        // All others cost 1.
        ..OperatorCost::new()
    }
}

/// Counts time for the wall-clock fuse until the sender is dropped.
fn start_ticker(engine: &Engine) -> std::io::Result<Sender<()>> {
    let (stop, stopped) = channel();
    let engine = engine.weak();
    std::thread::Builder::new().name("watchfire-fuse".into()).spawn(move || {
        while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let Some(engine) = engine.upgrade() else { break };
            engine.increment_epoch();
        }
    })?;
    Ok(stop)
}

/// A compiled module.
pub struct WasmModule {
    host: Arc<Host>,
    name: String,
    pre: InstancePre<Guest>,
    limits: Limits,
}

impl WasmModule {
    /// Checks, compiles and links a module.
    pub fn load(host: Arc<Host>, name: &str, bytes: &[u8], limits: &Limits) -> Result<Self, LoadError> {
        let component = compile::compile(&host, bytes.to_vec(), limits)?;
        load::check_exports(&component, &host.engine)?;
        load::check_imports(&component, &host.engine)?;
        let pre = host.linker.instantiate_pre(&component).map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        Ok(WasmModule { host, name: name.to_owned(), pre, limits: limits.clone() })
    }

    /// Checks settings.
    pub fn validate(&self, settings: &serde_json::Value) -> Result<(), Vec<SettingProblem>> {
        let json = settings_text(settings, &self.limits).map_err(|hit| whole(hit.to_string()))?;
        let mut live = self.instantiate().map_err(|error| whole(error.to_string()))?;
        live.validate(&json)
    }

    /// What the module says of itself without settings.
    pub fn describe(&self) -> Result<Descriptor, LoadError> {
        self.instantiate()?.describe()
    }

    /// A program with these settings.
    pub fn start(&self, settings: &serde_json::Value) -> Result<WasmProgram, LoadError> {
        let json = settings_text(settings, &self.limits).map_err(LoadError::Limit)?;
        WasmProgram::start(self.host.clone(), &self.name, self.pre.clone(), self.limits.clone(), json)
    }

    fn instantiate(&self) -> Result<store::Live, LoadError> {
        Ok(store::Live::new(&self.host, &RuleLog::new(&self.name, &self.limits), &self.pre, &self.limits)?)
    }
}

fn settings_text(settings: &serde_json::Value, limits: &Limits) -> Result<String, LimitHit> {
    let json = if settings.is_null() { "{}".to_owned() } else { settings.to_string() };
    limits.check_settings(json.len())?;
    Ok(json)
}

fn whole(message: String) -> Vec<SettingProblem> {
    vec![SettingProblem { path: String::new(), message }]
}
