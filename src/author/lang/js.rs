//! JavaScript, by QuickJS: it needs Node and the package `componentize-qjs`.

use std::path::Path;
use std::process::Command;

use super::{Language, contract, tool};
use crate::author::build::run;

macro_rules! sdk {
    ($file:literal) => {
        (concat!("watchfire/", $file), include_str!(concat!("../../../sdk/js/", $file)))
    };
}

/// JavaScript.
pub const LANGUAGE: Language = Language {
    name: "js",
    files: &[
        ("rule.js", include_str!("../scaffold/js/rule.js")),
        ("rule.test.js", include_str!("../scaffold/js/rule.test.js")),
        ("package.json", include_str!("../scaffold/js/package.json")),
        (".gitignore", "node_modules/\n"),
        sdk!("watchfire.js"),
        sdk!("log.js"),
        sdk!("testing.js"),
    ],
    source: "rule.js",
    marker: "rule.js",
    build: Some(build),
    runtime: "large",
    tests: "npm install                   # once: the compiler, into this folder\nnode --test                   # the rule as it is, before it is built\n",
};

/// No WASI, and no asynchronous calls, which the contract does not have. The engine that is optimised for size would save a
/// third of the module and take three times as long.
const FLAGS: [&str; 7] = ["--js", "rule.js", "--module-root", ".", "--stub-wasi", "--sync", "--world"];

fn build(folder: &Path) -> Result<Vec<u8>, String> {
    let found = tool::own_or_on_path(folder, "node_modules/.bin", "componentize-qjs");
    let compiler = found.ok_or_else(|| {
        let why = if tool::on_path("npm").is_some() {
            ""
        } else {
            ", after Node by https://nodejs.org, `apt-get install npm` or `brew install node`"
        };
        format!("there is no componentize-qjs: run `npm install` in {}{why}", folder.display())
    })?;
    let made = tempfile::tempdir().map_err(|error| error.to_string())?;
    contract::write(made.path())?;
    let module = made.path().join("rule.wasm");
    let mut command = Command::new(compiler);
    command.current_dir(folder).args(FLAGS).arg(contract::WORLD).arg("--wit").arg(made.path());
    run(command.arg("--output").arg(&module))?;
    std::fs::read(&module).map_err(|error| format!("{}: {error}", module.display()))
}
