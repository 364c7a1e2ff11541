//! How a reading came out.

use nvml_wrapper::error::NvmlError;

/// Why a reading has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This GPU cannot tell.
    NotSupported,
    /// The driver is too old to be asked.
    NoSymbol,
    /// This user may not know.
    NoPermission,
    /// The GPU is lost.
    Lost,
    /// Anything else, by NVML's code.
    Failed(u32),
}

impl Outcome {
    /// Whether this is how the GPU is, rather than something that went wrong.
    pub fn is_permanent(self) -> bool {
        matches!(self, Outcome::NotSupported | Outcome::NoSymbol | Outcome::NoPermission)
    }
}

impl From<&NvmlError> for Outcome {
    /// Codes from 23 on come as unexpected variants (nvml-wrapper 0.13); 25 and 26 mean "not with this driver".
    fn from(error: &NvmlError) -> Self {
        match error {
            NvmlError::NotSupported => Outcome::NotSupported,
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => Outcome::NoSymbol,
            NvmlError::NoPermission => Outcome::NoPermission,
            NvmlError::GpuLost => Outcome::Lost,
            NvmlError::UnexpectedVariant(25 | 26) => Outcome::NotSupported,
            NvmlError::UnexpectedVariant(28) => Outcome::Lost,
            other => Outcome::Failed(code(other)),
        }
    }
}

/// NVML's number for an error, as in nvml.h.
fn code(error: &NvmlError) -> u32 {
    match error {
        NvmlError::Uninitialized => 1,
        NvmlError::InvalidArg => 2,
        NvmlError::NotFound => 6,
        NvmlError::InsufficientSize(_) => 7,
        NvmlError::DriverNotLoaded => 9,
        NvmlError::Timeout => 10,
        NvmlError::LibraryNotFound => 12,
        NvmlError::LibRmVersionMismatch => 18,
        NvmlError::UnexpectedVariant(code) => *code,
        _ => 999,
    }
}
