//! `cargo xtask rules`

use std::fs;

use crate::setup;
use crate::shell::{self, ask, cargo, command, root, say};

/// Builds each rule crate to a component in target/rules-components.
pub fn run() -> Result<(), String> {
    setup::compiler()?;
    setup::wasm_target()?;
    shell::run(&mut cargo(&["build", "--quiet", "--package", "watchfire-rules"]))?;
    let folder = root().join("target/rules-components");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let built = root().join("target/rules/wasm32-unknown-unknown/rule");
    for name in rule_crates()? {
        let from = built.join(format!("rule_{}.wasm", name.replace('-', "_"))).display().to_string();
        let to = folder.join(format!("{name}.wasm")).display().to_string();
        let example =
            ["run", "--quiet", "--package", "watchfire-sandbox", "--example", "componentize", "--", &from, &to];
        shell::run(&mut cargo(&example))?;
        let digest = ask(&mut command("sha256sum", &[&to])).unwrap_or_default();
        say(&format!("{to}: {}", digest.split(' ').next().unwrap_or_default()));
    }
    Ok(())
}

fn rule_crates() -> Result<Vec<String>, String> {
    let folders = fs::read_dir(root().join("rules")).map_err(|error| format!("rules: {error}"))?;
    let crates = folders.flatten().filter(|folder| folder.path().join("Cargo.toml").exists());
    let mut names: Vec<String> = crates.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}
