//! One spelling for the address of a PCI device.

/// The address as sysfs spells it: `0000:53:00.0`. NVML and DCGM write an eight-digit domain in capitals, the
/// kernel's Xid lines leave the function out (leptonai/gpud#1003). What is no PCI address is only lowered.
pub fn normalise(address: &str) -> String {
    let lower = address.trim().to_ascii_lowercase();
    parts(&lower).map_or(lower.clone(), |(domain, bus, device)| format!("{domain:04x}:{bus}:{device}"))
}

fn parts(address: &str) -> Option<(u32, &str, String)> {
    let mut pieces = address.rsplitn(3, ':');
    let (device, bus) = (pieces.next()?, pieces.next()?);
    let domain = u32::from_str_radix(pieces.next().unwrap_or("0"), 16).ok()?;
    let (slot, function) = device.split_once('.').unwrap_or((device, "0"));
    let is_hex = |text: &str, len: usize| text.len() == len && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let sound = is_hex(bus, 2) && is_hex(slot, 2) && is_hex(function, 1);
    sound.then(|| (domain, bus, format!("{slot}.{function}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_become_one() {
        for spelling in ["00000000:CB:00.0", "0000:cb:00.0", "0000:cb:00", "CB:00.0"] {
            assert_eq!(normalise(spelling), "0000:cb:00.0", "{spelling}");
        }
        assert_eq!(normalise("00010000:07:00.0"), "10000:07:00.0");
        for other in ["", "unknown", "0000:zz:00.0", "a:b:c:d"] {
            assert_eq!(normalise(other), other);
        }
    }
}
