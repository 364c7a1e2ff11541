//! Reading the configuration, for all commands alike.

use std::path::Path;

use watchfire_engine::config::Config;
use watchfire_engine::door::Errors;
use watchfire_engine::{Builder, Engine};

use crate::exit::Failure;

/// Reads a configuration file.
///
/// # Errors
/// All that is wrong with it.
pub fn read(file: &Path) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::could_not(format!("{} cannot be read: {error}", file.display())))?;
    let mut errors = Errors::default();
    let config = Config::read(file, &text, &mut errors);
    match config.filter(|_| errors.is_empty()) {
        Some(config) => Ok(config),
        None => Err(Failure::wrong(errors)),
    }
}

/// A builder with the templates and routes of a configuration; nothing is stored and nobody is told.
pub fn builder(config: &mut Config) -> Builder {
    let mut builder = Engine::builder()
        .sources(std::mem::take(&mut config.templates))
        .shadow(std::mem::take(&mut config.shadow))
        .parameters(std::mem::take(&mut config.given))
        .limits(config.limits.limits.clone())
        .policy(config.limits.policy.clone())
        .signal_handlers(true);
    if let Some(store) = config.modules.clone() {
        builder = builder.module_store(store);
    }
    match config.route.take() {
        Some(route) => builder.routes(route),
        None => builder,
    }
}

/// The name of this host for labels.
pub fn host_name(config: Option<&Config>) -> String {
    let named = config.and_then(|config| config.host.clone());
    let system = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    named.unwrap_or_else(system)
}
