//! PDUs (RFC 7143, section 11): a header of 48 bytes, and data, filled up to 4 bytes. Without
//! digests, which a login here never asks for.

use std::io::{self, ErrorKind, Read};

/// Bytes of a header.
pub const HEADER: usize = 48;
/// Most bytes of a PDU's data that are taken.
pub const DATA_MOST: usize = 1 << 18;
/// Data is filled up to so many bytes.
const PAD: usize = 4;

/// A tag that names no task.
pub const NO_TAG: u32 = u32::MAX;

/// What an initiator sends: operation codes, those of immediate delivery with the bit that says so.
pub mod to_target {
    /// NOP-Out, section 11.18.
    pub const NOP: u8 = 0x40;
    /// SCSI Command, section 11.3.
    pub const COMMAND: u8 = 0x01;
    /// Login Request, section 11.12.
    pub const LOGIN: u8 = 0x43;
    /// SCSI Data-Out, section 11.7.
    pub const DATA: u8 = 0x05;
    /// Logout Request, section 11.14.
    pub const LOGOUT: u8 = 0x46;
}

/// What a target sends.
pub mod to_initiator {
    /// NOP-In, section 11.19.
    pub const NOP: u8 = 0x20;
    /// SCSI Response, section 11.4.
    pub const RESPONSE: u8 = 0x21;
    /// Login Response, section 11.13.
    pub const LOGIN: u8 = 0x23;
    /// SCSI Data-In, section 11.7.
    pub const DATA: u8 = 0x25;
    /// Logout Response, section 11.15.
    pub const LOGOUT: u8 = 0x26;
    /// Ready To Transfer, section 11.8.
    pub const READY: u8 = 0x31;
    /// Asynchronous Message, section 11.9.
    pub const MESSAGE: u8 = 0x32;
}

/// A PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// The header, but for the length of the data.
    pub header: [u8; HEADER],
    /// The data.
    pub data: Vec<u8>,
}

impl Pdu {
    /// One with this operation code, these flags, and this task's tag.
    pub fn new(code: u8, flags: u8, tag: u32) -> Self {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (code, flags);
        let mut own = Self { header, data: Vec::new() };
        own.put(16, tag);
        own
    }

    /// Sets a field of four bytes.
    pub fn put(&mut self, at: usize, value: u32) {
        self.header[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// A field of four bytes.
    pub fn get(&self, at: usize) -> u32 {
        let field = self.header[at..].first_chunk().copied();
        u32::from_be_bytes(field.unwrap_or_default())
    }

    /// The operation code: without the bit of immediate delivery.
    pub fn code(&self) -> u8 {
        self.header[0] & 0x3f
    }

    /// Its flags.
    pub fn flags(&self) -> u8 {
        self.header[1]
    }

    /// The task's tag.
    pub fn tag(&self) -> u32 {
        self.get(16)
    }

    /// As it is sent.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.header.to_vec();
        let length = (self.data.len() as u32).to_be_bytes();
        all[5..8].copy_from_slice(&length[1..]);
        all.extend_from_slice(&self.data);
        all.resize(HEADER + self.data.len().next_multiple_of(PAD), 0);
        all
    }

    /// Reads the next one.
    ///
    /// # Errors
    /// Of the stream; `InvalidData` if it has more data than is taken.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut header = [0; HEADER];
        from.read_exact(&mut header)?;
        let [more, length @ ..] = [header[4], header[5], header[6], header[7]];
        let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        if length > DATA_MOST {
            return Err(ErrorKind::InvalidData.into());
        }
        let more = usize::from(more) * PAD;
        let mut data = vec![0; more + length.next_multiple_of(PAD)];
        from.read_exact(&mut data)?;
        data.drain(..more);
        data.truncate(length);
        header[4..8].fill(0);
        Ok(Self { header, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_that_of_the_standard() {
        let mut pdu = Pdu::new(to_target::COMMAND, 0xc1, 0x0102_0304);
        pdu.put(20, 512);
        pdu.data = vec![9; 5];
        let bytes = pdu.bytes();
        assert_eq!(bytes.len(), HEADER + 8);
        assert_eq!(bytes[..8], [0x01, 0xc1, 0, 0, 0, 0, 0, 5]);
        assert_eq!(bytes[16..24], [1, 2, 3, 4, 0, 0, 2, 0]);
        assert_eq!(bytes[HEADER..], [9, 9, 9, 9, 9, 0, 0, 0]);
    }

    #[test]
    fn additional_headers_are_passed_over_and_data_is_bounded() {
        let mut bytes = Pdu::new(to_initiator::NOP, 0x80, 7).bytes();
        (bytes[4], bytes[7]) = (2, 1);
        bytes.extend([1; 8]);
        bytes.extend([5, 0, 0, 0]);
        assert_eq!(Pdu::read(&mut &bytes[..]).expect("read").data, [5]);
        bytes[5..8].fill(0xff);
        let error = Pdu::read(&mut &bytes[..]).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(
            code in 0_u8..64,
            tag: u32,
            data in prop::collection::vec(any::<u8>(), 0..99),
        ) {
            let sent = Pdu { data, ..Pdu::new(code, 0x80, tag) };
            let mut bytes = sent.bytes();
            bytes.push(1);
            let mut rest = &bytes[..];
            prop_assert_eq!(Pdu::read(&mut rest).expect("read"), sent);
            prop_assert_eq!(rest, [1]);
        }
    }
}
