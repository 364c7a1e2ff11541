//! Texts of rules and labels on their way to a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text that a terminal shows and does not obey: control characters, and those that turn the direction of writing
/// or break lines, stand as `\u{1b}` and the like.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_control(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_terminal_is_told_nothing() {
        let texts = ["plain é 漢", "\u{1b}[2Jgone", "a\nb\r\t", "\u{202e}evil", "\u{9b}31m"];
        let shown = ["plain é 漢", "\\u{1b}[2Jgone", "a\\u{a}b\\u{d}\\u{9}", "\\u{202e}evil", "\\u{9b}31m"];
        assert_eq!(texts.map(|text| printable(text).into_owned()), shown);
    }
}
