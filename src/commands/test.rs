//! `watchfire test`

use std::path::{Path, PathBuf};

use anstyle::AnsiColor;
use serde_json::json;
use watchfire_engine::scenarios::{self, Report};
use watchfire_engine::{TemplateSource, shipped_templates, templates_at};

use crate::author;
use crate::cli::Test;
use crate::exit::{Exit, Failure};

/// Runs scenarios. The last line is `N passed, N failed`.
pub fn run(args: &Test) -> Result<Exit, Failure> {
    let (mut passed, mut failed, mut found) = (0, 0, false);
    for source in sources(args)? {
        for (file, text) in source.scenarios() {
            found = true;
            let wanted = args.filter.as_deref().is_none_or(|filter| file.contains(filter) || text.contains(filter));
            if !wanted {
                continue;
            }
            let report = scenarios::run(&source, &file, &text);
            let good = settle(args, &report)?;
            *(if good { &mut passed } else { &mut failed }) += 1;
        }
    }
    if !found {
        return Err(Failure::could_not(
            "there is no scenario: put YAML files into a folder `scenarios` beside template.yaml",
        ));
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { Exit::Fine } else { Exit::Wrong })
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

/// Shows a report, or blesses what happened; answers whether it counts as passed.
fn settle(args: &Test, report: &Report) -> Result<bool, Failure> {
    if args.update
        && report.failure.is_some()
        && let Some(text) = &report.blessed
        && Path::new(&report.file).exists()
    {
        std::fs::write(&report.file, text)
            .map_err(|error| Failure::could_not(format!("{} cannot be written: {error}", report.file)))?;
        println!("updated {}", report.file);
        return Ok(true);
    }
    show(args, report);
    Ok(report.failure.is_none())
}

fn show(args: &Test, report: &Report) {
    if args.json {
        let line = json!({"file": report.file, "scenario": report.name, "passed": report.failure.is_none(), "failure": report.failure});
        println!("{line}");
        return;
    }
    let (style, word) = match report.failure {
        None => (AnsiColor::Green.on_default(), "ok    "),
        Some(_) => (AnsiColor::Red.on_default(), "FAILED"),
    };
    anstream::println!("{style}{word}{style:#} {}: {}", report.file, report.name);
    if let Some(failure) = &report.failure {
        failure.lines().for_each(|line| println!("       {line}"));
    }
}
