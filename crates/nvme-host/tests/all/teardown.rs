//! What broke Linux' initiator, each by name: no controller of ours may do it to us.
//!
//! - An error in a digest: `data_without_its_digest_is_read_again`,
//!   `a_header_without_its_digest_is_not_believed`.
//! - Recovery beside teardown: [`a_path_may_be_taken_away_while_it_is_connected_anew`].
//! - A socket used when it was released: [`nothing_is_sent_by_a_connection_that_was_closed`].
//! - A queue that ends while it is used: [`a_queue_may_end_while_it_is_used`].
//! - A header that says it has 255 bytes: `headers_are_believed_only_as_far_as_they_can_be`.
//! - R2T without end, and data for a Write Zeroes:
//!   [`data_is_asked_for_no_more_often_than_there_is`].
//! - Namespaces whose numbers have gaps: [`namespaces_are_found_whatever_their_numbers`].

use crate::hostile::{self, Controller};
use crate::paths::{CORES, Cable, FENCE, Host, seconds, settings};
use crate::support::{buffer, empty, nqn};
use io::{Drive, DriveError, Priority};
use nvme::pdu::Fatal;
use nvme_target::{Export, Group, Hosts, PortId};
use palisade_nvme_host::{PathState, RemoteDrive, Settings};
use std::cell::Cell;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// A path is lost, and taken away at any moment of what follows: all ends.
#[test]
fn a_path_may_be_taken_away_while_it_is_connected_anew() {
    for step in 0..60 {
        let host = Host::with(
            100 + step,
            Cable::default(),
            Settings { reconnect_delay: Nanos::from_millis(3), ..settings() },
        );
        host.connect();
        let write = host.write(1, 0, 1);
        host.cable.break_all();
        host.rig.world.run_for(Nanos::from_micros(97 * step));
        host.subsystem.remove(host.path);
        let (subsystem, path) = (host.subsystem.clone(), host.path);
        host.run(0, async move { subsystem.gone(path).await });
        host.rig.world.run_for(FENCE.after(seconds(10)));
        // It was done before, or nobody knows.
        let result = write.get().map(|(result, _)| result);
        assert!(matches!(result, Some(Ok(()) | Err(DriveError::Gone))), "{step}: {result:?}");
        assert!(host.subsystem.paths(Nanos(0)).is_empty());
        host.finish();
    }
}

/// What a controller may still do when its subsystem is closed ends with its fence, and not before.
#[test]
fn what_is_held_when_all_is_closed_ends_behind_the_fence() {
    let host = Host::timed(300, 1);
    host.connect();
    host.rig.volume.hold(Some(0));
    let write = host.write(1, 0, 1);
    host.rig.world.run_for(Nanos::from_millis(10));
    let begun = host.rig.world.now();
    host.subsystem.close();
    host.rig.world.run_for(FENCE.after(seconds(1)));
    let (result, at) = write.get().expect("it has ended");
    assert_eq!(result, Err(DriveError::Gone));
    assert!(at.since(begun) >= FENCE, "{at:?}");
    host.rig.volume.hold(None);
    host.finish();
}

/// The connection is closed while much of what it is to carry has not been sent.
#[test]
fn nothing_is_sent_by_a_connection_that_was_closed() {
    for step in 0..20 {
        let host = Host::new(200 + step, Cable::default());
        host.connect();
        let writes: Vec<_> =
            (0..30).map(|n| host.write((n % 3) as u16, n << 12, n as u8)).collect();
        host.rig.world.run_for(Nanos::from_micros(7 * step));
        let sent = |host: &Host| -> Vec<u64> {
            host.cable.lines.borrow().iter().map(|line| line.sent()).collect()
        };
        host.cable.is_cut.set(true);
        host.subsystem.remove(host.path);
        let (subsystem, path) = (host.subsystem.clone(), host.path);
        host.run(0, async move { subsystem.gone(path).await });
        let at_end = sent(&host);
        host.rig.world.run_for(FENCE.after(seconds(10)));
        assert_eq!(sent(&host), at_end, "{step}");
        assert!(writes.iter().all(|own| own.get().is_some()), "{step}");
        host.finish();
    }
}

/// Cores ask while the connections under them end, again and again.
#[test]
fn a_queue_may_end_while_it_is_used() {
    let host = Host::with(
        300,
        Cable::default(),
        Settings { reconnect_delay: Nanos::from_millis(1), ..settings() },
    );
    host.connect();
    let is_over = Rc::new(Cell::new(false));
    let done = Rc::new(Cell::new(0));
    for core in 0..CORES {
        let drive = host.drive(core);
        let (is_over, done) = (is_over.clone(), done.clone());
        let env = host.rig.world.env(CoreId(core));
        let own = env.clone();
        io::Env::spawn(&env, Priority::First, async move {
            let at = u64::from(core) << 16;
            while !is_over.get() {
                let (result, _) = drive.read(at, empty(4096)).await;
                assert_eq!(result, Ok(()));
                done.set(done.get() + 1);
                io::Env::sleep(&own, Nanos::from_micros(5)).await;
            }
        });
    }
    for round in 0..100 {
        host.rig.world.run_for(Nanos::from_micros(300 + 41 * round));
        host.cable.break_all();
    }
    host.wait_for(PathState::Live);
    let before = done.get();
    host.rig.world.run_for(Nanos::from_millis(10));
    assert!(done.get() > before, "they go on");
    is_over.set(true);
    host.rig.world.run_for(seconds(1));
    host.finish();
}

/// A controller asks for the data of a command again and again, and for that of one without data.
#[test]
fn data_is_asked_for_no_more_often_than_there_is() {
    let again = |own: Controller| async move {
        let (command, _) = own.command().await;
        for _ in 0..1000 {
            own.ready(command.id(), 0, 4096).await;
        }
    };
    let write = |drive: &RemoteDrive| drive.write(0, &[buffer(1, 64 << 10)], false);
    hostile::Rig::new().wrong(write, again, Fatal::Limit);
    let zeroes = |drive: &RemoteDrive| drive.write_zeroes(0, 4096);
    hostile::Rig::new().wrong(zeroes, again, Fatal::Field(8));
    let flush = |drive: &RemoteDrive| drive.flush();
    hostile::Rig::new().wrong(flush, again, Fatal::Field(8));
}

#[test]
fn namespaces_are_found_whatever_their_numbers() {
    let host = Host::new(400, Cable::default());
    for nsid in [1, 7, 1000, 1024] {
        let export = Export {
            subsystem: nqn(crate::support::SUBSYSTEM),
            nsid,
            volume: 1,
            nguid: [nsid as u8; 16],
            uuid: [nsid as u8 | 0x80; 16],
            ports: [PortId(1)].into(),
            hosts: Hosts::Any,
            group: Group::FIRST,
        };
        host.rig.target.add(&format!("n{nsid}"), export).expect("added");
    }
    host.connect();
    let found = |host: &Host| host.subsystem.namespaces().into_keys().collect::<Vec<_>>();
    assert_eq!(found(&host), [1, 3, 7, 1000, 1024]);
    // One that goes leaves a gap; the others are there.
    host.rig.target.remove("n7");
    host.rig.world.run_for(seconds(1));
    let access = host.status().access;
    assert_eq!(access.into_keys().collect::<Vec<_>>(), [1, 3, 1000, 1024]);
    host.finish();
}
