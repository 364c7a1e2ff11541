//! What a rule writes to the log: cut for each call, thinned for each minute, and harmless to a terminal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use watchfire_core::Time;
use watchfire_core::text::printable;

use crate::Limits;

/// The end of a line that was cut.
const CUT: &str = "… [cut at limits.log_bytes]";
/// The span over which lines are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The log of one rule, kept over its instances.
#[derive(Clone, Debug)]
pub struct RuleLog(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    name: String,
    bytes_max: usize,
    lines_max: usize,
    /// When the minute began in which lines are counted.
    since: Option<Time>,
    lines: usize,
    bytes: usize,
    cut_total: u64,
    dropped_total: u64,
}

impl RuleLog {
    /// An empty log.
    pub fn new(name: &str, limits: &Limits) -> Self {
        RuleLog(Arc::new(Mutex::new(State {
            name: name.to_owned(),
            bytes_max: limits.log_bytes,
            lines_max: limits.log_lines_per_minute,
            since: None,
            lines: 0,
            bytes: 0,
            cut_total: 0,
            dropped_total: 0,
        })))
    }

    /// Begins a call; `now` where it has a time.
    pub fn begin(&self, now: Option<Time>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = 0;
        let Some(now) = now else { return };
        if state.since.is_none_or(|since| now.since(since) >= MINUTE || now < since) {
            (state.since, state.lines) = (Some(now), 0);
        }
    }

    /// Writes a line.
    pub fn line(&self, line: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = state.admit(line) {
            tracing::info!(target: "watchfire::rule", rule = state.name, "{line}");
        }
    }

    /// How often lines were cut, and how many were dropped.
    pub fn touched(&self) -> [(&'static str, u64); 2] {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        [("log_bytes", state.cut_total), ("log_lines_per_minute", state.dropped_total)]
    }
}

impl State {
    /// The line as it is written; none where it is dropped. The first one that is dropped says so.
    fn admit(&mut self, line: &str) -> Option<String> {
        self.lines += 1;
        if self.lines > self.lines_max {
            self.dropped_total += 1;
            let first = self.lines == self.lines_max + 1;
            let (most, minute) = (self.lines_max, MINUTE.as_secs());
            return first.then(|| {
                format!("more than {most} lines in {minute} s: the rest is dropped, see limits.log_lines_per_minute")
            });
        }
        let left = self.bytes_max.saturating_sub(self.bytes);
        let kept = Limits::cut(line, left);
        self.bytes += line.len();
        let mut shown = printable(kept).into_owned();
        if kept.len() < line.len() {
            self.cut_total += 1;
            shown.push_str(CUT);
        }
        Some(shown)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn log(bytes: usize, lines: usize) -> RuleLog {
        RuleLog::new("x", &Limits { log_bytes: bytes, log_lines_per_minute: lines, ..Limits::default() })
    }

    fn admit(log: &RuleLog, line: &str) -> Option<String> {
        log.0.lock().unwrap().admit(line)
    }

    #[test]
    fn a_call_is_cut_and_says_so() {
        let log = log(8, 100);
        log.begin(Some(Time::from_millis(0)));
        assert_eq!(admit(&log, "1234").as_deref(), Some("1234"));
        assert_eq!(admit(&log, "\u{1b}éé789").as_deref(), Some("\\u{1b}é… [cut at limits.log_bytes]"));
        assert_eq!(admit(&log, "x").as_deref(), Some("… [cut at limits.log_bytes]"));
        log.begin(Some(Time::from_millis(0)));
        assert_eq!(admit(&log, "12345678").as_deref(), Some("12345678"), "the next call has its own");
        assert_eq!(log.touched(), [("log_bytes", 2), ("log_lines_per_minute", 0)]);
    }

    #[test]
    fn a_minute_is_thinned_and_says_so_once() {
        let log = log(4096, 2);
        let at = |log: &RuleLog, second: i64| {
            log.begin(Some(Time::from_millis(second * 1000)));
            admit(log, "line")
        };
        let said = [0, 1, 2, 3, 59, 60].map(|second| at(&log, second));
        let said = said.map(|line| line.map_or("-".to_owned(), |line| line[..4].to_owned()));
        assert_eq!(said, ["line", "line", "more", "-", "-", "line"]);
        assert_eq!(log.touched()[1], ("log_lines_per_minute", 3));
    }
}
