//! Sizes as people write them: `64K`, `1G`, `128MiB`, `4096`. All suffixes are binary.

/// Reads a size in bytes. Accepts a decimal number (`1.5` too) and an optional suffix `K M G T`,
/// either case, optionally followed by `B` or `iB`. `None` if it is not one, or not whole bytes,
/// or over 2^63.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let shift = match suffix.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let mut digits: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut scale: u128 = 1;
    for digit in fraction.bytes() {
        digits = digits.checked_mul(10)?.checked_add(u128::from(digit.checked_sub(b'0')?))?;
        scale *= 10;
    }
    let bytes = digits.checked_mul(1 << shift)?;
    if bytes % scale != 0 || bytes / scale > 1 << 63 {
        return None;
    }
    u64::try_from(bytes / scale).ok()
}

/// Writes a size for people: the largest binary unit with at most one decimal (`1.5 GiB`).
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scale: u64 = 1;
    while unit + 1 < UNITS.len() && bytes / scale >= 1024 {
        scale *= 1024;
        unit += 1;
    }
    let tenths = (u128::from(bytes) * 10 + u128::from(scale) / 2) / u128::from(scale);
    if tenths % 10 == 0 {
        format!("{} {}", tenths / 10, UNITS[unit])
    } else {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64K", 65536),
            ("64k", 65536),
            ("1MiB", 1 << 20),
            ("1.5G", 3 << 29),
            ("2tb", 2 << 40),
            (" 8 M ", 8 << 20),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "K", ".", "-1", "1X", "0.3K0", "1.0001", "99999999999T", "1..2", "ten"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn writes_short_and_rounded() {
        assert_eq!(format_size(0), "0 B");
        assert_eq!(format_size(1536), "1.5 KiB");
        assert_eq!(format_size(1 << 30), "1 GiB");
        assert_eq!(format_size(u64::MAX), "16777216 TiB");
    }
}
