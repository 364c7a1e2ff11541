//! The tools of the languages that rules can be written in, of the versions that the scaffolds name. Node's and Python's
//! packages go below `target/tools`; what cannot be had is named, and its tests skip.

use std::path::Path;
use std::time::Duration;

use crate::setup::apt;
use crate::shell::{command, has, root, say, within};

const WAIT: Duration = Duration::from_secs(600);
const PACKAGE: &str = include_str!("../../src/author/scaffold/js/package.json");
const REQUIREMENTS: &str = include_str!("../../src/author/scaffold/python/requirements.txt");

/// Installs what is missing.
pub fn install() {
    type IsThere = fn() -> bool;
    let languages: [(&str, IsThere); 4] =
        [("C", clang), ("JavaScript", componentize_qjs), ("Python", componentize_py), ("Go", go)];
    for (name, _) in languages.iter().filter(|(_, install)| !install()) {
        say(&format!("no tools for {name}: its tests will skip"));
    }
}

fn clang() -> bool {
    let there = || has("clang") && has("wasm-ld");
    there() || (apt(&["clang", "lld"]) && there())
}

/// Go is taken as it is: what Debian has may be too old.
fn go() -> bool {
    has("go")
}

fn componentize_qjs() -> bool {
    let folder = root().join("target/tools/js");
    let wanted = PACKAGE.replace("__NAME__", "tools");
    if is_kept(&folder, "package.json", &wanted) && folder.join("node_modules/.bin/componentize-qjs").exists() {
        return true;
    }
    if !has("npm") && !apt(&["nodejs", "npm"]) {
        return false;
    }
    say("installing componentize-qjs from npm into target/tools/js");
    keep(&folder, "package.json", &wanted)
        && within(WAIT, command("npm", &["install", "--silent"]).current_dir(&folder))
}

fn componentize_py() -> bool {
    let folder = root().join("target/tools/python");
    if is_kept(&folder, "requirements.txt", REQUIREMENTS) && folder.join("bin/componentize-py").exists() {
        return true;
    }
    say("installing componentize-py from PyPI into target/tools/python");
    let venv = || within(WAIT, &mut command("python3", &["-m", "venv", &folder.display().to_string()]));
    let pip = folder.join("bin/pip").display().to_string();
    let install = || within(WAIT, command(&pip, &["install", "--quiet"]).args(REQUIREMENTS.lines()));
    (venv() || (apt(&["python3-venv"]) && venv())) && install() && keep(&folder, "requirements.txt", REQUIREMENTS)
}

/// Whether what was installed there is what is wanted now.
fn is_kept(folder: &Path, name: &str, wanted: &str) -> bool {
    std::fs::read_to_string(folder.join(name)).is_ok_and(|kept| kept == wanted)
}

fn keep(folder: &Path, name: &str, wanted: &str) -> bool {
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(folder.join(name), wanted)).is_ok()
}
