//! The `route:` tree, in Alertmanager's keys.

use watchfire_core::matcher::Matcher;
use watchfire_core::route::{GroupBy, Route};
use watchfire_door::{Errors, Map, Node};

/// The deepest tree of routes.
const DEPTH_MAX: usize = 16;

/// Reads the root: it takes everything, so it has no matchers.
pub(super) fn read(node: &Node, errors: &mut Errors) -> Option<Route> {
    read_below(node, None, 0, errors)
}

fn read_below(node: &Node, parent: Option<&Route>, depth: usize, errors: &mut Errors) -> Option<Route> {
    let mut map = node.map(errors)?;
    if depth > DEPTH_MAX {
        errors.add(node.place(), format!("routes nested more than {DEPTH_MAX} deep"));
        return None;
    }
    let receiver = match (map.take("receiver"), parent) {
        (Some(node), _) => node.word(errors)?,
        (None, Some(parent)) => parent.receiver.to_string(),
        (None, None) => {
            errors.add(map.place(), "missing key `receiver`: the root route must name one");
            return None;
        }
    };
    let defaults = parent.cloned().unwrap_or_else(|| Route::to(receiver.as_str()));
    let mut route =
        Route { receiver: receiver.into(), matchers: Vec::new(), routes: Vec::new(), continue_: false, ..defaults };
    own_settings(&mut map, &mut route, parent.is_none(), errors);
    let nodes = map.take("routes").and_then(|node| node.list(errors)).unwrap_or_default();
    let routes = nodes.iter().filter_map(|node| read_below(node, Some(&route), depth + 1, errors)).collect();
    map.finish(errors);
    Some(Route { routes, ..route })
}

fn own_settings(map: &mut Map, route: &mut Route, is_root: bool, errors: &mut Errors) {
    if let Some(node) = map.take("matchers") {
        if is_root {
            errors.hint(
                node.place(),
                "the root route has no matchers: it takes everything",
                "put them on a route below `routes`",
            );
        }
        let matchers = node.one_or_more();
        let matcher = |text: &str| Matcher::parse(text).map_err(|error| error.to_string());
        route.matchers = matchers.iter().filter_map(|node| node.parse_with(errors, matcher)).collect();
    }
    if let Some(node) = map.take("group_by") {
        route.group_by = group_by(&node, errors);
    }
    for (key, span) in [
        ("group_wait", &mut route.group_wait),
        ("group_interval", &mut route.group_interval),
        ("repeat_interval", &mut route.repeat_interval),
    ] {
        if let Some(node) = map.take(key) {
            *span = node.duration(errors).unwrap_or(*span);
            if span.is_zero() && key != "group_wait" {
                errors.add(node.place(), format!("`{key}` must be longer than 0s"));
            }
        }
    }
    if let Some(node) = map.take("continue") {
        route.continue_ = node.bool(errors).unwrap_or(false);
    }
}

fn group_by(node: &Node, errors: &mut Errors) -> GroupBy {
    let names: Vec<String> = node.one_or_more().iter().filter_map(|node| node.word(errors)).collect();
    if names.iter().any(|name| name == "...") {
        return GroupBy::All;
    }
    GroupBy::Labels(names.into_iter().map(Into::into).collect())
}
