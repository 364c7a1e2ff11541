//! From an HTTP answer to a verdict.

use std::time::Duration;

use jiff::Timestamp;

use crate::secret::redact_url;
use crate::verdict::Verdict;

/// The most characters of an answer's body that an error quotes.
const QUOTE_CHARS_MAX: usize = 200;

/// Statuses below 500 that mean "later": request timeout, too early, too many requests.
const RETRY_STATUSES: [u16; 3] = [408, 425, 429];
/// "Not implemented" will not change by waiting.
const NEVER_IMPLEMENTED: u16 = 501;

/// The parts of an HTTP answer that decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<&'a str>,
    /// The header `Location`.
    pub location: Option<&'a str>,
    /// As much of the body as was read.
    pub body: &'a [u8],
}

/// Judges an answer: 2xx is delivered; 408, 425, 429, 5xx except 501, and the statuses in `also_retry` are tried
/// again; all else is refused, redirects among them (followed, a POST would become a GET without its body).
///
/// A wait is taken from `Retry-After` (seconds or an HTTP date, RFC 9110 §10.2.3) or from `retry_after`
/// (seconds) in a JSON body. `now_ms` is the time of the answer.
pub fn classify(answer: &Answer<'_>, also_retry: &[u16], now_ms: i64) -> Verdict {
    let status = answer.status;
    if (200..300).contains(&status) {
        return Verdict::Delivered;
    }
    if may_be_retried(status) || also_retry.contains(&status) {
        return Verdict::Retry { after: wait(answer, now_ms), why: describe(answer) };
    }
    if (300..400).contains(&status) {
        return Verdict::refused(redirected(answer));
    }
    Verdict::refused(describe(answer))
}

fn may_be_retried(status: u16) -> bool {
    RETRY_STATUSES.contains(&status) || ((500..600).contains(&status) && status != NEVER_IMPLEMENTED)
}

fn describe(answer: &Answer<'_>) -> String {
    let status = answer.status;
    match quote(answer.body) {
        Some(quote) => format!("answered {status}: {quote}"),
        None => format!("answered {status}"),
    }
}

fn redirected(answer: &Answer<'_>) -> String {
    let status = answer.status;
    let target = match answer.location {
        None => "an unnamed target".into(),
        Some(path) if path.starts_with('/') && !path.starts_with("//") => "another path of the same host".into(),
        Some(url) => redact_url(url),
    };
    format!("answered {status}, a redirect to {target}, which is not followed; configure the final URL")
}

/// The start of a body on one line, without control characters.
pub(crate) fn quote(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let mut words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let first = words.next()?;
    let line = words.fold(first.to_owned(), |line, word| line + " " + word);
    let cut: String = line.chars().take(QUOTE_CHARS_MAX).collect();
    Some(if cut.len() < line.len() { cut + "…" } else { cut })
}

fn wait(answer: &Answer<'_>, now_ms: i64) -> Option<Duration> {
    let header = answer.retry_after.map(str::trim);
    header.and_then(|text| seconds(text).or_else(|| until(text, now_ms))).or_else(|| json_seconds(answer.body))
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn until(date: &str, now_ms: i64) -> Option<Duration> {
    let stamp: Timestamp = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    let wait_ms = stamp.as_millisecond().saturating_sub(now_ms);
    Some(Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)))
}

fn json_seconds(body: &[u8]) -> Option<Duration> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let value = body.get("retry_after")?;
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    Duration::try_from_secs_f64(number).ok()
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_792_567_679_000;

    fn status(status: u16) -> Verdict {
        classify(&Answer { status, ..Answer::default() }, &[], NOW_MS)
    }

    /// Every status there is, against the sentence of the documentation.
    #[test]
    fn the_whole_table() {
        for code in 100..600 {
            let verdict = status(code);
            match code {
                200..300 => assert_eq!(verdict, Verdict::Delivered, "{code}"),
                408 | 425 | 429 | 500 | 502..600 => {
                    assert_eq!(verdict, Verdict::retry(format!("answered {code}")), "{code}");
                }
                _ => assert!(matches!(verdict, Verdict::Refused { .. }), "{code}: {verdict:?}"),
            }
        }
        assert!(matches!(status(999), Verdict::Refused { .. }));
    }

    #[test]
    fn an_override_list_turns_refusals_into_retries() {
        let answer = Answer { status: 403, body: b" slow\n down\x07 ", ..Answer::default() };
        assert_eq!(classify(&answer, &[403], NOW_MS), Verdict::retry("answered 403: slow down"));
        assert_eq!(classify(&answer, &[404], NOW_MS), Verdict::refused("answered 403: slow down"));
    }

    #[test]
    fn the_wait_is_taken_from_header_date_or_body() {
        let cases: [(Option<&str>, &str, Option<f64>); 9] = [
            (Some("7"), "", Some(7.0)),
            (Some(" 7 "), r#"{"retry_after": 9}"#, Some(7.0)),
            (Some("Wed, 21 Oct 2026 07:28:00 GMT"), "", Some(1.0)),
            (Some("Wed, 21 Oct 2020 07:28:00 GMT"), "", Some(0.0)),
            (None, r#"{"retry_after": 1.5}"#, Some(1.5)),
            (None, r#"{"retry_after": "2"}"#, Some(2.0)),
            (Some("-3"), r#"{"retry_after": -1}"#, None),
            (Some("soon"), "[]", None),
            (None, r#"{"retry_after": 1e300}"#, None),
        ];
        for (retry_after, body, expected) in cases {
            let answer = Answer { status: 429, retry_after, body: body.as_bytes(), ..Answer::default() };
            let Verdict::Retry { after, .. } = classify(&answer, &[], NOW_MS) else { panic!("429 is retried") };
            assert_eq!(after, expected.map(Duration::from_secs_f64), "{retry_after:?} {body}");
        }
    }

    #[test]
    fn a_redirect_names_its_target_without_secrets() {
        let why = |location| {
            let answer = Answer { status: 302, location, ..Answer::default() };
            classify(&answer, &[], NOW_MS).why().unwrap_or_default().to_owned()
        };
        let rest = "which is not followed; configure the final URL";
        let target = why(Some("https://u:p@login.example/a?token=t"));
        assert_eq!(target, format!("answered 302, a redirect to https://login.example, {rest}"));
        assert_eq!(why(Some("/login")), format!("answered 302, a redirect to another path of the same host, {rest}"));
        assert_eq!(why(None), format!("answered 302, a redirect to an unnamed target, {rest}"));
    }

    #[test]
    fn a_long_answer_is_quoted_in_part() {
        let answer = Answer { status: 400, body: "é".repeat(5000).as_bytes().to_vec().leak(), ..Answer::default() };
        let why = classify(&answer, &[], NOW_MS).why().unwrap_or_default().to_owned();
        assert_eq!(why.chars().count(), "answered 400: ".len() + QUOTE_CHARS_MAX + 1);
    }
}
