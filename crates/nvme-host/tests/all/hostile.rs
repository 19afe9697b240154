//! Controllers that break the protocol: their connection ends, and nothing else comes of it. Among
//! them is what broke Linux' initiator.

use crate::support::{Transport, buffer, bytes, empty, how};
use io::{Drive, DriveError, DriveInfo, Env, Priority, Transport as _};
use nvme::command::{COMMAND_BYTES, Command, Completion};
use nvme::fabrics::ANY_CONTROLLER;
use nvme::pdu::{
    self, COMMAND_HEADER_BYTES, Digests, Fatal, Header, INITIALIZE_BYTES, InitializeRequest,
    InitializeResponse, Kind, Transfer, flag,
};
use nvme::status::Status;
use palisade_nvme_host::requests::Association;
use palisade_nvme_host::{Can, End, NotBegun, Queue, RemoteDrive, Requests, Shape, begin};
use parity::crc32c;
use sim::net::{self, Weather};
use sim::{SimEnv, World, WorldConfig};
use std::cell::Cell;
use std::future::Future;
use std::io::IoSlice;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// A controller that says what a test has it say.
pub struct Controller {
    line: Transport,
    digests: Digests,
}

impl Controller {
    async fn receive(&self, count: usize) -> Vec<u8> {
        let mut all = vec![0; count];
        self.line.read_exact(&mut all).await.expect("the host sends");
        all
    }

    async fn send(&self, bytes: &[u8]) {
        // The host may have had enough.
        let _ = self.line.write_all(&mut [IoSlice::new(bytes)]).await;
    }

    /// Exchanges parameters and accepts the Connect.
    async fn accept(&mut self) {
        let request = self.receive(INITIALIZE_BYTES).await;
        let request = InitializeRequest::decode(request.as_slice().try_into().unwrap());
        self.digests = request.digests;
        let response = InitializeResponse {
            version: 0,
            alignment: 0,
            digests: request.digests,
            data_most: 4096,
        };
        self.send(&response.encode()).await;
        self.command().await;
        self.complete(Completion { result: 1, ..Completion::of(0, Status::SUCCESS) }).await;
    }

    /// The next command, with the data in its capsule.
    pub async fn command(&self) -> (Command, Vec<u8>) {
        let raw = self.receive(COMMAND_HEADER_BYTES).await;
        let header = Header::decode(raw[..8].try_into().unwrap()).unwrap();
        assert_eq!(header.kind, Kind::Command);
        let rest = header.check(self.digests, 4, 1 << 20).unwrap();
        self.receive(if rest.header_digest { 4 } else { 0 } + rest.padding).await;
        let data = self.receive(rest.data as usize).await;
        self.receive(if rest.data_digest { 4 } else { 0 }).await;
        let mut command = [0; COMMAND_BYTES];
        command.copy_from_slice(&raw[8..]);
        (Command(command), data)
    }

    async fn complete(&self, completion: Completion) {
        let raw = pdu::response(self.digests, &completion);
        let digest = crc32c(0, &raw).to_le_bytes();
        let digest = if self.digests.header { &digest[..] } else { &[] };
        self.send(&[&raw[..], digest].concat()).await;
    }

    /// Data of a read; `damage` is added to its digest.
    async fn data(&self, transfer: &Transfer, flags: u8, data: &[u8], damage: u32) {
        let header = Header::new(Kind::ControllerData, flags, data.len() as u32, 4, self.digests);
        let raw = transfer.encode(&header);
        let mut all = raw.to_vec();
        if self.digests.header {
            all.extend(crc32c(0, &raw).to_le_bytes());
        }
        all.extend(data);
        if self.digests.data {
            all.extend(crc32c(0, data).wrapping_add(damage).to_le_bytes());
        }
        self.send(&all).await;
    }

    pub async fn ready(&self, command: u16, offset: u32, bytes: u32) {
        let header = Header::new(Kind::ReadyToTransfer, 0, 0, 4, self.digests);
        self.send(&Transfer { command, tag: 7, offset, bytes }.encode(&header)).await;
    }
}

const SHAPE: Shape = Shape { commands: 16, data_most: 64 << 10, capsule_data: 8 << 10 };

/// A host's drive on a connection whose other end is the test's.
pub struct Rig {
    world: World<()>,
}

struct Host {
    env: SimEnv<()>,
    drive: RemoteDrive,
    requests: Rc<Requests>,
    queue: Rc<Queue<Transport>>,
    end: Rc<Cell<Option<End>>>,
}

impl Host {
    /// Waits until the connection has ended.
    async fn ended(&self) {
        while self.end.get().is_none() {
            assert!(self.env.now() < Nanos::from_millis(10_000), "it does not end");
            self.env.sleep(Nanos::from_millis(1)).await;
        }
    }
}

impl Rig {
    pub fn new() -> Self {
        Self { world: World::new(WorldConfig::new(1)) }
    }

    /// Runs what a controller says beside what a host asks, until both are over.
    fn run<C, H>(
        &self,
        digests: Digests,
        controller: impl FnOnce(Controller) -> C + 'static,
        host: impl FnOnce(Host) -> H + 'static,
    ) where
        C: Future<Output = ()> + 'static,
        H: Future<Output = ()> + 'static,
    {
        let env = self.world.env(CoreId(0));
        let (own, other) = net::connect(&env, &env, Weather::default());
        let mut said = Controller { line: other, digests: Digests::default() };
        env.spawn(Priority::First, async move {
            said.accept().await;
            controller(said).await;
        });
        self.world.block_on(CoreId(0), async move {
            let begun = begin(Rc::new(own), &how(0, ANY_CONTROLLER, digests)).await.unwrap();
            assert_eq!(begun.controller, 1);
            let requests = Rc::new(Requests::default());
            let queue = begun.queue(SHAPE, requests.clone(), Association::default());
            let end = Rc::new(Cell::new(None));
            let (running, told, its) = (queue.clone(), end.clone(), env.clone());
            env.spawn(Priority::First, async move { told.set(Some(running.run(&its).await)) });
            let info =
                DriveInfo { bytes: 1 << 30, block_bytes: 512, volatile_cache: true, inline: false };
            let can = Can { write_zeroes: true, discard: true };
            let drive = RemoteDrive::new(requests.clone(), 1, info, can);
            host(Host { env, drive, requests, queue, end }).await;
        });
        self.world.settle();
        assert_eq!(self.world.waiting(), Vec::<String>::new(), "tasks are left");
    }

    /// A controller that says something wrong in answer to what a host asks: the connection ends
    /// so, and nothing is under way any more.
    pub fn wrong<C, F>(
        &self,
        ask: impl FnOnce(&RemoteDrive) -> F + 'static,
        controller: impl FnOnce(Controller) -> C + 'static,
        fatal: Fatal,
    ) where
        C: Future<Output = ()> + 'static,
        F: 'static,
    {
        self.run(Digests::default(), controller, move |host| async move {
            let ticket = ask(&host.drive);
            host.ended().await;
            assert_eq!(host.end.get(), Some(End::Wrong(fatal)));
            assert_eq!(host.queue.under_way(), 0);
            drop(ticket);
            host.requests.refuse(DriveError::Gone);
            host.requests.release(Association::default());
            assert!(host.requests.is_idle());
        });
    }
}

fn read(drive: &RemoteDrive) -> <RemoteDrive as Drive>::Read {
    drive.read(0, empty(8192))
}

fn write(drive: &RemoteDrive) -> <RemoteDrive as Drive>::Done {
    drive.write(0, &[buffer(1, 64 << 10)], false)
}

/// Data of a command from its begin on.
fn whole(command: &Command, bytes: u32) -> Transfer {
    Transfer { command: command.id(), tag: 0, offset: 0, bytes }
}

#[test]
fn data_goes_only_where_it_is_wanted() {
    type Says = fn(&Command) -> (Transfer, u8, usize);
    let cases: [(Says, Fatal); 8] = [
        // Of nobody; of one that had the slot before.
        (|c| (Transfer { command: c.id() ^ 1, ..whole(c, 512) }, 0, 512), Fatal::Field(8)),
        (|c| (Transfer { command: c.id() ^ 0x400, ..whole(c, 512) }, 0, 512), Fatal::Field(8)),
        // Not behind what came before; behind the end; about so.
        (|c| (Transfer { offset: 512, ..whole(c, 512) }, 0, 512), Fatal::OutOfRange),
        (|c| (whole(c, 8704), 0, 8704), Fatal::OutOfRange),
        (|c| (Transfer { offset: u32::MAX - 3, ..whole(c, 512) }, 0, 512), Fatal::OutOfRange),
        // Its lengths differ.
        (|c| (whole(c, 1024), 0, 512), Fatal::Field(16)),
        // It is called done with too little; or not as the last.
        (|c| (whole(c, 512), flag::LAST | flag::SUCCESS, 512), Fatal::Sequence),
        (|c| (whole(c, 8192), flag::SUCCESS, 8192), Fatal::Field(1)),
    ];
    for (says, fatal) in cases {
        let controller = move |own: Controller| async move {
            let (command, _) = own.command().await;
            let (transfer, flags, count) = says(&command);
            own.data(&transfer, flags, &bytes(0, count), 0).await;
        };
        Rig::new().wrong(read, controller, fatal);
    }
    // More than any command may have.
    let controller = |own: Controller| async move {
        let (command, _) = own.command().await;
        own.data(&whole(&command, 65_540), 0, &bytes(0, 65_540), 0).await;
    };
    Rig::new().wrong(read, controller, Fatal::Limit);
}

/// CVE-2025-21927 (a header's length) and its like: what is no PDU of a controller ends it.
#[test]
fn headers_are_believed_only_as_far_as_they_can_be() {
    let cases: [(&[u8], Fatal); 6] = [
        (&[5, 0, 255, 0, 24, 0, 0, 0], Fatal::Field(2)),
        (&[5, 0, 24, 0, 23, 0, 0, 0], Fatal::Field(4)),
        (&[5, 0, 24, 0, 255, 255, 255, 255], Fatal::Field(4)),
        (&[8, 0, 24, 0, 24, 0, 0, 0], Fatal::Field(0)),
        (&[4, 0, 72, 0, 72, 0, 0, 0], Fatal::Field(0)),
        (&[7, 1, 24, 0, 28, 0, 0, 0], Fatal::Field(1)),
    ];
    for (raw, fatal) in cases {
        let controller = move |own: Controller| async move {
            own.command().await;
            own.send(raw).await;
        };
        Rig::new().wrong(read, controller, fatal);
    }
}

#[test]
fn data_of_a_write_is_sent_once_and_as_it_was_asked_for() {
    type Asks = &'static [(u32, u32)];
    let cases: [(Asks, Fatal); 6] = [
        (&[(4, 4096)], Fatal::OutOfRange),
        (&[(0, 0)], Fatal::OutOfRange),
        (&[(0, 65_540)], Fatal::OutOfRange),
        (&[(0, u32::MAX)], Fatal::OutOfRange),
        // The same again, without an end; and a second while the first is being sent.
        (&[(0, 4096), (0, 4096)], Fatal::Limit),
        (&[(0, 60_000), (60_000, 5536)], Fatal::Limit),
    ];
    for (asks, fatal) in cases {
        let controller = move |own: Controller| async move {
            let (command, _) = own.command().await;
            let mut all = Vec::new();
            for (offset, bytes) in asks {
                let header = Header::new(Kind::ReadyToTransfer, 0, 0, 4, Digests::default());
                let transfer =
                    Transfer { command: command.id(), tag: 7, offset: *offset, bytes: *bytes };
                all.extend(transfer.encode(&header));
            }
            own.send(&all).await;
        };
        Rig::new().wrong(write, controller, fatal);
    }
    // Data is asked for that a command does not have.
    let controller = |own: Controller| async move {
        let (command, _) = own.command().await;
        own.ready(command.id(), 0, 512).await;
    };
    Rig::new().wrong(|drive| drive.write_zeroes(0, 4096), controller, Fatal::Field(8));
    Rig::new().wrong(read, controller, Fatal::Field(8));
    // Data for a Write Zeroes.
    let controller = |own: Controller| async move {
        let (command, _) = own.command().await;
        own.data(&whole(&command, 512), 0, &bytes(0, 512), 0).await;
    };
    Rig::new().wrong(|drive| drive.write_zeroes(0, 4096), controller, Fatal::Field(8));
}

#[test]
fn what_was_not_asked_or_is_answered_already_is_not_answered() {
    for flip in [1, 0x400, 0x3ff] {
        let controller = move |own: Controller| async move {
            let (command, _) = own.command().await;
            own.complete(Completion::of(command.id() ^ flip, Status::SUCCESS)).await;
        };
        Rig::new().wrong(|drive| drive.flush(), controller, Fatal::Field(20));
    }
    let controller = |own: Controller| async move {
        let (command, _) = own.command().await;
        own.complete(Completion::of(command.id(), Status::SUCCESS)).await;
        own.complete(Completion::of(command.id(), Status::SUCCESS)).await;
    };
    Rig::new().wrong(|drive| drive.flush(), controller, Fatal::Field(20));
    // What was not moved was not done.
    let controller = |own: Controller| async move {
        let (command, _) = own.command().await;
        own.complete(Completion::of(command.id(), Status::SUCCESS)).await;
    };
    Rig::new().wrong(write, controller, Fatal::Sequence);
    Rig::new().wrong(read, controller, Fatal::Sequence);
}

#[test]
fn data_is_sent_in_pieces_that_the_controller_takes() {
    let controller = |own: Controller| async move {
        let (command, inside) = own.command().await;
        assert!(inside.is_empty());
        let mut got = Vec::new();
        for (offset, bytes) in [(0, 10_000), (10_000, 55_536)] {
            own.ready(command.id(), offset, bytes).await;
            let mut left = bytes;
            while left > 0 {
                let raw = own.receive(24).await;
                let header = Header::decode(raw[..8].try_into().unwrap()).unwrap();
                assert_eq!(header.kind, Kind::HostData);
                let transfer = Transfer::decode(raw.as_slice().try_into().unwrap());
                assert_eq!((transfer.command, transfer.tag), (command.id(), 7));
                assert_eq!(transfer.offset as usize, got.len());
                assert!(transfer.bytes <= 4096, "{transfer:?}");
                got.extend(own.receive(transfer.bytes as usize).await);
                left -= transfer.bytes;
                assert_eq!(header.flags & flag::LAST != 0, left == 0);
            }
        }
        assert!(got == bytes(1, 64 << 10));
        own.complete(Completion::of(command.id(), Status::SUCCESS)).await;
    };
    Rig::new().run(Digests::default(), controller, |host| async move {
        assert_eq!(write(&host.drive).await, Ok(()));
        host.queue.close();
        host.ended().await;
    });
}

/// What a controller could not carry out just then is sent again, not for ever.
#[test]
fn what_passes_is_tried_again() {
    let controller = |own: Controller| async move {
        for _ in 0..4 {
            let (command, data) = own.command().await;
            assert_eq!(data.len(), 4096);
            own.complete(Completion::of(command.id(), Status::TRANSIENT_TRANSPORT)).await;
        }
        let (command, _) = own.command().await;
        own.complete(Completion::of(command.id(), Status::SUCCESS)).await;
        for _ in 0..5 {
            let (command, _) = own.command().await;
            own.complete(Completion::of(command.id(), Status::INTERRUPTED)).await;
        }
        // What is to last is not tried again.
        let (command, _) = own.command().await;
        own.complete(Completion::of(command.id(), Status::NOT_READY.lasting())).await;
    };
    Rig::new().run(Digests::default(), controller, |host| async move {
        assert_eq!(host.drive.write(0, &[buffer(1, 4096)], false).await, Ok(()));
        assert_eq!(host.drive.flush().await, Err(DriveError::Fault));
        assert_eq!(host.drive.flush().await, Err(DriveError::Fault));
        host.queue.close();
        host.ended().await;
    });
}

/// Data without its digest is read again (TCP, section 3.3.1.1).
#[test]
fn data_without_its_digest_is_read_again() {
    let digests = Digests { header: true, data: true };
    let controller = |own: Controller| async move {
        for damage in [1, 0] {
            let (command, _) = own.command().await;
            own.data(&whole(&command, 4096), 0, &bytes(9, 4096), damage).await;
            let rest = Transfer { offset: 4096, ..whole(&command, 4096) };
            own.data(&rest, flag::LAST | flag::SUCCESS, &bytes(8, 4096), 0).await;
        }
    };
    Rig::new().run(digests, controller, |host| async move {
        let (result, into) = read(&host.drive).await;
        assert_eq!(result, Ok(()));
        assert!(into[..4096] == bytes(9, 4096)[..] && into[4096..] == bytes(8, 4096)[..]);
        host.queue.close();
        host.ended().await;
    });
}

#[test]
fn a_header_without_its_digest_is_not_believed() {
    let controller = |own: Controller| async move {
        let (command, _) = own.command().await;
        let raw = pdu::response(own.digests, &Completion::of(command.id(), Status::SUCCESS));
        own.send(&[&raw[..], &(crc32c(0, &raw) ^ 1).to_le_bytes()].concat()).await;
    };
    let header = Digests { header: true, data: false };
    Rig::new().run(header, controller, |host| async move {
        let ticket = host.drive.flush();
        host.ended().await;
        assert!(matches!(host.end.get(), Some(End::Wrong(Fatal::HeaderDigest(_)))));
        drop(ticket);
    });
}

#[test]
fn a_controller_that_begins_wrong_is_left() {
    let response =
        |digests| InitializeResponse { version: 0, alignment: 0, digests, data_most: 4096 };
    let none = response(Digests::default());
    let header = Digests { header: true, data: false };
    let cases = [
        (InitializeResponse { version: 1, ..none }, NotBegun::from(Fatal::Unsupported(8))),
        (InitializeResponse { alignment: 32, ..none }, NotBegun::from(Fatal::Field(10))),
        (InitializeResponse { data_most: 4095, ..none }, NotBegun::from(Fatal::Field(12))),
        (InitializeResponse { data_most: 4098, ..none }, NotBegun::from(Fatal::Field(12))),
        (response(header), NotBegun::NoDigests),
    ];
    for (response, why) in cases {
        let world: World<()> = World::new(WorldConfig::new(1));
        let env = world.env(CoreId(0));
        let (own, other) = net::connect(&env, &env, Weather::default());
        let said = Controller { line: other, digests: Digests::default() };
        env.spawn(Priority::First, async move {
            said.receive(INITIALIZE_BYTES).await;
            said.send(&response.encode()).await;
        });
        world.block_on(CoreId(0), async move {
            let how = how(0, ANY_CONTROLLER, Digests::default());
            let begun = begin(Rc::new(own.clone()), &how).await;
            assert_eq!(begun.map(|_| ()), Err(why));
            assert!(own.read_exact(&mut [0]).await.is_err(), "it is closed");
        });
        world.settle();
    }
}
