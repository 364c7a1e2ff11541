//! `watchfire lock`

use std::path::PathBuf;

use clap::Args;
use watchfire_engine::module_store::ModuleStore;
use watchfire_engine::{Given, LockFile, TemplateSource, templates_at};

use crate::config;
use crate::exit::{Exit, Failure};

/// `watchfire lock`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire lock -c watchfire.yaml      writes watchfire.lock beside it
  watchfire lock templates/
  watchfire run -c watchfire.yaml --locked

With --locked, `run`, `check`, `test` and `replay` refuse templates and modules that are not as locked.")]
pub struct Lock {
    /// The configuration whose templates are locked
    #[arg(short, long, value_name = "FILE", conflicts_with = "paths", required_unless_present = "paths")]
    pub config: Option<PathBuf>,
    /// Template files, or folders with templates; the lock file lies at the first
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The lock file to write, where not there
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Writes the digests of templates and their modules.
pub fn run(args: &Lock) -> Result<Exit, Failure> {
    let (sources, given, store) = sources(args)?;
    let lock = LockFile::of(&sources, &given, store.as_ref()).map_err(Failure::wrong)?;
    let first = args.config.as_ref().or(args.paths.first());
    let beside = || first.map(|path| LockFile::of_path(path)).unwrap_or_default();
    let file = args.output.clone().unwrap_or_else(beside);
    std::fs::write(&file, lock.text())
        .map_err(|error| Failure::could_not(format!("{} cannot be written: {error}", file.display())))?;
    let (templates, modules) = lock.counts();
    println!("{}: {templates} templates, {modules} modules", file.display());
    Ok(Exit::Fine)
}

fn sources(args: &Lock) -> Result<(Vec<TemplateSource>, Given, Option<ModuleStore>), Failure> {
    if let Some(file) = &args.config {
        let config = config::read(file)?;
        return Ok((config.templates, config.given, config.modules));
    }
    let at = |path: &PathBuf| {
        templates_at(path).map_err(|error| Failure::could_not(format!("{} cannot be read: {error}", path.display())))
    };
    let found = args.paths.iter().map(at).collect::<Result<Vec<_>, _>>()?;
    Ok((found.concat(), Given::new(), None))
}
