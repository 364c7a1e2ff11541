//! Captures of the calls of a rule that is loaded.

use super::Engine;
use crate::capture::{CAPTURE_FORMAT, Capture, Shared};

/// A capture under way.
pub struct Capturing {
    rule: String,
    shared: Shared,
}

impl Engine {
    /// Begins to keep what a rule (`template/alert`, or the alert's name where only one rule has it) is asked and
    /// answers; [`Engine::captured`] ends it. One rule at a time.
    ///
    /// # Errors
    /// Where there is no such rule, or another capture is under way.
    pub fn capture(&mut self, rule: &str) -> Result<(), String> {
        if let Some(other) = &self.capturing {
            return Err(format!("a capture of {} is under way; one rule at a time", other.rule));
        }
        let rule = self.rule_named(rule)?;
        let shared = Shared::default();
        if !self.core.tap(&rule, Some(Box::new(shared.clone()))) {
            return Err(format!("{rule} is not loaded"));
        }
        self.capturing = Some(Capturing { rule, shared });
        Ok(())
    }

    fn rule_named(&self, rule: &str) -> Result<String, String> {
        let all = self.rule_ids();
        let ends = format!("/{rule}");
        let found: Vec<&String> = all.iter().filter(|id| *id == rule || id.ends_with(&ends)).collect();
        match found.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(format!("there is no rule {rule}; `watchfire status --json` lists all")),
            _ => Err(format!("several rules are named {rule}; say one of them as TEMPLATE/{rule}")),
        }
    }

    /// How many calls the capture under way has seen.
    pub fn calls_captured(&self) -> u64 {
        self.capturing.as_ref().map_or(0, |capturing| capturing.shared.seen())
    }

    /// Ends the capture; none where none is under way.
    pub fn captured(&mut self) -> Option<Capture> {
        let Capturing { rule, shared } = self.capturing.take()?;
        let made = self.made.get(&rule);
        let cut_short = shared.is_alone();
        self.core.tap(&rule, None);
        let (calls_dropped, calls) = shared.take();
        Some(Capture {
            watchfire_capture: CAPTURE_FORMAT,
            module: made.map(|made| made.module.clone()).unwrap_or_default(),
            settings: made.map(|made| made.settings.clone()).unwrap_or_default(),
            inputs: self.core.inputs_of(&rule),
            rule,
            calls_dropped,
            cut_short,
            calls,
        })
    }
}
