//! How hosts come in, and what controllers say of themselves.

use crate::support::host::{Data, Host, Pdu, admin_command, blocks, command, log_page};
use crate::support::{BLOCK, HOST, PORT, Rig, SUBSYSTEM, connected, export, nqn};
use nvme::command::{admin, nvm};
use nvme::fabrics::{ANY_CONTROLLER, Wrong, property};
use nvme::identify::cns;
use nvme::log::page;
use nvme::nqn::DISCOVERY;
use nvme::status::Status;
use palisade_nvme_target::access::{Hosts, Port, PortId};
use palisade_nvme_target::{Absent, EndReason, Export, Health};
use std::collections::BTreeSet;
use units::Nanos;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_controller_says_what_it_is() {
    let rig = Rig::new(1);
    let host = rig.host();
    rig.run(async move {
        let id = host.enter().await;
        assert_eq!(host.property(property::VERSION, false).await, 0x2_0000);
        let capabilities = host.property(property::CAPABILITIES, true).await;
        assert_eq!((capabilities & 0xffff, capabilities >> 37 & 0xff), (1023, 1));
        // Ready means with media, and may take as long as one property says and the other.
        assert_eq!((capabilities >> 59 & 3, capabilities >> 24 & 0xff), (1, 30));
        assert_eq!(host.property(property::READY_TIMEOUTS, false).await, 30);
        assert_eq!(host.property(property::STATUS, false).await, 1);
        let c = host.identify(cns::CONTROLLER, 0).await;
        assert_eq!((u16::from_le_bytes([c[78], c[79]]), c[77], c[111]), (id, 8, 1));
        assert_eq!((&c[24..32], u32_at(&c, 516), u32_at(&c, 1792)), (&b"Palisade"[..], 1024, 1028));
        assert_eq!(&c[4..7], b"PAL");
        let n = host.identify(cns::NAMESPACE, 1).await;
        assert_eq!((u64_at(&n, 0), n[130], &n[104..120]), (2048, 12, &[1; 16][..]));
        // Strips of 64 KiB, stripes of 192, blocks of 4: our strip and stripe are told. Stripes are
        // no power of two, so no border is.
        assert_eq!((n[64], n[72], n[46]), (15, 47, 0));
        let d = host.identify(cns::NAMESPACE_DESCRIPTORS, 1).await;
        assert_eq!((d[0], d[4], d[20], d[24]), (2, 1, 3, 0x81));
        assert_eq!(u32_at(&host.identify(cns::ACTIVE_NAMESPACES, 0).await, 0), 1);
        assert_eq!(u32_at(&host.identify(cns::ACTIVE_NAMESPACES, 1).await, 0), 0);
        assert_eq!(host.identify(cns::NAMESPACE, 9).await, vec![0; 4096]);
        assert_eq!(host.identify(cns::CONTROLLERS, 0).await[..4], [1, 0, id as u8, 0]);
        for set in [cns::NAMESPACE_OF_SET, cns::CONTROLLER_OF_SET] {
            assert_eq!(host.identify(set, 1).await, vec![0; 4096]);
        }
        assert_eq!(host.identify(cns::NAMESPACE_INDEPENDENT, 1).await[14], 1);
        let unknown = admin_command(admin::IDENTIFY, 0, &[0x7e]);
        host.expect(unknown, Data::Out(4096), Status::INVALID_FIELD).await;
        let absent = admin_command(admin::IDENTIFY, 9, &[3]);
        host.expect(absent, Data::Out(4096), Status::INVALID_NAMESPACE).await;
    });
    rig.finish();
}

#[test]
fn log_pages_are_given_whole_and_in_parts() {
    let rig = Rig::new(2);
    let host = rig.host();
    let health = rig.shelf.1.clone();
    rig.run(async move {
        host.enter().await;
        assert_eq!(host.log(page::HEALTH, 512).await[0], 0);
        health.set(Health { is_degraded: true, media_errors: 3 });
        let degraded = host.log(page::HEALTH, 512).await;
        assert_eq!((degraded[0], degraded[160]), (0b101, 3));
        assert_eq!(host.log(page::FIRMWARE, 512).await[8..13], *b"0.1.0");
        let effects = host.log(page::EFFECTS, 4096).await;
        assert_eq!((effects[4 * 6], effects[1024 + 4], effects[1024 + 8]), (1, 3, 1));
        let supported = host.log(page::SUPPORTED, 1024).await;
        assert_eq!((supported[0], supported[8], supported[4 * 0x70]), (1, 1, 0));
        let ana = host.log(page::ANA, 56).await;
        assert_eq!((ana[8], u32_at(&ana, 16), ana[32], u32_at(&ana, 48)), (1, 1, 1, 1));
        let part = log_page(page::EFFECTS, 8, 1024 + 4);
        assert_eq!(host.expect(part, Data::Out(8), Status::SUCCESS).await[..5], [3, 0, 0, 0, 1]);
        let unknown = log_page(0xd0, 512, 0);
        host.expect(unknown, Data::Out(512), Status::INVALID_LOG_PAGE).await;
        let long = log_page(page::ERRORS, 2 << 20, 0);
        host.expect(long, Data::Out(2 << 20), Status::INVALID_FIELD).await;
    });
    rig.finish();
}

#[test]
fn features_are_read_and_what_may_be_is_set() {
    let rig = Rig::new(3);
    let host = rig.host();
    rig.run(async move {
        host.enter().await;
        let get = |id: u32| admin_command(admin::GET_FEATURES, 0, &[id]);
        let set = |id: u32, value: u32| admin_command(admin::SET_FEATURES, 0, &[id, value]);
        let value = async |command| {
            let (done, _) = host.call(command, Data::None).await.unwrap();
            assert_eq!(done.status, Status::SUCCESS);
            done.result
        };
        assert_eq!(value(set(7, 3 << 16 | 5)).await, 3 << 16 | 3);
        assert_eq!(value(get(7)).await, 3 << 16 | 3);
        assert_eq!(value(set(7, 999 << 16 | 999)).await, 127 << 16 | 127);
        assert_eq!((value(get(0xb)).await, value(set(0xb, 0)).await), (0x10_0900, 0));
        assert_eq!(value(get(0xb)).await, 0);
        // The default, what is saved (nothing), and whether it can be changed: the controller says
        // that all of that can be asked for (ONCS, bit 4).
        let identify = admin_command(admin::IDENTIFY, 0, &[1]);
        let controller = host.expect(identify, Data::Out(4096), Status::SUCCESS).await;
        assert_eq!(controller[520] >> 4 & 1, 1);
        let of = |select: u32, id| value(get(select << 8 | id));
        assert_eq!((of(1, 7).await, of(2, 7).await), (127 << 16 | 127, 127 << 16 | 127));
        assert_eq!((of(3, 7).await, of(3, 6).await, of(3, 0x81).await), (4, 0, 0));
        for reserved in 4..8 {
            for id in [7, 0x81] {
                let get = get(reserved << 8 | id);
                host.expect(get, Data::None, Status::INVALID_FIELD).await;
            }
        }
        let id = admin_command(admin::GET_FEATURES, 0, &[0x81, 1]);
        assert_eq!(host.expect(id, Data::Out(16), Status::SUCCESS).await, [5; 16]);
        // Its volume has no volatile cache, but the next could.
        assert_eq!((value(get(6)).await, value(set(6, 1)).await), (1, 0));
        host.expect(set(6, 0), Data::None, Status::FEATURE_NOT_CHANGEABLE).await;
        host.expect(get(0xc0), Data::None, Status::INVALID_FIELD).await;
        host.expect(set(1, 1), Data::None, Status::FEATURE_NOT_CHANGEABLE).await;
        let save = set(7 | 1 << 31, 1);
        host.expect(save, Data::None, Status::FEATURE_NOT_SAVEABLE).await;
        host.expect(command(admin::KEEP_ALIVE, 0), Data::None, Status::SUCCESS).await;
        let (abort, _) = host.call(command(admin::ABORT, 0), Data::None).await.unwrap();
        assert_eq!((abort.status, abort.result), (Status::SUCCESS, 1));
        host.expect(command(0x0d, 0), Data::None, Status::INVALID_OPCODE).await;
    });
    rig.finish();
}

/// SPDK's `perf` gives no name unless it is told one. Linux's target and SPDK's take that where any
/// host may come, and so do we; a list of names has nobody without one in it.
#[test]
fn a_host_without_a_name_finds_what_any_host_may_have() {
    let rig = Rig::new(18);
    let nameless = |subsystem: &str| {
        let mut host = rig.host();
        (host.name, host.subsystem) = (String::new(), subsystem.into());
        host
    };
    let open = "nqn.2026-11.example:open";
    let invalid = (Status::CONNECT_PARAMETERS, Wrong::HOST.result());
    let (named, discovery, none) = (nameless(SUBSYSTEM), nameless(DISCOVERY), nameless(open));
    let target = rig.target.clone();
    rig.run(async move {
        // The discovery service answers by the host's name: without one there is no answer.
        for host in [named, discovery] {
            let done = host.join(0, ANY_CONTROLLER).await.unwrap();
            assert_eq!((done.status, done.result), invalid);
        }
        let visits = target.visits();
        assert_eq!(visits.turned_away, 1, "the discovery service is no subsystem with exports");
        assert_eq!(visits.hosts.len(), 0);
        let done = none.join(0, ANY_CONTROLLER).await.unwrap();
        assert_eq!(done.result, Wrong::SUBSYSTEM.result());
    });
    let any = |nsid, subsystem: &str| {
        let subsystem = nqn(subsystem);
        Export { subsystem, hosts: Hosts::Any, ..export(nsid, 1) }
    };
    rig.target.add("open", any(1, open)).unwrap();
    rig.target.add("second", any(2, SUBSYSTEM)).unwrap();
    let (admin, io, own) = (nameless(open), nameless(open), rig.host());
    let (both, to_own, to_nameless) = (nameless(SUBSYSTEM), nameless(SUBSYSTEM), rig.host());
    let target = rig.target.clone();
    rig.run(async move {
        let id = admin.enter().await;
        assert_eq!(io.join(1, id).await.unwrap().status, Status::SUCCESS);
        assert_eq!(io.read(0, 1).await.len(), BLOCK);
        let found = connected(&target, "open");
        assert_eq!((found.len(), found[0].host.as_str()), (1, ""));
        // Of a subsystem that has both it finds the one namespace.
        let id = both.enter().await;
        let list = both.identify(cns::ACTIVE_NAMESPACES, 0).await;
        assert_eq!((u32_at(&list, 0), u32_at(&list, 4)), (2, 0));
        assert_eq!(connected(&target, "one"), []);
        // It is nobody else, and nobody else is it.
        let own = own.enter().await;
        let wrong = [to_own.join(1, own).await.unwrap(), to_nameless.join(1, id).await.unwrap()];
        assert_eq!(wrong.map(|done| done.result), [Wrong::HOST.result(); 2]);
        // What is only for some any more is taken away.
        target.add("open", Export { subsystem: nqn(open), ..export(1, 1) }).unwrap();
        assert!(admin.next_pdu().await.is_err() && io.next_pdu().await.is_err());
    });
    rig.finish();
}

/// It is told to come again where what any host may have may still come.
#[test]
fn a_host_without_a_name_comes_again_after_a_restart() {
    let rig = Rig::starting(19);
    let join = |status: Status, wrong: Wrong| {
        let mut host = rig.host();
        host.name = String::new();
        rig.run(async move {
            let done = host.join(0, ANY_CONTROLLER).await.unwrap();
            assert_eq!((done.status, done.result), (status, wrong.result()));
        });
    };
    join(Status::CONNECT_PARAMETERS.passing(), Wrong::SUBSYSTEM);
    rig.target.add("one", export(1, 1)).unwrap();
    join(Status::CONNECT_PARAMETERS.passing(), Wrong::HOST);
    let absent = |hosts| Absent { subsystem: nqn(SUBSYSTEM), nsid: 2, hosts };
    rig.target.set_absent([absent(Hosts::Any)]);
    rig.target.settle();
    join(Status::CONNECT_PARAMETERS.passing(), Wrong::SUBSYSTEM);
    rig.target.set_absent([absent(export(1, 1).hosts)]);
    join(Status::CONNECT_PARAMETERS, Wrong::HOST);
    rig.finish();
}

#[test]
fn who_is_not_named_does_not_come_in() {
    let rig = Rig::new(4);
    let refused = |change: fn(&mut Host), queue, controller| {
        let mut host = rig.host();
        change(&mut host);
        let done = std::rc::Rc::new(std::cell::Cell::new(None));
        let told = done.clone();
        rig.run(async move {
            told.set(Some(host.join(queue, controller).await.unwrap()));
            assert!(host.next_pdu().await.is_err(), "closed");
        });
        let done = done.get().unwrap();
        (done.status, done.result)
    };
    let parameter = |which: Wrong| (Status::CONNECT_PARAMETERS, which.result());
    let any = ANY_CONTROLLER;
    assert_eq!(
        refused(|host| host.name = "nqn.2026-11.example:x".into(), 0, any),
        (Status::CONNECT_HOST, 0)
    );
    assert_eq!(
        refused(|host| host.subsystem = "nqn.2026-11.example:none".into(), 0, any),
        parameter(Wrong::SUBSYSTEM)
    );
    assert_eq!(refused(|_| (), 0, 7), parameter(Wrong::CONTROLLER));
    // It may be one that was here before a restart: the host is to begin anew.
    let (status, result) = parameter(Wrong::CONTROLLER);
    assert_eq!(refused(|_| (), 1, 7), (status.passing(), result));
    // At another port there is nothing.
    rig.target.set_port(PortId(2), Port { address: None, service: 4421 });
    let mut elsewhere = export(1, 1);
    elsewhere.ports = BTreeSet::from([PortId(2)]);
    elsewhere.hosts = Hosts::Any;
    rig.target.add("one", elsewhere).unwrap();
    assert_eq!(refused(|_| (), 0, any), parameter(Wrong::SUBSYSTEM));
    rig.finish();
}

#[test]
fn io_queues_are_of_a_controller_that_is_enabled_and_the_same_hosts() {
    let rig = Rig::new(5);
    let (admin, stranger, early, io, twin, far) =
        (rig.host(), rig.host(), rig.host(), rig.host(), rig.host(), rig.host());
    let mut stranger = stranger;
    stranger.host_id = [9; 16];
    let env = rig.world.env(units::CoreId(0));
    rig.run(async move {
        let id = admin.join(0, ANY_CONTROLLER).await.unwrap().result as u16;
        assert_eq!(early.join(1, id).await.unwrap().status, Status::SEQUENCE_ERROR);
        admin.set_property(property::CONFIGURATION, 0x46_0001).await;
        let wrong = stranger.join(1, id).await.unwrap();
        assert_eq!(wrong.result, Wrong::HOST.result());
        let four = admin_command(admin::SET_FEATURES, 0, &[7, 3 << 16 | 3]);
        admin.expect(four, Data::None, Status::SUCCESS).await;
        assert_eq!(far.join(5, id).await.unwrap().result, Wrong::QUEUE.result());
        assert_eq!(io.join(4, id).await.unwrap().status, Status::SUCCESS);
        assert_eq!(twin.join(4, id).await.unwrap().result, Wrong::QUEUE.result());
        assert_eq!(io.read(1, 1).await.len(), 4096);
        // Disabling ends the I/O queue; the admin queue goes on.
        admin.set_property(property::CONFIGURATION, 0x46_0000).await;
        assert!(io.next_pdu().await.is_err());
        while admin.property(property::STATUS, false).await != 0 {
            ::io::Env::sleep(&env, Nanos::from_millis(1)).await;
        }
    });
    rig.finish();
}

#[test]
fn discovery_shows_a_host_what_it_may_have() {
    let rig = Rig::new(6);
    let discovery = || {
        let mut host = rig.host();
        host.subsystem = DISCOVERY.into();
        host
    };
    let (own, mut other) = (discovery(), discovery());
    other.name = "nqn.2026-11.example:x".into();
    let target = rig.target.clone();
    rig.run(async move {
        own.enter().await;
        other.enter().await;
        // Linux takes a discovery controller with asymmetric access and no namespaces for broken.
        let c = own.identify(cns::CONTROLLER, 0).await;
        assert_eq!((c[111], c[76] & 8, c[343]), (2, 0, 0));
        let page = own.log(page::DISCOVERY, 2048).await;
        assert_eq!((u64_at(&page, 8), &page[1536..1546]), (1, &b"192.0.2.1 "[..]));
        assert_eq!(&page[1024 + 32..1024 + 37], b"4420 ");
        assert_eq!(&page[1280..1300], b"nqn.2026-11.example:");
        assert_eq!(u64_at(&other.log(page::DISCOVERY, 1024).await, 8), 0);
        // It offers neither Save nor Select, of what is there all the same.
        let get = |select: u32| admin_command(admin::GET_FEATURES, 0, &[select << 8 | 0xb]);
        own.expect(get(0), Data::None, Status::SUCCESS).await;
        own.expect(get(1), Data::None, Status::INVALID_FIELD).await;
        assert_eq!(c[520], 0);
        // Neither has namespaces.
        own.expect(blocks(nvm::READ, 0, 1), Data::Out(4096), Status::SGL_LENGTH).await;
        // A change is told to whom it concerns.
        let events = admin_command(admin::SET_FEATURES, 0, &[0xb, 1 << 31]);
        own.expect(events.clone(), Data::None, Status::SUCCESS).await;
        other.expect(events, Data::None, Status::SUCCESS).await;
        let asked = command(admin::ASYNC_EVENT_REQUEST, 0);
        let id = own.begin(asked.clone(), &Data::None).await.unwrap();
        other.begin(asked, &Data::None).await.unwrap();
        target.set_port(PORT, Port { address: Some("198.51.100.9".into()), service: 8009 });
        match own.next_pdu().await.unwrap() {
            Pdu::Done(done) => assert_eq!((done.id, done.result), (id, 0x70_f0_02)),
            other => panic!("{other:?}"),
        }
        let changed = own.log(page::DISCOVERY, 2048).await;
        assert!(u64_at(&changed, 0) > u64_at(&page, 0));
        assert_eq!((&changed[1536..1549], other.end.unread()), (&b"198.51.100.9 "[..], 0));
    });
    rig.finish();
}

#[test]
fn changes_of_namespaces_are_told_once_until_their_page_is_read() {
    let rig = Rig::new(7);
    let host = rig.host();
    let target = rig.target.clone();
    let same = rig.volume();
    rig.shelf.0.borrow_mut().push((2, same));
    rig.run(async move {
        host.enter().await;
        for _ in 0..4 {
            host.begin(command(admin::ASYNC_EVENT_REQUEST, 0), &Data::None).await.unwrap();
        }
        let fifth = command(admin::ASYNC_EVENT_REQUEST, 0);
        host.expect(fifth, Data::None, Status::ASYNC_EVENT_LIMIT).await;
        target.add("two", export(2, 2)).unwrap();
        let event = async || match host.next_pdu().await.unwrap() {
            Pdu::Done(done) => done.result,
            other => panic!("{other:?}"),
        };
        assert_eq!(event().await, 0x04_00_02);
        target.resized(&1);
        assert_eq!(host.log(page::HEALTH, 512).await.len(), 512, "no second event");
        let changed = host.log(page::CHANGED_NAMESPACES, 4096).await;
        assert_eq!((u32_at(&changed, 0), u32_at(&changed, 4), u32_at(&changed, 8)), (1, 2, 0));
        assert_eq!(u32_at(&host.log(page::CHANGED_NAMESPACES, 4096).await, 0), 0);
        target.resized(&2);
        assert_eq!(event().await, 0x04_00_02);
    });
    rig.finish();
}

#[test]
fn a_host_that_falls_silent_loses_its_controller() {
    let rig = Rig::new(8);
    let (admin, io) = (rig.host(), rig.host());
    let (env, target) = (rig.world.env(units::CoreId(0)), rig.target.clone());
    rig.run(async move {
        let id = admin.enter().await;
        let two = admin_command(admin::SET_FEATURES, 0, &[0xf, 2000]);
        admin.expect(two, Data::None, Status::SUCCESS).await;
        io.join(1, id).await.unwrap();
        // Traffic on any queue keeps it.
        for _ in 0..10 {
            io::Env::sleep(&env, Nanos::from_millis(1000)).await;
            io.read(0, 1).await;
        }
        assert_eq!(connected(&target, "one")[0].queues, 2);
        // Queues add what they did to their controller's counts with each tick.
        io::Env::sleep(&env, Nanos::from_millis(200)).await;
        let visits = target.visits();
        let export = visits.exports.iter().find(|of| of.export == "one").unwrap();
        assert_eq!((export.connections, export.connected), (1, 1));
        let [host] = &visits.hosts[..] else { panic!("one host: {visits:?}") };
        assert_eq!((host.connected, host.present.len(), host.present[0].queues), (1, 1, 2));
        assert_eq!((host.done.reads, host.done.read_bytes), (10, 10 * BLOCK as u64));
        assert!(io.next_pdu().await.is_err() && admin.next_pdu().await.is_err());
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        assert_eq!(connected(&target, "one"), []);
        let after = target.visits();
        assert_eq!((after.hosts[0].done, after.hosts[0].present.len()), (host.done, 0));
        assert_eq!(after.exports[0].connections, 0);
    });
    rig.finish();
}

#[test]
fn who_takes_too_long_to_come_in_is_sent_away() {
    let rig = Rig::new(9);
    let (silent, end) = rig.connect(0, Default::default());
    let (half, half_end) = rig.connect(1, Default::default());
    let half = Host::new(half);
    rig.run(async move {
        half.initialize().await.unwrap();
        assert!(half.next_pdu().await.is_err());
    });
    rig.world.run_for(Nanos::from_millis(200));
    assert_eq!((end.get(), half_end.get()), (Some(EndReason::Closed), Some(EndReason::Closed)));
    drop(silent);
    rig.finish();
}

/// Linux gives up for good where it is told not to try again.
#[test]
fn a_target_that_is_starting_asks_hosts_to_try_again() {
    let rig = Rig::starting(12);
    let connect = async |host: Host| host.join(0, ANY_CONTROLLER).await.unwrap().status;
    let (early, late, target) = (rig.host(), rig.host(), rig.target.clone());
    rig.run(async move {
        assert_eq!(connect(early).await, Status::CONNECT_PARAMETERS.passing());
        target.settle();
        assert_eq!(connect(late).await, Status::CONNECT_PARAMETERS);
    });
    rig.finish();
}

fn absent(nsid: u32) -> Absent {
    let Export { subsystem, hosts, .. } = export(nsid, 1);
    Absent { subsystem, nsid, hosts }
}

/// What a host does not find when it comes again it takes for gone: Linux removes it.
#[test]
fn a_target_that_is_starting_shows_a_subsystem_whole_or_not_at_all() {
    let rig = Rig::starting(14);
    let (early, second, whole, late) = (rig.host(), rig.host(), rig.host(), rig.host());
    let target = rig.target.clone();
    rig.run(async move {
        target.set_absent([absent(1), absent(2)]);
        let refused = early.join(0, ANY_CONTROLLER).await.unwrap();
        assert_eq!(refused.status, Status::CONNECT_PARAMETERS.passing());
        target.add("one", export(1, 1)).unwrap();
        let refused = second.join(0, ANY_CONTROLLER).await.unwrap();
        assert_eq!(refused.status, Status::CONNECT_PARAMETERS.passing());
        target.add("two", export(2, 1)).unwrap();
        assert_eq!(whole.join(0, ANY_CONTROLLER).await.unwrap().status, Status::SUCCESS);
        // What has not come by then keeps nobody from the rest.
        target.remove("two");
        target.settle();
        assert_eq!(late.join(0, ANY_CONTROLLER).await.unwrap().status, Status::SUCCESS);
    });
    rig.finish();
}

/// "Do not retry" is for what stays so: a host that is told it gives up, with what it has to write.
#[test]
fn a_target_that_ends_takes_nothing_from_hosts_that_are_there() {
    let rig = Rig::new(15);
    rig.target.add("two", export(2, 1)).unwrap();
    let (admin, io, late, joins) = (rig.host(), rig.host(), rig.host(), rig.host());
    let (mut page, mut looks) = (rig.host(), rig.host());
    (page.subsystem, looks.subsystem) = (DISCOVERY.into(), DISCOVERY.into());
    let target = rig.target.clone();
    rig.run(async move {
        let id = admin.enter().await;
        io.join(1, id).await.unwrap();
        page.enter().await;
        target.close();
        target.suspend("one");
        let ended = io.begin(blocks(nvm::READ, 0, 1), &Data::Out(4096)).await;
        assert!(ended.is_err() || io.next_pdu().await.is_err(), "no answer");
        let list = admin_command(admin::IDENTIFY, 0, &[2]);
        let ended = admin.begin(list, &Data::Out(4096)).await;
        assert!(ended.is_err() || admin.next_pdu().await.is_err(), "no answer");
        assert!(page.next_pdu().await.is_err(), "discovery ends, too");
        let all = [(late, 0, ANY_CONTROLLER), (looks, 0, ANY_CONTROLLER), (joins, 2, id)];
        for (host, queue, id) in all {
            let refused = host.join(queue, id).await.unwrap().status;
            assert_eq!(refused, Status::CONNECT_PARAMETERS.passing());
        }
    });
    rig.finish();
}

/// An array that is stopped may be started again: hosts that had a volume of it are to come again.
#[test]
fn what_may_come_back_is_asked_for_again() {
    let rig = Rig::new(13);
    let mut other = export(7, 1);
    (other.subsystem, other.hosts) = (nqn("nqn.2026-11.example:t"), Hosts::Any);
    rig.target.add("other", other).unwrap();
    let connect = async |host: Host| {
        let done = host.join(0, ANY_CONTROLLER).await.unwrap();
        (done.status, done.result)
    };
    let (own, stopped, started, deleted) = (rig.host(), rig.host(), rig.host(), rig.host());
    let (expected, forgotten) = (rig.host(), rig.host());
    let mut stranger = rig.host();
    stranger.name = "nqn.2026-11.example:x".into();
    let target = rig.target.clone();
    rig.run(async move {
        own.enter().await;
        assert!(target.suspend("one") && !target.suspend("one"));
        assert!(own.next_pdu().await.is_err(), "it is lost");
        let none = (Status::CONNECT_PARAMETERS, Wrong::SUBSYSTEM.result());
        assert_eq!(connect(stopped).await, (none.0.passing(), none.1));
        assert_eq!(connect(stranger).await, none);
        target.add("one", export(1, 1)).unwrap();
        assert_eq!(connect(started).await.0, Status::SUCCESS);
        target.suspend("one");
        target.forget("one");
        assert_eq!(connect(deleted).await, none);
        target.set_absent([absent(1)]);
        assert_eq!(connect(expected).await, (none.0.passing(), none.1));
        target.set_absent([]);
        assert_eq!(connect(forgotten).await, none);
    });
    rig.finish();
}

/// What a host has given up and sends again on a new connection is not carried out after it.
#[test]
fn a_host_that_comes_again_waits_for_what_it_left() {
    let rig = Rig::new(10);
    let (admin, io, again) = (rig.host(), rig.host(), rig.host());
    let volume = rig.volume();
    let env = rig.world.env(units::CoreId(0));
    rig.run(async move {
        let id = admin.enter().await;
        io.join(1, id).await.unwrap();
        volume.hold(Some(0));
        io.begin(blocks(nvm::WRITE, 0, 1), &Data::Capsule(&[1; 4096])).await.unwrap();
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        assert_eq!(volume.0.in_flight.get(), 1);
        io::Transport::close(&io.end);
        io::Transport::close(&admin.end);
        again.initialize().await.unwrap();
        let (command, data) = (again.connect_command(0, 32), again.connect_data(ANY_CONTROLLER));
        again.send_capsule(&command, &data).await.unwrap();
        io::Env::sleep(&env, Nanos::from_millis(1000)).await;
        assert_eq!(again.end.unread(), 0, "not before the write has ended");
        volume.hold(None);
        let Pdu::Done(done) = again.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((done.status, volume.bytes_at(0, 1)), (Status::SUCCESS, vec![1]));
    });
    rig.finish();
}

#[test]
fn names_in_the_list_of_hosts_are_whole_names() {
    let rig = Rig::new(11);
    let mut longer = rig.host();
    longer.name = format!("{HOST}2");
    rig.run(async move {
        let done = longer.join(0, ANY_CONTROLLER).await.unwrap();
        assert_eq!(done.status, Status::CONNECT_HOST);
    });
    assert_ne!(nqn(HOST), nqn("nqn.2026-11.example:H"));
    rig.finish();
}
