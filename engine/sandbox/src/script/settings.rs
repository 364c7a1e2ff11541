//! A rule's settings as its script sees them: to be read, never to be changed. They outlive the call, so a script that
//! could write them would have a memory that the host does not know.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, EvalAltResult, ImmutableString};
use serde_json::{Map, Value};

use super::convert::from_json;

/// Settings, or a map within them.
#[derive(Clone, Debug)]
pub struct Settings(Arc<BTreeMap<ImmutableString, Dynamic>>);

impl Settings {
    /// Settings from JSON.
    pub fn new(entries: &Map<String, Value>) -> Self {
        let entries = entries.iter().map(|(key, value)| (key.as_str().into(), read_only(value)));
        Settings(Arc::new(entries.collect()))
    }

    fn get(&mut self, key: &str) -> Result<Dynamic, Box<EvalAltResult>> {
        let known = || self.0.keys().map(ImmutableString::as_str).collect::<Vec<_>>().join(", ");
        self.0.get(key).cloned().ok_or_else(|| format!("there is no setting `{key}`; there are {}", known()).into())
    }

    fn keys(&mut self) -> Array {
        self.0.keys().cloned().map(Into::into).collect()
    }
}

/// Maps stay settings; a script that changes a list changes its own copy.
fn read_only(value: &Value) -> Dynamic {
    match value {
        Value::Object(entries) => Dynamic::from(Settings::new(entries)),
        Value::Array(items) => items.iter().map(read_only).collect::<Array>().into(),
        plain => from_json(plain),
    }
}

/// Registers the type.
pub fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Settings>("Settings")
        .register_indexer_get(Settings::get)
        .register_fn("keys", Settings::keys)
        .register_fn("len", |settings: &mut Settings| i64::try_from(settings.0.len()).unwrap_or(i64::MAX))
        .register_fn("contains", |settings: &mut Settings, key: &str| settings.0.contains_key(key));
}
