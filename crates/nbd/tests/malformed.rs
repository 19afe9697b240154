//! Anything at all from a client: the connection ends, nothing else does.

mod support;

use palisade_nbd::{EndReason, Violation};
use proptest::prelude::*;
use sim::volume::MemoryVolume;
use support::World;
use support::client::{
    DISC, FLUSH, GO, READ, STATUS, TRIM, WRITE, ZEROES, contexts, go, hello, option, request,
};

fn world() -> World {
    World::new(&MemoryVolume::new(1 << 20, 512))
}

/// A session with every command in it.
fn session() -> Vec<u8> {
    let mut bytes = hello(true);
    bytes.extend(request(WRITE, 1, 1, 512, 1024));
    bytes.extend([7; 1024]);
    for (kind, offset, count) in
        [(READ, 0, 2048), (FLUSH, 0, 0), (TRIM, 0, 512), (ZEROES, 512, 512), (STATUS, 0, 512)]
    {
        bytes.extend(request(kind, 0, 2, offset, count));
    }
    bytes.extend(request(DISC, 0, 3, 0, 0));
    bytes
}

#[test]
fn a_session_cut_at_any_byte_ends() {
    let world = world();
    let bytes = session();
    for cut in 0..bytes.len() {
        assert_eq!(world.throw(&bytes[..cut]).0, EndReason::Closed, "cut at {cut}");
    }
    assert_eq!(world.throw(&bytes).0, EndReason::Disconnected);
}

#[test]
fn broken_requests_end_the_connection() {
    let mut magic = request(READ, 0, 1, 0, 512);
    magic[0] ^= 0x80;
    let long = request(WRITE, 0, 1, 0, (32 << 20) + 512);
    let huge = request(WRITE, 0xffff, 1, u64::MAX, u32::MAX);
    let cases = [
        (magic, Violation::RequestMagic),
        (long, Violation::WriteTooLong),
        (huge, Violation::WriteTooLong),
    ];
    let world = world();
    for (bytes, violation) in cases {
        let bytes = [hello(true), bytes].concat();
        assert_eq!(world.throw(&bytes).0, EndReason::Violation(violation));
    }
}

#[test]
fn a_broken_client_that_does_not_read_is_thrown_out() {
    let world = world();
    let (client, end) = world.connect();
    let pipe = client.pipe.clone();
    world.core.block_on(async move { client.enter(true).await });
    pipe.set_stuck(true);
    pipe.send(&request(READ, 0, 1, 0, 65536));
    world.core.run();
    pipe.send(&[0; 28]);
    world.core.run();
    assert_eq!(end.get(), Some(EndReason::Violation(Violation::RequestMagic)));
    assert_eq!((world.core.tasks(), world.memory.is_idle()), (0, true));
}

/// Messages that are nearly right: any number may be anything.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0..4u32, Just(512), Just(1 << 20), Just(u32::MAX), any::<u32>()];
    let text = prop_oneof![
        Just(b"vol".to_vec()),
        Just(b"".to_vec()),
        Just(b"base:allocation".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40)
    ];
    prop_oneof![
        (0..13u32, text.clone()).prop_map(|(code, data)| option(code, &data)),
        (0..13u32, text.clone(), text.clone())
            .prop_map(|(code, name, query)| option(code, &contexts(&name, &[&query]))),
        (text.clone(), number.clone())
            .prop_map(|(name, info)| option(GO, &go(&name, &[info as u16]))),
        (0..9u16, 0..40u16, number.clone(), number, text).prop_map(
            |(kind, flags, offset, bytes, data)| {
                let offset = u64::from(offset) << (flags % 33);
                [request(kind, flags, 1, offset, bytes), data].concat()
            }
        ),
        proptest::collection::vec(any::<u8>(), 0..64),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        world().throw(&bytes);
    }

    #[test]
    fn any_bytes_after_the_handshake_end(
        structured: bool,
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
    ) {
        world().throw(&[hello(structured), bytes].concat());
    }

    #[test]
    fn any_messages_end(
        entered: bool,
        messages in proptest::collection::vec(message(), 0..20),
    ) {
        let start = if entered { hello(true) } else { vec![0, 0, 0, 3] };
        world().throw(&[start, messages.concat()].concat());
    }

    #[test]
    fn a_changed_byte_ends(at in 0..session().len(), byte: u8) {
        let mut bytes = session();
        bytes[at] = byte;
        world().throw(&bytes);
    }
}
