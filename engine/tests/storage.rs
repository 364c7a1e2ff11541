//! What is stored, when storing fails, and what is there again after a restart.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use watchfire_engine::notify::ReceiverConfig;
use watchfire_engine::{BuildError, Cause, Condition, Engine, Labels, Output, Page, SeriesId, Severity, Time};

const HEAT: &str = "template: heat\nversion: 1.0.0\ninterval: 5s\nrules:\n  - {alert: Hot, when: \"gpu_temperature_celsius > 85\", \
    severity: critical, cause: thermal}\n  - {alert: Cold, when: \"gpu_temperature_celsius < 5\", severity: warning}\n";
const RECEIVERS: &str = "[{name: ops, webhook_configs: [{url: \"http://127.0.0.1:9/hook\"}]}]";

fn at(second: i64) -> Time {
    Time::from_millis(second * 1000)
}

fn receivers() -> Vec<ReceiverConfig> {
    let mut errors = watchfire_engine::door::Errors::default();
    let nodes = watchfire_engine::door::read("x", RECEIVERS, &mut errors).unwrap().list(&mut errors).unwrap();
    nodes.iter().filter_map(|node| ReceiverConfig::read(node, &mut errors)).collect()
}

struct World {
    engine: Engine,
    heat: SeriesId,
}

impl World {
    fn new(path: &Path, template: &str) -> Self {
        let builder = Engine::builder().template_text("heat.yaml", template).storage(path).receivers(receivers());
        let mut engine = builder.build().unwrap();
        let gpu = Labels::new([("host", "h"), ("gpu", "0"), ("uuid", "GPU-0")]);
        let heat = engine.series("gpu_temperature_celsius", gpu, Duration::from_secs(5)).unwrap();
        World { engine, heat }
    }

    fn at(&mut self, second: i64, heat: f64) -> Vec<Output> {
        self.engine.push(at(second), &[(self.heat, heat)]);
        self.engine.advance(at(second))
    }

    fn transitions(&self) -> Vec<(String, String)> {
        let rows = self.engine.history(Page { limit: 100, ..Page::default() }).unwrap();
        rows.into_iter().map(|row| (row.alert, row.to)).collect()
    }
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watchfire.db");
    (folder, path)
}

/// Another process's look at the file.
fn count(path: &Path, query: &str) -> i64 {
    rusqlite::Connection::open(path).unwrap().query_row(query, [], |row| row.get(0)).unwrap()
}

fn run(path: &Path, sql: &str) {
    rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

#[test]
fn what_could_not_be_stored_is_stored_later() {
    let (_keep, path) = file();
    let mut world = World::new(&path, HEAT);
    world.at(0, 60.0);
    run(&path, "CREATE TRIGGER full BEFORE INSERT ON history BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
    world.at(5, 90.0);
    let durable = world.engine.status().durable;
    assert!(durable.as_ref().is_err_and(|why| why.contains("disk is full")), "{durable:?}");
    world.at(10, 60.0);
    world.at(15, 2.0);
    assert_eq!(count(&path, "SELECT count(*) FROM outbox_messages"), 0);
    run(&path, "DROP TRIGGER full");
    world.at(25, 2.0);
    assert_eq!(world.engine.status().durable, Ok(()));
    let heat = [("Hot", "firing"), ("Hot", "resolved"), ("Cold", "firing")];
    let expected: Vec<_> = heat.iter().map(|(alert, to)| ((*alert).to_owned(), (*to).to_owned())).collect();
    assert_eq!(world.transitions(), expected);
    assert_eq!(count(&path, "SELECT count(*) FROM alerts WHERE key LIKE '%heat/Cold%'"), 1);
    assert_eq!(count(&path, "SELECT count(*) FROM alerts"), 1, "the one that ended meanwhile is not there");
    assert!(count(&path, "SELECT count(*) FROM outbox_messages") >= 2);
    assert_eq!(world.engine.status().messages_lost_total, 0);
}

#[test]
fn what_waits_in_memory_is_bounded_and_what_is_lost_is_counted() {
    let (_keep, path) = file();
    let mut world = World::new(&path, HEAT);
    world.at(0, 60.0);
    run(&path, "CREATE TRIGGER full BEFORE INSERT ON history BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
    let condition = |raise| Condition {
        alert: "WatchfireSourceDown".into(),
        labels: Labels::new([("instance", "a")]),
        raise,
        cause: Cause::Telemetry,
        note: "no answer".into(),
    };
    for _ in 0..5_010 {
        world.engine.condition(at(10), condition(Some(Severity::Warning)));
        world.engine.condition(at(10), condition(None));
    }
    world.engine.advance(at(10));
    assert_eq!(world.engine.status().messages_lost_total, 20);
    run(&path, "DROP TRIGGER full");
    world.engine.advance(at(20));
    assert_eq!(world.engine.history(Page { limit: usize::MAX, ..Page::default() }).unwrap().len(), 10_000);
}

#[test]
fn the_storage_is_private_and_belongs_to_one_process_at_a_time() {
    let (_keep, path) = file();
    let mut world = World::new(&path, HEAT);
    world.at(0, 60.0);
    for name in ["watchfire.db", "watchfire.db-wal", "watchfire.db.lock"] {
        let mode = std::fs::metadata(path.with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let second = Engine::builder().template_text("heat.yaml", HEAT).storage(&path).build();
    let error = second.err().unwrap().to_string();
    let holder = format!("is in use by another Watchfire (process {})", std::process::id());
    assert!(error.contains(&holder), "{error}");
    drop(world);
    assert!(Engine::builder().template_text("heat.yaml", HEAT).storage(&path).build().is_ok());
}

#[test]
fn a_rule_that_is_not_loaded_keeps_its_state_and_loses_its_alert_with_a_word() {
    let (_keep, path) = file();
    let mut world = World::new(&path, HEAT);
    world.at(5, 90.0);
    run(
        &path,
        "INSERT INTO rule_state VALUES ('other/Rule', '{\"rule\":\"other/Rule\",\"target\":{}}', 1, x'0000000000000840')",
    );
    drop(world);
    let cold = HEAT.replace("alert: Hot", "alert: Warm");
    let mut world = World::new(&path, &cold);
    world.at(100, 60.0);
    assert_eq!(count(&path, "SELECT count(*) FROM alerts"), 0);
    let rows = world.engine.history(Page { limit: 100, ..Page::default() }).unwrap();
    let last = rows.last().unwrap();
    assert_eq!((&*last.alert, &*last.to, last.reason.as_deref()), ("Hot", "resolved", Some("rule removed")));
    world.engine.close(at(101));
    assert_eq!(count(&path, "SELECT count(*) FROM rule_state WHERE rule = 'other/Rule'"), 1);
}

#[test]
fn a_storage_of_a_recording_is_for_that_recording() {
    let (_keep, path) = file();
    let open = |recording: Option<&str>| {
        let builder = Engine::builder().template_text("heat.yaml", HEAT).storage(&path);
        match recording {
            Some(name) => builder.recording(name),
            None => builder,
        }
        .build()
    };
    open(Some("day.rec")).unwrap();
    let refused = |found: Result<Engine, BuildError>| found.err().unwrap().to_string();
    assert!(refused(open(Some("other.rec"))).contains("holds the run of the recording day.rec"));
    assert!(refused(open(None)).contains("give this run another `storage`"));
}
