//! The life of one alert: one small function from (what was, now, what the rule says) to what is.

use std::time::Duration;

use crate::effect::State;
use crate::rule::RuleSpec;
use crate::severity::{PerSeverity, Severity};
use crate::time::Time;

/// What a rule says of one row at one tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The severity whose condition is met now.
    pub raise: Option<Severity>,
    /// The severity that keeps a firing alert alive; never below `raise`.
    pub hold: Option<Severity>,
}

/// What is remembered of one alert between ticks. The default is an inactive alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Since when `raise` has been at or above each severity.
    pub raised_since: PerSeverity<Option<Time>>,
    /// Since when `hold` has been below each severity.
    pub lowered_since: PerSeverity<Option<Time>>,
    /// The severity that fires.
    pub firing: Option<Severity>,
    /// Since when the row's required data has been missing.
    pub missing_since: Option<Time>,
}

/// How long things must last, from the rule.
#[derive(Clone, Copy, Debug)]
pub struct Timing<'a> {
    /// How long a severity must be raised before it fires; `None` = it never fires.
    pub hold_for: &'a PerSeverity<Option<Duration>>,
    /// How long `hold` must be below a severity before that severity ends.
    pub keep_firing_for: Duration,
}

impl<'a> From<&'a RuleSpec> for Timing<'a> {
    fn from(spec: &'a RuleSpec) -> Self {
        Timing { hold_for: &spec.hold_for, keep_firing_for: spec.keep_firing_for }
    }
}

/// The life after a tick at `now` at which the rule said `verdict`.
///
/// A severity begins to fire once it was raised for its `for`; it ends once it was not held for
/// `keep_firing_for`. The alert fires with the worst severity that has begun and not ended.
pub fn next(mut life: Life, now: Time, verdict: Verdict, timing: Timing<'_>) -> Life {
    life = resume(life, now);
    for severity in Severity::ALL {
        note(life.raised_since.get_mut(severity), verdict.raise >= Some(severity), now);
        note(life.lowered_since.get_mut(severity), verdict.hold < Some(severity), now);
    }
    life.firing = worst(|severity| begins(&life, severity, now, timing) || stays(&life, severity, now, timing));
    life
}

/// The life after a tick at which the row's data was missing: everything stands still.
pub fn next_missing(mut life: Life, now: Time) -> Life {
    life.missing_since.get_or_insert(now);
    life
}

/// The life after a span in which nobody looked, such as while Watchfire was down: it counts neither for nor against.
pub fn pass_over(mut life: Life, span: Duration, now: Time) -> Life {
    for clock in clocks(&mut life) {
        *clock = (*clock + span).min(now);
    }
    life
}

fn clocks(life: &mut Life) -> impl Iterator<Item = &mut Time> {
    let since = life.raised_since.0.iter_mut().chain(life.lowered_since.0.iter_mut());
    since.chain([&mut life.missing_since]).flatten()
}

/// Starts the clocks again after missing data: time without data counts neither for nor against.
fn resume(mut life: Life, now: Time) -> Life {
    let Some(since) = life.missing_since.take() else { return life };
    pass_over(life, now.since(since), now)
}

fn note(since: &mut Option<Time>, holds: bool, now: Time) {
    *since = if holds { since.or(Some(now)) } else { None };
}

fn worst(fires: impl Fn(Severity) -> bool) -> Option<Severity> {
    Severity::ALL.into_iter().rev().find(|&severity| fires(severity))
}

fn begins(life: &Life, severity: Severity, now: Time, timing: Timing<'_>) -> bool {
    due(life, severity, timing).is_some_and(|due| due <= now)
}

fn stays(life: &Life, severity: Severity, now: Time, timing: Timing<'_>) -> bool {
    let fired = life.firing >= Some(severity) && timing.hold_for.get(severity).is_some();
    let lowered = life.lowered_since.get(severity);
    fired && lowered.is_none_or(|since| now.since(since) < timing.keep_firing_for)
}

/// When a raised severity will fire if nothing changes.
fn due(life: &Life, severity: Severity, timing: Timing<'_>) -> Option<Time> {
    let since = (*life.raised_since.get(severity))?;
    let after = (*timing.hold_for.get(severity))?;
    Some(since + after)
}

/// What a life is called, and how bad: the severity that fires, or while pending the one that will fire first.
pub fn state(life: &Life, now: Time, timing: Timing<'_>, missing_after: Duration) -> (State, Option<Severity>) {
    if let Some(severity) = life.firing {
        let unknown = life.missing_since.is_some_and(|since| now.since(since) >= missing_after);
        return (if unknown { State::Unknown } else { State::Firing }, Some(severity));
    }
    let due = |severity| due(life, severity, timing).map(|due| (due, severity));
    let first = Severity::ALL.into_iter().rev().filter_map(due).min_by_key(|(due, _)| *due);
    first.map_or((State::Inactive, None), |(_, severity)| (State::Pending, Some(severity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Severity::{Critical, Info, Warning};

    const KEEP: Duration = Duration::from_secs(120);

    fn spans() -> PerSeverity<Option<Duration>> {
        let mut spans = PerSeverity::all(None);
        *spans.get_mut(Warning) = Some(Duration::from_secs(300));
        *spans.get_mut(Critical) = Some(Duration::from_secs(120));
        spans
    }

    fn at(seconds: i64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    /// Runs verdicts (from second, raise, hold) at a tick each 15 s and lists the changes of state.
    fn run(verdicts: &[(i64, Option<Severity>, Option<Severity>)], end: i64) -> Vec<(i64, State, Option<Severity>)> {
        let spans = spans();
        let timing = Timing { hold_for: &spans, keep_firing_for: KEEP };
        let (mut life, mut was, mut changes) = (Life::default(), (State::Inactive, None), Vec::new());
        for second in (0..=end).step_by(15) {
            let &(_, raise, hold) = verdicts.iter().rev().find(|(from, ..)| *from <= second).unwrap();
            life = next(life, at(second), Verdict { raise, hold }, timing);
            let is = state(&life, at(second), timing, Duration::from_secs(900));
            if is != was {
                changes.push((second, is.0, is.1));
            }
            was = is;
        }
        changes
    }

    #[test]
    fn escalates_and_resolves_on_its_own_clocks() {
        let heat = [
            (0, None, None),
            (120, Some(Warning), Some(Warning)),
            (480, Some(Critical), Some(Critical)),
            (660, None, None),
        ];
        assert_eq!(
            run(&heat, 1200),
            [
                (120, State::Pending, Some(Warning)),
                (420, State::Firing, Some(Warning)),
                (600, State::Firing, Some(Critical)),
                (780, State::Inactive, None),
            ]
        );
    }

    #[test]
    fn de_escalates_to_what_is_still_held() {
        let heat = [(0, Some(Critical), Some(Critical)), (300, None, Some(Warning)), (900, None, None)];
        assert_eq!(
            run(&heat, 1200),
            [
                (0, State::Pending, Some(Critical)),
                (120, State::Firing, Some(Critical)),
                (420, State::Firing, Some(Warning)),
                (1020, State::Inactive, None),
            ]
        );
    }

    #[test]
    fn a_hold_without_a_raise_starts_nothing() {
        assert_eq!(run(&[(0, None, Some(Critical))], 900), []);
    }

    #[test]
    fn a_severity_without_a_for_never_fires() {
        assert_eq!(run(&[(0, Some(Info), Some(Info))], 900), []);
    }

    #[test]
    fn missing_data_stops_the_clocks() {
        let spans = spans();
        let timing = Timing { hold_for: &spans, keep_firing_for: KEEP };
        let raised = Verdict { raise: Some(Warning), hold: Some(Warning) };
        let life = next(Life::default(), at(0), raised, timing);
        let life = next_missing(life, at(60));
        let life = next_missing(life, at(590));
        let life = next(life, at(600), raised, timing);
        assert_eq!(life.firing, None, "60 s of breach and 540 s of silence are no 300 s of breach");
        assert_eq!(next(life, at(839), raised, timing).firing, None);
        assert_eq!(next(life, at(840), raised, timing).firing, Some(Warning));
    }

    /// Every combination of (fires before, raise, hold, raised long enough, lowered long enough), against the
    /// definition written down once more as plain sentences.
    #[test]
    fn the_whole_table() {
        let levels = [None, Some(Warning), Some(Critical)];
        let mut rows = 0;
        for before in levels {
            for raise in levels {
                for hold in levels.into_iter().filter(|&hold| hold >= raise) {
                    for (raised_s, lowered_s) in [(0, 0), (0, 200), (400, 0), (400, 200), (200, 0), (200, 200)] {
                        check_row(before, Verdict { raise, hold }, raised_s, lowered_s);
                        rows += 1;
                    }
                }
            }
        }
        assert_eq!(rows, 3 * 6 * 6, "the table is complete");
    }

    fn check_row(before: Option<Severity>, verdict: Verdict, raised_s: i64, lowered_s: i64) {
        let (spans, now) = (spans(), at(10_000));
        let timing = Timing { hold_for: &spans, keep_firing_for: KEEP };
        let mut life = Life { firing: before, ..Life::default() };
        life.raised_since = PerSeverity::all(Some(at(10_000 - raised_s)));
        life.lowered_since = PerSeverity::all(Some(at(10_000 - lowered_s)));
        let begun = |severity, needs_s| verdict.raise >= Some(severity) && raised_s >= needs_s;
        let kept = |severity| before >= Some(severity) && (verdict.hold >= Some(severity) || lowered_s < 120);
        let expected = if begun(Critical, 120) || kept(Critical) {
            Some(Critical)
        } else if begun(Warning, 300) || kept(Warning) {
            Some(Warning)
        } else {
            None
        };
        let got = next(life, now, verdict, timing).firing;
        assert_eq!(got, expected, "before {before:?} {verdict:?} raised {raised_s} s lowered {lowered_s} s");
    }
}
