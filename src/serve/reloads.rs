//! What became of the last reload.

use std::fmt::Write as _;

use serde::Serialize;
use watchfire_engine::{Reloaded, Time, clock};

/// The last reload. At the start the configuration counts as loaded well.
#[derive(Clone, Debug, Serialize)]
pub struct LastReload {
    /// When, RFC 3339.
    pub at: String,
    /// Why it was refused, if it was; what ran before goes on.
    pub error: Option<String>,
    /// Rules that were not touched, changed, added and taken away, by the last one that was not refused.
    pub rules: [usize; 4],
    #[serde(skip)]
    good_at: Time,
}

impl LastReload {
    /// The start.
    pub fn start(now: Time) -> Self {
        LastReload { at: clock::rfc3339(now), error: None, rules: [0; 4], good_at: now }
    }

    /// Notes one.
    pub fn note(&mut self, now: Time, done: &Result<Reloaded, String>) {
        self.at = clock::rfc3339(now);
        self.error = done.as_ref().err().cloned();
        if let Ok(done) = done {
            self.rules = [done.kept, done.rebuilt, done.added, done.removed];
            self.good_at = now;
        }
    }

    /// In Prometheus' own words.
    pub fn metrics(&self, out: &mut String) {
        let good = u8::from(self.error.is_none());
        let at = self.good_at.as_millis() as f64 / 1000.0;
        for (name, help, value) in [
            ("successful", "1 where the last reload was taken.", f64::from(good)),
            ("success_timestamp_seconds", "When a configuration was last taken (Unix time).", at),
        ] {
            let name = format!("watchfire_config_last_reload_{name}");
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
    }
}
