//! `--update`: a scenario's text with its `expect` replaced, and all else, comments included, as it was.

/// The text with `expect` replaced; it comes last where there was none. Comments within the old `expect` stand above
/// the new one, since the lines that they were about may be gone.
pub(crate) fn bless(text: &str, expect: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let key = lines.iter().position(|line| line.starts_with("expect:")).unwrap_or(lines.len());
    let rest = lines.get(key + 1..).unwrap_or_default();
    let follows = |line: &&str| !line.is_empty() && !line.starts_with([' ', '-', '#', '\t', ']', '}']);
    let mut after = rest.iter().position(follows).unwrap_or(rest.len());
    // Comments of the first column and empty lines just before the next key belong to it.
    while after > 0 && (rest[after - 1].is_empty() || rest[after - 1].starts_with('#')) {
        after -= 1;
    }
    let mut out: Vec<String> = lines[..key].iter().map(|line| (*line).to_owned()).collect();
    out.extend(lines.get(key).and_then(|line| comment(line)));
    out.extend(rest[..after].iter().filter_map(|line| comment(line)));
    out.push(expect.trim_end().to_owned());
    out.extend(rest[after..].iter().map(|line| (*line).to_owned()));
    out.join("\n") + "\n"
}

/// The comment of a line, outside quotes, as a line of its own.
fn comment(line: &str) -> Option<String> {
    let (mut quote, mut before) = (None, ' ');
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            Some(_) => {}
            None if c == '#' && before.is_whitespace() => return Some(line[at..].to_owned()),
            None if matches!(c, '"' | '\'') && !before.is_alphanumeric() => quote = Some(c),
            None => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::bless;

    #[test]
    fn comments_and_the_keys_after_it_stay() {
        let new = "expect:\n  - {at: 1s, alert: A}\n";
        let cases = [
            ("# top\nscenario: s\nexpect: []\n", "# top\nscenario: s\nexpect:\n  - {at: 1s, alert: A}\n"),
            ("scenario: s\n", "scenario: s\nexpect:\n  - {at: 1s, alert: A}\n"),
            (
                "expect: # all\n  # first\n  - {alert: B, note: \"a # b\"} # why\n\n# of end\nend: 5s # last\n",
                "# all\n# first\n# why\nexpect:\n  - {at: 1s, alert: A}\n\n# of end\nend: 5s # last\n",
            ),
            ("expect: [\n  {alert: B}\n]\nend: 1s\n", "expect:\n  - {at: 1s, alert: A}\nend: 1s\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(bless(text, new), expected, "{text}");
        }
    }
}
