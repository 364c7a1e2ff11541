//! What the comments of a page say of its metrics.

use std::borrow::Cow;
use std::collections::HashMap;

use super::cursor::{Cursor, Fault};
use super::line::found;
use super::{Format, Kind};

/// The families of one page.
#[derive(Debug, Default)]
pub(super) struct Families<'a> {
    known: HashMap<Cow<'a, str>, Family>,
    /// The name of the last sample and what was found of it: pages list a family's samples together.
    last: Option<(Cow<'a, str>, Found)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Family {
    kind: Kind,
    typed: bool,
    helped: bool,
    united: bool,
    sampled: bool,
}

/// What a sample's name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub kind: Kind,
    /// It says when its series was created, which is no measurement.
    pub created: bool,
}

impl<'a> Families<'a> {
    /// Takes a comment line, `#` included.
    pub fn comment(&mut self, line: &'a str, format: Format) -> Result<(), Fault> {
        let mut cursor = Cursor::new(line);
        cursor.blanks();
        cursor.eat(b'#');
        cursor.blanks();
        let keyword = cursor.token();
        let about_unit = keyword == "UNIT" && format == Format::OpenMetrics;
        if !matches!(keyword, "TYPE" | "HELP") && !about_unit {
            return Ok(());
        }
        cursor.blanks();
        if cursor.rest().is_empty() {
            return Ok(());
        }
        let (at, name) = (cursor.at, named(&mut cursor)?);
        self.last = None;
        let family = self.known.entry(name.clone()).or_default();
        cursor.blanks();
        if cursor.rest().is_empty() {
            return Ok(());
        }
        match keyword {
            "TYPE" => family.set_type(&mut cursor, at, &name),
            "HELP" => once(&mut family.helped, at, "HELP", &name),
            _ => once(&mut family.united, at, "UNIT", &name),
        }
    }

    /// Finds the family of a sample.
    #[expect(clippy::ptr_arg, reason = "it is kept, which costs nothing where it is borrowed")]
    pub fn sample(&mut self, name: &Cow<'a, str>) -> Found {
        if let Some((last, found)) = &self.last
            && last == name
        {
            return *found;
        }
        let found = Found { kind: self.kind(name), created: self.is_created(name) };
        self.last = Some((name.clone(), found));
        found
    }

    #[expect(clippy::ptr_arg, reason = "it is kept, which costs nothing where it is borrowed")]
    fn kind(&mut self, name: &Cow<'a, str>) -> Kind {
        let own = self.known.get(name).is_some_and(|family| family.typed);
        let base = if own { None } else { self.base(name) };
        let family = match base {
            Some(base) => self.known.get_mut(base),
            None => Some(self.known.entry(name.clone()).or_default()),
        };
        family.map_or(Kind::Unknown, |family| {
            family.sampled = true;
            family.kind
        })
    }

    /// The typed family that `name` belongs to by its suffix.
    fn base<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (base, suffix) = name.rsplit_once('_')?;
        let family = self.known.get(base).filter(|family| family.typed)?;
        family.kind.has_suffix(suffix).then_some(base)
    }

    fn is_created(&self, name: &str) -> bool {
        let Some(base) = name.strip_suffix("_created") else { return false };
        let kind = |name: &str| self.known.get(name).map(|family| family.kind);
        let counts = matches!(kind(base), Some(Kind::Counter | Kind::Histogram | Kind::Summary));
        counts || kind(&format!("{base}_total")) == Some(Kind::Counter)
    }
}

impl Family {
    fn set_type(&mut self, cursor: &mut Cursor<'_>, at: usize, name: &str) -> Result<(), Fault> {
        if self.typed || self.sampled {
            let name = found(name);
            return Err((at, format!("second TYPE line for metric {name}, or TYPE after its samples").into()));
        }
        let start = cursor.at;
        let word = cursor.rest().trim_end();
        let kind = Kind::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(word));
        let kind = if word.eq_ignore_ascii_case("untyped") { Some(Kind::Unknown) } else { kind };
        self.kind = kind.ok_or_else(|| (start, format!("unknown metric type {}", found(word)).into()))?;
        self.typed = true;
        Ok(())
    }
}

fn once(seen: &mut bool, at: usize, what: &str, name: &str) -> Result<(), Fault> {
    if std::mem::replace(seen, true) {
        return Err((at, format!("second {what} line for metric {}", found(name)).into()));
    }
    Ok(())
}

fn named<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, Fault> {
    let at = cursor.at;
    let name = if cursor.peek() == Some(b'"') { cursor.quoted()? } else { Cow::Borrowed(cursor.metric_name()) };
    let ends = matches!(cursor.peek(), None | Some(b' ' | b'\t'));
    if name.is_empty() || !ends { Err((at, "invalid metric name in comment".into())) } else { Ok(name) }
}
