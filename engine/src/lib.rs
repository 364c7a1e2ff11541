//! The alerting engine of Watchfire, for agents that embed it and for Watchfire's own binary, which uses nothing
//! but this interface.
//!
//! An agent builds an [`Engine`] from templates and receivers, pushes what it reads, lets time pass, and reads the
//! alerts, or lets the engine deliver them.
//!
//! ```
//! use std::time::Duration;
//! use watchfire_engine::{Engine, Labels, Time};
//!
//! let mut engine = Engine::builder().shipped_templates(&["gpu-thermal"]).build()?;
//! let gpu = Labels::new([("host", "h1"), ("gpu", "0"), ("uuid", "GPU-0")]);
//! let every = Duration::from_secs(15);
//! let series = engine.series("gpu_temperature_celsius", gpu, every).unwrap();
//! for second in (0..400).step_by(15) {
//!     let now = Time::from_millis(second * 1000);
//!     engine.push(now, &[(series, 86.0)]);
//!     engine.advance(now);
//! }
//! assert_eq!(engine.alerts()[0].alert_name(), "GpuTooHot");
//! # Ok::<(), watchfire_engine::BuildError>(())
//! ```
//!
//! # What it asks of its host
//! - **Time** is an argument: the engine reads no clock. Call [`Engine::advance`] at
//!   [`Engine::next_deadline`] or more often.
//! - **Threads:** all judging happens on the caller's thread, which needs 1 MiB of stack left. The sandbox keeps one
//!   thread that counts time; delivery, where receivers are given, one more with a runtime of its own. No runtime is
//!   asked of the caller.
//! - **Signals:** none is handled, unless [`Builder::signal_handlers`] allows it for speed.
//! - **Globals:** none. Any number of engines run side by side.

mod bless;
mod builder;
pub mod capture;
mod catalog;
pub mod clock;
pub mod config;
mod deliver;
mod engine;
mod load;
mod lock;
pub mod module_store;
mod output;
mod pins;
pub mod scenarios;
mod shadow;
mod status;
mod store;

pub use watchfire_core::engine::Reloaded;
pub use watchfire_core::matcher::Matcher;
pub use watchfire_core::route::{GroupBy, Route};
pub use watchfire_core::text::printable;
pub use watchfire_core::{
    Aggregate, Batch, Cause, Condition, Descriptor, Input, Labels, Observation, Occurrence, Outcome, Program, Reads,
    RuleFailure, Sample, Series, SeriesId, Severity, State, Time,
};
pub use watchfire_door as door;
pub use watchfire_notify as notify;
pub use watchfire_sandbox as sandbox;

pub use builder::{BuildError, Builder};
pub use catalog::{Catalog, Given, TemplateSource};
pub use engine::{Engine, Prepared, Reader};
pub use load::{at as templates_at, read_file, shipped as shipped_templates};
pub use output::{Alert, Output};
pub use pins::{LOCK_FILE, LockFile, PinDrift};
pub use status::{AlertReport, RuleReport, ShadowDifference, ShadowRule, ShadowStatus, Status, TemplateReport};
pub use store::{HISTORY_ANSWER_MAX, HISTORY_KEPT_FOR, HISTORY_ROWS_MAX, HistoryRow, Page};
