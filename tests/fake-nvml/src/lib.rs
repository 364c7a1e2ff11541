//! A scripted `libnvidia-ml.so.1` for tests: a host with eight H100s that behaves as a script says.
//!
//! The script is the file beside the library, with `.script` added to its name; it is read again when it changes.
//! One rule a line, the first that fits answers:
//!
//! ```text
//! # function          GPU  [field=N] [poll=A..B]  -> ret=CODE | value=V | hang=MS
//! gpus 8
//! HandleByIndex_v2    3    poll=5..     -> ret=15
//! Temperature         0    poll=2..4    -> value=91
//! FieldValues         1    field=82     -> ret=3
//! *                   7                 -> ret=999
//! ```
//!
//! Functions are named without `nvmlDeviceGet` and `nvml`. A poll begins with each `nvmlDeviceGetCount_v2`, counted
//! from 1.

mod exports;
mod host;
mod script;

use std::io;
use std::path::{Path, PathBuf};

pub use host::{pci_of, uuid_of};

/// A copy of the library with a script of its own: a second copy in one process is a second driver.
#[derive(Debug)]
pub struct Fake {
    /// The library, to be loaded.
    pub library: PathBuf,
}

impl Fake {
    /// Copies the library into a folder and writes its script.
    ///
    /// # Errors
    /// Where the library was not built beside the test, or the folder cannot be written.
    pub fn new(folder: &Path, script: &str) -> io::Result<Fake> {
        let library = folder.join("libnvidia-ml.so.1");
        std::fs::copy(built()?, &library)?;
        let fake = Fake { library };
        fake.script(script)?;
        Ok(fake)
    }

    /// Writes another script.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn script(&self, script: &str) -> io::Result<()> {
        let mut path = self.library.clone().into_os_string();
        path.push(".script");
        let part = PathBuf::from(&path).with_extension("part");
        std::fs::write(&part, script)?;
        std::fs::rename(part, path)
    }
}

/// The library as cargo built it: beside the test's binary, or one folder up.
fn built() -> io::Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let mut found = exe
        .ancestors()
        .skip(1)
        .take(2)
        .flat_map(|folder| [folder.join("libfake_nvml.so"), folder.join("deps/libfake_nvml.so")]);
    found.find(|path| path.exists()).ok_or_else(|| io::Error::other("libfake_nvml.so was not built beside this test"))
}
