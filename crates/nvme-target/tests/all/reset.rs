//! Cross-controller resets: a host has a controller of its own ended by another.

use crate::support::host::{Data, Host, Pdu, admin_command, blocks, command};
use crate::support::{BLOCK, Rig, export};
use nvme::command::{Command, admin, nvm};
use nvme::identify::cns;
use nvme::log::page;
use nvme::reset::{Entry, IMMEDIATE, Instance, Progress, REMOVE, entries};
use nvme::status::Status;
use palisade_nvme_target::limits;
use units::Nanos;

/// Which controller a host has.
async fn instance(host: &Host) -> Instance {
    let c = host.identify(cns::CONTROLLER, 0).await;
    assert_eq!(usize::from(c[1807]), limits::RESETS);
    let random = u64::from_le_bytes(c[136..144].try_into().expect("eight"));
    let controller = u16::from_le_bytes([c[78], c[79]]);
    assert!(c[135] != 0 && random != 0, "they would say nothing");
    Instance { controller, uniquifier: c[135], random }
}

fn reset(of: Instance) -> Command {
    admin_command(admin::CROSS_CONTROLLER_RESET, 0, &of.dwords())
}

/// Asks for a reset; the status, and whether it is over.
async fn ask(host: &Host, of: Instance) -> (Status, bool) {
    host.begin(reset(of), &Data::None).await.expect("sent");
    match host.next_pdu().await.expect("answered") {
        Pdu::Done(done) => (done.status, done.result & IMMEDIATE != 0),
        other => panic!("{other:?}"),
    }
}

/// The page of resets; what is over is removed from it if so wanted.
async fn resets(host: &Host, remove: u8) -> Vec<Entry> {
    let ten = u32::from(page::RESETS) | u32::from(remove) << 8 | (128 / 4 - 1) << 16;
    let log = admin_command(admin::GET_LOG_PAGE, u32::MAX, &[ten]);
    entries(&host.expect(log, Data::Out(128), Status::SUCCESS).await)
}

fn entry(of: Instance, by: u16, progress: Progress) -> Entry {
    Entry { controller: of.controller, uniquifier: of.uniquifier, by, progress }
}

/// It is over when the last command has ended that the other had begun, and not before.
#[test]
fn a_controller_is_ended_with_all_that_it_began() {
    let rig = Rig::new(31);
    let volume = rig.volume();
    volume.hold(Some(0));
    let (one, io, other) = (rig.host(), rig.host(), rig.host());
    let env = rig.world.env(units::CoreId(0));
    rig.run(async move {
        let id = one.enter().await;
        let lost = instance(&one).await;
        assert_eq!(lost.controller, id);
        assert_eq!(io.join(1, lost.controller).await.expect("joined").status, Status::SUCCESS);
        let by = other.enter().await;
        assert_ne!(instance(&other).await, lost);
        other.begin(command(admin::ASYNC_EVENT_REQUEST, 0), &Data::None).await.expect("sent");
        io.begin(blocks(nvm::WRITE, 0, 1), &Data::Capsule(&[7; BLOCK])).await.expect("sent");
        while volume.0.in_flight.get() == 0 {
            ::io::Env::sleep(&env, Nanos::from_millis(1)).await;
        }
        assert_eq!(ask(&other, lost).await, (Status::SUCCESS, false));
        assert_eq!(resets(&other, REMOVE).await, [entry(lost, by, Progress::UnderWay)]);
        assert_eq!(ask(&other, lost).await, (Status::RESET_IN_PROGRESS, false));
        assert!(volume.0.in_flight.get() > 0, "the write goes on");
        // The host's connections to it end.
        assert!(one.next_pdu().await.is_err() && io.next_pdu().await.is_err());
        ::io::Env::sleep(&env, Nanos::from_millis(1000)).await;
        assert_eq!(resets(&other, REMOVE).await, [entry(lost, by, Progress::UnderWay)]);
        volume.hold(None);
        match other.next_pdu().await.expect("an event") {
            Pdu::Done(done) => assert_eq!(done.result, 0x1e_f4_02),
            told => panic!("{told:?}"),
        }
        assert_eq!(volume.0.in_flight.get(), 0, "it has ended");
        assert_eq!(resets(&other, 0).await, [entry(lost, by, Progress::Done)]);
        assert_eq!(resets(&other, REMOVE).await, [entry(lost, by, Progress::Done)]);
        assert_eq!(resets(&other, 0).await, []);
        // One that is gone is so at once.
        assert_eq!(ask(&other, lost).await, (Status::SUCCESS, true));
        assert_eq!(resets(&other, 0).await, []);
    });
    rig.finish();
}

/// Only a host's own, only that instance, and never the one that is asked.
#[test]
fn no_other_controller_is_ended() {
    let rig = Rig::new(32);
    let (one, other, mut stranger) = (rig.host(), rig.host(), rig.host());
    stranger.host_id = [6; 16];
    rig.run(async move {
        one.enter().await;
        other.enter().await;
        stranger.enter().await;
        let meant = instance(&one).await;
        assert_eq!(ask(&stranger, meant).await, (Status::INVALID_FIELD, false), "another's");
        let random = Instance { random: meant.random ^ 2, ..meant };
        let uniquifier = Instance { uniquifier: meant.uniquifier ^ 1, ..meant };
        for wrong in [random, uniquifier] {
            assert_eq!(ask(&other, wrong).await, (Status::SUCCESS, true), "it was another");
        }
        let own = instance(&other).await;
        assert_eq!(ask(&other, own).await, (Status::INVALID_FIELD, false));
        assert_eq!(instance(&one).await, meant, "it is there");
        assert_eq!(resets(&other, 0).await, []);
    });
    rig.finish();
}

/// A host that has several controllers may send a change again by another: changes are in order
/// then, and only then.
#[test]
fn changes_are_in_order_where_a_host_has_several_controllers() {
    let rig = Rig::new(34);
    let (one, io, second, mut stranger) = (rig.host(), rig.host(), rig.host(), rig.host());
    stranger.host_id = [6; 16];
    let volume = rig.volume();
    rig.run(async move {
        let id = one.enter().await;
        assert_eq!(io.join(1, id).await.expect("joined").status, Status::SUCCESS);
        stranger.enter().await;
        let data = vec![3; BLOCK];
        let changes = async || {
            io.expect(blocks(nvm::WRITE, 0, 1), Data::Capsule(&data), Status::SUCCESS).await;
            io.expect(blocks(nvm::WRITE_ZEROES, 0, 1), Data::None, Status::SUCCESS).await;
            let range = [0u8; 16];
            let mut discard = command(nvm::DATASET_MANAGEMENT, 1);
            discard.0[44] = 4;
            io.expect(discard, Data::Capsule(&range), Status::SUCCESS).await;
            io.read(0, 1).await;
        };
        changes().await;
        assert_eq!(volume.0.ordered.get(), 0);
        second.enter().await;
        changes().await;
        assert_eq!(volume.0.ordered.get(), 3);
    });
    rig.finish();
}

#[test]
fn the_page_has_room_for_so_many() {
    let rig = Rig::new(33);
    rig.target.add("two", export(2, 1)).expect("added");
    let others: Vec<_> = (0..=limits::RESETS).map(|_| rig.host()).collect();
    let host = rig.host();
    rig.run(async move {
        host.enter().await;
        let mut all = Vec::new();
        for other in &others {
            other.enter().await;
            all.push(instance(other).await);
        }
        let last = all.pop().expect("one");
        for own in all {
            assert_eq!(ask(&host, own).await, (Status::SUCCESS, false));
        }
        assert_eq!(ask(&host, last).await, (Status::RESETS_MOST, false));
        for other in &others[..limits::RESETS] {
            assert!(other.next_pdu().await.is_err());
        }
        assert_eq!(ask(&host, last).await, (Status::RESETS_UNREAD, false));
        assert_eq!(resets(&host, REMOVE).await.len(), 15, "as far as was asked for");
        assert_eq!(ask(&host, last).await, (Status::SUCCESS, false));
    });
    rig.finish();
}
