//! Compiled code on disk, sealed.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

const KEY_FILE: &str = "key";
const KEY_BYTES: usize = 32;
const SEAL_BYTES: usize = 32;

/// A folder of compiled modules that only this user can write.
pub struct Cache {
    folder: PathBuf,
    key: Vec<u8>,
    /// Of wasmtime's version and settings: code of others is never even looked at.
    engine: [u8; 32],
}

impl Cache {
    /// Opens a folder, making it and its key where they are missing; none, said aloud, where it is not safe.
    pub fn open(folder: PathBuf, engine: &Engine) -> Option<Self> {
        match prepare(&folder) {
            Ok(key) => Some(Cache { folder, key, engine: engine_id(engine) }),
            Err(why) => {
                tracing::warn!(folder = %folder.display(), why, "compiled rules are not kept; they are compiled at each start");
                None
            }
        }
    }

    /// The compiled module, where a sound file of it is there.
    pub fn get(&self, engine: &Engine, bytes: &[u8]) -> Option<Component> {
        let file = fs::read(self.path(bytes)).ok()?;
        let (seal, code) = file.split_at_checked(SEAL_BYTES)?;
        if seal != self.seal(bytes, code) {
            tracing::warn!(file = %self.path(bytes).display(), "a kept compiled rule was changed; it is compiled anew");
            return None;
        }
        // SAFETY: the seal says that this process, or one like it with the same key, has compiled these bytes with
        // this engine's version and settings.
        #[allow(unsafe_code, reason = "compiled code can only be loaded so; the seal was checked")]
        unsafe { Component::deserialize(engine, code) }.ok()
    }

    /// Keeps a compiled module. That this fails costs time at the next start, and nothing else.
    pub fn put(&self, component: &Component, bytes: &[u8]) {
        let kept = component.serialize().map_err(|error| error.to_string()).and_then(|code| {
            let mut file = self.seal(bytes, &code).to_vec();
            file.extend_from_slice(&code);
            write_whole(&self.path(bytes), &file).map_err(|error| error.to_string())
        });
        if let Err(why) = kept {
            tracing::warn!(folder = %self.folder.display(), why, "a compiled rule could not be kept");
        }
    }

    fn path(&self, bytes: &[u8]) -> PathBuf {
        let name = Sha256::new().chain_update(self.engine).chain_update(Sha256::digest(bytes)).finalize();
        self.folder.join(format!("{name:x}.bin"))
    }

    /// Keyed, nested as in HMAC so that no length of code can be grown under an old seal.
    fn seal(&self, bytes: &[u8], code: &[u8]) -> [u8; SEAL_BYTES] {
        let inner = Sha256::new()
            .chain_update(&self.key)
            .chain_update(self.engine)
            .chain_update(Sha256::digest(bytes))
            .chain_update(code)
            .finalize();
        Sha256::new().chain_update(&self.key).chain_update(inner).finalize().into()
    }
}

fn engine_id(engine: &Engine) -> [u8; 32] {
    struct Feed(Sha256);
    impl Hasher for Feed {
        fn finish(&self) -> u64 {
            0
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut feed = Feed(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut feed);
    feed.0.finalize().into()
}

/// Makes the folder where it is missing, checks who can write it, and reads its key. A folder that was there before is
/// never changed.
fn prepare(folder: &Path) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| error.to_string();
    if !folder.exists() {
        let parent = folder.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(said)?;
        fs::DirBuilder::new().mode(0o700).create(folder).map_err(said)?;
    }
    check_private(folder, 0o022)?;
    let key_file = folder.join(KEY_FILE);
    if !key_file.exists() {
        write_whole(&key_file, &random_bytes(KEY_BYTES).map_err(said)?).map_err(said)?;
    }
    check_private(&key_file, 0o077)?;
    let key = fs::read(&key_file).map_err(said)?;
    if key.len() == KEY_BYTES { Ok(key) } else { Err(format!("{} is no key; remove it", key_file.display())) }
}

/// Whether a path is this user's, no link, and closed to others as far as `mask` says.
fn check_private(path: &Path, mask: u32) -> Result<(), String> {
    let meta = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    let own = fs::metadata("/proc/self").map_err(|error| error.to_string())?.uid();
    if meta.uid() != own || meta.mode() & mask != 0 || meta.file_type().is_symlink() {
        return Err(format!("{} must belong to this user and be closed to others", path.display()));
    }
    Ok(())
}

fn random_bytes(count: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

/// Writes a file that is there whole or not at all, readable by this user only. The part has a name that nobody can
/// guess, and is never one that is there already.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name: String = random_bytes(8)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = path.with_extension(format!("{name}.part"));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(part, path)
}
