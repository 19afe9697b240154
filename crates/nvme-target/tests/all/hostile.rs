//! What hosts can do wrong with PDUs, their order and their ends.
//!
//! Invariant: whatever came before, a connection ends for the reason that the protocol names, and
//! nothing of it is left. Flaws that other targets had are named at the tests that show that they
//! can't be here. Of CVE-2026-52989, 64534, 64535 and 80789 we know no more than the class that
//! they are listed under; what is said of them is that.

use crate::support::host::{Data, Host, Pdu, blocks, command};
use crate::support::raw::{
    PLAIN, STAGES, Stage, ask, capsule, host_data, pair, reach, shortest, with,
};
use crate::support::{BLOCK, Rig};
use io::Transport;
use nvme::command::{admin, nvm};
use nvme::fabrics::ANY_CONTROLLER;
use nvme::pdu::{Digests, Fatal, InitializeRequest, Transfer, flag};
use nvme::sgl::Sgl;
use nvme::status::Status;
use palisade_nvme_target::EndReason;
use sim::net::{Cut, Weather};
use units::Nanos;

/// Brings a connection to a stage, sends bytes, and sees it terminated for this.
fn fatal_after(stage: Stage, bytes: Vec<u8>, fatal: Fatal) {
    let rig = Rig::small(1);
    let (host, ended, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, stage).await;
        host.send(&bytes).await.unwrap();
        host.expect_fatal(fatal).await;
    });
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Fatal(fatal)), "{stage:?}");
}

/// A write of one block in namespace 1, in its capsule.
fn write_capsule(digests: Digests) -> Vec<u8> {
    let sgl = Sgl::InCapsule { offset: 0, length: BLOCK as u32 };
    capsule(digests, &with(blocks(nvm::WRITE, 3, 1), 7, sgl), &[0xa5; BLOCK])
}

/// The second request of parameters, data that nobody asked for, PDUs of controllers and of nobody.
#[test]
fn every_kind_of_pdu_in_every_stage() {
    for stage in STAGES {
        for kind in (0..=0x0b).chain([0x7f, 0xff]) {
            let is_controllers = !matches!(kind, 0x00 | 0x02 | 0x04 | 0x06);
            let early = matches!(stage, Stage::Opened | Stage::Initialized);
            let fatal = match (stage, kind) {
                _ if is_controllers => Fatal::Field(0),
                (Stage::Opened, 0x00) | (_, 0x04) if stage != Stage::Opened || kind == 0 => {
                    continue;
                }
                (_, 0x02) if stage != Stage::Opened => continue,
                (_, 0x06) if !early => Fatal::Field(10),
                _ => Fatal::Sequence,
            };
            fatal_after(stage, shortest(kind), fatal);
        }
    }
}

#[test]
fn a_host_that_says_that_it_ends_is_not_answered() {
    for stage in [Stage::Initialized, Stage::Admin, Stage::Io] {
        let rig = Rig::new(2);
        let (host, ended, admin) = pair(&rig);
        rig.run(async move {
            reach(&host, &admin, stage).await;
            // With the header that it found wrong, as long as may be.
            let mut bytes = shortest(0x02);
            bytes[4] = 24 + 128;
            bytes.resize(24 + 128, 9);
            host.send(&bytes).await.unwrap();
            assert!(host.next_pdu().await.is_err());
        });
        rig.finish();
        assert_eq!(ended.get(), Some(EndReason::Host), "{stage:?}");
    }
    let mut long = shortest(0x02);
    long[4] = 24 + 129;
    fatal_after(Stage::Admin, long, Fatal::Field(4));
}

/// CVE-2026-52989 is one of Linux's target about lengths of PDUs that were believed; we could not
/// find out which. So all lengths of all kinds: each is one that the kind can have, or ends the
/// connection before anything is read or taken by it.
#[test]
fn every_field_of_a_header_wrong() {
    let good = write_capsule(PLAIN);
    let change = |at: usize, bytes: &[u8]| {
        let mut pdu = good.clone();
        pdu[at..at + bytes.len()].copy_from_slice(bytes);
        pdu
    };
    for length in [0, 8, 24, 71, 73, 128, 255] {
        fatal_after(Stage::Io, change(2, &[length]), Fatal::Field(2));
    }
    for flags in [1, 2, 3] {
        fatal_after(Stage::Io, change(1, &[flags]), Fatal::Field(1));
    }
    for offset in [0, 4, 68, 71, 73, 74, 75, 255] {
        fatal_after(Stage::Io, change(3, &[offset]), Fatal::Field(3));
    }
    for bytes in [0u32, 1, 8, 71] {
        fatal_after(Stage::Io, change(4, &bytes.to_le_bytes()), Fatal::Field(4));
    }
    // Data before its own begin, and more of it than a capsule has.
    fatal_after(
        Stage::Io,
        [&change(3, &[252])[..4], &80u32.to_le_bytes(), &good[8..]].concat(),
        Fatal::Field(4),
    );
    for bytes in [72 + (16 << 10) + 1, 1 << 31, u32::MAX - 3, u32::MAX] {
        fatal_after(Stage::Io, change(4, &bytes.to_le_bytes()), Fatal::Limit);
        fatal_after(Stage::Initialized, change(4, &bytes.to_le_bytes()), Fatal::Limit);
    }
    for kind in [0x00, 0x02, 0x04, 0x06] {
        for bytes in [0u32, 7, 8, 23, 1 << 20, u32::MAX] {
            let mut pdu = shortest(kind);
            pdu[4..8].copy_from_slice(&bytes.to_le_bytes());
            let fatal = match kind {
                0x04 | 0x06 if bytes > 23 => Fatal::Field(3),
                _ => Fatal::Field(4),
            };
            fatal_after(Stage::Io, pdu, fatal);
        }
    }
}

#[test]
fn the_begin_of_a_connection_with_wrong_parameters() {
    let request = InitializeRequest::default();
    let version = InitializeRequest { version: 1, ..request };
    fatal_after(Stage::Opened, version.encode().to_vec(), Fatal::Unsupported(8));
    for alignment in [32, 255] {
        let request = InitializeRequest { alignment, ..request };
        fatal_after(Stage::Opened, request.encode().to_vec(), Fatal::Field(10));
    }
    let mut long = request.encode().to_vec();
    long[4] = 132;
    fatal_after(Stage::Opened, long, Fatal::Field(4));
    let mut digest = request.encode().to_vec();
    digest[1] = 1;
    fatal_after(Stage::Opened, digest, Fatal::Field(1));
}

/// Lengths at the border, and data that begins later than it could.
#[test]
fn capsules_as_large_as_they_may_be_and_with_padding() {
    let rig = Rig::new(3);
    let (host, _, admin) = pair(&rig);
    let volume = rig.volume();
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let four = vec![0x5a; 4 * BLOCK];
        host.expect(blocks(nvm::WRITE, 8, 4), Data::Capsule(&four), Status::SUCCESS).await;
        let mut padded = write_capsule(PLAIN);
        padded.splice(72..72, [0xee; 180]);
        padded[3] = 252;
        padded[4..8].copy_from_slice(&(252 + BLOCK as u32).to_le_bytes());
        host.send(&padded).await.unwrap();
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((done.id, done.status), (7, Status::SUCCESS));
        assert_eq!(volume.bytes_at(3 * BLOCK, BLOCK), [0xa5; BLOCK]);
    });
    rig.finish();
}

/// A write of two blocks is asked for; then this is sent, and ends the connection.
fn data_is_fatal(wrong: impl Fn(Transfer) -> Vec<u8> + 'static, fatal: Fatal) {
    let rig = Rig::new(4);
    let (host, ended, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let ready = ask(&host, 5, &[1; 2 * BLOCK]).await;
        host.send(&wrong(ready)).await.unwrap();
        host.expect_fatal(fatal).await;
    });
    assert!(rig.volume().log().is_empty(), "nothing was written");
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Fatal(fatal)));
}

/// CVE-2023-6356: Linux's target believed offset and length of data, and walked off its list of
/// pages (nvmet_tcp_build_iovec).
#[test]
fn data_that_is_not_what_was_asked_for() {
    let block = |ready: Transfer, change: fn(&mut Transfer)| {
        let mut transfer = Transfer { bytes: BLOCK as u32, ..ready };
        change(&mut transfer);
        host_data(PLAIN, &transfer, 0, &[1; BLOCK])
    };
    let of = |fatal, change: fn(&mut Transfer)| data_is_fatal(move |r| block(r, change), fatal);
    of(Fatal::Field(10), |t| t.tag += 1);
    of(Fatal::Field(10), |t| t.tag = 0xffff);
    of(Fatal::Field(10), |t| t.command += 1);
    of(Fatal::OutOfRange, |t| t.offset = 4);
    of(Fatal::OutOfRange, |t| t.offset = BLOCK as u32);
    of(Fatal::OutOfRange, |t| t.offset = u32::MAX);
    of(Fatal::Field(16), |t| t.bytes += 4);
    of(Fatal::Field(16), |t| t.bytes = 0);
    of(Fatal::Field(16), |t| t.bytes = u32::MAX);
    // Behind its end, or said to be the last before it is.
    let long = |ready| {
        let transfer = Transfer { bytes: 3 * BLOCK as u32, ..ready };
        host_data(PLAIN, &transfer, flag::LAST, &[1; 3 * BLOCK])
    };
    data_is_fatal(long, Fatal::OutOfRange);
    let early = |ready| {
        let transfer = Transfer { bytes: BLOCK as u32, ..ready };
        host_data(PLAIN, &transfer, flag::LAST, &[1; BLOCK])
    };
    data_is_fatal(early, Fatal::OutOfRange);
    let none = |ready| host_data(PLAIN, &Transfer { bytes: 0, ..ready }, 0, &[]);
    data_is_fatal(none, Fatal::Field(16));
}

/// CVE-2023-6535: data for a command that does not wait for any was put to it, and it ran a second
/// time (nvmet_tcp_execute_request).
#[test]
fn data_for_commands_that_are_carried_out_already() {
    let try_with = |opcode: u8, data: fn() -> Data<'static>| {
        let rig = Rig::new(5);
        let (host, ended, admin) = pair(&rig);
        let (volume, other) = (rig.volume(), rig.volume());
        volume.hold(Some(0));
        let env = rig.world.env(units::CoreId(0));
        rig.run(async move {
            reach(&host, &admin, Stage::Io).await;
            let command = host.begin(blocks(opcode, 0, 1), &data()).await.unwrap();
            io::Env::sleep(&env, Nanos::from_millis(1)).await;
            assert_eq!(volume.0.in_flight.get(), 1);
            // The first command has the first slot.
            let transfer = Transfer { command, tag: 0, offset: 0, bytes: BLOCK as u32 };
            host.send(&host_data(PLAIN, &transfer, flag::LAST, &[2; BLOCK])).await.unwrap();
            host.expect_fatal(Fatal::Field(10)).await;
            volume.hold(None);
        });
        assert_eq!(other.log().len(), 1, "carried out once");
        rig.finish();
        assert_eq!(ended.get(), Some(EndReason::Fatal(Fatal::Field(10))));
    };
    try_with(nvm::READ, || Data::Out(BLOCK as u32));
    try_with(nvm::WRITE, || Data::Capsule(&[1; BLOCK]));
    try_with(nvm::WRITE_ZEROES, || Data::None);
}

/// CVE-2023-6536: data came again for a command that was over, and it was completed a second time
/// (__nvmet_req_complete).
#[test]
fn data_for_a_command_that_is_over() {
    let rig = Rig::new(6);
    let (host, ended, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let ready = ask(&host, 5, &[1; BLOCK]).await;
        host.send_data(&ready, &[1; BLOCK], true).await.unwrap();
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!((done.id, done.status), (ready.command, Status::SUCCESS));
        host.send_data(&ready, &[2; BLOCK], true).await.unwrap();
        host.expect_fatal(Fatal::Field(10)).await;
    });
    assert_eq!((rig.volume().log().len(), rig.volume().bytes_at(5 * BLOCK, 1)), (1, vec![1]));
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Fatal(Fatal::Field(10))));
}

/// CVE-2026-22998: data came for a command whose memory was not there yet, and was put into none
/// (nvmet_tcp_build_pdu_iovec).
#[test]
fn data_for_a_command_that_waits_for_memory() {
    let rig = Rig::new(7);
    let (host, ended, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let large = vec![1; 1 << 20];
        // A connection has 16 of these at a time.
        for _ in 0..16 {
            ask(&host, 0, &large).await;
        }
        let command = host.begin(blocks(nvm::WRITE, 0, 256), &Data::In(&large)).await.unwrap();
        let transfer = Transfer { command, tag: 16, offset: 0, bytes: BLOCK as u32 };
        host.send(&host_data(PLAIN, &transfer, 0, &[2; BLOCK])).await.unwrap();
        host.expect_fatal(Fatal::Field(10)).await;
    });
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Fatal(Fatal::Field(10))));
}

/// CVE-2026-80789: Linux's target allocated what a descriptor said, up to 4 GiB, before it looked
/// whether the command could have that much.
#[test]
fn lengths_of_descriptors_are_not_believed() {
    let rig = Rig::new(8);
    let (host, _, admin) = pair(&rig);
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let commands = [
            (&host, blocks(nvm::READ, 0, 1)),
            (&host, blocks(nvm::WRITE, 0, 1)),
            (&host, blocks(nvm::COMPARE, 0, 1)),
            (&host, command(nvm::DATASET_MANAGEMENT, 1)),
            (&admin, command(admin::IDENTIFY, 1)),
            (&admin, command(admin::GET_LOG_PAGE, 1)),
        ];
        for (id, (host, command)) in commands.into_iter().enumerate() {
            for length in [(1 << 20) + 1, 1 << 31, u32::MAX] {
                let in_capsule = Sgl::InCapsule { offset: 0, length };
                for sgl in [Sgl::Transport { length }, in_capsule] {
                    let capsule = capsule(PLAIN, &with(command.clone(), id as u16, sgl), &[]);
                    host.send(&capsule).await.unwrap();
                    let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
                    assert!(!done.status.is_success() && done.id == id as u16, "{done:?}");
                }
            }
        }
        let far = Sgl::InCapsule { offset: u64::MAX, length: 4096 };
        let write = with(blocks(nvm::WRITE, 0, 1), 9, far);
        host.send(&capsule(PLAIN, &write, &[0; BLOCK])).await.unwrap();
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!(done.status, Status::SGL_OFFSET);
    });
    assert!(rig.volume().log().is_empty());
    rig.finish();
}

/// CVE-2026-64534, CVE-2026-64535: after data with a wrong digest a command was released when the
/// digest failed and again when its queue ended. Here it is answered once, by a refusal, whichever
/// PDU was damaged, and its memory comes back once.
#[test]
fn damaged_data_is_refused_once() {
    const BOTH: Digests = Digests { header: true, data: true };
    let rig = Rig::new(9);
    let (mut host, _, mut admin) = pair(&rig);
    (host.digests, admin.digests) = (BOTH, BOTH);
    let volume = rig.volume();
    rig.run(async move {
        reach(&host, &admin, Stage::Io).await;
        let refused = async |id| {
            let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
            assert_eq!((done.id, done.status), (id, Status::TRANSIENT_TRANSPORT));
        };
        let mut damaged = write_capsule(BOTH);
        *damaged.last_mut().unwrap() ^= 1;
        host.send(&damaged).await.unwrap();
        refused(7).await;
        for wrong in [0, 1, 2] {
            let ready = ask(&host, 9, &[3; 3 * BLOCK]).await;
            for part in 0..3 {
                let offset = part * BLOCK as u32;
                let transfer = Transfer { offset, bytes: BLOCK as u32, ..ready };
                let mut pdu = host_data(BOTH, &transfer, 0, &[3; BLOCK]);
                if part == wrong {
                    pdu[100] ^= 0x10;
                }
                host.send(&pdu).await.unwrap();
            }
            refused(ready.command).await;
        }
        // Of a command that is refused anyway nobody looks at the data.
        let mut far = blocks(nvm::WRITE, 1 << 40, 1);
        far.0[24..40].copy_from_slice(&Sgl::InCapsule { offset: 0, length: 4096 }.encode());
        let mut damaged = capsule(BOTH, &far, &[0; BLOCK]);
        *damaged.last_mut().unwrap() ^= 1;
        host.send(&damaged).await.unwrap();
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!(done.status, Status::LBA_RANGE);
        assert!(volume.log().is_empty(), "nothing of it was written");
        assert_eq!(host.read(0, 1).await.len(), BLOCK);
        // And the connection ends while a command has some that is damaged.
        let ready = ask(&host, 9, &[3; 2 * BLOCK]).await;
        let transfer = Transfer { bytes: BLOCK as u32, ..ready };
        let mut pdu = host_data(BOTH, &transfer, 0, &[3; BLOCK]);
        pdu[100] ^= 0x10;
        host.send(&pdu).await.unwrap();
    });
    rig.finish();
}

/// The same for headers: nothing behind a header that was damaged can be told apart.
#[test]
fn a_damaged_header_ends_the_connection() {
    const HEADER: Digests = Digests { header: true, data: false };
    for at in 8..76 {
        let rig = Rig::small(10);
        let (mut host, ended, mut admin) = pair(&rig);
        (host.digests, admin.digests) = (HEADER, HEADER);
        let mut pdu = write_capsule(HEADER);
        pdu[at] ^= 0x40;
        let had = u32::from_le_bytes(pdu[72..76].try_into().unwrap());
        rig.run(async move {
            reach(&host, &admin, Stage::Io).await;
            host.send(&pdu).await.unwrap();
            host.expect_fatal(Fatal::HeaderDigest(had)).await;
        });
        assert!(rig.volume().log().is_empty());
        rig.finish();
        assert_eq!(ended.get(), Some(EndReason::Fatal(Fatal::HeaderDigest(had))));
    }
}

/// A Connect whose data was damaged is refused, and its connection ends.
#[test]
fn a_damaged_connect_is_refused() {
    let rig = Rig::new(11);
    let (mut host, ended, _) = pair(&rig);
    host.digests = Digests { header: false, data: true };
    rig.run(async move {
        host.initialize().await.unwrap();
        let (command, data) = (host.connect_command(0, 32), host.connect_data(ANY_CONTROLLER));
        let mut pdu = capsule(host.digests, &command, &data);
        pdu[72 + 300] ^= 1;
        host.send(&pdu).await.unwrap();
        let Pdu::Done(done) = host.next_pdu().await.unwrap() else { panic!() };
        assert_eq!(done.status, Status::TRANSIENT_TRANSPORT);
        assert!(host.next_pdu().await.is_err());
    });
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Refused(Status::TRANSIENT_TRANSPORT)));
}

/// A queue of two entries, and commands without end: what is carried out is bounded, and the host
/// is told.
#[test]
fn more_commands_than_the_queue_has_entries() {
    let rig = Rig::new(12);
    let (host, ended, admin) = pair(&rig);
    let volume = rig.volume();
    volume.hold(Some(0));
    let (held, env) = (volume.clone(), rig.world.env(units::CoreId(0)));
    rig.run(async move {
        let controller = admin.enter().await;
        host.initialize().await.unwrap();
        let (command, data) = (host.connect_command(1, 2), host.connect_data(controller));
        host.send_capsule(&command, &data).await.unwrap();
        host.next_pdu().await.unwrap();
        for _ in 0..40 {
            let _ = host.begin(blocks(nvm::READ, 0, 1), &Data::Out(BLOCK as u32)).await;
        }
        host.expect_fatal(Fatal::Limit).await;
        io::Env::sleep(&env, Nanos::from_millis(1)).await;
        // Two, and a batch of replies that we could not know to have arrived.
        assert_eq!(held.log().len(), 33);
        assert_eq!(held.0.in_flight.get(), 33);
        held.hold(None);
    });
    rig.finish();
    assert_eq!(ended.get(), Some(EndReason::Fatal(Fatal::Limit)));
}

/// Commands without end from a host that reads nothing: what waits for it is bounded by the queue.
#[test]
fn a_host_that_reads_nothing_is_not_served_for_ever() {
    for (opcode, bytes, most) in [(nvm::FLUSH, 0, 11_200), (nvm::READ, 65536, 180)] {
        let rig = Rig::new(13);
        let (host, _, admin) = pair(&rig);
        let other = rig.host();
        let (volume, env) = (rig.volume(), rig.world.env(units::CoreId(0)));
        rig.run(async move {
            let controller = admin.enter().await;
            host.join(1, controller).await.unwrap();
            other.join(2, controller).await.unwrap();
            let flood = async move {
                let one = blocks(opcode, 0, 16);
                let data = || if bytes == 0 { Data::None } else { Data::Out(bytes) };
                while host.begin(one.clone(), &data()).await.is_ok() {}
            };
            io::Env::spawn(&env, io::Priority::First, flood);
            io::Env::sleep(&env, Nanos::from_millis(500)).await;
            let count = volume.log().len();
            assert!((100..most).contains(&count), "{count} were carried out");
            assert_eq!(other.read(0, 200).await.len(), 200 * BLOCK);
        });
        rig.finish();
    }
}

/// A session with all that there is: parameters, Connect, and commands with data in and out.
async fn session(host: &Host, controller: Option<u16>) -> Result<(), io::Closed> {
    let queue = u16::from(controller.is_some());
    host.join(queue, controller.unwrap_or(ANY_CONTROLLER)).await?;
    if queue == 0 {
        host.try_enable().await?;
        host.begin(command(admin::ASYNC_EVENT_REQUEST, 0), &Data::None).await?;
        host.call(command(admin::KEEP_ALIVE, 0), Data::None).await?;
        return Ok(());
    }
    let block = [7; 512];
    host.call(blocks(nvm::WRITE, 1, 1), Data::Capsule(&block)).await?;
    host.call(blocks(nvm::WRITE, 2, 1), Data::In(&block)).await?;
    host.call(blocks(nvm::READ, 1, 1), Data::Out(512)).await?;
    host.call(command(nvm::FLUSH, 1), Data::None).await?;
    Ok(())
}

/// One session after the other on a rig, each cut after another byte. With `io` it is that of an
/// I/O queue, whose admin queue goes on.
fn cut_everywhere(io: bool, cut: Cut) {
    let rig = Rig::small(14);
    let admin = rig.host();
    let mut at = 0;
    let controller = std::rc::Rc::new(std::cell::Cell::new(0));
    let told = controller.clone();
    rig.run(async move { told.set(admin.enter().await) });
    loop {
        let weather = Weather { cut: Some((at, cut)), ..Weather::default() };
        let (end, ended) = rig.connect(0, weather);
        let (host, left) = (Host::new(end.clone()), end.clone());
        let controller = io.then(|| controller.get());
        io::Env::spawn(&rig.world.env(units::CoreId(0)), io::Priority::First, async move {
            let _ = session(&host, controller).await;
            host.end.close();
        });
        rig.world.run_for(Nanos::from_millis(if cut == Cut::Silence { 10_300 } else { 1 }));
        left.close();
        rig.world.run_for(Nanos::from_millis(1));
        let lives = cut == Cut::Silence && ended.get().is_none();
        assert!(ended.get().is_some() || lives, "still there: cut after byte {at}");
        assert_eq!(rig.servers[0].connections(), if lives { 2 } else { 1 });
        if lives {
            // It was connected, and nobody can know that its host is gone: its timer is off.
            let before = rig.servers[0].connections();
            assert_eq!(before, 2);
            return rig.finish();
        }
        if end.sent() <= at {
            assert!(at > 1500, "the session was longer");
            return rig.finish();
        }
        at += 1;
    }
}

#[test]
fn a_connection_that_is_cut_after_any_byte_leaves_nothing() {
    cut_everywhere(true, Cut::Reset);
    cut_everywhere(false, Cut::Reset);
}

/// Before its Connect a host that falls silent is waited for as long as is patient.
#[test]
fn a_host_that_falls_silent_before_it_is_connected_is_sent_away() {
    cut_everywhere(false, Cut::Silence);
}
