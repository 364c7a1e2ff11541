//! What the main configuration may not say, and what is answered.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use watchfire_engine::config::{Config, Public};
use watchfire_engine::door::Errors;

fn read(text: &str) -> (Option<Config>, String) {
    let mut errors = Errors::default();
    let config = Config::read(Path::new("FILE"), text, &mut errors);
    (config, errors.to_string().replace("FILE:", ""))
}

#[test]
fn each_mistake_is_told_at_its_place() {
    let cases = [
        ("http: {listen: localhost}", "1:16: \"localhost\" is no address; expected IP:PORT, such as 127.0.0.1:9177"),
        (
            "http: {listen: 0.0.0.0:9177}",
            "1:16: 0.0.0.0:9177 can be reached from outside, and there is no authentication\n  hint: listen on 127.0.0.1, or open only what is harmless: public: [metrics, health]",
        ),
        ("http: {public: [api]}", "1:17: \"api\" is none of metrics, health"),
        ("sources: {recording: []}", "1:22: 0 recordings; expected 1 to 64"),
        ("sources: {recording: [{path: /no/such.rec}]}", "1:23: there is no file /no/such.rec"),
        (
            "sources: {recording: [{path: Cargo.toml, speed: fast}]}",
            "1:49: \"fast\" is no speed; expected recorded seconds per second, 0.001 to 1000000, or max",
        ),
        (
            "sources: {recording: [{path: Cargo.toml, speed: 1}, {path: Cargo.toml, speed: 2}]}",
            "1:79: recordings that are played together share one clock; give one `speed`",
        ),
        (
            "sources: {nvml: {}, recording: [{path: Cargo.toml}]}",
            "1:32: a recording is played alone: its time is not that of other sources\n  hint: take out `nvml` and `scrape`, or run the recording by a configuration of its own",
        ),
        ("storage: {}", "1:10: missing key `path`"),
        ("sources: {nvml: {interval: 0s}}", "1:28: `interval` must be longer than 0s"),
        ("sources: {scrape: [{url: ftp://x}]}", "1:26: \"ftp://x\" is no page; expected http://… or https://…"),
        (
            "templates: {shipped: [gpu-termal]}",
            "1:23: Watchfire ships no template `gpu-termal`; it ships gpu-idle, gpu-presence, gpu-thermal, host-basic\n  hint: did you mean `gpu-thermal`?",
        ),
        ("route: {}", "1:8: missing key `receiver`: the root route must name one"),
        (
            "route: {receiver: osp}\nreceivers: [{name: ops}]",
            "1:19: there is no receiver `osp`; the receivers are ops\n  hint: did you mean `ops`?",
        ),
        (
            "route: {receiver: a, matchers: [x=y]}\nreceivers: [{name: a}]",
            "1:32: the root route has no matchers: it takes everything\n  hint: put them on a route below `routes`",
        ),
        (
            "route: {receiver: a, routes: [{matchers: ['a=~\"(\"']}]}\nreceivers: [{name: a}]",
            "1:43: matcher \"a=~\\\"(\\\"\", column 4: found \"(\", expected a regular expression: unclosed group",
        ),
        ("receivers: [{name: a}, {name: a}]", "1:24: receiver `a` is there twice; names must differ"),
        (
            "rout: {receiver: a}",
            "1:1: unknown key `rout`; expected one of http, storage, sources, templates, receivers, route, host, external_url, heartbeat, limits, limits_max\n  hint: did you mean `route`?",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).1, expected, "{text}");
    }
}

#[test]
fn only_regular_files_are_read_as_templates() {
    let source = watchfire_engine::TemplateSource::File("/dev/zero".into());
    assert_eq!(source.text(), Err("it is no regular file".to_owned()));
}

#[test]
fn an_empty_mapping_is_a_configuration() {
    let (config, errors) = read("{}");
    assert_eq!(errors, "");
    let config = config.unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:9177");
    assert_eq!((config.templates.len(), config.receivers.len(), config.storage), (4, 0, None));
}

#[test]
fn what_is_public_may_be_reached_from_outside() {
    let (config, errors) = read("http: {listen: 0.0.0.0:9177, public: [metrics]}");
    assert_eq!((errors.as_str(), config.unwrap().public), ("", vec![Public::Metrics]));
}

#[test]
fn routes_inherit_what_they_do_not_say() {
    let text = "route:\n  receiver: a\n  group_by: [host]\n  group_interval: 1m\n  routes:\n    - {matchers: 'severity=critical', receiver: b, repeat_interval: 1h}\nreceivers: [{name: a}, {name: b}]";
    let (config, errors) = read(text);
    assert_eq!(errors, "");
    let root = config.unwrap().route.unwrap();
    let inner = &root.routes[0];
    assert_eq!((inner.group_interval.as_secs(), inner.repeat_interval.as_secs()), (60, 3600));
    assert_eq!(inner.group_by, root.group_by);
}
