//! A GPU that was over its limit most of the time. `cargo test` tests it as it is; `watchfire test` builds it to
//! WebAssembly and runs `scenarios/`.

use watchfire_sdk::prelude::*;

watchfire_sdk::export!(Mostly);

/// What a template writes under `with:`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// A GPU above this is too hot.
    limit: f64,
    /// The number of ticks that are looked back on, fading.
    ticks: f64,
    /// The share of time that is too much.
    share: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { limit: 85.0, ticks: 24.0, share: 0.8 }
    }
}

struct Mostly(Settings);

impl Rule for Mostly {
    type Settings = Settings;
    const NAME: &'static str = "__NAME__";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");

    fn new(settings: Settings) -> Result<Self, Vec<SettingError>> {
        let checks = [
            (settings.ticks >= 1.0, "ticks", "must be at least 1"),
            (settings.share > 0.0 && settings.share <= 1.0, "share", "must be above 0 and at most 1"),
        ];
        let wrong = checks.into_iter().filter(|(good, ..)| !good);
        let problems: Vec<SettingError> =
            wrong.map(|(_, path, message)| SettingError { path: path.into(), message: message.into() }).collect();
        if problems.is_empty() { Ok(Mostly(settings)) } else { Err(problems) }
    }

    fn shape(_: Option<&Self>) -> Shape {
        Shape::of(Scope::Gpu).input(last("gpu_temperature_celsius")).state(1, 1)
    }

    fn evaluate(&mut self, rows: &Rows<'_>, report: &mut Report) -> Result<(), String> {
        let settings = &self.0;
        let mut note = None;
        for (row, value) in rows.values(0) {
            let before = rows.state(0)[row];
            let over = if value > settings.limit { 1.0 } else { 0.0 };
            let share = before + (over - before) / settings.ticks;
            report.set_state(rows, 0, row, share);
            // Between the two limits it is not bad enough to begin an alert, but bad enough to keep one.
            let raise = if share > settings.share { Level::Warning } else { Level::None };
            if share > settings.share * 0.5 {
                let note = *note.get_or_insert_with(|| report.note("over the limit most of the time"));
                let hit = report.hit(row, raise, Level::Warning, share);
                hit.cause = Cause::Thermal;
                hit.note = Some(note);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watchfire_sdk::testing::Bench;

    #[test]
    fn two_minutes_of_heat_are_told_and_half_the_time_is_not() {
        let mut bench = Bench::<Mostly>::new("{}").unwrap();
        let raised = |bench: &mut Bench<Mostly>, value| {
            bench.tick(&[&[value]]).unwrap().hits.iter().any(|hit| hit.raise == Level::Warning)
        };
        assert!((0..100).all(|tick| !raised(&mut bench, if tick % 2 == 0 { 70.0 } else { 90.0 })));
        assert!((0..48).any(|_| raised(&mut bench, 90.0)));
    }
}
