//! PDUs of NVMe over TCP on a stream: what a target and a host share in reading and writing them.
//!
//! What a PDU is, and which may come, is the caller's. Documents: see crate `nvme`.

use arrayvec::ArrayVec;
use io::{Closed, Transport};
use nvme::pdu::{COMMON_BYTES, DIGEST_BYTES, Digests, Fatal, Header, INITIALIZE_BYTES, Kind, Rest};
use parity::crc32c;
use std::io::IoSlice;

/// Bytes of a PDU's header as they came.
pub type Received = ArrayVec<u8, INITIALIZE_BYTES>;

/// Reads a PDU up to its data; `raw` gets the bytes of its header. `most` says how many bytes of
/// data a PDU of its kind may have; `None`: the other side sends no such PDU. Data must begin at a
/// multiple of 4, which is what we ask of others.
///
/// # Errors
/// The connection ends, or the header is wrong.
pub async fn read_header<T: Transport, E: From<Closed> + From<Fatal>>(
    transport: &T,
    digests: Digests,
    most: impl FnOnce(Kind) -> Option<u32>,
    raw: &mut Received,
) -> Result<(Header, Rest), E> {
    raw.clear();
    let mut common = [0; COMMON_BYTES];
    transport.read_exact(&mut common).await?;
    raw.extend(common);
    let header = Header::decode(&common)?;
    let most = most(header.kind).ok_or(Fatal::Field(0))?;
    let rest = header.check(digests, 4, most)?;
    raw.extend(core::iter::repeat_n(0, rest.header));
    transport.read_exact(&mut raw[COMMON_BYTES..]).await?;
    if rest.header_digest {
        let had = read_digest(transport).await?;
        if had != crc32c(0, raw) {
            return Err(Fatal::HeaderDigest(had).into());
        }
    }
    skip(transport, rest.padding).await?;
    Ok((header, rest))
}

async fn read_digest<T: Transport>(transport: &T) -> Result<u32, Closed> {
    let mut bytes = [0; DIGEST_BYTES];
    transport.read_exact(&mut bytes).await?;
    Ok(u32::from_le_bytes(bytes))
}

/// Takes bytes that nobody wants off the stream.
///
/// # Errors
/// The connection ends.
pub async fn skip<T: Transport>(transport: &T, mut bytes: usize) -> Result<(), Closed> {
    let mut away = [0; 256];
    while bytes > 0 {
        let part = bytes.min(away.len());
        transport.read_exact(&mut away[..part]).await?;
        bytes -= part;
    }
    Ok(())
}

/// Reads a PDU's data; false if it does not have its digest.
///
/// # Errors
/// The connection ends.
pub async fn read_data<T: Transport>(
    transport: &T,
    into: &mut [u8],
    rest: &Rest,
) -> Result<bool, Closed> {
    transport.read_exact(into).await?;
    Ok(!rest.data_digest || read_digest(transport).await? == crc32c(0, into))
}

/// Adds a PDU's header to what is to be sent, with its digest if that is used.
#[inline]
pub fn add_header(bytes: &mut Vec<u8>, digests: Digests, header: &[u8]) {
    bytes.extend_from_slice(header);
    if digests.header {
        bytes.extend_from_slice(&crc32c(0, header).to_le_bytes());
    }
}

/// Bytes with data between them, in the order in which they are sent: `cuts` says where in `bytes`
/// each piece of data stands. There is room for `N` slices, or it panics.
pub fn parts<'a, const N: usize>(
    bytes: &'a [u8],
    cuts: &[usize],
    data: impl Iterator<Item = &'a [u8]>,
) -> ArrayVec<IoSlice<'a>, N> {
    let mut parts = ArrayVec::new();
    let mut from = 0;
    for (cut, data) in cuts.iter().zip(data) {
        if from < *cut {
            parts.push(IoSlice::new(&bytes[from..*cut]));
        }
        parts.push(IoSlice::new(data));
        from = *cut;
    }
    if from < bytes.len() {
        parts.push(IoSlice::new(&bytes[from..]));
    }
    parts
}
