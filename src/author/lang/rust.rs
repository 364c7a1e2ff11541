//! Rust, with the SDK beside the rule: it needs cargo and the target `wasm32-unknown-unknown`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Language;
use crate::author::build::run;

const TARGET: &str = "wasm32-unknown-unknown";

macro_rules! sdk {
    ($file:literal) => {
        (concat!("vendor/watchfire-sdk/src/", $file), include_str!(concat!("../../../sdk/rust/src/", $file)))
    };
}

/// Rust.
pub const LANGUAGE: Language = Language {
    name: "rust",
    files: &[
        ("src/lib.rs", include_str!("../scaffold/rust/lib.rs")),
        ("Cargo.toml", include_str!("../scaffold/rust/package.toml")),
        ("rust-toolchain.toml", include_str!("../scaffold/rust/rust-toolchain.toml")),
        (".gitignore", "target/\n"),
        ("vendor/watchfire-sdk/Cargo.toml", include_str!("../scaffold/rust/sdk.toml")),
        sdk!("lib.rs"),
        sdk!("bindings.rs"),
        sdk!("guest.rs"),
        sdk!("inputs.rs"),
        sdk!("report.rs"),
        sdk!("rows.rs"),
        sdk!("rule.rs"),
        sdk!("testing.rs"),
    ],
    source: "src/lib.rs",
    marker: "Cargo.toml",
    build: Some(build),
    runtime: "",
    tests: "cargo test                    # the rule as it is, before it is built\n",
};

fn build(folder: &Path) -> Result<Vec<u8>, String> {
    let mut cargo = toolchain(folder)?;
    // Outside the rule's folder's sources; where the author says otherwise, there.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    cargo
        .current_dir(folder)
        .args(["build", "--quiet", "--release", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target);
    run(&mut cargo)?;
    let built = target.join(TARGET).join("release");
    let name = crate_name(folder)?.replace('-', "_");
    let file = built.join(format!("{name}.wasm"));
    std::fs::read(&file).map_err(|error| format!("{}: {error}; is it a cdylib?", file.display()))
}

/// A cargo that can build for WebAssembly: that of the author, or Debian's, which builds the library from source.
fn toolchain(folder: &Path) -> Result<Command, String> {
    let ask = |program: &str, args: &[&str]| -> Option<String> {
        let output = Command::new(program).args(args).current_dir(folder).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if ask("cargo", &["--version"]).is_none() {
        return Err("there is no cargo: install Rust, by https://rustup.rs or `apt-get install rustc-web cargo-web rust-web-src lld-22`".to_owned());
    }
    let libraries = ask("rustc", &["--print", "target-libdir", "--target", TARGET]);
    if libraries.is_some_and(|folder| Path::new(&folder).exists()) {
        return Ok(Command::new("cargo"));
    }
    let sysroot = ask("/usr/bin/rustc", &["--print", "sysroot"]).map(PathBuf::from);
    if sysroot.is_some_and(|sysroot| sysroot.join("lib/rustlib/src/rust/library/std").exists()) {
        let mut cargo = Command::new("/usr/bin/cargo");
        cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1");
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld-22").arg("-Zbuild-std=std,panic_abort");
        return Ok(cargo);
    }
    Err(match ask("rustup", &["--version"]) {
        Some(_) => format!("the target {TARGET} is missing: run `rustup target add {TARGET}`"),
        None => format!(
            "the target {TARGET} is missing, and this Rust is not rustup's: run `apt-get install rustc-web cargo-web rust-web-src lld-22` on Debian, or install Rust by https://rustup.rs"
        ),
    })
}

fn crate_name(folder: &Path) -> Result<String, String> {
    let file = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    line.map(str::to_owned).ok_or_else(|| format!("{}: there is no line `name = \"…\"`", file.display()))
}
