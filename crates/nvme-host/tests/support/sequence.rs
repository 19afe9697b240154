//! A case of the fuzz target: bytes choose what a host asks, and what a controller sends to it.
//!
//! Purpose: whatever a controller sends in whatever state of a connection, the connection ends,
//! each request is held, comes back or ends, and nothing is left. Checksums are put right, and most
//! headers, so that what lies behind them is reached.

use io::{Buf, BufMut, Drive, DriveError, DriveInfo, Env, Pool, Priority, Transport as _};
use nvme::command::Completion;
use nvme::fabrics::ANY_CONTROLLER;
use nvme::nqn::Nqn;
use nvme::pdu::{
    self, COMMON_BYTES, Digests, Header, INITIALIZE_BYTES, InitializeRequest, InitializeResponse,
    Kind, Transfer,
};
use nvme::status::Status;
use palisade_nvme_host::requests::Association;
use palisade_nvme_host::{Begin, Can, Queue, RemoteDrive, Requests, Shape, begin};
use parity::crc32c;
use sim::net::{self, End, Weather};
use sim::{SimEnv, World, WorldConfig};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use units::{CoreId, Nanos};

const SHAPE: Shape = Shape { commands: 8, data_most: 8 << 10, capsule_data: 4 << 10 };
/// Requests of a case, and PDUs that the controller sends.
const ASKED: usize = 12;
const SENT: usize = 32;

/// Takes one choice after another from the input; 0 when it is used up.
struct Choices(VecDeque<u8>);

impl Choices {
    fn byte(&mut self) -> u8 {
        self.0.pop_front().unwrap_or(0)
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// The controller's end of a connection.
struct Controller {
    line: End<()>,
    digests: Cell<Digests>,
    /// Identifiers of commands that came.
    came: RefCell<Vec<u16>>,
}

impl Controller {
    async fn receive(&self, count: usize) -> Option<Vec<u8>> {
        let mut all = vec![0; count];
        self.line.read_exact(&mut all).await.ok().map(|()| all)
    }

    async fn send(&self, bytes: &[u8]) {
        // The host may have had enough.
        let _ = self.line.write_all(&mut [IoSlice::new(bytes)]).await;
    }

    /// Takes what the host sends, to its end, and notes commands.
    async fn take_all(&self) -> Option<()> {
        loop {
            let common = self.receive(COMMON_BYTES).await?;
            let whole = u32::from_le_bytes(common[4..8].try_into().expect("four")) as usize;
            let rest = self.receive(whole - COMMON_BYTES).await?;
            if common[0] == 4 {
                self.came.borrow_mut().push(u16::from_le_bytes([rest[2], rest[3]]));
            }
        }
    }

    /// Exchanges parameters, and accepts the Connect or refuses it.
    async fn accept(&self, status: Status) -> Option<()> {
        let request = self.receive(INITIALIZE_BYTES).await?;
        let request = InitializeRequest::decode(request.as_slice().try_into().expect("whole"));
        self.digests.set(request.digests);
        let digests = request.digests;
        let response = InitializeResponse { version: 0, alignment: 0, digests, data_most: 4096 };
        self.send(&response.encode()).await;
        let common = self.receive(COMMON_BYTES).await?;
        let whole = u32::from_le_bytes(common[4..8].try_into().expect("four")) as usize;
        self.receive(whole - COMMON_BYTES).await?;
        let done = Completion { result: 1, ..Completion::of(0, status) };
        self.send(&self.with_digest(&pdu::response(digests, &done))).await;
        Some(())
    }

    /// A header, with its digest if it is to have one.
    fn with_digest(&self, header: &[u8]) -> Vec<u8> {
        let mut all = header.to_vec();
        if self.digests.get().header {
            all.extend(crc32c(0, header).to_le_bytes());
        }
        all
    }

    /// One PDU, or some bytes.
    fn pdu(&self, choices: &mut Choices) -> Vec<u8> {
        let (what, which) = (choices.byte(), choices.byte());
        let came = self.came.borrow();
        // Mostly of a command that came, at times of one that was answered before, or of nobody.
        let command = match came.get(usize::from(which) % came.len().max(1)) {
            Some(id) if which < 240 => *id,
            _ => u16::from(which) << 6 | u16::from(choices.byte() % 8),
        };
        let digests = self.digests.get();
        match what % 8 {
            0 => {
                let mut raw = vec![0; usize::from(choices.byte() % 80)];
                raw.iter_mut().for_each(|byte| *byte = choices.byte());
                raw
            }
            1 => {
                // A header with one byte that is another.
                let header = Header::new(Kind::Response, 0, 0, 4, digests);
                let mut raw = pdu::response(digests, &Completion::of(command, Status::SUCCESS));
                raw[..COMMON_BYTES].copy_from_slice(&header.encode());
                raw[usize::from(choices.byte()) % COMMON_BYTES] = choices.byte();
                self.with_digest(&raw)
            }
            2 | 3 => {
                let bytes = 256 * u32::from(choices.byte() % 36);
                let offset = 512 * u32::from(choices.byte() % 20);
                let flags = choices.byte() & 0b1100;
                let header = Header::new(Kind::ControllerData, flags, bytes, 4, digests);
                let transfer = Transfer { command, tag: 0, offset, bytes };
                let mut all = self.with_digest(&transfer.encode(&header));
                let data = vec![9; bytes as usize];
                all.extend(&data);
                if digests.data {
                    let damage = u32::from(choices.byte() % 8 == 0);
                    all.extend(crc32c(0, &data).wrapping_add(damage).to_le_bytes());
                }
                all
            }
            4 => {
                let bytes = match choices.byte() {
                    255 => u32::MAX,
                    small => 512 * u32::from(small % 20),
                };
                let offset = 512 * u32::from(choices.byte() % 20);
                let header = Header::new(Kind::ReadyToTransfer, 0, 0, 4, digests);
                let tag = u16::from(choices.byte());
                self.with_digest(&Transfer { command, tag, offset, bytes }.encode(&header))
            }
            5 => {
                let header = Header::new(Kind::ControllerTermination, 0, 0, 4, digests);
                let mut raw = vec![0; 24];
                raw[..COMMON_BYTES].copy_from_slice(&header.encode());
                raw
            }
            _ => {
                let status = match choices.byte() {
                    other @ 200.. => Status(u16::from(other) << 8 | u16::from(choices.byte())),
                    code if code % 4 == 1 => [
                        Status::NOT_READY,
                        Status::ACCESS_CHANGES,
                        Status::TRANSIENT_TRANSPORT,
                        Status::UNRECOVERED_READ,
                    ][usize::from(code / 4 % 4)],
                    _ => Status::SUCCESS,
                };
                self.with_digest(&pdu::response(digests, &Completion::of(command, status)))
            }
        }
    }
}

fn buffer(count: usize) -> Buf {
    Pool::single(count).freeze()
}

fn empty(count: usize) -> BufMut {
    Pool::single(count)
}

/// What a host asks of a drive, its tickets let go at once or held to the end.
fn ask(drive: &RemoteDrive, choices: &mut Choices, held: &mut Vec<Box<dyn core::any::Any>>) {
    for _ in 0..1 + usize::from(choices.byte()) % ASKED {
        let at = 512 * u64::from(choices.byte() % 64);
        let count = 512 * (1 + usize::from(choices.byte() % 32));
        let ticket: Box<dyn core::any::Any> = match choices.byte() % 6 {
            0 | 1 => Box::new(drive.read(at, empty(count))),
            2 | 3 => Box::new(drive.write(at, &[buffer(512), buffer(count)], false)),
            4 => Box::new(drive.write_zeroes(at, count as u64)),
            _ => Box::new(drive.discard(at, count as u64)),
        };
        if choices.byte() % 4 > 0 {
            held.push(ticket);
        }
    }
}

/// Begins with a controller, and asks what the choices say.
async fn host(
    env: SimEnv<()>,
    line: End<()>,
    how: Begin,
    (choices, requests): (Rc<RefCell<Choices>>, Rc<Requests>),
) {
    let Ok(begun) = begin(Rc::new(line), &how).await else { return };
    let queue: Rc<Queue<End<()>>> = begun.queue(SHAPE, requests.clone(), Association::default());
    let info = DriveInfo { bytes: 1 << 20, block_bytes: 512, volatile_cache: true, inline: false };
    let can = Can { write_zeroes: true, discard: true };
    let drive = RemoteDrive::new(requests.clone(), 1, info, can);
    let mut held = Vec::new();
    ask(&drive, &mut choices.borrow_mut(), &mut held);
    queue.clone().run(&env).await;
    assert_eq!(queue.under_way(), 0, "a connection that ended has nothing under way");
}

/// Runs the case that `input` chooses.
///
/// # Panics
/// If the host does, or leaves something.
pub fn run(input: &[u8]) {
    let mut choices = Choices(input.iter().copied().collect());
    let world: World<()> = World::new(WorldConfig::new(u64::from(choices.byte())));
    let env = world.env(CoreId(0));
    let bits = choices.byte();
    let piece_most = [0, 1, 7, 100][usize::from(bits >> 2 & 3)];
    let (own, other) = net::connect(&env, &env, Weather { piece_most, ..Weather::default() });
    let digests = Digests { header: bits & 1 != 0, data: bits & 2 != 0 };
    let nqn = |name: &str| Nqn::new(name).expect("a name");
    let how = Begin {
        queue: 1,
        entries: 16,
        controller: ANY_CONTROLLER,
        keep_alive_ms: 0,
        digests,
        host: nqn("nqn.2026-11.example:h"),
        host_id: [5; 16],
        subsystem: nqn("nqn.2026-11.example:s"),
    };
    let stage = bits >> 4 & 3;
    let choices = Rc::new(RefCell::new(choices));
    let requests = Rc::new(Requests::default());
    let (asked, all) = (requests.clone(), choices.clone());
    env.spawn(Priority::First, host(env.clone(), own, how, (all, asked)));
    let controller = Rc::new(Controller {
        line: other.clone(),
        digests: Cell::default(),
        came: RefCell::default(),
    });
    let said = controller.clone();
    let its = env.clone();
    env.spawn(Priority::First, async move {
        if stage > 0 {
            let status = if stage == 1 { Status::CONNECT_HOST } else { Status::SUCCESS };
            said.accept(status).await;
            let taking = said.clone();
            its.spawn(Priority::First, async move {
                taking.take_all().await;
            });
        }
        for _ in 0..SENT {
            // The host has asked, or is waiting.
            its.sleep(Nanos::from_micros(10)).await;
            let pdu = {
                let mut choices = choices.borrow_mut();
                if choices.is_over() {
                    break;
                }
                said.pdu(&mut choices)
            };
            said.send(&pdu).await;
        }
        its.sleep(Nanos::from_millis(1)).await;
        said.line.close();
    });
    world.run_for(Nanos::from_millis(50));
    other.close();
    // What is held ends when its association can't carry it out any more.
    requests.refuse(DriveError::Gone);
    requests.release(Association::default());
    world.run_for(Nanos::from_millis(20_000));
    assert_eq!(world.waiting(), Vec::<String>::new(), "tasks are left");
    assert!(requests.is_idle(), "requests are left");
}
