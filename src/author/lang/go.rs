//! Go, with the SDK beside the rule: it needs Go 1.24 or newer and nothing else. Go speaks WASI; what it asks of it is
//! answered inside the module (`preview1.wat`), so that the module imports nothing.

use std::path::Path;
use std::process::Command;

use super::{Language, contract, tool};
use crate::author::build::run;

macro_rules! sdk {
    ($file:literal) => {
        (concat!("watchfire/", $file), include_str!(concat!("../../../sdk/go/", $file)))
    };
}

/// Go.
pub const LANGUAGE: Language = Language {
    name: "go",
    files: &[
        ("rule.go", include_str!("../scaffold/go/rule.go")),
        ("rule_test.go", include_str!("../scaffold/go/rule_test.go")),
        ("go.mod", include_str!("../scaffold/go/module.txt")),
        sdk!("watchfire.go"),
        sdk!("rows.go"),
        sdk!("report.go"),
        sdk!("settings.go"),
        sdk!("bench.go"),
        sdk!("log.go"),
        sdk!("abi_wasm.go"),
    ],
    source: "rule.go",
    marker: "go.mod",
    build: Some(build),
    runtime: "large",
    tests: "go test                       # the rule as it is, before it is built\n",
};

/// What Go calls WASI.
const WASI: &str = "wasi_snapshot_preview1";
const PREVIEW1: &str = include_str!("../scaffold/go/preview1.wat");

fn build(folder: &Path) -> Result<Vec<u8>, String> {
    if tool::on_path("go").is_none() {
        return Err("there is no go: install Go 1.24 or newer by https://go.dev/dl, `apt-get install golang-go` on Debian 13, or `brew install go` on macOS".to_owned());
    }
    let made = tempfile::tempdir().map_err(|error| error.to_string())?;
    let module = made.path().join("rule.wasm");
    let mut go = Command::new("go");
    go.current_dir(folder).env("GOOS", "wasip1").env("GOARCH", "wasm");
    // Names and places of this machine are no part of a module.
    go.args(["build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o"]);
    run(go.arg(&module).arg("."))?;
    let mut bytes = std::fs::read(&module).map_err(|error| format!("{}: {error}", module.display()))?;
    contract::embed(&mut bytes)?;
    let adapter = wat::parse_str(PREVIEW1).map_err(|error| format!("preview1.wat: {error}"))?;
    contract::adapt(&bytes, WASI, &adapter)
}
