//! `module: threshold`: compares one metric with a limit per severity.
//!
//! A severity is raised strictly beyond its limit; it holds until the value is strictly on the calm side of its
//! clear limit (`clear_below` for `above`, `clear_above` for `below`), or of its own limit where it has none.

mod settings;

use watchfire_sdk::prelude::*;

use settings::{Ladder, Settings};

/// Rows that are looked at together: nearly all are calm, and a block of calm rows costs one look.
const BLOCK: usize = 16;

/// The rule.
#[derive(Debug)]
pub struct Threshold {
    metric: String,
    input: Input,
    ladder: Ladder,
}

impl Rule for Threshold {
    type Settings = Settings;
    const NAME: &'static str = "threshold";
    const VERSION: &'static str = "1.0.0";
    const SCHEMA: &'static str = include_str!("schema.json");

    fn new(settings: Settings) -> Result<Self, Vec<SettingError>> {
        let (input, ladder) = settings.check()?;
        Ok(Threshold { metric: settings.metric, input, ladder })
    }

    fn shape(rule: Option<&Self>) -> Shape {
        match rule {
            Some(rule) => Shape::of(rule.input.scope).input(rule.input.clone()),
            None => Shape::of(Scope::Gpu),
        }
    }

    fn evaluate(&mut self, rows: &Rows<'_>, report: &mut Report) -> Result<(), String> {
        let (values, quality) = (rows.column(0), rows.quality(0));
        for (block, (values, quality)) in values.chunks(BLOCK).zip(quality.chunks(BLOCK)).enumerate() {
            if self.ladder.is_calm(values) {
                continue;
            }
            for (at, value) in values.iter().enumerate() {
                if quality[at] == 0 && !self.ladder.is_calm(std::slice::from_ref(value)) {
                    self.judge(block * BLOCK + at, *value, report);
                }
            }
        }
        Ok(())
    }

    fn explain(&self, rows: &Rows<'_>, row: usize) -> Option<String> {
        let value = rows.get(0, row)?;
        Some(format!("{} {value} {}", self.metric, self.ladder.words(value)))
    }
}

impl Threshold {
    fn judge(&self, row: usize, value: f64, report: &mut Report) {
        let (raise, hold) = self.ladder.judge(value);
        if hold as u8 > Level::None as u8 {
            report.hit(row, raise, hold, value);
        }
    }
}

watchfire_sdk::export!(Threshold);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use watchfire_sdk::testing::{Bench, run};

    use super::*;

    const HOT: &str = r#"{"metric": "gpu_temperature_celsius", "above": {"warning": 85, "critical": 90},
        "clear_below": {"warning": 80, "critical": 85}}"#;

    fn judged(settings: &str, value: f64) -> (Level, Level) {
        let outcome = run::<Threshold>(settings, &[&[value]]).unwrap();
        outcome.hits.first().map_or((Level::None, Level::None), |hit| (hit.raise, hit.hold))
    }

    #[test]
    fn raises_beyond_and_holds_until_clear() {
        use Level::{Critical, None, Warning};
        let cases = [
            (79.9, None, None),
            (80.0, None, Warning),
            (84.0, None, Warning),
            (85.0, None, Critical),
            (85.1, Warning, Critical),
            (90.0, Warning, Critical),
            (90.1, Critical, Critical),
        ];
        for (value, raise, hold) in cases {
            assert_eq!(judged(HOT, value), (raise, hold), "{value}");
        }
    }

    #[test]
    fn a_row_keeps_its_number_in_every_block() {
        let mut values = vec![50.0; 3 * BLOCK - 7];
        let hot = [0, BLOCK + 5, 2 * BLOCK + 1, 3 * BLOCK - 8];
        for row in hot {
            values[row] = 86.0;
        }
        let outcome = run::<Threshold>(HOT, &[&values]).unwrap();
        let rows: Vec<usize> = outcome.hits.iter().map(|hit| hit.row as usize).collect();
        assert_eq!(rows, hot);
    }

    #[test]
    fn below_is_the_mirror_image() {
        use Level::{None, Warning};
        let low = r#"{"metric": "gpu_memory_used_ratio", "below": {"warning": 0.3}, "clear_above": {"warning": 0.4}}"#;
        for (value, raise, hold) in
            [(0.29, Warning, Warning), (0.3, None, Warning), (0.4, None, Warning), (0.41, None, None)]
        {
            assert_eq!(judged(low, value), (raise, hold), "{value}");
        }
    }

    #[test]
    fn without_a_clear_limit_a_severity_clears_at_its_own() {
        let plain = r#"{"metric": "gpu_power_watts", "above": {"warning": 700}}"#;
        assert_eq!(judged(plain, 700.0), (Level::None, Level::None));
        assert_eq!(judged(plain, 700.5), (Level::Warning, Level::Warning));
    }

    #[test]
    fn a_missing_value_is_no_zero() {
        let low = r#"{"metric": "gpu_memory_used_ratio", "below": {"warning": 0.3}}"#;
        assert_eq!(judged(low, f64::NAN), (Level::None, Level::None));
    }

    #[test]
    fn explains_what_it_saw() {
        let mut bench = Bench::<Threshold>::new(HOT).unwrap();
        bench.tick(&[&[92.0]]).unwrap();
        assert_eq!(bench.explain(0).unwrap(), "gpu_temperature_celsius 92 is above 90 (critical), clears below 85");
    }

    #[test]
    fn what_is_wrong_with_settings_is_told_with_its_path() {
        let cases = [
            (r#"{"metric": "gpu_up"}"#, "above: set `above` or `below`"),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 9}, "below": {"warning": 1}}"#,
                "below: set `above` or `below`, not both",
            ),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 9, "critical": 8}}"#,
                "above.critical: 8 is not beyond 9 of warning",
            ),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 9}, "clear_below": {"warning": 9.5}}"#,
                "clear_below.warning: 9.5 is beyond the limit 9",
            ),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 9}, "clear_below": {"critical": 5}}"#,
                "clear_below.critical: there is no limit for critical",
            ),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 9}, "clear_above": {"warning": 5}}"#,
                "clear_above: goes with `below`; use `clear_below`",
            ),
            (r#"{"metric": "gpu_up", "above": {}}"#, "above: no severity is set"),
            (r#"{"metric": "gpu_up", "above": {"warnin": 9}}"#, "warnin: unknown field `warnin`"),
            (r#"{"metric": "x_up", "above": {"warning": 9}}"#, "scope: the name \"x_up\" tells no scope"),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 8, "critical": 9}, "clear_below": {"warning": 7, "critical": 6}}"#,
                "clear_below.critical: it clears at 6, after warning, which clears at 7",
            ),
            (r#"{"metric": "gpu_up", "above": {"warning": 9}, "window": "5m"}"#, "window: a window needs an aggregate"),
            (r#"{"metric": "gpu_up", "above": {"warning": 9}, "aggregate": "mean"}"#, "window: `mean` needs a window"),
            (
                r#"{"metric": "gpu_up", "above": {"warning": 9}, "aggregate": "mean", "window": "5 x"}"#,
                "window: \"5 x\" is no duration",
            ),
        ];
        for (settings, expected) in cases {
            let error = Bench::<Threshold>::new(settings).map(|_| ()).unwrap_err();
            assert!(error.contains(expected), "{settings}: {error}");
        }
    }
}
