//! Makes a module of a folder of sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use watchfire_engine::Reads;
use watchfire_engine::module_store::hex;
use watchfire_engine::sandbox::manifest::{self, Manifest, Needs};
use watchfire_engine::sandbox::{Sandbox, SandboxConfig, componentize};

use super::{Language, lang};

/// What was built.
#[derive(Debug)]
pub struct Built {
    /// Its file.
    pub file: PathBuf,
    /// Its size, bytes.
    pub bytes: usize,
    /// What is written in it.
    pub manifest: Manifest,
}

/// Builds the module that the template in a folder names.
///
/// # Errors
/// Why it cannot be built, with what to do.
pub fn build(folder: &Path) -> Result<Built, String> {
    let language = lang::of(folder).ok_or_else(|| nothing_to_build(folder))?;
    let file = module_file(folder, true)?;
    let compile = language.build.ok_or_else(|| nothing_to_build(folder))?;
    let module = compile(folder)?;
    let said =
        |error: &dyn std::fmt::Display| format!("{}: {error}{}", file.display(), advice(language, &error.to_string()));
    let component = if is_component(&module) { module } else { componentize(&module).map_err(|error| said(&error))? };
    let manifest = describe(&component, language, folder).map_err(|error| said(&error))?;
    let component = manifest::attach(component, &manifest)?;
    fs::write(&file, &component).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Built { bytes: component.len(), file, manifest })
}

fn nothing_to_build(folder: &Path) -> String {
    let known: Vec<String> = lang::ALL
        .iter()
        .filter(|language| language.build.is_some())
        .map(|language| format!("{} ({})", language.marker.replace("__NAME__", "NAME"), language.name))
        .collect();
    format!(
        "{}: there is nothing to build; expected {}. A Rhai script is run as it is",
        folder.display(),
        known.join(", ")
    )
}

/// The module that `template.yaml` names, beside it: what is built, or else a script.
///
/// # Errors
/// Where it names none.
pub fn module_file(folder: &Path, is_built: bool) -> Result<PathBuf, String> {
    let ending = if is_built { ".wasm" } else { ".rhai" };
    let template = folder.join("template.yaml");
    let text = fs::read_to_string(&template).map_err(|error| format!("{}: {error}", template.display()))?;
    let named = text.split(['\n', ',', '}']).find_map(|part| {
        let value = part.split_once("module:")?.1.split(" #").next()?.trim().trim_matches(['"', '\'']);
        value.ends_with(ending).then(|| value.trim_start_matches("./").to_owned())
    });
    named
        .map(|name| folder.join(name))
        .ok_or_else(|| format!("{}: no rule has `module: ./NAME{ending}`", template.display()))
}

fn is_component(module: &[u8]) -> bool {
    module.get(4..8) == Some(&[0x0d, 0, 1, 0])
}

fn describe(component: &[u8], language: &Language, folder: &Path) -> Result<Manifest, String> {
    let sandbox = Sandbox::new(SandboxConfig::default()).map_err(|error| error.to_string())?;
    // Its class decides under which limits it is asked.
    let class = Manifest { language: language.name.into(), runtime: language.runtime.into(), ..Manifest::default() };
    let component = manifest::attach(component.to_vec(), &class)?;
    let module = sandbox.wasm(language.name, &component).map_err(|error| error.to_string())?;
    let said = module.describe().map_err(|error| error.to_string())?;
    Ok(Manifest {
        contract: watchfire_engine::sandbox::CONTRACT.to_owned(),
        name: said.name.to_string(),
        version: said.version.to_string(),
        language: language.name.to_owned(),
        runtime: language.runtime.to_owned(),
        source_sha256: source_digest(folder)?,
        built_by: format!("watchfire {}", env!("CARGO_PKG_VERSION")),
        needs: Needs {
            scope: said.scope.as_str().to_owned(),
            inputs: said.inputs.iter().map(|input| reads(&input.reads)).collect(),
            outputs: said.outputs.iter().map(|output| output.to_string()).collect(),
            state_slots: said.state_slots,
            labels: said.needs_labels,
            group_by: said.group_by.map(|label| label.to_string()),
        },
    })
}

fn reads(reads: &Reads) -> String {
    match reads {
        Reads::Metric { name, .. } => name.to_string(),
        Reads::Event { kind, .. } => format!("event {kind}"),
    }
}

/// How each toolchain is told to leave WASI out.
fn advice(language: &Language, error: &str) -> &'static str {
    match (error.contains("wasi"), language.name) {
        (false, _) => "",
        (_, "rust") => "\n  hint: build for wasm32-unknown-unknown, not wasm32-wasip1 or -wasip2",
        (_, "js") => "\n  hint: componentize-qjs needs `--stub-wasi`",
        (_, "python") => "\n  hint: componentize-py needs `--stub-wasi`",
        (_, "c") => "\n  hint: clang needs `--target=wasm32-unknown-unknown -nostdlib`, and no libc that speaks WASI",
        _ => "\n  hint: the module imports WASI, which no rule may",
    }
}

/// SHA-256 over names and contents of the sources, in the order of their names.
fn source_digest(folder: &Path) -> Result<String, String> {
    let mut all = Vec::new();
    for path in sources(folder)? {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        all.extend_from_slice(format!("{name}\0{}\0", hex(&content)).as_bytes());
    }
    Ok(hex(&all))
}

/// Folders that hold what tools put there, and no sources.
const NOT_SOURCES: [&str; 5] = ["target", "node_modules", "scenarios", "build", "__pycache__"];

/// The files that a module is made of: all but what is built, hidden, or only tests it.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || NOT_SOURCES.contains(&&*name) || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if !name.ends_with(".wasm") && name != "template.yaml" && name != "README.md" {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Builds what is missing or older than its sources; what was built.
///
/// # Errors
/// As [`build`].
pub fn build_stale(folder: &Path) -> Result<Option<Built>, String> {
    if lang::of(folder).is_none() || !folder.join("template.yaml").exists() {
        return Ok(None);
    }
    let Ok(file) = module_file(folder, true) else { return Ok(None) };
    let changed = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let newest = sources(folder)?.iter().map(|path| changed(path)).max();
    if file.exists() && newest.is_none_or(|newest| newest <= changed(&file)) {
        return Ok(None);
    }
    build(folder).map(Some)
}

/// Runs a tool and lets it speak; its failure with the command.
///
/// # Errors
/// Where it cannot be run or fails.
pub fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}").replace('"', "");
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown} failed ({status})")) }
}
