//! The author's path: from a name to a rule that runs.

pub mod baseline;
pub mod build;
pub mod describe;
pub mod lang;
pub mod measure;
pub mod scaffold;

pub use lang::Language;
