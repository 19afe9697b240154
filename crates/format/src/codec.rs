//! Little-endian bytes in and out. Reading never panics and never allocates by a number read.

use crate::FormatError;
use units::{Uuid, Wwpn};

/// CRC-32C (Castagnoli, RFC 3720).
pub fn crc32c(bytes: &[u8]) -> u32 {
    parity::crc32c(0, bytes)
}

/// Appends to a record.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }
    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }
    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }
    pub fn uuid(&mut self, value: Uuid) {
        self.0.extend(value.0);
    }
    pub fn wwpn(&mut self, value: Wwpn) {
        self.0.extend_from_slice(&value.0);
    }
    pub fn text(&mut self, value: &str) {
        self.0.extend(value.as_bytes());
    }
    pub fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + count, 0);
    }
    /// The length of a list or text as a count. Longer ones were refused before.
    pub fn count(&mut self, len: usize) {
        self.u16(u16::try_from(len).expect("checked before encoding"));
    }
}

/// Reads a record from front to back.
pub struct Reader<'a>(pub &'a [u8]);

const SHORT: FormatError = FormatError::Invalid("it ends in the middle of an entry");

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*taken)
    }
    pub fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(u8::from_le_bytes(self.array()?))
    }
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }
    pub fn wwpn(&mut self) -> Result<Wwpn, FormatError> {
        Ok(Wwpn(self.array()?))
    }
    pub fn uuid(&mut self) -> Result<Uuid, FormatError> {
        Ok(Uuid(self.array()?))
    }
    /// Text of `len` bytes, at most `max`.
    pub fn text(&mut self, len: usize, max: usize) -> Result<String, FormatError> {
        if len > max {
            return Err(FormatError::Invalid("a text is too long"));
        }
        let text = core::str::from_utf8(self.bytes(len)?);
        Ok(text.map_err(|_| FormatError::Invalid("a text is not UTF-8"))?.to_owned())
    }
    /// Reserved bytes, all zero.
    pub fn zeros(&mut self, count: usize) -> Result<(), FormatError> {
        if self.bytes(count)?.iter().any(|byte| *byte != 0) {
            return Err(FormatError::Invalid("reserved bytes are not zero"));
        }
        Ok(())
    }
    /// A flag byte, 0 or 1.
    pub fn flag(&mut self) -> Result<bool, FormatError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FormatError::Invalid("a flag is neither 0 nor 1")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::{CodeKind, Descriptor, Range};
    use proptest::prelude::*;

    proptest! {
        /// The bytes of a range carry any descriptor, also those of later versions (D9): a
        /// declustered layout needs nothing that is not there.
        #[test]
        fn ranges_carry_any_descriptor(long in any::<[u64; 4]>(), short in any::<[u16; 9]>(),
                strip_bytes in any::<u32>()) {
            let descriptor = Descriptor {
                version: short[0],
                width: short[1],
                spare_strips: short[2],
                code_id: short[3],
                seed: long[3],
                ..Descriptor::new(CodeKind::Parity, short[4] / 2, short[5] / 2, short[6],
                    strip_bytes)
            };
            let range = Range {
                array_start: long[0],
                array_bytes: long[1],
                drive_start: long[2],
                first_slot: short[7],
                first_group: short[8],
                descriptor,
            };
            let mut out = Writer::default();
            crate::encode::range(&mut out, &range);
            prop_assert_eq!(out.0.len(), crate::limits::RANGE_BYTES);
            prop_assert_eq!(crate::decode::range(&mut Reader(&out.0)), Ok(range));
        }
    }
}
