//! The picture of a scenario that failed: for each alert and target what was expected above what was seen.

use std::fmt::Write as _;
use std::time::Duration;

use watchfire_core::{Labels, Severity, State, Time};

use crate::compare::Difference;
use crate::scenario::{START, Scenario, Seen};
use crate::timeline::since_start;

/// The most characters of a time line; a longer scenario has several intervals in each.
const COLUMNS_MAX: u128 = 60;
/// Characters between two times of the ruler.
const TICK: usize = 10;
/// The most series whose values are shown.
const SERIES_MAX: usize = 6;
/// The most targets that are shown.
const TARGETS_MAX: usize = 8;
/// Characters before a time line.
const MARGIN: usize = 11;

/// One change on a line: when, to what.
type Change = (Time, State, Severity);

/// One alert of one target.
struct Line {
    alert: String,
    labels: Labels,
    expected: Vec<Change>,
    seen: Vec<Change>,
}

/// A ruler of times, the values of the series, and two lines for each alert and target: `·` calm, `p` pending, `I`,
/// `W`, `C` and `E` firing by severity, `r` resolved, `?` unknown.
pub fn picture(scenario: &Scenario, seen: &[Seen], difference: &Difference) -> String {
    let axis = Axis::of(scenario);
    let mut text = format!("{:MARGIN$}{}\n", "", axis.cells(since_start));
    for (series, values) in scenario.series.iter().take(SERIES_MAX) {
        let value = |time: Time| {
            let at = time.since(START).as_millis() / scenario.interval.as_millis().max(1);
            shown(usize::try_from(at).ok().and_then(|at| values.get(at).copied().flatten()))
        };
        let _ =
            writeln!(text, "{}{}\n{:MARGIN$}{}", series.metric, braces(&series.labels), "  values", axis.cells(value));
    }
    left_out(&mut text, scenario.series.len(), SERIES_MAX, "series");
    let lines = lines(scenario, seen, difference);
    for line in lines.iter().take(TARGETS_MAX) {
        let _ = writeln!(text, "{}{}", line.alert, braces(&line.labels));
        let _ = writeln!(text, "{:MARGIN$}{}", "  expected", axis.line(&line.expected));
        let _ = writeln!(text, "{:MARGIN$}{}", "  seen", axis.line(&line.seen));
    }
    left_out(&mut text, lines.len(), TARGETS_MAX, "targets");
    text
}

fn left_out(text: &mut String, count: usize, most: usize, what: &str) {
    if count > most {
        let _ = writeln!(text, "and {} more {what}", count - most);
    }
}

fn braces(labels: &Labels) -> String {
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(", ")) }
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => "_".to_owned(),
        Some(value) if value.to_bits() == watchfire_core::sample::STALE_MARKER => "stale".to_owned(),
        Some(value) => {
            let text = format!("{value:.3}");
            let short = text.trim_end_matches('0').trim_end_matches('.');
            if short.len() < TICK { short.to_owned() } else { format!("{value:.2e}") }
        }
    }
}

/// The columns of a time line.
struct Axis {
    columns: u32,
    span: Duration,
}

impl Axis {
    fn of(scenario: &Scenario) -> Axis {
        let span = scenario.end.since(START);
        let steps = span.as_millis() / scenario.interval.as_millis().max(1) + 1;
        let per_column = steps.div_ceil(COLUMNS_MAX).max(1);
        let columns = u32::try_from(steps.div_ceil(per_column)).unwrap_or(1);
        let per_column = u32::try_from(per_column).unwrap_or(u32::MAX);
        Axis { columns, span: scenario.interval.saturating_mul(per_column) }
    }

    fn time(&self, column: u32) -> Time {
        START + self.span.saturating_mul(column)
    }

    /// What stands under each tick of the ruler.
    fn cells(&self, text: impl Fn(Time) -> String) -> String {
        let ticks = (0..self.columns).step_by(TICK);
        let cells: String = ticks.map(|column| format!("{:<TICK$}", text(self.time(column)))).collect();
        cells.trim_end().to_owned()
    }

    fn line(&self, changes: &[Change]) -> String {
        (0..self.columns).map(|column| letter(changes, self.time(column), self.time(column + 1))).collect()
    }
}

/// The state at the end of a column.
fn letter(changes: &[Change], from: Time, to: Time) -> char {
    let Some((time, state, severity)) = changes.iter().rev().find(|(time, ..)| *time < to) else { return '·' };
    match state {
        State::Pending => 'p',
        State::Unknown => '?',
        State::Resolved if *time >= from => 'r',
        State::Inactive | State::Resolved => '·',
        State::Firing => match severity {
            Severity::Info => 'I',
            Severity::Warning => 'W',
            Severity::Critical => 'C',
            Severity::Emergency => 'E',
        },
    }
}

fn lines(scenario: &Scenario, seen: &[Seen], difference: &Difference) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (seen, partner) in seen.iter().zip(&difference.partner) {
        let view = &seen.transition.alert;
        let change = (seen.transition.time, view.state, view.severity);
        let at = find(&mut lines, &view.alert, &view.labels);
        lines[at].seen.push(change);
        if let Some(expected) = partner.and_then(|at| scenario.expect.get(at)) {
            let (time, state, severity) = change;
            let change =
                (expected.at.unwrap_or(time), expected.state.unwrap_or(state), expected.severity.unwrap_or(severity));
            lines[at].expected.push(change);
        }
    }
    for expected in difference.missing.iter().filter_map(|at| scenario.expect.get(*at)) {
        let Some(time) = expected.at else { continue };
        let at = find(&mut lines, &expected.alert, &expected.labels);
        let severity = expected.severity.unwrap_or(Severity::Warning);
        lines[at].expected.push((time, expected.state.unwrap_or(State::Firing), severity));
    }
    for line in &mut lines {
        line.expected.sort_by_key(|(time, ..)| *time);
    }
    lines
}

/// The line of an alert whose target has these labels; a new one where there is none.
fn find(lines: &mut Vec<Line>, alert: &str, labels: &Labels) -> usize {
    let has = |line: &Line| labels.iter().all(|(name, value)| line.labels.get(name) == Some(value));
    let known = lines.iter().position(|line| line.alert == alert && has(line));
    known.unwrap_or_else(|| {
        let line = Line { alert: alert.to_owned(), labels: labels.clone(), expected: Vec::new(), seen: Vec::new() };
        lines.push(line);
        lines.len() - 1
    })
}
