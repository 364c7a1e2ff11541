//! The functions of the library. Values are those of an idle H100 (80 GB, SXM); 700 W, 1,980 MHz at most.

#![allow(non_snake_case, reason = "NVML's names")]
#![allow(clippy::missing_safety_doc, reason = "the contract is NVML's own")]

use std::ffi::{CStr, c_char, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use nvml_wrapper_sys::bindings::{
    nvmlEccCounterType_t, nvmlFieldValue_t, nvmlMemory_v2_t, nvmlMemoryErrorType_t, nvmlPciInfo_t, nvmlProcessInfo_t,
    nvmlUtilization_t,
};

use crate::host::{INVALID_ARGUMENT, NOT_FOUND, SUCCESS, answer, begin_poll, gpus, pci_of, uuid_of};

type Device = *mut c_void;
const GIB: u64 = 1 << 30;

/// A handle is the GPU's index plus one.
fn gpu_of(device: Device) -> u32 {
    (device as usize).wrapping_sub(1) as u32
}

/// Writes what a call gives, or answers its code.
unsafe fn give<T>(to: *mut T, value: Result<T, u32>) -> c_uint {
    match value {
        Ok(_) if to.is_null() => INVALID_ARGUMENT,
        Ok(value) => {
            unsafe { to.write(value) };
            SUCCESS
        }
        Err(code) => code,
    }
}

unsafe fn give_text(to: *mut c_char, length: c_uint, text: &str) -> c_uint {
    if to.is_null() || text.len() + 1 > length as usize {
        return 7;
    }
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    SUCCESS
}

/// A call about a GPU that gives one whole number.
unsafe fn number(function: &str, device: Device, usual: u32, to: *mut c_uint) -> c_uint {
    let value = answer(function, Some(gpu_of(device)), None, f64::from(usual));
    unsafe { give(to, value.map(|value| value as c_uint)) }
}

const ALREADY_INITIALIZED: c_uint = 5;
static STARTED: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_uint {
    if let Err(code) = answer("Init_v2", None, None, 0.0) {
        return code;
    }
    // The real one counts; here a start without a shutdown is a mistake that tests can see.
    if STARTED.swap(true, Ordering::Relaxed) { ALREADY_INITIALIZED } else { SUCCESS }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_: c_uint) -> c_uint {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_uint {
    STARTED.store(false, Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(_: c_uint) -> *const c_char {
    const TEXT: &CStr = c"scripted";
    TEXT.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) -> c_uint {
    unsafe { give_text(to, length, "580.105.08") }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_uint {
    unsafe { give(to, begin_poll()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Device) -> c_uint {
    if index >= gpus() {
        return INVALID_ARGUMENT;
    }
    let handle = answer("HandleByIndex_v2", Some(index), None, f64::from(index));
    unsafe { give(to, handle.map(|index| (index as usize + 1) as Device)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut Device) -> c_uint {
    let wanted = unsafe { CStr::from_ptr(uuid) }.to_string_lossy().into_owned();
    match (0..gpus()).find(|gpu| uuid_of(*gpu) == wanted) {
        Some(gpu) => unsafe { nvmlDeviceGetHandleByIndex_v2(gpu, to) },
        None => NOT_FOUND,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: Device, to: *mut c_char, length: c_uint) -> c_uint {
    match answer("UUID", Some(gpu_of(device)), None, f64::from(gpu_of(device))) {
        Ok(gpu) => unsafe { give_text(to, length, &uuid_of(gpu as u32)) },
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: Device, to: *mut c_char, length: c_uint) -> c_uint {
    match answer("Name", Some(gpu_of(device)), None, 0.0) {
        Ok(_) => unsafe { give_text(to, length, "NVIDIA H100 80GB HBM3") },
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(device: Device, to: *mut nvmlPciInfo_t) -> c_uint {
    let gpu = match answer("PciInfo_v3", Some(gpu_of(device)), None, f64::from(gpu_of(device))) {
        Ok(gpu) => gpu as u32,
        Err(code) => return code,
    };
    // SAFETY: all fields are numbers or bytes, for which zero is a value.
    let mut info: nvmlPciInfo_t = unsafe { std::mem::zeroed() };
    let id = pci_of(gpu);
    for (into, from) in info.busId.iter_mut().zip(id.bytes()) {
        *into = from as c_char;
    }
    for (into, from) in info.busIdLegacy.iter_mut().zip(id[4..].bytes()) {
        *into = from as c_char;
    }
    info.bus = 0x1a + gpu;
    unsafe { give(to, Ok(info)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: Device, _: c_uint, to: *mut c_uint) -> c_uint {
    unsafe { number("Temperature", device, 34, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: Device, to: *mut c_uint) -> c_uint {
    unsafe { number("PowerUsage", device, 68_000, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: Device, to: *mut c_uint) -> c_uint {
    unsafe { number("EnforcedPowerLimit", device, 700_000, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(device: Device, to: *mut c_ulonglong) -> c_uint {
    let value = answer("TotalEnergyConsumption", Some(gpu_of(device)), None, 600_000.0);
    unsafe { give(to, value.map(|value| value as c_ulonglong)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: Device, to: *mut nvmlUtilization_t) -> c_uint {
    let value = answer("UtilizationRates", Some(gpu_of(device)), None, 0.0);
    unsafe { give(to, value.map(|gpu| nvmlUtilization_t { gpu: gpu as c_uint, memory: 0 })) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, to: *mut nvmlMemory_v2_t) -> c_uint {
    let used = answer("MemoryInfo_v2", Some(gpu_of(device)), None, 0.0).map(|used| used as u64);
    let (total, reserved) = (80 * GIB, GIB);
    let info = used.map(|used| nvmlMemory_v2_t { version: 0, total, reserved, used, free: total - reserved - used });
    unsafe { give(to, info) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(device: Device, clock: c_uint, to: *mut c_uint) -> c_uint {
    unsafe { number("ClockInfo", device, if clock == 2 { 2619 } else { 345 }, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxClockInfo(device: Device, clock: c_uint, to: *mut c_uint) -> c_uint {
    unsafe { number("MaxClockInfo", device, if clock == 2 { 2619 } else { 1980 }, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: Device, to: *mut c_ulonglong) -> c_uint {
    let value = answer("CurrentClocksThrottleReasons", Some(gpu_of(device)), None, 1.0);
    unsafe { give(to, value.map(|value| value as c_ulonglong)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: Device,
    _: nvmlMemoryErrorType_t,
    _: nvmlEccCounterType_t,
    to: *mut c_ulonglong,
) -> c_uint {
    let value = answer("TotalEccErrors", Some(gpu_of(device)), None, 0.0);
    unsafe { give(to, value.map(|value| value as c_ulonglong)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrPcieLinkGeneration(device: Device, to: *mut c_uint) -> c_uint {
    unsafe { number("CurrPcieLinkGeneration", device, 5, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrPcieLinkWidth(device: Device, to: *mut c_uint) -> c_uint {
    unsafe { number("CurrPcieLinkWidth", device, 16, to) }
}

/// `value` is the number of processes: pids 1000, 2000, …; the third one's memory is not available.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: Device,
    count: *mut c_uint,
    to: *mut nvmlProcessInfo_t,
) -> c_uint {
    let running = match answer("ComputeRunningProcesses_v3", Some(gpu_of(device)), None, 0.0) {
        Ok(running) => running as u32,
        Err(code) => return code,
    };
    let room = unsafe { count.read() };
    unsafe { count.write(running) };
    if room < running {
        return 7;
    }
    for at in 0..running {
        let usedGpuMemory = if at == 2 { u64::MAX } else { u64::from(at + 1) * GIB };
        let info = nvmlProcessInfo_t { pid: (at + 1) * 1000, usedGpuMemory, gpuInstanceId: 0, computeInstanceId: 0 };
        unsafe { to.add(at as usize).write(info) };
    }
    SUCCESS
}

/// Each field has its own return code; the call's own says only that something was filled in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(device: Device, count: i32, fields: *mut nvmlFieldValue_t) -> c_uint {
    let gpu = Some(gpu_of(device));
    if let Err(code) = answer("FieldValuesCall", gpu, None, 0.0) {
        return code;
    }
    for at in 0..usize::try_from(count).unwrap_or(0) {
        let field = unsafe { &mut *fields.add(at) };
        let usual = match field.fieldId {
            82 => 32.0,
            197 | 198 => 1e9,
            _ => {
                field.nvmlReturn = 3;
                continue;
            }
        };
        let value = answer("FieldValues", gpu, Some(field.fieldId), usual);
        field.valueType = 1;
        field.nvmlReturn = value.err().unwrap_or(SUCCESS);
        field.value.uiVal = value.unwrap_or(0.0) as c_uint;
    }
    SUCCESS
}
