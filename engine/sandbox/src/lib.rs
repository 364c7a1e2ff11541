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
//! - WebAssembly and expressions are evaluated on the thread that calls, which needs 1 MiB of stack left. Each call of a
//!   script gets a thread of its own with a stack of 64 MiB of address space, which ends with the call.
//! - One thread per [`Sandbox`] counts time (the wall-clock fuse); it ends with the last program.
//! - With [`SandboxConfig::signal_handlers`] wasmtime installs process-wide handlers for SIGSEGV, SIGILL and SIGFPE
//!   and memory accesses cost less. Without it, which is the default, it installs none.

mod error;
mod expression;
mod limits;
mod log;
pub mod manifest;
mod native;
pub mod outline;
mod policy;
mod scope;
mod script;
mod wasm;

use std::path::PathBuf;
use std::sync::Arc;

use watchfire_core::{Descriptor, Program};

pub use error::{LoadError, SandboxError, SettingProblem};
pub use expression::ExpressionSpec;
pub use limits::{Changes, FIELDS, Field, Limits, Raised, Unit};
pub use native::Native;
pub use policy::Policy;
pub use wasm::{CONTRACT, componentize};

/// How a sandbox is set up.
#[derive(Clone, Debug, Default)]
pub struct SandboxConfig {
    /// Limits of each rule.
    pub limits: Limits,
    /// Which other limits hold for which module.
    pub policy: Policy,
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
    policy: Arc<Policy>,
    changes: Changes,
}

impl Sandbox {
    /// A sandbox.
    ///
    /// # Errors
    /// Where this machine cannot run one.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        let (limits, policy) = (config.limits.clone(), Arc::new(config.policy.clone()));
        Ok(Sandbox { wasm: Arc::new(wasm::Host::new(config)?), limits, policy, changes: Changes::default() })
    }

    /// The same sandbox for a rule that brings limits of its own. That it may raise them so far is checked when its
    /// module is loaded: which limits hold without them is the module's matter.
    pub fn with_limits(&self, changes: Changes) -> Self {
        Sandbox { changes, ..self.clone() }
    }

    /// The limits that a rule brings of its own.
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Memory that all rules together may ask for, bytes.
    pub fn total_memory_bytes(&self) -> u64 {
        self.policy.total_memory_bytes
    }

    /// What holds for a module of a class, with the rule's own changes.
    fn changed(&self, class: &Limits) -> Result<Limits, LoadError> {
        let raised = self.changes.above(class, &self.policy.most);
        if raised.is_empty() { Ok(class.with(&self.changes)) } else { Err(LoadError::Raised(raised)) }
    }

    /// The limits of a module by what its manifest says.
    fn class(&self, bytes: &[u8]) -> Result<Limits, LoadError> {
        wasm::check_not_compiled(bytes)?;
        let most = self.policy.module_bytes_max(&self.limits);
        let granted = self.changes.iter().find(|(field, _)| field.name == "module_bytes").map_or(0, |(_, value)| value);
        let most = most.max(usize::try_from(granted).unwrap_or(usize::MAX));
        if bytes.len() > most {
            return Err(LoadError::TooLarge { found: bytes.len(), limit: most, name: "module_bytes" });
        }
        let ordinary = self.limits.module_bytes;
        let manifest = manifest::read(bytes).map_err(|why| match bytes.len() > ordinary {
            true => LoadError::TooLarge { found: bytes.len(), limit: ordinary, name: "module_bytes" },
            false => LoadError::NotWasm(why),
        })?;
        let class = self.policy.limits(manifest.as_ref(), &self.limits).ok_or(LoadError::LargeRefused)?;
        self.changed(class)
    }

    /// Loads a WebAssembly component, or a core module that becomes one.
    ///
    /// # Errors
    /// Why it cannot be run here.
    pub fn wasm(&self, name: &str, bytes: &[u8]) -> Result<Module, LoadError> {
        let limits = self.class(bytes)?;
        let module = wasm::WasmModule::load(self.wasm.clone(), name, bytes, &limits)?;
        let memory_bytes = limits.memory_bytes as u64;
        Ok(Module { name: name.to_owned(), memory_bytes, kind: Kind::Wasm(Box::new(module)) })
    }

    /// Loads a Rhai script; `file` is the name shown in errors.
    ///
    /// # Errors
    /// What is wrong with it, with its place.
    pub fn rhai(&self, name: &str, file: &str, source: &str) -> Result<Module, LoadError> {
        let script = script::Script::load(file, source, &self.changed(&self.limits)?)?;
        Ok(Module { name: name.to_owned(), memory_bytes: 0, kind: Kind::Rhai(Arc::new(script)) })
    }

    /// Loads a `when:` expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn expression(&self, spec: ExpressionSpec) -> Result<Module, LoadError> {
        let name = spec.name.clone();
        let compiled = expression::Compiled::new(spec, &self.changed(&self.limits)?)?;
        Ok(Module { name, memory_bytes: 0, kind: Kind::Expression(Arc::new(compiled)) })
    }
}

/// A loaded module, from which any number of programs can be started.
pub struct Module {
    name: String,
    memory_bytes: u64,
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

    /// Linear memory that each program of it may ask for, bytes; 0 where it has none.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
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
