//! The pure heart of Watchfire: what happened goes in, what is to be done comes out.
//!
//! **What is not here:** a clock, I/O, threads, `tokio`, `serde`, WebAssembly. Time is an argument; rules run
//! behind [`rule::Program`]; stored forms live in `watchfire-engine`.

pub mod alert;
mod column;
pub mod conditions;
pub mod effect;
pub mod engine;
pub mod event;
pub mod group;
pub mod happenings;
pub mod health;
mod judge;
pub mod labels;
pub mod limit;
pub mod matcher;
mod order;
pub mod record;
pub mod route;
mod row_alert;
pub mod rule;
pub mod sample;
mod schedule;
pub mod series;
pub mod severity;
pub mod tap;
pub mod targets;
pub mod text;
pub mod time;
pub mod window;

pub use effect::{AlertView, Effect, Notification, Reason, State, Transition};
pub use event::{Condition, Event, Occurrence};
pub use judge::Counts;
pub use labels::Labels;
pub use limit::LimitHit;
pub use order::LoadError;
pub use rule::{
    Aggregate, Batch, Descriptor, EventStat, Hit, Input, MissingData, Outcome, Program, Reads, RuleFailure, RuleSpec,
    Scope, Target, Usage,
};
pub use sample::{Observation, Quality, Sample, Series, SeriesId};
pub use severity::{Cause, PerSeverity, Severity};
pub use tap::{Judged, Tap};
pub use time::Time;
