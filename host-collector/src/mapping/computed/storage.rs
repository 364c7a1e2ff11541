//! File systems, disks and text files.

use super::super::state::{Reading, State};
use super::{Page, ratio};

/// Space that users can write to as a share of a file system's size.
pub(super) fn avail_ratio(state: &mut State, page: &mut Page<'_>) {
    for fs in &mut state.filesystems.items {
        let pair = fs.avail.get(page.number).zip(fs.size.get(page.number));
        if let Some(ratio) = pair.and_then(|(avail, size)| ratio(avail, size)) {
            page.emit(&mut fs.avail_ratio, ratio);
        }
    }
}

/// Free inodes as a share of all. File systems that have no fixed number (btrfs says 0) give none.
pub(super) fn files_free_ratio(state: &mut State, page: &mut Page<'_>) {
    for fs in &mut state.filesystems.items {
        let pair = fs.files_free.get(page.number).zip(fs.files.get(page.number));
        if let Some(ratio) = pair.and_then(|(free, files)| ratio(free, files)) {
            page.emit(&mut fs.files_free_ratio, ratio);
        }
    }
}

/// The share of the time between two pages in which a disk had a request in hand.
pub(super) fn disk_busy_ratio(state: &mut State, page: &mut Page<'_>) {
    for disk in &mut state.disks.items {
        let Some(now) = disk.now.get(page.number) else { continue };
        let last = disk.last.replace((page.now, now));
        if let Some(busy) = last.and_then(|(then, last)| grown(last, now, page.now.since(then).as_secs_f64())) {
            page.emit(&mut disk.output, busy);
        }
    }
}

fn grown(last: f64, now: f64, seconds: f64) -> Option<f64> {
    if now < last { None } else { ratio(now - last, seconds) }
}

/// How long ago a text file of node_exporter was written: its values live on when its writer hangs
/// (microsoft/pai#889).
pub(super) fn textfile_age_seconds(state: &mut State, page: &mut Page<'_>) {
    for file in &mut state.textfiles.items {
        age(file, page);
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are exact in a double")]
fn age(file: &mut Reading, page: &mut Page<'_>) {
    if let Some(written) = file.now.get(page.number) {
        page.emit(&mut file.output, page.now.as_millis() as f64 / 1000.0 - written);
    }
}
