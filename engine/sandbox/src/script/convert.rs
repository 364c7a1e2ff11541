//! Settings on their way into a script.

use rhai::{Dynamic, Map};

/// JSON as a script's value. Numbers become floats: a script compares them with floats.
pub fn from_json(value: &serde_json::Value) -> Dynamic {
    match value {
        serde_json::Value::Null => Dynamic::UNIT,
        serde_json::Value::Bool(truth) => (*truth).into(),
        serde_json::Value::Number(number) => number.as_f64().map_or(Dynamic::UNIT, Dynamic::from_float),
        serde_json::Value::String(text) => text.clone().into(),
        serde_json::Value::Array(items) => items.iter().map(from_json).collect::<Vec<_>>().into(),
        serde_json::Value::Object(entries) => {
            let map: Map = entries.iter().map(|(key, value)| (key.as_str().into(), from_json(value))).collect();
            map.into()
        }
    }
}

/// The numbers of an array; none where it is no array of numbers.
pub fn numbers(value: &Dynamic) -> Option<Vec<f64>> {
    let serde_json::Value::Array(values) = to_json(value) else { return None };
    values.iter().map(serde_json::Value::as_f64).collect()
}

/// A script's value as JSON, as far as JSON can say it.
pub fn to_json(value: &Dynamic) -> serde_json::Value {
    if let Ok(truth) = value.as_bool() {
        truth.into()
    } else if let Ok(whole) = value.as_int() {
        whole.into()
    } else if let Ok(float) = value.as_float() {
        serde_json::Number::from_f64(float).map_or(serde_json::Value::Null, Into::into)
    } else if let Some(items) = value.read_lock::<rhai::Array>() {
        items.iter().map(to_json).collect::<Vec<_>>().into()
    } else if let Some(map) = value.read_lock::<Map>() {
        serde_json::Value::Object(map.iter().map(|(key, value)| (key.to_string(), to_json(value))).collect())
    } else if let Ok(text) = value.clone().into_immutable_string() {
        text.to_string().into()
    } else {
        serde_json::Value::Null
    }
}
