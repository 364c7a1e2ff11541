//! Numbers as exposition text writes them. Rust's and Go's parsers differ; what Go refuses is refused here.

/// A sample's value: what Go's `ParseFloat` accepts without hexadecimal and underscores.
/// A finite text too large for a double is refused, where Rust would say infinite.
pub fn value(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let fits = match number {
        _ if number.is_nan() => !text.starts_with(['+', '-']),
        _ if number.is_infinite() => text.trim_start_matches(['+', '-']).starts_with(['i', 'I']),
        _ => true,
    };
    fits.then_some(number)
}

/// A timestamp of OpenMetrics, in seconds, as milliseconds since the Unix epoch.
pub fn seconds(text: &str) -> Option<i64> {
    let millis = value(text)? * 1000.0;
    // Beyond this a double no longer counts single milliseconds; it is the year 287396.
    let countable = millis.abs() < 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    countable.then_some(millis.round() as i64)
}

/// A timestamp of the text format: whole milliseconds since the Unix epoch.
pub fn millis(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_accepts_is_accepted() {
        let cases = [
            ("+Inf", f64::INFINITY),
            ("-Inf", f64::NEG_INFINITY),
            ("Inf", f64::INFINITY),
            ("1e-400", 0.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("+7", 7.0),
            ("9223372036854775794", 9.223_372_036_854_776e18),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for text in ["NaN", "nan"] {
            assert!(value(text).is_some_and(f64::is_nan), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in ["1e400", "-1e400", "0x1p3", "1_000", "１", "", "1,5", "+NaN", "-nan", "0b1", ".", "e5", "1 "] {
            assert_eq!(value(text), None, "{text:?}");
        }
    }

    #[test]
    fn timestamps() {
        assert_eq!(seconds("1767225600.5"), Some(1_767_225_600_500));
        assert_eq!(seconds("1.726839814829977e+09"), Some(1_726_839_814_830));
        for text in ["NaN", "+Inf", "1e300", "", "x"] {
            assert_eq!(seconds(text), None, "{text:?}");
        }
        assert_eq!(millis("1234567890"), Some(1_234_567_890));
        assert_eq!(millis("2.72"), None);
    }
}
