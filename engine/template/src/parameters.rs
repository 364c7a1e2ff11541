//! What a template's users may change.

use std::collections::BTreeMap;

use watchfire_door::{Errors, Node, nearest};

/// One parameter.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its value: the default, or what the configuration says.
    pub value: Node,
    min: Option<f64>,
    max: Option<f64>,
    /// What it is for.
    pub doc: String,
}

/// The parameters of a template, by name.
#[derive(Clone, Debug, Default)]
pub struct Parameters(BTreeMap<String, Parameter>);

impl Parameters {
    /// Reads the `parameters:` of a template, and lays the configuration's own values over the defaults.
    pub fn read(declared: Option<&Node>, given: &BTreeMap<String, Node>, errors: &mut Errors) -> Self {
        let declared = declared.and_then(|node| node.map(errors)).map(|map| map.entries()).unwrap_or_default();
        let mut parameters = BTreeMap::new();
        for (name, _, node) in declared {
            if let Some(parameter) = read_one(&node, given.get(&name), errors) {
                parameters.insert(name, parameter);
            }
        }
        for (name, node) in given {
            if !parameters.contains_key(name) {
                let known = parameters.keys().map(String::as_str);
                let message = format!("the template has no parameter `{name}`");
                match nearest(name, known) {
                    Some(near) => errors.hint(node.place(), message, format!("did you mean `{near}`?")),
                    None => errors.add(node.place(), message),
                }
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
            let name = scalar.as_text()?.strip_prefix('$')?;
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || name.is_empty() {
                return None;
            }
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
        let number =
            |parameter: &Parameter| parameter.value.as_text()?.parse().ok().filter(|number: &f64| number.is_finite());
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

fn read_one(node: &Node, given: Option<&Node>, errors: &mut Errors) -> Option<Parameter> {
    let mut map = node.map(errors)?;
    let default = map.require("default", errors);
    let min = map.take("min").and_then(|node| node.f64(errors));
    let max = map.take("max").and_then(|node| node.f64(errors));
    let doc = map.take("doc").and_then(|node| node.text(errors)).unwrap_or_default();
    map.take("unit");
    map.finish(errors);
    let parameter = Parameter { value: given.cloned().or(default)?, min, max, doc };
    parameter.check(errors);
    Some(parameter)
}

impl Parameter {
    fn check(&self, errors: &mut Errors) {
        if self.min.is_none() && self.max.is_none() {
            return;
        }
        let Some(value) = self.value.f64(errors) else { return };
        let (min, max) = (self.min.unwrap_or(f64::NEG_INFINITY), self.max.unwrap_or(f64::INFINITY));
        if !(min..=max).contains(&value) {
            errors.add(self.value.place(), format!("{value} is out of range; expected {min} to {max}"));
        }
    }
}
