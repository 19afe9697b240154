//! Hosts that have no right to anything: what they may hold of a core.
//!
//! Whoever comes to a port may exchange parameters, and may have a discovery controller. Neither
//! may keep those out who have a right.

use crate::support::Rig;
use crate::support::host::{Data, Host, Pdu, admin_command, log_page};
use nvme::command::admin;
use nvme::fabrics::{ANY_CONTROLLER, Wrong};
use nvme::identify::cns;
use nvme::log::page;
use nvme::nqn::DISCOVERY;
use nvme::status::Status;
use palisade_nvme_target::limits::{
    DISCOVERY_DATA, DISCOVERY_ENTRIES, DISCOVERY_KEEP_ALIVE, GUESTS, MEMORY,
};
use std::cell::Cell;
use std::rc::Rc;
use units::Nanos;

fn stranger(rig: &Rig) -> Host {
    let mut host = rig.host();
    host.subsystem = DISCOVERY.into();
    host.name = "nqn.2026-11.example:stranger".into();
    host
}

/// Linux asks for 32 entries (NVME_AQ_DEPTH).
#[test]
fn a_discovery_controllers_queue_is_short() {
    let rig = Rig::small(1);
    let (long, fits) = (stranger(&rig), stranger(&rig));
    rig.run(async move {
        let answer = async |host: &Host, entries| {
            host.initialize().await.unwrap();
            let data = host.connect_data(ANY_CONTROLLER);
            host.send_capsule(&host.connect_command(0, entries), &data).await.unwrap();
            match host.next_pdu().await.unwrap() {
                Pdu::Done(done) => (done.status, done.result),
                other => panic!("{other:?}"),
            }
        };
        let refused = (Status::CONNECT_PARAMETERS, Wrong::ENTRIES.result());
        assert_eq!(answer(&long, DISCOVERY_ENTRIES + 1).await, refused);
        assert_eq!(answer(&fits, DISCOVERY_ENTRIES).await, (Status::SUCCESS, 1));
    });
    rig.finish();
}

/// A stranger who reads no answers keeps no more memory than the answer to one command may have.
#[test]
fn a_discovery_controller_holds_little_memory() {
    let rig = Rig::new(2);
    let (host, other) = (stranger(&rig), stranger(&rig));
    let (env, server) = (rig.world.env(units::CoreId(0)), rig.servers[0].clone());
    rig.run(async move {
        host.enter().await;
        let most = host.identify(cns::CONTROLLER, 0).await[77];
        assert_eq!(4096 << most, DISCOVERY_DATA, "hosts are told");
        let page = |bytes| log_page(page::DISCOVERY, bytes, 0);
        let long = 2 * DISCOVERY_DATA;
        host.expect(page(long), Data::Out(long), Status::INVALID_FIELD).await;
        for _ in 0..DISCOVERY_ENTRIES - 1 {
            host.begin(page(DISCOVERY_DATA), &Data::Out(DISCOVERY_DATA)).await.unwrap();
        }
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        let held = server.memory_held();
        assert!((1..=DISCOVERY_DATA as usize).contains(&held), "{held} bytes are held");
        other.enter().await;
        assert_eq!(other.log(page::DISCOVERY, 1024).await.len(), 1024);
        // Who reads gets all.
        for _ in 0..DISCOVERY_ENTRIES - 1 {
            while !matches!(host.next_pdu().await.unwrap(), Pdu::Data { .. }) {}
        }
    });
    rig.finish();
}

#[test]
fn a_discovery_controller_of_a_silent_host_goes() {
    for wanted in [0, DISCOVERY_KEEP_ALIVE + 1, u32::MAX] {
        let rig = Rig::small(3);
        let (at_connect, later) = (stranger(&rig), stranger(&rig));
        let env = rig.world.env(units::CoreId(0));
        let server = rig.servers[0].clone();
        rig.run(async move {
            at_connect.initialize().await.unwrap();
            let mut connect = at_connect.connect_command(0, DISCOVERY_ENTRIES);
            connect.0[48..52].copy_from_slice(&wanted.to_le_bytes());
            let data = at_connect.connect_data(ANY_CONTROLLER);
            at_connect.send_capsule(&connect, &data).await.unwrap();
            later.enter().await;
            let set = |value| admin_command(admin::SET_FEATURES, 0, &[0xf, value]);
            later.expect(set(5000), Data::None, Status::SUCCESS).await;
            let most = wanted.min(DISCOVERY_KEEP_ALIVE + 1);
            later.expect(set(most), Data::None, Status::SUCCESS).await;
            let get = admin_command(admin::GET_FEATURES, 0, &[0xf]);
            let (now, _) = later.call(get, Data::None).await.unwrap();
            assert_eq!(now.result, u64::from(DISCOVERY_KEEP_ALIVE));
            assert_eq!(server.connections(), 2);
            let soon = u64::from(DISCOVERY_KEEP_ALIVE) + 1000;
            io::Env::sleep(&env, Nanos::from_millis(soon)).await;
            assert_eq!(server.connections(), 0, "asked for {wanted} ms");
        });
        rig.finish();
    }
}

/// However many strangers come and stay, those who have a right come in, and stay too.
#[test]
fn strangers_keep_nobody_out() {
    let rig = Rig::new(4);
    let (admin, io) = (Rc::new(rig.host()), Rc::new(rig.host()));
    let controller = Rc::new(Cell::new(0));
    let (own, queue, told) = (admin.clone(), io.clone(), controller.clone());
    rig.run(async move {
        told.set(own.enter().await);
        assert!(queue.join(1, told.get()).await.unwrap().status.is_success());
    });
    for at in 0..MEMORY.connections + 100 {
        let host = stranger(&rig);
        rig.run(async move {
            // Every other one asks what there is, and goes on listening.
            match at % 2 {
                0 => drop(host.enter().await),
                _ => drop(host.initialize().await.unwrap()),
            }
        });
    }
    // The last that had to go goes.
    rig.world.run_for(Nanos::from_millis(1));
    assert_eq!(rig.servers[0].connections(), 2 + GUESTS);
    let late = rig.host();
    rig.run(async move {
        assert!(late.join(2, controller.get()).await.unwrap().status.is_success());
        assert_eq!((io.read(0, 1).await.len(), late.read(0, 1).await.len()), (4096, 4096));
        assert_eq!(admin.identify(cns::CONTROLLER, 0).await.len(), 4096);
    });
    rig.finish();
}
