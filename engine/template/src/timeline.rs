//! The notation of values on a time line, and the picture of one.

use std::fmt::Write as _;

use watchfire_core::sample::STALE_MARKER;
use watchfire_core::{Labels, State, Time};
use watchfire_door::format_duration;

use crate::scenario::{Expected, START, Seen};

/// The most values of all series of a scenario.
pub const VALUES_MAX: usize = 1_000_000;

/// How deep groups of values may stand in each other.
const GROUPS_MAX: usize = 8;

/// Reads values: `v`, `vxN`, `a..bxN` (N values from a to b), `a+bxN` and `a-bxN` (a, then N steps, as in Prometheus'
/// rule tests), `_` and `_xN` for gaps, `stale`, `reset` (a counter that begins anew at 0), `NaN`, `+Inf`, and
/// `(...)xN` for a group N times. There may be `room` of them.
pub fn values(text: &str, room: usize) -> Result<Vec<Option<f64>>, String> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let mut open: Vec<Vec<Option<f64>>> = vec![Vec::new()];
    let mut words = spaced.split_whitespace();
    while let Some(word) = words.next() {
        let more = match word {
            "(" if open.len() > GROUPS_MAX => {
                return Err(format!("groups of values stand more than {GROUPS_MAX} deep"));
            }
            "(" => {
                open.push(Vec::new());
                continue;
            }
            ")" => close(&mut open, words.next(), room)?,
            word => expand(word).ok_or_else(|| {
                format!("{word:?} is no value; expected 70, 70x8, 70..90x5, 0+10x6, (70 90)x5, _x3, stale or reset")
            })?,
        };
        let Some(last) = open.last_mut() else { break };
        last.extend(more);
        if open.iter().map(Vec::len).sum::<usize>() > room {
            return Err(too_many());
        }
    }
    match open.len() {
        1 => Ok(open.pop().unwrap_or_default()),
        _ => Err("a `(` of the values is not closed; expected (70 90)x5".to_owned()),
    }
}

/// Ends the innermost group: its values as often as `times`, written `xN`, says.
fn close(open: &mut Vec<Vec<Option<f64>>>, times: Option<&str>, room: usize) -> Result<Vec<Option<f64>>, String> {
    let group = if open.len() > 1 { open.pop() } else { None };
    let group = group.ok_or("a `)` of the values closes nothing; expected (70 90)x5")?;
    let times = times.and_then(|word| word.strip_prefix('x')).and_then(|times| times.parse::<usize>().ok());
    let times = times.ok_or("a group of values is not followed by how often; expected (70 90)x5")?;
    match group.len().checked_mul(times).filter(|count| *count <= room) {
        Some(_) => Ok(group.repeat(times)),
        None => Err(too_many()),
    }
}

fn too_many() -> String {
    format!("the scenario has more than {VALUES_MAX} values")
}

fn expand(word: &str) -> Option<Vec<Option<f64>>> {
    let (body, times) = match word.rsplit_once('x') {
        Some((body, times)) => (body, Some(times.parse::<usize>().ok().filter(|times| *times <= VALUES_MAX)?)),
        None => (word, None),
    };
    let once = times.unwrap_or(1);
    if body == "_" {
        return Some(vec![None; once]);
    }
    if body == "reset" {
        return Some(vec![Some(0.0); once]);
    }
    if body == "stale" {
        return Some(vec![Some(f64::from_bits(STALE_MARKER)); once]);
    }
    if let Ok(value) = body.parse::<f64>() {
        return Some(vec![Some(value); once]);
    }
    if let Some((from, to)) = body.split_once("..") {
        return Some(ramp(from.parse().ok()?, to.parse().ok()?, times?));
    }
    let at = body.char_indices().skip(1).find(|(at, c)| "+-".contains(*c) && !body[..*at].ends_with(['e', 'E']))?.0;
    let (from, step): (f64, f64) = (body[..at].parse().ok()?, body[at..].parse().ok()?);
    Some((0..=times?).map(|n| Some(from + step * n as f64)).collect())
}

fn ramp(from: f64, to: f64, count: usize) -> Vec<Option<f64>> {
    let steps = count.saturating_sub(1).max(1) as f64;
    (0..count).map(|n| Some(from + (to - from) * n as f64 / steps)).collect()
}

/// What is missing and what is too much, one line each: where it was expected, and of which rule it is.
pub fn list(seen: &[Seen], missing: &[&Expected], left: &[&Seen]) -> String {
    let mut text = String::new();
    for expected in missing {
        let place = expected.place.as_ref().map(|place| format!("  expected at {place}")).unwrap_or_default();
        let _ = writeln!(text, "- {}{place}", wanted(expected));
        let near = seen.iter().find(|seen| {
            *seen.transition.alert.alert == *expected.alert && expected.at.is_none_or(|at| at == seen.transition.time)
        });
        if let Some(near) = near {
            let _ = writeln!(text, "  nearest: {}", expectation(near, &Labels::default()));
        }
    }
    for seen in left {
        let _ = writeln!(text, "+ {}  not expected, of rule {}", got(seen), seen.transition.alert.rule);
    }
    text
}

pub(crate) fn since_start(time: Time) -> String {
    format_duration(time.since(START))
}

fn wanted(expected: &Expected) -> String {
    let at = expected.at.map_or_else(|| "  any".to_owned(), since_start);
    let state = expected.state.map_or("", State::as_str);
    let severity = expected.severity.map_or("", |severity| severity.as_str());
    format!("{at:>6} {} {state} {severity}", expected.alert).trim_end().to_owned()
}

fn got(seen: &Seen) -> String {
    let view = &seen.transition.alert;
    format!("{:>6} {} {} {}", since_start(seen.transition.time), view.alert, view.state, view.severity)
}

/// A transition as one line of `expect:`, with the labels that tell its target from others.
pub fn expectation(seen: &Seen, labels: &Labels) -> String {
    let view = &seen.transition.alert;
    let cause = view.cause.map(|cause| format!(", cause: {cause}")).unwrap_or_default();
    let value = if view.value.is_finite() { format!(", value: {}", view.value) } else { String::new() };
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}: {}", quoted(value))).collect();
    let labels = if pairs.is_empty() { String::new() } else { format!(", labels: {{{}}}", pairs.join(", ")) };
    format!(
        "{{at: {}, alert: {}, state: {}, severity: {}{cause}{value}{labels}}}",
        since_start(seen.transition.time),
        view.alert,
        view.state,
        view.severity
    )
}

/// In YAML's double quotes, which read JSON's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Result<Vec<f64>, String> {
        values(text, VALUES_MAX).map(|values| values.into_iter().map(|value| value.unwrap_or(-1.0)).collect())
    }

    #[test]
    fn reads_the_notation() {
        let cases: [(&str, &[f64]); 11] = [
            ("(70 90)x2", &[70.0, 90.0, 70.0, 90.0]),
            ("1 ((2)x2 3)x2", &[1.0, 2.0, 2.0, 3.0, 2.0, 2.0, 3.0]),
            ("8+1x1 reset 1", &[8.0, 9.0, 0.0, 1.0]),
            ("70", &[70.0]),
            ("70x3", &[70.0, 70.0, 70.0]),
            ("1..3x3", &[1.0, 2.0, 3.0]),
            ("0+10x2", &[0.0, 10.0, 20.0]),
            ("5-1x2", &[5.0, 4.0, 3.0]),
            ("_x2 1", &[-1.0, -1.0, 1.0]),
            ("-1e-3", &[-0.001]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(values("stale", VALUES_MAX).map(|v| v[0].map(f64::to_bits)), Ok(Some(STALE_MARKER)));
    }

    #[test]
    fn refuses_what_is_no_value() {
        for text in [
            "hot",
            "70x",
            "1..3",
            "x3",
            "1..3x99999999",
            "0+x3",
            "(1",
            "1)x2",
            "(1)",
            "(1)x9999999",
            "((1x1000)x1000)x2",
            "(((((((((1)x1)x1)x1)x1)x1)x1)x1)x1)x1",
        ] {
            assert!(values(text, VALUES_MAX).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_reason_to_panic(text in "[0-9x.+_ aestl()\\-]{0,40}") {
            let _ = values(&text, VALUES_MAX);
        }
    }
}
