//! Killed at any moment, `run` goes on as if nothing had happened: the same history, the same notifications.
//!
//! `WATCHFIRE_KILLS` and `WATCHFIRE_KILL_HOURS` make it longer (`cargo xtask soak kills`); `WATCHFIRE_SEED` makes it
//! another one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod day;
mod world;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use day::Dice;
use serde_json::Value;
use world::{PATIENCE, Request, Running, eventually, free_address, receive, root};

/// How long the play of the whole recording would take without kills, for each kill.
const PLAY_PER_KILL: Duration = Duration::from_millis(400);
/// The least that a play takes.
const PLAY_MIN: Duration = Duration::from_secs(4);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// One run over the recording, in a storage of its own.
struct Run {
    folder: tempfile::TempDir,
    address: std::net::SocketAddr,
    requests: Receiver<Request>,
}

impl Run {
    fn new(recording: &std::path::Path, speed: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (address, hook) = (free_address(), free_address());
        let text = format!(
            "http: {{listen: {address}}}\nexternal_url: http://watchfire\nstorage: {{path: ./state}}\n\
             sources:\n  recording: [{{path: {recording}, speed: {speed}}}]\n\
             templates: {{paths: [{template}]}}\n\
             route: {{receiver: ops, group_by: [alertname, host], group_wait: 30s, group_interval: 5m, repeat_interval: 1h}}\n\
             receivers:\n  - {{name: ops, webhook_configs: [{{url: http://{hook}/hook}}]}}\n",
            recording = recording.display(),
            template = root().join("tests/data/day/template.yaml").display(),
        );
        std::fs::write(folder.path().join("watchfire.yaml"), text).unwrap();
        Run { folder, address, requests: receive(hook) }
    }

    fn start(&self) -> Running {
        Running::spawn(&self.folder.path().join("watchfire.yaml"), self.address)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("watchfire.log")).unwrap_or_default()
    }

    /// Waits until the recording has ended and all is delivered; the history and the notifications by key, with how
    /// many came more than once.
    fn finish(&self, running: &Running, patience: Duration) -> (Vec<Value>, BTreeMap<String, Value>, usize) {
        let (_keep, never) = channel::<()>();
        let started = Instant::now();
        let doubtful = loop {
            let status = running.status();
            let channel = &status["channels"][0];
            if status["recording"]["ended"] == true && channel["queued"] == 0 {
                assert_eq!((&channel["failed"], &channel["dropped"]), (&0.into(), &0.into()), "{status}");
                break channel["doubtful"].as_u64().unwrap() as usize;
            }
            assert!(started.elapsed() < patience, "not within {patience:?}: {status}\n{}", self.log());
            let _ = never.recv_timeout(Duration::from_millis(20));
        };
        let (mut told, mut again) = (BTreeMap::new(), 0);
        for request in self.requests.try_iter() {
            let key = request.header("idempotency-key").unwrap().to_owned();
            if let Some(before) = told.insert(key.clone(), request.body.clone()) {
                assert_eq!(before, request.body, "the same key with another payload: {key}");
                again += 1;
            }
        }
        assert!(again <= doubtful, "{again} doubled, {doubtful} cut short between a receiver's answer and its record");
        (history(running), told, again)
    }
}

/// All transitions, by time and alert: within one moment rows have no order.
fn history(running: &Running) -> Vec<Value> {
    let (mut all, mut after) = (Vec::<Value>::new(), 0);
    loop {
        let text = running.get(&format!("/api/v1/history?after={after}&limit=5000")).unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        let page = answer["data"]["transitions"].as_array().unwrap().clone();
        let Some(last) = page.last() else { break };
        after = last["id"].as_i64().unwrap();
        all.extend(page);
    }
    all.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("id")));
    all.sort_by_key(|row| format!("{} {} {}", row["time"], row["fingerprint"], row["to"]));
    all
}

#[test]
fn kills_at_random_moments_change_neither_the_history_nor_what_is_told() {
    let (kills, hours, seed) =
        (number("WATCHFIRE_KILLS", 6), number("WATCHFIRE_KILL_HOURS", 2), number("WATCHFIRE_SEED", 7));
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("day.rec");
    day::write(&recording, hours as i64, seed);

    let whole = Run::new(&recording, "max");
    let running = whole.start();
    let (history, told, _) = whole.finish(&running, PATIENCE * 5);
    drop(running);
    assert!(history.len() > 20 * hours as usize && told.len() > 5 * hours as usize, "{} {}", history.len(), told.len());

    let play = (PLAY_PER_KILL * kills as u32).max(PLAY_MIN);
    let speed = (hours * 3600) as f64 / play.as_secs_f64();
    let killed = Run::new(&recording, &format!("{speed:.1}"));
    let began = Instant::now();
    let (ready, at_end) = kill_again_and_again(&killed, kills, play, &mut Dice(seed));
    let running = killed.start();
    let (history_after, told_after, again) = killed.finish(&running, PATIENCE * 5);
    println!(
        "{kills} kills of {hours} recorded hours in {:.0} s, {ready} of them while it served, {at_end} after the end: {} transitions, \
         {} notifications, {again} delivered more than once",
        began.elapsed().as_secs_f64(),
        history_after.len(),
        told_after.len(),
    );
    assert_same(&history, &history_after);
    assert_eq!(told.keys().collect::<Vec<_>>(), told_after.keys().collect::<Vec<_>>());
    told.iter().for_each(|(key, body)| assert_eq!(body, &told_after[key], "{key}"));
}

fn assert_same(expected: &[Value], got: &[Value]) {
    if let Some((expected, got)) = expected.iter().zip(got).find(|(expected, got)| expected != got) {
        panic!("the first transition that differs:\nexpected {expected}\ngot      {got}");
    }
    assert_eq!(expected.len(), got.len());
}

/// Kills it so often; how many of the kills came while it served, and how many after the recording's end. Of four lives
/// one ends before it may be ready.
fn kill_again_and_again(run: &Run, kills: u64, play: Duration, dice: &mut Dice) -> (u64, u64) {
    let (_keep, never) = channel::<()>();
    let (mut ready, mut at_end) = (0, 0);
    for kill in 0..kills {
        let running = run.start();
        let life = play.div_f64(kills as f64) * 2;
        if kill % 4 != 3 {
            eventually("it answers", || running.get("/-/ready"));
            ready += 1;
        }
        let _ = never.recv_timeout(life.mul_f64(dice.share()));
        at_end += u64::from(kill % 4 != 3 && running.status()["recording"]["ended"] == true);
        running.kill();
    }
    (ready, at_end)
}

#[test]
fn run_ends_with_its_recording_where_asked_and_a_storage_is_for_one_process_and_one_recording() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("hour.rec");
    day::write(&recording, 1, 3);
    let run = Run::new(&recording, "max");
    let file = run.folder.path().join("watchfire.yaml");
    let again = |args: &[&str]| {
        let output = world::watchfire(&[&["run", "-c", file.to_str().unwrap()], args].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, log) = again(&["--exit-at-end"]);
    assert_eq!(code, Some(0), "{log}");
    let told = run.requests.try_iter().count();
    assert!(told > 3, "{told}: {log}");
    assert_eq!(again(&["--exit-at-end"]).0, Some(0));
    assert_eq!(run.requests.try_iter().count(), 0, "all of it was told");

    let running = run.start();
    eventually("it answers", || running.get("/-/ready"));
    let (code, log) = again(&[]);
    assert_eq!((code, log.contains("is in use by another Watchfire")), (Some(3), true), "{log}");
    drop(running);

    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::copy(&recording, folder.path().join("other.rec")).unwrap();
    std::fs::write(&file, text.replace("hour.rec", "other.rec")).unwrap();
    let (code, log) = again(&[]);
    assert_eq!((code, log.contains("holds the run of the recording")), (Some(3), true), "{log}");
}
