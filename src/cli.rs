//! The words of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Watches GPU hosts and fires graded alerts.
#[derive(Debug, Parser)]
#[command(name = "watchfire", version, about, max_term_width = 100)]
#[command(after_help = "Examples:
  watchfire demo                                   see it work, no set-up
  watchfire run -c /etc/watchfire/watchfire.yaml   watch this host
  watchfire check watchfire.yaml templates/        find every mistake before it ships
  watchfire test templates/                        run the scenarios of templates
  watchfire replay -c watchfire.yaml --input day.om --json

Exit codes: 0 fine, 1 the thing checked is wrong, 2 usage, 3 could not run.")]
pub struct Cli {
    /// What is written to stderr: error, warn, info, debug or trace; per module as in `watchfire=debug`.
    #[arg(long, global = true, env = "WATCHFIRE_LOG", default_value = "info", value_name = "LEVEL")]
    pub log: String,
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, in the order of a user's first day.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the main job on a recorded 8-GPU host: no set-up, ends by itself
    Demo(Demo),
    /// Begin a rule or a template: sources, scenarios, README
    New(crate::commands::new::New),
    /// Make a WebAssembly module of a rule's sources
    Build(crate::commands::build::Build),
    /// Measure what a module costs: steps, time, memory, size of the answer
    Bench(crate::commands::bench::Bench),
    /// Show what a module is, needs and may do
    Inspect(crate::commands::inspect::Inspect),
    /// Validate configuration files and templates; lists every error
    Check(Check),
    /// Write down what templates and modules are now, for `--locked`
    Lock(crate::commands::lock::Lock),
    /// Run the scenarios of templates
    Test(Test),
    /// Convert what other systems have, such as the alerting rules of Prometheus
    Import(crate::commands::import::Import),
    /// Run recorded samples through rules and routes on virtual time; sends nothing
    Replay(Replay),
    /// Collect, evaluate, notify and serve, until SIGTERM; SIGHUP reloads
    Run(Run),
    /// Write what this host's sources read, to be replayed
    Record(Record),
    /// Fetch modules from a registry, check and keep them
    #[cfg(feature = "oci")]
    Pull(crate::commands::pull::Pull),
    /// Put a module into a registry
    #[cfg(feature = "oci")]
    Push(crate::commands::push::Push),
    /// Write what a rule of a running Watchfire is asked and answers, to be asked again
    Capture(crate::commands::capture::Capture),
    /// Show what a running Watchfire does
    Status(Status),
}

/// `watchfire demo`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire demo                 the whole recording, in about 15 seconds
  watchfire demo --for 20m       only its first 20 minutes
  watchfire demo --json          what `replay --json` prints")]
pub struct Demo {
    /// Replay only this much recorded time, such as 20m
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub span: Option<std::time::Duration>,
    /// One JSON line per alert transition, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Recorded seconds per second
    #[arg(long, default_value_t = 180.0, value_name = "FACTOR")]
    pub speed: f64,
}

/// `watchfire check`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire check watchfire.yaml
  watchfire check templates/ extra/template.yaml")]
pub struct Check {
    /// Configuration files, template files, or folders with templates
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Print {"errors": [{"file", "line", "column", "message", "hint"}]}
    #[arg(long)]
    pub json: bool,
    /// Refuse templates and modules that are not as `watchfire lock` wrote them down
    #[arg(long)]
    pub locked: bool,
}

/// `watchfire test`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire test                       the templates that Watchfire ships
  watchfire test templates/ --filter near-miss
  watchfire test templates/ --update   write what happens now into `expect`
  watchfire test templates/ --junit results.xml")]
pub struct Test {
    /// Template files, or folders with templates; if none is given the template of this folder, else the shipped ones
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only scenarios whose file, name or one of whose alerts contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Bless: replace `expect` by what happened
    #[arg(long)]
    pub update: bool,
    /// One JSON line per scenario
    #[arg(long)]
    pub json: bool,
    /// Write the results as JUnit's XML too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Refuse templates and modules that are not as `watchfire lock` wrote them down
    #[arg(long)]
    pub locked: bool,
}

/// `watchfire replay`
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  watchfire replay -c watchfire.yaml --input day.om --json
  watchfire replay -c watchfire.yaml --input host.rec --notifications --json
  watchfire replay -c watchfire.yaml --input gpus.csv --csv host=node --csv gpu=index
  watchfire replay -c watchfire.yaml --input month.rec --report --labels incidents.csv
  watchfire replay -c watchfire.yaml --input http://127.0.0.1:9090 --from 2026-03-01T00:00:00Z --to 2026-03-02T00:00:00Z
  watchfire replay --input hot.capture --module ./new.wasm
  watchfire replay --diff old/template.yaml new/template.yaml --input month.rec")]
pub struct Replay {
    /// The configuration whose templates and routes are used
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// OpenMetrics text with timestamps (.om), CSV (.csv), a recording (.rec), or the address of a Prometheus
    #[arg(long, required = true, value_name = "FILE|URL", num_args = 1..)]
    pub input: Vec<PathBuf>,
    /// For a Prometheus: from when, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub from: Option<watchfire_engine::Time>,
    /// For a Prometheus: until when, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub to: Option<watchfire_engine::Time>,
    /// For a Prometheus: which series, as '{job=\"dcgm\"}'; those of the exporters that Watchfire knows if not given
    #[arg(long, value_name = "SELECTOR")]
    pub select: Option<String>,
    /// For CSV: NAME=COLUMN, where a column is named otherwise
    #[arg(long, value_name = "NAME=COLUMN")]
    pub csv: Vec<String>,
    /// One JSON line per alert transition
    #[arg(long)]
    pub json: bool,
    /// A line per notification as well, with receiver and payload
    #[arg(long)]
    pub notifications: bool,
    /// Numbers in place of transitions: alerts a day, time of firing, flaps, rules that never fired
    #[arg(long)]
    pub report: bool,
    /// What really happened (CSV: start,end and any of alert, cause, labels): adds precision, recall and lead time
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// How far from an incident an alert may lie and still tell it
    #[arg(long, default_value = "0s", value_name = "DURATION", value_parser = duration)]
    pub tolerance: std::time::Duration,
    /// What a new version of a template would have changed
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["config", "report", "labels", "notifications"])]
    pub diff: Vec<PathBuf>,
    /// With --diff or a capture: exit 1 where anything differs
    #[arg(long)]
    pub fail_on_diff: bool,
    /// Refuse templates and modules that are not as `watchfire lock` wrote them down
    #[arg(long)]
    pub locked: bool,
    /// For a capture: the module to ask, with the settings that were captured
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "diff", "template"])]
    pub module: Option<PathBuf>,
    /// For a capture: the templates whose rule of the same name is asked
    #[arg(long, value_name = "PATH", conflicts_with_all = ["config", "diff"])]
    pub template: Option<PathBuf>,
}

/// `watchfire run`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  watchfire run -c /etc/watchfire/watchfire.yaml")]
pub struct Run {
    /// The configuration
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Where the source is a recording: end with it
    #[arg(long)]
    pub exit_at_end: bool,
    /// Refuse templates and modules that are not as `watchfire lock` wrote them down
    #[arg(long)]
    pub locked: bool,
}

/// `watchfire record`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire record -o host.rec --for 10m
  watchfire record -c watchfire.yaml -o host.rec      the sources of a configuration, until Ctrl-C")]
pub struct Record {
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The configuration whose sources are read; NVML each second where none is given
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// End after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub span: Option<std::time::Duration>,
}

/// `watchfire status`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire status
  watchfire status --url http://127.0.0.1:9177 --json")]
pub struct Status {
    /// Where the running Watchfire listens
    #[arg(long, default_value = "http://127.0.0.1:9177", value_name = "URL")]
    pub url: String,
    /// The whole answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// A duration as options take it.
pub fn moment(text: &str) -> Result<watchfire_engine::Time, String> {
    watchfire_engine::clock::parse_rfc3339(text)
}

/// Reads a duration, as `value_parser`.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    watchfire_engine::door::parse_duration(text)
}
