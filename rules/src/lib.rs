//! The templates and rule modules that Watchfire ships, within the binary.

/// A template with all its files.
#[derive(Clone, Copy, Debug)]
pub struct ShippedTemplate {
    /// Its folder's name.
    pub name: &'static str,
    /// (path within the folder, text), by path: `template.yaml`, scripts, `scenarios/…`.
    pub files: &'static [(&'static str, &'static str)],
}

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// All shipped modules: (name, WebAssembly core module), by name.
pub fn modules() -> &'static [(&'static str, &'static [u8])] {
    MODULES
}

/// The shipped module with a name.
pub fn module(name: &str) -> Option<&'static [u8]> {
    MODULES.iter().find(|(found, _)| *found == name).map(|(_, bytes)| *bytes)
}

/// All shipped templates, by name.
pub fn templates() -> &'static [ShippedTemplate] {
    TEMPLATES
}

impl ShippedTemplate {
    /// The text of one of its files.
    pub fn file(&self, path: &str) -> Option<&'static str> {
        self.files.iter().find(|(found, _)| *found == path).map(|(_, text)| *text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_brings_its_file_and_a_scenario() {
        assert!(!templates().is_empty());
        for template in templates() {
            assert!(template.file("template.yaml").is_some(), "{}", template.name);
            assert!(template.files.iter().any(|(path, _)| path.starts_with("scenarios/")), "{}", template.name);
        }
    }

    #[test]
    fn each_module_is_webassembly() {
        assert!(module("threshold").is_some());
        for (name, bytes) in modules() {
            assert!(bytes.starts_with(b"\0asm"), "{name}");
        }
    }
}
