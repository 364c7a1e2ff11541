//! The list of all limits: how each is named, counted, bounded, read and set.

use std::time::Duration;

use super::Limits;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, written `16MiB`, `64KiB` or `512`.
    Bytes,
    /// Fuel or operations, written `200000` or `200_000`.
    Steps,
    /// Things, written as a number.
    Count,
    /// Time, written `250ms` or `30s`; a whole number of milliseconds.
    Time,
}

/// One limit.
#[derive(Debug)]
pub struct Field {
    /// Its name: a field of [`Limits`], and a key of `limits:`.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The least that can be set.
    pub min: u64,
    /// The most that can be set.
    pub max: u64,
    /// What it bounds.
    pub what: &'static str,
    /// Reads it; time in milliseconds.
    pub get: fn(&Limits) -> u64,
    /// Sets it; time in milliseconds.
    pub set: fn(&mut Limits, u64),
}

macro_rules! field {
    ($name:ident, $unit:ident, $range:expr, $what:literal, $get:expr, $set:expr) => {
        Field {
            name: stringify!($name),
            unit: Unit::$unit,
            min: *$range.start(),
            max: *$range.end(),
            what: $what,
            get: |limits| $get(limits.$name),
            set: |limits, value| limits.$name = $set(value),
        }
    };
}

macro_rules! size {
    ($name:ident, $unit:ident, $range:expr, $what:literal) => {
        field!($name, $unit, $range, $what, |size| size as u64, |value| usize::try_from(value).unwrap_or(usize::MAX))
    };
}

macro_rules! steps {
    ($name:ident, $range:expr, $what:literal) => {
        field!($name, Steps, $range, $what, std::convert::identity, std::convert::identity)
    };
}

macro_rules! time {
    ($name:ident, $range:expr, $what:literal) => {
        field!($name, Time, $range, $what, millis, Duration::from_millis)
    };
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// All limits, in the order of [`Limits`].
pub const FIELDS: &[Field] = &[
    size!(module_bytes, Bytes, (1 << 10..=64 << 20), "size of a module's file"),
    size!(script_bytes, Bytes, (1 << 10..=4 << 20), "size of a script's file"),
    size!(function_bytes, Bytes, (1 << 10..=4 << 20), "size of one function of a module"),
    size!(functions, Count, (1..=1_000_000), "functions of a module"),
    time!(compile, (1..=600_000), "time to check and compile a module"),
    size!(memory_bytes, Bytes, (64 << 10..=1 << 30), "linear memory of a WebAssembly rule"),
    size!(memories, Count, (1..=8), "linear memories of its store"),
    size!(tables, Count, (1..=64), "tables of its store"),
    size!(instances, Count, (1..=256), "instances of its store"),
    size!(table_elements, Count, (1..=1_000_000), "elements of each of its tables"),
    steps!(steps_base, (1_000..=10_000_000_000), "fuel of one `evaluate`, whatever its rows"),
    steps!(steps_per_row, (0..=1_000_000), "fuel of one `evaluate`, for each row"),
    steps!(steps_max, (1_000..=10_000_000_000), "fuel of one `evaluate` at most"),
    steps!(steps_init, (1_000..=10_000_000_000), "fuel or operations of any other call"),
    time!(wall, (10..=60_000), "wall-clock fuse of one `evaluate`"),
    time!(wall_init, (10..=60_000), "wall-clock fuse of any other call"),
    size!(output_bytes_base, Bytes, (1 << 10..=16 << 20), "bytes between rule and host in one call, whatever its rows"),
    size!(output_bytes_per_row, Bytes, (0..=64 << 10), "bytes between rule and host in one call, for each row"),
    size!(notes, Count, (0..=64), "notes of one answer"),
    size!(note_bytes, Bytes, (16..=4 << 10), "one note; more is cut"),
    size!(log_bytes, Bytes, (0..=64 << 10), "what a rule logs in one call; more is cut"),
    size!(log_lines_per_minute, Count, (0..=10_000), "lines that a rule logs in one minute; more are dropped"),
    size!(settings_bytes, Bytes, (2..=1 << 20), "a rule's settings as JSON"),
    size!(state_slots, Count, (0..=16), "numbers kept for each row between ticks"),
    steps!(script_steps_base, (100..=1_000_000_000), "operations of one `evaluate` of a script, whatever its rows"),
    steps!(script_steps_per_row, (0..=1_000_000), "operations of one `evaluate` of a script, for each row"),
    steps!(script_steps_max, (100..=1_000_000_000), "operations of one `evaluate` of a script at most"),
    size!(script_string_bytes, Bytes, (16..=1 << 20), "one text in a script"),
    size!(script_array_elements, Count, (1..=4_096), "elements of one array in a script, nested ones included"),
    size!(script_map_entries, Count, (1..=1_024), "entries of one map in a script, nested ones included"),
    size!(script_calls, Count, (1..=32), "depth of calls in a script"),
    size!(script_depth, Count, (1..=64), "depth of one expression in a script"),
    size!(script_variables, Count, (1..=1_024), "variables of a script at one time"),
    size!(script_functions, Count, (2..=1_024), "functions of a script"),
];

impl Field {
    /// The limit with a name.
    pub fn named(name: &str) -> Option<&'static Field> {
        FIELDS.iter().find(|field| field.name == name)
    }

    /// The limit's value in a set of limits, with its unit.
    pub fn show(&self, limits: &Limits) -> String {
        self.unit.show((self.get)(limits))
    }
}

impl Unit {
    /// A value with its unit, as it is written in a configuration.
    pub fn show(self, value: u64) -> String {
        let whole = |size: u64| value > 0 && value.is_multiple_of(size);
        match self {
            Unit::Bytes if whole(1 << 30) => format!("{}GiB", value >> 30),
            Unit::Bytes if whole(1 << 20) => format!("{}MiB", value >> 20),
            Unit::Bytes if whole(1 << 10) => format!("{}KiB", value >> 10),
            Unit::Time if whole(1000) => format!("{}s", value / 1000),
            Unit::Time => format!("{value}ms"),
            _ => value.to_string(),
        }
    }

    /// A value as a configuration writes it; none where it is no value of this unit. Time is not read here.
    pub fn read_number(self, text: &str) -> Option<u64> {
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
        let sized = units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?.trim_end(), *size)));
        let (digits, size) = sized.filter(|_| self == Unit::Bytes).unwrap_or((text, 1));
        let good =
            digits.starts_with(|c: char| c.is_ascii_digit()) && digits.chars().all(|c| c.is_ascii_digit() || c == '_');
        digits.replace('_', "").parse::<u64>().ok().filter(|_| good)?.checked_mul(size)
    }

    /// How a value is written, for messages.
    pub fn expected(self) -> &'static str {
        match self {
            Unit::Bytes => "a size such as 64KiB or 16MiB",
            Unit::Steps => "a number of steps such as 200000",
            Unit::Count => "a whole number",
            Unit::Time => "a duration such as 250ms or 30s",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn each_field_is_read_and_set_and_has_its_defaults_within_its_bounds() {
        let shown = format!("{:?}", Limits::default());
        for field in FIELDS {
            assert!(shown.contains(&format!("{}: ", field.name)), "{}", field.name);
            for limits in [Limits::default(), Limits::large(), Limits::python()] {
                let value = (field.get)(&limits);
                assert!((field.min..=field.max).contains(&value), "{}: {value}", field.name);
            }
            let mut limits = Limits::default();
            (field.set)(&mut limits, field.max);
            assert_eq!((field.get)(&limits), field.max, "{}", field.name);
            let unchanged = FIELDS.iter().filter(|other| other.name != field.name);
            let same = unchanged.map(|other| ((other.get)(&limits), (other.get)(&Limits::default())));
            assert!(same.into_iter().all(|(now, was)| now == was), "{} sets another field", field.name);
        }
        assert_eq!(shown.matches(": ").count(), FIELDS.len(), "a field of Limits is not in the list: {shown}");
    }

    #[test]
    fn values_are_written_and_read_with_their_units() {
        let read = |text| Unit::Bytes.read_number(text);
        assert_eq!(["16MiB", "64KiB", "1_000", "1 GiB"].map(read), [16 << 20, 64 << 10, 1000, 1 << 30].map(Some));
        assert_eq!(["", "MiB", "-1", "1MB", "1.5MiB", "_1", "99999999999GiB"].map(read), [None; 7]);
        assert_eq!(Unit::Steps.read_number("200_000"), Some(200_000));
        assert_eq!(Unit::Count.read_number("1KiB"), None);
        let shown =
            [(Unit::Bytes, 16 << 20), (Unit::Bytes, 100), (Unit::Time, 250), (Unit::Time, 30_000), (Unit::Count, 8)];
        assert_eq!(shown.map(|(unit, value)| unit.show(value)), ["16MiB", "100", "250ms", "30s", "8"]);
    }
}
