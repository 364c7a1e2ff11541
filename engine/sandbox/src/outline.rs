//! What a WebAssembly file holds, read without compiling or running any of it.

use wasmparser::{Encoding, Parser, Payload};

/// The most imports and exports that are listed.
pub const NAMES_MAX: usize = 200;

/// The outside of a WebAssembly file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// `component` or `core module`.
    pub kind: &'static str,
    /// What it imports, at most [`NAMES_MAX`].
    pub imports: Vec<String>,
    /// What it exports, at most [`NAMES_MAX`].
    pub exports: Vec<String>,
}

/// Reads a file.
///
/// # Errors
/// Where it is no WebAssembly, with the place of the fault.
pub fn outline(bytes: &[u8]) -> Result<Outline, String> {
    check_magic(bytes)?;
    let mut outline = Outline::default();
    let mut depth = 0usize;
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(|error| error.to_string())?;
        match payload {
            Payload::Version { encoding, .. } if outline.kind.is_empty() => outline.kind = kind(encoding),
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            other if depth == 0 => outline.take(other).map_err(|error| error.to_string())?,
            _ => {}
        }
    }
    Ok(outline)
}

/// All WebAssembly begins with the same four bytes.
///
/// # Errors
/// Where these bytes do not.
pub fn check_magic(bytes: &[u8]) -> Result<(), String> {
    match bytes.get(..4) {
        Some(b"\0asm") => Ok(()),
        found => {
            Err(format!("it begins with {:?} in place of \"\\0asm\"", String::from_utf8_lossy(found.unwrap_or(bytes))))
        }
    }
}

fn kind(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Component => "component",
        Encoding::Module => "core module",
    }
}

impl Outline {
    fn take(&mut self, payload: Payload<'_>) -> Result<(), wasmparser::BinaryReaderError> {
        match payload {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    push(&mut self.imports, format!("{}.{}", import.module, import.name));
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    push(&mut self.imports, import?.name.name.to_owned());
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    push(&mut self.exports, export?.name.to_owned());
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    push(&mut self.exports, export?.name.name.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn push(names: &mut Vec<String>, name: String) {
    if names.len() < NAMES_MAX {
        names.push(name);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_outside_is_listed_and_the_inside_is_not() {
        let core = wat::parse_str(r#"(module (import "a" "b" (func)) (func (export "c")))"#).unwrap();
        let of_core = outline(&core).unwrap();
        assert_eq!(
            (of_core.kind, of_core.imports, of_core.exports),
            ("core module", vec!["a.b".into()], vec!["c".into()])
        );
        let component =
            wat::parse_str(r#"(component (import "x" (func)) (core module (func (export "inner"))))"#).unwrap();
        let of_component = outline(&component).unwrap();
        assert_eq!((of_component.kind, of_component.imports), ("component", vec!["x".to_owned()]));
        assert!(of_component.exports.is_empty());
    }

    #[test]
    fn junk_is_an_error_with_a_place() {
        assert!(outline(b"").is_err());
        assert!(outline(b"hello").unwrap_err().contains("\"hell\""));
        assert!(outline(b"\0asm\x01\0\0\0\x01\x7f").unwrap_err().contains("offset"));
    }
}
