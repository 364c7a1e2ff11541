//! `watchfire check`

use std::path::Path;

use serde_json::json;
use watchfire_engine::config::Config;
use watchfire_engine::door::{Errors, Place};
use watchfire_engine::{BuildError, Builder, Engine, Given, TemplateSource, templates_at};

use crate::cli::Check;
use crate::exit::{Exit, Failure};
use crate::locking;

/// Checks all that is given and lists all that is wrong.
pub fn run(args: &Check) -> Result<Exit, Failure> {
    let mut errors = Errors::default();
    let mut templates = 0;
    for path in &args.paths {
        templates += check(path, args.locked, &mut errors)?;
    }
    if args.json {
        println!("{}", as_json(&errors));
    } else if errors.is_empty() {
        let plural = if templates == 1 { "" } else { "s" };
        println!("{templates} template{plural} checked, no errors");
    } else {
        println!("{errors}");
        println!("{} error{}", errors.len(), if errors.len() == 1 { "" } else { "s" });
    }
    Ok(if errors.is_empty() { Exit::Fine } else { Exit::Wrong })
}

fn check(path: &Path, locked: bool, errors: &mut Errors) -> Result<usize, Failure> {
    let unreadable = |error: std::io::Error| Failure::could_not(format!("{} cannot be read: {error}", path.display()));
    if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        if Config::is_one(&text) {
            return check_config(path, &text, locked, errors);
        }
    }
    let sources = templates_at(path).map_err(unreadable)?;
    if sources.is_empty() {
        return Err(Failure::could_not(format!("{}: there is no template.yaml here or below", path.display())));
    }
    locking::hold(path, &sources, &Given::new(), None, locked)?;
    Ok(check_templates(Engine::builder().sources(sources), path, errors))
}

fn check_config(path: &Path, text: &str, locked: bool, errors: &mut Errors) -> Result<usize, Failure> {
    let Some(config) = Config::read(path, text, errors) else { return Ok(0) };
    locking::hold_config(path, &config, locked)?;
    let builder = |sources: Vec<TemplateSource>| {
        let builder = Engine::builder().sources(sources).parameters(config.given.clone());
        config.modules.iter().fold(builder, |builder, store| builder.module_store(store.clone()))
    };
    check_templates(builder(config.shadow.clone()), path, errors);
    Ok(check_templates(builder(config.templates.clone()), path, errors))
}

fn check_templates(builder: Builder, path: &Path, errors: &mut Errors) -> usize {
    match builder.check() {
        Ok(catalog) => catalog.templates.len(),
        Err(BuildError::Templates(found)) => {
            errors.extend(found);
            0
        }
        Err(other) => {
            let file: &str = &path.display().to_string();
            errors.add(&Place { file: file.into(), line: 1, column: 1 }, other.to_string());
            0
        }
    }
}

fn as_json(errors: &Errors) -> serde_json::Value {
    let problem = |problem: &watchfire_engine::door::Problem| {
        let place = &problem.place;
        json!({"file": &*place.file, "line": place.line, "column": place.column, "message": problem.message, "hint": problem.hint})
    };
    json!({"errors": errors.iter().map(problem).collect::<Vec<_>>()})
}
