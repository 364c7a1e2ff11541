//! `GET /api/v1/capture?rule=…&seconds=…&calls=…`: answers once the time is over or the calls were made.

use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use watchfire_engine::capture::{CAPTURE_CALLS_MAX, Capture};

use super::{Ask, Question, answer};

/// The longest that a capture may last.
pub const CAPTURE_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How often it is looked whether there are enough calls.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The query.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    rule: String,
    seconds: f64,
    calls: Option<u64>,
}

/// Ends the capture where who asked has gone.
struct EndsWithIt(Option<Ask>);

impl Drop for EndsWithIt {
    fn drop(&mut self) {
        if let Some(ask) = &self.0 {
            let (sender, _) = tokio::sync::oneshot::channel();
            let _ = ask.try_send(crate::commands::Input::Ask(Question::Captured(sender)));
        }
    }
}

/// Captures the calls of a rule.
pub async fn capture(State(ask): State<Ask>, Query(which): Query<Which>) -> Result<Json<Capture>, Response> {
    let refused = |why: String| (StatusCode::BAD_REQUEST, format!("{why}\n")).into_response();
    let span = Duration::try_from_secs_f64(which.seconds).ok().filter(|span| *span <= CAPTURE_TIME_MAX);
    let span = span.ok_or_else(|| refused(format!("seconds must be 0 to {}", CAPTURE_TIME_MAX.as_secs())))?;
    let calls = which.calls.unwrap_or(u64::MAX).min(CAPTURE_CALLS_MAX as u64);
    answer(&ask, |to| Question::Capture(which.rule, to)).await?.map_err(refused)?;
    let mut ends = EndsWithIt(Some(ask.clone()));
    let started = Instant::now();
    let enough = which.calls.is_some();
    while started.elapsed() < span {
        if enough && answer(&ask, Question::CaptureSeen).await? >= calls {
            break;
        }
        tokio::time::sleep(LOOK_EVERY.min(span)).await;
    }
    let captured = answer(&ask, Question::Captured).await?;
    ends.0 = None;
    captured.map(Json).ok_or_else(|| refused("the capture was ended by someone else".to_owned()))
}
