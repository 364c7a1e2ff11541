//! Alertmanager's label matchers: `severity=~"critical|emergency"`.

mod parse;

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::labels::Labels;

/// The most bytes that a compiled pattern may take; a larger one is refused.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;

/// How a label's value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`: the whole value matches the pattern.
    Regex,
    /// `!~`
    NotRegex,
}

impl MatchOp {
    /// The sign as written.
    pub const fn as_str(self) -> &'static str {
        match self {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        }
    }
}

/// One condition on one label. A label that is not there has the empty value.
#[derive(Clone, Debug)]
pub struct Matcher {
    name: Arc<str>,
    op: MatchOp,
    value: Arc<str>,
    pattern: Option<Regex>,
}

/// A pattern that is no regular expression, or too large a one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {pattern:?}, expected a regular expression: {why}")]
pub struct BadPattern {
    /// What was written.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

/// A text that is no matcher or list of matchers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("matcher {text:?}, column {column}: {what}")]
pub struct MatcherError {
    /// The whole text.
    pub text: String,
    /// Where, in characters from 1.
    pub column: usize,
    /// What was found and expected.
    pub what: String,
}

impl Matcher {
    /// A matcher from its parts.
    ///
    /// # Errors
    /// Where `op` takes a pattern and `value` is none.
    pub fn new(name: impl Into<Arc<str>>, op: MatchOp, value: impl Into<Arc<str>>) -> Result<Self, BadPattern> {
        let value = value.into();
        let pattern = match op {
            MatchOp::Regex | MatchOp::NotRegex => Some(anchored(&value)?),
            MatchOp::Equal | MatchOp::NotEqual => None,
        };
        Ok(Matcher { name: name.into(), op, value, pattern })
    }

    /// Reads one matcher in Alertmanager's syntax: `name op value`, where name and value are a word or a quoted
    /// text; braces around it are allowed.
    ///
    /// # Errors
    /// Where the text is not exactly one matcher.
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        parse::one(text)
    }

    /// Reads a list: matchers separated by commas, in braces or not. `{}` is the empty list.
    ///
    /// # Errors
    /// Where the text is no list of matchers. The empty text is none: it would match everything by mistake.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, MatcherError> {
        parse::list(text)
    }

    /// The label's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it compares.
    pub fn op(&self) -> MatchOp {
        self.op
    }

    /// The value or pattern.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether `labels` meet the condition.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_value(labels.get(&self.name).unwrap_or(""))
    }

    fn matches_value(&self, found: &str) -> bool {
        let fits = self.pattern.as_ref().map_or(&*self.value == found, |pattern| pattern.is_match(found));
        fits == matches!(self.op, MatchOp::Equal | MatchOp::Regex)
    }
}

/// The pattern over the whole value. It is compiled by itself first: `a)|(b` is no pattern, though it would be one
/// within the brackets that anchor it.
fn anchored(pattern: &str) -> Result<Regex, BadPattern> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build();
    compile(pattern).and_then(|_| compile(&format!("^(?:{pattern})$"))).map_err(|error| BadPattern {
        pattern: pattern.to_owned(),
        why: error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    })
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.op, &self.value) == (&other.name, other.op, &other.value)
    }
}

impl Eq for Matcher {}

impl fmt::Display for Matcher {
    /// Alertmanager's form: the value quoted, the name only where it must be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() || self.name.chars().any(|one| parse::is_reserved(one) || one.is_control()) {
            write_quoted(f, &self.name)?;
        } else {
            f.write_str(&self.name)?;
        }
        f.write_str(self.op.as_str())?;
        write_quoted(f, &self.value)
    }
}

/// Go's quoting: what is no printable character is escaped.
fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for one in text.chars() {
        match one {
            '"' | '\\' => write!(f, "\\{one}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            _ if one.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(one))?,
            _ if one.is_control() => write!(f, "\\u{:04x}", u32::from(one))?,
            _ => write!(f, "{one}")?,
        }
    }
    f.write_str("\"")
}

/// A list as Alertmanager writes it: `{a="b",c!="d"}`.
pub fn to_list(matchers: &[Matcher]) -> String {
    let all: Vec<String> = matchers.iter().map(Matcher::to_string).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn matches_as_alertmanager_does() {
        let labels = Labels::new([("severity", "critical"), ("host", "gpu-01"), ("note", "a\nb"), ("zone", "北京")]);
        let cases = [
            ("severity=critical", true),
            ("severity=\"warning\"", false),
            ("severity!=warning", true),
            ("severity=~\"critical|emergency\"", true),
            ("severity=~crit", false),
            ("severity=~\"crit.*\"", true),
            ("severity!~crit", true),
            ("severity!~\".*critical\"", false),
            ("host=~\"gpu-[0-9]+\"", true),
            ("team=\"\"", true),
            ("team!=\"\"", false),
            ("team=~\".*\"", true),
            ("team=~\".+\"", false),
            ("team!~\".+\"", true),
            ("team!=infra", true),
            ("note=~\"a.b\"", false),
            ("note=~\"(?s)a.b\"", true),
            ("zone=北京", true),
            ("zone=~\"..\"", true),
        ];
        for (text, expected) in cases {
            assert_eq!(Matcher::parse(text).unwrap().matches(&labels), expected, "{text}");
        }
    }

    #[test]
    fn a_pattern_cannot_leave_its_anchors() {
        let error = Matcher::new("a", MatchOp::Regex, "x)|(y").unwrap_err();
        assert_eq!(error.to_string(), "found \"x)|(y\", expected a regular expression: unopened group");
    }

    #[test]
    fn a_pattern_that_grows_without_end_is_refused() {
        let error = Matcher::new("a", MatchOp::Regex, "(((a{100}){100}){100}){100}").unwrap_err();
        assert!(error.why.contains("size limit"), "{error}");
    }

    fn any_matcher() -> impl Strategy<Value = Matcher> {
        let op =
            prop_oneof![Just(MatchOp::Equal), Just(MatchOp::NotEqual), Just(MatchOp::Regex), Just(MatchOp::NotRegex)];
        ("\\PC{1,8}|[\\x00-\\x7f]{1,6}|[a-z_]{1,6}", op, any::<String>()).prop_map(|(name, op, value)| {
            let is_pattern = matches!(op, MatchOp::Regex | MatchOp::NotRegex);
            let value = if is_pattern { regex::escape(&value) } else { value };
            Matcher::new(name, op, value).unwrap()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_reads_back(matchers in prop::collection::vec(any_matcher(), 0..4)) {
            for matcher in &matchers {
                prop_assert_eq!(&Matcher::parse(&matcher.to_string()).unwrap(), matcher);
            }
            prop_assert_eq!(Matcher::parse_list(&to_list(&matchers)).unwrap(), matchers);
        }

        #[test]
        fn no_text_breaks_the_reader(text in "[a-z{}!=~,\\\\\"' `x0]{0,12}|\\PC{0,12}") {
            if let Err(error) = Matcher::parse_list(&text) {
                prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{}", error);
            }
        }
    }
}
