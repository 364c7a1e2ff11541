//! Inputs for replay: recordings, exposition text with time stamps, CSV. All give moments in order of time.

mod csv_file;
mod error;
mod exposition_file;
mod time;
mod timeline;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use watchfire_core::Series;

use crate::exposition::Format;
use crate::mapping::{Dropped, Mapper, Tables};
use crate::recording::{Header, MAGIC, Moment, Reader};
use csv_file::CsvRows;
pub use error::InputError;
use exposition_file::ExpositionRows;
use timeline::Timeline;

/// The largest exposition or CSV file in bytes: it is sorted in memory. Recordings stream and have no limit.
pub const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// How long a GPU may be absent while others are there before it counts as gone. In a file each GPU may have
/// time stamps of its own.
pub const GPU_MISSING_AFTER: Duration = Duration::from_secs(120);

/// How an input is read.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// The host of all series, whatever the file says.
    pub host: Option<String>,
    /// How long a sample counts. A recording has its own spans.
    pub stale_after: Duration,
    /// What columns of a CSV file mean.
    pub csv: Vec<CsvColumn>,
    /// The mappings; `None` for the built-in ones.
    pub tables: Option<Tables>,
    /// The largest exposition or CSV file in bytes.
    pub file_bytes_max: u64,
}

impl Default for InputOptions {
    fn default() -> Self {
        InputOptions {
            host: None,
            stale_after: Series::STALE_AFTER_DEFAULT,
            csv: Vec::new(),
            tables: None,
            file_bytes_max: FILE_BYTES_MAX,
        }
    }
}

impl InputOptions {
    fn mapper(&self) -> Mapper {
        let mapper = Mapper::new(self.host.clone(), self.stale_after).missing_after(GPU_MISSING_AFTER);
        match &self.tables {
            Some(tables) => mapper.tables(tables.clone()),
            None => mapper,
        }
    }
}

/// That a column of a CSV file is to be read under another name: `time=timestamp`, `host=node`,
/// `gpu_temperature_celsius=temp`. `metric:NAME=COLUMN` makes a column the values of a metric that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumn {
    /// What it is to be read as.
    pub name: String,
    /// What the file calls it.
    pub column: String,
}

impl FromStr for CsvColumn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, column)) if !name.is_empty() && !column.is_empty() => {
                Ok(CsvColumn { name: name.to_owned(), column: column.to_owned() })
            }
            _ => Err(format!("found {text:?}, expected NAME=COLUMN such as time=timestamp")),
        }
    }
}

/// An input that is read. As an iterator it gives its moments in order of time.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    header: Header,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Recording(Box<Reader<BufReader<File>>>),
    Exposition(Timeline<ExpositionRows>),
    Csv(Timeline<CsvRows>),
}

/// Opens an input: a recording is known by its first line, the others by their ending (`.om`, `.prom`, `.csv`).
///
/// # Errors
/// It cannot be read, is of no known kind, too large, or has lines that cannot be used (all are told, up to a
/// limit).
pub fn open(path: &Path, options: &InputOptions) -> Result<Input, InputError> {
    let failed = |source| InputError::Io { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let is_recording = file.fill_buf().map_err(failed)?.starts_with(MAGIC.as_bytes());
    let mut header = Header::default();
    let source = match ending.as_str() {
        _ if is_recording => {
            let reader = Reader::new(file).map_err(|source| recording_error(path, source))?;
            header = reader.header().clone();
            Source::Recording(Box::new(reader))
        }
        "om" | "openmetrics" => Source::Exposition(exposition(path, file, Format::OpenMetrics, options)?),
        "prom" => Source::Exposition(exposition(path, file, Format::Text, options)?),
        "csv" => {
            let text = whole(path, file, options)?;
            Source::Csv(csv_file::read(path, &text, &options.csv)?.over(options.mapper()))
        }
        _ => return Err(InputError::Kind { path: path.to_owned() }),
    };
    Ok(Input { path: path.to_owned(), header, source })
}

fn exposition(
    path: &Path,
    file: BufReader<File>,
    format: Format,
    options: &InputOptions,
) -> Result<Timeline<ExpositionRows>, InputError> {
    let text = whole(path, file, options)?;
    Ok(exposition_file::read(path, text, format)?.over(options.mapper()))
}

fn whole(path: &Path, file: BufReader<File>, options: &InputOptions) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let limit = options.file_bytes_max;
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    let read = read.map_err(|source| InputError::Io { path: path.to_owned(), source })?;
    if read as u64 > limit { Err(InputError::TooLarge { path: path.to_owned(), limit }) } else { Ok(bytes) }
}

fn recording_error(path: &Path, source: crate::recording::RecordingError) -> InputError {
    InputError::Recording { path: path.to_owned(), source }
}

impl Input {
    /// What the input says of itself, such as that it is synthetic. Only recordings say anything.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was strange at the end of a recording, once it is read.
    pub fn note(&self) -> Option<&str> {
        match &self.source {
            Source::Recording(reader) => reader.note(),
            Source::Exposition(_) | Source::Csv(_) => None,
        }
    }

    /// The samples that were read and not believed so far. A recording holds only what was believed.
    pub fn dropped(&self) -> Option<&Dropped> {
        match &self.source {
            Source::Recording(_) => None,
            Source::Exposition(timeline) => Some(timeline.dropped()),
            Source::Csv(timeline) => Some(timeline.dropped()),
        }
    }
}

impl Iterator for Input {
    type Item = Result<Moment, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Recording(reader) => {
                let next = reader.next()?;
                Some(next.map_err(|source| recording_error(&self.path, source)))
            }
            Source::Exposition(timeline) => timeline.next().map(Ok),
            Source::Csv(timeline) => timeline.next().map(Ok),
        }
    }
}

#[cfg(test)]
mod tests;
