//! The host that the library pretends to see, and how each call is answered.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::script::{Action, Script};

/// NVML's return codes that the library itself gives.
pub const SUCCESS: u32 = 0;
pub const INVALID_ARGUMENT: u32 = 2;
pub const NOT_FOUND: u32 = 6;

static SCRIPT: OnceLock<Mutex<Script>> = OnceLock::new();

/// The UUID of a GPU.
pub fn uuid_of(gpu: u32) -> String {
    format!("GPU-00000000-0000-0000-0000-{gpu:012}")
}

/// The PCI id of a GPU as NVML writes it.
pub fn pci_of(gpu: u32) -> String {
    format!("00000000:{:02X}:00.0", 0x1a + gpu)
}

fn with_script<T>(read: impl FnOnce(&mut Script) -> T) -> T {
    let script = SCRIPT.get_or_init(|| Mutex::new(Script::beside(own_path())));
    let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
    script.refresh();
    read(&mut script)
}

/// The file that this code was loaded from.
fn own_path() -> Option<PathBuf> {
    let here = own_path as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let covers = |line: &&str| {
        let range = line.split_whitespace().next().and_then(|range| range.split_once('-'));
        let number = |text: &str| usize::from_str_radix(text, 16).unwrap_or(0);
        range.is_some_and(|(from, to)| (number(from)..number(to)).contains(&here))
    };
    let line = maps.lines().find(covers)?;
    line.split_whitespace().nth(5).map(PathBuf::from)
}

/// How many GPUs there are; begins a poll.
pub fn begin_poll() -> Result<u32, u32> {
    let gpus = with_script(|script| {
        script.poll += 1;
        script.gpus
    });
    answer("Count_v2", None, None, f64::from(gpus)).map(|count| count as u32)
}

/// How many GPUs there are.
pub fn gpus() -> u32 {
    with_script(|script| script.gpus)
}

/// The value of a call, or its return code. Nothing is locked while a call hangs.
pub fn answer(function: &str, gpu: Option<u32>, field: Option<u32>, usual: f64) -> Result<f64, u32> {
    match with_script(|script| script.action(function, gpu, field)) {
        None => Ok(usual),
        Some(Action::Value(value)) => Ok(value),
        Some(Action::Ret(SUCCESS)) => Ok(usual),
        Some(Action::Ret(code)) => Err(code),
        Some(Action::Hang(ms)) => {
            std::thread::sleep(Duration::from_millis(ms));
            Ok(usual)
        }
    }
}
