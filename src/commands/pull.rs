//! `watchfire pull`

use std::path::PathBuf;

use clap::Args;
use watchfire_engine::module_store::ModuleStore;

use crate::exit::{Exit, Failure};
use crate::oci::{self, PublicKey, Registry};

/// `watchfire pull`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire pull oci://registry.example.com/rules/straggler:1.2.0 --store /var/lib/watchfire/modules
  watchfire pull oci://registry.example.com/rules/straggler@sha256:… --key cosign.pub

It prints the pinned name that a template uses: `module: oci://…@sha256:…`.
User and password come from WATCHFIRE_OCI_USERNAME and WATCHFIRE_OCI_PASSWORD.")]
pub struct Pull {
    /// Modules in registries: oci://HOST/NAME:TAG or oci://HOST/NAME@sha256:…
    #[arg(required = true, value_name = "REFERENCE")]
    pub references: Vec<String>,
    /// Where modules are kept; `templates: {modules: …}` of the configuration names the same folder
    #[arg(long, default_value = "modules", value_name = "FOLDER")]
    pub store: PathBuf,
    /// A public key (cosign.pub); given once or more, each module must be signed by one of them
    #[arg(long, value_name = "FILE")]
    pub key: Vec<PathBuf>,
}

/// Fetches modules, checks them and keeps them.
pub fn run(args: &Pull) -> Result<Exit, Failure> {
    let keys = args.key.iter().map(key).collect::<Result<Vec<_>, _>>()?;
    let store = ModuleStore::new(&args.store);
    for text in &args.references {
        let reference = oci::reference(text).map_err(Failure::wrong)?;
        let registry = Registry::new(&reference).map_err(Failure::could_not)?;
        let fetched = registry.fetch(&reference, &keys).map_err(Failure::could_not)?;
        store.keep(&fetched.manifest, &fetched.module).map_err(Failure::could_not)?;
        println!("{}", fetched.reference);
    }
    Ok(Exit::Fine)
}

fn key(path: &PathBuf) -> Result<PublicKey, Failure> {
    let wrong = |why: String| Failure::wrong(format!("--key {}: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    PublicKey::from_pem(&pem).map_err(wrong)
}
