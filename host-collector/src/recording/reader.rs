//! Reading recordings, one moment at a time.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};
use std::sync::Arc;
use std::time::Duration;

use watchfire_core::sample::STALE_MARKER;
use watchfire_core::{Labels, Observation, Occurrence, Series, Time};

use super::{HEADER_MAX, Header, LINE_BYTES_MAX, MAGIC, MAGIC_ANY, MOMENT_MAX, Moment, RecordingError, SERIES_MAX};
use crate::exposition::{self, Label};

/// Reads a recording. As an iterator it gives its moments in order; after an error it ends.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    header: Header,
    line: u64,
    series: HashMap<u64, Arc<Series>>,
    /// The moment that is being read.
    current: Option<Moment>,
    last: Option<Time>,
    note: Option<String>,
    buffer: Vec<u8>,
    ended: bool,
}

/// What is wrong with a line: the byte where, and what.
type Fault = (usize, String);

impl<R: BufRead> Reader<R> {
    /// Reads the first line and the header.
    ///
    /// # Errors
    /// It cannot be read, is no recording, or one of another version.
    pub fn new(from: R) -> Result<Self, RecordingError> {
        let mut reader = Reader {
            from,
            header: Header::default(),
            line: 0,
            series: HashMap::new(),
            current: None,
            last: None,
            note: None,
            buffer: Vec::new(),
            ended: false,
        };
        let first = reader.next_line()?.unwrap_or_default();
        magic(&first).map_err(|fault| reader.at_line(fault))?;
        reader.read_header()?;
        Ok(reader)
    }

    /// What the recording says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was strange at the end: a last line that a crash tore, which was left out.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The header ends where the next line does not begin with `# `.
    fn read_header(&mut self) -> Result<(), RecordingError> {
        while self.from.fill_buf()?.starts_with(b"#") {
            let Some(line) = self.next_line()? else { break };
            if line.starts_with(MAGIC_ANY) {
                magic(&line).map_err(|fault| self.at_line(fault))?;
                continue;
            }
            let text = line.trim_start_matches('#').trim();
            let (key, value) = text.split_once(':').unwrap_or((text, ""));
            self.header.0.push((key.trim().to_owned(), value.trim().to_owned()));
            if self.header.0.len() > HEADER_MAX {
                return Err(self.at_line((0, format!("more than {HEADER_MAX} header lines"))));
            }
        }
        Ok(())
    }

    /// The next whole line, without its end.
    fn next_line(&mut self) -> Result<Option<String>, RecordingError> {
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let mut limited = self.from.by_ref().take(limit);
        let read = limited.read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if self.buffer.pop_if(|last| *last == b'\n').is_none() {
            if read as u64 == limit {
                return Err(self.at_line((LINE_BYTES_MAX, format!("the line has more than {LINE_BYTES_MAX} bytes"))));
            }
            self.note = Some(format!("line {} is torn and was left out", self.line));
            return Ok(None);
        }
        let text = std::str::from_utf8(&self.buffer);
        let text = text.map_err(|error| self.at_line((error.valid_up_to(), "invalid UTF-8".to_owned())))?;
        Ok(Some(text.trim_end_matches('\r').to_owned()))
    }

    fn at_line(&self, (at, message): Fault) -> RecordingError {
        RecordingError::Line { line: self.line, column: at + 1, message }
    }

    fn next_moment(&mut self) -> Result<Option<Moment>, RecordingError> {
        while let Some(line) = self.next_line()? {
            let done = self.take(&line).map_err(|fault| self.at_line(fault))?;
            if done.is_some() {
                return Ok(done);
            }
        }
        self.ended = true;
        Ok(self.current.take())
    }

    /// Takes a line; answers the moment that it ended.
    fn take(&mut self, line: &str) -> Result<Option<Moment>, Fault> {
        if line.starts_with('#') {
            return self.comment(line);
        }
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "v" => self.value(rest).map(|()| None),
            "t" => self.time(rest),
            "s" => self.named(line, rest).map(|()| None),
            "e" => self.event(line, rest).map(|()| None),
            "" => Ok(None),
            _ => Err((0, format!("found {what:?}, expected s, t, v, e or #"))),
        }
    }

    fn comment(&mut self, line: &str) -> Result<Option<Moment>, Fault> {
        if !line.starts_with(MAGIC_ANY) {
            return Ok(None);
        }
        magic(line)?;
        self.series.clear();
        Ok(self.current.take())
    }

    fn time(&mut self, rest: &str) -> Result<Option<Moment>, Fault> {
        let millis = rest.trim().parse();
        let millis = millis.map_err(|_| (2, format!("found {rest:?}, expected milliseconds since 1970")))?;
        let time = Time::from_millis(millis);
        if let Some(last) = self.last.filter(|last| time < *last) {
            return Err((2, format!("time goes back from {} to {millis}", last.as_millis())));
        }
        self.last = Some(time);
        Ok(self.current.replace(Moment::empty(time)))
    }

    fn moment(&mut self) -> Result<&mut Moment, Fault> {
        let moment = self.current.as_mut().ok_or_else(|| (0, "expected a line \"t\" before it".to_owned()))?;
        if moment.observations.len() + moment.events.len() >= MOMENT_MAX {
            return Err((0, format!("more than {MOMENT_MAX} values at one moment, the limit")));
        }
        Ok(moment)
    }

    fn value(&mut self, rest: &str) -> Result<(), Fault> {
        let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let series = number.parse().ok().and_then(|number: u64| self.series.get(&number)).cloned();
        let series = series.ok_or_else(|| (2, format!("series {number:?} was never named by a line \"s\"")))?;
        let value = value(text).ok_or_else(|| (3 + number.len(), format!("found {text:?}, expected a number")))?;
        let moment = self.moment()?;
        let time = moment.time;
        moment.observations.push(Observation { series, time, value });
        Ok(())
    }

    fn named(&mut self, line: &str, rest: &str) -> Result<(), Fault> {
        let mut words = rest.splitn(3, ' ');
        let (number, stale, text) = (words.next(), words.next(), words.next().unwrap_or_default());
        let number: Option<u64> = number.and_then(|word| word.parse().ok());
        let stale: Option<u64> = stale.and_then(|word| word.parse().ok());
        let (Some(number), Some(stale)) = (number, stale) else {
            return Err((2, "expected \"s NUMBER STALE_MS SERIES\"".to_owned()));
        };
        let (mut labels, offset) = (Vec::new(), line.len() - text.len());
        let read = exposition::parse_series(text, &mut labels);
        let (metric, behind) = read.map_err(|(at, message)| (offset + at, message))?;
        if !behind.trim().is_empty() {
            return Err((line.len() - behind.len(), format!("found {behind:?} behind the series")));
        }
        if self.series.len() >= SERIES_MAX && !self.series.contains_key(&number) {
            return Err((0, format!("more than {SERIES_MAX} series, the limit of a recording")));
        }
        let stale_after = Duration::from_millis(stale);
        let series = Series { metric: (&*metric).into(), labels: owned(&labels), stale_after };
        self.series.insert(number, Arc::new(series));
        Ok(())
    }

    fn event(&mut self, line: &str, rest: &str) -> Result<(), Fault> {
        let mut words = rest.splitn(3, ' ');
        let (kind, code, text) = (words.next().unwrap_or_default(), words.next(), words.next().unwrap_or_default());
        let code = code.and_then(|word| word.parse().ok());
        let code = code.ok_or_else(|| (2, "expected \"e KIND CODE {LABELS}\"".to_owned()))?;
        let mut labels = Vec::new();
        let offset = line.len() - text.len();
        let behind = exposition::parse_labels(text, &mut labels).map_err(|(at, message)| (offset + at, message))?;
        let job = exposition::parse_quoted(behind.trim()).map_err(|message| (line.len() - behind.len(), message))?;
        let (kind, labels) = (kind.into(), owned(&labels));
        let moment = self.moment()?;
        let time = moment.time;
        moment.events.push(Occurrence { kind, labels, time, code, job: job.as_deref().map(Into::into) });
        Ok(())
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Moment, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_moment();
        self.ended |= next.is_err();
        next.transpose()
    }
}

fn magic(line: &str) -> Result<(), Fault> {
    match line {
        MAGIC => Ok(()),
        _ if line.starts_with(MAGIC_ANY) => {
            Err((0, format!("found {line:?}, expected {MAGIC:?}: it was made by another version")))
        }
        _ => Err((0, format!("this is no recording: expected {MAGIC:?} as the first line"))),
    }
}

fn value(text: &str) -> Option<f64> {
    if let Some(bits) = text.strip_prefix("nan:") {
        return u64::from_str_radix(bits, 16).ok().map(f64::from_bits).filter(|value| value.is_nan());
    }
    if text == "stale" { Some(f64::from_bits(STALE_MARKER)) } else { exposition::parse_value(text) }
}

fn owned(labels: &[Label<'_>]) -> Labels {
    Labels::new(labels.iter().map(|label| (&*label.name, &*label.value)))
}
