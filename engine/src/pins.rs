//! The lock file: what templates and their modules were when somebody looked at them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use watchfire_door::{Errors, Place};
use watchfire_template::ModuleRef;

use crate::catalog::{Given, TemplateSource, name_of, stored};
use crate::load::read_file;
use crate::module_store::{ModuleStore, hex};

/// The name of a lock file.
pub const LOCK_FILE: &str = "watchfire.lock";
/// The form of the file.
const FORM: u32 = 1;

/// Templates and modules by their digests. Written as JSON, which is YAML too: sorted, and the same for the same files.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    lock: u32,
    templates: BTreeMap<String, TemplatePin>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplatePin {
    version: String,
    sha256: String,
    modules: BTreeMap<String, ModulePin>,
    #[serde(skip)]
    file: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModulePin {
    kind: String,
    sha256: String,
    contract: String,
    bytes: usize,
    #[serde(skip)]
    file: String,
}

/// One thing that is not as it was locked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}: locked {expected}, found {found}")]
pub struct PinDrift {
    /// The file that differs.
    pub file: String,
    /// What of it.
    pub what: String,
    /// What is locked.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// A template or a module: what is compared of it, and its file.
type Unit<'a> = (Vec<(&'static str, String)>, &'a str);

impl LockFile {
    /// Where the lock file of a configuration or of templates at a path lies: beside the file, or in the folder.
    pub fn of_path(path: &Path) -> PathBuf {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        folder.join(LOCK_FILE)
    }

    /// What is there now.
    ///
    /// # Errors
    /// All that is wrong with the templates, or cannot be read.
    pub fn of(sources: &[TemplateSource], given: &Given, store: Option<&ModuleStore>) -> Result<Self, Errors> {
        let mut lock = LockFile { lock: FORM, templates: BTreeMap::new() };
        let mut errors = Errors::default();
        for source in sources {
            if let Some((name, pin)) = pin_template(source, given, store, &mut errors) {
                lock.templates.insert(name, pin);
            }
        }
        if errors.is_empty() { Ok(lock) } else { Err(errors) }
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// Why it cannot be read, with its place.
    pub fn read(path: &Path) -> Result<Self, String> {
        let again = "run `watchfire lock` to write it anew";
        let bytes = read_file(path).map_err(|why| format!("{}: {why}; {again}", path.display()))?;
        let lock: LockFile = serde_json::from_slice(&bytes).map_err(|error| {
            format!("{}:{}:{}: this is no lock file: {error}; {again}", path.display(), error.line(), error.column())
        })?;
        if lock.lock != FORM {
            return Err(format!("{}: the lock file has form {}, expected {FORM}; {again}", path.display(), lock.lock));
        }
        Ok(lock)
    }

    /// Its text.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// How many templates and how many modules it names.
    pub fn counts(&self) -> (usize, usize) {
        (self.templates.len(), self.templates.values().map(|template| template.modules.len()).sum())
    }

    /// All that is not as this lock says.
    pub fn drift(&self, found: &LockFile) -> Vec<PinDrift> {
        let (expected, found) = (self.units(), found.units());
        let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
        names.into_iter().flat_map(|name| compare(name, expected.get(name), found.get(name))).collect()
    }

    fn units(&self) -> BTreeMap<String, Unit<'_>> {
        let mut units: BTreeMap<String, Unit<'_>> = BTreeMap::new();
        for (name, template) in &self.templates {
            let fields = vec![("version", template.version.clone()), ("sha256", template.sha256.clone())];
            units.insert(format!("template {name}"), (fields, &template.file));
            for (path, module) in &template.modules {
                let fields = vec![
                    ("kind", module.kind.clone()),
                    ("sha256", module.sha256.clone()),
                    ("contract", module.contract.clone()),
                    ("bytes", module.bytes.to_string()),
                ];
                units.insert(format!("template {name}, module {path}"), (fields, &module.file));
            }
        }
        units
    }
}

fn compare(name: &str, expected: Option<&Unit<'_>>, found: Option<&Unit<'_>>) -> Vec<PinDrift> {
    let drift = |file: &str, what: String, expected: &str, found: &str| PinDrift {
        file: file.to_owned(),
        what,
        expected: expected.to_owned(),
        found: found.to_owned(),
    };
    match (expected, found) {
        (Some((expected, _)), Some((found, file))) => {
            let pairs = expected.iter().zip(found).filter(|(expected, found)| expected != found);
            pairs.map(|((field, locked), (_, now))| drift(file, format!("{name}: {field}"), locked, now)).collect()
        }
        (None, Some((_, file))) => vec![drift(file, name.to_owned(), "nothing", "it")],
        (Some(_), None) => vec![drift(LOCK_FILE, name.to_owned(), "it", "nothing")],
        (None, None) => Vec::new(),
    }
}

fn pin_template(
    source: &TemplateSource,
    given: &Given,
    store: Option<&ModuleStore>,
    errors: &mut Errors,
) -> Option<(String, TemplatePin)> {
    let file = source.file();
    let start = Place { file: file.as_str().into(), line: 1, column: 1 };
    let text = source.text().map_err(|why| errors.add(&start, format!("the file cannot be read: {why}"))).ok()?;
    let empty = BTreeMap::new();
    let given = name_of(&text).and_then(|name| given.get(&name)).unwrap_or(&empty);
    let shipped: Vec<&str> = watchfire_rules::modules().iter().map(|(name, _)| *name).collect();
    let template = watchfire_template::read(&file, &text, given, &shipped, errors)?;
    let mut modules = BTreeMap::new();
    for rule in &template.rules {
        match rule.module.as_ref().map(|module| pin_module(source, module, store)) {
            Some(Ok(Some((name, pin)))) => drop(modules.insert(name, pin)),
            Some(Err(why)) => errors.add(&rule.place, format!("{}: {why}", rule.spec.alert)),
            _ => {}
        }
    }
    Some((template.name, TemplatePin { version: template.version, sha256: hex(text.as_bytes()), modules, file }))
}

/// An expression is part of its template and is pinned with it.
fn pin_module(
    source: &TemplateSource,
    module: &ModuleRef,
    store: Option<&ModuleStore>,
) -> Result<Option<(String, ModulePin)>, String> {
    let (kind, name) = match module {
        ModuleRef::Expression { .. } => return Ok(None),
        ModuleRef::Shipped(name) => ("shipped", name),
        ModuleRef::Oci(reference) => ("oci", reference),
        ModuleRef::Wasm(path) => ("wasm", path),
        ModuleRef::Rhai(path) => ("rhai", path),
    };
    let (file, bytes) = match module {
        ModuleRef::Shipped(name) => {
            let bytes = watchfire_rules::module(name).ok_or_else(|| format!("there is no module `{name}`"))?;
            (format!("shipped:{name}"), bytes.to_vec())
        }
        ModuleRef::Oci(reference) => (reference.clone(), stored(reference, store)?),
        _ => source.beside(name).map_err(|why| format!("module {name}: {why}"))?,
    };
    let contract = watchfire_sandbox::CONTRACT.to_owned();
    let pin = ModulePin { kind: kind.to_owned(), sha256: hex(&bytes), contract, bytes: bytes.len(), file };
    Ok(Some((name.clone(), pin)))
}
