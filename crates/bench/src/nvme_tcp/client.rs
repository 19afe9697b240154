//! A plain initiator: one I/O queue, a number of commands in flight, everything batched.
//!
//! What arrives is parsed as it comes, and all commands that it ends are followed by new ones in
//! one call. Data is not looked at. The thread looks around a little before it sleeps, as the
//! target does.
//!
//! Invariant: the same code drives the target and the echo, which answers with the same bytes.

use crate::error::BenchError;
use crate::rig::cpu_time;
use crate::stats::Sample;
use nvme::command::{Command, nvm};
use nvme::fabrics::{ANY_CONTROLLER, Connect, ConnectData, NO_FLOW_CONTROL, Property, property};
use nvme::nqn::Nqn;
use nvme::pdu::{
    self, COMMAND_HEADER_BYTES, COMMON_BYTES, Digests, Header, InitializeRequest, Kind,
    SHORT_HEADER_BYTES, flag,
};
use nvme::sgl::Sgl;
use rustix::event::{PollFd, PollFlags, poll};
use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use workload::Random;

/// How long a thread looks around before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// How long it leaves the socket alone between two looks: who looks holds the socket's lock, which
/// the other side needs to deliver.
const PAUSE: Duration = Duration::from_nanos(500);
/// Bytes received at a time.
const RECEIVE: usize = 512 << 10;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Writes, else reads.
    pub is_write: bool,
    /// Bytes of a command's data.
    pub bytes: usize,
    /// Commands in flight.
    pub depth: usize,
}

/// Receives what is there, waiting for something; `None` at the end of the stream.
pub fn receive(stream: &TcpStream, into: &mut [u8]) -> std::io::Result<Option<usize>> {
    let mut until = None;
    let mut stream = stream;
    loop {
        match stream.read(into) {
            Ok(0) => return Ok(None),
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let now = Instant::now();
        if now < *until.get_or_insert(now + SPIN) {
            while now.elapsed() < PAUSE {
                core::hint::spin_loop();
            }
            continue;
        }
        wait(stream, PollFlags::IN)?;
    }
}

/// Waits until a stream can be read or written.
pub fn wait(stream: &TcpStream, flags: PollFlags) -> std::io::Result<()> {
    match poll(&mut [PollFd::new(stream, flags)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends everything on a stream that does not block.
fn send(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    let mut writer = stream;
    while !bytes.is_empty() {
        match writer.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(stream, PollFlags::OUT)?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Who connects to what.
#[derive(Clone, Debug)]
pub struct Address {
    /// Where.
    pub socket: SocketAddr,
    /// The subsystem.
    pub subsystem: Nqn,
    /// The host.
    pub host: Nqn,
}

/// A connected queue.
pub struct Queue {
    stream: TcpStream,
    /// Bytes of a block of its namespace.
    block: usize,
}

fn system(error: std::io::Error) -> BenchError {
    BenchError::System { path: "the connection".into(), error }
}

impl Address {
    /// Connects a queue; gives it with the controller's number.
    pub fn connect(
        &self,
        queue: u16,
        controller: u16,
        depth: u16,
    ) -> Result<(Queue, u16), BenchError> {
        self.try_connect(queue, controller, depth).map_err(system)
    }

    fn try_connect(
        &self,
        queue: u16,
        controller: u16,
        depth: u16,
    ) -> std::io::Result<(Queue, u16)> {
        let mut stream = TcpStream::connect(self.socket)?;
        stream.set_nodelay(true)?;
        stream.write_all(&InitializeRequest::default().encode())?;
        stream.read_exact(&mut [0; pdu::INITIALIZE_BYTES])?;
        let (subsystem, host) = (self.subsystem.clone(), Some(self.host.clone()));
        let data = ConnectData { host_id: [1; 16], controller, subsystem, host }.encode();
        let connect = Connect {
            format: 0,
            queue,
            entries_less_one: depth,
            attributes: NO_FLOW_CONTROL,
            keep_alive_ms: 0,
        };
        let sgl = Sgl::InCapsule { offset: 0, length: data.len() as u32 };
        let number = call(&mut stream, &connect.encode(0, sgl), &data)?;
        let queue = Queue { stream, block: 512 };
        Ok((queue, number as u16))
    }

    /// Connects an admin queue and enables its controller.
    pub fn associate(&self) -> Result<(Queue, u16), BenchError> {
        let (mut admin, controller) = self.connect(0, ANY_CONTROLLER, 31)?;
        let enable = Property { offset: property::CONFIGURATION, wide: false, value: 0x46_0001 };
        call(&mut admin.stream, &enable.encode(0, true), &[]).map_err(system)?;
        Ok((admin, controller))
    }
}

/// A command with its data in the capsule, and its result.
fn call(stream: &mut TcpStream, command: &Command, data: &[u8]) -> std::io::Result<u64> {
    let header = Header::new(Kind::Command, 0, data.len() as u32, 4, Digests::default());
    stream.write_all(&[&pdu::command(&header, command)[..], data].concat())?;
    let mut raw = [0; SHORT_HEADER_BYTES];
    stream.read_exact(&mut raw)?;
    let done = pdu::completion(&raw);
    match done.status.is_success() {
        true => Ok(done.result),
        false => Err(std::io::Error::other(format!("refused: {:?}", done.status))),
    }
}

impl Queue {
    /// A queue of nobody's: the stream's other end answers as a target would.
    pub fn bare(stream: TcpStream) -> Self {
        Self { stream, block: 512 }
    }

    /// The same, of a namespace whose blocks have so many bytes.
    pub fn of_blocks(self, block: usize) -> Self {
        Self { block, ..self }
    }

    /// The connection, on which nothing is under way.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Runs commands at random places of the first `bytes` of namespace 1 for some time.
    pub fn run(
        &mut self,
        shape: Shape,
        bytes: u64,
        span: Duration,
        seed: u64,
    ) -> Result<Sample, BenchError> {
        let places = bytes / shape.bytes as u64;
        let (mut random, end) = (Random::new(seed), Instant::now() + span);
        self.carry_out(shape, || Instant::now() < end, || random.below(places))
    }

    /// Writes the first `bytes` of namespace 1, whole, by commands of this shape.
    pub fn fill(&mut self, shape: Shape, bytes: u64) -> Result<Sample, BenchError> {
        let (places, next) = (bytes / shape.bytes as u64, Cell::new(0));
        let place = || next.replace(next.get() + 1) % places;
        self.carry_out(shape, || next.get() < places, place)
    }

    fn carry_out(
        &mut self,
        shape: Shape,
        goes_on: impl FnMut() -> bool,
        place: impl FnMut() -> u64,
    ) -> Result<Sample, BenchError> {
        self.stream.set_nonblocking(true).map_err(system)?;
        let outcome = self.run_all(shape, goes_on, place);
        self.stream.set_nonblocking(false).map_err(system)?;
        outcome.map_err(system)
    }

    fn run_all(
        &mut self,
        shape: Shape,
        mut goes_on: impl FnMut() -> bool,
        mut place: impl FnMut() -> u64,
    ) -> std::io::Result<Sample> {
        let mut requests = Requests::new(shape, self.block);
        let (start, cpu) = (Instant::now(), cpu_time());
        for id in 0..shape.depth {
            requests.add(id as u16, place());
        }
        requests.send(&self.stream)?;
        let mut replies = Replies::new();
        let (mut in_flight, mut operations) = (shape.depth, 0);
        while in_flight > 0 {
            let more = goes_on();
            let ended = replies.receive(&self.stream)?;
            operations += ended.len() as u64;
            if more {
                ended.iter().for_each(|id| requests.add(*id, place()));
                requests.send(&self.stream)?;
            } else {
                in_flight -= ended.len();
            }
        }
        let cpu = cpu_time().saturating_sub(cpu);
        Ok(Sample { operations, elapsed: start.elapsed(), cpu })
    }
}

/// Commands that are about to be sent.
struct Requests {
    /// One command with its data.
    template: Vec<u8>,
    block: u64,
    blocks: u64,
    out: Vec<u8>,
}

impl Requests {
    fn new(shape: Shape, block: usize) -> Self {
        let length = shape.bytes as u32;
        let (opcode, sgl, data) = match shape.is_write {
            true => (nvm::WRITE, Sgl::InCapsule { offset: 0, length }, vec![0x5a; shape.bytes]),
            false => (nvm::READ, Sgl::Transport { length }, Vec::new()),
        };
        let blocks = shape.bytes / block;
        let command = Command::new(opcode, 0, 1, sgl).with_blocks(0, blocks as u32, false);
        let header = Header::new(Kind::Command, 0, data.len() as u32, 4, Digests::default());
        let template = [&pdu::command(&header, &command)[..], &data].concat();
        let out = Vec::with_capacity(shape.depth * template.len());
        Self { template, block: block as u64, blocks: blocks as u64, out }
    }

    fn add(&mut self, id: u16, place: u64) {
        let at = self.out.len();
        self.out.extend_from_slice(&self.template);
        let command = &mut self.out[at + COMMON_BYTES..at + COMMAND_HEADER_BYTES];
        command[2..4].copy_from_slice(&id.to_le_bytes());
        command[40..48].copy_from_slice(&(place * self.blocks).to_le_bytes());
        debug_assert!(self.block > 0);
    }

    fn send(&mut self, stream: &TcpStream) -> std::io::Result<()> {
        send(stream, &self.out)?;
        self.out.clear();
        Ok(())
    }
}

/// What arrives: commands that have ended.
struct Replies {
    buffer: Vec<u8>,
    /// Bytes of a header that has not come whole.
    begun: usize,
    /// Bytes of data that are still to come, which nobody looks at.
    rest: usize,
    /// The command that ends with them.
    ending: Option<u16>,
    ended: Vec<u16>,
}

impl Replies {
    fn new() -> Self {
        Self { buffer: vec![0; RECEIVE], begun: 0, rest: 0, ending: None, ended: Vec::new() }
    }

    /// Receives once; gives the commands that ended.
    fn receive(&mut self, stream: &TcpStream) -> std::io::Result<&[u16]> {
        self.ended.clear();
        let gone = || std::io::Error::from(ErrorKind::UnexpectedEof);
        let count = receive(stream, &mut self.buffer[self.begun..])?.ok_or_else(gone)?;
        let filled = self.begun + count;
        let mut at = 0;
        while at < filled {
            let skipped = self.rest.min(filled - at);
            at += skipped;
            self.rest -= skipped;
            if self.rest > 0 {
                break;
            }
            self.ended.extend(self.ending.take());
            let Some(raw) = self.buffer[at..filled].first_chunk::<SHORT_HEADER_BYTES>() else {
                break;
            };
            (self.ending, self.rest) = parse(raw)?;
            at += SHORT_HEADER_BYTES;
            if self.rest == 0 {
                self.ended.extend(self.ending.take());
            }
        }
        self.buffer.copy_within(at..filled, 0);
        self.begun = filled - at;
        Ok(&self.ended)
    }
}

/// The command that a PDU ends, and the bytes of data behind its header.
fn parse(raw: &[u8; SHORT_HEADER_BYTES]) -> std::io::Result<(Option<u16>, usize)> {
    let wrong = |what: String| std::io::Error::new(ErrorKind::InvalidData, what);
    let common = raw.first_chunk().expect("8 bytes");
    let header = Header::decode(common).map_err(|error| wrong(error.to_string()))?;
    let data = (header.bytes as usize).saturating_sub(SHORT_HEADER_BYTES);
    match header.kind {
        Kind::Response => {
            let done = pdu::completion(raw);
            match done.status.is_success() {
                true => Ok((Some(done.id), data)),
                false => Err(wrong(format!("a command failed: {:?}", done.status))),
            }
        }
        Kind::ControllerData => {
            let id = u16::from_le_bytes([raw[8], raw[9]]);
            Ok(((header.flags & flag::SUCCESS != 0).then_some(id), data))
        }
        other => Err(wrong(format!("not expected: {other:?}"))),
    }
}
