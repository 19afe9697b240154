//! The yardstick: a thread that answers commands with bytes as a target would, and does nothing
//! else. It batches as much as the target does: all commands that one receive brings are answered
//! by one send.

use super::Cpus;
use super::client::{Queue, receive, wait};
use crate::error::BenchError;
use nvme::command::{Completion, nvm};
use nvme::pdu::{self, Digests, Header, Kind, Transfer, flag};
use nvme::status::Status;
use rustix::event::PollFlags;
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Most slices of a send, as the target's.
const SLICES: usize = 64;

/// A running echo; it ends with its connection.
pub struct Echo {
    /// Where it listens.
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// Starts one on a CPU, for one connection whose commands move `bytes`.
    pub fn start(cpus: &Cpus, cpu: usize, bytes: usize) -> Result<Self, BenchError> {
        let system = |error| BenchError::System { path: "the echo".into(), error };
        let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
        let address = listener.local_addr().map_err(system)?;
        let cpus = cpus.clone();
        let serve = move || {
            cpus.pin(cpu);
            // It ends when the client does.
            let _ = listener.accept().and_then(|(stream, _)| serve(&stream, bytes));
        };
        Ok(Self { address, thread: Some(std::thread::spawn(serve)) })
    }

    /// Its one connection.
    pub fn connect(&self) -> Result<Queue, BenchError> {
        let system = |error| BenchError::System { path: "the echo".into(), error };
        let stream = TcpStream::connect(self.address).map_err(system)?;
        stream.set_nodelay(true).map_err(system)?;
        Ok(Queue::bare(stream))
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of it was told.
            let _ = thread.join();
        }
    }
}

fn serve(stream: &TcpStream, bytes: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let (mut buffer, mut begun, mut rest) = (vec![0; nvme_target::limits::AHEAD], 0, 0);
    let data = vec![0x5a; bytes];
    let mut heads = Vec::new();
    while let Some(count) = receive(stream, &mut buffer[begun..])? {
        let filled = begun + count;
        let mut at = 0;
        heads.clear();
        loop {
            let skipped = (filled - at).min(rest);
            at += skipped;
            rest -= skipped;
            let Some(raw) = buffer[at..filled].first_chunk::<{ pdu::COMMAND_HEADER_BYTES }>()
            else {
                break;
            };
            rest = u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]) as usize - raw.len();
            at += raw.len();
            heads.push(head(raw, bytes));
        }
        buffer.copy_within(at..filled, 0);
        begun = filled - at;
        answer(stream, &heads, &data)?;
    }
    Ok(())
}

/// The header of an answer, and whether data follows.
fn head(raw: &[u8; pdu::COMMAND_HEADER_BYTES], bytes: usize) -> ([u8; 24], bool) {
    let (opcode, id) = (raw[8], u16::from_le_bytes([raw[10], raw[11]]));
    if opcode != nvm::READ {
        return (pdu::response(Digests::default(), &Completion::of(id, Status::SUCCESS)), false);
    }
    let flags = flag::LAST | flag::SUCCESS;
    let bytes = bytes as u32;
    let header = Header::new(Kind::ControllerData, flags, bytes, 4, Digests::default());
    (Transfer { command: id, tag: 0, offset: 0, bytes }.encode(&header), true)
}

fn answer(mut stream: &TcpStream, heads: &[([u8; 24], bool)], data: &[u8]) -> std::io::Result<()> {
    for batch in heads.chunks(SLICES / 2) {
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(SLICES);
        for (head, has_data) in batch {
            slices.push(IoSlice::new(head));
            if *has_data {
                slices.push(IoSlice::new(data));
            }
        }
        let mut slices = &mut slices[..];
        while !slices.is_empty() {
            match stream.write_vectored(slices) {
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait(stream, PollFlags::OUT)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
