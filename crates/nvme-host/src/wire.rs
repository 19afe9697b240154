//! What lies on a connection, from a host's side: PDUs of the controller are read, those of the
//! host are put together.

use crate::limits::{BATCH, SLICES, SLICES_OF_PDU};
use crate::queue::End;
use arrayvec::ArrayVec;
use io::{Buf, Gather, Transport};
use nvme::command::Command;
use nvme::pdu::{self, Digests, Header, Kind, Rest, Transfer, flag};
use nvme_stream::{Received, add_header, parts};
use parity::crc32c;
use std::io::IoSlice;

/// What both sides agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    pub digests: Digests,
    /// Of data to the controller, bytes (CPDA).
    pub alignment: usize,
    /// Most bytes of data of one PDU to the controller (MAXH2CDATA).
    pub data_most: u32,
}

/// Reads a PDU of the controller up to its data, of which it has at most `most` bytes.
pub(crate) async fn read_header<T: Transport>(
    transport: &T,
    digests: Digests,
    most: u32,
    raw: &mut Received,
) -> Result<(Header, Rest), End> {
    let most = |kind: Kind| (!kind.is_of_host()).then_some(most);
    nvme_stream::read_header(transport, digests, most, raw).await
}

/// Data of a PDU: parts of a request's buffers, one behind the other.
pub(crate) type Pieces = Gather;

/// PDUs that are sent together: the bytes around their data, and the data.
///
/// Invariant: it has the buffers until it is cleared, so that nobody writes to what is being sent.
#[derive(Default)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    data: ArrayVec<Buf, SLICES>,
    /// Where in `bytes` the pieces of data stand that are there, in their order.
    cuts: ArrayVec<usize, SLICES>,
    pdus: usize,
}

impl Frame {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.data.clear();
        self.cuts.clear();
        self.pdus = 0;
    }

    /// Whether another PDU may be added.
    pub fn has_room(&self) -> bool {
        // Bytes stand before each PDU's data, and behind the last one's.
        self.pdus < BATCH && self.data.len() + self.pdus + 1 + SLICES_OF_PDU <= SLICES
    }

    /// Adds a command, with data in its capsule or without.
    pub fn command(&mut self, form: &Form, command: &Command, data: Pieces) {
        let header = self.header(form, (Kind::Command, 0), &data);
        self.add(form, &header, &pdu::command(&header, command), data);
    }

    /// Adds a command with a few bytes in its capsule that are nobody's buffer.
    pub fn command_with(&mut self, form: &Form, command: &Command, data: &[u8]) {
        let header = Header::new(Kind::Command, 0, data.len() as u32, form.alignment, form.digests);
        let begin = self.bytes.len();
        self.add(form, &header, &pdu::command(&header, command), Pieces::new());
        self.bytes.resize(begin + usize::from(header.data_offset), 0);
        self.bytes.extend_from_slice(data);
        if form.digests.data {
            self.bytes.extend_from_slice(&crc32c(0, data).to_le_bytes());
        }
    }

    /// Adds data that the controller asked for: `transfer` says where it belongs.
    pub fn data(&mut self, form: &Form, transfer: &Transfer, is_last: bool, data: Pieces) {
        let flags = if is_last { flag::LAST } else { 0 };
        let header = self.header(form, (Kind::HostData, flags), &data);
        self.add(form, &header, &transfer.encode(&header), data);
    }

    fn header(&self, form: &Form, (kind, flags): (Kind, u8), data: &Pieces) -> Header {
        let bytes: usize = data.iter().map(|piece| piece.len()).sum();
        Header::new(kind, flags, bytes as u32, form.alignment, form.digests)
    }

    fn add(&mut self, form: &Form, header: &Header, raw: &[u8], data: Pieces) {
        assert!(self.has_room(), "who adds has asked");
        let begin = self.bytes.len();
        add_header(&mut self.bytes, form.digests, raw);
        if !data.is_empty() {
            self.bytes.resize(begin + usize::from(header.data_offset), 0);
            let digest =
                form.digests.data.then(|| data.iter().fold(0, |d, piece| crc32c(d, piece)));
            self.cuts.extend(data.iter().map(|_| self.bytes.len()));
            self.data.extend(data);
            self.bytes.extend(digest.into_iter().flat_map(u32::to_le_bytes));
        }
        self.pdus += 1;
    }

    /// All of it, in order.
    pub fn parts(&self) -> ArrayVec<IoSlice<'_>, SLICES> {
        parts(&self.bytes, &self.cuts, self.data.iter().map(|piece| &**piece))
    }
}
