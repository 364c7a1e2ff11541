//! One value of a file, and what it may be read as.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::duration::{guess, parse_duration};
use crate::errors::{Errors, Place};
use crate::map::Map;

/// One value of a file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Scalar { text: String, plain: bool },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(crate) fn new(place: Place, content: Content) -> Self {
        Node(Arc::new(Inner { place, content }))
    }

    /// This value's place with another text in it.
    pub fn with_text(&self, text: &str) -> Node {
        Node::new(self.0.place.clone(), Content::Scalar { text: text.to_owned(), plain: true })
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.0.content {
            Content::Scalar { .. } => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        }
    }

    /// The text as written, where it is a single value.
    pub fn as_text(&self) -> Option<&str> {
        match &self.0.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether it is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.0.content, Content::Map(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.0.content, Content::List(_))
    }

    /// As a mapping.
    pub fn map(&self, errors: &mut Errors) -> Option<Map> {
        match &self.0.content {
            Content::Map(pairs) => Some(Map::new(self.place().clone(), pairs.clone())),
            _ => self.refuse("a mapping", errors),
        }
    }

    /// As a list.
    pub fn list(&self, errors: &mut Errors) -> Option<Vec<Node>> {
        match &self.0.content {
            Content::List(items) => Some(items.clone()),
            _ => self.refuse("a list", errors),
        }
    }

    /// A list, or one value that stands for a list of one.
    pub fn one_or_more(&self) -> Vec<Node> {
        match &self.0.content {
            Content::List(items) => items.clone(),
            _ => vec![self.clone()],
        }
    }

    /// As a text: any single value, as written.
    pub fn text(&self, errors: &mut Errors) -> Option<String> {
        match self.as_text() {
            Some(text) => Some(text.to_owned()),
            None => self.refuse("a text", errors),
        }
    }

    /// As a text that is not empty.
    pub fn word(&self, errors: &mut Errors) -> Option<String> {
        self.text(errors)
            .filter(|text| !text.is_empty() || self.refuse::<()>("a text that is not empty", errors).is_some())
    }

    /// As `true` or `false`.
    pub fn bool(&self, errors: &mut Errors) -> Option<bool> {
        self.read(errors, "true or false", |text| text.parse().ok())
    }

    /// As a whole number that is not negative.
    pub fn u64(&self, errors: &mut Errors) -> Option<u64> {
        self.read(errors, "a whole number that is not negative", |text| text.parse().ok())
    }

    /// As a finite number.
    pub fn f64(&self, errors: &mut Errors) -> Option<f64> {
        self.read(errors, "a number", |text| text.parse().ok().filter(|number: &f64| number.is_finite()))
    }

    /// As a duration such as `1h30m`.
    pub fn duration(&self, errors: &mut Errors) -> Option<Duration> {
        let text = self.text(errors)?;
        match parse_duration(&text) {
            Ok(span) => Some(span),
            Err(message) => {
                match guess(&text) {
                    Some(guess) => errors.hint(self.place(), message, format!("write `{guess}`")),
                    None => errors.add(self.place(), message),
                }
                None
            }
        }
    }

    /// As whatever its text reads as; the error's text says what is wrong.
    pub fn parse<T: FromStr<Err: std::fmt::Display>>(&self, errors: &mut Errors) -> Option<T> {
        self.parse_with(errors, |text| text.parse::<T>().map_err(|error| error.to_string()))
    }

    /// As what `read` makes of its text.
    pub fn parse_with<T>(&self, errors: &mut Errors, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(errors)?;
        read(&text).map_err(|message| errors.add(self.place(), message)).ok()
    }

    /// As JSON: plain values that look like numbers, booleans or null become that, quoted ones stay texts.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.0.content {
            Content::Scalar { text, plain: true } => plain_json(text),
            Content::Scalar { text, plain: false } => text.clone().into(),
            Content::List(items) => items.iter().map(Node::to_json).collect::<Vec<_>>().into(),
            Content::Map(pairs) => {
                let pair = |(key, value): &(Node, Node)| Some((key.as_text()?.to_owned(), value.to_json()));
                serde_json::Value::Object(pairs.iter().filter_map(pair).collect())
            }
        }
    }

    /// The place of what stands at a path such as `above.critical` or `[2].name`, or of the nearest thing around it.
    pub fn place_of(&self, path: &str) -> Place {
        let (first, rest) = split_path(path);
        let found = match &self.0.content {
            Content::Map(pairs) => pairs.iter().find(|(key, _)| key.as_text() == Some(first)).map(|(_, value)| value),
            Content::List(items) => first.parse::<usize>().ok().and_then(|at| items.get(at)),
            Content::Scalar { .. } => None,
        };
        match found {
            Some(node) if !first.is_empty() => node.place_of(rest),
            _ => self.place().clone(),
        }
    }

    /// This value with each single value below it passed through `change`; none leaves it as it is.
    pub fn replace(&self, change: &mut impl FnMut(&Node) -> Option<Node>) -> Node {
        let content = match &self.0.content {
            Content::Scalar { .. } => return change(self).unwrap_or_else(|| self.clone()),
            Content::List(items) => Content::List(items.iter().map(|item| item.replace(change)).collect()),
            Content::Map(pairs) => {
                Content::Map(pairs.iter().map(|(key, value)| (key.clone(), value.replace(change))).collect())
            }
        };
        Node::new(self.place().clone(), content)
    }

    fn read<T>(&self, errors: &mut Errors, expected: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let found = self.as_text().and_then(read);
        if found.is_none() {
            self.refuse::<T>(expected, errors);
        }
        found
    }

    fn refuse<T>(&self, expected: &str, errors: &mut Errors) -> Option<T> {
        let found = self.as_text().map_or_else(|| self.kind().to_owned(), |text| format!("{text:?}"));
        errors.add(self.place(), format!("expected {expected}, found {found}"));
        None
    }
}

fn plain_json(text: &str) -> serde_json::Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        "" | "null" | "~" => serde_json::Value::Null,
        _ => number_json(text).unwrap_or_else(|| text.into()),
    }
}

fn number_json(text: &str) -> Option<serde_json::Value> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let whole = text.parse::<i64>().ok().map(serde_json::Value::from);
    whole.or_else(|| serde_json::Number::from_f64(text.parse().ok()?).map(Into::into))
}

fn split_path(path: &str) -> (&str, &str) {
    let path = path.trim_start_matches(['.', '[']);
    let end = path.find(['.', '[', ']']).unwrap_or(path.len());
    (&path[..end], path[end..].trim_start_matches(']'))
}
