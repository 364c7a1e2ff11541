//! Reads one GPU host: NVML, Prometheus pages, recordings.
//!
//! **What is not here:** rules, alerts, delivery. Of the engine only the core's sample types are known.

pub mod exposition;
pub mod input;
pub mod mapping;
pub mod metrics;
pub mod nvml;
pub mod recording;
pub mod scrape;
pub mod synthetic;
mod table;

pub use table::TableError;
