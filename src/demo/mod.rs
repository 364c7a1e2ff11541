//! What `watchfire demo` needs around the engine: a webhook receiver and a mail server of its own, on loopback.

pub mod hook;
pub mod mail;

use std::time::Duration;

use watchfire_engine::{Matcher, Route};

/// The recorded host that the demo replays.
pub const RECORDING: &str = include_str!("host.rec");

/// Everything to the chat; what is critical also to on-call, by webhook and mail.
pub fn routes() -> Route {
    let critical = Route {
        matchers: Matcher::parse("severity=~\"critical|emergency\"").into_iter().collect(),
        ..Route::to("on-call")
    };
    Route { routes: vec![critical], group_interval: Duration::from_secs(60), ..Route::to("chat") }
}
