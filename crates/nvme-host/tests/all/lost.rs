//! Connections that end: what is asked stays asked, and is never carried out behind anybody's back.

use crate::support::{BYTES, Dialer, Host, Rig, buffer, bytes, empty, fresh};
use io::local::all_of;
use io::{Drive, DriveError, Env, Priority};
use nvme::pdu::Digests;
use palisade_nvme_host::End;
use palisade_nvme_host::requests::{Association, Way};
use sim::net::{Cut, Weather};
use std::cell::Cell;
use std::rc::Rc;
use units::Nanos;

/// Reads go on with the next connection; what changes something does when somebody says that it may
/// be sent again.
#[test]
fn what_is_asked_is_carried_by_the_next_connection() {
    for seed in 0..40 {
        let rig = Rig::new(seed);
        let (dialer, env) = (rig.dialer(), rig.env());
        rig.run(async move {
            // Somewhere between the first command and the last answer.
            let cut = Some((4000 + 9000 * seed, Cut::Reset));
            let weather = Weather { cut, ..Weather::default() };
            let mut host = dialer.host(weather, Digests::default()).await;
            through(&dialer, &mut host, Digests::default()).await;
            let end = host.queues[1].end.get();
            assert!(end.is_none_or(|end| end == End::Closed), "{end:?}");
            assert!(host.requests.is_idle());
            host.leave(&env).await;
        });
        rig.finish();
    }
}

/// Writes, and reads what was written, over as many connections as that takes.
async fn through(dialer: &Dialer, host: &mut Host, digests: Digests) {
    let drive = host.drive().await;
    let is_done = Rc::new(Cell::new(false));
    let done = is_done.clone();
    dialer.env.spawn(Priority::First, async move {
        let write = |n: u64| drive.write(n << 15, &[buffer(n as u8, 1 << 15)], false);
        let read = |n: u64| drive.read(n << 15, empty(1 << 15));
        // Both at once, and what it is when all is done.
        let (writes, reads) = ((0..8).map(write).collect(), (0..8).map(read).collect());
        assert_eq!(all_of(writes).await, [Ok(()); 8]);
        assert!(all_of(reads).await.iter().all(|(result, _)| result.is_ok()));
        for n in 0..8 {
            let (result, into) = read(n).await;
            assert_eq!(result, Ok(()));
            assert!(into[..] == bytes(n as u8, 1 << 15)[..], "{n}");
        }
        done.set(true);
    });
    let begun = dialer.env.now();
    while !is_done.get() {
        assert!(dialer.env.now().since(begun) < Nanos::from_millis(60_000), "it is not done");
        if host.queues.last().is_some_and(|last| last.end.get().is_some()) {
            dialer.again(host, Weather::default(), digests).await;
            host.requests.release(Association::default());
        }
        dialer.env.sleep(Nanos::from_millis(1)).await;
    }
}

#[test]
fn a_change_that_is_held_is_sent_by_nobody() {
    let rig = Rig::new(77);
    let (dialer, env, volume) = (rig.dialer(), rig.env(), rig.volume.clone());
    rig.run(async move {
        let mut host = dialer.host(Weather::default(), Digests::default()).await;
        let drive = host.drive().await;
        let line = host.queues[1].line.clone();
        // What is sent from now on arrives nowhere.
        line.set_weather(Weather { cut: Some((line.sent(), Cut::Silence)), ..Weather::default() });
        let write = drive.write(0, &[buffer(1, 4096)], false);
        let large = drive.write(1 << 20, &[buffer(2, 2 << 20)], false);
        env.sleep(Nanos::from_millis(10)).await;
        host.queues[1].queue.close();
        env.sleep(Nanos::from_millis(10)).await;
        assert_eq!((host.queues[1].end.get(), host.requests.held()), (Some(End::Here), 2));
        dialer.again(&mut host, Weather::default(), Digests::default()).await;
        // Others go on meanwhile.
        assert_eq!(drive.write(8192, &[buffer(3, 512)], false).await, Ok(()));
        env.sleep(Nanos::from_millis(10)).await;
        assert_eq!(host.requests.held(), 2);
        let (result, into) = drive.read(0, empty(4096)).await;
        assert!(result == Ok(()) && into[..] == fresh(0, 4096)[..], "it was not sent");
        host.requests.release(Association::default());
        assert_eq!((write.await, large.await), (Ok(()), Ok(())));
        let (_, into) = drive.read(1 << 20, empty(2 << 20)).await;
        assert!(into[..] == bytes(2, 2 << 20)[..]);
        assert_eq!(volume.0.in_flight.get(), 0);
        host.leave(&env).await;
    });
    rig.finish();
}

#[test]
fn what_nobody_will_carry_ends() {
    let rig = Rig::new(78);
    let (dialer, env) = (rig.dialer(), rig.env());
    rig.run(async move {
        let mut host = dialer.host(Weather::default(), Digests::default()).await;
        let drive = host.drive().await;
        host.queues[1].queue.close();
        env.sleep(Nanos::from_millis(1)).await;
        let waiting = drive.read(0, empty(512));
        let dropped = drive.write(0, &[buffer(1, BYTES / 2)], false);
        host.requests.set_ways(&[(3, Way::No(DriveError::Gone))]);
        assert_eq!(waiting.await.0, Err(DriveError::Gone));
        drop(dropped);
        assert_eq!(drive.flush().await, Err(DriveError::Gone));
        assert!(host.requests.is_idle(), "what nobody waits for is over, too");
        host.requests.set_ways(&[]);
        dialer.again(&mut host, Weather::default(), Digests::default()).await;
        assert_eq!(drive.flush().await, Ok(()));
        host.leave(&env).await;
    });
    rig.finish();
}

/// A bit that flips is noticed, and what it was in is done again: by the controller that saw it, by
/// the host, or on the next connection.
#[test]
fn damage_is_noticed() {
    let digests = Digests { header: true, data: true };
    for seed in 100..140u64 {
        let rig = Rig::new(seed);
        let (dialer, env) = (rig.dialer(), rig.env());
        rig.run(async move {
            let flip = Some(2000 + (seed - 100) * 7919);
            let mut host = dialer.host(Weather { flip, ..Weather::default() }, digests).await;
            through(&dialer, &mut host, digests).await;
            host.leave(&env).await;
        });
        rig.finish();
    }
}
