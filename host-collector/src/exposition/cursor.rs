//! A place within one line, and the words that can stand there.

use std::borrow::Cow;

use super::line::found;

/// What is wrong with a line: the byte where, and what.
pub(super) type Fault = (usize, Cow<'static, str>);

/// A place within one line.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    line: &'a str,
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(line: &'a str) -> Self {
        Cursor { line, at: 0 }
    }

    pub fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or("")
    }

    pub fn since(&self, start: usize) -> &'a str {
        self.line.get(start..self.at).unwrap_or("")
    }

    pub fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub fn blanks(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        let bytes = self.line.as_bytes();
        while bytes.get(self.at).is_some_and(|&byte| wanted(byte)) {
            self.at += 1;
        }
    }

    /// Everything up to the next blank.
    pub fn token(&mut self) -> &'a str {
        let start = self.at;
        self.skip(|byte| !matches!(byte, b' ' | b'\t'));
        self.since(start)
    }

    /// A metric's name without quotes; empty where none stands here.
    pub fn metric_name(&mut self) -> &'a str {
        self.word(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':'))
    }

    /// A label's name without quotes; empty where none stands here.
    pub fn label_name(&mut self) -> &'a str {
        self.word(|byte| byte.is_ascii_alphabetic() || byte == b'_')
    }

    fn word(&mut self, begins: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        if self.peek().is_some_and(&begins) {
            self.skip(|byte| begins(byte) || byte.is_ascii_digit());
        }
        self.since(start)
    }

    /// A text in quotes, with `\\`, `\"` and `\n` undone. Borrowed unless there was one to undo.
    pub fn quoted(&mut self) -> Result<Cow<'a, str>, Fault> {
        let open = self.at;
        if !self.eat(b'"') {
            return Err((open, format!("expected a text in quotes, found {}", found(self.rest())).into()));
        }
        let start = self.at;
        self.skip(|byte| !matches!(byte, b'"' | b'\\'));
        match self.peek() {
            Some(b'"') => {
                let text = self.since(start);
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            Some(_) => self.escaped(open, start).map(Cow::Owned),
            None => Err(unclosed(open)),
        }
    }

    fn escaped(&mut self, open: usize, start: usize) -> Result<String, Fault> {
        let mut text = self.since(start).to_owned();
        loop {
            let from = self.at;
            self.skip(|byte| !matches!(byte, b'"' | b'\\'));
            text.push_str(self.since(from));
            if self.eat(b'"') {
                return Ok(text);
            }
            if !self.eat(b'\\') {
                return Err(unclosed(open));
            }
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let char = match self.peek() {
            Some(b'n') => '\n',
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            _ => {
                let next: String = self.rest().chars().take(1).collect();
                return Err((self.at - 1, format!("invalid escape sequence '\\{next}'").into()));
            }
        };
        self.at += 1;
        Ok(char)
    }
}

fn unclosed(open: usize) -> Fault {
    (open, "the quote that opens here is never closed".into())
}
