//! What a script says of itself.

use std::time::Duration;

use rhai::Dynamic;
use serde_json::{Map, Value};
use watchfire_core::{Aggregate, Descriptor, EventStat, Input, Reads, Scope};

use super::convert::to_json;
use crate::SettingProblem;
use crate::scope::{aggregate, event_stat, scope};

type Defaults = Map<String, Value>;

/// Reads what `describe` gave.
pub fn read(said: &Dynamic) -> Result<(Descriptor, Defaults), String> {
    let Value::Object(mut map) = to_json(said) else { return Err("`describe` must give a map".to_owned()) };
    let rows = scope(&text(&mut map, "scope")?.unwrap_or_else(|| "gpu".to_owned()))?;
    let inputs = array(&mut map, "inputs")?;
    let inputs = inputs.into_iter().map(|input| read_input(input, rows)).collect::<Result<Vec<_>, _>>()?;
    let outputs = array(&mut map, "outputs")?;
    let outputs = outputs.iter().map(|name| name.as_str().map(Into::into).ok_or("`outputs` must be texts".to_owned()));
    let descriptor = Descriptor {
        name: text(&mut map, "name")?.ok_or("`describe` must give a `name`")?,
        version: text(&mut map, "version")?.unwrap_or_else(|| "0.0.0".to_owned()),
        scope: rows,
        inputs,
        outputs: outputs.collect::<Result<_, _>>()?,
        settings_schema: String::new(),
        state_slots: whole(&mut map, "state_slots")?,
        state_version: whole(&mut map, "state_version")?,
        needs_labels: map.remove("needs_labels").is_some_and(|value| value == Value::Bool(true)),
        group_by: text(&mut map, "group_by")?.map(Into::into),
    };
    let defaults = match map.remove("settings") {
        None => Defaults::new(),
        Some(Value::Object(defaults)) => defaults,
        Some(_) => return Err("`settings` must be a map of defaults".to_owned()),
    };
    nothing_left(&map, "`describe`")?;
    Ok((descriptor, defaults))
}

fn read_input(input: Value, rows: Scope) -> Result<Input, String> {
    let Value::Object(mut map) = input else { return Err("each of `inputs` must be a map".to_owned()) };
    let window = text(&mut map, "window")?.map_or(Ok(Duration::ZERO), |text| duration(&text))?;
    let required = map.remove("required").is_none_or(|value| value != Value::Bool(false));
    let named_scope = text(&mut map, "scope")?.map(|word| scope(&word)).transpose()?;
    let reads = match (text(&mut map, "metric")?, text(&mut map, "event")?) {
        (Some(metric), None) => Reads::Metric { aggregate: read_aggregate(&mut map, window)?, name: metric.into() },
        (None, Some(kind)) => Reads::Event { codes: codes(&mut map)?, stat: read_stat(&mut map)?, kind: kind.into() },
        _ => return Err("each of `inputs` must have either `metric` or `event`".to_owned()),
    };
    nothing_left(&map, "an input")?;
    let told = match &reads {
        Reads::Metric { name, .. } => Scope::of_metric(name),
        Reads::Event { .. } => None,
    };
    Ok(Input { reads, scope: named_scope.or(told).unwrap_or(rows), window, required, only: Vec::new() })
}

fn read_aggregate(map: &mut Map<String, Value>, window: Duration) -> Result<Aggregate, String> {
    let name = text(map, "aggregate")?.unwrap_or_else(|| "last".to_owned());
    let aggregate = aggregate(&name, map.remove("quantile").and_then(|value| value.as_f64()))?;
    if aggregate != Aggregate::Last && window.is_zero() {
        return Err(format!("`{name}` needs a `window`, such as \"5m\""));
    }
    Ok(aggregate)
}

fn read_stat(map: &mut Map<String, Value>) -> Result<EventStat, String> {
    event_stat(&text(map, "stat")?.unwrap_or_else(|| "count".to_owned()))
}

fn codes(map: &mut Map<String, Value>) -> Result<Vec<u32>, String> {
    let codes = array(map, "codes")?;
    let code = |value: &Value| value.as_u64().and_then(|code| u32::try_from(code).ok());
    codes.iter().map(|value| code(value).ok_or_else(|| format!("{value} is no code"))).collect()
}

fn text(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("`{key}` must be a text, found {other}")),
    }
}

fn whole(map: &mut Map<String, Value>, key: &str) -> Result<u32, String> {
    let Some(value) = map.remove(key) else { return Ok(0) };
    let whole = value.as_u64().and_then(|whole| u32::try_from(whole).ok());
    whole.ok_or_else(|| format!("`{key}` must be a whole number, found {value}"))
}

fn array(map: &mut Map<String, Value>, key: &str) -> Result<Vec<Value>, String> {
    match map.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(format!("`{key}` must be an array, found {other}")),
    }
}

fn nothing_left(map: &Map<String, Value>, whose: &str) -> Result<(), String> {
    match map.keys().next() {
        Some(key) => Err(format!("{whose} has an unknown key `{key}`")),
        None => Ok(()),
    }
}

/// Seconds, minutes, hours and days, as in templates.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit_s = match &text[digits..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => 0,
    };
    let seconds = text[..digits].parse::<u64>().ok().and_then(|number| number.checked_mul(unit_s));
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{text:?} is no window; expected a number with s, m, h or d, such as 5m"))
}

/// Reads what `validate_settings` gave: an array of `#{path, message}`.
pub fn problems(said: &Dynamic) -> Result<(), Vec<SettingProblem>> {
    let Value::Array(items) = to_json(said) else {
        let message = "`validate_settings` must give an array of #{path, message}".to_owned();
        return Err(vec![SettingProblem { path: String::new(), message }]);
    };
    let word = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let problems: Vec<SettingProblem> =
        items.iter().map(|item| SettingProblem { path: word(item, "path"), message: word(item, "message") }).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
