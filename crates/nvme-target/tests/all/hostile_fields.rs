//! What hosts can do wrong with commands, their fields, and the life of controllers.
//!
//! Invariant: a wrong field is answered by a status, once, and the queue goes on. Flaws that other
//! targets had are named at the tests that show that they can't be here. Of CVE-2026-23179, 64320,
//! 72130, 90230 and CVE-2025-57275 we know no more than the class that they are listed under.

use crate::support::host::{Data, Host, Pdu, admin_command, blocks, command, log_page};
use crate::support::raw::{PLAIN, STAGES, Stage, capsule, pair, reach, with};
use crate::support::{BLOCK, Rig, connected, export};
use io::Transport;
use nvme::command::{FABRICS, admin, nvm};
use nvme::fabrics::{ANY_CONTROLLER, CONNECT_DATA_BYTES, Connect, Property, Wrong, property};
use nvme::identify::cns;
use nvme::log::page;
use nvme::nqn::DISCOVERY;
use nvme::pdu::{Fatal, InitializeRequest, Kind};
use nvme::sgl::Sgl;
use nvme::status::Status;
use palisade_nvme_target::EndReason;
use sim::volume::Op;
use std::cell::Cell;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// Sends a Connect as it is; gives its status and result. The connection ends if it is refused.
fn connect(
    rig: &Rig,
    change: impl Fn(&mut Connect, &mut [u8; CONNECT_DATA_BYTES]) + 'static,
) -> (Status, u64) {
    let host = rig.host();
    let told = Rc::new(Cell::new(None));
    let done = told.clone();
    rig.run(async move {
        host.initialize().await.unwrap();
        let command = host.connect_command(0, 32);
        let (mut connect, mut data) =
            (Connect::decode(&command), host.connect_data(ANY_CONTROLLER));
        change(&mut connect, &mut data);
        let command = connect.encode(3, Sgl::InCapsule { offset: 0, length: 1024 });
        host.send_capsule(&command, &data).await.unwrap();
        let Pdu::Done(answer) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!(answer.id, 3);
        done.set(Some((answer.status, answer.result)));
        match answer.status.is_success() {
            true => host.end.close(),
            false => assert!(host.next_pdu().await.is_err(), "closed"),
        }
    });
    told.get().unwrap()
}

fn parameter(wrong: Wrong) -> (Status, u64) {
    (Status::CONNECT_PARAMETERS, wrong.result())
}

/// CVE-2023-6121: a name without an end in the data of a Connect was read on into what lay behind
/// it, and told to whoever looked.
#[test]
fn names_of_a_connect_without_an_end() {
    let rig = Rig::small(1);
    for (at, wrong) in [(256, Wrong::SUBSYSTEM), (512, Wrong::HOST)] {
        for byte in [b'n', 0xff, 0x01] {
            let refused = connect(&rig, move |_, data| data[at..at + 256].fill(byte));
            assert_eq!(refused, parameter(wrong));
        }
        let none = connect(&rig, move |_, data| data[at..at + 256].fill(0));
        assert_eq!(none, parameter(wrong));
        // Up to the last byte of the field, whatever lies behind it.
        let long = connect(&rig, move |_, data| {
            data[at..at + 12].copy_from_slice(b"nqn.2026-11.");
            data[at + 12..at + 255].fill(b'x');
            data[at + 255] = 0;
        });
        assert_eq!(long, parameter(wrong));
    }
    rig.finish();
}

#[test]
fn every_field_of_a_connect_wrong() {
    let rig = Rig::small(2);
    assert_eq!(connect(&rig, |c, _| c.format = 1), (Status::CONNECT_FORMAT, 0));
    assert_eq!(connect(&rig, |c, _| c.entries_less_one = 0), parameter(Wrong::ENTRIES));
    assert_eq!(connect(&rig, |c, _| c.entries_less_one = 1024), parameter(Wrong::ENTRIES));
    assert_eq!(connect(&rig, |c, _| c.entries_less_one = 0xffff), parameter(Wrong::ENTRIES));
    let (status, result) = parameter(Wrong::CONTROLLER);
    assert_eq!(connect(&rig, |c, _| c.queue = 1), (status.passing(), result));
    for id in [0, 1, 2, 1024, 1025, 0xfffe] {
        let to = move |d: &mut [u8; 1024]| d[16..18].copy_from_slice(&u16::to_le_bytes(id));
        assert_eq!(connect(&rig, move |_, d| to(d)), parameter(Wrong::CONTROLLER));
    }
    assert_eq!(connect(&rig, |c, _| c.attributes = 0xff).0, Status::SUCCESS);
    assert_eq!(connect(&rig, |c, _| c.keep_alive_ms = u32::MAX).0, Status::SUCCESS);
    rig.finish();
}

/// Commands before a Connect, and a Connect whose data is elsewhere than in its capsule.
/// CVE-2026-64320: Linux's target read behind the end of the discovery page before a host was
/// known, for an offset that it believed.
#[test]
fn nothing_is_answered_before_a_connect() {
    let offset = log_page(page::DISCOVERY, 4096, u64::MAX - 3);
    let commands = [
        offset,
        admin_command(admin::IDENTIFY, 0, &[1]),
        command(admin::KEEP_ALIVE, 0),
        Property { offset: property::CAPABILITIES, wide: true, value: 0 }.encode(0, false),
        command(FABRICS, 0x05),
    ];
    for command in commands {
        let rig = Rig::small(3);
        let (host, ended, _admin) = pair(&rig);
        rig.run(async move {
            host.initialize().await.unwrap();
            host.send(&capsule(PLAIN, &command, &[])).await.unwrap();
            let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
            assert_eq!(done.status, Status::SEQUENCE_ERROR);
            assert!(host.next_pdu().await.is_err());
        });
        rig.finish();
        assert_eq!(ended.get(), Some(EndReason::Refused(Status::SEQUENCE_ERROR)));
    }
    let rig = Rig::small(4);
    for (sgl, bytes, status) in [
        (Sgl::Transport { length: 1024 }, 0, Status::SGL_TYPE),
        (Sgl::InCapsule { offset: 0, length: 1024 }, 1020, Status::SGL_LENGTH),
        (Sgl::InCapsule { offset: 0, length: 2048 }, 2048, Status::SGL_LENGTH),
        (Sgl::InCapsule { offset: 8, length: 1024 }, 1024, Status::SGL_OFFSET),
        (Sgl::Other(0), 1024, Status::SGL_TYPE),
    ] {
        let host = rig.host();
        rig.run(async move {
            host.initialize().await.unwrap();
            let command = with(host.connect_command(0, 32), 3, sgl);
            host.send(&capsule(PLAIN, &command, &vec![0; bytes])).await.unwrap();
            let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
            assert_eq!(done.status, status, "{sgl:?}");
        });
    }
    rig.finish();
}

/// The other half of CVE-2026-64320: offsets into every page there is, of discovery and of others.
#[test]
fn offsets_of_log_pages_are_not_believed() {
    for subsystem in [crate::support::SUBSYSTEM, DISCOVERY] {
        let rig = Rig::small(5);
        let mut host = rig.host();
        host.subsystem = subsystem.into();
        rig.run(async move {
            host.enter().await;
            for id in 0..=u8::MAX {
                for offset in [1, 2, 1 << 20, 1 << 32, (1 << 63) - 4, u64::MAX - 3, u64::MAX] {
                    let wanted = log_page(id, 512, offset);
                    let (done, data) = host.call(wanted, Data::Out(512)).await.unwrap();
                    assert!(!done.status.is_success() && data.is_empty(), "{id} {offset}");
                }
            }
            let whole = if subsystem == DISCOVERY { page::DISCOVERY } else { page::EFFECTS };
            let length = if subsystem == DISCOVERY { 2048 } else { 4096 };
            let last = log_page(whole, 8, length - 4);
            let data = host.expect(last, Data::Out(8), Status::SUCCESS).await;
            assert_eq!(data[4..], [0; 4], "behind its end there is nothing");
            let mut by_index = log_page(whole, 8, 0);
            by_index.0[58] |= 0x80;
            host.expect(by_index, Data::Out(8), Status::INVALID_FIELD).await;
        });
        rig.finish();
    }
}

/// CVE-2026-72130, CVE-2026-90230: messages of authentication whose lengths were believed. We don't
/// offer authentication: its commands are refused at any time, with data or without.
#[test]
fn messages_of_authentication_are_refused() {
    for stage in [Stage::Initialized, Stage::Admin, Stage::Io] {
        for kind in [0x05, 0x06] {
            let rig = Rig::small(6);
            let (host, _, admin) = pair(&rig);
            rig.run(async move {
                reach(&host, &admin, stage).await;
                let status = match stage {
                    Stage::Initialized => Status::SEQUENCE_ERROR,
                    _ => Status::INVALID_OPCODE,
                };
                let refused = |done: Pdu| match done {
                    Pdu::Done(done) => assert_eq!((done.id, done.status), (9, status)),
                    other => panic!("{other:?}"),
                };
                let mut message = command(FABRICS, kind);
                message.0[40..48].fill(0xff);
                let inside = with(message.clone(), 9, Sgl::InCapsule { offset: 0, length: 16 });
                host.send(&capsule(PLAIN, &inside, &[0xff; 16])).await.unwrap();
                refused(host.next_pdu().await.unwrap());
                if stage != Stage::Initialized {
                    let far = with(message, 9, Sgl::Transport { length: u32::MAX });
                    host.send(&capsule(PLAIN, &far, &[])).await.unwrap();
                    refused(host.next_pdu().await.unwrap());
                }
            });
            rig.finish();
        }
    }
}

/// CVE-2025-57275: SPDK's target fell over commands of reservations. They are not offered, and
/// refused.
#[test]
fn reservations_are_refused() {
    let rig = Rig::small(7);
    let (host, _, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let c = admin.identify(cns::CONTROLLER, 0).await;
        assert_eq!((c[520] & 1 << 5, admin.identify(cns::NAMESPACE, 1).await[31]), (0, 0));
        for opcode in [0x0d, 0x0e, 0x11, 0x15] {
            for data in [Data::None, Data::Out(4096), Data::Capsule(&[0xff; 16])] {
                host.expect(command(opcode, 1), data, Status::INVALID_OPCODE).await;
            }
            host.expect(command(opcode, 0), Data::None, Status::INVALID_NAMESPACE).await;
        }
    });
    assert!(rig.volume().log().is_empty());
    rig.finish();
}

/// Every opcode with dwords of ones, of zeros and at random: one answer each, and the queue lives.
#[test]
fn every_opcode_with_every_field_wrong() {
    let rig = Rig::small(8);
    let (host, _, admin) = pair(&rig);
    let env = rig.world.env(CoreId(0));
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        for round in 0..6 {
            for opcode in 0..=u8::MAX {
                for (queue, is_io) in [(&host, true), (&admin, false)] {
                    let skipped = if is_io { 0xff } else { admin::ASYNC_EVENT_REQUEST };
                    if opcode == skipped || opcode == FABRICS {
                        continue;
                    }
                    let mut command = command(opcode, 1);
                    let fill = |at: usize| match round {
                        0 => 0xff,
                        1 => 0,
                        _ => (io::Env::random(&env) >> (at % 8)) as u8,
                    };
                    (40..64).for_each(|at| command.0[at] = fill(at));
                    if !is_io && opcode == admin::SET_FEATURES && command.0[40] == 0x0f {
                        continue;
                    }
                    let data = if round % 2 == 0 { Data::None } else { Data::Out(4) };
                    queue.call(command, data).await.unwrap();
                }
            }
        }
        assert_eq!(host.call(blocks(nvm::READ, 0, 1), Data::Out(512)).await.unwrap().1.len(), 512);
    });
    rig.finish();
}

#[test]
fn properties_with_wrong_fields() {
    let rig = Rig::small(9);
    let (host, _, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let ask = async |queue: &Host, offset, wide, set| {
            let property = Property { offset, wide, value: u64::MAX };
            queue.call(property.encode(0, set), Data::None).await.unwrap().0.status
        };
        for offset in (0..0x80).chain([0xfff, 0x1000, u32::MAX]) {
            for wide in [false, true] {
                let there =
                    matches!((offset, wide), (0x00, true) | (0x08 | 0x14 | 0x1c | 0x68, false));
                let status = if there { Status::SUCCESS } else { Status::INVALID_FIELD };
                assert_eq!(ask(&admin, offset, wide, false).await, status, "{offset:#x}");
                if (offset, wide) != (0x14, false) {
                    assert_eq!(ask(&admin, offset, wide, true).await, Status::INVALID_FIELD);
                }
                // They are the admin queue's.
                assert_eq!(ask(&host, offset, wide, true).await, Status::INVALID_OPCODE);
            }
        }
        let mut size = Property { offset: 0, wide: true, value: 0 }.encode(0, false);
        size.0[40] = 7;
        admin.expect(size, Data::None, Status::INVALID_FIELD).await;
    });
    rig.finish();
}

#[test]
fn features_with_wrong_fields() {
    let rig = Rig::small(10);
    let (host, _, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let set = |id, value| admin_command(admin::SET_FEATURES, 0, &[id, value]);
        let refused = async |command, status| {
            admin.expect(command, Data::None, status).await;
        };
        refused(set(7, 0xffff), Status::INVALID_FIELD).await;
        refused(set(7, 0xffff << 16), Status::INVALID_FIELD).await;
        refused(set(7, u32::MAX), Status::INVALID_FIELD).await;
        refused(set(7, 0xfffe_fffe), Status::SUCCESS).await;
        refused(set(0x0f, u32::MAX), Status::KEEP_ALIVE_INVALID).await;
        refused(set(0x81, 0), Status::SEQUENCE_ERROR).await;
        refused(set(0, 0), Status::INVALID_FIELD).await;
        let narrow = admin_command(admin::GET_FEATURES, 0, &[0x81, 0]);
        admin.expect(narrow, Data::Out(16), Status::INVALID_FIELD).await;
        let id = admin_command(admin::GET_FEATURES, 0, &[0x81, 1]);
        admin.expect(id, Data::Out(8), Status::SGL_LENGTH).await;
    });
    rig.finish();
}

/// CVE-2025-21850: a namespace was taken away while commands for it were in progress, and its
/// counter of these was used after it had gone. CVE-2022-48697: the namespace was used after the
/// completion of the last of them.
#[test]
fn a_namespace_goes_while_it_is_used() {
    let rig = Rig::new(11);
    let (host, _, admin) = pair(&rig);
    let (volume, target) = (rig.volume(), rig.target.clone());
    rig.shelf.0.borrow_mut().push((2, sim::volume::MemoryVolume::new(1 << 20, 512)));
    target.add("two", export(2, 2)).unwrap();
    let (shelf, env) = (rig.shelf.clone(), rig.world.env(CoreId(0)));
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        volume.hold(Some(0));
        let write = blocks(nvm::WRITE, 0, 1);
        let id = host.begin(write.clone(), &Data::Capsule(&[6; BLOCK])).await.unwrap();
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        // Asked for, and not there yet when the namespace goes.
        let ready = crate::support::raw::ask(&host, 9, &[7; BLOCK]).await;
        assert!(target.remove("one"));
        shelf.0.borrow_mut().remove(0);
        host.expect(write, Data::Capsule(&[8; BLOCK]), Status::INVALID_NAMESPACE).await;
        volume.hold(None);
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((done.id, done.status), (id, Status::SUCCESS));
        host.send_data(&ready, &[7; BLOCK], true).await.unwrap();
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((done.id, done.status), (ready.command, Status::INVALID_NAMESPACE));
        // What had reached the volume was carried out, what had not was not.
        assert_eq!(volume.bytes_at(0, 1), [6]);
        assert_ne!(volume.bytes_at(9 * BLOCK, 1), [7]);
        shelf.0.borrow_mut().insert(0, (1, volume));
    });
    rig.finish();
}

/// CVE-2023-5178: a queue whose begin failed was released twice. CVE-2024-46737: the same where no
/// memory was left for its commands. CVE-2025-38035: a connection that ended before it was set up
/// had its old callback put back, which was none. CVE-2021-47041, CVE-2026-23179, CVE-2026-46135:
/// it ended just as its begin was worked on, and the one went on with what the other had released
/// or was waited for without end.
#[test]
fn connections_that_end_as_they_begin() {
    let request = InitializeRequest::default();
    let wrong = InitializeRequest { version: 9, ..request };
    let begins: [Vec<u8>; 5] = [
        Vec::new(),
        vec![Kind::InitializeRequest as u8],
        request.encode().to_vec(),
        [request.encode(), request.encode()].concat(),
        wrong.encode().to_vec(),
    ];
    for seed in 0..20 {
        let rig = Rig::small(seed);
        let ends: Vec<_> = begins
            .iter()
            .cloned()
            .map(|begin| {
                let (end, ended) = rig.connect(0, Default::default());
                let env = rig.world.env(CoreId(0));
                let random = io::Env::random(&env);
                io::Env::spawn(&env.clone(), io::Priority::First, async move {
                    let host = Host::new(end);
                    let _ = host.send(&begin).await;
                    if random % 2 == 0 {
                        io::Env::sleep(&env, Nanos(random % 3)).await;
                    }
                    host.end.close();
                });
                ended
            })
            .collect();
        rig.world.run_for(Nanos::from_millis(1));
        assert!(ends.iter().all(|end| end.get().is_some()), "all have ended");
        assert_eq!(rig.servers[0].connections(), 0);
        rig.finish();
    }
    // No room for one more: those that are there go on, and one that ends makes room.
    let rig = Rig::small(21);
    let mut there: Vec<_> = (0..16).map(|_| rig.connect(0, Default::default())).collect();
    rig.world.run_for(Nanos::from_millis(1));
    let (_, ended) = rig.connect(0, Default::default());
    rig.world.run_for(Nanos::from_millis(1));
    assert_eq!(ended.get(), Some(EndReason::Full));
    there.remove(3).0.close();
    let host = rig.host();
    rig.run(async move { assert_eq!(host.enter().await, 1) });
    rig.finish();
}

/// CVE-2024-42152: a controller was left for ever if its admin queue's connection ended while its
/// Connect was worked on.
#[test]
fn a_controller_goes_if_its_host_does_while_it_connects() {
    for seed in 0..40 {
        let rig = Rig::small(seed);
        let (host, ended, admin) = pair(&rig);
        let queue = (seed % 2) as u16;
        let env = rig.world.env(CoreId(0));
        rig.run(async move {
            let id = match queue {
                0 => ANY_CONTROLLER,
                _ => admin.enter().await,
            };
            host.initialize().await.unwrap();
            let (command, data) = (host.connect_command(queue, 32), host.connect_data(id));
            host.send_capsule(&command, &data).await.unwrap();
            io::Env::sleep(&env, Nanos(seed % 3)).await;
            host.end.close();
        });
        rig.world.run_for(Nanos::from_millis(1));
        assert!(ended.get().is_some());
        let left: Vec<_> = connected(&rig.target, "one").iter().map(|c| c.queues).collect();
        assert_eq!(left, if queue == 0 { vec![] } else { vec![1] });
        rig.finish();
    }
}

/// What no queue of a host's has taken is not there for another's.
#[test]
fn every_stage_ends_if_the_server_does() {
    for stage in STAGES {
        let rig = Rig::small(22);
        let (host, ended, admin) = pair(&rig);
        rig.run(async move { reach(&host, &admin, stage).await });
        rig.finish();
        assert_eq!(ended.get(), Some(EndReason::Closed), "{stage:?}");
    }
}

/// A Disconnect ends its I/O queue after what came before it; an admin queue has none.
#[test]
fn a_disconnect_ends_an_io_queue_only() {
    let rig = Rig::new(23);
    let (host, ended, admin) = pair(&rig);
    let volume = rig.volume();
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        admin.expect(command(FABRICS, 0x08), Data::None, Status::INVALID_OPCODE).await;
        let id = host.begin(blocks(nvm::WRITE, 1, 1), &Data::Capsule(&[9; BLOCK])).await.unwrap();
        let last = host.begin(command(FABRICS, 0x08), &Data::None).await.unwrap();
        let _ = host.begin(command(nvm::FLUSH, 1), &Data::None).await;
        let mut done = Vec::new();
        while let Ok(Pdu::Done(one)) = host.next_pdu().await {
            assert_eq!(one.status, Status::SUCCESS);
            done.push(one.id);
        }
        done.sort_unstable();
        assert_eq!(done, [id, last]);
        assert_eq!(volume.log(), [Op::Write(BLOCK as u64, BLOCK, false)]);
        assert_eq!(admin.identify(cns::CONTROLLER, 0).await.len(), 4096);
    });
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Disconnected));
}

/// Requests for events are a few; one more is refused, and a second Connect is a mistake.
#[test]
fn commands_that_can_not_be_repeated() {
    let rig = Rig::small(24);
    let (host, ended, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        for _ in 0..4 {
            admin.begin(command(admin::ASYNC_EVENT_REQUEST, 0), &Data::None).await.unwrap();
        }
        for _ in 0..100 {
            let more = command(admin::ASYNC_EVENT_REQUEST, 0);
            admin.expect(more, Data::None, Status::ASYNC_EVENT_LIMIT).await;
        }
        for queue in [&host, &admin] {
            let (command, data) = (queue.connect_command(0, 32), queue.connect_data(1));
            queue.send_capsule(&command, &data).await.unwrap();
            let Pdu::Done(done) = queue.next_pdu().await.unwrap() else { panic!() };
            assert_eq!(done.status, Status::SEQUENCE_ERROR);
        }
        let request = InitializeRequest::default();
        host.send(&request.encode()).await.unwrap();
        host.expect_fatal(Fatal::Sequence).await;
    });
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Fatal(Fatal::Sequence)));
}
