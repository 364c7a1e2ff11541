//! `watchfire replay`

use std::iter::Peekable;
use std::path::Path;

use clap::CommandFactory;
use serde_json::json;
use watchfire_collector::input::{self, CsvColumn, Input, InputOptions};
use watchfire_engine::{Engine, Output, Time, templates_at};

use crate::backtest::{self, Episode, Episodes, Incident, Score, Sight, Version};
use crate::cli::{Cli, Replay};
use crate::exit::{Exit, Failure};
use crate::{config, locking, print, replaying};

/// The most missed incidents and false alerts that are drawn; all are counted.
const SIGHTS_MAX: usize = 20;

/// Runs recorded samples through rules and routes. Nothing is sent.
pub fn run(args: &Replay) -> Result<Exit, Failure> {
    if let Some(exit) = captured(args)? {
        return Ok(exit);
    }
    if let [old, new] = args.diff.as_slice() {
        return diff(args, old, new);
    }
    let incidents = args.labels.as_deref().map(backtest::read_incidents).transpose().map_err(Failure::wrong)?;
    let file = args.config.as_deref().unwrap_or(Path::new("watchfire.yaml"));
    let mut config = config::read(file)?;
    locking::hold_config(file, &config, args.locked)?;
    let mut engine = config::builder(&mut config).build().map_err(Failure::wrong)?;
    let (fetched, _keep) = fetch(args, &metrics(&engine))?;
    let args = &fetched;
    let mut episodes = Episodes::default();
    let quiet = args.report || args.labels.is_some();
    let mut each = |output: Output| {
        episodes.take(&output);
        if !quiet {
            show(args, &output);
        }
    };
    let span = play(args, &mut [(&mut engine, &mut each)])?;
    let (found, rest) = episodes.finish(span.1);
    if quiet {
        report(args, &engine, &found, &rest, incidents.as_deref(), span)?;
    }
    let failed = rest.failures.len();
    if failed > 0 {
        eprintln!("{failed} rule(s) failed");
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Wrong })
}

/// A capture as input is asked again; none where the input is something else.
fn captured(args: &Replay) -> Result<Option<Exit>, Failure> {
    let version = args.module.as_deref().map(Version::Module);
    let version = version.or(args.template.as_deref().map(Version::Templates));
    match args.input.as_slice() {
        [one] if backtest::is_capture(one) && args.diff.is_empty() && args.config.is_none() => {
            backtest::again(one, version, args.json, args.fail_on_diff).map(Some)
        }
        inputs if inputs.iter().any(|one| backtest::is_capture(one)) => {
            Err(Failure::wrong("a capture is replayed alone: give it as the only --input, without -c or --diff"))
        }
        _ if version.is_some() => Err(Failure::wrong("--module and --template are for a capture (FILE.capture)")),
        _ if args.config.is_none() && args.diff.is_empty() => {
            let why = "samples need a configuration: give -c FILE, or --diff OLD NEW\n";
            Cli::command().error(clap::error::ErrorKind::MissingRequiredArgument, why).exit()
        }
        _ => Ok(None),
    }
}

/// An engine, and who hears of what it does.
type Listener<'a> = (&'a mut Engine, &'a mut dyn FnMut(Output));

/// Feeds the input to all engines in one pass; the times of its first and last sample.
fn play(args: &Replay, engines: &mut [Listener<'_>]) -> Result<(Time, Time), Failure> {
    let mut inputs = open(args)?;
    let mut span: Option<(Time, Time)> = None;
    while let Some(moment) = replaying::next(&mut inputs)? {
        span = Some((span.map_or(moment.time, |(first, _)| first), moment.time));
        for (engine, each) in engines.iter_mut() {
            replaying::feed(engine, moment.clone(), each);
        }
    }
    let span = span.ok_or_else(|| Failure::wrong("the input holds no sample"))?;
    for (engine, each) in engines {
        replaying::finish(engine, span.1, each);
    }
    Ok(span)
}

fn report(
    args: &Replay,
    engine: &Engine,
    found: &[Episode],
    rest: &Episodes,
    incidents: Option<&[Incident]>,
    span: (Time, Time),
) -> Result<(), Failure> {
    let rules = engine.rule_ids();
    let report = backtest::report(found, &rules, &rest.messages, &rest.failures, span);
    let score = incidents.map(|incidents| backtest::score(found, incidents, args.tolerance));
    if args.json {
        println!("{}", json!({"report": report, "score": score, "alerts": found, "left_out": rest.left_out}));
        return Ok(());
    }
    print!("{}", backtest::show_report(&report));
    if let (Some(score), Some(incidents)) = (score, incidents) {
        let sights = look(args, engine, &score, found, incidents)?;
        print!("{}", backtest::show_score(&score, found, incidents, &sights));
    }
    Ok(())
}

/// What the missed and the false looked like, from a second pass over the input.
fn look(
    args: &Replay,
    engine: &Engine,
    score: &Score,
    found: &[Episode],
    incidents: &[Incident],
) -> Result<Vec<Sight>, Failure> {
    let all = metrics(engine);
    let missed = score.missed.iter().map(|at| {
        let one = &incidents[*at];
        Sight::new(one.start, one.end, all.clone(), one.labels.clone())
    });
    let wrong = score.false_alerts.iter().map(|at| {
        let one = &found[*at];
        Sight::new(one.start, one.end, engine.metrics_of(&one.rule), one.labels.clone())
    });
    let mut sights: Vec<Sight> = missed.chain(wrong).take(SIGHTS_MAX).collect();
    let mut inputs = open(args)?;
    while let Some(moment) = replaying::next(&mut inputs)?.filter(|_| !sights.is_empty()) {
        backtest::sights(&mut sights, &moment);
    }
    Ok(sights)
}

/// Two versions of a template over the same input.
fn diff(args: &Replay, old: &Path, new: &Path) -> Result<Exit, Failure> {
    let (mut old, mut new) = (engine_of(old)?, engine_of(new)?);
    let (fetched, _keep) = fetch(args, &[metrics(&old), metrics(&new)].concat())?;
    let args = &fetched;
    let (mut of_old, mut of_new) = (Episodes::default(), Episodes::default());
    let span = play(
        args,
        &mut [
            (&mut old, &mut |output: Output| of_old.take(&output)),
            (&mut new, &mut |output: Output| of_new.take(&output)),
        ],
    )?;
    let ((of_old, _), (of_new, _)) = (of_old.finish(span.1), of_new.finish(span.1));
    let (differences, same) = backtest::differences(&of_old, &of_new);
    if args.json {
        println!("{}", json!({"same": same, "differences": differences}));
    } else {
        print!("{}", backtest::show_difference(&differences, same));
    }
    Ok(if args.fail_on_diff && !differences.is_empty() { Exit::Wrong } else { Exit::Fine })
}

fn engine_of(path: &Path) -> Result<Engine, Failure> {
    let sources = templates_at(path)
        .map_err(|error| Failure::could_not(format!("{} cannot be read: {error}", path.display())))?;
    Engine::builder().sources(sources).build().map_err(Failure::wrong)
}

/// All metrics that an engine's rules read.
fn metrics(engine: &Engine) -> Vec<String> {
    engine.rule_ids().iter().flat_map(|rule| engine.metrics_of(rule)).collect()
}

/// The address of a Prometheus among the inputs.
fn server(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.starts_with("http://") || text.starts_with("https://"))
}

/// Fetches what is on servers into files, so that it is asked for once and read like all else.
fn fetch(args: &Replay, metrics: &[String]) -> Result<(Replay, Option<tempfile::TempDir>), Failure> {
    let mut args = args.clone();
    if !args.input.iter().any(|path| server(path).is_some()) {
        return Ok((args, None));
    }
    let (Some(from), Some(to)) = (args.from, args.to) else {
        return Err(Failure::wrong("a Prometheus as input needs --from and --to"));
    };
    let folder = tempfile::tempdir().map_err(Failure::could_not)?;
    for (at, path) in args.input.iter_mut().enumerate() {
        let Some(url) = server(path).map(str::to_owned) else { continue };
        let file = folder.path().join(format!("{at}.om"));
        let range =
            backtest::Range { url: &url, from, to, selector: args.select.as_deref(), metrics: metrics.to_vec() };
        let samples = range.fetch(&file).map_err(Failure::could_not)?;
        eprintln!("{url}: {samples} samples");
        *path = file;
    }
    Ok((args, Some(folder)))
}

fn open(args: &Replay) -> Result<Vec<Peekable<Input>>, Failure> {
    let csv =
        args.csv.iter().map(|pair| pair.parse::<CsvColumn>().map_err(|why| Failure::wrong(format!("--csv: {why}"))));
    let options = InputOptions { csv: csv.collect::<Result<_, _>>()?, ..InputOptions::default() };
    let open = |path| {
        let input = input::open(path, &options).map_err(Failure::wrong)?;
        if let Some(how) = input.header().synthetic() {
            eprintln!("{}: synthetic: {how}", input.path().display());
        }
        Ok(input.peekable())
    };
    args.input.iter().map(|path| open(path)).collect()
}

fn show(args: &Replay, output: &Output) {
    match output {
        Output::Alert { time, alert, .. } if args.json => println!("{}", print::transition_json(*time, alert)),
        Output::Alert { time, alert, .. } => anstream::println!("{}", print::transition(*time, alert)),
        Output::Message(message) if args.notifications => println!("{}", print::message_json(message)),
        other => print::trouble(other).iter().for_each(|line| eprintln!("{line}")),
    }
}
