//! `watchfire run`

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use watchfire_engine::config::Config;
use watchfire_engine::{Condition, Engine, Observation, Output, Severity, Time};

use crate::cli::Run;
use crate::exit::{Exit, Failure};
use crate::serve::{self, Question};
use crate::{config, print, sources};

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
    let mut engine = build(&mut config)?;
    engine.advance(now());
    let (sender, inputs) = sync_channel(INPUTS_MAX);
    let _sources = sources::start(&config, sender.clone())?;
    let _side = start_side(&config, sender)?;
    tracing::info!(listen = %config.listen, rules = engine.status().rules.len(), "watching");
    let mut service = Service { engine, file: args.config.clone() };
    service.serve(&inputs);
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
    file: PathBuf,
}

impl Service {
    fn serve(&mut self, inputs: &Receiver<Input>) {
        loop {
            let wait = self.engine.next_deadline().map_or(LOOK_EVERY, |due| due.since(now()).min(LOOK_EVERY));
            let mut next = inputs.recv_timeout(wait);
            while let Ok(input) = next {
                if !self.take(input) {
                    return;
                }
                next = inputs.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            if matches!(next, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            self.advance();
        }
    }

    fn advance(&mut self) {
        for output in self.engine.advance(now()) {
            log(&output);
        }
    }

    /// Takes an input in; false where it was the last.
    fn take(&mut self, input: Input) -> bool {
        match input {
            Input::Observations(observations) => self.engine.observe(now(), &observations),
            Input::Condition(condition) => self.engine.condition(now(), condition),
            Input::Ask(question) => self.answer(question),
            Input::Reload => {
                self.reload().unwrap_or_else(|why| tracing::error!("reload refused, nothing was changed:\n{why}"))
            }
            Input::Stop => return false,
        }
        true
    }

    /// Who asked may have gone meanwhile.
    fn answer(&mut self, question: Question) {
        match question {
            Question::Status(to) => drop(to.send(self.status())),
            Question::Alerts(to) => drop(to.send(serve::alerts_json(&self.engine.alerts()))),
            Question::Metrics(to) => drop(to.send(serve::metrics_text(&self.engine))),
            Question::Reload(to) => drop(to.send(self.reload())),
        }
    }

    fn status(&self) -> serde_json::Value {
        let channels = self.engine.courier().and_then(|courier| courier.status().ok()).unwrap_or_default();
        let channel = |one: &watchfire_engine::notify::ChannelStatus| {
            let totals = &one.totals;
            json!({
                "receiver": totals.receiver, "channel": totals.channel, "queued": totals.queued,
                "delivered": totals.delivered, "failed": totals.failed, "last_error": totals.last_error,
            })
        };
        json!({"engine": self.engine.status(), "channels": channels.iter().map(channel).collect::<Vec<_>>()})
    }

    /// Templates and routes are read again; receivers, sources and addresses need a restart.
    fn reload(&mut self) -> Result<(), String> {
        let config = config::read(&self.file).map_err(|failure| failure.to_string())?;
        if !config.receivers.is_empty() && self.engine.courier().is_none() {
            return Err("receivers were added: they need a restart".to_owned());
        }
        if let Some(route) = &config.route {
            let again = |error| format!("{error}\n  hint: receivers that are added or renamed need a restart");
            self.engine.check_routes(route).map_err(again)?;
        }
        self.engine.reload(now(), &config.templates, &config.given).map_err(|error| error.to_string())?;
        if let Some(route) = config.route {
            self.engine.set_routes(now(), route).map_err(|error| error.to_string())?;
        }
        tracing::info!(
            rules = self.engine.status().rules.len(),
            "reloaded templates and routes; all else needs a restart"
        );
        Ok(())
    }

    fn end(&mut self) {
        self.advance();
        self.engine.close(now());
        let arrived = self.engine.courier().is_none_or(|courier| courier.flush(DELIVERY_WAIT));
        match self.engine.status().durable {
            Ok(()) => tracing::info!(arrived, "ended; what did not arrive is kept and sent at the next start"),
            Err(why) => tracing::warn!(arrived, why, "ended; what did not arrive is lost"),
        }
    }
}

fn log(output: &Output) {
    match output {
        Output::Alert { alert, .. } => {
            let (view, summary) = (&alert.view, alert.summary());
            match view.severity {
                Severity::Info => tracing::info!(alert = &*view.alert, state = view.state.as_str(), "{summary}"),
                severity => tracing::warn!(alert = &*view.alert, state = view.state.as_str(), %severity, "{summary}"),
            }
        }
        other => print::trouble(other).iter().for_each(|line| tracing::warn!("{line}")),
    }
}
