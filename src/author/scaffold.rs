//! Writes a new rule or template. All texts are in the binary.

use std::path::Path;

use super::Language;
use super::lang::File;

const SHARED: &[File] = &[
    ("template.yaml", include_str!("scaffold/template.yaml")),
    ("scenarios/fires.yaml", include_str!("scaffold/fires.yaml")),
    ("scenarios/near-miss.yaml", include_str!("scaffold/near-miss.yaml")),
    ("README.md", include_str!("scaffold/README.md")),
];
const TEMPLATE: &[File] = &[
    ("template.yaml", include_str!("scaffold/template/template.yaml")),
    ("scenarios/hot.yaml", include_str!("scaffold/template/hot.yaml")),
    ("scenarios/near-miss.yaml", include_str!("scaffold/template/near-miss.yaml")),
    ("README.md", include_str!("scaffold/template/README.md")),
];
/// The longest name, characters.
const NAME_MAX: usize = 64;

/// Writes a rule in a language into a folder that is not there yet.
///
/// # Errors
/// Where the name is none, or something cannot be written.
pub fn rule(folder: &Path, name: &str, language: &Language) -> Result<(), String> {
    check_name(name)?;
    let files = SHARED.iter().chain(language.files);
    write(folder, files, &|text| rule_text(text, name, language))
}

/// Writes a template of `when:` expressions.
///
/// # Errors
/// As [`rule`].
pub fn template(folder: &Path, name: &str) -> Result<(), String> {
    check_name(name)?;
    write(folder, TEMPLATE.iter(), &|text| text.replace("__NAME__", name).replace("__ALERT__", &alert_name(name)))
}

fn rule_text(text: &str, name: &str, language: &Language) -> String {
    let builds = if language.build.is_some() { "; it builds what is not built yet" } else { "" };
    let build = if language.build.is_some() { "watchfire build               # make the module anew\n" } else { "" };
    let pairs = [
        ("__SOURCE__", language.source),
        ("__MODULE__", "__NAME__.__ENDING__"),
        ("__ENDING__", language.ending()),
        ("__BUILDS__", builds),
        ("__MORE__", &format!("{}{build}", language.tests)),
        ("__ALERT__", &alert_name(name)),
        ("__NAME__", name),
    ];
    pairs.iter().fold(text.to_owned(), |text, (mark, words)| text.replace(mark, words))
}

fn write<'a>(
    folder: &Path,
    files: impl Iterator<Item = &'a File>,
    fill: &dyn Fn(&str) -> String,
) -> Result<(), String> {
    if folder.exists() {
        return Err(format!("{} is there already; nothing was written", folder.display()));
    }
    for (path, text) in files {
        let path = folder.join(fill(path));
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        std::fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(said)?;
        std::fs::write(&path, fill(text)).map_err(said)?;
    }
    Ok(())
}

/// A template's name is also the name of a folder, a crate and a module.
fn check_name(name: &str) -> Result<(), String> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest_is_fine = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if starts_well && rest_is_fine && !name.ends_with('-') && name.len() <= NAME_MAX {
        return Ok(());
    }
    let expected = format!("lower-case letters, digits and -, a letter first, at most {NAME_MAX}");
    Err(format!("{name:?} is no name for a rule; expected {expected}, such as fan-still"))
}

/// `fan-still` as the name of an alert: `FanStill`.
fn alert_name(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').filter(|word| !word.is_empty()).map(capital).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::author::lang::{ALL, named};

    #[test]
    fn names_are_checked_and_become_alerts() {
        let refused = ["", "-x", "x-", "X", "a b", "ä", "../x", &"x".repeat(65)];
        refused.iter().for_each(|name| assert!(check_name(name).is_err(), "{name}"));
        assert_eq!(["fan-still", "x", "a--b9"].map(alert_name), ["FanStill", "X", "AB9"]);
    }

    #[test]
    fn nothing_is_left_to_fill_in_and_nothing_is_overwritten() {
        for language in ALL {
            let folder = tempfile::tempdir().unwrap().path().join("my-rule");
            rule(&folder, "my-rule", language).unwrap();
            for file in ["template.yaml", "README.md", "scenarios/fires.yaml"] {
                let text = std::fs::read_to_string(folder.join(file)).unwrap();
                assert!(!text.contains("__"), "{}: {file}: {text}", language.name);
            }
            assert!(folder.join(language.source.replace("__NAME__", "my-rule")).exists());
            assert!(rule(&folder, "my-rule", language).unwrap_err().contains("is there already"));
        }
        assert!(named("cobol").unwrap_err().contains("rhai, rust"));
    }
}
