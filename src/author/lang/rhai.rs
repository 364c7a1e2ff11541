//! Rhai: no tool is needed.

use super::Language;

/// Rhai.
pub const LANGUAGE: Language = Language {
    name: "rhai",
    files: &[("__NAME__.rhai", include_str!("../scaffold/rhai/module.rhai"))],
    source: "__NAME__.rhai",
    marker: "__NAME__.rhai",
    build: None,
    runtime: "",
    tests: "",
};
