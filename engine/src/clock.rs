//! Moments as people and payloads write them.

use jiff::Timestamp;
use watchfire_core::Time;

/// The first moment that RFC 3339 can write: 0000-01-01T00:00:00Z.
const FIRST_MS: i64 = -62_167_219_200_000;

/// RFC 3339 in UTC, such as `2026-01-01T00:05:00Z`; milliseconds only where there are any. Four digits hold the years 0 to
/// 9999: a moment beyond is written as the first or the last one that can be.
pub fn rfc3339(time: Time) -> String {
    let millis = time.as_millis().clamp(FIRST_MS, Timestamp::MAX.as_millisecond());
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).to_string()
}

/// Reads RFC 3339.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_rfc3339(text: &str) -> Result<Time, String> {
    let stamp: Timestamp = text.parse().map_err(|error| format!("{text:?} is no RFC 3339 time: {error}"))?;
    Ok(Time::from_millis(stamp.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_back() {
        for (millis, text) in [(1_767_225_600_000, "2026-01-01T00:00:00Z"), (1_500, "1970-01-01T00:00:01.5Z")] {
            assert_eq!(rfc3339(Time::from_millis(millis)), text);
            assert_eq!(parse_rfc3339(text), Ok(Time::from_millis(millis)));
        }
        for (millis, text) in [(i64::MAX, "9999-12-30T22:00:00.999999999Z"), (i64::MIN, "0000-01-01T00:00:00Z")] {
            assert_eq!(rfc3339(Time::from_millis(millis)), text);
        }
    }
}
