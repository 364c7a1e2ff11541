//! `watchfire run`

mod reload;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use watchfire_engine::config::Config;
use watchfire_engine::{Condition, Engine, Observation, Output, Severity, Time};

use crate::cli::Run;
use crate::clock::Clock;
use crate::exit::{Exit, Failure};
use crate::playback::{self, Playback, Step};
use crate::serve::{self, Question};
use crate::{config, locking, print, sources};

/// The engine looks at the clock at least this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the last messages may take at an orderly end.
const DELIVERY_WAIT: Duration = Duration::from_secs(3);

/// What reaches the engine's thread.
#[derive(Debug)]
pub enum Input {
    /// Samples of a source.
    Observations(Vec<Observation>),
    /// A source's own condition.
    Condition(Condition),
    /// A question of the HTTP side.
    Ask(Question),
    /// SIGHUP.
    Reload,
    /// What a reload read.
    Reloaded(Box<reload::Fresh>),
    /// SIGTERM or SIGINT.
    Stop,
}

/// The most inputs that wait for the engine's thread; of more, samples are left out and said so.
pub const INPUTS_MAX: usize = 4096;

/// The system's clock at the start, and what has passed since: a clock that is set while Watchfire runs makes no
/// duration longer or shorter.
pub fn now() -> Time {
    static START: OnceLock<(Instant, Time)> = OnceLock::new();
    let (started, at) = *START.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
    });
    at + started.elapsed()
}

/// Collects, judges, tells and serves until it is asked to end.
pub fn run(args: &Run) -> Result<Exit, Failure> {
    let mut config = config::read(&args.config)?;
    locking::hold_config(&args.config, &config, args.locked)?;
    let mut engine = build(&mut config)?;
    let playback = match &config.sources.recording {
        Some(source) => Some(Playback::open(source, args.exit_at_end, &mut engine)?),
        None => {
            engine.advance(now());
            None
        }
    };
    let (sender, inputs) = sync_channel(INPUTS_MAX);
    let sources = sources::start(&config, sender.clone())?;
    let reloaded = sender.clone();
    let _side = start_side(&config, sender)?;
    tracing::info!(listen = %config.listen, rules = engine.status().rules.len(), "watching");
    let clock = playback.as_ref().map_or(Clock::System, Playback::clock);
    let reloads = serve::LastReload::start(clock.now());
    let recording_ended = playback.as_ref().map(|_| false);
    let reload = reload::Reloads {
        file: args.config.clone(),
        locked: args.locked,
        sender: reloaded,
        is_reading: false,
        again: false,
    };
    let mut service = Service { engine, reload, clock, sources, reloads, recording_ended };
    match playback {
        Some(playback) => service.play(playback, &inputs)?,
        None => service.serve(&inputs),
    }
    service.end();
    Ok(Exit::Fine)
}

fn build(config: &mut Config) -> Result<Engine, Failure> {
    let mut builder = config::builder(config).lenient();
    if let Some(storage) = &config.storage {
        let folder = storage.parent().map(PathBuf::from).unwrap_or_default();
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::could_not(format!("storage {}: {error}", folder.display())))?;
        builder = builder.storage(storage).cache_dir(folder.join("compiled"));
    }
    if let Some(recording) = &config.sources.recording {
        builder = builder.recording(&playback::name(recording));
    }
    if !config.receivers.is_empty() {
        builder = builder.receivers(std::mem::take(&mut config.receivers));
    }
    let url = config.external_url.clone().unwrap_or_else(|| format!("http://{}", config.listen));
    let builder = builder.heartbeats(std::mem::take(&mut config.heartbeats)).external_url(&url);
    let engine = builder.build().map_err(Failure::could_not)?;
    for (file, why) in engine.status().broken_templates {
        tracing::error!(file, "a template is not running:\n{why}");
    }
    Ok(engine)
}

/// HTTP and signals, on a thread of their own.
fn start_side(config: &Config, sender: SyncSender<Input>) -> Result<std::thread::JoinHandle<()>, Failure> {
    let listener = std::net::TcpListener::bind(config.listen)
        .map_err(|error| Failure::could_not(format!("http.listen {}: {error}", config.listen)))?;
    listener.set_nonblocking(true).map_err(Failure::could_not)?;
    let app = serve::app(sender.clone(), config.listen.ip().is_loopback(), &config.public);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::could_not)?;
    let work = move || {
        runtime.block_on(async move {
            let signals = watch_signals(sender);
            let served = async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => axum::serve(listener, app).await,
                    Err(error) => Err(error),
                }
            };
            tokio::select! {
                served = served => tracing::error!(?served, "the HTTP side ended"),
                watched = signals => watched.unwrap_or_else(|error| tracing::error!(%error, "signals cannot be watched")),
            }
        });
    };
    std::thread::Builder::new().name("watchfire-http".into()).spawn(work).map_err(Failure::could_not)
}

async fn watch_signals(sender: SyncSender<Input>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hup = signal(SignalKind::hangup())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    loop {
        let input = tokio::select! {
            _ = hup.recv() => Input::Reload,
            _ = term.recv() => Input::Stop,
            _ = int.recv() => Input::Stop,
        };
        if sender.send(input).is_err() {
            return Ok(());
        }
    }
}

struct Service {
    engine: Engine,
    reload: reload::Reloads,
    clock: Clock,
    sources: sources::Running,
    /// Whether the recording has ended, where one is played.
    recording_ended: Option<bool>,
    reloads: serve::LastReload,
}

impl Service {
    fn serve(&mut self, inputs: &Receiver<Input>) {
        loop {
            let wait =
                self.engine.next_deadline().map_or(LOOK_EVERY, |due| due.since(self.clock.now()).min(LOOK_EVERY));
            let mut next = inputs.recv_timeout(wait);
            while let Ok(input) = next {
                if !self.take(input) {
                    return;
                }
                // Inputs that never end must not keep a deadline waiting.
                let is_due = self.engine.next_deadline().is_some_and(|due| due <= self.clock.now());
                next = if is_due { Err(RecvTimeoutError::Timeout) } else { inputs.try_recv().map_err(no_more) };
            }
            if matches!(next, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        let now = self.clock.now();
        if let Some(condition) = self.sources.silence(now) {
            self.engine.condition(now, condition);
        }
        for output in self.engine.advance(now) {
            log(&output);
        }
    }

    /// Plays a recording, and then stays until it is asked to end, unless it is to end with the recording.
    fn play(&mut self, mut playback: Playback, inputs: &Receiver<Input>) -> Result<(), Failure> {
        while let Some(step) = playback.next(&self.engine)? {
            if !self.wait(playback.wait(step.time()), inputs) {
                return Ok(());
            }
            self.clock = Clock::Recorded(step.time());
            match step {
                Step::Moment(moment) => playback::feed(&mut self.engine, moment),
                Step::Deadline(_) => self.advance(),
            }
        }
        self.engine.close(self.clock.now());
        self.recording_ended = Some(true);
        tracing::info!(exit = playback.exit(), "the recording has ended");
        while !playback.exit() && self.wait(LOOK_EVERY, inputs) {}
        Ok(())
    }

    /// Takes inputs for so long; false where one was the last.
    fn wait(&mut self, span: Duration, inputs: &Receiver<Input>) -> bool {
        let end = Instant::now() + span;
        loop {
            match inputs.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(input) => {
                    if !self.take(input) {
                        return false;
                    }
                }
                Err(error) => return error == RecvTimeoutError::Timeout,
            }
        }
    }

    /// Takes an input in; false where it was the last.
    fn take(&mut self, input: Input) -> bool {
        match input {
            Input::Observations(observations) => self.engine.observe(self.clock.now(), &observations),
            Input::Condition(condition) => self.engine.condition(self.clock.now(), condition),
            Input::Ask(question) => self.answer(question),
            Input::Reload => self.begin_reload(None),
            Input::Reloaded(fresh) => self.end_reload(*fresh),
            Input::Stop => return false,
        }
        true
    }

    /// Who asked may have gone meanwhile.
    fn answer(&mut self, question: Question) {
        match question {
            Question::Status(to) => drop(to.send(self.status())),
            Question::Alerts(to) => drop(to.send(serve::alerts_json(&self.engine.alerts()))),
            Question::Metrics(to) => drop(to.send(serve::metrics_text(&self.engine, &self.reloads))),
            Question::History(page, to) => drop(to.send(self.engine.history(page).map(|rows| json!(rows)))),
            Question::Reload(to) => self.begin_reload(Some(to)),
            Question::Capture(rule, to) => drop(to.send(self.engine.capture(&rule))),
            Question::CaptureSeen(to) => drop(to.send(self.engine.calls_captured())),
            Question::Captured(to) => drop(to.send(self.engine.captured())),
        }
    }

    fn status(&self) -> serde_json::Value {
        let channels = self.engine.courier().and_then(|courier| courier.status().ok()).unwrap_or_default();
        let channel = |one: &watchfire_engine::notify::ChannelStatus| {
            let totals = &one.totals;
            json!({
                "receiver": totals.receiver, "channel": totals.channel, "queued": totals.queued,
                "delivered": totals.delivered, "failed": totals.failed, "dropped": totals.dropped,
                "doubtful": totals.doubtful, "last_error": totals.last_error,
            })
        };
        let recording = self.recording_ended.map(|ended| json!({"ended": ended}));
        json!({
            "time": watchfire_engine::clock::rfc3339(self.clock.now()),
            "engine": self.engine.status(),
            "reload": self.reloads,
            "channels": channels.iter().map(channel).collect::<Vec<_>>(),
            "heartbeats": self.engine.courier().map(heartbeats).unwrap_or_default(),
            "sources": self.sources.status(),
            "recording": recording,
        })
    }

    fn end(&mut self) {
        if matches!(self.clock, Clock::System) {
            self.advance();
        }
        self.engine.close(self.clock.now());
        let waiting = self.engine.courier().map_or(0, |courier| {
            courier.flush(DELIVERY_WAIT);
            // What waits for its next try is not there yet, however well all else went.
            courier.status().unwrap_or_default().iter().map(|channel| channel.totals.queued).sum()
        });
        match self.engine.status().durable {
            Ok(()) => tracing::info!(waiting, "ended; messages that wait are kept and sent at the next start"),
            Err(why) => tracing::warn!(waiting, why, "ended; messages that wait are lost"),
        }
    }
}

fn heartbeats(courier: &watchfire_engine::notify::CourierHandle) -> Vec<serde_json::Value> {
    let at = |ms: i64| watchfire_engine::clock::rfc3339(Time::from_millis(ms));
    let one = |beat: &watchfire_engine::notify::heartbeat::HeartbeatStatus| {
        json!({
            "sent": beat.sent, "failed": beat.failed, "held_back": beat.held_back,
            "last_error": beat.last_error, "last_sent": beat.last_sent_ms.map(at),
        })
    };
    courier.heartbeats().iter().map(one).collect()
}

fn no_more(_: std::sync::mpsc::TryRecvError) -> RecvTimeoutError {
    RecvTimeoutError::Timeout
}

fn log(output: &Output) {
    match output {
        Output::Alert { alert, .. } => {
            let (view, summary) = (&alert.view, watchfire_engine::printable(alert.summary()));
            match view.severity {
                Severity::Info => {
                    tracing::info!(alert = &*view.alert, state = view.state.as_str(), labels = %view.labels, "{summary}");
                }
                severity => {
                    let (alert, state, labels) = (&*view.alert, view.state.as_str(), &view.labels);
                    tracing::warn!(alert, state, %severity, %labels, "{summary}");
                }
            }
        }
        other => print::trouble(other).iter().for_each(|line| tracing::warn!("{line}")),
    }
}
