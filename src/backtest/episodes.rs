//! Alerts as spans of time.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use watchfire_engine::{Output, Severity, State, Time, clock};

/// The most episodes that are kept; of more only the number is.
pub const EPISODES_MAX: usize = 1_000_000;

/// One alert, from its firing to its end.
#[derive(Clone, Debug, Serialize)]
pub struct Episode {
    /// Its rule: `template/alert`.
    pub rule: String,
    /// Its name.
    pub alert: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The worst that it was.
    #[serde(serialize_with = "word")]
    pub severity: Severity,
    /// The cause that it named.
    pub cause: Option<String>,
    /// When it began to fire.
    #[serde(serialize_with = "rfc3339")]
    pub start: Time,
    /// When it ended; the end of the input where it was still firing.
    #[serde(serialize_with = "rfc3339")]
    pub end: Time,
    /// Whether it was still firing at the end of the input.
    pub open: bool,
    /// The value that it began with.
    pub value: f64,
}

fn word<S: serde::Serializer>(severity: &Severity, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(severity.as_str())
}

fn rfc3339<S: serde::Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&clock::rfc3339(*time))
}

/// Episodes as they are gathered from outputs.
#[derive(Debug, Default)]
pub struct Episodes {
    open: HashMap<(String, u64), Episode>,
    done: Vec<Episode>,
    /// Episodes that were left out because there were too many.
    pub left_out: u64,
    /// Messages by receiver.
    pub messages: BTreeMap<String, u64>,
    /// Failures by rule.
    pub failures: BTreeMap<String, u64>,
}

impl Episodes {
    /// Takes in what happened.
    pub fn take(&mut self, output: &Output) {
        match output {
            Output::Alert { time, alert, .. } => self.transition(*time, alert),
            Output::Message(message) => *self.messages.entry(message.receiver.clone()).or_default() += 1,
            Output::RuleFailed { rule, .. } => *self.failures.entry(rule.clone()).or_default() += 1,
            Output::RuleRecovered { .. } | Output::StateMigrated { .. } => {}
        }
    }

    fn transition(&mut self, time: Time, alert: &watchfire_engine::Alert) {
        let view = &alert.view;
        let rule = format!("{}/{}", view.template, view.alert);
        let key = (rule.clone(), view.fingerprint);
        match view.state {
            State::Firing => {
                let episode = self.open.entry(key).or_insert_with(|| Episode {
                    rule,
                    alert: view.alert.to_string(),
                    labels: view.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                    severity: view.severity,
                    cause: view.cause.map(|cause| cause.to_string()),
                    start: time,
                    end: time,
                    open: true,
                    value: view.value,
                });
                episode.severity = episode.severity.max(view.severity);
            }
            State::Resolved => {
                if let Some(episode) = self.open.remove(&key) {
                    self.keep(Episode { end: time, open: false, ..episode });
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, episode: Episode) {
        if self.done.len() < EPISODES_MAX { self.done.push(episode) } else { self.left_out += 1 }
    }

    /// All of them, by time; what still fires ends at `end`.
    pub fn finish(mut self, end: Time) -> (Vec<Episode>, Self) {
        for (_, episode) in std::mem::take(&mut self.open) {
            self.keep(Episode { end, ..episode });
        }
        let mut done = std::mem::take(&mut self.done);
        done.sort_by(|a, b| (a.start, &a.rule, &a.labels).cmp(&(b.start, &b.rule, &b.labels)));
        (done, self)
    }
}
