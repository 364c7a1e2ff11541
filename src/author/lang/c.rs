//! C, with the SDK beside the rule: it needs clang and lld, and no library.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Language, contract, tool};
use crate::author::build::run;

macro_rules! sdk {
    ($file:literal) => {
        (concat!("watchfire/", $file), include_str!(concat!("../../../sdk/c/", $file)))
    };
}

/// C.
pub const LANGUAGE: Language = Language {
    name: "c",
    files: &[
        ("rule.c", include_str!("../scaffold/c/rule.c")),
        sdk!("watchfire.h"),
        sdk!("watchfire.c"),
        sdk!("settings.c"),
        sdk!("memory.c"),
        sdk!("internal.h"),
        sdk!("bindings/watchfire_rule.h"),
        sdk!("bindings/watchfire_rule.c"),
        sdk!("libc/stdlib.h"),
        sdk!("libc/string.h"),
    ],
    source: "rule.c",
    marker: "rule.c",
    build: Some(build),
    runtime: "",
    tests: "",
};

/// A rule's stack, within the host's 512 KiB.
const STACK: &str = "-Wl,-z,stack-size=131072";
const FLAGS: [&str; 13] = [
    "--target=wasm32-unknown-unknown",
    "-mbulk-memory",
    "-O2",
    "-std=c11",
    "-Wall",
    // The SDK's memory.c is the C library; its functions must not become calls of themselves.
    "-fno-builtin",
    // A product and a sum are two roundings, as in every other language.
    "-ffp-contract=off",
    "-nostdlib",
    "-nostdlibinc",
    "-isystemwatchfire/libc",
    "-Iwatchfire",
    "-Wl,--no-entry",
    "-Wl,--strip-debug",
];

fn build(folder: &Path) -> Result<Vec<u8>, String> {
    let (clang, linker) = toolchain()?;
    let made = tempfile::tempdir().map_err(|error| error.to_string())?;
    let module = made.path().join("rule.wasm");
    let mut command = Command::new(clang);
    command.current_dir(folder).args(FLAGS).arg(STACK).arg(format!("-fuse-ld={}", linker.display()));
    run(command.args(c_files(folder)?).arg("-o").arg(&module))?;
    let mut bytes = std::fs::read(&module).map_err(|error| format!("{}: {error}", module.display()))?;
    contract::embed(&mut bytes)?;
    Ok(bytes)
}

/// The rule's own files and the SDK's.
fn c_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for part in ["", "watchfire", "watchfire/bindings"] {
        let said = |error: std::io::Error| format!("{}: {error}", folder.join(part).display());
        let entries = std::fs::read_dir(folder.join(part)).map_err(said)?;
        let names = entries.flatten().map(|entry| Path::new(part).join(entry.file_name()));
        files.extend(names.filter(|name| name.extension().is_some_and(|ending| ending == "c")));
    }
    files.sort();
    Ok(files)
}

/// A clang with a linker for WebAssembly, of the oldest version that is known to do.
fn toolchain() -> Result<(PathBuf, PathBuf), String> {
    let versions: Vec<String> = (14..=24).rev().map(|version| format!("-{version}")).collect();
    let found = |name: &str| {
        let plain = std::iter::once(name.to_owned());
        plain.chain(versions.iter().map(|version| format!("{name}{version}"))).find_map(|name| tool::on_path(&name))
    };
    let missing = "there is no clang with a linker for WebAssembly: run `apt-get install clang lld` on Debian or Ubuntu, `dnf install clang lld` on Fedora, or `brew install llvm lld` on macOS";
    found("clang").zip(found("wasm-ld")).ok_or_else(|| missing.to_owned())
}
