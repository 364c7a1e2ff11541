//! `watchfire build`

use std::path::PathBuf;

use clap::Args;

use crate::author::build;
use crate::exit::{Exit, Failure};

/// `watchfire build`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire build                  the rule in this folder
  watchfire build rules/straggler --json

The module is written beside template.yaml under the name that the template gives it, with a manifest in it
(`watchfire inspect`). It may import nothing but `log`.")]
pub struct Build {
    /// The rule's folder
    #[arg(default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The manifest, file and size as JSON
    #[arg(long)]
    pub json: bool,
}

/// Compiles the sources and writes a component.
pub fn run(args: &Build) -> Result<Exit, Failure> {
    let built = build::build(&args.folder).map_err(Failure::wrong)?;
    if args.json {
        println!("{}", serde_json::json!({"file": built.file, "bytes": built.bytes, "manifest": built.manifest}));
    } else {
        let manifest = &built.manifest;
        println!("{}: {} {}, {} bytes", built.file.display(), manifest.name, manifest.version, built.bytes);
    }
    Ok(Exit::Fine)
}
