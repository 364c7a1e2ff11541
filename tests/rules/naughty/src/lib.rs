//! A rule that does what its setting says: something good, or one of the things that a sandbox must survive.

use watchfire_sdk::prelude::*;

/// `{"do": …}`
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    r#do: Deed,
}

#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Deed {
    /// Hits each row with its value, a note, its group; counts ticks in its state; derives the doubled value.
    Good,
    /// Good, but panics at every second tick.
    PanicEverySecond,
    LoopForEver,
    AllocateWithoutEnd,
    MillionHits,
    RowOutOfRange,
    TwoHitsForARow,
    NanState,
    BadNote,
    Report,
    LogMuch,
}

/// The rule.
#[derive(Debug)]
pub struct Naughty {
    deed: Deed,
}

impl Rule for Naughty {
    type Settings = Settings;
    const NAME: &'static str = "naughty";
    const VERSION: &'static str = "0.1.0";

    fn new(settings: Settings) -> Result<Self, Vec<SettingError>> {
        Ok(Naughty { deed: settings.r#do })
    }

    fn shape(_: Option<&Self>) -> Shape {
        Shape::of(Scope::Gpu).input(last("gpu_up")).output("gpu_doubled").state(1, 1).group_by("job_id")
    }

    fn evaluate(&mut self, rows: &Rows<'_>, report: &mut Report) -> Result<(), String> {
        let ticks = rows.state(0).first().copied().unwrap_or(0.0);
        match self.deed {
            Deed::Good => good(rows, report),
            Deed::PanicEverySecond if ticks == 1.0 => return Err(oops(rows)),
            Deed::PanicEverySecond => good(rows, report),
            Deed::LoopForEver => loop_for_ever(),
            Deed::AllocateWithoutEnd => allocate_without_end(),
            Deed::MillionHits => (0..1_000_000).for_each(|row| hit(report, row)),
            Deed::RowOutOfRange => hit(report, rows.len()),
            Deed::TwoHitsForARow => (0..2).for_each(|_| hit(report, 0)),
            Deed::NanState => report.set_state(rows, 0, 0, f64::NAN),
            Deed::BadNote => report.hit(0, Level::Info, Level::Info, 1.0).note = Some(9),
            Deed::Report => return Err("said so itself".to_owned()),
            Deed::LogMuch => (0..1000).for_each(|_| log("x")),
        }
        Ok(())
    }

    fn explain(&self, rows: &Rows<'_>, row: usize) -> Option<String> {
        Some(format!("gpu_up is {}", rows.get(0, row)?))
    }

    /// What it kept before, doubled.
    fn migrate_state(&self, _: u32, slots: &[f64]) -> Option<Vec<f64>> {
        match self.deed {
            Deed::Good => Some(vec![slots.first()? * 2.0]),
            Deed::LoopForEver => {
                loop_for_ever();
                None
            }
            _ => None,
        }
    }
}

fn good(rows: &Rows<'_>, report: &mut Report) {
    for (row, value) in rows.values(0) {
        let note = report.note(format!("group {}", rows.group(row)));
        report.hit(row, Level::Info, Level::Warning, value).note = Some(note);
        report.derive(0, row, value * 2.0);
    }
    for row in 0..rows.len() {
        report.set_state(rows, 0, row, rows.state(0)[row] + 1.0);
    }
}

fn hit(report: &mut Report, row: usize) {
    report.hit(row, Level::Info, Level::Info, 1.0);
}

/// The index is out of range, on purpose: a panic with a message.
fn oops(rows: &Rows<'_>) -> String {
    let rows: Vec<usize> = (0..rows.len()).collect();
    format!("row {}", rows[rows.len() + 7])
}

fn loop_for_ever() {
    let mut n = 0u64;
    while std::hint::black_box(n) != u64::MAX {
        n += 1;
    }
}

fn allocate_without_end() {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(std::hint::black_box(Vec::with_capacity(1 << 20)));
    }
}

#[cfg(target_arch = "wasm32")]
fn log(line: &str) {
    watchfire_sdk::bindings::watchfire::rule::host::log(line);
}

#[cfg(not(target_arch = "wasm32"))]
fn log(_: &str) {}

watchfire_sdk::export!(Naughty);
