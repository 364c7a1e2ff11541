//! What the engine says happened, with the texts for people.

use watchfire_core::record::Migration;
use watchfire_core::{AlertView, RuleFailure, State, Time};
use watchfire_notify::message::Message;

/// One alert with its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The alert.
    pub view: AlertView,
    /// Its rendered annotations: name and text.
    pub annotations: Vec<(String, String)>,
}

impl Alert {
    /// The alert's name.
    pub fn alert_name(&self) -> &str {
        &self.view.alert
    }

    /// The text of one annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.iter().find(|(found, _)| found == name).map(|(_, text)| text.as_str())
    }

    /// The summary, or the evidence, or the alert's name.
    pub fn summary(&self) -> &str {
        self.annotation("summary").or(self.view.note.as_deref()).unwrap_or(&self.view.alert)
    }
}

/// What happened within one call of the engine, in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// An alert changed.
    Alert {
        /// When.
        time: Time,
        /// What it is now.
        alert: Alert,
        /// What it was.
        from: State,
    },
    /// A receiver is to be told; where the engine delivers, it is on its way.
    Message(Message),
    /// A rule's call failed.
    RuleFailed {
        /// `template/alert`.
        rule: String,
        /// Why.
        failure: RuleFailure,
        /// When it is tried again.
        retry_at: Time,
        /// Whether it is now quarantined.
        quarantined: bool,
    },
    /// A rule met numbers that another version of it kept.
    StateMigrated {
        /// `template/alert`.
        rule: String,
        /// What became of them.
        migration: Migration,
    },
    /// A rule that had failed answers again.
    RuleRecovered {
        /// `template/alert`.
        rule: String,
    },
}
