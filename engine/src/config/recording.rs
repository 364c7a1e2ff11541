//! The source `recording:`: recorded samples in place of those of a living host.

use std::path::{Path, PathBuf};

use watchfire_door::{Errors, Node};

/// The most recordings that are played together.
const RECORDINGS_MAX: usize = 64;
/// The fastest and the slowest speed, in recorded seconds per second.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1_000_000.0;

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Recorded seconds per second.
    Times(f64),
    /// As fast as rules can be judged.
    Max,
}

/// Recordings that are played together, in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordingSource {
    /// The files.
    pub paths: Vec<PathBuf>,
    /// How fast; one recorded second per second if none is given.
    pub speed: Speed,
    /// Whether Watchfire ends with the recording.
    pub exit: bool,
}

impl RecordingSource {
    /// Reads the list of recordings; paths are relative to `folder`.
    pub(super) fn read(node: &Node, folder: &Path, errors: &mut Errors) -> Option<Self> {
        let nodes = node.list(errors)?;
        if nodes.is_empty() || nodes.len() > RECORDINGS_MAX {
            errors.add(node.place(), format!("{} recordings; expected 1 to {RECORDINGS_MAX}", nodes.len()));
            return None;
        }
        let (mut source, mut speed) =
            (RecordingSource { paths: Vec::new(), speed: Speed::Times(1.0), exit: false }, None);
        for node in &nodes {
            source.one(node, folder, &mut speed, errors);
        }
        source.speed = speed.unwrap_or(source.speed);
        Some(source)
    }

    fn one(&mut self, node: &Node, folder: &Path, speed: &mut Option<Speed>, errors: &mut Errors) {
        let Some(mut map) = node.map(errors) else { return };
        if let Some(path) = map.require("path", errors).and_then(|node| node.word(errors)) {
            let path = folder.join(path.trim_start_matches("./"));
            if !path.is_file() {
                errors.add(node.place(), format!("there is no file {}", path.display()));
            }
            self.paths.push(path);
        }
        if let Some(node) = map.take("speed")
            && let Some(read) = node.parse_with(errors, read_speed)
            && speed.replace(read).is_some_and(|before| before != read)
        {
            errors.add(node.place(), "recordings that are played together share one clock; give one `speed`");
        }
        self.exit |= map.take("exit").and_then(|node| node.bool(errors)).unwrap_or(false);
        map.finish(errors);
    }
}

fn read_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times = text.parse().ok().filter(|times| SPEEDS.contains(times));
    let (slowest, fastest) = (SPEEDS.start(), SPEEDS.end());
    times.map(Speed::Times).ok_or_else(|| {
        format!("{text:?} is no speed; expected recorded seconds per second, {slowest} to {fastest}, or max")
    })
}
