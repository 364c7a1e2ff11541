//! Which receivers hear of an alert: Alertmanager's tree of routes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::effect::AlertView;
use crate::labels::Labels;
use crate::matcher::{self, Matcher};

/// Which alerts of a route share a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// Those with the same values of these labels; `alertname` and `severity` may be among them.
    Labels(Vec<Arc<str>>),
    /// Those with the same values of all labels but `severity` (`...` in Alertmanager): one alert a message.
    All,
}

impl GroupBy {
    /// The labels of the group that an alert with these routing labels belongs to.
    pub fn of(&self, labels: &Labels) -> Labels {
        match self {
            GroupBy::Labels(names) => labels.only(names),
            // Severity is no part of an alert's identity: it must not move the alert from group to group.
            GroupBy::All => labels.filter(|name| name != SEVERITY),
        }
    }
}

/// The label that carries an alert's name when it is routed.
pub const ALERTNAME: &str = "alertname";
/// The label that carries an alert's severity when it is routed.
pub const SEVERITY: &str = "severity";

/// One node of the tree, with everything it inherits from its parents written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Who is told.
    pub receiver: Arc<str>,
    /// All of them must match. The root's are ignored: it takes every alert.
    pub matchers: Vec<Matcher>,
    /// Which alerts share a message.
    pub group_by: GroupBy,
    /// How long a new group waits for more alerts before its first message.
    pub group_wait: Duration,
    /// Time between messages about changes of a group.
    pub group_interval: Duration,
    /// After this long without change a group that fires is told of again.
    pub repeat_interval: Duration,
    /// Whether the routes after this one are tried as well where this one took the alert (`continue`).
    pub continue_: bool,
    /// More special routes; the first that matches takes the alert.
    pub routes: Vec<Route>,
}

impl Route {
    /// [`Route::group_wait`] where nothing is said.
    pub const GROUP_WAIT_DEFAULT: Duration = Duration::ZERO;
    /// [`Route::group_interval`] where nothing is said (Alertmanager's).
    pub const GROUP_INTERVAL_DEFAULT: Duration = Duration::from_secs(5 * 60);
    /// [`Route::repeat_interval`] where nothing is said (Alertmanager's).
    pub const REPEAT_INTERVAL_DEFAULT: Duration = Duration::from_secs(4 * 3600);
    /// [`Route::group_by`] where nothing is said.
    pub const GROUP_BY_DEFAULT: [&str; 2] = [ALERTNAME, "host"];

    /// A route to `receiver` that takes every alert, with the defaults.
    pub fn to(receiver: impl Into<Arc<str>>) -> Self {
        Route {
            receiver: receiver.into(),
            matchers: Vec::new(),
            group_by: GroupBy::Labels(Route::GROUP_BY_DEFAULT.map(Arc::from).to_vec()),
            group_wait: Route::GROUP_WAIT_DEFAULT,
            group_interval: Route::GROUP_INTERVAL_DEFAULT,
            repeat_interval: Route::REPEAT_INTERVAL_DEFAULT,
            continue_: false,
            routes: Vec::new(),
        }
    }
}

/// One node of a [`RouteTree`].
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What the configuration says; [`Route::routes`] is empty here.
    pub route: Route,
    /// The matchers on the way from the root, as Alertmanager writes them: `{}/{severity="critical"}`.
    pub key: Arc<str>,
    children: Vec<usize>,
}

impl Node {
    /// A node that stands alone.
    pub fn root(route: Route) -> Self {
        Node { route, key: "{}".into(), children: Vec::new() }
    }
}

/// All routes. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTree(Arc<[Arc<Node>]>);

impl RouteTree {
    /// The tree under `root`.
    pub fn new(root: Route) -> Self {
        let mut nodes = Vec::new();
        flatten(Route { matchers: Vec::new(), ..root }, None, &mut nodes);
        RouteTree(nodes.into_iter().map(Arc::new).collect())
    }

    /// A tree of one route with the defaults.
    pub fn to(receiver: impl Into<Arc<str>>) -> Self {
        RouteTree::new(Route::to(receiver))
    }

    /// The nodes that take an alert with these routing labels, as Alertmanager finds them: depth first; of the
    /// children that match, the first takes it and ends the search unless it says `continue`; a node takes it
    /// itself where no child does. Costs one look at each node tried.
    pub fn matching(&self, labels: &Labels) -> Vec<&Arc<Node>> {
        let mut found = Vec::new();
        self.search(0, labels, &mut found);
        found
    }

    fn search<'a>(&'a self, at: usize, labels: &Labels, found: &mut Vec<&'a Arc<Node>>) -> bool {
        let Some(node) = self.0.get(at) else { return false };
        if !node.route.matchers.iter().all(|matcher| matcher.matches(labels)) {
            return false;
        }
        let before = found.len();
        for &child in &node.children {
            if self.search(child, labels, found) && self.0.get(child).is_some_and(|child| !child.route.continue_) {
                break;
            }
        }
        if found.len() == before {
            found.push(node);
        }
        true
    }

    /// All nodes, a node before its children.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.0.iter()
    }

    /// The receivers that can be told something, by name.
    pub fn receivers(&self) -> BTreeSet<Arc<str>> {
        self.0.iter().map(|node| node.route.receiver.clone()).collect()
    }
}

fn flatten(mut route: Route, parent: Option<&str>, nodes: &mut Vec<Node>) -> usize {
    let key = key(parent, &route.matchers);
    let routes = std::mem::take(&mut route.routes);
    let at = nodes.len();
    nodes.push(Node { route, key: key.clone().into(), children: Vec::new() });
    let children = routes.into_iter().map(|child| flatten(child, Some(&key), nodes)).collect();
    nodes[at].children = children;
    at
}

fn key(parent: Option<&str>, matchers: &[Matcher]) -> String {
    let mut sorted = matchers.to_vec();
    sorted.sort_by(|a, b| (a.name(), a.value(), a.op()).cmp(&(b.name(), b.value(), b.op())));
    let own = matcher::to_list(&sorted);
    parent.map_or(own.clone(), |parent| format!("{parent}/{own}"))
}

/// The labels by which an alert is routed and grouped: its own, with its name and severity.
pub fn routing_labels(alert: &AlertView) -> Labels {
    alert.labels.with(&Labels::new([(ALERTNAME, &*alert.alert), (SEVERITY, alert.severity.as_str())]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn route(receiver: &str, matchers: &str, continue_: bool, routes: Vec<Route>) -> Route {
        let matchers = Matcher::parse_list(matchers).unwrap();
        Route { matchers, continue_, routes, ..Route::to(receiver) }
    }

    /// The tree and the cases of Alertmanager's `dispatch/route_test.go` (`TestRouteMatch`).
    fn tree() -> RouteTree {
        RouteTree::new(route(
            "notify-def",
            "{}",
            false,
            vec![
                route(
                    "notify-A",
                    "owner=team-A",
                    false,
                    vec![
                        route("notify-testing", "env=testing", false, vec![]),
                        route("notify-productionA", "env=production", true, vec![]),
                        route("notify-productionB", "env=~produ.*", true, vec![]),
                        route("notify-productionC", "job=~.*", false, vec![]),
                    ],
                ),
                route("notify-BC", "owner=~\"team-(B|C)\"", false, vec![]),
                route(
                    "notify-D",
                    "group_by=role",
                    true,
                    vec![
                        route("notify-nested", "env=testing,other=x", false, vec![]),
                        route("notify-test", "env=testing", false, vec![]),
                    ],
                ),
                route("notify-last", "group_by=role,env=production", false, vec![]),
            ],
        ))
    }

    #[test]
    fn finds_routes_as_alertmanager_does() {
        type Pairs<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Pairs, &[&str]); 10] = [
            (&[("owner", "team-A")], &["notify-productionC"]),
            (&[("owner", "team-A"), ("env", "unset")], &["notify-productionC"]),
            (&[("owner", "team-C")], &["notify-BC"]),
            (&[("owner", "team-A"), ("env", "testing")], &["notify-testing"]),
            (
                &[("owner", "team-A"), ("env", "production")],
                &["notify-productionA", "notify-productionB", "notify-productionC"],
            ),
            (&[("owner", "team-X")], &["notify-def"]),
            (&[("group_by", "role")], &["notify-D"]),
            (&[("group_by", "role"), ("env", "testing")], &["notify-test"]),
            (&[("group_by", "role"), ("env", "production")], &["notify-D", "notify-last"]),
            (&[], &["notify-def"]),
        ];
        let tree = tree();
        for (labels, expected) in cases {
            let found = tree.matching(&Labels::new(labels.iter().copied()));
            let names: Vec<&str> = found.iter().map(|node| &*node.route.receiver).collect();
            assert_eq!(names, expected, "{labels:?}");
        }
    }

    #[test]
    fn keys_are_those_of_alertmanager() {
        let deep = route("b", "z=1,a!=2", false, vec![route("c", "host=~\"a|b\"", false, vec![])]);
        let tree = RouteTree::new(route("a", "ignored=x", false, vec![deep]));
        let keys: Vec<&str> = tree.nodes().map(|node| &*node.key).collect();
        assert_eq!(keys, ["{}", r#"{}/{a!="2",z="1"}"#, r#"{}/{a!="2",z="1"}/{host=~"a|b"}"#]);
        let receivers: Vec<Arc<str>> = tree.receivers().into_iter().collect();
        assert_eq!(receivers, ["a".into(), "b".into(), "c".into()]);
    }

    #[test]
    fn the_root_takes_every_alert() {
        let tree = RouteTree::new(route("a", "never=here", false, vec![]));
        assert_eq!(tree.matching(&Labels::default()).len(), 1);
    }

    #[test]
    fn groups_by_names_or_by_everything_but_severity() {
        let labels = Labels::new([("alertname", "X"), ("severity", "critical"), ("host", "h1"), ("gpu", "0")]);
        let by = |names: &[&str]| GroupBy::Labels(names.iter().map(|name| (*name).into()).collect()).of(&labels);
        assert_eq!(by(&["alertname", "host", "rack"]).to_string(), r#"{alertname="X", host="h1"}"#);
        assert_eq!(by(&[]).to_string(), "{}");
        assert_eq!(GroupBy::All.of(&labels).to_string(), r#"{alertname="X", gpu="0", host="h1"}"#);
    }
}
