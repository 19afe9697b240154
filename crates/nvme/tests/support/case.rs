//! A case of the fuzz target: bytes that the other side of a connection may send.
//!
//! Purpose: whatever comes, reading it ends with a value or an error; and what was read and is
//! written again is read alike, its bytes the same as far as they mean something.

use palisade_nvme::command::{Command, Completion};
use palisade_nvme::fabrics::{Connect, ConnectData, Property};
use palisade_nvme::log::{Wanted, is_all_changed};
use palisade_nvme::nqn::Nqn;
use palisade_nvme::pdu::{
    self, Digests, Header, InitializeRequest, InitializeResponse, Kind, Transfer,
};
use palisade_nvme::sgl::Sgl;

/// The first bytes, zeros behind the input's end.
fn take<const N: usize>(input: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(input).for_each(|(to, from)| *to = *from);
    bytes
}

/// Headers, for every alignment and most that either side could ask for.
fn header(choice: u8, input: &[u8]) {
    let Ok(header) = Header::decode(&take(input)) else { return };
    assert_eq!(header.encode(), take::<8>(input));
    let digests = Digests { header: choice & 1 != 0, data: choice & 2 != 0 };
    let alignment = pdu::alignment(choice >> 2 & 31).expect("it is below 32");
    let most = if choice & 0x80 != 0 { u32::MAX } else { 1 << 20 };
    let Ok(rest) = header.check(digests, alignment, most) else { return };
    let digest = |there| if there { 4 } else { 0 };
    let data = u64::from(rest.data) + digest(rest.data_digest);
    let before = 8 + rest.header as u64 + digest(rest.header_digest) + rest.padding as u64;
    assert_eq!(before + data, u64::from(header.bytes), "all of it and nothing else follows");
    assert!(rest.data <= most && rest.padding < 256);
    let again = Header::new(header.kind, header.flags, rest.data, alignment, digests);
    let is_end = matches!(header.kind, Kind::HostTermination | Kind::ControllerTermination);
    if !is_end && rest.data > 0 {
        let other = again.check(digests, alignment, most).expect("what we write is right");
        assert_eq!((other.data, other.data_digest), (rest.data, rest.data_digest));
        assert!(again.data_offset <= header.data_offset, "it begins as early as it may");
    }
}

/// What begins a connection, and what moves data.
fn pdus(input: &[u8]) {
    let bytes = take(input);
    let request = InitializeRequest::decode(&bytes);
    assert_eq!(InitializeRequest::decode(&request.encode()), request);
    let response = InitializeResponse::decode(&bytes);
    assert_eq!(InitializeResponse::decode(&response.encode()), response);
    let transfer = Transfer::decode(&take(input));
    let header = Header::new(Kind::HostData, 0, 0, 4, Digests::default());
    assert_eq!(Transfer::decode(&transfer.encode(&header)), transfer);
    assert_eq!(transfer.encode(&header)[8..20], take::<24>(input)[8..20]);
    let completion = Completion::decode(&take(input));
    let told = completion.encode();
    assert_eq!(Completion::decode(&told), completion);
    assert_eq!((&told[..14], told[15]), (&take::<16>(input)[..14], take::<16>(input)[15]));
    assert_eq!(pdu::completion(&pdu::response(Digests::default(), &completion)), completion);
}

/// Commands and what is in them.
fn commands(input: &[u8]) {
    let command = Command(take(input));
    (2..16).for_each(|number| {
        command.dword(number);
    });
    assert!((1..=65536).contains(&command.blocks()));
    let _ = (command.fused(), command.has_sgl(), command.is_fua(), command.first_block());
    let sgl = command.sgl();
    assert_eq!(Sgl::decode(&sgl.encode()), sgl);
    let connect = Connect::decode(&command);
    assert_eq!(Connect::decode(&connect.encode(command.id(), sgl)), connect);
    if let Some(property) = Property::decode(&command) {
        assert_eq!(Property::decode(&property.encode(command.id(), true)), Some(property));
    }
    let wanted = Wanted::decode(&command);
    let (whole, mut into) = ([7; 600], [1; 64]);
    if wanted.part(&whole, &mut into).is_ok() {
        let there = (600 - wanted.offset as usize).min(64);
        assert!(into[..there].iter().all(|byte| *byte == 7));
        assert!(into[there..].iter().all(|byte| *byte == 0));
    }
}

/// Names, and the data of a Connect.
fn names(input: &[u8]) {
    if let Ok(name) = Nqn::decode(&take(input)) {
        assert_eq!(Nqn::decode(&name.encode()), Ok(name.clone()));
        assert_eq!(Nqn::new(name.as_str()), Ok(name));
    }
    if let Ok(data) = ConnectData::decode(&take(input)) {
        assert_eq!(ConnectData::decode(&data.encode()), Ok(data));
    }
    let mut page = [0; 4096];
    page.iter_mut().zip(input).for_each(|(to, from)| *to = *from);
    is_all_changed(&page, input.len());
}

/// Runs the case that `input` chooses: its first byte says how, the rest are the bytes.
///
/// # Panics
/// If something is read wrongly.
pub fn run(input: &[u8]) {
    let Some((choice, input)) = input.split_first() else { return };
    header(*choice, input);
    pdus(input);
    commands(input);
    names(input);
}
