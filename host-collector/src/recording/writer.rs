//! Writing recordings: one write for each moment.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use watchfire_core::sample::is_stale_marker;
use watchfire_core::{Labels, Occurrence, Series};

use super::{Header, MAGIC, Moment, SERIES_MAX};

/// Writes a recording. Each moment goes out in one write and is flushed: after a crash all but the last moment
/// are whole.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    numbers: HashMap<Arc<Series>, usize>,
    buffer: String,
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// The header cannot be written, or one of its lines has a line break or a key with `:`.
    pub fn new(to: W, header: &Header) -> io::Result<Self> {
        let mut writer = Writer { to, numbers: HashMap::new(), buffer: format!("{MAGIC}\n") };
        for (key, value) in &header.0 {
            if key.contains([':', '\n', '\r']) || value.contains(['\n', '\r']) {
                return Err(invalid(format!("header line {key:?}: {value:?} cannot be written on one line")));
            }
            let _ = writeln!(writer.buffer, "# {}: {}", key.trim(), value.trim());
        }
        writer.flush()?;
        Ok(writer)
    }

    /// Adds a moment. Moments must come in order of time.
    ///
    /// # Errors
    /// It cannot be written, has an event whose kind is no word, or brings more than [`SERIES_MAX`] series.
    pub fn write(&mut self, moment: &Moment) -> io::Result<()> {
        self.buffer.clear();
        for observation in &moment.observations {
            self.name(&observation.series)?;
        }
        let _ = writeln!(self.buffer, "t {}", moment.time.as_millis());
        for observation in &moment.observations {
            if let Some(number) = self.numbers.get(&observation.series) {
                let _ = write!(self.buffer, "v {number} ");
                write_value(&mut self.buffer, observation.value);
                self.buffer.push('\n');
            }
        }
        moment.events.iter().try_for_each(|event| self.event(event))?;
        self.flush()
    }

    /// Names a series where it is new.
    fn name(&mut self, series: &Arc<Series>) -> io::Result<()> {
        if self.numbers.contains_key(series) {
            return Ok(());
        }
        let number = self.numbers.len();
        if number >= SERIES_MAX {
            return Err(invalid(format!("more than {SERIES_MAX} series, the limit of a recording")));
        }
        let _ = write!(self.buffer, "s {number} {} ", series.stale_after.as_millis());
        write_series(&mut self.buffer, &series.metric, &series.labels);
        self.buffer.push('\n');
        self.numbers.insert(series.clone(), number);
        Ok(())
    }

    fn event(&mut self, event: &Occurrence) -> io::Result<()> {
        if event.kind.is_empty() || event.kind.contains(char::is_whitespace) {
            return Err(invalid(format!("event kind {:?} is no word", event.kind)));
        }
        let _ = write!(self.buffer, "e {} {} ", event.kind, event.code);
        write_labels(&mut self.buffer, None, &event.labels);
        if let Some(job) = &event.job {
            self.buffer.push(' ');
            write_quoted(&mut self.buffer, job);
        }
        self.buffer.push('\n');
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(self.buffer.as_bytes())?;
        self.buffer.clear();
        self.to.flush()
    }

    /// Ends the recording and gives back where it was written to.
    pub fn into_inner(self) -> W {
        self.to
    }
}

/// Goes on with the recording at `path`, or begins it. A line that a crash tore is cut off first.
///
/// # Errors
/// The file cannot be opened, read or written, or holds something else, which is not touched.
pub fn append_to(path: &Path, header: &Header) -> io::Result<Writer<File>> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    refuse_others(&mut file)?;
    let whole = whole_lines(&mut file)?;
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole))?;
    Writer::new(file, header)
}

/// A file that does not begin as a recording does is somebody's.
fn refuse_others(file: &mut File) -> io::Result<()> {
    let mut head = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    if MAGIC.as_bytes().starts_with(&head) {
        return Ok(());
    }
    Err(invalid("the file exists and is no recording; it was not touched, choose another name".to_owned()))
}

/// Bytes up to and with the last line end.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 64 * 1024;
    let mut end = file.metadata()?.len();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Writes a value so that the same bits are read back.
fn write_value(to: &mut String, value: f64) {
    let plain = (1e-5..1e16).contains(&value.abs()) || value == 0.0;
    let _ = match value {
        _ if is_stale_marker(value) => write!(to, "stale"),
        _ if value.is_nan() => write!(to, "nan:{:016x}", value.to_bits()),
        f64::INFINITY => write!(to, "+Inf"),
        f64::NEG_INFINITY => write!(to, "-Inf"),
        _ if plain => write!(to, "{value}"),
        _ => write!(to, "{value:e}"),
    };
}

/// Writes a series as exposition text does, the name in quotes where it is no plain word.
fn write_series(to: &mut String, metric: &str, labels: &Labels) {
    let plain = |(at, byte): (usize, u8)| {
        byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || (at > 0 && byte.is_ascii_digit())
    };
    if !metric.is_empty() && metric.bytes().enumerate().all(plain) {
        to.push_str(metric);
        if !labels.is_empty() {
            write_labels(to, None, labels);
        }
    } else {
        write_labels(to, Some(metric), labels);
    }
}

fn write_labels(to: &mut String, metric: Option<&str>, labels: &Labels) {
    to.push('{');
    let mut first = true;
    if let Some(metric) = metric {
        write_quoted(to, metric);
        first = false;
    }
    for (name, value) in labels.iter() {
        if !std::mem::take(&mut first) {
            to.push(',');
        }
        let plain =
            |(at, byte): (usize, u8)| byte.is_ascii_alphabetic() || byte == b'_' || (at > 0 && byte.is_ascii_digit());
        if name.bytes().enumerate().all(plain) {
            to.push_str(name);
        } else {
            write_quoted(to, name);
        }
        to.push('=');
        write_quoted(to, value);
    }
    to.push('}');
}

fn write_quoted(to: &mut String, text: &str) {
    to.push('"');
    for char in text.chars() {
        match char {
            '\n' => to.push_str("\\n"),
            '"' | '\\' => to.extend(['\\', char]),
            _ => to.push(char),
        }
    }
    to.push('"');
}
