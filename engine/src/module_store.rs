//! Modules that came from a registry. A template names one by the digest of its manifest
//! (`oci://HOST/NAME@sha256:…`); what lies in the store is checked against that digest whenever it is read, so the
//! folder itself need not be trusted.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::load::read_file;

/// How a module in a registry is named in a template.
pub const SCHEME: &str = "oci://";
/// The kind of layer that holds a module.
pub const MODULE_MEDIA_TYPE: &str = "application/wasm";

/// A folder with modules and their manifests.
#[derive(Clone, Debug)]
pub struct ModuleStore {
    folder: PathBuf,
}

impl ModuleStore {
    /// The store in a folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        ModuleStore { folder: folder.into() }
    }

    /// The module that a reference names.
    ///
    /// # Errors
    /// Where the reference is not pinned, or what is stored is not what it names.
    pub fn read(&self, reference: &str) -> Result<Vec<u8>, String> {
        let digest = pinned(reference)?;
        let missing = |why: String| {
            format!("{reference} is not in {} ({why}); run `watchfire pull {reference}`", self.folder.display())
        };
        let manifest = read_file(&self.manifest_file(digest)).map_err(missing)?;
        if hex(&manifest) != digest {
            return Err(format!("the stored manifest of {reference} is not the one that its digest names"));
        }
        let layer = module_layer(&manifest)?;
        let module = read_file(&self.module_file(digest)).map_err(missing)?;
        if format!("sha256:{}", hex(&module)) != layer {
            return Err(format!("the stored module of {reference} is not the one that its manifest names"));
        }
        Ok(module)
    }

    /// Keeps a module with the manifest that names it.
    ///
    /// # Errors
    /// Where they do not belong together or cannot be written.
    pub fn keep(&self, manifest: &[u8], module: &[u8]) -> Result<PathBuf, String> {
        if module_layer(manifest)? != format!("sha256:{}", hex(module)) {
            return Err("the module is not the one that the manifest names".to_owned());
        }
        let digest = hex(manifest);
        let said = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(said)?;
        write_whole(&self.manifest_file(&digest), manifest).map_err(said)?;
        write_whole(&self.module_file(&digest), module).map_err(said)?;
        Ok(self.module_file(&digest))
    }

    fn manifest_file(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.json"))
    }

    fn module_file(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.wasm"))
    }
}

/// The digest that a reference is pinned to: 64 hexadecimal digits.
///
/// # Errors
/// Where it is not pinned: a tag can be moved by whoever may write to the registry.
pub fn pinned(reference: &str) -> Result<&str, String> {
    let digest = reference.rsplit_once("@sha256:").map(|(_, digest)| digest);
    let is_digest =
        |digest: &&str| digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    digest.filter(is_digest).ok_or_else(|| {
        format!(
            "{reference} is not pinned to a digest; expected oci://HOST/NAME@sha256:…, which `watchfire pull` prints"
        )
    })
}

/// The digest of the one module of a manifest, with its algorithm.
///
/// # Errors
/// Where it is no manifest, or has no or several modules.
pub fn module_layer(manifest: &[u8]) -> Result<String, String> {
    let manifest: serde_json::Value =
        serde_json::from_slice(manifest).map_err(|error| format!("the manifest is no JSON: {error}"))?;
    let layers = manifest["layers"].as_array().cloned().unwrap_or_default();
    let modules: Vec<&str> = layers
        .iter()
        .filter(|layer| layer["mediaType"] == MODULE_MEDIA_TYPE)
        .filter_map(|layer| layer["digest"].as_str())
        .collect();
    match modules[..] {
        [one] => Ok(one.to_owned()),
        _ => Err(format!("the manifest has {} layers of {MODULE_MEDIA_TYPE}; expected one", modules.len())),
    }
}

/// SHA-256 as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file that is there as a whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension(format!("part{}", std::process::id()));
    fs::write(&part, bytes)?;
    fs::rename(&part, path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn manifest(module: &[u8]) -> Vec<u8> {
        let layer = format!(r#"{{"mediaType":"{MODULE_MEDIA_TYPE}","digest":"sha256:{}","size":1}}"#, hex(module));
        format!(r#"{{"schemaVersion":2,"layers":[{layer}]}}"#).into_bytes()
    }

    #[test]
    fn what_was_changed_in_the_store_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModuleStore::new(folder.path());
        let (module, manifest) = (b"module".as_slice(), manifest(b"module"));
        let reference = format!("oci://h/n@sha256:{}", hex(&manifest));
        assert!(store.read(&reference).unwrap_err().contains("watchfire pull"));
        let file = store.keep(&manifest, module).unwrap();
        assert_eq!(store.read(&reference).unwrap(), module);
        fs::write(&file, b"another").unwrap();
        assert!(store.read(&reference).unwrap_err().contains("not the one that its manifest names"));
        fs::write(file.with_extension("json"), b"{}").unwrap();
        assert!(store.read(&reference).unwrap_err().contains("not the one that its digest names"));
        assert!(store.keep(&manifest, b"another").is_err());
    }

    #[test]
    fn only_a_digest_pins() {
        let refused = ["oci://h/n:1.0", "oci://h/n", "oci://h/n@sha256:abc", "oci://h/n@sha512:00"];
        refused.iter().for_each(|reference| assert!(pinned(reference).is_err(), "{reference}"));
        assert!(pinned(&format!("oci://h/n@sha256:{}", "a".repeat(64))).is_ok());
        assert!(pinned(&format!("oci://h/n@sha256:{}", "A".repeat(64))).is_err());
    }

    #[test]
    fn a_manifest_has_one_module() {
        assert!(module_layer(b"[").is_err());
        assert!(module_layer(br#"{"layers":[]}"#).unwrap_err().contains("0 layers"));
    }
}
