//! One rule of a template.

use std::time::Duration;

use watchfire_core::{Cause, Labels, MissingData, PerSeverity, RuleSpec, Scope, Severity};
use watchfire_door::{Errors, Map, Node, nearest};

use crate::annotations::Annotations;
use crate::parameters::Parameters;
use crate::read::interval;
use crate::{ModuleRef, TemplateRule};

/// What surrounds a rule.
pub(crate) struct Around<'a> {
    pub template: String,
    pub interval: Duration,
    pub parameters: &'a Parameters,
    pub shipped: &'a [&'a str],
}

/// Reads a rule; none where it is no mapping. One without a good name has the empty name, so that what else is wrong
/// with it is told as well.
pub(crate) fn read_rule(node: &Node, around: &Around<'_>, errors: &mut Errors) -> Option<TemplateRule> {
    let mut map = around.parameters.fill(node, errors).map(errors)?;
    let alert = map.require("alert", errors).and_then(|node| node.parse_with(errors, alert_name)).unwrap_or_default();
    let mut hold_for = HoldFor::read(map.take("for"), errors);
    let settings_node = map.take("with");
    let module_place = map.place_of_key("module").or_else(|| map.place_of_key("when"));
    let module = module(&mut map, &hold_for, around, errors);
    hold_for.check_ladder(settings_node.as_ref(), errors);
    hold_for.keep_raised(module.as_ref(), settings_node.as_ref());
    let rule = TemplateRule {
        spec: spec(alert, &mut map, &hold_for, around, errors),
        module,
        settings: settings_node.as_ref().map_or(serde_json::Value::Null, Node::to_json),
        settings_node,
        annotations: map.take("annotations").map(|node| Annotations::read(&node, errors)).unwrap_or_default(),
        limits: map.take("limits"),
        module_place: module_place.unwrap_or_else(|| node.place().clone()),
        place: node.place().clone(),
    };
    map.finish(errors);
    Some(rule)
}

fn alert_name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if !starts || !text.chars().all(good) {
        return Err(format!("{text:?} is no alert name; expected letters, digits and _, such as GpuTooHot"));
    }
    Ok(text.to_owned())
}

fn spec(alert: String, map: &mut Map, hold_for: &HoldFor, around: &Around<'_>, errors: &mut Errors) -> RuleSpec {
    let duration = |map: &mut Map, key: &str, errors: &mut Errors| map.take(key).and_then(|node| node.duration(errors));
    let interval = map.take("interval").and_then(|node| interval(&node, errors)).unwrap_or(around.interval);
    RuleSpec {
        id: format!("{}/{alert}", around.template).into(),
        template: around.template.as_str().into(),
        alert: alert.into(),
        labels: labels(map, errors),
        hold_for: hold_for.spans,
        keep_firing_for: duration(map, "keep_firing_for", errors).unwrap_or_default(),
        missing_data: map
            .take("missing_data")
            .and_then(|node| node.parse_with(errors, missing_data))
            .unwrap_or_default(),
        missing_after: duration(map, "missing_after", errors).unwrap_or(RuleSpec::MISSING_AFTER_DEFAULT),
        cause: map.take("cause").and_then(|node| node.parse::<Cause>(errors)),
        interval,
    }
}

fn missing_data(word: &str) -> Result<MissingData, String> {
    match word {
        "hold" => Ok(MissingData::Hold),
        "resolve" => Ok(MissingData::Resolve),
        "alert" => Ok(MissingData::Alert),
        _ => Err(format!("{word:?} is none of hold, resolve, alert")),
    }
}

fn labels(map: &mut Map, errors: &mut Errors) -> Labels {
    let Some(map) = map.take("labels").and_then(|node| node.map(errors)) else { return Labels::default() };
    let mut pairs = Vec::new();
    for (name, place, node) in map.entries() {
        if name == "severity" || name == "alertname" {
            errors.hint(&place, format!("`{name}` is no label of a template"), "Watchfire sets it itself");
        } else if !is_label_name(&name) {
            errors.add(&place, format!("{name:?} is no label name; expected letters, digits and _, such as team"));
        }
        pairs.extend(node.text(errors).map(|value| (name, value)));
    }
    Labels::new(pairs)
}

/// Label names as Prometheus has always taken them (its data model: `[a-zA-Z_][a-zA-Z0-9_]*`): receivers refuse others.
fn is_label_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(good)
}

/// How long each severity must be raised.
struct HoldFor {
    spans: PerSeverity<Option<Duration>>,
    /// The `for:` as a mapping.
    graded: Option<Node>,
}

impl HoldFor {
    fn read(node: Option<Node>, errors: &mut Errors) -> Self {
        let Some(node) = node else { return HoldFor { spans: PerSeverity::all(Some(Duration::ZERO)), graded: None } };
        if !node.is_map() {
            let span = node.duration(errors).unwrap_or_default();
            return HoldFor { spans: PerSeverity::all(Some(span)), graded: None };
        }
        let mut spans = PerSeverity::all(None);
        let entries = node.map(errors).map(Map::entries).unwrap_or_default();
        if entries.is_empty() {
            let hint = "write `for: 5m`, or `for: {warning: 5m, critical: 2m}`";
            errors.hint(node.place(), "`for` names no severity, so nothing would ever fire", hint);
        }
        for (name, place, value) in entries {
            match name.parse::<Severity>() {
                Ok(severity) => *spans.get_mut(severity) = value.duration(errors),
                Err(error) => errors.add(&place, format!("severity {error}")),
            }
        }
        HoldFor { spans, graded: Some(node) }
    }

    fn worst(&self) -> Option<Severity> {
        self.spans.iter().rev().find(|(_, span)| span.is_some()).map(|(severity, _)| severity)
    }

    /// A severity with a limit but without a `for` would never fire.
    fn check_ladder(&self, settings: Option<&Node>, errors: &mut Errors) {
        let (Some(graded), Some(settings)) = (&self.graded, settings) else { return };
        for severity in ladder(settings) {
            if self.spans.get(severity).is_none() {
                errors.hint(
                    graded.place(),
                    format!("`for` says nothing of {severity}, which has a limit"),
                    format!("add `{severity}: 0s` to fire at once"),
                );
            }
        }
    }

    /// Where one duration stands for all severities, keeps those that the rule can raise: missing data as an alert
    /// takes the mildest of them, and must not take one that the rule never had.
    fn keep_raised(&mut self, module: Option<&ModuleRef>, settings: Option<&Node>) {
        let raised = match (module, settings) {
            (Some(ModuleRef::Expression { severity, .. }), _) => vec![*severity],
            (Some(ModuleRef::Shipped(name)), Some(settings)) if name == "threshold" => ladder(settings),
            _ => return,
        };
        if self.graded.is_none() && !raised.is_empty() {
            for severity in Severity::ALL.into_iter().filter(|severity| !raised.contains(severity)) {
                *self.spans.get_mut(severity) = None;
            }
        }
    }
}

/// The severities that a threshold's settings have limits for.
fn ladder(settings: &Node) -> Vec<Severity> {
    let mut unseen = Errors::default();
    let Some(mut settings) = settings.map(&mut unseen) else { return Vec::new() };
    let sides = [settings.take("above"), settings.take("below")];
    let entries = sides.into_iter().flatten().filter_map(|node| node.map(&mut unseen)).flat_map(Map::entries);
    entries.filter_map(|(name, ..)| name.parse().ok()).collect()
}

fn module(map: &mut Map, hold_for: &HoldFor, around: &Around<'_>, errors: &mut Errors) -> Option<ModuleRef> {
    let (module, when) = (map.take("module"), map.take("when"));
    let expression = ["until", "value", "severity", "scope"].map(|key| (key, map.take(key)));
    match (module, when) {
        (Some(module), None) => {
            for (key, node) in expression.iter().filter_map(|(key, node)| Some((key, node.as_ref()?))) {
                errors.hint(
                    node.place(),
                    format!("`{key}` goes with `when`, not with `module`"),
                    "put it under `with`, if the module knows it",
                );
            }
            named_module(&module, around.shipped, errors)
        }
        (None, Some(when)) => {
            let [(_, until), (_, value), (_, severity), (_, scope)] = expression;
            let when = when.word(errors);
            let until = until.and_then(|node| node.word(errors));
            let value = value.and_then(|node| node.word(errors));
            let severity = severity_of(severity, hold_for, map, errors);
            let scope = scope.and_then(|node| node.parse_with(errors, scope_of));
            let parameters = around.parameters.numbers();
            Some(ModuleRef::Expression { when: when?, until, value, severity: severity?, scope, parameters })
        }
        (None, None) => {
            errors.hint(
                map.place(),
                "the rule has neither `module` nor `when`",
                "write `module: threshold`, or `when:` with an expression",
            );
            None
        }
        (Some(module), Some(_)) => {
            errors.add(module.place(), "the rule has both `module` and `when`; keep one");
            None
        }
    }
}

/// What a `when:` raises: its `severity`, or the worst one of a graded `for`.
fn severity_of(node: Option<Node>, hold_for: &HoldFor, map: &Map, errors: &mut Errors) -> Option<Severity> {
    match (node, &hold_for.graded) {
        (Some(node), None) => node.parse(errors),
        (None, Some(_)) => hold_for.worst(),
        (Some(node), Some(_)) => {
            errors.hint(node.place(), "`severity` and a graded `for` exclude each other", "keep the one that is meant");
            None
        }
        (None, None) => {
            errors.hint(map.place(), "missing key `severity`", "write `severity: warning`, or grade `for` by severity");
            None
        }
    }
}

fn scope_of(word: &str) -> Result<Scope, String> {
    let known = Scope::ALL.map(Scope::as_str).join(", ");
    Scope::ALL.into_iter().find(|scope| scope.as_str() == word).ok_or_else(|| format!("{word:?} is none of {known}"))
}

/// A tag can be moved by whoever may write to the registry.
fn pinned_module(node: &Node, text: String, errors: &mut Errors) -> Option<ModuleRef> {
    let is_pinned = text.rsplit_once("@sha256:").is_some_and(|(_, digest)| {
        digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    });
    if !is_pinned {
        let hint = "`watchfire pull` prints the reference with its digest";
        errors.hint(node.place(), format!("module {text} is not pinned; expected oci://HOST/NAME@sha256:…"), hint);
        return None;
    }
    Some(ModuleRef::Oci(text))
}

fn named_module(node: &Node, shipped: &[&str], errors: &mut Errors) -> Option<ModuleRef> {
    let text = node.word(errors)?;
    if text.starts_with("oci://") {
        return pinned_module(node, text, errors);
    }
    if text.ends_with(".wasm") {
        return Some(ModuleRef::Wasm(text));
    }
    if text.ends_with(".rhai") {
        return Some(ModuleRef::Rhai(text));
    }
    if shipped.contains(&text.as_str()) {
        return Some(ModuleRef::Shipped(text));
    }
    let known = shipped.join(", ");
    let message = format!("there is no module `{text}`; expected one of {known}, or a file ./NAME.wasm or ./NAME.rhai");
    match nearest(&text, shipped.iter().copied()) {
        Some(near) => errors.hint(node.place(), message, format!("did you mean `{near}`?")),
        None => errors.add(node.place(), message),
    }
    None
}
