//! Connections that broke while a drive held up what they had asked for, and those beside and
//! behind them.

mod support;

use palisade_nbd::EndReason;
use palisade_nbd::limits::JOBS;
use sim::volume::{MemoryVolume, Op};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use support::client::{Client, DISC, READ, TRIM, ZEROES};
use support::{Gone, World};

const BLOCK: usize = 4096;

/// How a connection ends.
type End = Rc<Cell<Option<EndReason>>>;

fn world() -> (World, MemoryVolume) {
    let volume = MemoryVolume::new(1 << 20, BLOCK as u32);
    (World::new(&volume), volume)
}

/// A client behind its handshake.
fn entered(world: &World) -> Client {
    let (client, _) = world.connect();
    let same = Client::new(client.pipe.clone());
    world.core.block_on(async move { client.enter(false).await });
    same
}

/// A client with a write of two blocks at 0, which the volume holds.
fn held(world: &World, volume: &MemoryVolume) -> Client {
    let client = entered(world);
    volume.hold(Some(0));
    client.write(0, 1, 0, &[1; 2 * BLOCK]);
    world.core.run_ready();
    assert_eq!(volume.log(), [Op::Write(0, 2 * BLOCK, false)]);
    client
}

/// Waits for the answer, which must be a good one.
fn answered(world: &World, client: &Client, cookie: u64) {
    let client = Client::new(client.pipe.clone());
    world.core.block_on(async move { assert_eq!(client.simple().await, (cookie, 0)) });
}

/// What another connection asks for comes behind what `breaks` leaves of the first.
fn comes_behind(breaks: impl FnOnce(&Client)) {
    let (world, volume) = world();
    let (first, beside) = (held(&world, &volume), entered(&world));
    breaks(&first);
    world.core.run_ready();
    let behind = entered(&world);
    behind.write(0, 1, BLOCK as u64, &[2; BLOCK]);
    beside.request(READ, 0, 1, BLOCK as u64, BLOCK as u32);
    world.core.run_ready();
    assert_eq!(volume.log(), [], "both wait");
    volume.hold(None);
    answered(&world, &behind, 1);
    answered(&world, &beside, 1);
    assert_eq!(volume.bytes_at(0, BLOCK), [1; BLOCK]);
    assert_eq!(volume.bytes_at(BLOCK, BLOCK), [2; BLOCK]);
    [beside, behind].iter().for_each(|client| client.pipe.leave());
    world.core.run();
    assert_eq!(world.core.tasks(), 0);
    assert!(world.memory.is_idle());
}

#[test]
fn what_a_broken_connection_left_lands_before_what_comes_by_others() {
    comes_behind(|client| client.pipe.leave());
    comes_behind(|client| client.send(&[0; 28]));
    // A client that says goodbye and doesn't wait for its answer.
    comes_behind(|client| client.request(DISC, 0, 0, 0, 0));
}

#[test]
fn all_changes_are_waited_for_and_nothing_else() {
    for (kind, waits) in [(TRIM, true), (ZEROES, true), (READ, false)] {
        let (world, volume) = world();
        let first = entered(&world);
        volume.hold(Some(0));
        first.request(kind, 0, 1, 0, BLOCK as u32);
        world.core.run_ready();
        first.pipe.leave();
        let behind = entered(&world);
        assert_eq!(volume.log().len(), 1);
        behind.write(0, 1, BLOCK as u64, &[2; BLOCK]);
        world.core.run_ready();
        assert_eq!(volume.log().is_empty(), waits, "command {kind}");
        volume.hold(None);
        answered(&world, &behind, 1);
    }
}

#[test]
fn connections_that_are_there_do_not_wait_for_each_other() {
    let (world, volume) = world();
    let first = held(&world, &volume);
    let second = entered(&world);
    second.write(0, 1, BLOCK as u64, &[2; BLOCK]);
    answered(&world, &second, 1);
    assert_eq!(volume.0.in_flight.get(), 1);
    volume.hold(None);
    answered(&world, &first, 1);
}

#[test]
fn another_volume_waits_for_nobody() {
    let volumes = [(); 2].map(|()| MemoryVolume::new(1 << 20, BLOCK as u32));
    let shelf = ["other", "vol"].map(String::from).into_iter().zip(volumes.clone());
    let world = World::with(support::Shelf(shelf.collect()), support::SIZE);
    held(&world, &volumes[1]).pipe.leave();
    let (client, _) = world.connect();
    let same = Client::new(client.pipe.clone());
    world.core.block_on(async move {
        client.greet(3).await;
        client.ask(support::client::GO, &support::client::go(b"other", &[])).await;
        client.write(0, 1, 0, &[2; BLOCK]);
        assert_eq!(client.simple().await, (1, 0));
    });
    assert_eq!(same.pipe.unread(), 0);
}

/// A client with as many requests as a connection may have in progress, which the volume holds, and
/// one more, so that the connection does not look; and how that ends.
fn full(world: &World, volume: &MemoryVolume, gone: &Arc<Gone>) -> (Client, End) {
    let (client, end) = world.connect_by(gone.clone());
    let same = Client::new(client.pipe.clone());
    world.core.block_on(async move { client.enter(false).await });
    volume.hold(Some(0));
    for cookie in 0..=JOBS as u64 {
        same.request(ZEROES, 0, cookie, 0, 2 * BLOCK as u32);
    }
    (same, end)
}

/// A full connection whose client goes, which the system is told: what another one, made before
/// that or after, asks for comes behind what it left.
fn full_comes_first(early: bool) {
    let (world, volume) = world();
    let gone = Arc::<Gone>::default();
    let there = early.then(|| entered(&world));
    let (first, end) = full(&world, &volume, &gone);
    first.pipe.leave();
    world.core.run_ready();
    assert_eq!((volume.log().len(), end.get()), (JOBS, None));
    gone.tell();
    if early {
        world.fence("vol").look();
    }
    let other = there.unwrap_or_else(|| entered(&world));
    other.write(0, 1, BLOCK as u64, &[2; BLOCK]);
    world.core.run_ready();
    assert_eq!(volume.log(), [], "it waits");
    volume.hold(None);
    answered(&world, &other, 1);
    assert_eq!(volume.bytes_at(BLOCK, BLOCK), [2; BLOCK]);
    assert_eq!(end.get(), Some(EndReason::Closed));
}

#[test]
fn a_connection_that_does_not_look_is_found_to_be_gone() {
    full_comes_first(false);
}

#[test]
fn those_that_are_there_wait_for_one_that_does_not_look() {
    full_comes_first(true);
}

/// A client may say that it sends nothing more, and wait for its answers.
#[test]
fn who_sends_nothing_more_gets_its_answers() {
    let (world, volume) = world();
    let gone = Arc::<Gone>::default();
    let (first, end) = full(&world, &volume, &gone);
    first.request(DISC, 0, 0, 0, 0);
    gone.tell();
    world.core.run_ready();
    let behind = entered(&world);
    volume.hold(None);
    (0..=JOBS as u64).for_each(|cookie| answered(&world, &first, cookie));
    behind.write(0, 1, 0, &[2; BLOCK]);
    answered(&world, &behind, 1);
    assert_eq!(end.get(), Some(EndReason::Disconnected));
}
