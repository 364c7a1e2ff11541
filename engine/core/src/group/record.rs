//! What groups keep over a restart, as plain values.

use std::sync::Arc;

use crate::effect::AlertView;
use crate::labels::Labels;
use crate::severity::Severity;
use crate::time::Time;

/// What a receiver was told last of an alert that fires as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The severity it was told.
    pub severity: Severity,
    /// The start it was told.
    pub starts_at: Time,
}

/// One alert of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberRecord {
    /// The alert: firing, or resolved and that still to be told.
    pub alert: AlertView,
    /// What the receiver knows; none where it was told nothing yet.
    pub told: Option<Told>,
}

/// One group: what its receiver knows and what it is still to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRecord {
    /// The receiver's name.
    pub receiver: Arc<str>,
    /// [`crate::effect::Notification::group_key`]; one group for each receiver and key.
    pub group_key: Arc<str>,
    /// The labels that its alerts share.
    pub labels: Labels,
    /// When its first alert came.
    pub opened_at: Time,
    /// When its receiver was first told of it: messages about changes follow at whole `group_interval`s from here.
    pub first_sent_at: Option<Time>,
    /// When its receiver was last told of it.
    pub last_sent_at: Option<Time>,
    /// Since when there has been something to tell.
    pub changed_at: Option<Time>,
    /// Since when there has been something to tell at once.
    pub urgent_at: Option<Time>,
    /// How often what was told last has been repeated.
    pub repeat: u64,
    /// Its alerts, by fingerprint.
    pub members: Vec<MemberRecord>,
}

impl GroupRecord {
    /// Puts times after `now`, of a clock that was ahead, at `now`: nothing waits for them.
    pub fn not_after(&mut self, now: Time) {
        self.opened_at = self.opened_at.min(now);
        let times = [&mut self.first_sent_at, &mut self.last_sent_at, &mut self.changed_at, &mut self.urgent_at];
        for time in times.into_iter().flatten() {
            *time = (*time).min(now);
        }
    }
}
