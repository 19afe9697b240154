//! Lengths, flags and fields of PDUs, right and wrong.

use super::*;
use crate::status::Status;
use proptest::prelude::*;

const BOTH: Digests = Digests { header: true, data: true };
const NONE: Digests = Digests { header: false, data: false };

#[test]
fn a_connection_of_a_linux_host_begins() {
    // drivers/nvme/host/tcp.c, nvme_tcp_init_connection.
    let mut bytes = [0; INITIALIZE_BYTES];
    (bytes[2], bytes[4], bytes[11]) = (128, 128, 3);
    let header = Header::decode(bytes.first_chunk().unwrap()).unwrap();
    assert_eq!(header.check(NONE, 4, 0).unwrap().header, 120);
    let request = InitializeRequest::decode(&bytes);
    let expected =
        InitializeRequest { version: 0, alignment: 0, digests: BOTH, requests_less_one: 0 };
    assert_eq!((request, request.encode()), (expected, bytes));
    let response =
        InitializeResponse { version: 0, alignment: 0, digests: BOTH, data_most: 1 << 17 };
    assert_eq!(InitializeResponse::decode(&response.encode()), response);
}

#[test]
fn a_command_with_data_has_its_lengths() {
    let rest = |digests, alignment| {
        let header = Header::new(Kind::Command, 0, 4096, alignment, digests);
        assert_eq!(Header::decode(&header.encode()), Ok(header));
        (header.data_offset, header.bytes, header.check(digests, alignment, 4096).unwrap())
    };
    let (offset, bytes, plain) = rest(NONE, 4);
    assert_eq!((offset, bytes), (72, 72 + 4096));
    assert_eq!((plain.header, plain.padding, plain.data), (64, 0, 4096));
    let (offset, bytes, padded) = rest(BOTH, 128);
    assert_eq!((offset, bytes, padded.padding), (128, 128 + 4096 + 4, 128 - 76));
    assert!(padded.header_digest && padded.data_digest);
}

/// CVE-2023-6356, CVE-2023-6535, CVE-2023-6536, CVE-2026-22998: lengths that were believed.
#[test]
fn lengths_that_are_not_possible_are_refused() {
    let good = Header::new(Kind::Command, 0, 512, 4, NONE);
    let refused = |change: fn(&mut Header)| {
        let mut header = good;
        change(&mut header);
        header.check(NONE, 4, 8192).unwrap_err()
    };
    assert_eq!(refused(|h| h.bytes = 71), Fatal::Field(4));
    assert_eq!(refused(|h| h.bytes = 0), Fatal::Field(4));
    assert_eq!(refused(|h| h.data_offset = 0), Fatal::Field(3));
    assert_eq!(refused(|h| h.data_offset = 74), Fatal::Field(3));
    assert_eq!(refused(|h| (h.data_offset, h.bytes) = (80, 80)), Fatal::Field(4));
    assert_eq!(refused(|h| (h.data_offset, h.bytes) = (252, 100)), Fatal::Field(4));
    assert_eq!(refused(|h| h.bytes = u32::MAX), Fatal::Limit);
    assert_eq!(refused(|h| h.bytes = 72 + 8193), Fatal::Limit);
    assert_eq!(refused(|h| h.flags = flag::HEADER_DIGEST), Fatal::Field(1));
    assert_eq!(refused(|h| h.flags = flag::DATA_DIGEST), Fatal::Field(1));
    let long = Header { bytes: 25, ..Header::new(Kind::Response, 0, 0, 4, NONE) };
    assert_eq!(long.check(NONE, 4, 8192), Err(Fatal::Field(4)), "it has no data");
    let end = |bytes| Header { bytes, ..Header::new(Kind::HostTermination, 0, 0, 4, BOTH) };
    assert_eq!(end(24 + 128).check(BOTH, 4, 0).map(|rest| rest.data), Ok(128));
    assert_eq!(end(24 + 129).check(BOTH, 4, 0), Err(Fatal::Field(4)));
    assert_eq!(alignment(31), Some(128));
    assert_eq!(alignment(32), None);
}

#[test]
fn kinds_and_header_lengths_that_are_not_known_are_refused() {
    for kind in 0..=u8::MAX {
        let known = matches!(kind, 0..=7 | 9);
        let result = Header::decode(&[kind, 0, 24, 0, 24, 0, 0, 0]);
        match (known, result) {
            (false, result) => assert_eq!(result, Err(Fatal::Field(0)), "{kind}"),
            (true, Ok(header)) => assert_eq!(header.kind.header_bytes(), 24),
            (true, error) => assert!(error == Err(Fatal::Field(2)) && matches!(kind, 0 | 1 | 4)),
        }
    }
}

#[test]
fn answers_are_read_as_they_were_written() {
    let end = Completion::of(7, Status::COMPARE_FAILURE);
    let bytes = response(NONE, &end);
    assert_eq!(
        (completion(&bytes), bytes[..8].to_vec()),
        (end, alloc::vec![5, 0, 24, 0, 24, 0, 0, 0])
    );
    let transfer = Transfer { command: 3, tag: 9, offset: 1 << 17, bytes: 1 << 12 };
    let header = Header::new(Kind::ReadyToTransfer, 0, 0, 4, BOTH);
    let bytes = transfer.encode(&header);
    assert_eq!((Transfer::decode(&bytes), header.bytes), (transfer, 28));
    let bytes = termination(Kind::ControllerTermination, Fatal::Field(3), 1 << 20);
    let header = Header::decode(bytes.first_chunk().unwrap()).unwrap();
    assert_eq!((header.bytes, bytes[8], bytes[10]), (24 + 128, 1, 3));
}

proptest! {
    /// What is written is possible, and says exactly what follows.
    #[test]
    fn headers_are_checked_as_they_were_made(
        kind in prop::sample::select(
            alloc::vec![Kind::Command, Kind::HostData, Kind::ControllerData],
        ),
        data in 1u32..1 << 20,
        field in 0u8..32,
        header in any::<bool>(),
        digest in any::<bool>(),
    ) {
        let digests = Digests { header, data: digest };
        let alignment = alignment(field).unwrap();
        let made = Header::new(kind, flag::LAST, data, alignment, digests);
        let read = Header::decode(&made.encode()).unwrap();
        prop_assert_eq!(read, made);
        let rest = read.check(digests, alignment, data).unwrap();
        let count = |there: bool| if there { DIGEST_BYTES as u32 } else { 0 };
        let sum = (COMMON_BYTES + rest.header + rest.padding) as u32 + rest.data
            + count(rest.header_digest) + count(rest.data_digest);
        prop_assert_eq!((rest.data, sum), (data, made.bytes));
        prop_assert_eq!(read.check(digests, alignment, data - 1), Err(Fatal::Limit));
    }

    /// Any bytes are a header that says exactly what follows, or are refused.
    #[test]
    fn any_bytes_are_possible_or_refused(
        kind in 0u8..12,
        length in prop::sample::select(alloc::vec![24u8, 72, 128, 0]),
        rest in any::<[u8; 6]>(),
        header in any::<bool>(),
        data in any::<bool>(),
    ) {
        let bytes = [kind, rest[0], length, rest[1], rest[2], rest[3], rest[4] & 1, 0];
        let digests = Digests { header, data };
        let Ok(read) = Header::decode(&bytes) else { return Ok(()) };
        let Ok(follows) = read.check(digests, 4, 4096) else { return Ok(()) };
        let count = |there: bool| if there { DIGEST_BYTES as u32 } else { 0 };
        let sum = (COMMON_BYTES + follows.header + follows.padding) as u32 + follows.data
            + count(follows.header_digest) + count(follows.data_digest);
        prop_assert_eq!(sum, read.bytes);
        prop_assert!(follows.data <= 4096);
    }
}
