//! What a module says of itself, as JSON.

use serde_json::{Map, Value, json};
use watchfire_engine::{Aggregate, Descriptor, Input, Reads};

/// The fields of a descriptor.
pub fn descriptor(said: &Descriptor) -> Map<String, Value> {
    let schema = serde_json::from_str(&said.settings_schema).unwrap_or(Value::Null);
    let fields = json!({
        "name": said.name,
        "version": said.version,
        "scope": said.scope.as_str(),
        "inputs": said.inputs.iter().map(input).collect::<Vec<_>>(),
        "outputs": said.outputs.iter().map(|output| &**output).collect::<Vec<_>>(),
        "settings_schema": schema,
        "state": format!("{} number(s) a row, version {}", said.state_slots, said.state_version),
        "labels": said.needs_labels,
        "group_by": said.group_by.as_deref(),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn input(input: &Input) -> Value {
    let window = (!input.window.is_zero()).then(|| watchfire_engine::door::format_duration(input.window));
    match &input.reads {
        Reads::Metric { name, aggregate } => json!({
            "metric": &**name, "aggregate": aggregate_name(*aggregate), "window": window,
            "scope": input.scope.as_str(), "required": input.required,
        }),
        Reads::Event { kind, codes, stat } => json!({
            "event": &**kind, "codes": codes, "stat": format!("{stat:?}").to_lowercase(), "window": window,
            "scope": input.scope.as_str(), "required": input.required,
        }),
    }
}

fn aggregate_name(aggregate: Aggregate) -> String {
    match aggregate {
        Aggregate::Quantile(q) => format!("quantile {q}"),
        Aggregate::HistogramQuantile(q) => format!("histogram_quantile {q}"),
        other => format!("{other:?}").to_lowercase(),
    }
}
