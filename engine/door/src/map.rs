//! A mapping that knows which of its keys were asked for.

use crate::errors::{Errors, Place, nearest};
use crate::node::Node;

/// A mapping being read. [`Map::finish`] refuses what nobody asked for.
#[derive(Debug)]
pub struct Map {
    place: Place,
    pairs: Vec<(Node, Node)>,
    asked: Vec<String>,
}

impl Map {
    pub(crate) fn new(place: Place, pairs: Vec<(Node, Node)>) -> Self {
        Map { place, pairs, asked: Vec::new() }
    }

    /// Where it stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The value of `key`, where it is there.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        self.asked.push(key.to_owned());
        let at = self.pairs.iter().position(|(found, _)| found.as_text() == Some(key))?;
        Some(self.pairs.remove(at).1)
    }

    /// The value of `key`, which must be there.
    pub fn require(&mut self, key: &str, errors: &mut Errors) -> Option<Node> {
        let found = self.take(key);
        if found.is_none() {
            errors.add(&self.place, format!("missing key `{key}`"));
        }
        found
    }

    /// The place of `key`, while it has not been taken.
    pub fn place_of_key(&self, key: &str) -> Option<Place> {
        self.pairs.iter().find(|(found, _)| found.as_text() == Some(key)).map(|(key, _)| key.place().clone())
    }

    /// Whether `key` is there and not taken yet.
    pub fn has(&self, key: &str) -> bool {
        self.place_of_key(key).is_some()
    }

    /// All that is left, as (key, place of the key, value): for mappings whose keys are free.
    pub fn entries(self) -> Vec<(String, Place, Node)> {
        let entry = |(key, value): (Node, Node)| Some((key.as_text()?.to_owned(), key.place().clone(), value));
        self.pairs.into_iter().filter_map(entry).collect()
    }

    /// Refuses the keys that nobody asked for.
    pub fn finish(self, errors: &mut Errors) {
        for (key, _) in &self.pairs {
            let Some(text) = key.as_text() else { continue };
            let message = format!("unknown key `{text}`; expected one of {}", self.asked.join(", "));
            match nearest(text, self.asked.iter().map(String::as_str)) {
                Some(near) => errors.hint(key.place(), message, format!("did you mean `{near}`?")),
                None => errors.add(key.place(), message),
            }
        }
    }
}
