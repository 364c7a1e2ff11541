//! Label matchers in Alertmanager's syntax: `severity=~"critical|emergency"`.

use std::fmt;
use std::sync::Arc;

use regex::Regex;

use crate::labels::Labels;

/// How a matcher compares.
#[derive(Clone, Debug)]
enum Test {
    Equal,
    NotEqual,
    Regex(Regex),
    NotRegex(Regex),
}

/// One condition on one label. A label that is not there is an empty text.
#[derive(Clone, Debug)]
pub struct Matcher {
    name: Arc<str>,
    value: Arc<str>,
    test: Test,
}

/// Why a text is no matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// No operator, or nothing before it.
    #[error("{0:?} is no matcher; expected NAME=VALUE, with one of =, !=, =~ and !~")]
    Shape(String),
    /// A quote that does not end, or text after it.
    #[error("{0:?}: a quoted text must end with its quote and nothing may follow it")]
    Quote(String),
    /// A bad regular expression.
    #[error("{text:?}: the regular expression does not parse: {why}")]
    Regex {
        /// The matcher.
        text: String,
        /// What is wrong, in one line.
        why: String,
    },
}

impl Matcher {
    /// Reads one matcher. Names and values may be quoted; regular expressions match the whole value.
    ///
    /// # Errors
    /// What is wrong with the text.
    ///
    /// ```
    /// use watchfire_core::{Labels, matcher::Matcher};
    /// let matcher = Matcher::parse("host=~\"gpu-[0-9]+\"").unwrap();
    /// assert!(matcher.matches(&Labels::new([("host", "gpu-17")])));
    /// assert!(!matcher.matches(&Labels::new([("host", "gpu-17b")])));
    /// ```
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        let shape = || MatcherError::Shape(text.to_owned());
        let (name, rest) = split_name(text.trim()).ok_or_else(shape)?;
        let (operator, value) = split_operator(rest.trim_start()).ok_or_else(shape)?;
        let quote = || MatcherError::Quote(text.to_owned());
        let name = unquote(name.trim()).ok_or_else(quote)?;
        let value = unquote(value.trim()).ok_or_else(quote)?;
        if name.is_empty() {
            return Err(shape());
        }
        let test = test_of(operator, &value).map_err(|why| MatcherError::Regex { text: text.to_owned(), why })?;
        Ok(Matcher { name: name.into(), value: value.into(), test })
    }

    /// A matcher for one exact value.
    pub fn equal(name: &str, value: &str) -> Self {
        Matcher { name: name.into(), value: value.into(), test: Test::Equal }
    }

    /// Whether `labels` meet the condition.
    pub fn matches(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.name).unwrap_or("");
        match &self.test {
            Test::Equal => found == &*self.value,
            Test::NotEqual => found != &*self.value,
            Test::Regex(regex) => regex.is_match(found),
            Test::NotRegex(regex) => !regex.is_match(found),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = match self.test {
            Test::Equal => "=",
            Test::NotEqual => "!=",
            Test::Regex(_) => "=~",
            Test::NotRegex(_) => "!~",
        };
        let plain = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
        let value = escape(&self.value);
        if plain { write!(f, "{}{operator}\"{value}\"", self.name) } else { write!(f, "\"{}\"{operator}\"{value}\"", escape(&self.name)) }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn split_name(text: &str) -> Option<(&str, &str)> {
    if text.starts_with('"') {
        let end = closing_quote(text)?;
        return Some(text.split_at(end + 1));
    }
    text.find(['=', '!']).map(|at| text.split_at(at))
}

/// The place of the quote that ends a text starting with one.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(at, c)| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes.then_some(at)
    })
}

fn split_operator(text: &str) -> Option<(&str, &str)> {
    ["=~", "!~", "!=", "="].into_iter().find_map(|operator| Some((operator, text.strip_prefix(operator)?)))
}

fn unquote(text: &str) -> Option<String> {
    if !text.starts_with('"') {
        return (!text.contains('"')).then(|| text.to_owned());
    }
    let inner = (closing_quote(text)? == text.len() - 1).then(|| &text[1..text.len() - 1])?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(match (c, c == '\\') {
            (_, true) => match chars.next()? {
                'n' => '\n',
                other => other,
            },
            (c, false) => c,
        });
    }
    Some(out)
}

fn test_of(operator: &str, value: &str) -> Result<Test, String> {
    let regex = || Regex::new(&format!("^(?:{value})$")).map_err(|error| one_line(&error.to_string()));
    Ok(match operator {
        "=~" => Test::Regex(regex()?),
        "!~" => Test::NotRegex(regex()?),
        "!=" => Test::NotEqual,
        _ => Test::Equal,
    })
}

fn one_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_alertmanager_does() {
        let labels = Labels::new([("severity", "critical"), ("host", "gpu-1")]);
        let cases = [
            ("severity=critical", true),
            ("severity = \"critical\"", true),
            ("severity!=critical", false),
            ("severity=~\"crit.*|warning\"", true),
            ("severity=~crit", false),
            ("severity!~\"info|warning\"", true),
            ("team=\"\"", true),
            ("team!=\"\"", false),
            ("\"host\"=~\"gpu-[0-9]\"", true),
        ];
        for (text, expected) in cases {
            assert_eq!(Matcher::parse(text).map(|matcher| matcher.matches(&labels)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            ("severity", "is no matcher"),
            ("=x", "is no matcher"),
            ("a=\"b", "must end with its quote"),
            ("a=b\"c", "must end with its quote"),
            ("a=~\"(\"", "does not parse"),
        ];
        for (text, expected) in cases {
            let error = Matcher::parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn reads_back_what_it_shows(name in "[a-z ö\"\\\\]{1,8}", value in "[a-zü\"\\\\\n=~!]{0,12}") {
            let matcher = Matcher::equal(&name, &value);
            let again = Matcher::parse(&matcher.to_string()).unwrap();
            proptest::prop_assert_eq!((again.name, again.value), (matcher.name, matcher.value));
        }
    }
}
