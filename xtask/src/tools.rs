//! Programs from crates.io, of a known version, below `target/tools`: nothing outside the workspace is touched.

use std::process::Command;

use crate::shell::{self, cargo, command, say, target};

/// A program and the version that is wanted.
pub struct Tool {
    /// Its name, and its crate's.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl Tool {
    /// The program with arguments, installed where it is missing.
    ///
    /// # Errors
    /// Where it cannot be installed.
    pub fn command(&self, args: &[&str]) -> Result<Command, String> {
        let folder = target().join("tools");
        let program = folder.join("bin").join(self.name);
        if !program.exists() {
            say(&format!("installing {} {} from crates.io into target/tools", self.name, self.version));
            let folder = folder.display().to_string();
            let install = ["install", "--quiet", "--locked", "--root", &folder, self.name, "--version", self.version];
            shell::run(&mut cargo(&install))?;
        }
        Ok(command(&program.display().to_string(), args))
    }
}
