//! An initiator of iSCSI, each connection a session of its own: no digests, the first of a write's
//! data with its command, all else as the target asks for it.
//!
//! RFC 7143: sections 4.2.2 (numbers of commands and answers), 11.3 (SCSI Command), 11.4 (SCSI
//! Response), 11.7 (Data-In and Data-Out), 11.8 (Ready To Transfer), 11.18 and 11.19 (NOP), 13
//! (keys of a login). SBC-3, 5.11 and 5.34: READ (16), WRITE (16).
//!
//! Invariants
//! - No command is sent before the target takes it (MaxCmdSN): it waits here, without a number.
//! - A slot's number is its task's tag; it is free only after the target's answer.
//!
//! Not covered: a target that asks whether somebody is there while nothing is under way. It is
//! answered only where a connection is used.

use super::line::{Ask, Connection, Line, Protocol};
use io::{Closed, Transport};
use iscsi::pdu::{HEADER, NO_TAG, Pdu, to_initiator, to_target};
use iscsi::{Asked, Name, Opened, UNIT, open};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Bytes of a request at most.
pub const LARGEST: usize = 1 << 20;
/// How long a login may take.
const LIMIT: Duration = Duration::from_secs(30);
/// A PDU's data is filled up to so many bytes.
const PAD: usize = 4;
/// READ (16) and WRITE (16).
const READ: u8 = 0x88;
const WRITE: u8 = 0x8a;
/// Flags: the last of it; of a command, that it reads or writes, and that its task is simple; of
/// Data-In, that the status comes with it; of an answer, that more or less was moved than was asked
/// for.
const FINAL: u8 = 0x80;
const READS: u8 = 0x40;
const WRITES: u8 = 0x20;
const SIMPLE: u8 = 0x01;
const STATUS: u8 = 0x01;
const RESIDUAL: u8 = 0x06;

/// What is wanted of a session.
const WANTS: [(&str, &str); 14] = [
    ("HeaderDigest", "None"),
    ("DataDigest", "None"),
    ("MaxConnections", "1"),
    ("InitialR2T", "No"),
    ("ImmediateData", "Yes"),
    ("MaxRecvDataSegmentLength", "1048576"),
    ("MaxBurstLength", "1048576"),
    ("FirstBurstLength", "262144"),
    ("DefaultTime2Wait", "0"),
    ("DefaultTime2Retain", "0"),
    ("MaxOutstandingR2T", "1"),
    ("DataPDUInOrder", "Yes"),
    ("DataSequenceInOrder", "Yes"),
    ("ErrorRecoveryLevel", "0"),
];

/// What holds where a target says nothing of a key (RFC 7143, sections 13.11, 13.12 and 13.14).
const IMMEDIATE: &str = "Yes";
const SEGMENT: usize = 8192;
const BURST: usize = 65_536;

/// A session.
pub struct Session {
    /// Bytes of a block of the unit.
    block: u64,
    /// Bytes of data that a command takes with it.
    immediate: usize,
    /// Bytes of data that the target takes in a PDU.
    segment: usize,
    moving: Mutex<Moving>,
}

/// What changes with each PDU.
struct Moving {
    /// The number of the next command (CmdSN).
    command: u32,
    /// That of the last that the target takes (MaxCmdSN).
    most: u32,
    /// The next number that the target gives (ExpStatSN).
    status: u32,
    /// Commands that it does not take yet.
    waiting: VecDeque<Vec<u8>>,
}

/// Whether a number comes behind another, or is it (RFC 7143, section 4.2.2.1: they are compared as
/// RFC 1982 says).
const fn is_reached(most: u32, number: u32) -> bool {
    most.wrapping_sub(number) < 1 << 31
}

impl Moving {
    /// Sends a command, which has a place for its numbers.
    fn send(&mut self, out: &mut Vec<u8>, command: impl FnOnce(&mut Vec<u8>)) {
        let at = out.len();
        command(out);
        out[at + 24..at + 28].copy_from_slice(&self.command.to_be_bytes());
        out[at + 28..at + 32].copy_from_slice(&self.status.to_be_bytes());
        self.command = self.command.wrapping_add(1);
    }

    fn takes(&self) -> bool {
        is_reached(self.most, self.command)
    }

    /// Sends what has waited, as far as it is taken now.
    fn release(&mut self, out: &mut Vec<u8>) {
        while self.takes()
            && let Some(command) = self.waiting.pop_front()
        {
            self.send(out, |out| out.extend_from_slice(&command));
        }
    }
}

impl Session {
    fn of(opened: &Opened) -> Self {
        let number =
            |key, usual| opened.value(key).and_then(|own| own.parse().ok()).unwrap_or(usual);
        let segment: usize = number("MaxRecvDataSegmentLength", SEGMENT);
        let immediate = match opened.value("ImmediateData").unwrap_or(IMMEDIATE) {
            IMMEDIATE => segment.min(number("FirstBurstLength", BURST)),
            _ => 0,
        };
        let Opened { command, most, status, .. } = *opened;
        let moving = Moving { command, most, status, waiting: VecDeque::new() };
        let block = opened.told.block.len() as u64;
        Self { block, immediate, segment: segment.max(1), moving: Mutex::new(moving) }
    }

    fn moving(&self) -> MutexGuard<'_, Moving> {
        self.moving.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// Takes note of the numbers that a target's PDU has; `ends` says whether its own counts (that
    /// of a ping or of Ready To Transfer does not).
    fn note(&self, pdu: &Pdu, ends: bool) -> bool {
        let mut moving = self.moving();
        if ends {
            moving.status = pdu.get(24).wrapping_add(1);
        }
        if is_reached(pdu.get(32), moving.most) {
            moving.most = pdu.get(32);
        }
        moving.takes() && !moving.waiting.is_empty()
    }
}

/// Logs in to a target's unit.
///
/// # Errors
/// When it is not let in, or told of no block.
pub fn connect(
    portal: SocketAddr,
    target: &Name,
    initiator: &Name,
) -> std::io::Result<Connection<Iscsi>> {
    let asked = Asked { portal, target, unit: UNIT, initiator, account: None };
    let opened = open(&asked, &WANTS, LIMIT).map_err(std::io::Error::other)?;
    if opened.told.block.is_empty() {
        return Err(std::io::Error::other("the unit has no blocks"));
    }
    let kept = Arc::new(Session::of(&opened));
    Ok(Connection { stream: opened.stream, kept })
}

/// A header with the length of what follows.
fn head(pdu: &Pdu, bytes: usize) -> [u8; HEADER] {
    let mut header = pdu.header;
    header[5..8].copy_from_slice(&(bytes as u32).to_be_bytes()[1..]);
    header
}

/// Appends a PDU with data, filled up.
fn append(out: &mut Vec<u8>, pdu: &Pdu, data: &[u8]) {
    out.extend(head(pdu, data.len()));
    out.extend_from_slice(data);
    out.resize(out.len() + (data.len().next_multiple_of(PAD) - data.len()), 0);
}

/// See the module.
pub struct Iscsi;

impl Protocol for Iscsi {
    type Kept = Arc<Session>;

    fn ask(kept: &Arc<Session>, out: &mut Vec<u8>, slot: u16, (_, at): (u32, u64), what: Ask<'_>) {
        let (code, flag, bytes, data) = match what {
            Ask::Read(bytes) => (READ, READS, bytes, &[][..]),
            Ask::Write(data) => {
                (WRITE, WRITES, data.len(), &data[..data.len().min(kept.immediate)])
            }
        };
        // No data follows that was not asked for: it is the last, whatever is left.
        let mut pdu = Pdu::new(to_target::COMMAND, FINAL | flag | SIMPLE, slot.into());
        pdu.header[9] = UNIT;
        pdu.put(20, bytes as u32);
        pdu.header[32] = code;
        pdu.header[34..42].copy_from_slice(&(at / kept.block).to_be_bytes());
        pdu.put(42, (bytes as u64 / kept.block) as u32);
        let mut moving = kept.moving();
        if moving.takes() && moving.waiting.is_empty() {
            return moving.send(out, |out| append(out, &pdu, data));
        }
        let mut command = Vec::with_capacity(HEADER + data.len() + PAD);
        append(&mut command, &pdu, data);
        moving.waiting.push_back(command);
    }

    async fn receive(line: &Line<Self>) -> Result<(), Closed> {
        let mut pdu = Pdu::new(0, 0, 0);
        line.stream.read_exact(&mut pdu.header).await?;
        let bytes = (pdu.get(4) & 0xff_ffff) as usize;
        let more = usize::from(pdu.header[4]) * PAD;
        pass_over(line, more).await?;
        let ends = match pdu.code() {
            to_initiator::DATA => pdu.flags() & STATUS != 0,
            to_initiator::RESPONSE => true,
            // One that answers nothing has the next number, and does not use it up.
            to_initiator::NOP => pdu.tag() != NO_TAG,
            _ => false,
        };
        if line.kept.note(&pdu, ends) {
            line.send(|out| line.kept.moving().release(out));
        }
        let padded = bytes.next_multiple_of(PAD);
        match pdu.code() {
            to_initiator::DATA => {
                let slot = slot(&pdu)?;
                line.fill(slot, Some((pdu.get(40) as usize, bytes))).await?;
                pass_over(line, padded - bytes).await?;
                if ends { line.answer(slot, is_good(&pdu)) } else { Ok(()) }
            }
            to_initiator::RESPONSE => {
                pass_over(line, padded).await?;
                line.answer(slot(&pdu)?, is_good(&pdu) && pdu.header[2] == 0)
            }
            to_initiator::READY => give(line, &pdu),
            to_initiator::NOP => {
                pass_over(line, padded).await?;
                if pdu.get(20) != NO_TAG {
                    line.send(|out| append(out, &line.kept.pong(&pdu), &[]));
                }
                Ok(())
            }
            _ => Err(Closed),
        }
    }
}

/// The slot of a task.
fn slot(pdu: &Pdu) -> Result<u16, Closed> {
    u16::try_from(pdu.tag()).map_err(|_| Closed)
}

/// Whether a status is GOOD, and all was moved.
fn is_good(pdu: &Pdu) -> bool {
    pdu.header[3] == 0 && pdu.flags() & RESIDUAL == 0
}

/// Reads bytes that nobody wants.
async fn pass_over(line: &Line<Iscsi>, bytes: usize) -> Result<(), Closed> {
    let (mut nobodys, mut left) = ([0; 64], bytes);
    while left > 0 {
        let part = left.min(nobodys.len());
        line.stream.read_exact(&mut nobodys[..part]).await?;
        left -= part;
    }
    Ok(())
}

/// Sends the data that a target is ready for (RFC 7143, section 11.8).
fn give(line: &Line<Iscsi>, ready: &Pdu) -> Result<(), Closed> {
    let data = line.data(slot(ready)?)?;
    let (from, bytes) = (ready.get(40) as usize, ready.get(44) as usize);
    let wanted = data.get(from..from.saturating_add(bytes)).ok_or(Closed)?;
    let status = line.kept.moving().status;
    line.send(|out| {
        let parts = wanted.len().div_ceil(line.kept.segment);
        for (number, part) in wanted.chunks(line.kept.segment).enumerate() {
            let flags = if number + 1 == parts { FINAL } else { 0 };
            let mut pdu = Pdu::new(to_target::DATA, flags, ready.tag());
            pdu.header[8..16].copy_from_slice(&ready.header[8..16]);
            pdu.put(20, ready.get(20));
            pdu.put(28, status);
            pdu.put(36, number as u32);
            pdu.put(40, (from + number * line.kept.segment) as u32);
            append(out, &pdu, part);
        }
    });
    Ok(())
}

impl Session {
    /// What answers a target that asks whether somebody is there (RFC 7143, section 11.18).
    fn pong(&self, ping: &Pdu) -> Pdu {
        let mut pdu = Pdu::new(to_target::NOP, FINAL, NO_TAG);
        pdu.header[8..16].copy_from_slice(&ping.header[8..16]);
        pdu.put(20, ping.get(20));
        let moving = self.moving();
        pdu.put(24, moving.command);
        pdu.put(28, moving.status);
        pdu
    }
}

#[cfg(test)]
#[path = "iscsi_tests.rs"]
mod tests;
