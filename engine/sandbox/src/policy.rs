//! Which limits hold for which module.

use crate::manifest::Manifest;
use crate::{Changes, Limits};

/// The word by which a manifest asks for the limits of large modules.
const LARGE: &str = "large";

/// Which limits hold for which module, and how far a rule of its own may raise them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// For modules whose manifest says `runtime: large`.
    pub large: Limits,
    /// For those of them that are written in Python.
    pub python: Limits,
    /// Whether large modules are taken at all. They are by default: who may put a file beside a template may also
    /// write the template, and the memory of all rules together is bounded all the same.
    pub large_modules: bool,
    /// How far a rule's own `limits:` may raise a limit above what holds without them.
    pub most: Changes,
    /// Memory that all rules together may ask for, bytes.
    pub total_memory_bytes: u64,
}

impl Policy {
    /// Memory that all WebAssembly rules together may ask for unless told otherwise: 512 ordinary rules at their
    /// limit, bytes.
    pub const TOTAL_MEMORY_BYTES: u64 = 8 << 30;

    /// The limits of a module's class; none where the class is not granted.
    pub(crate) fn limits<'a>(&'a self, manifest: Option<&Manifest>, standard: &'a Limits) -> Option<&'a Limits> {
        match manifest {
            Some(manifest) if manifest.runtime == LARGE && !self.large_modules => None,
            Some(manifest) if manifest.runtime == LARGE && manifest.language == "python" => Some(&self.python),
            Some(manifest) if manifest.runtime == LARGE => Some(&self.large),
            _ => Some(standard),
        }
    }

    /// The largest module file that any class may have.
    pub(crate) fn module_bytes_max(&self, standard: &Limits) -> usize {
        let large = self.large.module_bytes.max(self.python.module_bytes);
        if self.large_modules { large.max(standard.module_bytes) } else { standard.module_bytes }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            large: Limits::large(),
            python: Limits::python(),
            large_modules: true,
            most: Changes::default(),
            total_memory_bytes: Policy::TOTAL_MEMORY_BYTES,
        }
    }
}
