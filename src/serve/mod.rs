//! The HTTP side of a running Watchfire. It owns nothing: it asks the engine's thread and waits for the answer.

mod captures;
mod guard;
mod metrics;
mod reloads;

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use watchfire_engine::capture::Capture;
use watchfire_engine::config::Public;
use watchfire_engine::{HISTORY_ANSWER_MAX, Page};

pub use metrics::text as metrics_text;
pub use reloads::LastReload;

/// How long the engine's thread may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// How long a reload may take until it is answered: modules that have changed are compiled.
const RELOAD_WAIT: Duration = Duration::from_secs(120);
/// How long `status` waits for a running Watchfire.
const ASK_WAIT: Duration = Duration::from_secs(5);

/// What is asked of the engine's thread.
#[derive(Debug)]
pub enum Question {
    /// How it does.
    Status(oneshot::Sender<Value>),
    /// Its alerts, as Prometheus' `/api/v1/alerts` tells them.
    Alerts(oneshot::Sender<Value>),
    /// Its own metrics, as exposition text.
    Metrics(oneshot::Sender<String>),
    /// What became of alerts.
    History(Page, oneshot::Sender<Result<Value, String>>),
    /// To keep what a rule is asked and answers; why it cannot be.
    Capture(String, oneshot::Sender<Result<(), String>>),
    /// How many calls were seen so far.
    CaptureSeen(oneshot::Sender<u64>),
    /// To end it; what was kept.
    Captured(oneshot::Sender<Option<Capture>>),
    /// To read its configuration again; what is wrong, if anything.
    Reload(oneshot::Sender<Result<(), String>>),
}

/// Where questions go.
pub type Ask = SyncSender<crate::commands::Input>;

/// The routes. Where `listen` is no loopback address only what is public is there.
pub fn app(ask: Ask, is_loopback: bool, public: &[Public]) -> Router {
    let mut app = Router::new();
    if is_loopback || public.contains(&Public::Health) {
        app = app.route("/-/healthy", get(async || "Watchfire is healthy.\n")).route("/-/ready", get(ready));
    }
    if is_loopback || public.contains(&Public::Metrics) {
        app = app.route("/metrics", get(metrics));
    }
    if is_loopback {
        app = app
            .route("/-/reload", post(reload))
            .route("/api/v1/status", get(status))
            .route("/api/v1/alerts", get(alerts))
            .route("/api/v1/history", get(history))
            .route("/api/v1/capture", get(captures::capture))
            .layer(axum::middleware::from_fn(guard::same_site));
    }
    app.with_state(ask)
}

async fn answer<T>(ask: &Ask, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Result<T, Response> {
    answer_within(ANSWER_WAIT, ask, question).await
}

async fn answer_within<T>(
    wait: Duration,
    ask: &Ask,
    question: impl FnOnce(oneshot::Sender<T>) -> Question,
) -> Result<T, Response> {
    let (sender, receiver) = oneshot::channel();
    let gone = || (StatusCode::SERVICE_UNAVAILABLE, "the engine does not answer\n").into_response();
    ask.try_send(crate::commands::Input::Ask(question(sender))).map_err(|_| gone())?;
    match tokio::time::timeout(wait, receiver).await {
        Ok(Ok(answer)) => Ok(answer),
        _ => Err(gone()),
    }
}

async fn ready(State(ask): State<Ask>) -> Result<&'static str, Response> {
    answer(&ask, Question::Status).await.map(|_| "Watchfire is ready.\n")
}

async fn status(State(ask): State<Ask>) -> Result<Json<Value>, Response> {
    answer(&ask, Question::Status).await.map(Json)
}

async fn alerts(State(ask): State<Ask>) -> Result<Json<Value>, Response> {
    let alerts = answer(&ask, Question::Alerts).await?;
    Ok(Json(json!({"status": "success", "data": {"alerts": alerts}})))
}

/// The query of `/api/v1/history`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    since: Option<String>,
    after: Option<i64>,
    limit: Option<usize>,
}

async fn history(State(ask): State<Ask>, Query(which): Query<Which>) -> Result<Json<Value>, Response> {
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response();
    let since = which.since.as_deref().map(watchfire_engine::clock::parse_rfc3339).transpose().map_err(refused)?;
    let limit = which.limit.unwrap_or(HISTORY_ANSWER_MAX);
    let page = Page { since, after: which.after.unwrap_or(0), limit };
    let unreadable = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response();
    let transitions = answer(&ask, |to| Question::History(page, to)).await?.map_err(unreadable)?;
    Ok(Json(json!({"status": "success", "data": {"transitions": transitions}})))
}

async fn metrics(State(ask): State<Ask>) -> Result<Response, Response> {
    let text = answer(&ask, Question::Metrics).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

async fn reload(State(ask): State<Ask>) -> Result<&'static str, Response> {
    match answer_within(RELOAD_WAIT, &ask, Question::Reload).await? {
        Ok(()) => Ok("reloaded templates and routes; receivers, sources, storage and http need a restart\n"),
        Err(why) => Err((StatusCode::BAD_REQUEST, format!("nothing was changed:\n{why}\n")).into_response()),
    }
}

/// Fetches a text from a running Watchfire.
///
/// # Errors
/// Why there is none.
pub async fn get_text(url: &str) -> Result<String, String> {
    watchfire_collector::scrape::get(url, ASK_WAIT).await
}

/// The alerts in the form of Prometheus' `/api/v1/alerts`.
pub fn alerts_json(alerts: &[watchfire_engine::Alert]) -> Value {
    let one = |alert: &watchfire_engine::Alert| {
        let view = &alert.view;
        let own = [("alertname", &*view.alert), ("severity", view.severity.as_str())];
        let labels: serde_json::Map<_, _> =
            view.labels.iter().chain(own).map(|(n, v)| (n.to_owned(), Value::from(v))).collect();
        let annotations: serde_json::Map<_, _> =
            alert.annotations.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect();
        json!({
            "labels": labels,
            "annotations": annotations,
            "state": view.state.as_str(),
            "activeAt": watchfire_engine::clock::rfc3339(view.active_at),
            "value": view.value.to_string(),
            "stale": view.stale,
        })
    };
    alerts.iter().map(one).collect()
}
