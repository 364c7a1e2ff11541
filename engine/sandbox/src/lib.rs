//! Runs rules under limits, behind [`watchfire_core::Program`]: WebAssembly components, Rhai scripts, expressions
//! (`when:`), and native rules for those who link their own.
//!
//! **What is not here:** WASI, any import but `log`, asynchronous calls, a clock or a file that a rule could reach.
//!
//! A rule that traps, loops, hoards memory or answers junk is a [`watchfire_core::RuleFailure`] of that rule alone:
//! each has its own store, thrown away at any failure and built anew at the next call. Its state lives with the
//! host, so nothing of it is lost.
//!
//! # For embedders
//! - Evaluation happens on the thread that calls. It needs 1 MiB of stack left: 512 KiB for WebAssembly, and what
//!   a Rhai script of the greatest allowed depth takes.
//! - One thread per [`Sandbox`] counts time (the wall-clock fuse); it ends with the last program.
//! - With [`SandboxConfig::signal_handlers`] wasmtime installs process-wide handlers for SIGSEGV, SIGILL and SIGFPE
//!   and memory accesses cost less. Without it, which is the default, it installs none.

mod error;
mod expression;
mod large;
mod limits;
pub mod manifest;
mod native;
pub mod outline;
mod scope;
mod script;
mod wasm;

use std::path::PathBuf;
use std::sync::Arc;

use watchfire_core::{Descriptor, Program};

pub use error::{LoadError, SandboxError, SettingProblem};
pub use expression::ExpressionSpec;
pub use limits::Limits;
pub use native::Native;
pub use wasm::{CONTRACT, componentize};

/// How a sandbox is set up.
#[derive(Clone, Debug, Default)]
pub struct SandboxConfig {
    /// Limits of each rule.
    pub limits: Limits,
    /// Where compiled code is kept; nowhere if none. The folder must be this user's and writable by
    /// nobody else; each file is sealed with a key that lies in it, and one that was changed is never run.
    pub cache_dir: Option<PathBuf>,
    /// Whether wasmtime may install its signal handlers.
    pub signal_handlers: bool,
    /// What guards the host.
    pub guards: Guards,
}

/// What guards the host against WebAssembly rules. All on by default, and on in everything that Watchfire runs; they
/// can be taken away one by one to measure what each costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// Steps are counted, and run out.
    pub fuel: bool,
    /// The wall-clock fuse.
    pub fuse: bool,
    /// Each NaN has the same bits, so that a replay is exact.
    pub canonical_nans: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Guards { fuel: true, fuse: true, canonical_nans: true }
    }
}

/// Loads modules. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    wasm: Arc<wasm::Host>,
    limits: Limits,
}

impl Sandbox {
    /// A sandbox.
    ///
    /// # Errors
    /// Where this machine cannot run one.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let limits = config.limits.clone();
        Ok(Sandbox { wasm: Arc::new(wasm::Host::new(config)?), limits })
    }

    /// Loads a WebAssembly component, or a core module that becomes one.
    ///
    /// # Errors
    /// Why it cannot be run here.
    pub fn wasm(&self, name: &str, bytes: &[u8]) -> Result<Module, LoadError> {
        let module = wasm::WasmModule::load(self.wasm.clone(), name, bytes, &large::limits(bytes, &self.limits))?;
        Ok(Module { name: name.to_owned(), kind: Kind::Wasm(Box::new(module)) })
    }

    /// Loads a Rhai script; `file` is the name shown in errors.
    ///
    /// # Errors
    /// What is wrong with it, with its place.
    pub fn rhai(&self, name: &str, file: &str, source: &str) -> Result<Module, LoadError> {
        let script = script::Script::load(file, source, &self.limits)?;
        Ok(Module { name: name.to_owned(), kind: Kind::Rhai(Arc::new(script)) })
    }

    /// Loads a `when:` expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn expression(&self, spec: ExpressionSpec) -> Result<Module, LoadError> {
        let name = spec.name.clone();
        let compiled = expression::Compiled::new(spec, &self.limits)?;
        Ok(Module { name, kind: Kind::Expression(Arc::new(compiled)) })
    }
}

/// A loaded module, from which any number of programs can be started.
pub struct Module {
    name: String,
    kind: Kind,
}

enum Kind {
    Wasm(Box<wasm::WasmModule>),
    Rhai(Arc<script::Script>),
    Expression(Arc<expression::Compiled>),
}

impl Module {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks settings without starting anything.
    ///
    /// # Errors
    /// All that is wrong with them, by path; or the module's failure as one problem without a path.
    pub fn validate(&self, settings: &serde_json::Value) -> Result<(), Vec<SettingProblem>> {
        match &self.kind {
            Kind::Wasm(module) => module.validate(settings),
            Kind::Rhai(script) => script.validate(settings),
            Kind::Expression(_) => Ok(()),
        }
    }

    /// What it says of itself without settings.
    ///
    /// # Errors
    /// Where it fails even at that.
    pub fn describe(&self) -> Result<Descriptor, LoadError> {
        match &self.kind {
            Kind::Wasm(module) => module.describe(),
            Kind::Rhai(script) => Ok(script.descriptor().clone()),
            Kind::Expression(compiled) => Ok(compiled.descriptor().clone()),
        }
    }

    /// A program with these settings.
    ///
    /// # Errors
    /// Where the module does not take them.
    pub fn start(&self, settings: &serde_json::Value) -> Result<Box<dyn Program>, LoadError> {
        Ok(match &self.kind {
            Kind::Wasm(module) => Box::new(module.start(settings)?),
            Kind::Rhai(script) => Box::new(script.start(settings)?),
            Kind::Expression(compiled) => Box::new(expression::Expression::new(compiled.clone())),
        })
    }
}
