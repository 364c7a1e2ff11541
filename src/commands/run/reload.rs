//! A reload: read and compiled on a thread of its own, swapped by the engine's thread between two ticks.

use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use tokio::sync::oneshot;
use watchfire_engine::{Prepared, Reader, Reloaded, Route};

use super::{Input, Service, now};
use crate::{config, locking};

/// Who asked for a reload, if anybody waits.
pub type Asked = Option<oneshot::Sender<Result<(), String>>>;

/// A configuration that was read for a reload.
#[derive(Debug)]
pub struct Fresh {
    read: Result<(Prepared, Route, bool), String>,
    asked: Asked,
}

/// How reloads are done, and whether one is.
pub struct Reloads {
    pub file: PathBuf,
    /// Whether templates must be as locked, by the command line.
    pub locked: bool,
    pub sender: SyncSender<Input>,
    pub is_reading: bool,
    /// Whether one was asked for while another was being read.
    pub again: bool,
}

impl Service {
    /// Templates and routes are read again; receivers, sources and addresses need a restart.
    pub(super) fn begin_reload(&mut self, asked: Asked) {
        if self.reload.is_reading {
            match asked {
                Some(asked) => drop(asked.send(Err("another reload is being read; ask again".to_owned()))),
                None => self.reload.again = true,
            }
            return;
        }
        self.reload.is_reading = true;
        let (reader, file, locked) = (self.engine.reader(), self.reload.file.clone(), self.reload.locked);
        let sender = self.reload.sender.clone();
        let work = move || {
            let read = read(&file, locked, &reader);
            // Nobody listens any more where the engine has ended.
            let _ = sender.send(Input::Reloaded(Box::new(Fresh { read, asked })));
        };
        if let Err(why) = std::thread::Builder::new().name("watchfire-reload".into()).spawn(work) {
            self.reload.is_reading = false;
            self.say(Err(why.to_string()), None);
        }
    }

    pub(super) fn end_reload(&mut self, fresh: Fresh) {
        self.reload.is_reading = false;
        let started = Instant::now();
        let done = fresh.read.and_then(|(prepared, route, has_receivers)| self.swap(prepared, route, has_receivers));
        tracing::debug!(swap = ?started.elapsed(), "the engine stood still for the swap");
        self.say(done, fresh.asked);
        if std::mem::take(&mut self.reload.again) {
            self.begin_reload(None);
        }
    }

    fn swap(&mut self, prepared: Prepared, route: Route, has_receivers: bool) -> Result<Reloaded, String> {
        if has_receivers && self.engine.courier().is_none() {
            return Err("receivers were added: they need a restart".to_owned());
        }
        let again = |error| format!("{error}\n  hint: receivers that are added or renamed need a restart");
        self.engine.check_routes(&route).map_err(again)?;
        let now = self.clock.now();
        let done = self.engine.swap(now, prepared).map_err(|error| error.to_string())?;
        self.engine.set_routes(now, route).map_err(|error| error.to_string())?;
        Ok(done)
    }

    fn say(&mut self, done: Result<Reloaded, String>, asked: Asked) {
        self.reloads.note(now(), &done);
        match &done {
            Ok(done) => tracing::info!(
                kept = done.kept,
                rebuilt = done.rebuilt,
                added = done.added,
                removed = done.removed,
                "reloaded templates and routes; all else needs a restart"
            ),
            Err(why) => tracing::error!("reload refused, nothing was changed:\n{why}"),
        }
        if let Some(asked) = asked {
            // Who asked may have gone meanwhile.
            let _ = asked.send(done.map(drop));
        }
    }
}

fn read(file: &Path, locked: bool, reader: &Reader) -> Result<(Prepared, Route, bool), String> {
    let config = config::read(file).map_err(|failure| failure.to_string())?;
    locking::hold_config(file, &config, locked).map_err(|failure| failure.to_string())?;
    let prepared = reader.read(&config.templates, &config.shadow, &config.given).map_err(|error| error.to_string())?;
    // Without a route all goes to the first receiver, as at the start.
    let first = config.receivers.first().map_or("default", |receiver| receiver.name.as_str());
    let route = config.route.unwrap_or_else(|| Route::to(first));
    Ok((prepared, route, !config.receivers.is_empty()))
}
