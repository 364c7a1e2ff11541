//! Groups of alerts: what each receiver was told, and when it is told next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::effect::{AlertView, Notification, Reason, State};
use crate::labels::Labels;
use crate::route::{Route, RouteTree};
use crate::severity::Severity;
use crate::time::Time;

/// What a receiver was told of one alert of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The alert as it was last seen; what is told of it where it has ended.
    pub view: AlertView,
    /// The severity that the receiver was told it fires with; none = it was told nothing, or that it ended.
    pub told: Option<Severity>,
}

/// A group, as it is kept over a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRecord {
    /// See [`Notification::group_key`], after the receiver's name and a space.
    pub key: Arc<str>,
    /// The receiver.
    pub receiver: Arc<str>,
    /// [`Notification::group_key`].
    pub group_key: Arc<str>,
    /// The labels that make the group.
    pub group_labels: Labels,
    /// Its alerts, by fingerprint.
    pub members: BTreeMap<u64, Member>,
    /// When the receiver was last told; none = never.
    pub told_at: Option<Time>,
    /// How often the same was told again.
    pub repeat: u64,
    /// When there is something to tell, at the latest.
    pub due: Option<Time>,
    /// See [`Route::group_interval`].
    pub group_interval: Duration,
    /// See [`Route::repeat_interval`].
    pub repeat_interval: Duration,
}

/// All groups of one engine.
#[derive(Debug)]
pub struct Groups {
    routes: RouteTree,
    groups: BTreeMap<Arc<str>, GroupRecord>,
    changed: Vec<Arc<str>>,
}

impl Groups {
    /// No groups yet.
    pub fn new(routes: RouteTree) -> Self {
        Groups { routes, groups: BTreeMap::new(), changed: Vec::new() }
    }

    /// Puts other routes in place. Groups that no route leads to any more live on until their alerts end.
    pub fn set_routes(&mut self, routes: RouteTree) {
        self.routes = routes;
    }

    /// Takes in that an alert began to fire, changed its severity or ended, and tells at once what may not wait:
    /// firings of critical severity or worse, and escalations.
    pub fn on_change(&mut self, now: Time, view: &AlertView, out: &mut Vec<Notification>) {
        let mut touched = self.groups_of(view);
        if view.state == State::Firing {
            let labels = routing_labels(view);
            let ways = self.routes.ways(&labels);
            let keys: Vec<Arc<str>> = ways.iter().map(|way| key_of(&way.route.receiver, &way.group_key)).collect();
            touched.extend(keys.iter().filter(|key| !touched.contains(key)).cloned().collect::<Vec<_>>());
            for (key, way) in keys.into_iter().zip(ways) {
                let new = || GroupRecord::new(key.clone(), way.route, way.group_key.clone(), way.group_labels.clone());
                self.groups.entry(key.clone()).or_insert_with(new).see(now, view, way.route.group_wait);
            }
        }
        for key in touched {
            self.update(now, &key, view, out);
        }
    }

    fn groups_of(&self, view: &AlertView) -> Vec<Arc<str>> {
        let holding = self.groups.values().filter(|group| group.members.contains_key(&view.fingerprint));
        holding.map(|group| group.key.clone()).collect()
    }

    fn update(&mut self, now: Time, key: &Arc<str>, view: &AlertView, out: &mut Vec<Notification>) {
        let Some(group) = self.groups.get_mut(key) else { return };
        group.see(now, view, Duration::ZERO);
        if group.is_urgent(view) {
            out.extend(group.tell(now, Reason::Change));
        }
        self.settle(key);
    }

    /// Drops a group that has nothing left, and notes that the group changed.
    fn settle(&mut self, key: &Arc<str>) {
        if self.groups.get(key).is_some_and(|group| group.members.is_empty()) {
            self.groups.remove(key);
        }
        self.changed.push(key.clone());
    }

    /// When a group has something to tell next.
    pub fn due(&self) -> Option<Time> {
        self.groups.values().filter_map(|group| group.due).min()
    }

    /// Tells what is due at `now`. `alert` gives the alert with a fingerprint as it is now, or none where it has
    /// ended.
    pub fn run(&mut self, now: Time, alert: &dyn Fn(u64) -> Option<AlertView>, out: &mut Vec<Notification>) {
        let due: Vec<Arc<str>> =
            self.groups.values().filter(|group| group.due.is_some_and(|due| due <= now)).map(|g| g.key.clone()).collect();
        for key in due {
            if let Some(group) = self.groups.get_mut(&key) {
                group.refresh(now, alert);
                let reason = if group.has_news() { Reason::Change } else { Reason::Repeat };
                out.extend(group.tell(now, reason));
            }
            self.settle(&key);
        }
    }

    /// The groups that changed since the last call: their record, or none where they are gone.
    pub fn take_changed(&mut self) -> Vec<(Arc<str>, Option<GroupRecord>)> {
        let mut keys = std::mem::take(&mut self.changed);
        keys.sort();
        keys.dedup();
        keys.into_iter().map(|key| (key.clone(), self.groups.get(&key).cloned())).collect()
    }

    /// Puts back what was kept over a restart. Nothing is told again; an alert that has ended meanwhile without its
    /// rule's word is told to have ended at the group's next deadline.
    pub fn restore(&mut self, records: Vec<GroupRecord>) {
        self.groups.extend(records.into_iter().map(|record| (record.key.clone(), record)));
    }
}

fn key_of(receiver: &str, group_key: &str) -> Arc<str> {
    format!("{receiver} {group_key}").into()
}

/// The labels by which an alert finds its way.
pub fn routing_labels(view: &AlertView) -> Labels {
    view.labels.with(&Labels::new([("alertname", &*view.alert), ("severity", view.severity.as_str())]))
}

impl GroupRecord {
    fn new(key: Arc<str>, route: &Route, group_key: Arc<str>, group_labels: Labels) -> Self {
        GroupRecord {
            key,
            receiver: route.receiver.clone(),
            group_key,
            group_labels,
            members: BTreeMap::new(),
            told_at: None,
            repeat: 0,
            due: None,
            group_interval: route.group_interval,
            repeat_interval: route.repeat_interval,
        }
    }

    /// Takes in an alert as it is now, and sets when the receiver is told at the latest. An alert that ended
    /// before anyone was told of it is forgotten.
    fn see(&mut self, now: Time, view: &AlertView, group_wait: Duration) {
        let member = self.members.entry(view.fingerprint).or_insert_with(|| Member { view: view.clone(), told: None });
        member.view = view.clone();
        if member.told.is_none() && view.state == State::Resolved {
            self.members.remove(&view.fingerprint);
        }
        self.plan(now, group_wait);
    }

    fn plan(&mut self, now: Time, group_wait: Duration) {
        let news = match self.told_at {
            _ if !self.has_news() => None,
            None => Some(self.due.unwrap_or(now + group_wait)),
            Some(told) => Some((told + self.group_interval).max(now)),
        };
        let repeat = self.told_at.filter(|_| self.members.values().any(Member::is_told)).map(|told| told + self.repeat_interval);
        self.due = [news, repeat].into_iter().flatten().min();
    }

    fn has_news(&self) -> bool {
        self.members.values().any(Member::has_news)
    }

    /// Whether the receiver must hear of this alert at once.
    fn is_urgent(&self, view: &AlertView) -> bool {
        let told = self.members.get(&view.fingerprint).and_then(|member| member.told);
        let fires = view.state == State::Firing;
        fires && told < Some(view.severity) && (view.severity >= Severity::Critical || told.is_some())
    }

    fn refresh(&mut self, now: Time, alert: &dyn Fn(u64) -> Option<AlertView>) {
        for (fingerprint, member) in &mut self.members {
            match alert(*fingerprint) {
                Some(view) => member.view = view,
                None if member.view.state != State::Resolved => member.end(now),
                None => {}
            }
        }
        self.members.retain(|_, member| member.told.is_some() || member.view.state != State::Resolved);
    }

    /// The message about the group as it is; none where there is nothing to say.
    fn tell(&mut self, now: Time, reason: Reason) -> Option<Notification> {
        if self.members.is_empty() {
            self.due = None;
            return None;
        }
        self.repeat = if reason == Reason::Repeat { self.repeat + 1 } else { 0 };
        let mut alerts: Vec<AlertView> = self.members.values().map(|member| member.view.clone()).collect();
        alerts.sort_by_key(|view| (view.state == State::Resolved, std::cmp::Reverse(view.severity), view.starts_at));
        for member in self.members.values_mut() {
            member.told = (member.view.state != State::Resolved).then_some(member.view.severity);
        }
        self.members.retain(|_, member| member.is_told());
        self.told_at = Some(now);
        self.plan(now, Duration::ZERO);
        Some(Notification {
            time: now,
            receiver: self.receiver.clone(),
            group_key: self.group_key.clone(),
            group_labels: self.group_labels.clone(),
            alerts,
            reason,
            repeat: self.repeat,
        })
    }
}

impl Member {
    fn is_told(&self) -> bool {
        self.told.is_some()
    }

    fn has_news(&self) -> bool {
        let now = (self.view.state != State::Resolved).then_some(self.view.severity);
        now != self.told
    }

    fn end(&mut self, now: Time) {
        self.view = AlertView { state: State::Resolved, ends_at: Some(now), ..self.view.clone() };
    }
}

#[cfg(test)]
mod tests;
