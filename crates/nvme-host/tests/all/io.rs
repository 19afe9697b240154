//! Requests against our own target: what was written is read, whatever their size, the weather and
//! the digests.

use crate::support::{BLOCK, BYTES, Rig, SUBSYSTEM, buffer, bytes, digests, empty, fresh, how};
use io::local::all_of;
use io::{Drive, DriveError, Env};
use nvme::fabrics::ANY_CONTROLLER;
use nvme::log::{Access, AccessGroup, PlaceKind};
use nvme::nqn::DISCOVERY;
use nvme::pdu::Digests;
use nvme::status::Status;
use palisade_nvme_host::{Admin, AdminError, NotBegun, RemoteDrive};
use sim::net::Weather;
use units::Nanos;

async fn read(drive: &RemoteDrive, offset: u64, count: usize) -> Vec<u8> {
    let (result, into) = drive.read(offset, empty(count)).await;
    assert_eq!(result, Ok(()), "{count} at {offset}");
    into.to_vec()
}

#[test]
fn what_is_written_is_read() {
    for (seed, digests) in (1..).zip(digests()) {
        let rig = Rig::new(seed);
        let dialer = rig.dialer();
        let weather =
            Weather { delay_most: Nanos::from_millis(1), piece_most: 1000, ..Weather::default() };
        rig.run(async move {
            let host = dialer.host(weather, digests).await;
            let drive = host.drive().await;
            assert_eq!(drive.info().bytes as usize, BYTES);
            let mut model = fresh(0, BYTES);
            // In the capsule, asked for, in several commands, of several buffers.
            let block = BLOCK as usize;
            for (at, sizes) in [
                (0, &[block][..]),
                (block, &[16 << 10]),
                (40 << 10, &[(16 << 10) + block]),
                (100 << 10, &[4096, 512, 8192, 65_536, 512]),
                (1 << 20, &[1 << 20, 1 << 20, 512]),
                (4096, &[4096; 16]),
            ] {
                let all: Vec<_> =
                    sizes.iter().zip(1..).map(|(size, seed)| buffer(seed, *size)).collect();
                assert_eq!(drive.write(at as u64, &all, false).await, Ok(()));
                let whole: Vec<u8> = all.iter().flat_map(|own| own.to_vec()).collect();
                model[at..at + whole.len()].copy_from_slice(&whole);
            }
            for (at, count) in [(0, BYTES), (512, 512), (100 << 10, 80_000 / 512 * 512)] {
                let got = read(&drive, at as u64, count).await;
                let differ = got.iter().zip(&model[at..]).position(|(a, b)| a != b);
                assert_eq!(differ, None, "{count} at {at}");
            }
            // Many at a time, more than there are slots.
            let tickets: Vec<_> = (0..200u64)
                .map(|n| drive.write(n * 8192, &[buffer(n as u8, 4096)], n % 2 == 0))
                .collect();
            for ticket in tickets {
                assert_eq!(ticket.await, Ok(()));
            }
            for n in 0..200usize {
                model[n * 8192..n * 8192 + 4096].copy_from_slice(&bytes(n as u8, 4096));
            }
            let tickets: Vec<_> = (0..200u64).map(|n| drive.read(n * 8192, empty(8192))).collect();
            for (n, ticket) in tickets.into_iter().enumerate() {
                let (result, into) = ticket.await;
                assert_eq!(result, Ok(()));
                assert!(into[..] == model[n * 8192..(n + 1) * 8192], "{n}");
            }
            assert!(host.requests.is_idle());
            host.leave(&dialer.env).await;
        });
        rig.finish();
    }
}

/// Two queues carry what there is, each a whole request.
#[test]
fn two_queues_share_what_is_asked() {
    let weather =
        Weather { delay_most: Nanos::from_millis(1), piece_most: 4000, ..Weather::default() };
    for seed in 20..24 {
        let rig = Rig::new(seed);
        let dialer = rig.dialer();
        rig.run(async move {
            let mut host = dialer.host(weather, Digests::default()).await;
            dialer.again(&mut host, weather, Digests::default()).await;
            let drive = host.drive().await;
            // In two commands, of which a queue has no room for the second behind so many others.
            let size = 2 << 20;
            let write = |n: u64| drive.write(n * size, &[buffer(n as u8, size as usize)], false);
            assert_eq!(all_of((0..2).map(write).collect()).await, [Ok(()); 2]);
            for small in 26..32 {
                let others = (0..small).map(|n| drive.read(n * 4096, empty(4096)));
                let others: Vec<_> = others.collect();
                let reads = (0..2).map(|n| drive.read(n * size, empty(size as usize))).collect();
                // Who has begun a request and ends leaves the rest of it to the other.
                if small == 31 {
                    dialer.env.sleep(Nanos::from_millis(1)).await;
                    host.queues[1].queue.close();
                }
                for (n, (result, into)) in all_of(reads).await.into_iter().enumerate() {
                    assert_eq!(result, Ok(()));
                    assert!(into[..] == bytes(n as u8, size as usize)[..], "{n}");
                }
                assert!(all_of(others).await.iter().all(|(result, _)| result.is_ok()));
            }
            let is_used = |at: usize| host.queues[at].line.sent() > size;
            assert!(is_used(1) && is_used(3), "both were used");
            assert!(host.requests.is_idle());
            host.leave(&dialer.env).await;
        });
        rig.finish();
    }
}

#[test]
fn zeros_flushes_and_discards_are_carried() {
    let rig = Rig::new(5);
    let dialer = rig.dialer();
    rig.run(async move {
        let host = dialer.host(Weather::default(), Digests::default()).await;
        let drive = host.drive().await;
        assert!(drive.info().volatile_cache);
        let all = buffer(3, 1 << 20);
        assert_eq!(drive.write(0, &[all], true).await, Ok(()));
        assert_eq!(drive.write_zeroes(4096, 512 << 10).await, Ok(()));
        let mut model = bytes(3, 1 << 20);
        model[4096..4096 + (512 << 10)].fill(0);
        assert!(read(&drive, 0, 1 << 20).await == model);
        assert_eq!(drive.discard(0, 4096).await, Ok(()));
        assert_eq!(drive.flush().await, Ok(()));
        // Where there is no such command, zeros are written.
        let info = drive.info().clone();
        let plain = RemoteDrive::new(host.requests.clone(), 3, info, Default::default());
        assert_eq!(plain.write_zeroes(512 << 10, 300 << 10).await, Ok(()));
        model[512 << 10..(512 + 300) << 10].fill(0);
        assert!(read(&drive, 4096, (1 << 20) - 4096).await == model[4096..]);
        assert_eq!(plain.discard(0, 4096).await, Err(DriveError::Unsupported));
        host.leave(&dialer.env).await;
    });
    rig.finish();
}

#[test]
fn what_is_not_there_is_not_asked_for() {
    let rig = Rig::new(6);
    let dialer = rig.dialer();
    rig.run(async move {
        let host = dialer.host(Weather::default(), Digests::default()).await;
        let drive = host.drive().await;
        let end = BYTES as u64;
        for (offset, count) in [(end, 512), (end - 512, 1024), (1, 512), (0, 100), (!511, 512)] {
            let (result, into) = drive.read(offset, empty(count)).await;
            assert_eq!((result, into.len()), (Err(DriveError::Bounds), count));
            let written = drive.write(offset, &[buffer(0, count)], false).await;
            assert_eq!(written, Err(DriveError::Bounds));
            assert_eq!(drive.write_zeroes(offset, count as u64).await, Err(DriveError::Bounds));
        }
        assert_eq!(drive.write(0, &[], false).await, Ok(()));
        // A namespace that another number names is none.
        let info = drive.info().clone();
        let other = RemoteDrive::new(host.requests.clone(), 4, info.clone(), Default::default());
        assert_eq!(other.read(0, empty(512)).await.0, Err(DriveError::Gone));
        // One that has become smaller.
        let larger = io::DriveInfo { bytes: 2 * end, ..info };
        let larger = RemoteDrive::new(host.requests.clone(), 3, larger, Default::default());
        assert_eq!(larger.read(end, empty(512)).await.0, Err(DriveError::Shrunk));
        assert!(host.requests.is_idle());
        host.leave(&dialer.env).await;
    });
    rig.finish();
}

#[test]
fn a_drives_errors_are_told() {
    let rig = Rig::new(7);
    let (dialer, volume) = (rig.dialer(), rig.volume.clone());
    rig.run(async move {
        let host = dialer.host(Weather::default(), Digests::default()).await;
        let drive = host.drive().await;
        volume.fail(4096..8192, io::BlockError::Unavailable);
        assert_eq!(drive.read(4096, empty(512)).await.0, Err(DriveError::Media));
        assert_eq!(drive.read(0, empty(4096)).await.0, Ok(()));
        // A request of several commands fails with any of them, and its buffer comes back.
        let (result, into) = drive.read(0, empty(3 << 20)).await;
        assert_eq!((result, into.len()), (Err(DriveError::Media), 3 << 20));
        host.leave(&dialer.env).await;
    });
    rig.finish();
}

#[test]
fn what_a_controller_knows_is_asked() {
    let rig = Rig::new(9);
    let dialer = rig.dialer();
    rig.run(async move {
        let host = dialer.host(Weather::default(), Digests::default()).await;
        assert!(host.info.fabric.has_ana && host.info.fabric.is_alive_by_traffic);
        let group =
            AccessGroup { id: 1, access: Access::Optimized, changes: 0, namespaces: vec![3] };
        assert_eq!(host.admin.access(&host.info).await, Ok((0, vec![group])));
        assert_eq!(host.admin.keep_alive().await, Ok(()));
        // One that is not there has no blocks; one that can't be there is refused.
        let (namespace, known) = host.admin.namespace(4).await.unwrap();
        assert_eq!((namespace.blocks, known.is_any()), (0, false));
        let refused = host.admin.namespace(u32::MAX - 1).await;
        assert_eq!(refused, Err(AdminError::Refused(Status::INVALID_NAMESPACE)));
        host.leave(&dialer.env).await;
        assert_eq!(host.admin.keep_alive().await, Err(AdminError::Ended));

        let mut how = how(0, ANY_CONTROLLER, Digests::default());
        how.subsystem = crate::support::nqn(DISCOVERY);
        let (begun, line) = dialer.begin(Weather::default(), &how).await.unwrap();
        let admin = Admin::default();
        let running = dialer.start(begun.admin_queue(&admin), line);
        let info = admin.enable(&dialer.env).await.unwrap();
        assert!(info.fabric.is_discovery);
        let (_, places) = admin.discover().await.unwrap();
        let found = places.iter().find(|place| place.kind == PlaceKind::Subsystem).unwrap();
        assert_eq!(found.subsystem.as_str(), SUBSYSTEM);
        assert_eq!((&found.address[..], &found.service[..]), ("192.0.2.1", "4420"));
        running.leave(&dialer.env).await;
    });
    rig.finish();
}

#[test]
fn who_may_not_connect_is_told_why() {
    let rig = Rig::new(8);
    let dialer = rig.dialer();
    rig.run(async move {
        let own = how(0, ANY_CONTROLLER, Digests::default());
        let mut other = own.clone();
        other.host = crate::support::nqn("nqn.2026-11.example:other");
        let refused = dialer.begin(Weather::default(), &other).await.map(|_| ());
        let Err(NotBegun::Refused(status, _)) = refused else { panic!("{refused:?}") };
        assert_eq!(status, Status::CONNECT_HOST);
        let told = "Connect refused: Connect Invalid Host: the subsystem is not for this host";
        assert_eq!(NotBegun::Refused(status, 0).to_string(), told);
        let mut other = own;
        other.subsystem = crate::support::nqn("nqn.2026-11.example:none");
        let refused = dialer.begin(Weather::default(), &other).await.map(|_| ());
        let Err(NotBegun::Refused(status, value)) = refused else { panic!("{refused:?}") };
        assert_eq!((status, value), (Status::CONNECT_PARAMETERS, 0x1_0100));
        let told = NotBegun::Refused(status, value).to_string();
        assert!(told.ends_with("Parameters: the subsystem's NQN is not accepted there"), "{told}");
    });
    rig.finish();
}
