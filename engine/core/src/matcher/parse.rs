//! Reads matchers in the UTF-8 syntax of Alertmanager (`matcher/parse`).

use super::{MatchOp, Matcher, MatcherError};

/// Characters that a word may not hold unless it is quoted.
pub fn is_reserved(one: char) -> bool {
    one.is_whitespace() || matches!(one, '{' | '}' | '!' | '=' | '~' | ',' | '\\' | '"' | '\'' | '`')
}

pub fn one(text: &str) -> Result<Matcher, MatcherError> {
    let mut matchers = list(text)?;
    match (matchers.pop(), matchers.len()) {
        (Some(matcher), 0) => Ok(matcher),
        (_, more) => {
            let what = if more == 0 { "found none".to_owned() } else { format!("found {}", more + 1) };
            Err(Reader::new(text).error_at(0, &format!("{what}, expected one matcher")))
        }
    }
}

pub fn list(text: &str) -> Result<Vec<Matcher>, MatcherError> {
    let mut reader = Reader::new(text);
    let is_braced = reader.eat('{');
    let mut matchers = Vec::new();
    if !is_braced || reader.peek() != Some('}') {
        matchers = reader.matchers()?;
    }
    if is_braced && !reader.eat('}') {
        return Err(reader.error("a comma or a closing brace"));
    }
    match reader.peek() {
        None => Ok(matchers),
        Some(_) => Err(reader.error(if is_braced { "the end" } else { "a comma or the end" })),
    }
}

struct Reader<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Reader { text, chars: text.chars().collect(), at: 0 }
    }

    fn error(&self, expected: &str) -> MatcherError {
        let found = self.chars.get(self.at).map_or("the end".to_owned(), |one| format!("{one:?}"));
        self.error_at(self.at, &format!("found {found}, expected {expected}"))
    }

    fn error_at(&self, at: usize, what: &str) -> MatcherError {
        MatcherError { text: self.text.to_owned(), column: at + 1, what: what.to_owned() }
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|one| one.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, expected: char) -> bool {
        let is_there = self.peek() == Some(expected);
        self.at += usize::from(is_there);
        is_there
    }

    /// Matchers separated by commas; one comma may follow the last.
    fn matchers(&mut self) -> Result<Vec<Matcher>, MatcherError> {
        let mut matchers = vec![self.matcher()?];
        while self.eat(',') && !matches!(self.peek(), None | Some('}')) {
            matchers.push(self.matcher()?);
        }
        Ok(matchers)
    }

    fn matcher(&mut self) -> Result<Matcher, MatcherError> {
        self.peek();
        let name_at = self.at;
        let name = self.word("a label name")?;
        if name.is_empty() {
            return Err(self.error_at(name_at, "found an empty label name, expected a name"));
        }
        let op = self.op()?;
        self.peek();
        let value_at = self.at;
        let value = self.word("a value")?;
        Matcher::new(name, op, value).map_err(|bad| self.error_at(value_at, &bad.to_string()))
    }

    fn op(&mut self) -> Result<MatchOp, MatcherError> {
        let first = self.peek();
        let second = self.chars.get(self.at + 1).copied();
        let (op, length) = match (first, second) {
            (Some('='), Some('~')) => (MatchOp::Regex, 2),
            (Some('='), _) => (MatchOp::Equal, 1),
            (Some('!'), Some('=')) => (MatchOp::NotEqual, 2),
            (Some('!'), Some('~')) => (MatchOp::NotRegex, 2),
            _ => return Err(self.error("one of =, !=, =~, !~")),
        };
        self.at += length;
        Ok(op)
    }

    fn word(&mut self, what: &str) -> Result<String, MatcherError> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let rest = &self.chars[self.at..];
        let word: String = rest.iter().take_while(|one| !is_reserved(**one)).collect();
        if word.is_empty() {
            return Err(self.error(what));
        }
        self.at += word.chars().count();
        Ok(word)
    }

    fn quoted(&mut self) -> Result<String, MatcherError> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        while let Some(one) = self.chars.get(self.at).copied() {
            self.at += 1;
            match one {
                '"' => {
                    return String::from_utf8(bytes)
                        .map_err(|_| self.error_at(start, "found a quoted text that is not UTF-8, expected UTF-8"));
                }
                '\\' => self.escape(&mut bytes)?,
                _ => push(&mut bytes, one),
            }
        }
        Err(self.error_at(start, "found no end of the quoted text, expected a closing \""))
    }

    /// One of Go's escapes, its backslash already read.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), MatcherError> {
        let at = self.at - 1;
        let kind = self.chars.get(self.at).copied();
        self.at += 1;
        let simple = match kind {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(one @ ('\\' | '"')) => one,
            Some('x') => {
                bytes.push(self.hex(2, at)? as u8);
                return Ok(());
            }
            Some('u') => self.code_point(4, at)?,
            Some('U') => self.code_point(8, at)?,
            _ => {
                return Err(
                    self.error_at(at, "found an unknown escape, expected one of \\\\ \\\" \\n \\t \\r \\xNN \\uNNNN")
                );
            }
        };
        push(bytes, simple);
        Ok(())
    }

    fn code_point(&mut self, digits: usize, at: usize) -> Result<char, MatcherError> {
        let code = self.hex(digits, at)?;
        char::from_u32(code).ok_or_else(|| self.error_at(at, "found an escape of no character, expected a code point"))
    }

    fn hex(&mut self, digits: usize, at: usize) -> Result<u32, MatcherError> {
        let text: String = self.chars.iter().skip(self.at).take(digits).collect();
        let is_hex = text.len() == digits && text.bytes().all(|one| one.is_ascii_hexdigit());
        self.at += digits;
        match u32::from_str_radix(&text, 16) {
            Ok(code) if is_hex => Ok(code),
            _ => Err(self.error_at(at, &format!("found \\…{text}, expected {digits} hexadecimal digits"))),
        }
    }
}

fn push(bytes: &mut Vec<u8>, one: char) {
    bytes.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::matcher::to_list;

    /// As in Alertmanager's `matcher/parse/parse_test.go`.
    #[test]
    fn reads_what_alertmanager_reads() {
        let cases = [
            ("{}", "{}"),
            ("{foo=bar}", r#"{foo="bar"}"#),
            ("foo=bar", r#"{foo="bar"}"#),
            ("{foo=\"bar\"}", r#"{foo="bar"}"#),
            ("{foo!=bar,}", r#"{foo!="bar"}"#),
            ("foo=bar,bar=~baz", r#"{foo="bar",bar=~"baz"}"#),
            ("foo=bar,", r#"{foo="bar"}"#),
            (" { foo = bar , bar !~ baz } ", r#"{foo="bar",bar!~"baz"}"#),
            ("{\"foo bar\"=baz}", r#"{"foo bar"="baz"}"#),
            ("{foo🙂=bar}", r#"{foo🙂="bar"}"#),
            ("foo=\"\"", r#"{foo=""}"#),
            ("foo=\"a\\\"b\\\\c\\n\\t\\x41\\u00e9\\U0001f642\"", "{foo=\"a\\\"b\\\\c\\n\\tAé🙂\"}"),
            ("foo=\"\\xf0\\x9f\\x99\\x82\"", r#"{foo="🙂"}"#),
            ("foo:bar=b.a-z/*", r#"{foo:bar="b.a-z/*"}"#),
        ];
        for (text, expected) in cases {
            assert_eq!(to_list(&list(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let cases = [
            ("", 1, "found the end, expected a label name"),
            ("{,}", 2, "found ',', expected a label name"),
            ("{foo=bar", 9, "found the end, expected a comma or a closing brace"),
            ("foo=bar}", 8, "found '}', expected a comma or the end"),
            ("foo", 4, "found the end, expected one of =, !=, =~, !~"),
            ("foo==bar", 5, "found '=', expected a value"),
            ("foo=", 5, "found the end, expected a value"),
            ("foo=bar baz", 9, "found 'b', expected a comma or the end"),
            ("foo=\"bar", 5, "found no end of the quoted text, expected a closing \""),
            ("\"\"=bar", 1, "found an empty label name, expected a name"),
            ("foo=\"\\xff\"", 5, "found a quoted text that is not UTF-8, expected UTF-8"),
            ("foo=\"\\x4\"", 6, "found \\…4\", expected 2 hexadecimal digits"),
            ("foo=\"\\q\"", 6, "found an unknown escape, expected one of \\\\ \\\" \\n \\t \\r \\xNN \\uNNNN"),
            ("foo=\"\\ud800\"", 6, "found an escape of no character, expected a code point"),
            ("北=京,severity=~\"(\"", 15, "found \"(\", expected a regular expression: unclosed group"),
            ("{foo=bar} baz", 11, "found 'b', expected the end"),
        ];
        for (text, column, what) in cases {
            let error = list(text).unwrap_err();
            assert_eq!((error.column, error.what.as_str()), (column, what), "{text}");
        }
        assert_eq!(one("a=b,c=d").unwrap_err().what, "found 2, expected one matcher");
        assert_eq!(one("{}").unwrap_err().what, "found none, expected one matcher");
    }
}
