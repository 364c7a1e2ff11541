//! What a template's users may change.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use watchfire_door::{Errors, Map, Node, nearest, parse_duration};

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its value: the default, or what the configuration says.
    pub value: Node,
    /// What it is for.
    pub doc: String,
}

/// The parameters of a template, by name.
#[derive(Clone, Debug, Default)]
pub struct Parameters(BTreeMap<String, Parameter>);

impl Parameters {
    /// Reads the `parameters:` of a template, and lays the configuration's own values over the defaults.
    pub fn read(declared: Option<&Node>, given: &BTreeMap<String, Node>, errors: &mut Errors) -> Self {
        let declared = declared.and_then(|node| node.map(errors)).map(Map::entries).unwrap_or_default();
        let mut parameters = BTreeMap::new();
        let mut names = Vec::new();
        for (name, place, node) in declared {
            if !is_name(&name) {
                let message = format!("{name:?} is no parameter name; expected letters, digits and _");
                errors.hint(&place, message, "a rule writes it as `$name`");
            }
            if let Some(parameter) = read_one(&node, given.get(&name), errors) {
                parameters.insert(name.clone(), parameter);
            }
            names.push(name);
        }
        for (name, node) in given.iter().filter(|(name, _)| !names.contains(*name)) {
            let known = names.iter().map(String::as_str);
            let message = format!("the template has no parameter `{name}`");
            match nearest(name, known) {
                Some(near) => errors.hint(node.place(), message, format!("did you mean `{near}`?")),
                None => errors.add(node.place(), message),
            }
        }
        Parameters(parameters)
    }

    /// The parameters, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Parameter)> {
        self.0.iter().map(|(name, parameter)| (name.as_str(), parameter))
    }

    /// Puts values in the place of `$name` wherever that is all of a value.
    pub fn fill(&self, node: &Node, errors: &mut Errors) -> Node {
        node.replace(&mut |scalar: &Node| {
            let name = scalar.as_text()?.strip_prefix('$').filter(|name| is_name(name))?;
            match self.0.get(name) {
                Some(parameter) => Some(scalar.with_text(parameter.value.as_text()?)),
                None => {
                    self.unknown(name, scalar, errors);
                    None
                }
            }
        })
    }

    /// The numbers among the values, for expressions.
    pub fn numbers(&self) -> BTreeMap<String, f64> {
        let number = |parameter: &Parameter| match amount(&parameter.value) {
            Amount::Number(number) => Some(number),
            _ => None,
        };
        self.0.iter().filter_map(|(name, parameter)| Some((name.clone(), number(parameter)?))).collect()
    }

    fn unknown(&self, name: &str, node: &Node, errors: &mut Errors) {
        let message = format!("there is no parameter `${name}`");
        match nearest(name, self.0.keys().map(String::as_str)) {
            Some(near) => errors.hint(node.place(), message, format!("did you mean `${near}`?")),
            None => errors.hint(node.place(), message, "declare it under `parameters:`"),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn read_one(node: &Node, given: Option<&Node>, errors: &mut Errors) -> Option<Parameter> {
    let mut map = node.map(errors)?;
    let default = map.require("default", errors).filter(|node| node.text(errors).is_some());
    let given = given.filter(|node| node.text(errors).is_some());
    let (min, max) = (map.take("min"), map.take("max"));
    let doc = map.take("doc").and_then(|node| node.text(errors)).unwrap_or_default();
    map.take("unit").and_then(|node| node.text(errors));
    map.finish(errors);
    let bounds = Bounds { default: default?, min, max };
    bounds.check(given, errors);
    Some(Parameter { value: given.unwrap_or(&bounds.default).clone(), doc })
}

/// What a value is.
#[derive(Clone, Copy)]
enum Amount {
    Number(f64),
    Span(Duration),
    Text,
}

fn amount(node: &Node) -> Amount {
    let text = node.as_text().unwrap_or_default();
    if let Some(number) = text.parse().ok().filter(|number: &f64| number.is_finite()) {
        return Amount::Number(number);
    }
    parse_duration(text).map_or(Amount::Text, Amount::Span)
}

/// What a parameter may be: of the kind of its default, within its bounds.
struct Bounds {
    default: Node,
    min: Option<Node>,
    max: Option<Node>,
}

impl Bounds {
    fn check(&self, given: Option<&Node>, errors: &mut Errors) {
        let bounds = [&self.min, &self.max].into_iter().flatten();
        if matches!(amount(&self.default), Amount::Text) {
            bounds.for_each(|node| errors.add(node.place(), "bounds need a default that is a number or a duration"));
            return;
        }
        let all_fit = bounds.map(|node| self.is_of_kind(node, errors)).fold(true, |all, fits| all & fits);
        if all_fit {
            self.check_range(&self.default, errors);
        }
        if let Some(given) = given
            && self.is_of_kind(given, errors)
            && all_fit
        {
            self.check_range(given, errors);
        }
    }

    fn is_of_kind(&self, node: &Node, errors: &mut Errors) -> bool {
        let kind = match (amount(&self.default), amount(node)) {
            (Amount::Number(_), Amount::Number(_)) | (Amount::Span(_), Amount::Span(_)) => return true,
            (Amount::Span(_), _) => "a duration",
            _ => "a number",
        };
        let (default, found) = (self.default.as_text().unwrap_or_default(), node.as_text().unwrap_or(node.kind()));
        errors.add(node.place(), format!("expected {kind}, as the default {default} is, found {found:?}"));
        false
    }

    fn check_range(&self, node: &Node, errors: &mut Errors) {
        let beyond = |bound: &Option<Node>, side| bound.as_ref().is_some_and(|bound| order(node, bound) == Some(side));
        if !beyond(&self.min, Ordering::Less) && !beyond(&self.max, Ordering::Greater) {
            return;
        }
        let text = |node: &Node| node.as_text().unwrap_or_default().to_owned();
        let range = match (self.min.as_ref().map(text), self.max.as_ref().map(text)) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("at least {min}"),
            (_, max) => format!("at most {}", max.unwrap_or_default()),
        };
        errors.add(node.place(), format!("{} is out of range; expected {range}", text(node)));
    }
}

fn order(one: &Node, other: &Node) -> Option<Ordering> {
    match (amount(one), amount(other)) {
        (Amount::Number(one), Amount::Number(other)) => one.partial_cmp(&other),
        (Amount::Span(one), Amount::Span(other)) => Some(one.cmp(&other)),
        _ => None,
    }
}
