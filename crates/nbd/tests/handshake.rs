//! The handshake, byte by byte: every option, every way to enter and to leave.

mod support;

use palisade_nbd::{EndReason, Violation};
use sim::volume::MemoryVolume;
use support::client::{ACK, GO, INFO, SET_CONTEXT, contexts, go, u16_at, u32_at, u64_at};
use support::{SIZE, Shelf, World};

const UNSUP: u32 = (1 << 31) + 1;
const POLICY: u32 = (1 << 31) + 2;
const INVALID: u32 = (1 << 31) + 3;
const UNKNOWN: u32 = (1 << 31) + 6;
const TOO_BIG: u32 = (1 << 31) + 9;

fn world() -> World {
    World::new(&MemoryVolume::new(1 << 20, 4096))
}

fn two() -> World {
    let named = |name: &str, bytes| (name.to_owned(), MemoryVolume::new(bytes, 512));
    World::with(Shelf(vec![named("a", 1 << 16), named("b", 1 << 17)]), SIZE)
}

#[test]
fn export_name_enters_with_and_without_zeroes() {
    for (flags, zeroes) in [(1, 124), (3, 0), (0, 124)] {
        let end = world().run(move |client| async move {
            client.greet(flags).await;
            client.send(&support::client::option(1, b"vol"));
            let reply = client.take(10 + zeroes).await;
            assert_eq!(u64_at(&reply, 0), 1 << 20);
            assert_eq!(u16_at(&reply, 8), 0b1001_0110_1101);
            assert!(reply[10..].iter().all(|byte| *byte == 0));
            client.request(2, 0, 0, 0, 0);
            assert!(client.is_closed().await);
        });
        assert_eq!(end, EndReason::Disconnected);
    }
}

#[test]
fn go_tells_size_flags_and_block_sizes() {
    let end = world().run(|client| async move {
        client.greet(3).await;
        assert_eq!(client.ask(8, &[]).await, [(ACK, vec![])]);
        for code in [INFO, GO] {
            let replies = client.ask(code, &go(b"", &[1, 3])).await;
            assert_eq!(replies.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [3, 3, 3, 1]);
            let export = &replies[0].1;
            assert_eq!((u16_at(export, 0), u64_at(export, 2)), (0, 1 << 20));
            assert_eq!(u16_at(export, 10), 0b1001_1110_1101);
            let sizes = &replies[1].1;
            assert_eq!(u16_at(sizes, 0), 3);
            let sizes = [u32_at(sizes, 2), u32_at(sizes, 6), u32_at(sizes, 10)];
            assert_eq!(sizes, [4096, 65536, 32 << 20]);
            assert_eq!(replies[2].1, b"\0\x01vol");
        }
        client.request(2, 0, 0, 0, 0);
        assert!(client.is_closed().await);
    });
    assert_eq!(end, EndReason::Disconnected);
}

#[test]
fn exports_are_listed_and_found_by_name() {
    let end = two().run(|client| async move {
        client.greet(3).await;
        let list = client.ask(3, &[]).await;
        assert_eq!(list[0], (2, b"\0\0\0\x01a".to_vec()));
        assert_eq!(list[1], (2, b"\0\0\0\x01b".to_vec()));
        assert_eq!(list[2], (ACK, vec![]));
        assert_eq!(client.ask(3, b"x").await[0].0, INVALID);
        // No default export among two.
        assert_eq!(client.ask(GO, &go(b"", &[])).await[0].0, UNKNOWN);
        assert_eq!(client.ask(GO, &go(b"c", &[])).await[0].0, UNKNOWN);
        assert_eq!(client.ask(GO, &go(b"\xff", &[])).await[0].0, UNKNOWN);
        assert_eq!(u64_at(&client.ask(INFO, &go(b"b", &[])).await[0].1, 2), 1 << 17);
        assert_eq!(client.ask(2, &[]).await, [(ACK, vec![])]);
        assert!(client.is_closed().await);
    });
    assert_eq!(end, EndReason::Aborted);
}

#[test]
fn what_is_not_offered_is_refused_and_haggling_goes_on() {
    world().run(|client| async move {
        client.greet(3).await;
        assert_eq!(client.ask(5, &[]).await[0].0, POLICY);
        for code in [0, 4, 11, 99, u32::MAX] {
            assert_eq!(client.ask(code, &[7; 1000]).await[0].0, UNSUP);
        }
        assert_eq!(client.ask(8, b"data").await[0].0, INVALID);
        assert_eq!(client.ask(GO, &go(b"vol", &[])).await.last().unwrap().0, ACK);
    });
}

#[test]
fn lying_lengths_inside_an_option_are_invalid() {
    world().run(|client| async move {
        client.greet(3).await;
        client.ask(8, &[]).await;
        let lies: [&[u8]; 6] = [
            b"",
            b"\0\0\0",
            b"\xff\xff\xff\xffvol\0\0",
            b"\0\0\0\x03vol\0",
            b"\0\0\0\x03vol\xff\xff\0\0",
            b"\0\0\0\x03vol\0\0x",
        ];
        for data in lies {
            assert_eq!(client.ask(GO, data).await[0].0, INVALID, "{data:?}");
        }
        let name = [b'n'; 4097];
        assert_eq!(client.ask(GO, &go(&name, &[])).await[0].0, TOO_BIG);
        assert_eq!(client.ask(GO, &go(&name[1..], &[])).await[0].0, UNKNOWN);
        let mut many = contexts(b"vol", &[]);
        many[7..11].copy_from_slice(&[0xff; 4]);
        assert_eq!(client.ask(SET_CONTEXT, &many).await[0].0, INVALID);
        assert_eq!(client.ask(SET_CONTEXT, &contexts(&name, &[])).await[0].0, TOO_BIG);
        assert_eq!(client.ask(SET_CONTEXT, &contexts(b"no", &[])).await[0].0, UNKNOWN);
    });
}

#[test]
fn contexts_are_listed_and_selected() {
    let base = (4, [&[0, 0, 0, 0][..], b"base:allocation"].concat());
    let chosen = (4, [&[0, 0, 0, 1][..], b"base:allocation"].concat());
    world().run(|client| async move {
        client.greet(3).await;
        assert_eq!(client.ask(9, &contexts(b"vol", &[])).await[0].0, INVALID);
        client.ask(8, &[]).await;
        for queries in [&[][..], &[&b"base:"[..]], &[b"x-other:", b"base:allocation"]] {
            let replies = client.ask(9, &contexts(b"vol", queries)).await;
            assert_eq!(replies, [base.clone(), (ACK, vec![])]);
        }
        for queries in [&[][..], &[&b"base:"[..]], &[&b"qemu:x"[..]]] {
            let replies = client.ask(SET_CONTEXT, &contexts(b"vol", queries)).await;
            assert_eq!(replies, [(ACK, vec![])]);
        }
        let twice: &[&[u8]] = &[b"base:allocation", b"base:allocation"];
        let replies = client.ask(SET_CONTEXT, &contexts(b"", twice)).await;
        assert_eq!(replies, [chosen, (ACK, vec![])]);
    });
}

#[test]
fn a_context_counts_for_its_export_only() {
    for (of, error) in [(b"a", true), (b"b", false)] {
        two().run(move |client| async move {
            client.greet(3).await;
            client.ask(8, &[]).await;
            client.ask(SET_CONTEXT, &contexts(of, &[b"base:allocation"])).await;
            client.ask(GO, &go(b"b", &[])).await;
            client.request(support::client::STATUS, 0, 1, 0, 512);
            assert_eq!(client.chunk().await.kind >> 15 == 1, error);
        });
    }
}

#[test]
fn broken_framing_ends_the_connection() {
    use support::client::option;
    let start = |flags: u32, more: &[u8]| [&flags.to_be_bytes()[..], more].concat();
    let mut lie = option(7, b"");
    lie[12..16].copy_from_slice(&[0xff; 4]);
    let cases = [
        (start(4, b""), Violation::ClientFlags),
        (start(1 << 16, b""), Violation::ClientFlags),
        (start(3, b"IHAVEOPS\0\0\0\x01\0\0\0\0"), Violation::OptionMagic),
        (start(3, &lie), Violation::OptionTooLong),
        (start(3, &option(99, &[0; 16385])), Violation::OptionTooLong),
        (start(0, &option(3, b"")), Violation::NotFixedNewstyle),
        (start(3, &option(3, b"").repeat(1024)), Violation::TooManyOptions),
    ];
    for (bytes, violation) in cases {
        assert_eq!(world().throw(&bytes).0, EndReason::Violation(violation));
    }
    for name in [&b"no"[..], &[b'n'; 5000], b"\xff"] {
        let bytes = start(3, &option(1, name));
        assert_eq!(world().throw(&bytes).0, EndReason::UnknownExport);
    }
}

#[test]
fn connections_beyond_the_memory_are_refused() {
    let world = world();
    let held: Vec<_> = (0..4).map(|_| world.connect()).collect();
    world.core.run();
    assert_eq!(world.memory.connections(), 4);
    let (client, end) = world.connect();
    world.core.run();
    assert!(client.pipe.is_closed());
    assert_eq!(end.get(), Some(EndReason::Refused));
    held.iter().for_each(|(client, _)| client.pipe.hang_up());
    world.core.run();
    assert!(held.iter().all(|(_, end)| end.get() == Some(EndReason::Closed)));
    assert!(world.memory.is_idle());
}
