//! The languages that a rule can be written in: one file each, one line in [`ALL`].

mod c;
mod contract;
mod go;
mod js;
mod python;
mod rhai;
mod rust;
mod tool;

use std::path::Path;

/// A file of a scaffold: its path below the rule's folder, and its text with `__NAME__` for the rule's name.
pub type File = (&'static str, &'static str);

/// How the sources in a folder become a module: a core module with the contract in it, or a component.
pub type Build = fn(&Path) -> Result<Vec<u8>, String>;

/// One language.
#[derive(Debug)]
pub struct Language {
    /// What `--lang` calls it.
    pub name: &'static str,
    /// What its scaffold has beside template, scenarios and README.
    pub files: &'static [File],
    /// The file that holds the rule; `__NAME__` stands for its name.
    pub source: &'static str,
    /// The file by which a folder of this language is known; `__NAME__` may stand in it.
    pub marker: &'static str,
    /// How it is built; none where the source itself is the module.
    pub build: Option<Build>,
    /// The class of limits that its modules need: empty, or `large` where they bring an interpreter.
    pub runtime: &'static str,
    /// A line of commands for the README, for what can be run before it is built; may be empty.
    pub tests: &'static str,
}

/// All languages, in the order in which they are shown.
pub static ALL: &[&Language] =
    &[&rhai::LANGUAGE, &rust::LANGUAGE, &js::LANGUAGE, &python::LANGUAGE, &c::LANGUAGE, &go::LANGUAGE];

impl Language {
    /// The ending of the module's file.
    pub fn ending(&self) -> &'static str {
        if self.build.is_some() { "wasm" } else { "rhai" }
    }
}

/// The language called so.
///
/// # Errors
/// Where there is none, with the names that there are.
pub fn named(name: &str) -> Result<&'static Language, String> {
    let names = || ALL.iter().map(|language| language.name).collect::<Vec<_>>().join(", ");
    let found = ALL.iter().find(|language| language.name == name);
    found.copied().ok_or_else(|| format!("there is no language {name:?}; expected one of {}", names()))
}

/// The language of the sources in a folder.
pub fn of(folder: &Path) -> Option<&'static Language> {
    let built = ALL.iter().filter(|language| language.build.is_some());
    built.copied().find(|language| folder.join(language.marker).exists())
}
