//! Finding tools.

use std::path::{Path, PathBuf};

/// A program on the search path.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A program in a place of the rule's own, or else on the search path.
pub fn own_or_on_path(folder: &Path, place: &str, name: &str) -> Option<PathBuf> {
    // Tools are started in other folders.
    let own = std::path::absolute(folder.join(place).join(name)).ok();
    own.filter(|file| file.is_file()).or_else(|| on_path(name))
}
