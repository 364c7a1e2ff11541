//! From the text of a template file to a [`Template`].

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use watchfire_core::RuleSpec;
use watchfire_door::{Errors, Map, Node};

use crate::parameters::Parameters;
use crate::rule::{Around, read_rule};
use crate::{Template, TemplateRule};

/// Reads a template. `given` are the configuration's own values of its parameters, `shipped` the names of the
/// modules that Watchfire ships. What is wrong goes to `errors`; the template is only good where nothing was added.
pub fn read(
    file: &str,
    text: &str,
    given: &BTreeMap<String, Node>,
    shipped: &[&str],
    errors: &mut Errors,
) -> Option<Template> {
    let mut map = watchfire_door::read(file, text, errors)?.map(errors)?;
    let name = map.require("template", errors).and_then(|node| node.parse_with(errors, template_name));
    let version = map.require("version", errors).and_then(|node| node.parse_with(errors, version_of));
    let parameters = Parameters::read(map.take("parameters").as_ref(), given, errors);
    let interval = map.take("interval").and_then(|node| interval(&node, errors));
    let around = Around {
        template: name.clone().unwrap_or_default(),
        interval: interval.unwrap_or(RuleSpec::INTERVAL_DEFAULT),
        parameters: &parameters,
        shipped,
    };
    let rules = rules(&mut map, &around, errors);
    let template = Template {
        min_version: map.take("min_version").and_then(|node| node.parse_with(errors, version_of)),
        description: map.take("description").and_then(|node| node.text(errors)).unwrap_or_default(),
        applies_to: applies_to(&mut map, errors),
        name: name.unwrap_or_default(),
        version: version.unwrap_or_default(),
        rules,
        parameters: parameters.clone(),
    };
    map.finish(errors);
    Some(template)
}

fn template_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() || !text.chars().all(good) {
        return Err(format!("{text:?} is no template name; expected lower-case letters, digits and -"));
    }
    Ok(text.to_owned())
}

/// One to three numbers with dots between them, and what SemVer allows behind.
fn version_of(text: &str) -> Result<String, String> {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() > 3 || numbers.iter().any(|number| number.parse::<u32>().is_err()) {
        return Err(format!("{text:?} is no version; expected numbers such as 1.2.0"));
    }
    Ok(text.to_owned())
}

/// The time between ticks.
pub(crate) fn interval(node: &Node, errors: &mut Errors) -> Option<Duration> {
    let span = node.duration(errors)?;
    if span.is_zero() {
        errors.add(node.place(), "`interval` must be longer than 0s");
    }
    Some(span)
}

fn rules(map: &mut Map, around: &Around<'_>, errors: &mut Errors) -> Vec<TemplateRule> {
    let Some(node) = map.require("rules", errors) else { return Vec::new() };
    let Some(nodes) = node.list(errors) else { return Vec::new() };
    if nodes.is_empty() {
        errors.add(node.place(), "a template needs at least one rule");
    }
    let mut names = HashSet::new();
    let mut rules = Vec::new();
    for node in nodes {
        let Some(rule) = read_rule(&node, around, errors) else { continue };
        if !rule.spec.alert.is_empty() && !names.insert(rule.spec.alert.clone()) {
            errors.add(
                node.place(),
                format!("alert `{}` is there twice; names must differ within a template", rule.spec.alert),
            );
        }
        rules.push(rule);
    }
    rules
}

fn applies_to(map: &mut Map, errors: &mut Errors) -> Vec<(String, Vec<String>)> {
    let Some(map) = map.take("applies_to").and_then(|node| node.map(errors)) else { return Vec::new() };
    let mut wanted = Vec::new();
    for (name, _, node) in map.entries() {
        let nodes = node.one_or_more();
        if nodes.is_empty() {
            errors.add(node.place(), format!("`{name}` names no value, so the template would be for no host"));
        }
        wanted.push((name, nodes.iter().filter_map(|value| value.parse_with(errors, pattern)).collect()));
    }
    wanted
}

fn pattern(text: &str) -> Result<String, String> {
    let start = text.strip_suffix('*').unwrap_or(text);
    match (text, start.contains('*')) {
        ("", _) => Err("expected a text that is not empty".to_owned()),
        (_, true) => Err(format!("{text:?}: `*` may stand only at the end")),
        _ => Ok(text.to_owned()),
    }
}
