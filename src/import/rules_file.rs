//! Files of rules as Prometheus and its operator take them.

use std::time::Duration;

use watchfire_engine::door::{self, Errors, Map, Node, Place};

use super::{Outcome, Refusal, RuleReport};

/// One rule of a file.
pub(super) enum Read {
    Alert(Box<Alert>),
    Recording(Recording),
}

/// An alerting rule.
pub(super) struct Alert {
    pub name: String,
    pub expr: String,
    pub hold_for: Duration,
    pub keep_firing_for: Duration,
    pub interval: Duration,
    pub labels: Vec<(String, String)>,
    pub annotations: Vec<(String, String)>,
    pub group_remarks: Vec<String>,
    place: Place,
}

/// A recording rule.
pub(super) struct Recording {
    name: String,
    expr: String,
    place: Place,
}

/// Reads all rules of a file.
pub(super) fn read(file: &str, text: &str, interval: Duration, errors: &mut Errors) -> Vec<Read> {
    let Some(mut map) = door::read(file, text, errors).and_then(|node| node.map(errors)) else { return Vec::new() };
    if let Some(mut spec) = map.take("spec").and_then(|node| node.map(errors)) {
        return groups(&mut spec, interval, errors);
    }
    let rules = groups(&mut map, interval, errors);
    map.finish(errors);
    rules
}

fn groups(map: &mut Map, interval: Duration, errors: &mut Errors) -> Vec<Read> {
    let groups = map.require("groups", errors).and_then(|node| node.list(errors)).unwrap_or_default();
    groups.into_iter().flat_map(|node| group(&node, interval, errors)).collect()
}

fn group(node: &Node, interval: Duration, errors: &mut Errors) -> Vec<Read> {
    let Some(mut map) = node.map(errors) else { return Vec::new() };
    map.take("name");
    let interval = map.take("interval").and_then(|node| duration(&node, errors)).unwrap_or(interval);
    let mut remarks = Vec::new();
    for (key, what) in [
        ("limit", "more alerts than that made the rule fail; here they all fire"),
        ("query_offset", "the rule looked back by that; here it looks at what is there"),
        ("partial_response_strategy", "it is Thanos'"),
    ] {
        if map.take(key).is_some() {
            remarks.push(format!("the group's `{key}` is not taken over: {what}"));
        }
    }
    let labels = map.take("labels").map(|node| pairs(&node, errors)).unwrap_or_default();
    let rules = map.require("rules", errors).and_then(|node| node.list(errors)).unwrap_or_default();
    map.finish(errors);
    let around = Around { interval, labels, remarks };
    rules.iter().filter_map(|node| rule(node, &around, errors)).collect()
}

/// What a group gives to its rules.
struct Around {
    interval: Duration,
    labels: Vec<(String, String)>,
    remarks: Vec<String>,
}

fn rule(node: &Node, around: &Around, errors: &mut Errors) -> Option<Read> {
    let mut map = node.map(errors)?;
    let expr = map.require("expr", errors)?;
    let place = expr.place().clone();
    let expr = expr.text(errors)?;
    if let Some(name) = map.take("record") {
        return Some(Read::Recording(Recording { name: name.text(errors)?, expr, place }));
    }
    let name = map.require("alert", errors)?.text(errors)?;
    let span = |map: &mut Map, key: &str, errors: &mut Errors| {
        map.take(key).and_then(|node| duration(&node, errors)).unwrap_or_default()
    };
    let mut labels = around.labels.clone();
    let own = map.take("labels").map(|node| pairs(&node, errors)).unwrap_or_default();
    labels.retain(|(name, _)| own.iter().all(|(other, _)| name != other));
    labels.extend(own);
    let alert = Alert {
        name,
        expr,
        hold_for: span(&mut map, "for", errors),
        keep_firing_for: span(&mut map, "keep_firing_for", errors),
        interval: around.interval,
        labels,
        annotations: map.take("annotations").map(|node| pairs(&node, errors)).unwrap_or_default(),
        group_remarks: around.remarks.clone(),
        place,
    };
    map.finish(errors);
    Some(Read::Alert(Box::new(alert)))
}

/// A duration as Prometheus writes it; a bare 0 is one, too.
fn duration(node: &Node, errors: &mut Errors) -> Option<Duration> {
    node.parse_with(errors, |text| if text == "0" { Ok(Duration::ZERO) } else { door::parse_duration(text) })
}

fn pairs(node: &Node, errors: &mut Errors) -> Vec<(String, String)> {
    let Some(map) = node.map(errors) else { return Vec::new() };
    map.entries().into_iter().filter_map(|(name, _, node)| Some((name, node.text(errors)?))).collect()
}

fn report(rule: &str, place: &Place, outcome: Outcome) -> RuleReport {
    RuleReport {
        rule: rule.to_owned(),
        alert: None,
        file: place.file.to_string(),
        line: place.line,
        column: place.column,
        outcome,
        remarks: Vec::new(),
        refused: None,
    }
}

impl Alert {
    pub(super) fn converted(&self, alert: String, remarks: Vec<String>) -> RuleReport {
        let outcome = if remarks.is_empty() { Outcome::Converted } else { Outcome::ConvertedWithRemarks };
        RuleReport { alert: Some(alert), remarks, ..report(&self.name, &self.place, outcome) }
    }

    pub(super) fn refused(&self, refusal: Refusal) -> RuleReport {
        RuleReport { refused: Some(refusal), ..report(&self.name, &self.place, Outcome::NotConverted) }
    }
}

impl Recording {
    pub(super) fn report(self) -> RuleReport {
        let refusal = Refusal::new(self.expr.trim(), "it is a recording rule; a template records nothing")
            .instead("derive the metric in a module (`outputs`), or write its expression into the rules that use it");
        RuleReport { refused: Some(refusal), ..report(&self.name, &self.place, Outcome::NotConverted) }
    }
}
