//! The tree of routes: which receivers an alert goes to, and how it is grouped on the way.

use std::sync::Arc;
use std::time::Duration;

use crate::labels::Labels;
use crate::matcher::Matcher;

/// Which labels make a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// These labels.
    Labels(Vec<Arc<str>>),
    /// All labels: each alert is its own group (`group_by: ['...']`).
    All,
}

/// One route, with what it inherits already filled in.
#[derive(Clone, Debug)]
pub struct Route {
    /// The receiver's name.
    pub receiver: Arc<str>,
    /// All must match.
    pub matchers: Vec<Matcher>,
    /// What makes a group.
    pub group_by: GroupBy,
    /// How long a new group waits for company before it is first told.
    pub group_wait: Duration,
    /// How long changes of a told group wait.
    pub group_interval: Duration,
    /// After how long an unchanged firing group is told again.
    pub repeat_interval: Duration,
    /// Whether later siblings are tried as well.
    pub continues: bool,
    /// Narrower routes, in order.
    pub routes: Vec<Route>,
}

impl Route {
    /// New groups are told at once: our groups are small, and minutes count.
    pub const GROUP_WAIT_DEFAULT: Duration = Duration::ZERO;
    /// Alertmanager's.
    pub const GROUP_INTERVAL_DEFAULT: Duration = Duration::from_secs(300);
    /// Alertmanager's.
    pub const REPEAT_INTERVAL_DEFAULT: Duration = Duration::from_secs(4 * 3600);

    /// A route for everything to one receiver, grouped by alert and host.
    pub fn to(receiver: &str) -> Self {
        Route {
            receiver: receiver.into(),
            matchers: Vec::new(),
            group_by: GroupBy::Labels(vec!["alertname".into(), "host".into()]),
            group_wait: Route::GROUP_WAIT_DEFAULT,
            group_interval: Route::GROUP_INTERVAL_DEFAULT,
            repeat_interval: Route::REPEAT_INTERVAL_DEFAULT,
            continues: false,
            routes: Vec::new(),
        }
    }

    fn matches(&self, labels: &Labels) -> bool {
        self.matchers.iter().all(|matcher| matcher.matches(labels))
    }

    /// This route where none of its own matches, else what they say (Alertmanager `dispatch/route.go`, Match).
    fn collect<'a>(&'a self, labels: &Labels, path: &str, found: &mut Vec<(&'a Route, String)>) -> bool {
        if !self.matches(labels) {
            return false;
        }
        let path = format!("{path}{}", self.own_key());
        let mut taken = false;
        for route in &self.routes {
            let hit = route.collect(labels, &format!("{path}/"), found);
            taken |= hit;
            if hit && !route.continues {
                break;
            }
        }
        if !taken {
            found.push((self, path));
        }
        true
    }

    fn own_key(&self) -> String {
        let matchers: Vec<String> = self.matchers.iter().map(Matcher::to_string).collect();
        format!("{{{}}}", matchers.join(","))
    }
}

/// All routes.
#[derive(Clone, Debug)]
pub struct RouteTree {
    root: Route,
}

/// Where one alert goes: one of these for each receiver.
#[derive(Clone, Debug)]
pub struct Way<'a> {
    /// The route.
    pub route: &'a Route,
    /// The group's key in Alertmanager's form: `{}/{severity="critical"}:{alertname="X"}`.
    pub group_key: Arc<str>,
    /// The labels that make the group.
    pub group_labels: Labels,
}

impl RouteTree {
    /// A tree; the root takes what no other route takes.
    pub fn new(root: Route) -> Self {
        RouteTree { root: Route { matchers: Vec::new(), ..root } }
    }

    /// Everything to one receiver.
    pub fn to(receiver: &str) -> Self {
        RouteTree::new(Route::to(receiver))
    }

    /// The ways of an alert with these labels, `alertname` and `severity` among them.
    pub fn ways(&self, labels: &Labels) -> Vec<Way<'_>> {
        let mut found = Vec::new();
        self.root.collect(labels, "", &mut found);
        found.into_iter().map(|(route, path)| way(route, &path, labels)).collect()
    }

    /// All receivers' names, each once.
    pub fn receivers(&self) -> Vec<Arc<str>> {
        let mut names = Vec::new();
        let mut open = vec![&self.root];
        while let Some(route) = open.pop() {
            names.push(route.receiver.clone());
            open.extend(&route.routes);
        }
        names.sort();
        names.dedup();
        names
    }
}

fn way<'a>(route: &'a Route, path: &str, labels: &Labels) -> Way<'a> {
    let group_labels = match &route.group_by {
        GroupBy::All => labels.clone(),
        GroupBy::Labels(names) => labels.only(names),
    };
    Way { route, group_key: format!("{path}:{group_labels}").into(), group_labels }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn route(receiver: &str, matcher: &str, continues: bool, routes: Vec<Route>) -> Route {
        Route { matchers: vec![Matcher::parse(matcher).unwrap()], continues, routes, ..Route::to(receiver) }
    }

    fn tree() -> RouteTree {
        let nested = vec![route("gpu-critical", "severity=critical", false, vec![])];
        RouteTree::new(Route {
            routes: vec![
                route("audit", "team=infra", true, vec![]),
                route("gpu", "alertname=~\"Gpu.*\"", false, nested),
                route("never", "alertname=~\"Gpu.*\"", false, vec![]),
            ],
            ..Route::to("default")
        })
    }

    #[test]
    fn goes_the_ways_that_alertmanager_would_take() {
        let cases = [
            (vec![("alertname", "X")], vec!["default"]),
            (vec![("alertname", "GpuHot")], vec!["gpu"]),
            (vec![("alertname", "GpuHot"), ("severity", "critical")], vec!["gpu-critical"]),
            (vec![("alertname", "GpuHot"), ("team", "infra")], vec!["audit", "gpu"]),
            (vec![("alertname", "X"), ("team", "infra")], vec!["audit"]),
        ];
        for (labels, expected) in cases {
            let labels = Labels::new(labels);
            let tree = tree();
            let got: Vec<&str> = tree.ways(&labels).iter().map(|way| &*way.route.receiver).collect();
            assert_eq!(got, expected, "{labels}");
        }
    }

    #[test]
    fn the_group_key_has_alertmanagers_form() {
        let tree = tree();
        let labels = Labels::new([("alertname", "GpuHot"), ("severity", "critical"), ("host", "h1")]);
        let way = &tree.ways(&labels)[0];
        assert_eq!(
            &*way.group_key,
            "{}/{alertname=~\"Gpu.*\"}/{severity=\"critical\"}:{alertname=\"GpuHot\", host=\"h1\"}"
        );
    }
}
