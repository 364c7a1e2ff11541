//! `watchfire status`

use serde_json::Value;
use watchfire_engine::printable;

use crate::cli::Status;
use crate::exit::{Exit, Failure};

/// Asks a running Watchfire how it does.
pub fn run(args: &Status) -> Result<Exit, Failure> {
    let answer = ask(&args.url)?;
    if args.json {
        println!("{answer}");
    } else {
        show(&answer);
    }
    Ok(Exit::Fine)
}

fn ask(url: &str) -> Result<Value, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::could_not)?;
    let url = format!("{}/api/v1/status", url.trim_end_matches('/'));
    let none =
        |why: String| Failure::could_not(format!("no Watchfire answers at {url}: {why}; is `watchfire run` up?"));
    let text = runtime.block_on(crate::serve::get_text(&url)).map_err(none)?;
    serde_json::from_str(&text).map_err(|error| none(error.to_string()))
}

fn show(answer: &Value) {
    let engine = &answer["engine"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    println!("Watchfire {}", engine["version"].as_str().unwrap_or("?"));
    println!("alerts    {} firing, {} pending", number(&engine["firing"]), number(&engine["pending"]));
    println!("series    {}, {} samples taken", number(&engine["series"]), number(&engine["samples_total"]));
    match engine["durable"]["Err"].as_str() {
        Some(why) => println!("storage   NOT DURABLE: {why}"),
        None => println!("storage   durable"),
    }
    for alert in engine["alerts"].as_array().into_iter().flatten() {
        let text = |key: &str| alert[key].as_str().unwrap_or("?");
        let labels = alert["labels"].as_object().into_iter().flatten();
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
        println!(
            "alert     {:<9} {:<9} {} {{{}}} since {}",
            text("state"),
            text("severity"),
            text("alert"),
            labels.join(", "),
            text("since")
        );
    }
    answer["sources"].as_array().into_iter().flatten().for_each(show_source);
    answer["heartbeats"].as_array().into_iter().flatten().for_each(show_heartbeat);
    if let Some(why) = answer["reload"]["error"].as_str() {
        println!(
            "reload    REFUSED at {}, what ran before goes on:\n{why}",
            answer["reload"]["at"].as_str().unwrap_or("?")
        );
    }
    for rule in engine["rules"].as_array().into_iter().flatten() {
        let trouble = match (rule["quarantined"].as_bool(), rule["last_failure"].as_str()) {
            (Some(true), Some(why)) => format!("  QUARANTINED: {}", printable(why)),
            (_, Some(why)) => format!("  failing: {}", printable(why)),
            _ => rule["state"].as_str().map(|words| format!("  {words}")).unwrap_or_default(),
        };
        let id = rule["id"].as_str().unwrap_or("?");
        println!(
            "rule      {id:<44} {:>6} rows {:>8} ticks{trouble}",
            number(&rule["rows"]),
            number(&rule["ticks_total"])
        );
    }
    if let Some(shadow) = engine["shadow"].as_object() {
        shadow["rules"].as_array().into_iter().flatten().for_each(show_shadow);
        shadow["latest"].as_array().into_iter().flatten().for_each(show_difference);
    }
    for channel in answer["channels"].as_array().into_iter().flatten() {
        let error =
            channel["last_error"].as_str().map(|why| format!("  last error: {}", printable(why))).unwrap_or_default();
        println!(
            "receiver  {:<44} {:>6} delivered {:>4} waiting {:>4} failed{error}",
            format!("{}/{}", channel["receiver"].as_str().unwrap_or("?"), channel["channel"].as_str().unwrap_or("?")),
            number(&channel["delivered"]),
            number(&channel["queued"]),
            number(&channel["failed"]),
        );
    }
}

fn show_shadow(rule: &Value) {
    let number = |key: &str| rule[key].as_u64().unwrap_or(0);
    let trouble = rule["last_failure"].as_str().map(|why| format!("  failing: {why}")).unwrap_or_default();
    println!(
        "shadow    {:<44} {:>4} only old {:>4} only new {:>4} severity {:>8.0} s{trouble}",
        rule["id"].as_str().unwrap_or("?"),
        number("only_old_total"),
        number("only_new_total"),
        number("severity_differs_total"),
        rule["seconds_differing"].as_f64().unwrap_or(0.0),
    );
}

fn show_difference(one: &Value) {
    let text = |key: &str| one[key].as_str().unwrap_or("-").to_owned();
    let labels = one["labels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value}")).collect();
    println!(
        "differs   {} {} {{{}}} old {} {} new {} {}",
        text("time"),
        text("rule"),
        labels.join(", "),
        text("old_severity"),
        one["old_value"],
        text("new_severity"),
        one["new_value"],
    );
}

fn show_source(source: &Value) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = text(&source["labels"]["instance"]).or_else(|| text(&source["source"])).unwrap_or_default();
    let path = text(&source["labels"]["path"]).unwrap_or_default();
    let read = text(&source["read_at"]).map_or_else(|| "never read".to_owned(), |at| format!("read at {at}"));
    let trouble = match (source["failures"].as_u64().unwrap_or(0), text(&source["last_error"])) {
        (0, _) | (_, None) => String::new(),
        (failures, Some(why)) => format!("  {failures} failures in a row: {why}"),
    };
    println!("source    {:<44} {read}{trouble}", format!("{name}{path}"));
}

fn show_heartbeat(beat: &Value) {
    let number = |key: &str| beat[key].as_u64().unwrap_or(0);
    let last = beat["last_sent"].as_str().unwrap_or("never");
    let trouble = beat["last_error"].as_str().map(|why| format!("  last error: {why}")).unwrap_or_default();
    println!("heartbeat {:>6} sent, the last {last} {:>4} failed{trouble}", number("sent"), number("failed"));
}
