//! Holding templates and modules to a lock file, for all commands alike.

use std::path::Path;

use watchfire_engine::config::Config;
use watchfire_engine::module_store::ModuleStore;
use watchfire_engine::{Given, LockFile, TemplateSource};

use crate::exit::Failure;

/// As [`hold`], for the templates of a configuration.
///
/// # Errors
/// As [`hold`].
pub fn hold_config(path: &Path, config: &Config, must: bool) -> Result<(), Failure> {
    hold(path, &config.templates, &config.given, config.modules.as_ref(), must || config.locked)
}

/// Compares what is there with the lock file that belongs to `path`. Where it `must` be as locked, what differs is
/// refused; else it is a warning, and no lock file is none.
///
/// # Errors
/// All differences, or why they cannot be told.
pub fn hold(
    path: &Path,
    sources: &[TemplateSource],
    given: &Given,
    store: Option<&ModuleStore>,
    must: bool,
) -> Result<(), Failure> {
    let file = LockFile::of_path(path);
    if !must && !file.exists() {
        return Ok(());
    }
    let found = match LockFile::of(sources, given, store) {
        Ok(found) => found,
        // What is wrong with the templates themselves is told by whoever runs them.
        Err(_) if !must => return Ok(()),
        Err(errors) => return Err(Failure::wrong(errors)),
    };
    let drift = LockFile::read(&file).map(|lock| lock.drift(&found)).map_err(Failure::wrong)?;
    if drift.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = drift.iter().map(ToString::to_string).collect();
    let said = format!(
        "{} differ{} from {}:\n{}\n  hint: look at what changed, then run `watchfire lock`",
        if lines.len() == 1 { "1 thing".to_owned() } else { format!("{} things", lines.len()) },
        if lines.len() == 1 { "s" } else { "" },
        file.display(),
        lines.join("\n")
    );
    if must {
        return Err(Failure::wrong(said));
    }
    tracing::warn!("{said}");
    Ok(())
}
