//! `watchfire bench`

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::author::measure::{self, Measured};
use crate::author::{baseline, lang};
use crate::exit::{Exit, Failure};

/// `watchfire bench`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire bench                                    the rule in this folder
  watchfire bench straggler.wasm --rows 8,1024 --with '{\"limit\": 85}'
  watchfire bench --save bench.json                  keep today's figures
  watchfire bench --baseline bench.json              exit 1 where steps or memory have grown

Steps (fuel, or Rhai's operations) are the same on every machine; times are not, and are shown beside them.")]
pub struct Bench {
    /// A module, or the folder of a rule
    #[arg(default_value = ".", value_name = "FILE|FOLDER")]
    pub path: PathBuf,
    /// Numbers of rows to measure with
    #[arg(long, value_delimiter = ',', default_value = "8,1024,10000", value_name = "N,N")]
    pub rows: Vec<usize>,
    /// Settings as JSON, as a template gives them under `with:`
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub with: String,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the figures to a file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Compare with the figures in a file
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How much more, in percent, is still the same
    #[arg(long, default_value_t = 5.0, value_name = "PERCENT")]
    pub tolerance: f64,
}

/// Measures a module on made-up rows: half of them calm, half of them not.
pub fn run(args: &Bench) -> Result<Exit, Failure> {
    let settings: serde_json::Value =
        serde_json::from_str(&args.with).map_err(|error| Failure::wrong(format!("--with: {error}")))?;
    let file = module_of(args)?;
    let bytes =
        watchfire_engine::read_file(&file).map_err(|why| Failure::could_not(format!("{}: {why}", file.display())))?;
    let measured = measure::measure(&file, &bytes, &settings, &args.rows).map_err(Failure::wrong)?;
    let figures = json!({"file": file, "rows": measured});
    if args.json {
        println!("{figures}");
    } else {
        show(&measured);
    }
    if let Some(path) = &args.save {
        std::fs::write(path, format!("{figures:#}\n"))
            .map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    }
    let Some(path) = &args.baseline else { return Ok(Exit::Fine) };
    let grown = baseline::grown(path, &measured, args.tolerance).map_err(Failure::could_not)?;
    grown.iter().for_each(|line| eprintln!("{line}"));
    Ok(if grown.is_empty() { Exit::Fine } else { Exit::Wrong })
}

/// The file itself, or the module of a folder, built if it is stale.
fn module_of(args: &Bench) -> Result<PathBuf, Failure> {
    if !args.path.is_dir() {
        return Ok(args.path.clone());
    }
    crate::author::build::build_stale(&args.path).map_err(Failure::could_not)?;
    let found = crate::author::build::module_file(&args.path, lang::of(&args.path).is_some());
    found.map_err(Failure::wrong)
}

fn show(measured: &[Measured]) {
    println!(
        "{:>8} {:>12} {:>10} {:>8} {:>10} {:>12} {:>12} {:>8}",
        "rows", "steps", "steps/row", "budget", "ns/row", "memory B", "answer B", "limit"
    );
    for one in measured {
        println!(
            "{:>8} {:>12} {:>10.1} {:>7.1}% {:>10.2} {:>12} {:>12} {:>7.1}%",
            one.rows,
            one.steps,
            one.steps as f64 / one.rows as f64,
            100.0 * one.steps as f64 / one.steps_budget as f64,
            one.ns_per_row,
            one.memory_bytes,
            one.output_bytes,
            100.0 * one.output_bytes as f64 / one.output_budget as f64,
        );
    }
}
