//! The limits of a rule. Each has a name, a unit, a default and an error that names it.

use std::time::Duration;

/// The limits of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of a module's file, bytes.
    pub module_bytes: usize,
    /// Time to compile a module.
    pub compile: Duration,
    /// Linear memory of a WebAssembly rule, bytes.
    pub memory_bytes: usize,
    /// Elements of its tables.
    pub table_elements: usize,
    /// Steps of one `evaluate` whatever its rows: fuel for WebAssembly, operations for Rhai.
    pub steps_base: u64,
    /// Steps of one `evaluate` for each row.
    pub steps_per_row: u64,
    /// Steps of one `evaluate` at most.
    pub steps_max: u64,
    /// Steps of a call that is no `evaluate`.
    pub steps_init: u64,
    /// Wall-clock fuse of one `evaluate`; the steps run out long before on a machine that is not overloaded.
    pub wall: Duration,
    /// Wall-clock fuse of a call that is no `evaluate`.
    pub wall_init: Duration,
    /// Bytes of one answer whatever its rows.
    pub output_bytes_base: usize,
    /// Bytes of one answer for each row.
    pub output_bytes_per_row: usize,
    /// Bytes of one note; more is cut.
    pub note_bytes: usize,
    /// Bytes of one line of a rule's log; more is cut.
    pub log_bytes: usize,
    /// Lines of a rule's log for each call; more are dropped.
    pub log_lines: usize,
    /// Bytes of a rule's settings as JSON.
    pub settings_bytes: usize,
    /// Bytes of one text in a Rhai script.
    pub script_string_bytes: usize,
    /// Elements of one array in a Rhai script.
    pub script_array_elements: usize,
    /// Entries of one map in a Rhai script.
    pub script_map_entries: usize,
}

impl Default for Limits {
    /// Chosen so that 10,000 rows of an ordinary rule fit with room to spare and a runaway rule ends within about
    /// 100 ms (measured: 19 fuel a row for a threshold in WebAssembly, 0.25 to 2.2 ns a unit of fuel).
    fn default() -> Self {
        Limits {
            module_bytes: 4 << 20,
            compile: Duration::from_secs(30),
            memory_bytes: 16 << 20,
            table_elements: 20_000,
            steps_base: 200_000,
            steps_per_row: 2_000,
            steps_max: 50_000_000,
            steps_init: 50_000_000,
            wall: Duration::from_millis(250),
            wall_init: Duration::from_secs(2),
            output_bytes_base: 64 << 10,
            output_bytes_per_row: 96,
            note_bytes: 256,
            log_bytes: 4 << 10,
            log_lines: 100,
            settings_bytes: 64 << 10,
            script_string_bytes: 4 << 10,
            script_array_elements: 4096,
            script_map_entries: 256,
        }
    }
}

impl Limits {
    /// Depth of calls in a Rhai script.
    pub const SCRIPT_CALLS_MAX: usize = 16;
    /// Depth of one expression in a Rhai script.
    pub const SCRIPT_DEPTH_MAX: usize = 32;
    /// Variables of a Rhai script at one time.
    pub const SCRIPT_VARIABLES_MAX: usize = 64;
    /// Functions of a Rhai script.
    pub const SCRIPT_FUNCTIONS_MAX: usize = 32;
    /// Stack of a WebAssembly rule, bytes.
    pub const WASM_STACK_BYTES: usize = 512 << 10;

    /// The steps of one `evaluate` of so many rows.
    pub fn steps(&self, rows: usize) -> u64 {
        let per_row = self.steps_per_row.saturating_mul(rows as u64);
        self.steps_base.saturating_add(per_row).min(self.steps_max.max(self.steps_base))
    }

    /// The bytes of an answer about so many rows.
    pub fn output_bytes(&self, rows: usize) -> usize {
        self.output_bytes_base.saturating_add(self.output_bytes_per_row.saturating_mul(rows))
    }

    /// A text cut to so many bytes, at the end of a character.
    pub fn cut(text: &str, bytes: usize) -> &str {
        let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        &text[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_with_the_rows_up_to_the_most() {
        let limits = Limits::default();
        assert_eq!([0, 8, 1_000_000].map(|rows| limits.steps(rows)), [200_000, 216_000, 50_000_000]);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!([Limits::cut("aé", 2), Limits::cut("aé", 3), Limits::cut("aé", 9)], ["a", "aé", "aé"]);
    }
}
