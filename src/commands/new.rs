//! `watchfire new`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::author::{lang, scaffold};
use crate::exit::{Exit, Failure};

/// `watchfire new`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire new rule fan-still --lang rhai      no tool is needed
  watchfire new rule straggler --lang rust
  watchfire new template my-gpus                expressions only")]
pub struct New {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A rule with its own code, a template that uses it, and scenarios
    Rule {
        /// Its name, such as fan-still; also the folder's
        name: String,
        /// rhai, rust, js, python, c or go
        #[arg(long, default_value = "rhai", value_name = "LANGUAGE")]
        lang: String,
        /// The folder to make; NAME if not given
        #[arg(long, value_name = "FOLDER")]
        path: Option<PathBuf>,
    },
    /// A template of `when:` expressions, with scenarios
    Template {
        /// Its name, such as my-gpus; also the folder's
        name: String,
        /// The folder to make; NAME if not given
        #[arg(long, value_name = "FOLDER")]
        path: Option<PathBuf>,
    },
}

/// Writes the files, and says what to do next.
pub fn run(args: &New) -> Result<Exit, Failure> {
    let (name, path) = match &args.what {
        What::Rule { name, path, .. } | What::Template { name, path } => (name, path),
    };
    let folder = path.clone().unwrap_or_else(|| PathBuf::from(name));
    match &args.what {
        What::Rule { lang, .. } => {
            let language = lang::named(lang).map_err(Failure::wrong)?;
            scaffold::rule(&folder, name, language).map_err(Failure::wrong)?;
        }
        What::Template { .. } => scaffold::template(&folder, name).map_err(Failure::wrong)?,
    }
    println!("{} is ready. Next:\n  cd {}\n  watchfire test", folder.display(), folder.display());
    Ok(Exit::Fine)
}
