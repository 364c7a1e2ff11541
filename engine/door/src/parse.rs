//! From text to a tree of nodes with places.

use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::errors::{Errors, Place};
use crate::node::{Content, Node};

/// The largest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;
/// The deepest nesting that is read.
pub const DEPTH_MAX: usize = 64;

/// Reads the one document of a file. What is wrong goes to `errors`; none where nothing could be read.
pub fn read(file: &str, text: &str, errors: &mut Errors) -> Option<Node> {
    let file: Arc<str> = file.into();
    let start = Place { file: file.clone(), line: 1, column: 1 };
    if text.len() > FILE_BYTES_MAX {
        errors.add(&start, format!("the file has {} bytes; at most {FILE_BYTES_MAX} are read", text.len()));
        return None;
    }
    let mut tree = Tree { file, open: Vec::new(), root: None };
    for event in Parser::new_from_str(text.trim_start_matches('\u{feff}')) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let place = Place { line: error.marker().line(), column: error.marker().col() + 1, ..start };
                errors.add(&place, format!("this is no YAML: {}", error.info()));
                return None;
            }
        };
        tree.take(event, span, errors)?;
    }
    if tree.root.is_none() {
        errors.add(&start, "the file is empty");
    }
    tree.root
}

struct Tree {
    file: Arc<str>,
    open: Vec<Open>,
    root: Option<Node>,
}

/// A list or map whose end is not yet read.
struct Open {
    place: Place,
    items: Vec<Node>,
    is_map: bool,
}

impl Tree {
    /// Takes an event in; none where reading on makes no sense.
    fn take(&mut self, event: Event<'_>, span: Span, errors: &mut Errors) -> Option<()> {
        let place = Place { file: self.file.clone(), line: span.start.line(), column: span.start.col() + 1 };
        match event {
            Event::Scalar(text, style, ..) => {
                let plain = style == ScalarStyle::Plain;
                self.add(Node::new(place, Content::Scalar { text: text.into_owned(), plain }));
            }
            Event::SequenceStart(..) => self.begin(place, false, errors)?,
            Event::MappingStart(..) => self.begin(place, true, errors)?,
            Event::SequenceEnd | Event::MappingEnd => self.end(errors),
            Event::Alias(_) => {
                errors.hint(&place, "anchors and aliases are not read", "write the value out");
                return None;
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                errors.hint(&place, "a second document begins", "one file holds one document");
                return None;
            }
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, place: Place, is_map: bool, errors: &mut Errors) -> Option<()> {
        if self.open.len() >= DEPTH_MAX {
            errors.add(&place, format!("nested more than {DEPTH_MAX} deep"));
            return None;
        }
        self.open.push(Open { place, items: Vec::new(), is_map });
        Some(())
    }

    fn end(&mut self, errors: &mut Errors) {
        let Some(open) = self.open.pop() else { return };
        let content = if open.is_map { Content::Map(pairs(open.items, errors)) } else { Content::List(open.items) };
        self.add(Node::new(open.place, content));
    }

    fn add(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(open) => open.items.push(node),
            None => self.root = Some(node),
        }
    }
}

fn pairs(items: Vec<Node>, errors: &mut Errors) -> Vec<(Node, Node)> {
    let mut pairs: Vec<(Node, Node)> = Vec::new();
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        let Some(text) = key.as_text() else {
            errors.add(key.place(), "a key must be a text");
            continue;
        };
        if let Some((first, _)) = pairs.iter().find(|(first, _)| first.as_text() == Some(text)) {
            errors
                .add(key.place(), format!("key `{text}` is there twice; the first is at line {}", first.place().line));
            continue;
        }
        pairs.push((key, value));
    }
    pairs
}
