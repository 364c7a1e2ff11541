//! `watchfire import prometheus-rules`: what it says, and that what it converts means what it meant.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "prometheus/data.rs"]
mod data;
#[path = "prometheus/server.rs"]
mod server;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use data::{SPAN, START};
use serde_json::Value;
use server::Prometheus;
use watchfire_engine::door::{self, Errors, Node};
use watchfire_engine::{Time, clock};
use world::{stdout, watchfire};

const RULES: &str = "tests/data/prometheus-rules/gpu-node-30.yml";
/// The shares by which a value may differ: a unit's factor is applied before the calculation, not after it.
const VALUE_SHARE: f64 = 1e-9;

/// A converted rule as Prometheus has it.
#[derive(Debug)]
struct Rule {
    /// Its name in the template.
    alert: String,
    expr: String,
    step: i64,
    hold_for: i64,
    keep_firing_for: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Inactive,
    Pending,
    Firing,
}

/// What tells an alert's rows apart, in both worlds.
type Key = String;
/// The state of each row at each instant (0, 1, …), where it is not inactive.
type States = BTreeMap<Key, BTreeMap<i64, State>>;

#[test]
fn the_report_of_thirty_public_rules_is_as_it_was() {
    let output = watchfire(&["import", "prometheus-rules", RULES, "--check"]);
    assert_eq!(output.status.code(), Some(1), "five of them cannot be converted");
    golden("gpu-node-30.report.txt", &stdout(&output));
    let output = watchfire(&["import", "prometheus-rules", RULES]);
    assert_eq!(output.status.code(), Some(0));
    golden("gpu-node-30.template.yaml", &stdout(&output));
}

/// The page's first two blocks of YAML: a file of rules, and its template.
#[test]
fn the_example_of_the_page_is_true() {
    let page = std::fs::read_to_string(world::root().join("docs/from-prometheus.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yml");
    std::fs::write(&file, blocks[0]).unwrap();
    assert_eq!(stdout(&watchfire(&["import", "prometheus-rules", file.to_str().unwrap()])), blocks[1]);
}

#[test]
fn what_cannot_be_said_is_refused_with_its_reason() {
    let cases = [
        ("sum by (host) (a) > 1", "`sum` puts several series together; a row stands for one"),
        ("a offset 1h > 1", "`offset` looks at another time; a template looks at now and back from it"),
        ("a @ 100 > 1", "`@` looks at a fixed time; a template looks at now and back from it"),
        (
            "max_over_time(rate(a[1m])[5m:1m]) > 1",
            "a subquery evaluates an expression at many times; a window looks back at one metric",
        ),
        ("a * on (x) group_left (y) b > 1", "`group_left` joins series of different things; a row stands for one"),
        (
            "a and on (x) b",
            "`on (x)` puts together series whose other labels differ; a row stands for those that have all alike",
        ),
        ("absent(a)", "`absent`: it asks whether there is no series at all; a row stands for a series that was seen"),
        (
            "histogram_quantile(0.9, rate(a_bucket[5m])) > 1",
            "`histogram_quantile`: an expression has no quantile of a histogram",
        ),
        (
            "label_replace(a, \"b\", \"$1\", \"c\", \"(.*)\") > 1",
            "`label_replace`: it makes labels; rows have those of their series",
        ),
        (
            "up == 0",
            "the targets of one host would be one row: `up` differs by `job` and `instance`, which say where a sample came from",
        ),
        ("{__name__=~\"a.*\"} > 1", "it names no metric"),
        ("a", "it compares with nothing: it would fire while the metric is there"),
        ("1 > bool 0", "it reads no metric; every evaluation of it is the same"),
        (
            "DCGM_FI_DEV_GPU_TEMP{device=\"nvidia0\"} > 1",
            "the label `device` of DCGM_FI_DEV_GPU_TEMP does not pass Watchfire's door",
        ),
        ("rate(a[1500ms]) > 1", "a window is of whole seconds"),
        ("a >", "it is no PromQL: "),
    ];
    for (expr, reason) in cases {
        let rules = format!("groups: [{{name: g, rules: [{{alert: A, expr: '{expr}'}}]}}]");
        let report = imported(&rules);
        let refused = &report["templates"][0]["rules"][0]["refused"]["reason"];
        assert!(refused.as_str().unwrap_or_default().starts_with(reason), "{expr}: {refused}");
    }
    for (levels, reason) in
        [(15, "it would become more than 16384 bytes"), (20, "it nests deeper than 64"), (2_000, "it has ")]
    {
        let report = imported(&format!("groups: [{{name: g, rules: [{{alert: A, expr: '{}'}}]}}]", growing(levels)));
        let refused = report["templates"][0]["rules"][0]["refused"]["reason"].as_str().unwrap();
        assert!(refused.starts_with(reason), "{refused}");
    }
    let report = imported("groups: [{name: g, rules: [{record: a:b, expr: a > 1}]}]");
    assert_eq!(report["templates"][0]["rules"][0]["outcome"], "not_converted");
}

/// Each level doubles what it becomes.
fn growing(levels: usize) -> String {
    (0..levels).fold("a".to_owned(), |inner, _| format!("(({inner} or b) > 0)"))
}

#[test]
fn what_can_be_said_is_said_in_our_words() {
    let cases = [
        (
            "DCGM_FI_DEV_GPU_UTIL + 5 > 90 - DCGM_FI_DEV_MEM_COPY_UTIL",
            "gpu_utilization_ratio + 0.05 > 0.9 - gpu_memory_busy_ratio",
        ),
        ("5 < a unless b", "has(a) && 5.0 < a && !has(b)"),
        ("a > 2 and b", "a > 2.0 && has(b)"),
        ("a > 1 or b < -1e20", "has(a) && a > 1.0 || has(b) && b < -1.0e20"),
        ("-a ^ 2 > bool 1 == 1", "either(-(a ** 2.0) > 1.0, 1.0, 0.0) == 1.0"),
        ("clamp_max(DCGM_FI_DEV_GPU_UTIL, 50) > 40", "min(gpu_utilization_ratio * 100.0, 50.0) > 40.0"),
        ("up{job=\"node\"} == 0", "up{job=\"node\"} == 0.0"),
        ("quantile_over_time(0.9, a[1h30m]) > 24 * 60", "promql_quantile_over_time(a, 0.9, \"90m\") > 1440.0"),
        ("a - (b - c) > 1", "a - (b - c) > 1.0"),
        ("abs(DCGM_FI_DEV_GPU_UTIL - a) > 1", "abs(gpu_utilization_ratio * 100.0 - a) > 1.0"),
    ];
    for (expr, when) in cases {
        let rules = format!("groups: [{{name: g, rules: [{{alert: A, expr: '{expr}'}}]}}]");
        let report = imported(&rules);
        let template = report["templates"][0]["template"].as_str().unwrap_or_else(|| panic!("{expr}: {report}"));
        let line = template.lines().find_map(|line| line.strip_prefix("    when: ")).unwrap();
        assert_eq!(line, format!("'{when}'"), "{expr}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("template.yaml"), template).unwrap();
        let checked = watchfire(&["check", folder.path().to_str().unwrap()]);
        assert!(checked.status.success(), "{expr}: {}", stdout(&checked));
    }
}

fn imported(rules: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yml");
    std::fs::write(&file, rules).unwrap();
    let output = watchfire(&["import", "prometheus-rules", file.to_str().unwrap(), "--json"]);
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{output:?}"))
}

fn golden(name: &str, text: &str) {
    let path = world::root().join("tests/data/prometheus-rules").join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs; UPDATE_EXPECT=1 writes it anew:\n{text}");
}

#[test]
fn converted_rules_fire_when_a_real_prometheus_says_so() {
    if !Prometheus::is_there() {
        eprintln!("skipped: no `prometheus` and `promtool` here (Debian package prometheus)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let samples = folder.path().join("day.om");
    std::fs::write(&samples, data::exposition()).unwrap();
    let rules = convert(folder.path());
    let ours = replay(folder.path(), &samples);
    let prometheus = Prometheus::over(&samples, &folder.path().join("tsdb"));
    let (mut instants, mut fired) = (0, 0);
    for rule in &rules {
        let (compared, intervals) = compare(rule, &prometheus, &ours);
        instants += compared;
        fired += intervals;
        println!("{:<40} {compared:>7} states compared, {intervals:>3} firing intervals, all equal", rule.alert);
    }
    println!("{} rules: {instants} states compared, {fired} firing intervals, all equal", rules.len());
    assert_eq!(rules.len(), 25);
}

/// Writes the template and a configuration for it. Answers the rules that were converted.
fn convert(folder: &Path) -> Vec<Rule> {
    let out = folder.join("templates");
    let args = ["import", "prometheus-rules", RULES, "-o", out.to_str().unwrap(), "--json"];
    let report: Value = serde_json::from_str(&stdout(&watchfire(&args))).unwrap();
    let checked = watchfire(&["check", out.to_str().unwrap()]);
    assert!(checked.status.success(), "{}", stdout(&checked));
    let config = format!(
        "storage: {{path: {}}}\ntemplates: {{paths: [{}]}}\nroute: {{receiver: none}}\nreceivers: [{{name: none}}]\n",
        folder.join("state").display(),
        out.display()
    );
    std::fs::write(folder.join("watchfire.yaml"), config).unwrap();
    let reports = report["templates"][0]["rules"].as_array().unwrap();
    let rules = in_prometheus_words();
    assert_eq!(rules.len(), reports.len());
    let named = |(rule, report): (Rule, &Value)| Some(Rule { alert: report["alert"].as_str()?.to_owned(), ..rule });
    rules.into_iter().zip(reports).filter_map(named).collect()
}

fn in_prometheus_words() -> Vec<Rule> {
    let mut errors = Errors::default();
    let text = std::fs::read_to_string(world::root().join(RULES)).unwrap();
    let mut file = door::read(RULES, &text, &mut errors).unwrap().map(&mut errors).unwrap();
    let groups = file.take("groups").unwrap().list(&mut errors).unwrap();
    groups.iter().flat_map(of_group).collect()
}

fn of_group(group: &Node) -> Vec<Rule> {
    let mut errors = Errors::default();
    let mut group = group.map(&mut errors).unwrap();
    let seconds = |node: Option<Node>, otherwise: i64| {
        node.map_or(otherwise, |node| i64::try_from(node.duration(&mut Errors::default()).unwrap().as_secs()).unwrap())
    };
    let step = seconds(group.take("interval"), 60);
    let rules = group.take("rules").unwrap().list(&mut errors).unwrap();
    let rule = |node: &Node| {
        let mut map = node.map(&mut Errors::default()).unwrap();
        Rule {
            alert: String::new(),
            expr: map.take("expr").unwrap().text(&mut Errors::default()).unwrap(),
            step,
            hold_for: seconds(map.take("for"), 0),
            keep_firing_for: seconds(map.take("keep_firing_for"), 0),
        }
    };
    rules.iter().map(rule).collect()
}

/// What tells a row: its GPU or its host, and the device of a host.
fn key(labels: &BTreeMap<String, String>) -> Key {
    let get = |name: &str| labels.get(name).map(String::as_str).unwrap_or_default();
    if let Some(uuid) = labels.get("UUID").or_else(|| labels.get("uuid")) {
        return uuid.clone();
    }
    format!("{} {} {}", get("instance"), get("device"), get("mountpoint"))
}

/// What `watchfire replay` said of one row: the time, the state and the value.
type Said = (String, State, Option<f64>);

/// All transitions of a replay, by alert and row.
fn replay(folder: &Path, samples: &Path) -> BTreeMap<(String, Key), Vec<Said>> {
    let config = folder.join("watchfire.yaml");
    let args = ["replay", "-c", config.to_str().unwrap(), "--input", samples.to_str().unwrap(), "--json"];
    let output = watchfire(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut said: BTreeMap<(String, Key), Vec<Said>> = BTreeMap::new();
    for line in stdout(&output).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let labels = line["labels"].as_object().unwrap().iter();
        let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
        let state = match line["state"].as_str().unwrap() {
            "pending" => State::Pending,
            "firing" => State::Firing,
            "resolved" | "inactive" => State::Inactive,
            other => panic!("an alert is {other}"),
        };
        let place = (line["alert"].as_str().unwrap().to_owned(), key(&labels));
        said.entry(place).or_default().push((line["time"].as_str().unwrap().to_owned(), state, line["value"].as_f64()));
    }
    said
}

/// Compares one rule at each instant. Answers how many states were compared, and how many intervals fired.
fn compare(rule: &Rule, prometheus: &Prometheus, ours: &BTreeMap<(String, Key), Vec<Said>>) -> (usize, usize) {
    let series = prometheus.range(&rule.expr, START, START + SPAN, rule.step);
    let values: BTreeMap<Key, BTreeMap<i64, f64>> =
        series.into_iter().map(|(labels, values)| (key(&labels), values)).collect();
    let theirs: States = values.iter().map(|(key, values)| (key.clone(), life(rule, values))).collect();
    let own = ours.keys().filter(|(alert, _)| *alert == rule.alert).map(|(_, key)| key.clone());
    let keys: BTreeSet<Key> = theirs.keys().cloned().chain(own).collect();
    let (mut compared, mut fired) = (0, 0);
    for key in &keys {
        let said = ours.get(&(rule.alert.clone(), key.clone())).map(Vec::as_slice).unwrap_or_default();
        let mut before = State::Inactive;
        for at in instants(rule) {
            let expected = theirs.get(key).and_then(|states| states.get(&at)).copied().unwrap_or(State::Inactive);
            let (state, value) = state_at(said, at);
            assert_eq!(state, expected, "{} of {key} at {}", rule.alert, time(at));
            if let (Some(value), Some(theirs)) = (value, values.get(key).and_then(|values| values.get(&at))) {
                let close = (value - theirs).abs() <= VALUE_SHARE * theirs.abs().max(1e-3);
                assert!(close, "{} of {key} at {}: {value}, Prometheus has {theirs}", rule.alert, time(at));
            }
            compared += 1;
            fired += usize::from(state == State::Firing && before != State::Firing);
            before = state;
        }
    }
    assert!(fired > 0, "{} never fires on these samples: nothing is shown", rule.alert);
    (compared, fired)
}

fn instants(rule: &Rule) -> impl Iterator<Item = i64> + use<> {
    (START..=START + SPAN - 60).step_by(usize::try_from(rule.step).unwrap())
}

fn time(at: i64) -> String {
    clock::rfc3339(Time::from_millis(at * 1000))
}

/// The state at an instant, and the value where it changed just then and the alert is there.
fn state_at(said: &[Said], at: i64) -> (State, Option<f64>) {
    let now = time(at);
    let last = said.iter().rev().find(|(time, ..)| *time <= now);
    let Some((time, state, value)) = last else { return (State::Inactive, None) };
    (*state, value.filter(|_| *time == now && *state != State::Inactive))
}

/// The life of one alert as Prometheus' manual tells it (`for`, `keep_firing_for`), from when its expression has it.
fn life(rule: &Rule, values: &BTreeMap<i64, f64>) -> BTreeMap<i64, State> {
    let (mut states, mut since, mut lost_since) = (BTreeMap::new(), None, None);
    let mut is_firing = false;
    for at in instants(rule) {
        if values.contains_key(&at) {
            lost_since = None;
            is_firing |= at - *since.get_or_insert(at) >= rule.hold_for;
        } else if is_firing && at - *lost_since.get_or_insert(at) < rule.keep_firing_for {
            // It goes on.
        } else {
            (is_firing, since) = (false, None);
        }
        if is_firing || since.is_some() {
            states.insert(at, if is_firing { State::Firing } else { State::Pending });
        }
    }
    states
}
