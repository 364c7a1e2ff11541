//! Rhai rules: scripts on a raw engine, over the same buffers.
//!
//! What a script has: arithmetic, logic, comparisons, `if`/`for`/`while`/functions, basic mathematics, texts, arrays,
//! maps and ranges. What it has not: a clock, sleep, files, modules, `eval`, printing (it goes to the log).

mod compare;
mod convert;
mod describe;
mod engine;
mod frame;
mod program;
mod settings;

use rhai::{AST, CallFnOptions, Dynamic, Engine, FuncArgs, Scope};
use watchfire_core::{Descriptor, RuleFailure};

use crate::log::RuleLog;
use crate::{Limits, LoadError, SettingProblem};
pub use describe::duration as window;
use engine::{Bounds, ScriptEngine};
pub use engine::{compile_error, sandboxed};
pub use program::ScriptProgram;

/// A loaded script.
pub struct Script {
    file: String,
    source: String,
    limits: Limits,
    descriptor: Descriptor,
    defaults: serde_json::Map<String, serde_json::Value>,
    has_validate: bool,
}

/// A script with an engine of its own, ready to be called.
pub struct Running {
    engine: ScriptEngine,
    ast: AST,
    file: String,
}

impl Running {
    fn new(file: &str, source: &str, limits: &Limits) -> Result<Self, LoadError> {
        let engine = ScriptEngine::new(limits, file);
        let ast = engine.compile(source)?.map_err(|error| compile_error(file, &error))?;
        Ok(Running { engine, ast, file: file.to_owned() })
    }

    /// Whether the script has a function.
    pub fn has(&self, name: &str, parameters: usize) -> bool {
        self.ast.iter_functions().any(|function| function.name == name && function.params.len() == parameters)
    }

    /// Operations of the last call.
    pub fn steps_used(&self) -> u64 {
        self.engine.steps_used()
    }

    /// The script's log.
    pub fn log(&self) -> &RuleLog {
        self.engine.log()
    }

    /// Calls a function within bounds, and makes what is wanted of what it gives.
    pub fn call<T: Send>(
        &self,
        name: &str,
        args: impl FuncArgs + Send,
        bounds: Bounds,
        make: fn(Dynamic) -> T,
    ) -> Result<T, RuleFailure> {
        let call = |engine: &Engine| {
            let options = CallFnOptions::new().eval_ast(false);
            engine.call_fn_with_options(options, &mut Scope::new(), &self.ast, name, args)
        };
        self.engine.within(bounds, &self.file, call, make)
    }
}

impl Script {
    /// Compiles a script and asks it what it is.
    pub fn load(file: &str, source: &str, limits: &Limits) -> Result<Self, LoadError> {
        if source.len() > limits.script_bytes {
            let (found, limit) = (source.len(), limits.script_bytes);
            return Err(LoadError::TooLarge { found, limit, name: "script_bytes" });
        }
        let running = Running::new(file, source, limits)?;
        for (name, parameters) in [("describe", 0), ("evaluate", 2)] {
            if !running.has(name, parameters) {
                let message = format!("the script has no function `{name}` with {parameters} parameters");
                return Err(LoadError::Script { file: file.to_owned(), line: 1, column: 1, message });
            }
        }
        let said = running.call("describe", (), Bounds::of_start(limits), |said| describe::read(&said))?;
        let (descriptor, defaults) = said.map_err(LoadError::Describe)?;
        limits.check_state_slots(descriptor.state_slots).map_err(LoadError::Limit)?;
        let has_validate = running.has("validate_settings", 1);
        let (file, source) = (file.to_owned(), source.to_owned());
        Ok(Script { file, source, limits: limits.clone(), descriptor, defaults, has_validate })
    }

    /// What it says of itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Checks settings: the keys against the script's defaults, then whatever the script itself checks.
    pub fn validate(&self, settings: &serde_json::Value) -> Result<(), Vec<SettingProblem>> {
        let merged = self.merge(settings)?;
        if !self.has_validate {
            return Ok(());
        }
        let whole = |message: String| vec![SettingProblem { path: String::new(), message }];
        let running = Running::new(&self.file, &self.source, &self.limits).map_err(|error| whole(error.to_string()))?;
        let settings = convert::from_json(&serde_json::Value::Object(merged));
        let bounds = Bounds::of_start(&self.limits);
        let said = running.call("validate_settings", (settings,), bounds, |said| describe::problems(&said));
        said.map_err(|failure| whole(format!("the script {failure}")))?
    }

    /// A program with these settings.
    pub fn start(&self, settings: &serde_json::Value) -> Result<ScriptProgram, LoadError> {
        self.validate(settings).map_err(|problems| LoadError::Settings(in_one_line(&problems)))?;
        let merged = self.merge(settings).map_err(|problems| LoadError::Settings(in_one_line(&problems)))?;
        let running = Running::new(&self.file, &self.source, &self.limits)?;
        let settings = settings::Settings::new(&merged);
        Ok(ScriptProgram::new(running, self.descriptor.clone(), settings, self.limits.clone()))
    }

    fn merge(
        &self,
        settings: &serde_json::Value,
    ) -> Result<serde_json::Map<String, serde_json::Value>, Vec<SettingProblem>> {
        let whole = |message: String| vec![SettingProblem { path: String::new(), message }];
        let mut merged = self.defaults.clone();
        let given = match settings {
            serde_json::Value::Null => return Ok(merged),
            serde_json::Value::Object(given) => given,
            other => return Err(whole(format!("expected a mapping, found {other}"))),
        };
        self.limits.check_settings(settings.to_string().len()).map_err(|hit| whole(hit.to_string()))?;
        let mut problems = Vec::new();
        for (key, value) in given {
            if !self.defaults.contains_key(key) {
                let known = self.defaults.keys().cloned().collect::<Vec<_>>().join(", ");
                let message = format!("unknown setting `{key}`; the script knows {known}");
                problems.push(SettingProblem { path: key.clone(), message });
            }
            if let Some(default) = self.defaults.get(key)
                && std::mem::discriminant(default) != std::mem::discriminant(value)
            {
                let message = format!("expected something like {default}, found {value}");
                problems.push(SettingProblem { path: key.clone(), message });
            }
            merged.insert(key.clone(), value.clone());
        }
        if problems.is_empty() { Ok(merged) } else { Err(problems) }
    }
}

fn in_one_line(problems: &[SettingProblem]) -> String {
    problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect::<Vec<_>>().join("; ")
}
