//! What `watchfire demo` needs around the engine: a webhook receiver and a mail server of its own, on loopback.

pub mod hook;
pub mod mail;

/// The recorded host that the demo replays.
pub const RECORDING: &str = include_str!("host.rec");
