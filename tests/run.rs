//! `watchfire run` as a process, with a scripted driver below and a receiver above.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod world;

use std::sync::mpsc::Receiver;
use std::time::Duration;

use fake_nvml::{Fake, uuid_of};
use serde_json::Value;
use world::{PATIENCE, Place, Request, eventually, receive};

const PRESENCE: &str = "template: presence\nversion: 1.0.0\ninterval: 200ms\nrules:\n  - {alert: GpuLost, when: \"gpu_up < 0.5\", \
    severity: critical, cause: hardware, annotations: {summary: \"GPU {{ labels.uuid }} at {{ labels.pci }} is lost\"}}\n";
const HEAT: &str = "template: heat\nversion: 1.0.0\ninterval: 200ms\nrules:\n  - {alert: GpuTooHot, when: \"gpu_temperature_celsius > 85\", \
    severity: critical, cause: thermal}\n";

fn driver(script: &str) -> (tempfile::TempDir, Fake) {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new(folder.path(), script).unwrap();
    (folder, fake)
}

/// The next request, or what Watchfire logged instead.
fn next(requests: &Receiver<Request>, place: &Place) -> Request {
    requests.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing was told:\n{}", place.log()))
}

fn alerts(request: &Request) -> Vec<&Value> {
    request.body["alerts"].as_array().into_iter().flatten().collect()
}

#[test]
fn a_gpu_lost_at_the_fifth_poll_is_named_and_the_others_go_on() {
    let (_keep, fake) = driver("HandleByIndex_v2 3 poll=5.. -> ret=15");
    let place = Place::new(&fake.library, PRESENCE);
    let requests = receive(place.hook);
    let running = place.start();
    let request = next(&requests, &place);
    let told = alerts(&request);
    assert_eq!(told.len(), 1, "{request:?}");
    let labels = &told[0]["labels"];
    assert_eq!((labels["uuid"].as_str(), labels["pci"].as_str()), (Some(&*uuid_of(3)), Some("0000:1d:00.0")));
    assert_eq!(labels["severity"], "critical");
    let summary = format!("GPU {} at 0000:1d:00.0 is lost", uuid_of(3));
    assert_eq!(told[0]["annotations"]["summary"], summary.as_str());
    let samples = |status: &Value| status["engine"]["samples_total"].as_u64().unwrap_or(0);
    let before = samples(&running.status());
    eventually("seven GPUs go on", || (samples(&running.status()) > before + 7 * 20).then_some(()));
    let (took, well) = running.terminate();
    assert!(well && took < Duration::from_secs(5), "{took:?}");
    assert!(requests.try_recv().is_err(), "nothing else was told");
}

#[test]
fn rules_that_misbehave_are_quarantined_and_the_thermal_rule_misses_no_tick() {
    let (_keep, fake) = driver("");
    let naughty =
        |name: &str, deed: &str| format!("  - {{alert: {name}, module: ./naughty.wasm, with: {{do: {deed}}}}}\n");
    let thermal =
        "  - {alert: GpuTooHot, module: threshold, with: {metric: gpu_temperature_celsius, above: {warning: 85}}}\n";
    let template = format!(
        "template: mixed\nversion: 1.0.0\ninterval: 500ms\nrules:\n{thermal}{}{}{}",
        naughty("Loops", "loop-for-ever"),
        naughty("Hoards", "allocate-without-end"),
        naughty("Floods", "million-hits"),
    );
    let place = Place::new(&fake.library, &template);
    std::fs::write(place.folder.path().join("naughty.wasm"), test_rules::module("naughty").unwrap()).unwrap();
    let requests = receive(place.hook);
    let running = place.start();
    let rule = |status: &Value, name: &str| {
        let rules = status["engine"]["rules"].as_array().cloned().unwrap_or_default();
        rules.into_iter().find(|rule| rule["id"] == format!("mixed/{name}").as_str()).unwrap_or_default()
    };
    let status = eventually("all three are quarantined", || {
        let status = running.status();
        let given_up = |name| rule(&status, name)["quarantined"] == true;
        ["Loops", "Hoards", "Floods"].into_iter().all(given_up).then_some(status)
    });
    for (name, why) in [("Loops", "steps"), ("Hoards", "memory"), ("Floods", "")] {
        let said = rule(&status, name)["last_failure"].as_str().unwrap().to_owned();
        assert!(said.contains(why), "{name}: {said}");
    }
    let thermal = rule(&status, "GpuTooHot");
    assert!(thermal["ticks_total"].as_u64().unwrap() >= 3, "{thermal}");
    assert_eq!((&thermal["ticks_missed_total"], &thermal["failures_total"]), (&0.into(), &0.into()));
    let request = next(&requests, &place);
    assert_eq!(alerts(&request)[0]["labels"]["alertname"], "WatchfireRuleQuarantined");
}

/// Killed between firing and delivery: nothing is lost, nothing is told twice, and the end follows.
#[test]
fn kill_nine_between_firing_and_delivery_loses_nothing() {
    let (_keep, fake) = driver("Temperature 2 -> value=91");
    let place = Place::new(&fake.library, HEAT);
    let running = place.start();
    let queued = |status: &Value| status["channels"][0]["queued"].as_u64();
    eventually("the message waits for a receiver that is down", || (queued(&running.status())? == 1).then_some(()));
    let fired: Value = serde_json::from_str(&running.get("/api/v1/alerts").unwrap()).unwrap();
    let active_at = fired["data"]["alerts"][0]["activeAt"].as_str().unwrap().to_owned();
    running.kill();

    let requests = receive(place.hook);
    let running = place.start();
    let first = next(&requests, &place);
    let key = first.header("idempotency-key").unwrap().to_owned();
    assert_eq!(
        (alerts(&first)[0]["status"].as_str(), alerts(&first)[0]["startsAt"].as_str()),
        (Some("firing"), Some(&*active_at))
    );

    fake.script("Temperature 2 -> value=40").unwrap();
    let last = next(&requests, &place);
    assert_eq!(
        (alerts(&last)[0]["status"].as_str(), alerts(&last)[0]["startsAt"].as_str()),
        (Some("resolved"), Some(&*active_at))
    );
    assert_ne!(last.header("idempotency-key"), Some(&*key), "another message has another key");
    let status = eventually("all is delivered", || Some(running.status()).filter(|status| queued(status) == Some(0)));
    assert_eq!(status["channels"][0]["delivered"], 2, "{status}");
    assert!(requests.try_recv().is_err(), "told once each");
}

/// A restart while an alert fires tells nothing new.
#[test]
fn a_restart_while_firing_repeats_nothing() {
    let (_keep, fake) = driver("Temperature 2 -> value=91");
    let place = Place::new(&fake.library, HEAT);
    let requests = receive(place.hook);
    let running = place.start();
    next(&requests, &place);
    eventually("it is recorded", || (running.status()["channels"][0]["delivered"] == 1).then_some(()));
    assert!(running.terminate().1);
    let running = place.start();
    let ticks = |status: &Value| status["engine"]["rules"][0]["ticks_total"].as_u64();
    eventually("it judges again", || (ticks(&running.status())? > 10).then_some(()));
    assert!(requests.try_recv().is_err(), "nothing new was told");
}

#[test]
fn a_broken_template_leaves_the_host_watched_and_a_broken_reload_changes_nothing() {
    let (_keep, fake) = driver("");
    let place = Place::new(&fake.library, "template: broken\nversion: 1.0.0\nrules: [{alert: X, module: nothing}]\n");
    let requests = receive(place.hook);
    let running = place.start();
    let request = next(&requests, &place);
    assert_eq!(alerts(&request)[0]["labels"]["alertname"], "WatchfireTemplateInvalid");
    assert_eq!(running.status()["engine"]["rules"], Value::Array(Vec::new()));
    std::fs::write(place.folder.path().join("template.yaml"), HEAT).unwrap();
    std::process::Command::new("kill").args(["-HUP", &running.pid()]).status().unwrap();
    eventually("the good template runs", || {
        (running.status()["engine"]["rules"][0]["id"] == "heat/GpuTooHot").then_some(())
    });
    let resolved = next(&requests, &place);
    assert_eq!(alerts(&resolved)[0]["status"], "resolved");
}

#[test]
fn a_reload_to_a_receiver_that_does_not_run_is_refused() {
    let (_keep, fake) = driver("");
    let place = Place::new(&fake.library, HEAT);
    let running = place.start();
    let config = place.config();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("ops", "ops2")).unwrap();
    let answer = running.ask("POST", "/-/reload").unwrap();
    let metrics = running.get("/metrics").unwrap();
    assert!(metrics.contains("\nwatchfire_config_last_reload_successful 0\n"), "{metrics}");
    assert!(running.status()["reload"]["error"].as_str().is_some_and(|why| why.contains("ops2")));
    assert!(
        !answer.starts_with("HTTP/1.1 200") && answer.contains("ops2") && answer.contains("need a restart"),
        "{answer}"
    );
}

#[test]
fn a_reload_without_a_route_goes_back_to_the_first_receiver() {
    let (_keep, fake) = driver("");
    let place = Place::new(&fake.library, HEAT);
    let first = world::free_address();
    let text = std::fs::read_to_string(place.config()).unwrap();
    let two = text.replace(
        "receivers:\n",
        &format!("receivers:\n  - {{name: first, webhook_configs: [{{url: http://{first}/hook}}]}}\n"),
    );
    std::fs::write(place.config(), &two).unwrap();
    let requests = receive(first);
    let running = place.start();
    let without: String =
        two.lines().filter(|line| !line.starts_with("route:")).map(|line| format!("{line}\n")).collect();
    std::fs::write(place.config(), without).unwrap();
    let answer = running.ask("POST", "/-/reload").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    fake.script("Temperature 2 -> value=91").unwrap();
    assert_eq!(alerts(&next(&requests, &place))[0]["labels"]["alertname"], "GpuTooHot");
}
