//! `watchfire inspect`

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use watchfire_engine::module_store::hex;
use watchfire_engine::sandbox::{self, Limits, Module, Sandbox, SandboxConfig, manifest, outline};

use crate::author::describe;
use crate::exit::{Exit, Failure};

/// `watchfire inspect`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  watchfire inspect straggler.wasm
  watchfire inspect memory-idle.rhai --json
  watchfire inspect ./*.wasm

A file is described as far as it can be read; a module that cannot be loaded says why, and the exit code is 1.")]
pub struct Inspect {
    /// Modules: .wasm or .rhai
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// One JSON line per file
    #[arg(long)]
    pub json: bool,
}

/// Shows what modules are, need and may do.
pub fn run(args: &Inspect) -> Result<Exit, Failure> {
    let sandbox = Sandbox::new(SandboxConfig::default()).map_err(Failure::could_not)?;
    let mut all_load = true;
    for file in &args.files {
        let bytes = watchfire_engine::read_file(file)
            .map_err(|why| Failure::could_not(format!("{}: {why}", file.display())))?;
        let about = about(&sandbox, &file.display().to_string(), &bytes);
        all_load &= about.get("error").is_none();
        if args.json {
            println!("{}", Value::Object(about));
        } else {
            show(&about, 0);
        }
    }
    Ok(if all_load { Exit::Fine } else { Exit::Wrong })
}

fn about(sandbox: &Sandbox, file: &str, bytes: &[u8]) -> Map<String, Value> {
    let mut about = Map::new();
    about.insert("file".into(), file.into());
    about.insert("bytes".into(), bytes.len().into());
    about.insert("sha256".into(), hex(bytes).into());
    let loaded = if file.ends_with(".rhai") {
        script(sandbox, file, bytes, &mut about)
    } else {
        wasm(sandbox, file, bytes, &mut about)
    };
    match loaded.and_then(|module| module.describe().map_err(|error| error.to_string())) {
        Ok(descriptor) => about.extend(describe::descriptor(&descriptor)),
        Err(why) => drop(about.insert("error".into(), why.into())),
    }
    about.insert("limits".into(), limits(&Limits::default(), about.contains_key("imports")));
    about
}

fn script(sandbox: &Sandbox, file: &str, bytes: &[u8], about: &mut Map<String, Value>) -> Result<Module, String> {
    about.insert("kind".into(), "Rhai script".into());
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
    sandbox.rhai(file, file, text).map_err(|error| error.to_string())
}

fn wasm(sandbox: &Sandbox, file: &str, bytes: &[u8], about: &mut Map<String, Value>) -> Result<Module, String> {
    let outline = outline::outline(bytes).map_err(|why| format!("this is no WebAssembly module: {why}"))?;
    about.insert("kind".into(), outline.kind.into());
    about.insert("imports".into(), json!(outline.imports));
    about.insert("exports".into(), json!(outline.exports));
    let manifest = match manifest::read(bytes) {
        Ok(Some(manifest)) => json!(manifest),
        Ok(None) => "none: it was not built by `watchfire build`".into(),
        Err(why) => why.into(),
    };
    about.insert("manifest".into(), manifest);
    about.insert("contract".into(), sandbox::CONTRACT.into());
    sandbox.wasm(file, bytes).map_err(|error| error.to_string())
}

/// The limits that hold for it where nothing else is said.
fn limits(limits: &Limits, is_wasm: bool) -> Value {
    let per_row = format!("{} + {} a row, at most {}", limits.steps_base, limits.steps_per_row, limits.steps_max);
    let output = format!("{} + {} a row", limits.output_bytes_base, limits.output_bytes_per_row);
    let memory = if is_wasm { json!(limits.memory_bytes) } else { Value::Null };
    json!({
        "module_bytes": limits.module_bytes, "steps": per_row, "memory_bytes": memory, "output_bytes": output,
        "note_bytes": limits.note_bytes, "settings_bytes": limits.settings_bytes, "wall_ms": limits.wall.as_millis(),
    })
}

/// What a reader wants to see first; the rest follows by name.
const ORDER: [&str; 6] = ["file", "error", "kind", "name", "version", "contract"];

/// Names and values, one a line, what lies within indented.
fn show(values: &Map<String, Value>, indent: usize) {
    let pad = " ".repeat(indent);
    let place = |name: &str| ORDER.iter().position(|first| *first == name).unwrap_or(ORDER.len());
    let mut fields: Vec<(&String, &Value)> = values.iter().filter(|(_, value)| !value.is_null()).collect();
    fields.sort_by_key(|(name, _)| place(name));
    for (name, value) in fields {
        match value {
            Value::Object(inner) => {
                println!("{pad}{name}");
                show(inner, indent + 2);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                println!("{pad}{name}");
                items.iter().for_each(|item| println!("{pad}  {}", one_line(item)));
            }
            other => println!("{pad}{name:<16} {}", one_line(other)),
        }
    }
}

fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().filter(|c| !c.is_control()).collect(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(one_line).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let pairs = fields.iter().filter(|(_, value)| !value.is_null());
            pairs.map(|(name, value)| format!("{name}: {}", one_line(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
