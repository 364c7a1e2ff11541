//! `watchfire push`

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Exit, Failure};
use crate::oci::{self, Registry};

/// `watchfire push`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  watchfire push straggler.wasm oci://registry.example.com/rules/straggler:1.2.0

It prints the pinned name. Sign it with `cosign sign --key cosign.key HOST/NAME@sha256:…`.")]
pub struct Push {
    /// The module, as `watchfire build` made it
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Where to put it: oci://HOST/NAME:TAG
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
}

/// Puts a module into a registry.
pub fn run(args: &Push) -> Result<Exit, Failure> {
    let reference = oci::reference(&args.reference).map_err(Failure::wrong)?;
    let module =
        std::fs::read(&args.file).map_err(|error| Failure::wrong(format!("{}: {error}", args.file.display())))?;
    if !module.starts_with(b"\0asm") {
        return Err(Failure::wrong(format!("{} is no WebAssembly", args.file.display())));
    }
    let registry = Registry::new(&reference).map_err(Failure::could_not)?;
    println!("{}", registry.push(&reference, module).map_err(Failure::could_not)?);
    Ok(Exit::Fine)
}
