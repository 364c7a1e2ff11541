//! WebAssembly rules.
//!
//! # What the cache of compiled code is safe against
//! Compiled code is run as it is found, so a cache file is only used where its seal, made with a secret key that
//! lies in the same folder with mode 0600, is right; anything else is compiled anew and replaced. The folder must
//! belong to the user that runs Watchfire and be writable by nobody else, or no cache is used. Against that user,
//! or root, nothing here helps: they could replace Watchfire itself.

mod bindings;
mod cache;
mod convert;
mod load;
mod program;
mod store;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use wasmtime::component::{Component, InstancePre, Linker};
use wasmtime::{Config, Engine};
use watchfire_core::Descriptor;

use crate::{Guards, Limits, LoadError, SandboxConfig, SandboxError, SettingProblem};
use cache::Cache;
pub use load::componentize;
pub use program::WasmProgram;
use store::Guest;

/// The version of the contract that is run here.
pub const CONTRACT: &str = "watchfire:rule@0.1.0";
/// One tick of the wall-clock fuse.
const TICK: Duration = Duration::from_millis(10);

/// What all WebAssembly rules of a sandbox share.
pub struct Host {
    engine: Engine,
    linker: Linker<Guest>,
    cache: Option<Cache>,
    guards: Guards,
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
        Ok(Host { engine, linker, cache, guards, _ticker: ticker })
    }
}

fn engine_config(config: &SandboxConfig) -> Config {
    let mut engine = Config::new();
    engine
        .consume_fuel(config.guards.fuel)
        .epoch_interruption(config.guards.fuse)
        .cranelift_nan_canonicalization(config.guards.canonical_nans)
        .wasm_relaxed_simd(false)
        .max_wasm_stack(Limits::WASM_STACK_BYTES)
        .signals_based_traps(config.signal_handlers)
        // Thousands of rules must fit under a limit on address space: reserve what a rule may use, not 4 GiB.
        .memory_reservation(config.limits.memory_bytes as u64)
        .memory_reservation_for_growth(0)
        .memory_guard_size(64 << 10);
    engine
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
        let bytes = load::check(bytes, limits)?;
        let component = match host.cache.as_ref().and_then(|cache| cache.get(&host.engine, &bytes)) {
            Some(component) => component,
            None => compile(&host, bytes, limits)?,
        };
        load::check_exports(&component, &host.engine)?;
        load::check_imports(&component, &host.engine)?;
        let pre = host.linker.instantiate_pre(&component).map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        Ok(WasmModule { host, name: name.to_owned(), pre, limits: limits.clone() })
    }

    /// Checks settings.
    pub fn validate(&self, settings: &serde_json::Value) -> Result<(), Vec<SettingProblem>> {
        let json = settings_text(settings, &self.limits).map_err(whole)?;
        let mut live = self.instantiate().map_err(|error| whole(error.to_string()))?;
        live.validate(&json)
    }

    /// What the module says of itself without settings.
    pub fn describe(&self) -> Result<Descriptor, LoadError> {
        self.instantiate()?.describe()
    }

    /// A program with these settings.
    pub fn start(&self, settings: &serde_json::Value) -> Result<WasmProgram, LoadError> {
        let json = settings_text(settings, &self.limits).map_err(LoadError::Settings)?;
        WasmProgram::start(self.host.clone(), &self.name, self.pre.clone(), self.limits.clone(), json)
    }

    fn instantiate(&self) -> Result<store::Live, LoadError> {
        Ok(store::Live::new(&self.host, &self.name, &self.pre, &self.limits)?)
    }
}

fn settings_text(settings: &serde_json::Value, limits: &Limits) -> Result<String, String> {
    let json = if settings.is_null() { "{}".to_owned() } else { settings.to_string() };
    if json.len() > limits.settings_bytes {
        return Err(format!("{} bytes of JSON, more than the limit of {}", json.len(), limits.settings_bytes));
    }
    Ok(json)
}

fn whole(message: String) -> Vec<SettingProblem> {
    vec![SettingProblem { path: String::new(), message }]
}

/// Compiles on a thread of its own: wasmtime bounds neither the time nor the patience that a module may take.
fn compile(host: &Arc<Host>, bytes: Vec<u8>, limits: &Limits) -> Result<Component, LoadError> {
    let (done, result) = channel();
    let owned = host.clone();
    let work = move || {
        let compiled = Component::from_binary(&owned.engine, &bytes);
        if let (Ok(component), Some(cache)) = (&compiled, &owned.cache) {
            cache.put(component, &bytes);
        }
        // Nobody listens any more where the time limit was hit.
        let _ = done.send(compiled);
    };
    let thread = std::thread::Builder::new().name("watchfire-compile".into()).spawn(work);
    thread.map_err(|error| LoadError::Compile(error.to_string()))?;
    match result.recv_timeout(limits.compile) {
        Ok(compiled) => compiled.map_err(|error| LoadError::Compile(format!("{error:#}"))),
        Err(_) => Err(LoadError::CompileTime(limits.compile)),
    }
}
