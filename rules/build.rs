//! Builds each rule crate below this folder for WebAssembly, and embeds the modules and the templates.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
const TARGET_MISSING: &str = "the WebAssembly target is missing: run `cargo xtask rules`, which finds or installs it";

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let folders = folders(&here)?;
    let rules: Vec<&PathBuf> = folders.iter().filter(|folder| folder.join("Cargo.toml").exists()).collect();
    let templates: Vec<&PathBuf> = folders.iter().filter(|folder| folder.join("template.yaml").exists()).collect();
    let modules = build(&here, &rules)?;
    std::fs::write(out.join("shipped.rs"), shipped(&modules, &templates)?)?;
    for path in ["sdk/rust/src", "sdk/rust/Cargo.toml", "sdk/wit"] {
        println!("cargo::rerun-if-changed={}", root(&here).join(path).display());
    }
    folders.iter().for_each(|folder| println!("cargo::rerun-if-changed={}", folder.display()));
    Ok(())
}

/// The folders beside this file that are a rule crate or a template, by name.
fn folders(here: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(here)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    folders.retain(|path| path.join("Cargo.toml").exists() || path.join("template.yaml").exists());
    folders.sort();
    Ok(folders)
}

/// The workspace's folder.
fn root(here: &Path) -> &Path {
    here.ancestors().find(|folder| folder.join("Cargo.lock").exists()).unwrap_or(here)
}

/// Builds the rule crates; answers each one's name and module.
fn build(here: &Path, rules: &[&PathBuf]) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let target_dir = root(here).join("target/rules");
    let mut cargo = toolchain()?;
    cargo.current_dir(root(here)).args(["build", "--quiet", "--target", TARGET, "--profile", "rule"]);
    cargo.arg("--target-dir").arg(&target_dir);
    for rule in rules {
        cargo.args(["--package", &format!("rule-{}", name_of(rule))]);
    }
    let done = cargo.output()?;
    if !done.status.success() {
        return Err(format!("building the rules failed:\n{}", String::from_utf8_lossy(&done.stderr)).into());
    }
    let module = |name: String| {
        let file = format!("rule_{}.wasm", name.replace('-', "_"));
        (name, target_dir.join(TARGET).join("rule").join(file))
    };
    Ok(rules.iter().map(|rule| module(name_of(rule))).collect())
}

/// A cargo that can build for WebAssembly: the one in use, else Debian's packages `rustc-web` and `rust-web-src`,
/// which bring the library's source in place of the built target.
fn toolchain() -> Result<Command, Box<dyn Error>> {
    let rustc = std::env::var("RUSTC")?;
    let found = Command::new(&rustc).args(["--print", "target-libdir", "--target", TARGET]).output()?;
    if Path::new(String::from_utf8_lossy(&found.stdout).trim()).exists() {
        let mut cargo = clean(std::env::var("CARGO")?);
        cargo.env("RUSTC", rustc);
        return Ok(cargo);
    }
    if !Path::new("/usr/bin/rustc").exists() || !debian_has_source()? {
        return Err(TARGET_MISSING.into());
    }
    let mut cargo = clean("/usr/bin/cargo".to_owned());
    cargo.env("RUSTC", "/usr/bin/rustc").env("RUSTC_BOOTSTRAP", "1");
    // Debian's compiler brings no linker of its own for WebAssembly; lld-22 does.
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld-22");
    cargo.arg("-Zbuild-std=std,panic_abort");
    Ok(cargo)
}

fn debian_has_source() -> Result<bool, Box<dyn Error>> {
    let sysroot = Command::new("/usr/bin/rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    Ok(sysroot.join("lib/rustlib/src/rust/library/std").exists())
}

/// A command without what the outer build says to its own compilers.
fn clean(program: String) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars() {
        let inherited = name.starts_with("CARGO_") && name != "CARGO_HOME";
        if inherited || name.starts_with("RUSTC") || name == "RUSTFLAGS" || name == "RUSTDOCFLAGS" {
            command.env_remove(name);
        }
    }
    command
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn shipped(modules: &[(String, PathBuf)], templates: &[&PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut text = "pub(crate) static MODULES: &[(&str, &[u8])] = &[\n".to_owned();
    for (name, file) in modules {
        writeln!(text, "    ({name:?}, include_bytes!({:?})),", file.display().to_string())?;
    }
    text += "];\npub(crate) static TEMPLATES: &[ShippedTemplate] = &[\n";
    for folder in templates {
        writeln!(text, "    ShippedTemplate {{ name: {:?}, files: &[", name_of(folder))?;
        for file in files(folder)? {
            let name = file.strip_prefix(folder)?.display().to_string();
            writeln!(text, "        ({name:?}, include_str!({:?})),", file.display().to_string())?;
        }
        text += "    ] },\n";
    }
    Ok(text + "];\n")
}

/// All files of a folder and of the folders in it, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
