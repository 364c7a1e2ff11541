//! Where templates lie, and the files beside them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use watchfire_rules::ShippedTemplate;

/// The largest file that is read: more than any template, script or module may have.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where a template comes from.
#[derive(Clone, Debug)]
pub enum TemplateSource {
    /// One that Watchfire ships.
    Shipped(ShippedTemplate),
    /// A file.
    File(PathBuf),
    /// A text of the embedder's, under a name for messages.
    Text(String, String),
}

impl TemplateSource {
    /// The name of its file, for messages.
    pub fn file(&self) -> String {
        match self {
            TemplateSource::Shipped(template) => format!("shipped:{}/template.yaml", template.name),
            TemplateSource::File(path) => path.display().to_string(),
            TemplateSource::Text(name, _) => name.clone(),
        }
    }

    /// Its text.
    pub fn text(&self) -> Result<String, String> {
        match self {
            TemplateSource::Shipped(template) => Ok(template.file("template.yaml").unwrap_or_default().to_owned()),
            TemplateSource::File(path) => {
                String::from_utf8(read_file(path)?).map_err(|_| "the file is not UTF-8".to_owned())
            }
            TemplateSource::Text(_, text) => Ok(text.clone()),
        }
    }

    /// The name, for messages, and the bytes of a file beside it.
    pub fn beside(&self, path: &str) -> Result<(String, Vec<u8>), String> {
        let plain = path.trim_start_matches("./");
        match self {
            TemplateSource::Shipped(template) => {
                let text = template.file(plain).ok_or("no such file")?;
                Ok((format!("shipped:{}/{plain}", template.name), text.as_bytes().to_vec()))
            }
            TemplateSource::File(file) => {
                let path = file.parent().unwrap_or(Path::new(".")).join(plain);
                let bytes = read_file(&path)?;
                Ok((path.display().to_string(), bytes))
            }
            TemplateSource::Text(..) => {
                let bytes = read_file(Path::new(path))?;
                Ok((path.to_owned(), bytes))
            }
        }
    }

    /// The scenarios beside it: file names, for messages, and texts; by name.
    pub fn scenarios(&self) -> Vec<(String, String)> {
        match self {
            TemplateSource::Shipped(template) => {
                let files = template.files.iter().filter(|(path, _)| path.starts_with("scenarios/"));
                files.map(|(path, text)| (format!("shipped:{}/{path}", template.name), (*text).to_owned())).collect()
            }
            TemplateSource::File(path) => scenario_files(path),
            TemplateSource::Text(..) => Vec::new(),
        }
    }
}

/// Reads a regular file of a bounded size (64 MiB): a pipe or a device would never end.
///
/// # Errors
/// Why it cannot be read.
pub fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if about.len() > FILE_BYTES_MAX {
        return Err(format!("the file has {} bytes; at most {FILE_BYTES_MAX} are read", about.len()));
    }
    fs::read(path).map_err(|error| error.to_string())
}

fn scenario_files(template: &Path) -> Vec<(String, String)> {
    let folder = template.parent().unwrap_or(Path::new(".")).join("scenarios");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    paths.sort();
    paths.into_iter().filter_map(|path| Some((path.display().to_string(), fs::read_to_string(&path).ok()?))).collect()
}

/// All templates that Watchfire ships.
pub fn shipped() -> Vec<TemplateSource> {
    watchfire_rules::templates().iter().copied().map(TemplateSource::Shipped).collect()
}

/// The templates at a path: the file itself, or each `template.yaml` below a folder, by path. What is hidden (its name
/// begins with a dot) is passed over, and each folder is looked through once however many links lead to it.
///
/// # Errors
/// Where the path cannot be read.
pub fn at(path: &Path) -> std::io::Result<Vec<TemplateSource>> {
    if fs::metadata(path)?.is_file() {
        return Ok(vec![TemplateSource::File(path.to_owned())]);
    }
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    let mut seen = HashSet::new();
    while let Some(folder) = open.pop() {
        // A link back to a folder above would never end.
        if !seen.insert(fs::canonicalize(&folder)?) {
            continue;
        }
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            // Kubernetes mounts each file twice, once below a hidden `..data`.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|name| name == "template.yaml") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(TemplateSource::File).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_circles_end_and_a_config_map_is_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let map = folder.path().join("map");
        fs::create_dir_all(map.join("..2026_01_01/gpu")).unwrap();
        fs::write(map.join("..2026_01_01/template.yaml"), "").unwrap();
        symlink("..2026_01_01", map.join("..data")).unwrap();
        symlink("..data/template.yaml", map.join("template.yaml")).unwrap();
        symlink("..", map.join("up")).unwrap();
        symlink(".", map.join("same")).unwrap();
        let found: Vec<String> = at(folder.path()).unwrap().iter().map(TemplateSource::file).collect();
        assert_eq!(found, [map.join("template.yaml").display().to_string()]);
    }
}
