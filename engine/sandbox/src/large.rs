//! Limits of modules that bring a runtime of their own: an interpreter, or a garbage collector.

use std::borrow::Cow;
use std::time::Duration;

use crate::{Limits, manifest};

/// The word by which a manifest asks for them.
const LARGE: &str = "large";
/// The language whose interpreter alone takes tens of MiB.
const PYTHON: &str = "python";

/// What holds for a module: more where its manifest says `runtime: large`, never less than for others.
pub fn limits<'a>(module: &[u8], standard: &'a Limits) -> Cow<'a, Limits> {
    match manifest::read(module) {
        Ok(Some(manifest)) if manifest.runtime == LARGE => Cow::Owned(large(standard, manifest.language == PYTHON)),
        _ => Cow::Borrowed(standard),
    }
}

fn large(standard: &Limits, is_python: bool) -> Limits {
    let memory = if is_python { 128 << 20 } else { 64 << 20 };
    Limits {
        module_bytes: standard.module_bytes.max(32 << 20),
        compile: standard.compile.max(Duration::from_secs(120)),
        memory_bytes: standard.memory_bytes.max(memory),
        table_elements: standard.table_elements.max(100_000),
        steps_base: standard.steps_base.max(2_000_000),
        // A hit alone takes QuickJS 27,000: when every row has one the rule must not fail.
        steps_per_row: standard.steps_per_row.max(60_000),
        steps_max: standard.steps_max.max(400_000_000),
        steps_init: standard.steps_init.max(400_000_000),
        wall: standard.wall.max(Duration::from_secs(1)),
        wall_init: standard.wall_init.max(Duration::from_secs(5)),
        ..standard.clone()
    }
}
