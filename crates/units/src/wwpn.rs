//! Names of Fibre Channel ports: 64 bits, shown as eight pairs of digits.

use core::fmt;
use core::str::FromStr;

/// A worldwide port name (FC-FS-3, "Name_Identifier formats"), big-endian bytes as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wwpn(pub [u8; 8]);

impl fmt::Display for Wwpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Wwpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 16 hexadecimal digits, in pairs or not, or they are all 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotWwpn;

impl FromStr for Wwpn {
    type Err = NotWwpn;

    /// Of a text as Linux, switches and other storage show it: `20:00:00:25:b5:00:00:1f`,
    /// `0x20000025b500001f`, `naa.20000025b500001f` or the digits alone.
    fn from_str(text: &str) -> Result<Self, NotWwpn> {
        let text =
            ["0x", "0X", "naa."].iter().find_map(|own| text.strip_prefix(own)).unwrap_or(text);
        let mut digits = 0_u64;
        let mut number = 0;
        for (i, one) in text.chars().enumerate() {
            if text.len() == 23 && i % 3 == 2 {
                if one != ':' {
                    return Err(NotWwpn);
                }
                continue;
            }
            digits = digits << 4 | u64::from(one.to_digit(16).ok_or(NotWwpn)?);
            number += 1;
        }
        if number == 16 && digits != 0 { Ok(Self(digits.to_be_bytes())) } else { Err(NotWwpn) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_others_show_it() {
        let own = Wwpn([0x20, 0, 0, 0x25, 0xb5, 0, 0, 0x1f]);
        assert_eq!(own.to_string(), "20:00:00:25:b5:00:00:1f");
        for text in [
            "20:00:00:25:b5:00:00:1f",
            "20:00:00:25:B5:00:00:1F",
            "0x20000025b500001f",
            "naa.20000025b500001f",
            "20000025B500001F",
        ] {
            assert_eq!(text.parse(), Ok(own), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "0x",
            "20:00:00:25:b5:00:00",
            "20:00:00:25:b5:00:00:1f:00",
            "20:00:00:25:b5:00:00:1g",
            "20-00-00-25-b5-00-00-1f",
            "2:0000:00:25:b5:00:00:1f",
            "00:00:00:00:00:00:00:00",
            "+0000000000000001",
            "20000025b500001f0",
            "２000000000000000",
        ] {
            assert_eq!(text.parse::<Wwpn>(), Err(NotWwpn), "{text}");
        }
    }
}
