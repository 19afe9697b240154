//! Identities of arrays, drives and volumes: 128 bits, shown as RFC 9562 text.

use core::fmt;
use core::str::FromStr;

/// A universally unique identifier (RFC 9562), big-endian bytes as on the wire and on disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The identifier that names nothing.
    pub const NIL: Self = Self([0; 16]);

    /// Makes a version 4 identifier of 16 random bytes.
    pub const fn from_random(mut bytes: [u8; 16]) -> Self {
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 32 hexadecimal digits with dashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotUuid;

impl FromStr for Uuid {
    type Err = NotUuid;

    fn from_str(text: &str) -> Result<Self, NotUuid> {
        let mut bytes = [0u8; 16];
        let mut digits = 0;
        for c in text.chars().filter(|c| *c != '-') {
            let digit = c.to_digit(16).ok_or(NotUuid)?;
            let byte = bytes.get_mut(digits / 2).ok_or(NotUuid)?;
            *byte = *byte << 4 | u8::try_from(digit).map_err(|_| NotUuid)?;
            digits += 1;
        }
        if digits == 32 { Ok(Self(bytes)) } else { Err(NotUuid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let id = Uuid::from_random(core::array::from_fn(|i| i as u8 * 17));
        assert_eq!(id.to_string().len(), 36);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("12".parse::<Uuid>(), Err(NotUuid));
    }
}
