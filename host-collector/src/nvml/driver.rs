//! The library and the driver behind it: absent, mismatched, reloaded, back.

use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use watchfire_core::Time;

/// The longest wait between two tries.
pub const RETRY_MAX: Duration = Duration::from_secs(60);
/// NVIDIA's PCI vendor id, as sysfs writes it.
const VENDOR: &str = "0x10de";

/// The state of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not tried yet.
    Untried,
    /// It answers.
    Up,
    /// There is no library, and no NVIDIA device that would need one.
    NoDevice,
    /// There is an NVIDIA device and no library.
    NoLibrary,
    /// The kernel module is not loaded.
    DriverNotLoaded,
    /// Library and kernel module are of different versions.
    Mismatch,
    /// Anything else, in NVML's words.
    Failed(String),
}

impl State {
    /// What it means and what to do.
    pub fn words(&self) -> String {
        match self {
            State::Untried => "not tried yet".to_owned(),
            State::Up => "the driver answers".to_owned(),
            State::NoDevice => "no NVIDIA device and no libnvidia-ml.so.1: GPUs are not watched here".to_owned(),
            State::NoLibrary => "libnvidia-ml.so.1 cannot be loaded: install the driver's user-space part".to_owned(),
            State::DriverNotLoaded => "the kernel module is not loaded: load nvidia, or reboot".to_owned(),
            State::Mismatch => "library and kernel module differ in version: reboot, or reload the module".to_owned(),
            State::Failed(why) => format!("NVML does not start: {why}"),
        }
    }
}

/// The driver, loaded when it can be.
pub struct Driver {
    library: Option<PathBuf>,
    /// Shut down only between calls, on the thread that makes them; never by dropping this, which a thread that hangs
    /// in a call may outlive.
    nvml: Option<ManuallyDrop<Nvml>>,
    state: State,
    failures: u32,
    retry_at: Time,
}

/// How long to wait after so many failures in a row: 1, 2, 4, … up to 60 s.
pub fn retry_after(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.saturating_sub(1).min(6)).min(RETRY_MAX)
}

/// What an error of the library itself means.
pub fn state_of(error: NvmlError) -> State {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound if !has_device() => State::NoDevice,
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => State::NoLibrary,
        NvmlError::DriverNotLoaded => State::DriverNotLoaded,
        NvmlError::LibRmVersionMismatch => State::Mismatch,
        other => State::Failed(other.to_string()),
    }
}

/// Whether the PCI bus has an NVIDIA display or 3D controller.
fn has_device() -> bool {
    let devices = std::fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let read =
        |entry: &std::fs::DirEntry, file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
    devices
        .into_iter()
        .any(|entry| read(&entry, "vendor").trim() == VENDOR && read(&entry, "class").starts_with("0x03"))
}

impl Driver {
    /// Nothing is loaded yet.
    pub fn new(library: Option<PathBuf>) -> Self {
        Driver { library, nvml: None, state: State::Untried, failures: 0, retry_at: Time::EPOCH }
    }

    /// Its state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The driver, loaded now where that is due.
    pub fn get(&mut self, now: Time) -> Result<&Nvml, State> {
        if self.nvml.is_none() {
            if now < self.retry_at {
                return Err(self.state.clone());
            }
            self.nvml = Some(ManuallyDrop::new(self.load()?));
        }
        self.nvml.as_deref().ok_or(State::Untried)
    }

    /// Notes that it answers. That it could be loaded says nothing yet.
    pub fn works(&mut self) {
        self.failures = 0;
        self.change(State::Up);
    }

    fn load(&self) -> Result<Nvml, State> {
        let mut builder = Nvml::builder();
        let path = self.library.as_deref().map(|path| path.as_os_str().to_owned());
        if let Some(path) = &path {
            builder.lib_path(OsStr::new(path));
        }
        builder.init().map_err(state_of)
    }

    /// Notes that it does not answer; the next tries come later and later. A try that was not due does not count.
    pub fn failed(&mut self, state: State, now: Time) {
        if now < self.retry_at {
            return;
        }
        if let Some(nvml) = self.nvml.take() {
            // A library that is not shut down counts the next start as a second one and keeps what it knew of a driver
            // that may be another by now.
            let _ = ManuallyDrop::into_inner(nvml).shutdown();
        }
        self.failures += 1;
        self.retry_at = now + retry_after(self.failures);
        self.change(state);
    }

    fn change(&mut self, state: State) {
        if self.state == state {
            return;
        }
        match &state {
            State::Up | State::NoDevice => tracing::info!("NVML: {}", state.words()),
            other => tracing::warn!("NVML: {}", other.words()),
        }
        self.state = state;
    }
}
