//! `watchfire import`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use watchfire_engine::door::Errors;

use crate::exit::{Exit, Failure};
use crate::import::{self, Imported, Options, Outcome, RuleReport};

/// `watchfire import`
#[derive(Debug, Args)]
pub struct Import {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Alerting rules of Prometheus, as a template
    PrometheusRules(Rules),
}

/// `watchfire import prometheus-rules`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire import prometheus-rules rules.yml                  show the template, and what could not be said
  watchfire import prometheus-rules rules.yml -o templates/    write templates/rules/template.yaml
  watchfire import prometheus-rules *.yml --check              fail where a rule cannot be converted
  watchfire import prometheus-rules rules.yml --json           template and report for a script")]
struct Rules {
    /// Files of rules (`groups:`), or PrometheusRule resources
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write a folder with a template for each file here; without it templates go to stdout
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How often groups without an interval are evaluated: Prometheus' evaluation_interval
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = crate::cli::duration)]
    interval: Duration,
    /// One JSON document: for each file its template and what became of each rule
    #[arg(long)]
    json: bool,
    /// Write no template; exit with 1 where a rule is not converted
    #[arg(long)]
    check: bool,
    /// Overwrite templates that are there and differ
    #[arg(long)]
    force: bool,
}

/// Converts what is given.
pub fn run(args: &Import) -> Result<Exit, Failure> {
    let What::PrometheusRules(rules) = &args.what;
    let mut errors = Errors::default();
    let mut imported = Vec::new();
    for path in &rules.files {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::could_not(format!("{} cannot be read: {error}", path.display())))?;
        let options = Options { template: template_name(path), interval: rules.interval };
        match import::convert(&path.display().to_string(), &text, &options) {
            Ok(one) => imported.push((options.template, one)),
            Err(found) => errors.extend(found),
        }
    }
    if !errors.is_empty() {
        return Err(Failure::wrong(errors));
    }
    tell(rules, &imported)?;
    let all = imported.iter().flat_map(|(_, one)| &one.rules).all(|rule| rule.outcome != Outcome::NotConverted);
    Ok(if rules.check && !all { Exit::Wrong } else { Exit::Fine })
}

fn tell(rules: &Rules, imported: &[(String, Imported)]) -> Result<(), Failure> {
    if rules.json {
        let files =
            imported.iter().map(|(name, one)| json!({"name": name, "template": one.template, "rules": one.rules}));
        println!("{}", json!({"templates": files.collect::<Vec<_>>()}));
    }
    for (name, one) in imported {
        match (&rules.output, &one.template) {
            _ if rules.check => {}
            (Some(folder), Some(template)) => write(&folder.join(name), template, rules.force)?,
            (None, Some(template)) if !rules.json => print!("{template}"),
            _ => {}
        }
    }
    if !rules.json {
        let lines: Vec<String> = imported.iter().flat_map(|(_, one)| &one.rules).map(line).collect();
        let report = format!("{}{}\n", lines.concat(), summary(imported));
        // Where the template goes to stdout, the report must not.
        if rules.check || rules.output.is_some() { print!("{report}") } else { eprint!("{report}") }
    }
    Ok(())
}

/// The file's name as a template's.
fn template_name(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("imported").to_ascii_lowercase();
    let clean: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let clean = clean.trim_matches('-');
    if clean.is_empty() { "imported".to_owned() } else { clean.to_owned() }
}

fn write(folder: &Path, template: &str, force: bool) -> Result<(), Failure> {
    let file = folder.join("template.yaml");
    let failed = |error: std::io::Error| Failure::could_not(format!("{} cannot be written: {error}", file.display()));
    if std::fs::read_to_string(&file).is_ok_and(|there| there != template) && !force {
        return Err(Failure::could_not(format!("{} is there and differs; --force overwrites it", file.display())));
    }
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&file, template).map_err(failed)
}

/// What became of a rule, for people.
fn line(rule: &RuleReport) -> String {
    let mark = match rule.outcome {
        Outcome::Converted => "converted",
        Outcome::ConvertedWithRemarks => "converted, with remarks",
        Outcome::NotConverted => "NOT converted",
    };
    let mut out = format!("{}:{}:{}: {}: {mark}\n", rule.file, rule.line, rule.column, rule.rule);
    rule.remarks.iter().for_each(|remark| out += &format!("    {remark}\n"));
    if let Some(refused) = &rule.refused {
        out += &format!("    {}\n", refused.reason);
        if !refused.part.is_empty() {
            out += &format!("    in: {}\n", refused.part);
        }
        refused.instead.iter().for_each(|instead| out += &format!("    instead: {instead}\n"));
    }
    out
}

fn summary(imported: &[(String, Imported)]) -> String {
    let count =
        |outcome| imported.iter().flat_map(|(_, one)| &one.rules).filter(|rule| rule.outcome == outcome).count();
    let [plain, remarks, not] = [Outcome::Converted, Outcome::ConvertedWithRemarks, Outcome::NotConverted].map(count);
    format!("{} rules: {plain} converted, {remarks} with remarks, {not} not converted", plain + remarks + not)
}
