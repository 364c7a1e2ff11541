//! What is read of one GPU. One line each for what one call gives; a small function for what gives several.

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;

use super::outcome::Outcome;
use crate::metrics::THROTTLES;

/// Where readings go: metric, value or why there is none.
pub type Sink<'a> = dyn FnMut(&'static str, Result<f64, Outcome>) + 'a;

type Read = fn(&Device<'_>) -> Result<f64, NvmlError>;

const MEGAHERTZ: f64 = 1e6;

/// Metrics that one call gives each.
const SINGLE: [(&str, Read); 15] = [
    ("gpu_temperature_celsius", |gpu| gpu.temperature(TemperatureSensor::Gpu).map(f64::from)),
    ("gpu_power_watts", |gpu| gpu.power_usage().map(|milliwatts| f64::from(milliwatts) / 1e3)),
    ("gpu_power_limit_watts", |gpu| gpu.enforced_power_limit().map(|milliwatts| f64::from(milliwatts) / 1e3)),
    ("gpu_energy_joules_total", |gpu| gpu.total_energy_consumption().map(|millijoules| millijoules as f64 / 1e3)),
    ("gpu_sm_clock_hertz", |gpu| gpu.clock_info(Clock::SM).map(|mhz| f64::from(mhz) * MEGAHERTZ)),
    ("gpu_sm_clock_max_hertz", |gpu| gpu.max_clock_info(Clock::SM).map(|mhz| f64::from(mhz) * MEGAHERTZ)),
    ("gpu_memory_clock_hertz", |gpu| gpu.clock_info(Clock::Memory).map(|mhz| f64::from(mhz) * MEGAHERTZ)),
    ("gpu_ecc_corrected_total", |gpu| ecc(gpu, MemoryError::Corrected, EccCounter::Volatile)),
    ("gpu_ecc_uncorrected_total", |gpu| ecc(gpu, MemoryError::Uncorrected, EccCounter::Volatile)),
    ("gpu_ecc_corrected_aggregate_total", |gpu| ecc(gpu, MemoryError::Corrected, EccCounter::Aggregate)),
    ("gpu_ecc_uncorrected_aggregate_total", |gpu| ecc(gpu, MemoryError::Uncorrected, EccCounter::Aggregate)),
    ("gpu_pcie_link_generation", |gpu| gpu.current_pcie_link_gen().map(f64::from)),
    ("gpu_pcie_link_width", |gpu| gpu.current_pcie_link_width().map(f64::from)),
    ("gpu_pcie_link_width_max", |gpu| gpu.max_pcie_link_width().map(f64::from)),
    ("gpu_compute_processes", |gpu| gpu.running_compute_processes().map(|processes| processes.len() as f64)),
];

fn ecc(gpu: &Device<'_>, error: MemoryError, counter: EccCounter) -> Result<f64, NvmlError> {
    gpu.total_ecc_errors(error, counter).map(|count| count as f64)
}

/// Memory temperature, and PCIe bytes sent and received. The PCIe call of NVML blocks for 20 ms a counter; the fields
/// do not.
const FIELDS: [(u32, &str); 3] =
    [(82, "gpu_memory_temperature_celsius"), (197, "gpu_pcie_tx_bytes_total"), (198, "gpu_pcie_rx_bytes_total")];

/// Reads everything of one GPU.
pub fn read(gpu: &Device<'_>, sink: &mut Sink<'_>) {
    for (metric, read) in SINGLE {
        sink(metric, read(gpu).map_err(|error| Outcome::from(&error)));
    }
    utilisation(gpu, sink);
    memory(gpu, sink);
    reasons(gpu, sink);
    fields(gpu, sink);
}

fn each(metrics: &[&'static str], outcome: Outcome, sink: &mut Sink<'_>) {
    metrics.iter().for_each(|metric| sink(metric, Err(outcome)));
}

fn utilisation(gpu: &Device<'_>, sink: &mut Sink<'_>) {
    match gpu.utilization_rates() {
        Ok(rates) => {
            sink("gpu_utilization_ratio", Ok(f64::from(rates.gpu) / 100.0));
            sink("gpu_memory_busy_ratio", Ok(f64::from(rates.memory) / 100.0));
        }
        Err(error) => each(&["gpu_utilization_ratio", "gpu_memory_busy_ratio"], Outcome::from(&error), sink),
    }
}

fn memory(gpu: &Device<'_>, sink: &mut Sink<'_>) {
    const METRICS: [&str; 4] =
        ["gpu_memory_used_bytes", "gpu_memory_total_bytes", "gpu_memory_reserved_bytes", "gpu_memory_used_ratio"];
    match gpu.memory_info() {
        Ok(memory) => {
            let (used, total) = (memory.used as f64, memory.total as f64);
            sink(METRICS[0], Ok(used));
            sink(METRICS[1], Ok(total));
            sink(METRICS[2], Ok(memory.reserved as f64));
            if total > 0.0 {
                sink(METRICS[3], Ok(used / total));
            }
        }
        Err(error) => each(&METRICS, Outcome::from(&error), sink),
    }
}

/// Split into one series each, so that a rule needs no bit arithmetic; the raw bits are kept as well. The wrapper would drop those it does not know.
fn reasons(gpu: &Device<'_>, sink: &mut Sink<'_>) {
    match raw_reasons(gpu) {
        Ok(bits) => {
            sink("gpu_throttle_reasons", Ok(bits as f64));
            THROTTLES.iter().for_each(|(bit, metric)| sink(metric, Ok(f64::from(u8::from(bits & bit != 0)))));
        }
        Err(outcome) => {
            sink("gpu_throttle_reasons", Err(outcome));
            THROTTLES.iter().for_each(|(_, metric)| sink(metric, Err(outcome)));
        }
    }
}

fn raw_reasons(gpu: &Device<'_>) -> Result<u64, Outcome> {
    let library = gpu.nvml().lib();
    let call = library.nvmlDeviceGetCurrentClocksThrottleReasons.as_ref().map_err(|_| Outcome::NoSymbol)?;
    let mut bits = 0;
    // SAFETY: the handle is that of a living `Device`, and the place to write to lives past the call.
    #[allow(unsafe_code, reason = "the wrapper has no call that keeps unknown bits")]
    let code = unsafe { call(gpu.handle(), &mut bits) };
    match code {
        0 => Ok(bits),
        3 => Err(Outcome::NotSupported),
        15 => Err(Outcome::Lost),
        other => Err(Outcome::Failed(other)),
    }
}

/// Each field has its own return code; that of the call says only that something was filled in.
fn fields(gpu: &Device<'_>, sink: &mut Sink<'_>) {
    let ids = FIELDS.map(|(id, _)| FieldId(id));
    match gpu.field_values_for(&ids) {
        Ok(values) => {
            for (value, (_, metric)) in values.into_iter().zip(FIELDS) {
                let value = value.and_then(|sample| sample.value);
                sink(metric, value.map(|value| number(&value)).map_err(|error| Outcome::from(&error)));
            }
        }
        Err(error) => FIELDS.iter().for_each(|(_, metric)| sink(metric, Err(Outcome::from(&error)))),
    }
}

fn number(value: &SampleValue) -> f64 {
    match value {
        SampleValue::F64(value) => *value,
        SampleValue::U32(value) => f64::from(*value),
        SampleValue::I64(value) => *value as f64,
        SampleValue::U64(value) => *value as f64,
    }
}
