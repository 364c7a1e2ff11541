//! Python, by CPython itself: it needs the package `componentize-py`.

use std::path::Path;
use std::process::Command;

use super::{Language, contract, tool};
use crate::author::build::run;

macro_rules! sdk {
    ($file:literal) => {
        (concat!("watchfire/", $file), include_str!(concat!("../../../sdk/python/watchfire/", $file)))
    };
}

/// Python.
pub const LANGUAGE: Language = Language {
    name: "python",
    files: &[
        ("rule.py", include_str!("../scaffold/python/rule.py")),
        ("test_rule.py", include_str!("../scaffold/python/test_rule.py")),
        ("requirements.txt", include_str!("../scaffold/python/requirements.txt")),
        (".gitignore", ".venv/\n__pycache__/\n"),
        sdk!("__init__.py"),
        sdk!("contract.py"),
        sdk!("testing.py"),
    ],
    source: "rule.py",
    marker: "rule.py",
    build: Some(build),
    runtime: "large",
    tests: "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt    # once: the compiler, into this folder\npython3 -m unittest           # the rule as it is, before it is built\n",
};

fn build(folder: &Path) -> Result<Vec<u8>, String> {
    let found = tool::own_or_on_path(folder, ".venv/bin", "componentize-py");
    let compiler = found.ok_or_else(|| {
        format!(
            "there is no componentize-py: run `python3 -m venv .venv && .venv/bin/pip install -r requirements.txt` in {}; Debian has venv in `apt-get install python3-venv`",
            folder.display()
        )
    })?;
    let made = tempfile::tempdir().map_err(|error| error.to_string())?;
    contract::write(made.path())?;
    let sources = copy_sources(folder, made.path())?;
    let module = made.path().join("rule.wasm");
    let mut command = Command::new(compiler);
    command.current_dir(&sources).arg("--quiet").arg("--wit-path").arg(made.path());
    command.args(["--world", contract::WORLD, "componentize", "rule", "--python-path", ".", "--stub-wasi"]);
    // The interpreter is frozen as it stands after the rule was loaded: with the same seed each time.
    command.env("PYTHONHASHSEED", "0").env_remove("VIRTUAL_ENV");
    run(command.arg("--output").arg(&module))?;
    std::fs::read(&module).map_err(|error| format!("{}: {error}", module.display()))
}

/// The Python files alone, so that what else lies in the folder cannot get into the module.
fn copy_sources(folder: &Path, into: &Path) -> Result<std::path::PathBuf, String> {
    let into = into.join("sources");
    copy_python(folder, &into)?;
    Ok(into)
}

fn copy_python(from: &Path, into: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{}: {error}", from.display());
    std::fs::create_dir_all(into).map_err(said)?;
    for entry in std::fs::read_dir(from).map_err(said)?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_package = path.is_dir() && path.join("__init__.py").exists();
        if is_package {
            copy_python(&path, &into.join(&name))?;
        } else if path.extension().is_some_and(|ending| ending == "py") {
            std::fs::copy(&path, into.join(&name)).map_err(said)?;
        }
    }
    Ok(())
}
