//! Durations as Prometheus writes them.

use std::time::Duration;

const UNITS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// Reads a duration such as `5m`, `1h30m`, `250ms` or `0s`.
///
/// # Errors
/// What was found, what is expected and, after ` hint: `, what was likely meant.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut total_ms = 0u64;
    while !rest.is_empty() {
        let (ms, after) = part(rest).ok_or_else(|| refuse(text))?;
        total_ms = total_ms.checked_add(ms).ok_or_else(|| refuse(text))?;
        rest = after;
    }
    if text.is_empty() { Err(refuse(text)) } else { Ok(Duration::from_millis(total_ms)) }
}

fn part(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let letters = &text[digits..];
    let end = letters.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(letters.len());
    let (_, unit_ms) = UNITS.into_iter().find(|(unit, _)| *unit == &letters[..end])?;
    Some((number.checked_mul(unit_ms)?, &letters[end..]))
}

fn refuse(text: &str) -> String {
    format!("{text:?} is no duration; expected a number with ms, s, m, h, d or w, such as 1h30m")
}

/// What a text that is no duration was likely meant to be: its number with the first letter of its word.
pub(crate) fn guess(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let word = text[digits..].trim_start();
    let unit = if word.starts_with("mil") { "ms" } else { word.get(..1)? };
    let known = UNITS.iter().any(|(one, _)| *one == unit) && digits > 0;
    known.then(|| format!("{}{unit}", &text[..digits]))
}

/// Writes a duration in the same form, largest units first.
pub fn format_duration(span: Duration) -> String {
    let mut rest = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, unit_ms) in UNITS.into_iter().rev().filter(|(unit, _)| *unit != "w") {
        if rest >= unit_ms {
            text += &format!("{}{unit}", rest / unit_ms);
            rest %= unit_ms;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_prometheus_writes() {
        let cases = [("5m", 300_000), ("1h30m", 5_400_000), ("250ms", 250), ("0s", 0), ("2d", 172_800_000)];
        for (text, ms) in cases {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "m", "5 m", "5minutes", "-5m", "1.5h", "99999999999999999999s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn guesses_what_was_meant() {
        let cases = [("5 minuets", Some("5m")), ("10 millis", Some("10ms")), ("30sec", Some("30s")), ("x", None)];
        for (text, expected) in cases {
            assert_eq!(guess(text).as_deref(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn writes_and_reads_back(ms in 0u64..10_000_000_000) {
            let span = Duration::from_millis(ms);
            proptest::prop_assert_eq!(parse_duration(&format_duration(span)), Ok(span));
        }
    }
}
