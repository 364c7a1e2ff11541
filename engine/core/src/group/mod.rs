//! Groups of alerts: who is told what, and when. Pure state: nothing is sent here.
//!
//! A group is one receiver's share of the alerts that took the same route and have the same group labels.
//!
//! - A new group waits for `group_wait`; changes after its first message go out at whole `group_interval`s from it;
//!   a group that fires and does not change is repeated after `repeat_interval`.
//! - An alert that begins as critical or worse, or that grows, goes out in the same step, whatever the group waits
//!   for; a step's urgent alerts share one message.
//! - An end is told once, and only where the receiver was told that the alert fires. An alert that ends and fires
//!   again before the end was told is no news, unless it is worse; its new start goes with the next message.
//! - An alert that takes another route than before, as when its severity changes, ends in the groups that it leaves
//!   (`reason` [`MOVED`], with the severity told there): a receiver that was told that an alert fires is told the
//!   end of it, and only the receivers on the new route know how it goes on.
//! - Nothing changed, nothing sent. A group without alerts is no more. So memory is bounded by the alerts that
//!   fire times the routes that take each.

mod one;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use one::REPEAT_INTERVAL_MIN;
pub use record::{GroupRecord, MemberRecord, Told};

use crate::effect::{AlertView, Notification, State};
use crate::labels::Labels;
use crate::route::{Node, Route, RouteTree, routing_labels};
use crate::time::Time;
use one::Group;

/// Why an alert ended in a group that it left while it goes on elsewhere.
pub const MOVED: &str = "routed elsewhere";
/// Why an alert ended that was there before a restart and that nothing reports any more.
pub const NOT_BACK: &str = "not reported since the restart";
/// Why an alert ended whose rule is gone.
pub const RULE_REMOVED: &str = "rule removed";
/// Alerts that were told before a restart have this long to be reported again before they count as ended.
pub const RESTORED_GRACE: Duration = Duration::from_secs(60);

/// Receiver and group key.
type Id = Arc<str>;

/// All groups.
#[derive(Debug)]
pub struct Groups {
    tree: RouteTree,
    groups: BTreeMap<Id, Group>,
    /// The groups that hold an alert, by its fingerprint.
    homes: HashMap<u64, Vec<Id>>,
    queue: BTreeSet<(Time, Id)>,
    changed: BTreeSet<Id>,
    /// When restored alerts that nothing reports count as ended.
    sweep_at: Option<Time>,
}

/// A group that an alert belongs to.
struct Place {
    id: Id,
    key: Arc<str>,
    node: Arc<Node>,
    labels: Labels,
}

impl Groups {
    /// No alerts yet.
    pub fn new(tree: RouteTree) -> Self {
        Groups {
            tree,
            groups: BTreeMap::new(),
            homes: HashMap::new(),
            queue: BTreeSet::new(),
            changed: BTreeSet::new(),
            sweep_at: None,
        }
    }

    /// Takes in that an alert fires, fires with another severity, or is resolved; pending and inactive alerts are
    /// ignored, and telling the same again changes nothing. Where the news is urgent, [`Groups::due`] is `now` at the
    /// latest: call [`Groups::run`] at the end of the same step.
    ///
    /// Costs a look at each route tried, and O(log groups) for each group the alert is in.
    pub fn on_change(&mut self, now: Time, alert: &AlertView) {
        match alert.state {
            State::Firing | State::Unknown => self.fire(now, alert),
            State::Resolved => self.end(now, alert),
            State::Pending | State::Inactive => {}
        }
    }

    fn fire(&mut self, now: Time, alert: &AlertView) {
        let places = self.places(alert);
        let old = self.homes.remove(&alert.fingerprint).unwrap_or_default();
        let told = old.iter().filter_map(|id| self.groups.get(id)?.told(alert.fingerprint));
        let has_grown = told.map(|told| told.severity).max().is_some_and(|told| told < alert.severity);
        let mut homes: Vec<Id> = places.iter().map(|place| place.id.clone()).collect();
        for id in old.into_iter().filter(|id| !places.iter().any(|place| place.id == *id)) {
            if self.leave(now, &id, alert) {
                homes.push(id);
            }
        }
        self.homes.insert(alert.fingerprint, homes);
        for place in places {
            self.join(now, place, alert, has_grown);
        }
    }

    /// The groups that a firing alert belongs to. Of two routes with the same receiver and matchers one is enough.
    fn places(&self, alert: &AlertView) -> Vec<Place> {
        let labels = routing_labels(alert);
        let mut places: Vec<Place> = Vec::new();
        for node in self.tree.matching(&labels) {
            let group_labels = node.route.group_by.of(&labels);
            let key: Arc<str> = format!("{}:{group_labels}", node.key).into();
            let id = id_of(&node.route.receiver, &key);
            if !places.iter().any(|place| place.id == id) {
                places.push(Place { id, key, node: node.clone(), labels: group_labels });
            }
        }
        places
    }

    fn join(&mut self, now: Time, place: Place, alert: &AlertView, has_grown: bool) {
        let Place { id, key, node, labels } = place;
        let group = self.groups.entry(id.clone()).or_insert_with(|| Group::open(node.clone(), key, labels, now));
        group.node = node;
        group.fire(now, alert, has_grown);
        self.requeue(&id);
    }

    /// True where the end is still to be told.
    fn leave(&mut self, now: Time, id: &Id, alert: &AlertView) -> bool {
        let ended = ended(alert, now, MOVED);
        let stays = self.groups.get_mut(id).is_some_and(|group| group.end(now, &ended));
        self.requeue(id);
        stays
    }

    fn end(&mut self, now: Time, alert: &AlertView) {
        let old = self.homes.remove(&alert.fingerprint).unwrap_or_default();
        let mut homes = Vec::new();
        for id in old {
            if self.groups.get_mut(&id).is_some_and(|group| group.end(now, alert)) {
                homes.push(id.clone());
            }
            self.requeue(&id);
        }
        if !homes.is_empty() {
            self.homes.insert(alert.fingerprint, homes);
        }
    }

    /// Puts a group where it belongs in the queue after a change; an empty one goes.
    fn requeue(&mut self, id: &Id) {
        let Some(group) = self.groups.get_mut(id) else { return };
        let due = group.next_due();
        let was = std::mem::replace(&mut group.due, due);
        let is_empty = group.is_empty();
        if was != due {
            self.queue.extend(due.map(|due| (due, id.clone())));
            if let Some(was) = was {
                self.queue.remove(&(was, id.clone()));
            }
        }
        if is_empty {
            self.groups.remove(id);
        }
        self.changed.insert(id.clone());
    }

    /// Whether a group holds an alert.
    pub fn holds(&self, fingerprint: u64) -> bool {
        self.homes.contains_key(&fingerprint)
    }

    /// When [`Groups::run`] has something to do next.
    pub fn due(&self) -> Option<Time> {
        let first = self.queue.first().map(|(due, _)| *due);
        first.into_iter().chain(self.sweep_at).min()
    }

    /// Appends the messages that are due at `now`. `lookup` gives a firing alert as it is now, so that a message
    /// shows its newest value; it is asked for the alerts of the groups that are due.
    ///
    /// Costs O(n log n) for each message of n alerts.
    pub fn run(&mut self, now: Time, lookup: &dyn Fn(u64) -> Option<AlertView>, out: &mut Vec<Notification>) {
        if self.sweep_at.is_some_and(|at| at <= now) {
            self.sweep_at = None;
            self.sweep(now, lookup);
        }
        let due: Vec<Id> = self.queue.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect();
        for id in due {
            out.extend(self.send(now, &id, lookup));
        }
    }

    fn send(&mut self, now: Time, id: &Id, lookup: &dyn Fn(u64) -> Option<AlertView>) -> Option<Notification> {
        let mut gone = Vec::new();
        let sent = self.groups.get_mut(id)?.send(now, lookup, &mut gone);
        for fingerprint in gone {
            self.forget_home(fingerprint, id);
        }
        self.requeue(id);
        sent
    }

    fn forget_home(&mut self, fingerprint: u64, id: &Id) {
        let Some(homes) = self.homes.get_mut(&fingerprint) else { return };
        homes.retain(|home| home != id);
        if homes.is_empty() {
            self.homes.remove(&fingerprint);
        }
    }

    /// Ends the alerts that nothing reports.
    fn sweep(&mut self, now: Time, lookup: &dyn Fn(u64) -> Option<AlertView>) {
        for alert in self.firing().into_values().filter(|alert| lookup(alert.fingerprint).is_none()) {
            self.end(now, &ended(&alert, now, NOT_BACK));
        }
    }

    /// The alerts that fire, by fingerprint.
    fn firing(&self) -> BTreeMap<u64, AlertView> {
        let members = self.groups.values().flat_map(Group::members);
        members.filter(|(_, member)| member.is_firing()).map(|(key, member)| (key, member.alert.clone())).collect()
    }

    /// Ends the alerts of a rule that is gone, as far as their end was not yet told by [`Groups::on_change`].
    pub fn forget_rule(&mut self, now: Time, rule: &str) {
        for alert in self.firing().into_values().filter(|alert| *alert.rule == *rule) {
            self.end(now, &ended(&alert, now, RULE_REMOVED));
        }
    }

    /// Puts other routes in place. Groups that are on both keep what was told; alerts that take another route now
    /// move; what a receiver without a route was told is forgotten, for there is nobody left to tell.
    pub fn set_routes(&mut self, now: Time, tree: RouteTree) {
        self.tree = tree;
        self.reroute(now);
    }

    fn reroute(&mut self, now: Time) {
        let receivers = self.tree.receivers();
        let lost: Vec<Id> = self
            .groups
            .iter()
            .filter(|(_, group)| !receivers.contains(&group.node.route.receiver))
            .map(|(id, _)| id.clone())
            .collect();
        let firing = self.firing();
        for id in lost {
            self.drop_group(&id);
        }
        for group in self.groups.values_mut() {
            if let Some(node) = node_of(&self.tree, &group.node.route.receiver, &group.key) {
                group.node = node;
            }
        }
        for alert in firing.values() {
            self.fire(now, alert);
        }
        for id in self.groups.keys().cloned().collect::<Vec<_>>() {
            self.requeue(&id);
        }
    }

    fn drop_group(&mut self, id: &Id) {
        let Some(group) = self.groups.remove(id) else { return };
        if let Some(due) = group.due {
            self.queue.remove(&(due, id.clone()));
        }
        for (fingerprint, _) in group.members() {
            self.forget_home(fingerprint, id);
        }
        self.changed.insert(id.clone());
    }

    /// All groups as they are to be kept over a restart, by receiver and group key.
    pub fn snapshot(&self) -> Vec<GroupRecord> {
        self.groups.values().map(Group::record).collect()
    }

    /// Puts back what was kept over a restart. What was told is not told again; what was not, is. Alerts that
    /// nothing reports [`RESTORED_GRACE`] later have ended.
    pub fn restore(&mut self, now: Time, records: Vec<GroupRecord>) {
        if !records.is_empty() {
            self.sweep_at = Some(now + RESTORED_GRACE);
        }
        for mut record in records {
            record.not_after(now);
            let id = id_of(&record.receiver, &record.group_key);
            let node = node_of(&self.tree, &record.receiver, &record.group_key);
            let node = node.unwrap_or_else(|| lost_node(&record.receiver));
            self.drop_group(&id);
            let group = Group::restored(node, record, now);
            for (fingerprint, _) in group.members() {
                self.homes.entry(fingerprint).or_default().push(id.clone());
            }
            self.groups.insert(id, group);
        }
        self.reroute(now);
    }

    /// The groups that changed since the last call, by receiver and group key: their record, or none where they
    /// are no more. To be stored before what [`Groups::run`] gave is sent. Until it is called, the names of groups that
    /// are no more are kept as well.
    pub fn take_changed(&mut self) -> Vec<(Arc<str>, Option<GroupRecord>)> {
        let changed = std::mem::take(&mut self.changed);
        let record = |id: Id| {
            let record = self.groups.get(&id).map(Group::record);
            (id, record)
        };
        changed.into_iter().map(record).collect()
    }

    /// All count as changed: they could not be stored.
    pub fn taint(&mut self) {
        self.changed.extend(self.groups.keys().cloned());
    }

    /// How many groups hold alerts.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether no group holds an alert.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

fn id_of(receiver: &str, key: &str) -> Id {
    format!("{receiver} {key}").into()
}

/// The node that makes groups with this key for this receiver.
fn node_of(tree: &RouteTree, receiver: &str, key: &str) -> Option<Arc<Node>> {
    let makes = |node: &&Arc<Node>| {
        let rest = key.strip_prefix(&*node.key).and_then(|rest| rest.strip_prefix(':'));
        *node.route.receiver == *receiver && rest.is_some()
    };
    tree.nodes().find(makes).cloned()
}

/// In place of a route that is no more, until the group's end is told.
fn lost_node(receiver: &Arc<str>) -> Arc<Node> {
    Arc::new(Node::root(Route::to(receiver.clone())))
}

fn ended(alert: &AlertView, now: Time, reason: &str) -> AlertView {
    AlertView { state: State::Resolved, ends_at: Some(now), reason: Some(reason.into()), ..alert.clone() }
}
