//! Resets, ends and events of controllers and their queues.

use crate::support::host::{Data, Host, Pdu, admin_command, blocks, command};
use crate::support::raw::{PLAIN, Stage, capsule, pair, reach, shortest, with};
use crate::support::{BLOCK, Rig};
use io::Transport;
use nvme::command::{admin, nvm};
use nvme::fabrics::{ANY_CONTROLLER, property};
use nvme::identify::cns;
use nvme::nqn::DISCOVERY;
use nvme::pdu::Fatal;
use nvme::status::Status;
use palisade_nvme_target::EndReason;
use units::{CoreId, Nanos};

/// Who clears CC.EN and reads that the controller is not ready any more sends again what was in
/// progress: it must have ended by then.
#[test]
fn a_reset_is_over_when_what_came_before_is() {
    let rig = Rig::new(1);
    let (old, _, admin) = pair(&rig);
    let (early, new) = (rig.host(), rig.host());
    let (volume, env) = (rig.volume(), rig.world.env(CoreId(0)));
    rig.run(async move {
        let id = admin.enter().await;
        old.join(1, id).await.unwrap();
        volume.hold(Some(0));
        old.begin(blocks(nvm::WRITE, 0, 1), &Data::Capsule(&[1; BLOCK])).await.unwrap();
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        admin.set_property(property::CONFIGURATION, 0x46_0000).await;
        io::Env::sleep(&env, Nanos::from_millis(1000)).await;
        assert_eq!(admin.property(property::STATUS, false).await, 1, "the write goes on");
        // A host that does not wait gets no queue.
        admin.set_property(property::CONFIGURATION, 0x46_0001).await;
        assert_eq!(early.join(2, id).await.unwrap().status, Status::CONNECT_BUSY);
        admin.set_property(property::CONFIGURATION, 0x46_0000).await;
        volume.hold(None);
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        assert_eq!(admin.property(property::STATUS, false).await, 0);
        admin.set_property(property::CONFIGURATION, 0x46_0001).await;
        assert_eq!(new.join(1, id).await.unwrap().status, Status::SUCCESS);
        new.expect(blocks(nvm::WRITE, 0, 1), Data::Capsule(&[2; BLOCK]), Status::SUCCESS).await;
        assert_eq!(volume.bytes_at(0, 1), [2]);
    });
    rig.finish();
}

/// Commands that wait for a worker are not carried out once their queue is over; and those of the
/// admin queue don't wait for one.
#[test]
fn what_waits_when_its_queue_is_reset_is_not_carried_out() {
    let rig = Rig::new(2);
    let (io, _, admin) = pair(&rig);
    let (volume, env) = (rig.volume(), rig.world.env(CoreId(0)));
    let held = volume.clone();
    rig.run(async move {
        let id = admin.enter().await;
        io.initialize().await.unwrap();
        let (connect, data) = (io.connect_command(1, 1024), io.connect_data(id));
        io.send_capsule(&connect, &data).await.unwrap();
        io.next_pdu().await.unwrap();
        held.hold(Some(0));
        for _ in 0..600 {
            io.begin(blocks(nvm::WRITE, 0, 1), &Data::Capsule(&[1; BLOCK])).await.unwrap();
        }
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        assert_eq!(held.0.in_flight.get(), 512, "all workers");
        admin.set_property(property::CONFIGURATION, 0x46_0000).await;
        held.hold(None);
        io::Env::sleep(&env, Nanos::from_millis(200)).await;
    });
    assert_eq!(volume.log().len(), 512);
    rig.finish();
}

/// A reset ends requests for events, and makes features what they were at first.
#[test]
fn a_reset_forgets_what_the_host_set() {
    let rig = Rig::small(3);
    let admin = rig.host();
    let target = rig.target.clone();
    rig.run(async move {
        admin.enter().await;
        let mut last = 0;
        for _ in 0..5 {
            for _ in 0..4 {
                let event = command(admin::ASYNC_EVENT_REQUEST, 0);
                last = admin.begin(event, &Data::None).await.unwrap();
            }
            let one = admin_command(admin::SET_FEATURES, 0, &[7, 0]);
            admin.expect(one, Data::None, Status::SUCCESS).await;
            admin.set_property(property::CONFIGURATION, 0x46_0000).await;
            admin.set_property(property::CONFIGURATION, 0x46_0001).await;
            let queues = admin_command(admin::GET_FEATURES, 0, &[7]);
            let (done, _) = admin.call(queues, Data::None).await.unwrap();
            assert_eq!((done.status, done.result), (Status::SUCCESS, 127 << 16 | 127));
        }
        let event = command(admin::ASYNC_EVENT_REQUEST, 0);
        let id = admin.begin(event, &Data::None).await.unwrap();
        target.resized(&1);
        let Pdu::Done(done) = admin.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((done.id, done.status), (id, Status::SUCCESS));
        assert!(id > last);
    });
    rig.finish();
}

/// The answer to a Connect says whether others will tell how far the queue was taken (Base, section
/// 3.3.1.2; Linux's target does so too), and counts itself.
#[test]
fn a_connect_says_whether_there_is_flow_control() {
    for (attributes, head) in [(0, 1), (4, 0xffff)] {
        let rig = Rig::small(4);
        let (mut io, _, mut admin) = pair(&rig);
        (io.attributes, admin.attributes) = (attributes, attributes);
        rig.run(async move {
            let done = admin.join(0, ANY_CONTROLLER).await.unwrap();
            assert_eq!(done.sq_head, head);
            admin.set_property(property::CONFIGURATION, 0x46_0001).await;
            assert_eq!(io.join(1, done.result as u16).await.unwrap().sq_head, head);
        });
        rig.finish();
    }
}

/// What a host left may hang for long: those of its connections that wait for it end like others
/// that take too long, and don't pile up.
#[test]
fn hosts_that_come_again_do_not_pile_up() {
    let rig = Rig::small(5);
    let (old, _, admin) = pair(&rig);
    let volume = rig.volume();
    let again: Vec<_> = (0..10).map(|_| rig.connect(0, Default::default())).collect();
    let env = rig.world.env(CoreId(0));
    rig.run(async move {
        reach(&old, &admin, Stage::Io).await;
        volume.hold(Some(0));
        old.begin(blocks(nvm::WRITE, 0, 1), &Data::Capsule(&[1; 512])).await.unwrap();
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        old.end.close();
        admin.end.close();
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        for (end, _) in &again {
            let host = Host::new(end.clone());
            host.initialize().await.unwrap();
            let (command, data) = (host.connect_command(0, 32), host.connect_data(ANY_CONTROLLER));
            host.send_capsule(&command, &data).await.unwrap();
        }
        io::Env::sleep(&env, Nanos::from_millis(10_200)).await;
        assert!(again.iter().all(|(_, ended)| ended.get().is_some()), "they wait for ever");
        volume.hold(None);
    });
    rig.finish();
}

/// A host that is told what it did wrong, and reads nothing, is not told for ever.
#[test]
fn a_connection_that_ends_does_so_in_time() {
    let rig = Rig::small(6);
    let (io, ended, admin) = pair(&rig);
    let env = rig.world.env(CoreId(0));
    rig.run(async move {
        reach(&io, &admin, Stage::Io).await;
        // More answers than the connection takes, then nonsense.
        for _ in 0..5 {
            io.begin(blocks(nvm::READ, 0, 128), &Data::Out(64 << 10)).await.unwrap();
        }
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        io.send(&shortest(0x7f)).await.unwrap();
        io::Env::sleep(&env, Nanos::from_millis(9_800)).await;
        assert_eq!(ended.get(), None, "the host may still read");
        io::Env::sleep(&env, Nanos::from_millis(400)).await;
        assert!(ended.get().is_some(), "it is still there");
        assert_eq!(admin.identify(cns::CONTROLLER, 0).await.len(), 4096);
    });
    rig.finish();
}

/// Who closes a connection with unread bytes resets it, and the other may never read why. So a host
/// that goes on sending is read from until it has gone, but not for ever.
#[test]
fn a_host_is_told_why_whatever_it_sent_behind() {
    for stage in [Stage::Initialized, Stage::Io] {
        let rig = Rig::small(9);
        let (mut host, ended, admin) = pair(&rig);
        let env = rig.world.env(CoreId(0));
        let behind = vec![0xee; 100 << 10];
        rig.run(async move {
            match stage {
                Stage::Io => {
                    reach(&host, &admin, stage).await;
                    host.send(&[shortest(0x7f), behind.clone()].concat()).await.unwrap();
                    host.expect_fatal(Fatal::Field(0)).await;
                }
                _ => {
                    host.name = "nqn.2026-11.example:x".into();
                    host.initialize().await.unwrap();
                    let data = host.connect_data(ANY_CONTROLLER);
                    let connect = capsule(PLAIN, &host.connect_command(0, 32), &data);
                    host.send(&[connect, behind.clone()].concat()).await.unwrap();
                    let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
                    assert_eq!(done.status, Status::CONNECT_HOST);
                }
            }
            assert_eq!(ended.get(), None, "what comes is read");
            let rest = async move { while host.send(&behind).await.is_ok() {} };
            io::Env::spawn(&env, io::Priority::First, rest);
            io::Env::sleep(&env, Nanos::from_millis(1200)).await;
            assert!(ended.get().is_some(), "but not for ever");
        });
        rig.finish();
    }
}

#[test]
fn nothing_is_sent_behind_a_termination() {
    for seed in 0..40 {
        let rig = Rig::small(seed);
        let (io, _, admin) = pair(&rig);
        rig.run(async move {
            reach(&io, &admin, Stage::Io).await;
            let one = with(command(nvm::FLUSH, 1), 5, nvme::sgl::Sgl::Transport { length: 0 });
            let mut all = capsule(PLAIN, &one, &[]).repeat(30);
            all.extend(shortest(0x7f));
            io.send(&all).await.unwrap();
            while let Pdu::Done(_) = io.next_pdu().await.unwrap() {}
            assert!(io.next_pdu().await.is_err(), "seed {seed}");
        });
        rig.finish();
    }
}

/// A flush of all namespaces that can't come to one of them has not flushed it.
#[test]
fn a_flush_of_all_fails_if_one_does() {
    let rig = Rig::small(7);
    let (io, _, admin) = pair(&rig);
    let (shelf, target) = (rig.shelf.clone(), rig.target.clone());
    rig.run(async move {
        reach(&io, &admin, Stage::Io).await;
        io.expect(command(nvm::FLUSH, !0), Data::None, Status::SUCCESS).await;
        let one = shelf.0.borrow_mut().remove(0);
        target.resized(&1);
        io.expect(command(nvm::FLUSH, !0), Data::None, Status::NOT_READY).await;
        shelf.0.borrow_mut().push(one);
    });
    rig.finish();
}

/// A host looks once whether it has to flush; a volume that comes later may have a cache.
#[test]
fn controllers_with_namespaces_have_a_write_cache() {
    for (subsystem, cache) in [(crate::support::SUBSYSTEM, 0b111), (DISCOVERY, 0b100)] {
        let rig = Rig::small(8);
        let mut host = rig.host();
        host.subsystem = subsystem.into();
        rig.run(async move {
            host.enter().await;
            let c = host.identify(cns::CONTROLLER, 0).await;
            assert_eq!(c[525], cache);
            // Access is reported where there is something to have (Linux refuses other ones).
            assert_eq!(c[76] & 8 != 0, subsystem == crate::support::SUBSYSTEM);
        });
        rig.finish();
    }
}

/// Who stops finds connections that were accepted and are not served yet: these end too.
#[test]
fn a_connection_that_comes_as_all_end_ends_too() {
    let rig = Rig::small(10);
    let (_host, ended) = rig.connect(0, Default::default());
    rig.servers[0].close_all();
    rig.world.run_for(Nanos::from_millis(1));
    assert_eq!(ended.get(), Some(EndReason::Closed));
    rig.finish();
}
