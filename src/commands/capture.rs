//! `watchfire capture`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use watchfire_engine::capture::Capture as Captured;

use crate::cli::duration;
use crate::exit::{Exit, Failure};

/// How much longer than the capture itself its answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// `watchfire capture`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire capture GpuTooHot --for 10m -o hot.capture
  watchfire capture gpu-thermal/GpuTooHot --calls 20 -o hot.capture
  watchfire replay --input hot.capture --module ./new.wasm      ask another version the same")]
pub struct Capture {
    /// A rule: its alert's name, or TEMPLATE/ALERT
    #[arg(value_name = "RULE")]
    pub rule: String,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// How long to watch, at most a day; of more than 1024 calls the last are kept
    #[arg(long = "for", default_value = "10m", value_name = "DURATION", value_parser = duration)]
    pub span: Duration,
    /// End after so many calls
    #[arg(long, value_name = "N")]
    pub calls: Option<u64>,
    /// Where the running Watchfire listens
    #[arg(long, default_value = "http://127.0.0.1:9177", value_name = "URL")]
    pub url: String,
}

/// Writes what a rule of a running Watchfire is asked and what it answers.
pub fn run(args: &Capture) -> Result<Exit, Failure> {
    let text = ask(args)?;
    let captured = Captured::read(&text).map_err(Failure::could_not)?;
    std::fs::write(&args.output, &text)
        .map_err(|error| Failure::could_not(format!("{}: {error}", args.output.display())))?;
    let (rule, calls) = (&captured.rule, captured.calls.len());
    println!("{rule}: {calls} calls, {} dropped, written to {}", captured.calls_dropped, args.output.display());
    if captured.cut_short {
        eprintln!("a reload changed the rule meanwhile; the capture ends there");
    }
    Ok(Exit::Fine)
}

fn ask(args: &Capture) -> Result<String, Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
    if !args.rule.chars().all(plain) {
        return Err(Failure::wrong(format!("{:?} is no name of a rule: expected TEMPLATE/ALERT or ALERT", args.rule)));
    }
    let calls = args.calls.map(|calls| format!("&calls={calls}")).unwrap_or_default();
    let base = args.url.trim_end_matches('/');
    let url = format!("{base}/api/v1/capture?rule={}&seconds={}{calls}", args.rule, args.span.as_secs_f64());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::could_not)?;
    let text = runtime.block_on(watchfire_collector::scrape::get(&url, args.span + ANSWER_WAIT));
    text.map_err(|why| Failure::could_not(format!("{base} gives no capture of {}: {why}", args.rule)))
}
