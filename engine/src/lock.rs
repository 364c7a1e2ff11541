//! One process at a time: two that share a storage would overwrite each other's alerts.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The most bytes of a lock file that are looked at: a process id.
const PID_BYTES_MAX: u64 = 32;

/// A lock on a storage file, held for as long as this lives; the system lets it go with the process.
#[derive(Debug)]
pub struct StorageLock {
    _file: File,
}

impl StorageLock {
    /// Locks the storage at `path` by a file `PATH.lock` beside it.
    ///
    /// # Errors
    /// Another process holds it, or the file cannot be made.
    pub fn take(path: &Path) -> Result<Self, String> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let said = |why: std::io::Error| format!("the lock of storage {} cannot be taken: {why}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(name).map_err(said)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut file)),
            Err(TryLockError::Error(why)) => return Err(said(why)),
        }
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(said)?;
        writeln!(file, "{}", std::process::id()).map_err(said)?;
        Ok(StorageLock { _file: file })
    }
}

fn in_use(path: &Path, file: &mut File) -> String {
    let mut holder = String::new();
    let _ = file.take(PID_BYTES_MAX).read_to_string(&mut holder);
    let holder: String = holder.trim().chars().filter(char::is_ascii_digit).collect();
    let path = path.display();
    format!(
        "storage {path} is in use by another Watchfire (process {holder}); end that one, or give this one another storage"
    )
}
