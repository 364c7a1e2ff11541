//! One group of alerts for one receiver: what it was told, what it is to be told, and when.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::record::{GroupRecord, MemberRecord, Told};
use crate::effect::{AlertView, Notification, Reason, State};
use crate::labels::Labels;
use crate::route::Node;
use crate::severity::Severity;
use crate::time::Time;

/// A shorter `repeat_interval` counts as this: no group repeats itself without end within one moment.
pub const REPEAT_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// One alert in a group.
#[derive(Clone, Debug)]
pub struct Member {
    pub alert: AlertView,
    pub told: Option<Told>,
}

impl Member {
    pub fn is_firing(&self) -> bool {
        matches!(self.alert.state, State::Firing | State::Unknown)
    }

    /// Whether the receiver knows something else. A new start alone is no news: for the receiver, which was never
    /// told of the end, the alert fires as before.
    fn is_news(&self) -> bool {
        match self.told {
            Some(told) => !self.is_firing() || told.severity != self.alert.severity,
            None => self.is_firing(),
        }
    }

    /// Whether its news may not wait: it grew, or begins as critical or worse.
    fn is_urgent(&self, has_grown: bool) -> bool {
        self.is_firing()
            && self.told.map_or(has_grown || self.alert.severity >= Severity::Critical, |told| {
                told.severity < self.alert.severity
            })
    }
}

/// One group of alerts for one receiver.
#[derive(Clone, Debug)]
pub struct Group {
    pub node: Arc<Node>,
    pub key: Arc<str>,
    /// When it is queued to run.
    pub due: Option<Time>,
    labels: Labels,
    members: BTreeMap<u64, Member>,
    /// How many members are news.
    news: usize,
    opened_at: Time,
    first_sent_at: Option<Time>,
    last_sent_at: Option<Time>,
    changed_at: Option<Time>,
    urgent_at: Option<Time>,
    repeat: u64,
}

impl Group {
    pub fn open(node: Arc<Node>, key: Arc<str>, labels: Labels, now: Time) -> Self {
        Group {
            node,
            key,
            due: None,
            labels,
            members: BTreeMap::new(),
            news: 0,
            opened_at: now,
            first_sent_at: None,
            last_sent_at: None,
            changed_at: None,
            urgent_at: None,
            repeat: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn members(&self) -> impl Iterator<Item = (u64, &Member)> {
        self.members.iter().map(|(fingerprint, member)| (*fingerprint, member))
    }

    /// What the receiver knows of an alert.
    pub fn told(&self, fingerprint: u64) -> Option<Told> {
        self.members.get(&fingerprint)?.told
    }

    /// An alert fires. `has_grown`: it is new here, and was milder where it was told before.
    pub fn fire(&mut self, now: Time, alert: &AlertView, has_grown: bool) {
        let told = self.told(alert.fingerprint);
        let member = Member { alert: alert.clone(), told };
        if member.is_urgent(has_grown) {
            self.urgent_at.get_or_insert(now);
        }
        self.put(now, alert.fingerprint, Some(member));
    }

    /// An alert ended as `ended` says, or left this group. False where the receiver never heard of it: then it is
    /// no longer here. An end that is still to be told stays as it is.
    pub fn end(&mut self, now: Time, ended: &AlertView) -> bool {
        let Some(member) = self.members.get(&ended.fingerprint) else { return false };
        if !member.is_firing() {
            return true;
        }
        let told = member.told;
        // With the severity that the receiver knows, so that it knows what has ended.
        let alert = |told: Told| AlertView { severity: told.severity, ..ended.clone() };
        let member = told.map(|known| Member { alert: alert(known), told });
        self.put(now, ended.fingerprint, member);
        told.is_some()
    }

    fn put(&mut self, now: Time, fingerprint: u64, member: Option<Member>) {
        let is_news = member.as_ref().is_some_and(Member::is_news);
        let old = match member {
            Some(member) => self.members.insert(fingerprint, member),
            None => self.members.remove(&fingerprint),
        };
        self.news += usize::from(is_news);
        self.news -= usize::from(old.is_some_and(|old| old.is_news()));
        if is_news {
            self.changed_at.get_or_insert(now);
        }
        self.forget_if_nothing_changed();
    }

    fn forget_if_nothing_changed(&mut self) {
        if self.news == 0 {
            (self.changed_at, self.urgent_at) = (None, None);
        }
    }

    /// When it has something to send if nothing else happens.
    pub fn next_due(&self) -> Option<Time> {
        if self.is_empty() {
            return None;
        }
        let Some(changed_at) = self.changed_at else { return Some(self.repeat_at()) };
        let regular = match (self.first_sent_at, self.last_sent_at) {
            (Some(first), Some(last)) => self.tick_after(first, last, changed_at),
            _ => self.opened_at + self.node.route.group_wait,
        };
        Some(self.urgent_at.map_or(regular, |urgent| urgent.min(regular)))
    }

    fn repeat_at(&self) -> Time {
        self.last_sent_at.unwrap_or(self.opened_at) + self.node.route.repeat_interval.max(REPEAT_INTERVAL_MIN)
    }

    /// The first whole `group_interval` since `first` that is at or after `changed_at` and after `last`.
    fn tick_after(&self, first: Time, last: Time, changed_at: Time) -> Time {
        let from = changed_at.max(last + Duration::from_millis(1));
        let since = Time::from_millis(i64::try_from(from.since(first).as_millis()).unwrap_or(i64::MAX));
        first + since.align_up(self.node.route.group_interval).since(Time::EPOCH)
    }

    /// The message that is due at `now`, if one is; then the receiver counts as told. `lookup` gives alerts as
    /// they are now. Appends the fingerprints of the alerts whose end was told: they are no longer here.
    pub fn send(
        &mut self,
        now: Time,
        lookup: &dyn Fn(u64) -> Option<AlertView>,
        gone: &mut Vec<u64>,
    ) -> Option<Notification> {
        if self.is_quiet(now) {
            return None;
        }
        self.refresh(lookup);
        if self.is_quiet(now) {
            return None;
        }
        let reason = if self.news == 0 { Reason::Repeat } else { Reason::Change };
        self.repeat = if reason == Reason::Repeat { self.repeat + 1 } else { 0 };
        let notification = self.notification(now, reason);
        self.note_told(now, gone);
        Some(notification)
    }

    fn is_quiet(&self, now: Time) -> bool {
        self.news == 0 && self.repeat_at() > now
    }

    fn refresh(&mut self, lookup: &dyn Fn(u64) -> Option<AlertView>) {
        for (fingerprint, member) in self.members.iter_mut().filter(|(_, member)| member.is_firing()) {
            let fires = |alert: &AlertView| matches!(alert.state, State::Firing | State::Unknown);
            if let Some(alert) = lookup(*fingerprint).filter(fires) {
                member.alert = alert;
            }
        }
        self.news = self.members.values().filter(|member| member.is_news()).count();
        self.forget_if_nothing_changed();
    }

    fn notification(&self, now: Time, reason: Reason) -> Notification {
        let mut alerts: Vec<AlertView> = self.members.values().map(|member| member.alert.clone()).collect();
        alerts.sort_by_key(|alert| {
            (alert.state == State::Resolved, Reverse(alert.severity), alert.starts_at, alert.fingerprint)
        });
        Notification {
            time: now,
            receiver: self.node.route.receiver.clone(),
            group_key: self.key.clone(),
            group_labels: self.labels.clone(),
            alerts,
            reason,
            repeat: self.repeat,
        }
    }

    fn note_told(&mut self, now: Time, gone: &mut Vec<u64>) {
        self.members.retain(|fingerprint, member| {
            if !member.is_firing() {
                gone.push(*fingerprint);
                return false;
            }
            member.told = Some(Told { severity: member.alert.severity, starts_at: member.alert.starts_at });
            true
        });
        self.news = 0;
        self.forget_if_nothing_changed();
        self.first_sent_at.get_or_insert(now);
        self.last_sent_at = Some(now);
    }

    pub fn record(&self) -> GroupRecord {
        let record = |member: &Member| MemberRecord { alert: member.alert.clone(), told: member.told };
        GroupRecord {
            receiver: self.node.route.receiver.clone(),
            group_key: self.key.clone(),
            labels: self.labels.clone(),
            opened_at: self.opened_at,
            first_sent_at: self.first_sent_at,
            last_sent_at: self.last_sent_at,
            changed_at: self.changed_at,
            urgent_at: self.urgent_at,
            repeat: self.repeat,
            members: self.members.values().map(record).collect(),
        }
    }

    pub fn restored(node: Arc<Node>, record: GroupRecord, now: Time) -> Self {
        let mut group = Group {
            first_sent_at: record.first_sent_at,
            last_sent_at: record.last_sent_at,
            changed_at: record.changed_at,
            urgent_at: record.urgent_at,
            repeat: record.repeat,
            ..Group::open(node, record.group_key, record.labels, record.opened_at)
        };
        for MemberRecord { alert, told } in record.members {
            let member = Member { alert, told };
            if member.is_firing() || told.is_some() {
                group.put(now, member.alert.fingerprint, Some(member));
            }
        }
        group
    }
}
