//! `watchfire test`

mod junit;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anstyle::AnsiColor;
use serde_json::json;
use watchfire_engine::scenarios::{self, Failed, Report};
use watchfire_engine::{Given, TemplateSource, shipped_templates, templates_at};

use crate::author;
use crate::cli::Test;
use crate::exit::{Exit, Failure};
use crate::locking;

/// A scenario that took at least this long says so.
const SLOW: Duration = Duration::from_secs(1);

/// One scenario to run: its template, file and text.
type Job = (TemplateSource, String, String);

/// Runs scenarios. The last line is `N passed, N failed`.
pub fn run(args: &Test) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let jobs = jobs(args)?;
    let mut reports = Vec::new();
    in_parallel(&jobs, |report| {
        reports.push(settle(args, report)?);
        Ok(())
    })?;
    if let Some(file) = &args.junit {
        std::fs::write(file, junit::document(&reports, begun.elapsed()))
            .map_err(|error| Failure::could_not(format!("{} cannot be written: {error}", file.display())))?;
    }
    let failed = reports.iter().filter(|report| report.failure.is_some()).count();
    println!("{} passed, {failed} failed", reports.len() - failed);
    Ok(if failed == 0 { Exit::Fine } else { Exit::Wrong })
}

/// The scenarios that are asked for.
fn jobs(args: &Test) -> Result<Vec<Job>, Failure> {
    let mut all: Vec<Job> = Vec::new();
    for source in sources(args)? {
        all.extend(source.scenarios().into_iter().map(|(file, text)| (source.clone(), file, text)));
    }
    if all.is_empty() {
        return Err(Failure::could_not(
            "there is no scenario: put YAML files into a folder `scenarios` beside template.yaml",
        ));
    }
    let Some(filter) = &args.filter else { return Ok(all) };
    let count = all.len();
    all.retain(|(_, file, text)| scenarios::is_about(file, text, filter));
    if all.is_empty() {
        let message = format!("--filter {filter:?} is in no file, name or alert of the {count} scenarios");
        return Err(Failure::could_not(message));
    }
    Ok(all)
}

/// Runs all jobs on the cores; `then` gets the reports in the jobs' order, each as soon as it and those before are
/// there.
fn in_parallel(jobs: &[Job], mut then: impl FnMut(Report) -> Result<(), Failure>) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for _ in 0..threads {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || work(jobs, next, &send));
        }
        drop(send);
        let mut waiting: Vec<Option<Report>> = jobs.iter().map(|_| None).collect();
        let mut told = 0;
        for (at, report) in receive {
            waiting[at] = Some(report);
            while let Some(report) = waiting.get_mut(told).and_then(Option::take) {
                told += 1;
                then(report)?;
            }
        }
        Ok(())
    })
}

fn work(jobs: &[Job], next: &AtomicUsize, send: &mpsc::Sender<(usize, Report)>) {
    loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some((source, file, text)) = jobs.get(at) else { return };
        // Whoever could not show one report wants no more of them.
        if send.send((at, scenarios::run(source, file, text))).is_err() {
            return;
        }
    }
}

fn sources(args: &Test) -> Result<Vec<TemplateSource>, Failure> {
    let here = PathBuf::from(".");
    let paths = match args.paths.as_slice() {
        [] if here.join("template.yaml").exists() => std::slice::from_ref(&here),
        [] => return Ok(shipped_templates()),
        paths => paths,
    };
    let mut sources = Vec::new();
    for path in paths {
        let found = templates_at(path)
            .map_err(|error| Failure::could_not(format!("{} cannot be read: {error}", path.display())))?;
        locking::hold(path, &found, &Given::new(), None, args.locked)?;
        sources.extend(found);
    }
    sources.iter().try_for_each(build)?;
    Ok(sources)
}

/// Builds the module of a template whose sources lie beside it and are newer.
fn build(source: &TemplateSource) -> Result<(), Failure> {
    let TemplateSource::File(file) = source else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let built = author::build::build_stale(folder).map_err(Failure::could_not)?;
    if let Some(built) = built {
        eprintln!("built {}", built.file.display());
    }
    Ok(())
}

/// Shows a report, or blesses what happened; what was blessed counts as passed.
fn settle(args: &Test, mut report: Report) -> Result<Report, Failure> {
    let can_be_blessed = report.failure.is_some() && !matches!(report.failure, Some(Failed::Rule(_)));
    if args.update
        && can_be_blessed
        && let Some(text) = &report.blessed
        && Path::new(&report.file).exists()
    {
        std::fs::write(&report.file, text)
            .map_err(|error| Failure::could_not(format!("{} cannot be written: {error}", report.file)))?;
        report.failure = None;
        if !args.json {
            println!("updated {}", report.file);
            return Ok(report);
        }
    }
    show(args, &report);
    Ok(report)
}

fn show(args: &Test, report: &Report) {
    if args.json {
        println!("{}", as_json(report));
        return;
    }
    let (style, word) = match report.failure {
        None => (AnsiColor::Green.on_default(), "ok    "),
        Some(_) => (AnsiColor::Red.on_default(), "FAILED"),
    };
    let took = if report.took < SLOW { String::new() } else { format!(" ({:.1} s)", report.took.as_secs_f64()) };
    anstream::println!("{style}{word}{style:#} {}: {}{took}", report.file, report.name);
    if let Some(failure) = &report.failure {
        failure.text().lines().for_each(|line| println!("       {line}"));
    }
}

fn as_json(report: &Report) -> serde_json::Value {
    json!({
        "file": report.file,
        "scenario": report.name,
        "passed": report.failure.is_none(),
        "seconds": report.took.as_secs_f64(),
        "failure": report.failure.as_ref().map(Failed::text),
        "failure_kind": report.failure.as_ref().map(Failed::kind),
    })
}
