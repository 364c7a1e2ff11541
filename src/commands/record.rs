//! `watchfire record`

use std::fs::File;
use std::io::BufWriter;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use watchfire_collector::recording::{Header, Moment, Writer};
use watchfire_engine::config::{NvmlSource, Sources};
use watchfire_engine::door::Errors;

use super::{Input, now};
use crate::cli::Record;
use crate::exit::{Exit, Failure};
use crate::{config, sources};

/// The end is looked for at least this often.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Writes what the sources read.
pub fn run(args: &Record) -> Result<Exit, Failure> {
    let config = source_config(args)?;
    let file = File::create(&args.output)
        .map_err(|error| Failure::could_not(format!("{} cannot be written: {error}", args.output.display())))?;
    let host = config::host_name(Some(&config));
    let header = Header::default().with("host", &host).with("recorded", &watchfire_engine::clock::rfc3339(now()));
    let mut writer = Writer::new(BufWriter::new(file), &header).map_err(Failure::could_not)?;
    let (sender, inputs) = sync_channel(super::run::INPUTS_MAX);
    let _sources = sources::start(&config, sender.clone())?;
    stop_at_signal(sender)?;
    let (bar, started, mut samples) = (ProgressBar::new_spinner(), Instant::now(), 0usize);
    while args.span.is_none_or(|span| started.elapsed() < span) {
        match inputs.recv_timeout(LOOK_EVERY) {
            Ok(Input::Observations(observations)) => {
                samples += observations.len();
                let moment = Moment { observations, ..Moment::empty(now()) };
                writer.write(&moment).map_err(Failure::could_not)?;
                bar.set_message(format!("{samples} samples"));
            }
            Ok(Input::Stop) => break,
            _ => bar.tick(),
        }
    }
    bar.finish_and_clear();
    println!("{samples} samples written to {}", args.output.display());
    Ok(Exit::Fine)
}

fn source_config(args: &Record) -> Result<watchfire_engine::config::Config, Failure> {
    if let Some(file) = &args.config {
        let config = config::read(file)?;
        if config.sources.recording.is_some() {
            return Err(Failure::wrong(
                "the source of this configuration is a recording already; copy its file instead",
            ));
        }
        return Ok(config);
    }
    let mut errors = Errors::default();
    let config = watchfire_engine::config::Config::read(std::path::Path::new("defaults"), "sources: {}", &mut errors);
    let mut config = config.ok_or_else(|| Failure::could_not(errors))?;
    config.sources = Sources { nvml: Some(NvmlSource::default()), ..Sources::default() };
    Ok(config)
}

/// Ctrl-C ends a recording in good order.
fn stop_at_signal(sender: SyncSender<Input>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::could_not)?;
    let wait = move || {
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            drop(sender.send(Input::Stop));
        }
    };
    std::thread::Builder::new().name("watchfire-signal".into()).spawn(wait).map_err(Failure::could_not)?;
    Ok(())
}
