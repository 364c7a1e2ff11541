//! What a built module says of how it was made: JSON in the custom section `watchfire:manifest`, written by
//! `watchfire build`. It is information, never trusted: what a module needs is asked of the module itself.

use serde::{Deserialize, Serialize};
use wasmparser::{Parser, Payload};

/// The section's name.
pub const SECTION: &str = "watchfire:manifest";
/// The largest manifest that is read, bytes.
pub const MANIFEST_BYTES_MAX: usize = 64 << 10;

/// A module's manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The contract that it was built for, such as `watchfire:rule@0.1.0`.
    pub contract: String,
    /// The module's name.
    pub name: String,
    /// The module's version.
    pub version: String,
    /// The language that it was written in.
    pub language: String,
    /// The class of its runtime: empty, or `large` for modules that bring an interpreter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub runtime: String,
    /// SHA-256 over the source files, hexadecimal.
    pub source_sha256: String,
    /// What built it.
    pub built_by: String,
    /// What it reads, writes and keeps with its default settings.
    pub needs: Needs,
}

/// What a module needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Needs {
    /// What a row stands for.
    pub scope: String,
    /// The metrics and kinds of events that it reads.
    pub inputs: Vec<String>,
    /// The metrics that it writes.
    pub outputs: Vec<String>,
    /// Numbers that are kept for each row.
    pub state_slots: u32,
    /// Whether it wants the rows' labels.
    pub labels: bool,
    /// The label by which rows form groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
}

/// The manifest of a module: none where it has none.
///
/// # Errors
/// Where the file or its manifest cannot be read.
pub fn read(module: &[u8]) -> Result<Option<Manifest>, String> {
    for payload in Parser::new(0).parse_all(module) {
        let Payload::CustomSection(section) = payload.map_err(|error| error.to_string())? else { continue };
        if section.name() != SECTION {
            continue;
        }
        if section.data().len() > MANIFEST_BYTES_MAX {
            return Err(format!("the manifest has {} bytes; at most {MANIFEST_BYTES_MAX}", section.data().len()));
        }
        return serde_json::from_slice(section.data()).map(Some).map_err(|error| format!("the manifest: {error}"));
    }
    Ok(None)
}

/// The module with the manifest at its end.
///
/// # Errors
/// Where the manifest is too large.
pub fn attach(mut module: Vec<u8>, manifest: &Manifest) -> Result<Vec<u8>, String> {
    let json = serde_json::to_vec(manifest).map_err(|error| error.to_string())?;
    if json.len() > MANIFEST_BYTES_MAX {
        return Err(format!("the manifest has {} bytes; at most {MANIFEST_BYTES_MAX}", json.len()));
    }
    let section = wasm_encoder::CustomSection { name: SECTION.into(), data: json.into() };
    wasm_encoder::Section::append_to(&section, &mut module);
    Ok(module)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn what_is_attached_is_read_and_the_module_stays_a_module() {
        let manifest = Manifest { name: "x".into(), ..Manifest::default() };
        let module = attach(EMPTY.to_vec(), &manifest).unwrap();
        assert_eq!(read(&module), Ok(Some(manifest)));
        assert_eq!(read(EMPTY), Ok(None));
        assert!(wasmparser::validate(&module).is_ok());
    }

    #[test]
    fn a_bomb_in_the_manifest_is_refused() {
        let manifest = Manifest { name: "x".repeat(MANIFEST_BYTES_MAX), ..Manifest::default() };
        assert!(attach(EMPTY.to_vec(), &manifest).is_err());
        let mut module = EMPTY.to_vec();
        let data = vec![b'['; MANIFEST_BYTES_MAX + 1];
        wasm_encoder::Section::append_to(
            &wasm_encoder::CustomSection { name: SECTION.into(), data: data.into() },
            &mut module,
        );
        assert!(read(&module).unwrap_err().contains("at most"));
        assert!(read(b"junk").is_err());
    }
}
