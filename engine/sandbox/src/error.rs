//! Why a module cannot be loaded.

use watchfire_core::limit::grouped;
use watchfire_core::{LimitHit, RuleFailure};

use crate::Raised;

/// Something wrong with a rule's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// Where, such as `above.critical`; empty where it is not of one key.
    pub path: String,
    /// What.
    pub message: String,
}

/// Why a sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox cannot be set up: {0}")]
pub struct SandboxError(pub String);

/// Why a module cannot be loaded or started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// The file is larger than a module may be.
    #[error(
        "the {} has {}, more than its limit of {}; make it smaller, raise limits.{name}, or see docs/limits.md",
        thing(.name), amount(.name, *.found), amount(.name, *.limit)
    )]
    TooLarge {
        /// Its size.
        found: usize,
        /// The limit.
        limit: usize,
        /// The limit's name.
        name: &'static str,
    },
    /// Part of the module goes beyond what any module may have.
    #[error("the module has {0}, see docs/limits.md")]
    Bomb(String),
    /// The module asks for the limits of large modules, and does not get them.
    #[error(
        "the module's manifest says `runtime: large`, and the main configuration has `limits: {{large_modules: false}}`; see docs/limits.md"
    )]
    LargeRefused,
    /// The rule asks for higher limits than it may have.
    #[error("{}", joined(.0))]
    Raised(Vec<Raised>),
    /// It ran into a limit before it was started.
    #[error("the module {0}")]
    Limit(LimitHit),
    /// Too many compilations that were given up are still running.
    #[error("{0} modules that were given up are still being compiled; restart Watchfire without them")]
    CompilersBusy(usize),
    /// It is no WebAssembly.
    #[error("this is no WebAssembly module: {0}")]
    NotWasm(String),
    /// It imports something that rules cannot have.
    #[error("the module imports {import:?}, which rules cannot have; {hint}")]
    Import {
        /// What it imports.
        import: String,
        /// What to do.
        hint: &'static str,
    },
    /// It was made for another version of the contract, or for none.
    #[error(
        "the module {found}; this Watchfire runs {offered}. Rebuild it with a watchfire-sdk of this release, or upgrade Watchfire"
    )]
    Contract {
        /// What was found.
        found: String,
        /// What is offered.
        offered: &'static str,
    },
    /// Compiling it took too long.
    #[error(
        "compiling the module took longer than {0:?}; make it smaller, raise limits.compile, or see docs/limits.md"
    )]
    CompileTime(std::time::Duration),
    /// It does not compile or link.
    #[error("the module cannot be compiled: {0}")]
    Compile(String),
    /// A script is wrong.
    #[error("{file}:{line}:{column}: {message}")]
    Script {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// What it says of itself is wrong.
    #[error("what the module says of itself is wrong: {0}")]
    Describe(String),
    /// An expression is wrong.
    #[error("the expression is wrong: {0}")]
    Expression(String),
    /// It failed while it was started.
    #[error("the module failed at its start: it {0}")]
    Failed(#[from] RuleFailure),
    /// It does not take its settings.
    #[error("the module does not take its settings: {0}")]
    Settings(String),
}

fn thing(name: &str) -> &'static str {
    match name {
        "script_bytes" => "script",
        "function_bytes" => "module's largest function",
        _ => "module",
    }
}

fn amount(name: &str, count: usize) -> String {
    let unit = if name == "functions" { "functions" } else { "bytes" };
    format!("{} {unit}", grouped(count as u64))
}

fn joined(raised: &[Raised]) -> String {
    raised.iter().map(Raised::to_string).collect::<Vec<_>>().join("; ")
}
