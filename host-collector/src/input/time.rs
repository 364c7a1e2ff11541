//! Times as CSV files write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Numbers from here on are milliseconds: as seconds they would be after the year 5138, as milliseconds they are
/// after March 1973.
const MILLIS_FROM: f64 = 1e11;
/// Milliseconds beyond which nothing is a time (the year 9999 is 2.5e14).
const MILLIS_MAX: f64 = 1e15;

/// Milliseconds since the Unix epoch of seconds or milliseconds since then, of RFC 3339, or of
/// `2026-01-01 00:00:00`, which is read as UTC.
pub(super) fn millis(text: &str) -> Option<i64> {
    match text.parse::<f64>() {
        Ok(number) => of_number(number),
        Err(_) => of_date(text),
    }
}

fn of_number(number: f64) -> Option<i64> {
    let millis = if number.abs() < MILLIS_FROM { number * 1000.0 } else { number };
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    (millis.abs() <= MILLIS_MAX).then_some(millis.round() as i64)
}

fn of_date(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_millisecond());
    }
    let civil: DateTime = text.parse().ok()?;
    Some(TimeZone::UTC.to_timestamp(civil).ok()?.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_the_same_moment() {
        let spellings = [
            "1767225600",
            "1767225600.0",
            "1767225600000",
            "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00+01:00",
            "2026-01-01 00:00:00",
        ];
        for text in spellings {
            assert_eq!(millis(text), Some(1_767_225_600_000), "{text}");
        }
        assert_eq!(millis("1767225600.25"), Some(1_767_225_600_250));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "yesterday", "NaN", "inf", "1e300", "2026-13-01 00:00:00"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
