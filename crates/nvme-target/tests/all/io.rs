//! Commands of namespaces, from a host's bytes to a volume's and back.

use crate::support::host::{Data, Host, Pdu, blocks, command};
use crate::support::raw::{enter, with_io};
use crate::support::{BLOCK, Rig, export, fail};
use io::BlockError;
use nvme::command::{Command, nvm};
use nvme::fabrics::ANY_CONTROLLER;
use nvme::pdu::{Digests, flag};
use nvme::status::Status;
use sim::volume::Op;

/// Bytes that differ from what the volume has at first.
fn pattern(count: usize, seed: usize) -> Vec<u8> {
    (0..count * BLOCK).map(|at| (at * 7 + seed) as u8).collect()
}

fn fua(mut c: Command) -> Command {
    c.0[51] |= 0x40;
    c
}

#[test]
fn what_is_written_is_read_in_every_form() {
    let digests = [(false, false), (true, true), (true, false), (false, true)];
    for (seed, (header, data)) in digests.into_iter().enumerate() {
        for (attributes, alignment) in [(4, 0), (0, 31), (0, 0), (4, 3)] {
            let rig = Rig::new(seed as u64);
            let (admin, io) = with_io(&rig, |host| {
                host.digests = Digests { header, data };
                (host.attributes, host.alignment) = (attributes, alignment);
            });
            rig.run(async move {
                enter(&admin, &io).await;
                let (one, many) = (pattern(1, 3), pattern(200, 5));
                io.expect(blocks(nvm::WRITE, 9, 1), Data::Capsule(&one), Status::SUCCESS).await;
                io.expect(blocks(nvm::WRITE, 10, 200), Data::In(&many), Status::SUCCESS).await;
                io.expect(fua(blocks(nvm::WRITE, 300, 1)), Data::In(&one), Status::SUCCESS).await;
                assert!(io.read(9, 1).await == one && io.read(300, 1).await == one);
                assert!(io.read(10, 200).await == many);
                io.expect(command(nvm::FLUSH, 1), Data::None, Status::SUCCESS).await;
                io.expect(command(nvm::FLUSH, !0), Data::None, Status::SUCCESS).await;
            });
            let log = rig.volume().log();
            assert_eq!(log[0], Op::Write(9 * 4096, 4096, false));
            assert_eq!(log[2], Op::Write(300 * 4096, 4096, true));
            assert_eq!(log[log.len() - 2..], [Op::Flush, Op::Flush]);
            rig.finish();
        }
    }
}

#[test]
fn completions_say_how_far_the_queue_was_taken() {
    let rig = Rig::new(1);
    let (admin, io) = with_io(&rig, |host| host.attributes = 0);
    rig.run(async move {
        enter(&admin, &io).await;
        // The Connect was the first.
        for head in [2, 3, 4] {
            let (done, _) = io.call(command(nvm::FLUSH, 1), Data::None).await.unwrap();
            assert_eq!(done.sq_head, head);
        }
    });
    rig.finish();
}

#[test]
fn zeroes_discards_compare_and_verify() {
    let rig = Rig::new(2);
    let (admin, io) = with_io(&rig, |_| ());
    rig.run(async move {
        enter(&admin, &io).await;
        let all = pattern(100, 1);
        io.expect(blocks(nvm::WRITE, 0, 100), Data::In(&all), Status::SUCCESS).await;
        io.expect(blocks(nvm::COMPARE, 0, 100), Data::In(&all), Status::SUCCESS).await;
        let mut other = all.clone();
        other[99 * BLOCK + 7] ^= 1;
        let compare = blocks(nvm::COMPARE, 0, 100);
        io.expect(compare, Data::In(&other), Status::COMPARE_FAILURE).await;
        io.expect(blocks(nvm::VERIFY, 0, 1000), Data::None, Status::SUCCESS).await;
        io.expect(fua(blocks(nvm::WRITE_ZEROES, 3, 60)), Data::None, Status::SUCCESS).await;
        assert!(io.read(3, 60).await.iter().all(|byte| *byte == 0));
        // Two ranges, in a buffer for more, as Linux sends them.
        let mut ranges = vec![0; 4096];
        ranges[4..8].copy_from_slice(&8u32.to_le_bytes());
        ranges[8..16].copy_from_slice(&64u64.to_le_bytes());
        ranges[20] = 1;
        let mut dsm = command(nvm::DATASET_MANAGEMENT, 1);
        (dsm.0[40], dsm.0[44]) = (1, 4);
        io.expect(dsm.clone(), Data::Capsule(&ranges), Status::SUCCESS).await;
        // One that reaches too far: nothing is done.
        ranges[24..32].copy_from_slice(&2048u64.to_le_bytes());
        io.expect(dsm, Data::In(&ranges), Status::LBA_RANGE).await;
    });
    let log = rig.volume().log();
    let changes: Vec<_> = log.into_iter().filter(|op| !matches!(op, Op::Read(..))).collect();
    assert_eq!(
        changes[1..],
        [
            Op::Zeroes(3 * 4096, 60 * 4096, true),
            Op::Discard(64 * 4096, 8 * 4096),
            Op::Discard(0, 4096)
        ]
    );
    rig.finish();
}

#[test]
fn what_a_command_may_not_is_refused_and_the_queue_goes_on() {
    let rig = Rig::new(3);
    let (admin, io) = with_io(&rig, |_| ());
    rig.run(async move {
        enter(&admin, &io).await;
        let block = pattern(1, 0);
        let end = (8 << 20) / BLOCK as u64;
        let mut wrong_nsid = blocks(nvm::READ, 0, 1);
        wrong_nsid.0[4] = 2;
        let mut fused = blocks(nvm::COMPARE, 0, 1);
        fused.0[1] |= 3;
        let refused: [(Command, Data<'_>, Status); 12] = [
            (blocks(nvm::READ, end, 1), Data::Out(4096), Status::LBA_RANGE),
            (blocks(nvm::READ, end - 1, 2), Data::Out(8192), Status::LBA_RANGE),
            (blocks(nvm::READ, u64::MAX, 2), Data::Out(8192), Status::LBA_RANGE),
            (blocks(nvm::WRITE, end, 1), Data::Capsule(&block), Status::LBA_RANGE),
            (blocks(nvm::WRITE, end, 1), Data::In(&block), Status::LBA_RANGE),
            (blocks(nvm::WRITE_ZEROES, end - 1, 2), Data::None, Status::LBA_RANGE),
            (blocks(nvm::READ, 0, 1), Data::Out(8192), Status::SGL_LENGTH),
            (blocks(nvm::READ, 0, 257), Data::Out(257 * 4096), Status::INVALID_FIELD),
            (wrong_nsid, Data::Out(4096), Status::INVALID_NAMESPACE),
            (blocks(nvm::WRITE, 0, 2), Data::Capsule(&block), Status::SGL_LENGTH),
            (fused, Data::In(&block), Status::INVALID_FIELD),
            (command(0x7d, 1), Data::None, Status::INVALID_OPCODE),
        ];
        for (command, data, status) in refused {
            io.expect(command, data, status).await;
        }
        assert_eq!(io.read(0, 1).await[..3], [0, 1, 2]);
    });
    assert_eq!(rig.volume().log().len(), 1, "only the last one reached the volume");
    rig.finish();
}

#[test]
fn errors_of_the_volume_are_told() {
    let rig = Rig::new(4);
    let (admin, io) = with_io(&rig, |_| ());
    let volume = rig.volume();
    rig.run(async move {
        enter(&admin, &io).await;
        let block = pattern(1, 0);
        fail(&volume, BlockError::Unavailable);
        io.expect(blocks(nvm::READ, 0, 1), Data::Out(4096), Status::UNRECOVERED_READ).await;
        io.expect(blocks(nvm::VERIFY, 0, 9), Data::None, Status::UNRECOVERED_READ).await;
        let compare = blocks(nvm::COMPARE, 0, 1);
        io.expect(compare, Data::Capsule(&block), Status::UNRECOVERED_READ).await;
        io.expect(blocks(nvm::WRITE, 0, 1), Data::Capsule(&block), Status::WRITE_FAULT).await;
        fail(&volume, BlockError::Stopped);
        io.expect(blocks(nvm::WRITE, 0, 1), Data::In(&block), Status::NOT_READY).await;
    });
    rig.finish();
}

#[test]
fn many_commands_at_a_time_are_answered_as_they_are_done() {
    let rig = Rig::new(5);
    let (admin, io) = with_io(&rig, |_| ());
    let volume = rig.volume();
    rig.run(async move {
        enter(&admin, &io).await;
        // The first read waits in the volume; those behind it don't wait for it.
        volume.hold(Some(0));
        let mut ids = Vec::new();
        for at in 0..100 {
            ids.push(io.begin(blocks(nvm::READ, at, 1), &Data::Out(4096)).await.unwrap());
        }
        let mut got = Vec::new();
        for _ in 1..100 {
            match io.next_pdu().await.unwrap() {
                Pdu::Data { command, data, .. } => {
                    let at = ids.iter().position(|id| *id == command).unwrap();
                    assert!(data == volume.bytes_at(at * BLOCK, BLOCK));
                    got.push(command);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(!got.contains(&ids[0]));
        volume.hold(None);
        let Pdu::Data { command, flags, .. } = io.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((command, flags & flag::SUCCESS), (ids[0], flag::SUCCESS));
    });
    rig.finish();
}

/// A host that is asked for data and sends none keeps what it holds, and nobody waits for it.
#[test]
fn a_host_that_sends_no_data_stops_only_itself() {
    let rig = Rig::new(6);
    let (admin, io) = with_io(&rig, |_| ());
    let other = Host::new(rig.connect(1, Default::default()).0);
    rig.run(async move {
        let controller = admin.enter().await;
        io.join(1, controller).await.unwrap();
        other.join(2, controller).await.unwrap();
        let large = pattern(256, 0);
        for at in 0..100 {
            let write = blocks(nvm::WRITE, at, 256);
            io.begin(write, &Data::In(&large)).await.unwrap();
        }
        // It holds 16 MiB, all it may; the rest waits for memory. The capsule's has a reserve.
        let block = pattern(1, 0);
        io.begin(blocks(nvm::WRITE, 7, 1), &Data::Capsule(&block)).await.unwrap();
        let mut asked = 0;
        loop {
            match io.next_pdu().await.unwrap() {
                Pdu::Ready(_) => asked += 1,
                Pdu::Done(done) => {
                    assert_eq!((done.id, done.status), (101, Status::SUCCESS));
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(asked, 16);
        for at in 0..10 {
            other.expect(blocks(nvm::WRITE, at, 256), Data::In(&large), Status::SUCCESS).await;
        }
    });
    rig.finish();
}

#[test]
fn a_namespace_that_goes_takes_its_queue_along_and_one_that_comes_is_seen() {
    let rig = Rig::new(7);
    let (admin, io) = with_io(&rig, |_| ());
    let target = rig.target.clone();
    rig.shelf.0.borrow_mut().push((2, sim::volume::MemoryVolume::new(1 << 20, 512)));
    rig.run(async move {
        enter(&admin, &io).await;
        let mut second = blocks(nvm::READ, 2047, 1);
        second.0[4] = 2;
        io.expect(second.clone(), Data::Out(512), Status::INVALID_NAMESPACE).await;
        target.add("two", export(2, 2)).unwrap();
        io.expect(second.clone(), Data::Out(512), Status::SUCCESS).await;
        assert!(target.remove("one"));
        io.expect(blocks(nvm::READ, 0, 1), Data::Out(4096), Status::INVALID_NAMESPACE).await;
        io.expect(second, Data::Out(512), Status::SUCCESS).await;
        // With its last namespace the controller goes.
        assert!(target.remove("two"));
        assert!(io.next_pdu().await.is_err() && admin.next_pdu().await.is_err());
        let again = admin.join(0, ANY_CONTROLLER).await;
        assert!(again.is_err());
    });
    rig.finish();
}

/// Two hosts that take all memory and send nothing, and one that takes no replies, keep a third
/// waiting for a while only.
#[test]
fn hosts_that_keep_memory_lose_it_to_those_who_want_some() {
    let rig = Rig::new(8);
    let (admin, first) = with_io(&rig, |_| ());
    let [second, third] = [1, 1].map(|core| Host::new(rig.connect(core, Default::default()).0));
    let env = rig.world.env(units::CoreId(0));
    rig.run(async move {
        let controller = admin.enter().await;
        for (queue, host) in (1..).zip([&first, &second, &third]) {
            host.join(queue, controller).await.unwrap();
        }
        let large = pattern(256, 0);
        for host in [&first, &second] {
            for at in 0..16 {
                let write = blocks(nvm::WRITE, at, 256);
                host.begin(write, &Data::In(&large)).await.unwrap();
            }
        }
        // Nobody wants any: they may keep it for as long as they like.
        for _ in 0..100 {
            io::Env::sleep(&env, units::Nanos::from_millis(1000)).await;
            admin.expect(command(0x18, 0), Data::None, Status::SUCCESS).await;
        }
        assert!(matches!(first.next_pdu().await, Ok(Pdu::Ready(_))));
        assert_eq!(third.read(0, 200).await.len(), 200 * BLOCK);
    });
    rig.finish();
}

/// Checks of blocks that a volume holds up do not keep others from workers.
#[test]
fn checks_that_wait_keep_nobody_waiting() {
    let rig = Rig::new(9);
    let (admin, io) = with_io(&rig, |_| ());
    let other = Host::new(rig.connect(1, Default::default()).0);
    let volume = rig.volume();
    rig.run(async move {
        let controller = admin.enter().await;
        let mut connect = io.connect_command(1, 1024);
        connect.0[46] = io.attributes;
        io.initialize().await.unwrap();
        io.send_capsule(&connect, &io.connect_data(controller)).await.unwrap();
        assert!(matches!(io.next_pdu().await, Ok(Pdu::Done(done)) if done.status.is_success()));
        other.join(2, controller).await.unwrap();
        volume.hold(Some(0));
        for _ in 0..600 {
            io.begin(blocks(nvm::VERIFY, 0, 8), &Data::None).await.unwrap();
        }
        assert_eq!(other.read(9, 1).await.len(), BLOCK);
        volume.hold(None);
        for _ in 0..600 {
            assert!(matches!(io.next_pdu().await, Ok(Pdu::Done(done)) if done.status.is_success()));
        }
    });
    rig.finish();
}

/// A write that was begun for a namespace is not carried out once that is another volume's.
#[test]
fn what_was_begun_for_a_namespace_that_went_is_not_carried_out() {
    let rig = Rig::new(11);
    let (admin, io) = with_io(&rig, |_| ());
    let (target, volume) = (rig.target.clone(), rig.volume());
    let second = sim::volume::MemoryVolume::new(1 << 20, BLOCK as u32);
    rig.shelf.0.borrow_mut().push((2, second.clone()));
    rig.target.add("two", export(2, 2)).unwrap();
    let other = second.clone();
    rig.run(async move {
        enter(&admin, &io).await;
        let data = pattern(8, 1);
        let mut write = blocks(nvm::WRITE, 0, 8);
        write.0[4] = 2;
        io.begin(write, &Data::In(&data)).await.unwrap();
        let Pdu::Ready(ready) = io.next_pdu().await.unwrap() else { panic!("not asked for") };
        // The host takes its time, and the namespace becomes another volume.
        target.remove("two");
        target.add("three", export(2, 1)).unwrap();
        io.send_data(&ready, &data, true).await.unwrap();
        let Pdu::Done(done) = io.next_pdu().await.unwrap() else { panic!("not answered") };
        assert_eq!(done.status, Status::INVALID_NAMESPACE);
        assert!(other.log().is_empty() && volume.log().is_empty());
    });
    rig.finish();
}
