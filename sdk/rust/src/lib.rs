//! Write Watchfire rules in Rust.
//!
//! A rule is a struct with settings and one [`Rule::evaluate`] over rows. It compiles natively, so that
//! `cargo test` tests it, and with [`export!`] to a core module for `wasm32-unknown-unknown`, which Watchfire
//! turns into a component when it loads it: no further tool is needed.
//!
//! ```
//! use watchfire_sdk::prelude::*;
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Settings { limit: f64 }
//!
//! struct Hot { limit: f64 }
//!
//! impl Rule for Hot {
//!     type Settings = Settings;
//!     const NAME: &'static str = "hot";
//!     const VERSION: &'static str = "0.1.0";
//!
//!     fn new(settings: Settings) -> Result<Self, Vec<SettingError>> {
//!         Ok(Hot { limit: settings.limit })
//!     }
//!     fn shape(_: Option<&Self>) -> Shape {
//!         Shape::of(Scope::Gpu).input(last("gpu_temperature_celsius"))
//!     }
//!     fn evaluate(&mut self, rows: &Rows<'_>, report: &mut Report) -> Result<(), String> {
//!         for (row, value) in rows.values(0) {
//!             if value > self.limit {
//!                 report.hit(row, Level::Warning, Level::Warning, value);
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let hits = watchfire_sdk::testing::run::<Hot>(r#"{"limit": 85}"#, &[&[60.0, 90.0]]).unwrap().hits;
//! assert_eq!((hits.len(), hits[0].row), (1, 1));
//! ```

#[allow(clippy::all, clippy::too_many_lines, missing_docs, unsafe_op_in_unsafe_fn, clippy::allow_attributes_without_reason, clippy::unwrap_used, clippy::panic, reason = "generated")]
#[rustfmt::skip]
pub mod bindings;
pub mod guest;
mod inputs;
mod report;
mod rows;
mod rule;
pub mod testing;

pub use bindings::watchfire::rule::types::{
    Aggregate, Batch, Cause, Descriptor, EventInput, EventStat, Hit, Input, Level, MetricInput, Outcome, Reads, Scope,
    SettingError, Target,
};
pub use inputs::{events, last, window};
pub use report::Report;
pub use rows::Rows;
pub use rule::{CONTRACT, Rule, Shape};

/// What a rule's file needs.
pub mod prelude {
    pub use crate::{
        Aggregate, Cause, EventStat, Input, Level, Report, Rows, Rule, Scope, SettingError, Shape, Target, events,
        last, window,
    };
}
