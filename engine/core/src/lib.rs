//! The pure heart of Watchfire: what happened goes in, what is to be done comes out.
//!
//! **What is not here:** a clock, I/O, threads, `tokio`, `serde`, WebAssembly. Time is an argument; rules run
//! behind [`rule::Program`]; stored forms live in `watchfire-engine`.

pub mod effect;
pub mod event;
pub mod labels;
pub mod rule;
pub mod sample;
pub mod severity;
pub mod time;

pub use effect::{AlertView, Effect, Notification, Reason, State, Transition};
pub use event::{Condition, Event, Occurrence};
pub use labels::Labels;
pub use rule::{
    Aggregate, Batch, Descriptor, EventStat, Hit, Input, MissingData, Outcome, Program, Reads, RuleFailure, RuleSpec,
    Scope, Target,
};
pub use sample::{Observation, Quality, Sample, Series, SeriesId};
pub use severity::{Cause, PerSeverity, Severity};
pub use time::Time;
