//! The limits of a rule. Each has a name, a unit, a default, bounds and an error that names it; `docs/limits.md` lists
//! them, and a test compares that list with [`FIELDS`].

mod changes;
mod fields;

use std::time::Duration;

use watchfire_core::{LimitHit, RuleFailure};

pub use changes::{Changes, Raised};
pub use fields::{FIELDS, Field, Unit};

/// The limits of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of a module's file, bytes.
    pub module_bytes: usize,
    /// Size of a script's file, bytes.
    pub script_bytes: usize,
    /// Size of one function of a WebAssembly module, bytes: what a compiler takes grows faster than that.
    pub function_bytes: usize,
    /// Functions of a WebAssembly module.
    pub functions: usize,
    /// Time to check and compile a module, on a thread of its own.
    pub compile: Duration,
    /// Linear memory of a WebAssembly rule, bytes.
    pub memory_bytes: usize,
    /// Linear memories of its store.
    pub memories: usize,
    /// Tables of its store.
    pub tables: usize,
    /// Instances of its store: a component is made of several.
    pub instances: usize,
    /// Elements of each of its tables.
    pub table_elements: usize,
    /// Steps (fuel) of one `evaluate` of a WebAssembly rule whatever its rows.
    pub steps_base: u64,
    /// Steps of one `evaluate` of a WebAssembly rule for each row.
    pub steps_per_row: u64,
    /// Steps of one `evaluate` of a WebAssembly rule at most.
    pub steps_max: u64,
    /// Steps of a call that is no `evaluate`, in both runtimes.
    pub steps_init: u64,
    /// Wall-clock fuse of one `evaluate`; the steps run out long before on a machine that is not overloaded.
    pub wall: Duration,
    /// Wall-clock fuse of a call that is no `evaluate`.
    pub wall_init: Duration,
    /// Bytes that cross between rule and host in one call, whatever its rows.
    pub output_bytes_base: usize,
    /// Bytes that cross between rule and host in one call, for each row.
    pub output_bytes_per_row: usize,
    /// Notes of one answer.
    pub notes: usize,
    /// Bytes of one note; more is cut.
    pub note_bytes: usize,
    /// Bytes that a rule logs in one call; more is cut.
    pub log_bytes: usize,
    /// Lines that a rule logs in one minute; more are dropped.
    pub log_lines_per_minute: usize,
    /// Bytes of a rule's settings as JSON.
    pub settings_bytes: usize,
    /// Numbers kept for each row between ticks.
    pub state_slots: usize,
    /// Steps (operations) of one `evaluate` of a script whatever its rows.
    pub script_steps_base: u64,
    /// Steps of one `evaluate` of a script for each row.
    pub script_steps_per_row: u64,
    /// Steps of one `evaluate` of a script at most.
    pub script_steps_max: u64,
    /// Bytes of one text in a script.
    pub script_string_bytes: usize,
    /// Elements of one array in a script, those of arrays within it included.
    pub script_array_elements: usize,
    /// Entries of one map in a script, those of maps within it included.
    pub script_map_entries: usize,
    /// Depth of calls in a script.
    pub script_calls: usize,
    /// Depth of one expression in a script.
    pub script_depth: usize,
    /// Variables of a script at one time.
    pub script_variables: usize,
    /// Functions of a script.
    pub script_functions: usize,
}

impl Default for Limits {
    /// Chosen so that 10,000 rows of an ordinary rule fit with room to spare and a runaway rule ends within about
    /// 100 ms (measured: 19 fuel a row for a threshold in WebAssembly, 0.25 to 2.2 ns a unit of fuel).
    fn default() -> Self {
        Limits {
            module_bytes: 4 << 20,
            script_bytes: 256 << 10,
            function_bytes: 256 << 10,
            functions: 20_000,
            compile: Duration::from_secs(30),
            memory_bytes: 16 << 20,
            memories: 1,
            tables: 8,
            instances: 16,
            table_elements: 20_000,
            steps_base: 200_000,
            steps_per_row: 2_000,
            steps_max: 50_000_000,
            steps_init: 50_000_000,
            wall: Duration::from_millis(250),
            wall_init: Duration::from_secs(2),
            output_bytes_base: 64 << 10,
            output_bytes_per_row: 96,
            notes: 64,
            note_bytes: 256,
            log_bytes: 4 << 10,
            log_lines_per_minute: 100,
            settings_bytes: 64 << 10,
            state_slots: 16,
            script_steps_base: 20_000,
            script_steps_per_row: 500,
            script_steps_max: 20_000_000,
            script_string_bytes: 4 << 10,
            script_array_elements: 4096,
            script_map_entries: 256,
            script_calls: 16,
            script_depth: 32,
            script_variables: 64,
            script_functions: 32,
        }
    }
}

impl Limits {
    /// Stack of a WebAssembly rule, bytes.
    pub const WASM_STACK_BYTES: usize = 512 << 10;

    /// For modules that bring an interpreter (`runtime: large` in their manifest): measured 2,300 to 6,400 fuel a row
    /// for QuickJS (27,000 for one that has a hit) and 2,800 for CPython, 12 to 18 MB of module, 40 s of compiling on
    /// one core; their components have several memories and tens of instances.
    pub fn large() -> Self {
        Limits {
            module_bytes: 32 << 20,
            function_bytes: 1 << 20,
            functions: 100_000,
            compile: Duration::from_secs(120),
            memory_bytes: 64 << 20,
            memories: 4,
            instances: 128,
            table_elements: 100_000,
            steps_base: 2_000_000,
            steps_per_row: 60_000,
            steps_max: 400_000_000,
            steps_init: 400_000_000,
            wall: Duration::from_secs(1),
            wall_init: Duration::from_secs(5),
            ..Limits::default()
        }
    }

    /// For large modules written in Python, whose interpreter alone takes tens of MiB.
    pub fn python() -> Self {
        Limits { memory_bytes: 128 << 20, ..Limits::large() }
    }

    /// The steps of one `evaluate` of so many rows, and the name of the limit that sets them.
    pub fn steps(&self, rows: usize) -> (u64, &'static str) {
        let names = ["steps_base", "steps_per_row", "steps_max"];
        budget(self.steps_base, self.steps_per_row, self.steps_max, rows, names)
    }

    /// The operations of one `evaluate` of a script on so many rows, and the name of the limit that sets them.
    pub fn script_steps(&self, rows: usize) -> (u64, &'static str) {
        let names = ["script_steps_base", "script_steps_per_row", "script_steps_max"];
        budget(self.script_steps_base, self.script_steps_per_row, self.script_steps_max, rows, names)
    }

    /// The bytes of an answer about so many rows.
    pub fn output_bytes(&self, rows: usize) -> usize {
        self.output_bytes_base.saturating_add(self.output_bytes_per_row.saturating_mul(rows))
    }

    /// These limits with changes.
    pub fn with(&self, changes: &Changes) -> Self {
        let mut limits = self.clone();
        changes.iter().for_each(|(field, value)| (field.set)(&mut limits, value));
        limits
    }

    /// Whether a rule may keep so many numbers for each row.
    ///
    /// # Errors
    /// Where that is more than its limit.
    pub fn check_state_slots(&self, slots: u32) -> Result<(), LimitHit> {
        if slots as usize <= self.state_slots {
            return Ok(());
        }
        let (used, allowed) = (Some(u64::from(slots)), self.state_slots as u64);
        Err(LimitHit { limit: "state_slots", used, allowed, unit: "state slots", rows: 0 })
    }

    /// Whether a rule may have settings of so many bytes.
    ///
    /// # Errors
    /// Where that is more than its limit.
    pub fn check_settings(&self, bytes: usize) -> Result<(), LimitHit> {
        if bytes <= self.settings_bytes {
            return Ok(());
        }
        let (used, allowed) = (Some(bytes as u64), self.settings_bytes as u64);
        Err(LimitHit { limit: "settings_bytes", used, allowed, unit: "bytes of settings", rows: 0 })
    }

    /// Whether an answer may have so many notes.
    ///
    /// # Errors
    /// Where that is more than its limit.
    pub fn check_notes(&self, notes: usize, rows: usize) -> Result<(), RuleFailure> {
        if notes <= self.notes {
            return Ok(());
        }
        let (used, allowed) = (Some(notes as u64), self.notes as u64);
        Err(RuleFailure::Limit(LimitHit { limit: LimitHit::NOTES, used, allowed, unit: "notes", rows }))
    }

    /// Cuts notes that are too long; how many.
    pub fn cut_notes(&self, notes: &mut [String]) -> u64 {
        let mut cut = 0;
        for note in notes.iter_mut().filter(|note| note.len() > self.note_bytes) {
            note.truncate(Limits::cut(note, self.note_bytes).len());
            cut += 1;
        }
        cut
    }

    /// A text cut to so many bytes, at the end of a character.
    pub fn cut(text: &str, bytes: usize) -> &str {
        let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        &text[..end]
    }
}

/// base + per row × rows, at most max; and which of the three to raise for more.
fn budget(base: u64, per_row: u64, max: u64, rows: usize, names: [&'static str; 3]) -> (u64, &'static str) {
    let for_rows = per_row.saturating_mul(rows as u64);
    let wanted = base.saturating_add(for_rows);
    let most = max.max(base);
    match (wanted > most, for_rows > base) {
        (true, _) => (most, names[2]),
        (false, true) => (wanted, names[1]),
        (false, false) => (wanted, names[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_with_the_rows_up_to_the_most() {
        let limits = Limits::default();
        let steps = [0, 8, 512, 1_000_000].map(|rows| limits.steps(rows));
        let expected =
            [(200_000, "steps_base"), (216_000, "steps_base"), (1_224_000, "steps_per_row"), (50_000_000, "steps_max")];
        assert_eq!(steps, expected);
        let script = [0, 64, 1_000_000].map(|rows| limits.script_steps(rows));
        let expected =
            [(20_000, "script_steps_base"), (52_000, "script_steps_per_row"), (20_000_000, "script_steps_max")];
        assert_eq!(script, expected);
        assert_eq!(Limits::large().steps(10).0, 2_600_000);
        assert_eq!(Limits::large().steps(1_000_000).0, 400_000_000);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!([Limits::cut("aé", 2), Limits::cut("aé", 3), Limits::cut("aé", 9)], ["a", "aé", "aé"]);
    }
}
