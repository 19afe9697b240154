//! An initiator that asks a target how it is.
//!
//! | stage       | what is sent                        | what leads on                           |
//! |-------------|-------------------------------------|-----------------------------------------|
//! | security    | who it is; CHAP, if it has a secret | the target lets it in                   |
//! | operational | what it takes                       | the target goes to the full phase       |
//! | full        | READ CAPACITY (16), READ (16)       | both are answered with GOOD             |
//! | over        | Logout                              | whatever comes, or nothing              |
//!
//! The first command of a session is told of what happened before it (a unit attention): it is
//! repeated.

use crate::account::{Account, response};
use crate::keys;
use crate::name::Name;
use crate::pdu::{NO_TAG, Pdu, to_initiator, to_target};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Where the target listens.
    pub portal: SocketAddr,
    /// The target.
    pub target: &'a Name,
    /// The unit's number.
    pub unit: u8,
    /// Who asks.
    pub initiator: &'a Name,
    /// By whom, where the target asks for that.
    pub account: Option<&'a Account>,
}

/// Why nothing was read.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Of the connection.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The target does not answer in time.
    #[error("no answer in time")]
    Late,
    /// The target does not let it in.
    #[error("login refused: {} ({class:#04x}{detail:02x})", reason(*class, *detail))]
    Login {
        /// The status' class (RFC 7143, section 11.13.5).
        class: u8,
        /// Its detail.
        detail: u8,
    },
    /// The unit carries a command out with an error.
    #[error("a read ended with SCSI status {status:#04x}, sense {key:x}/{code:02x}/{more:02x}")]
    Command {
        /// The status (SAM-5, 5.3).
        status: u8,
        /// The sense key (SPC-4, 4.5).
        key: u8,
        /// The additional sense code.
        code: u8,
        /// Its qualifier.
        more: u8,
    },
    /// It serves, and a host has it for itself.
    #[error("a host has it reserved")]
    Reserved,
    /// What comes is no iSCSI, or not what was asked for.
    #[error("not what an iSCSI target says: {0}")]
    Protocol(&'static str),
}

/// What a status of a login says (RFC 7143, section 11.13.5).
const fn reason(class: u8, detail: u8) -> &'static str {
    match (class, detail) {
        (1, _) => "the target has moved",
        (2, 1) => "wrong user or secret",
        (2, 2) => "this initiator may not",
        (2, 3) => "there is no such target",
        (2, 4) => "the target is gone",
        (2, 6) => "it has too many connections",
        (2, _) => "a mistake of the initiator",
        (3, 1) => "the service is not there now",
        (3, 2) => "it has no resources",
        _ => "a mistake of the target",
    }
}

type Result<T> = core::result::Result<T, Refusal>;

/// Stages of a login (RFC 7143, section 11.12.3).
const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL: u8 = 3;
/// The flag that leads on.
const TRANSIT: u8 = 0x80;
/// A target needs fewer answers to let somebody in, or to tell of what happened.
const ROUNDS: usize = 16;

/// A session's qualifier is random (ISID, RFC 7143, section 11.12.5: T is 10b).
const RANDOM: u8 = 0x80;

/// GOOD and CHECK CONDITION.
const GOOD: u8 = 0;
const CHECK: u8 = 2;
/// RESERVATION CONFLICT.
const RESERVED: u8 = 0x18;
/// BUSY and TASK SET FULL: it is to be tried again.
const BUSY: [u8; 2] = [0x08, 0x28];
/// After so long.
const AGAIN: Duration = Duration::from_millis(100);
const UNIT_ATTENTION: u8 = 6;

/// Most parts in which data may come.
const PARTS: u32 = 1024;
/// Bytes of what READ CAPACITY (16) answers.
const CAPACITY: u32 = 32;
/// Bytes of a block that there may be.
const BLOCK: core::ops::RangeInclusive<u32> = 512..=1 << 16;

/// What an initiator takes and wants of a session.
const OPERATION: [(&str, &str); 14] = [
    ("HeaderDigest", "None"),
    ("DataDigest", "None"),
    ("MaxConnections", "1"),
    ("InitialR2T", "Yes"),
    ("ImmediateData", "No"),
    ("MaxRecvDataSegmentLength", "65536"),
    ("MaxBurstLength", "65536"),
    ("FirstBurstLength", "65536"),
    ("DefaultTime2Wait", "0"),
    ("DefaultTime2Retain", "0"),
    ("MaxOutstandingR2T", "1"),
    ("DataPDUInOrder", "Yes"),
    ("DataSequenceInOrder", "Yes"),
    ("ErrorRecoveryLevel", "0"),
];

/// What a target tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The first block.
    pub block: Vec<u8>,
    /// The unit's bytes.
    pub bytes: u64,
}

/// A session for who goes on by itself, on which nothing is under way.
#[derive(Debug)]
pub struct Opened {
    /// Its connection.
    pub stream: TcpStream,
    /// The number of the next command (CmdSN, RFC 7143, section 4.2.2.1).
    pub command: u32,
    /// The number of the last command that the target takes (MaxCmdSN).
    pub most: u32,
    /// The next number that the target gives (ExpStatSN).
    pub status: u32,
    /// What the unit tells.
    pub told: Told,
    /// The pairs that the target said.
    pairs: Vec<u8>,
}

impl Opened {
    /// What the target said of a key of the login (RFC 7143, section 13).
    pub fn value(&self, key: &str) -> Option<&str> {
        keys::value(&self.pairs, key)
    }
}

/// Logs in with what an initiator takes and wants of a session, and reads the first block: the unit
/// has told of what happened before. It takes no longer than `limit`.
///
/// # Errors
/// Why it could not.
pub fn open(asked: &Asked<'_>, wants: &[(&str, &str)], limit: Duration) -> Result<Opened> {
    let mut session = Session::connect(asked.portal, limit)?;
    let pairs = session.log_in(asked, wants)?;
    let told = session.read_a_block(asked.unit)?;
    let Session { stream, command, most, status, .. } = session;
    let stream = stream.stream;
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    Ok(Opened { stream, command, most, status, told, pairs })
}

/// Logs in, reads the first block, and logs out. It takes no longer than `limit`.
///
/// # Errors
/// Why it could not.
pub fn ask(asked: &Asked<'_>, limit: Duration) -> Result<Told> {
    let mut session = Session::connect(asked.portal, limit)?;
    session.log_in(asked, &OPERATION)?;
    let outcome = session.read_a_block(asked.unit);
    if outcome.is_ok() {
        // It need not answer.
        let _ = session.log_out();
    }
    outcome
}

fn late(error: io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Refusal::Late,
        ErrorKind::InvalidData => Refusal::Protocol("a PDU that is too long"),
        _ => Refusal::Connection(error),
    }
}

/// A stream that is waited for until a moment.
struct Timed {
    stream: TcpStream,
    end: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Session<S> {
    stream: S,
    /// The number of the next command (CmdSN).
    command: u32,
    /// The last that the target takes (MaxCmdSN).
    most: u32,
    /// The next number that the target gives (ExpStatSN).
    status: u32,
    tag: u32,
}

impl Session<Timed> {
    fn connect(portal: SocketAddr, limit: Duration) -> Result<Self> {
        let end = Instant::now() + limit;
        let stream = TcpStream::connect_timeout(&portal, limit).map_err(late)?;
        stream.set_nodelay(true)?;
        let stream = Timed { stream, end };
        Ok(Self { stream, command: 0, most: 0, status: 0, tag: 0 })
    }
}

impl<S: Read + Write> Session<S> {
    fn send(&mut self, mut pdu: Pdu) -> Result<()> {
        pdu.put(24, self.command);
        pdu.put(28, self.status);
        self.stream.write_all(&pdu.bytes()).map_err(late)
    }

    /// The next PDU that is of this task.
    fn next(&mut self) -> Result<Pdu> {
        for _ in 0..ROUNDS {
            let pdu = Pdu::read(&mut self.stream).map_err(late)?;
            // All that a target sends has it at the same place.
            self.most = pdu.get(32);
            match pdu.code() {
                to_initiator::NOP if pdu.get(20) != NO_TAG => {
                    // It asks whether there is still somebody.
                    let mut answer = Pdu::new(to_target::NOP, 0x80, NO_TAG);
                    answer.put(20, pdu.get(20));
                    answer.header[8..16].copy_from_slice(&pdu.header[8..16]);
                    self.send(answer)?;
                }
                to_initiator::NOP | to_initiator::MESSAGE => {}
                _ if pdu.tag() == self.tag => return Ok(pdu),
                _ => return Err(Refusal::Protocol("an answer to nothing that was asked")),
            }
        }
        Err(Refusal::Protocol("too much that was not asked for"))
    }

    /// Logs in; the pairs that the target says of what is wanted.
    fn log_in(&mut self, asked: &Asked<'_>, wants: &[(&str, &str)]) -> Result<Vec<u8>> {
        let method = if asked.account.is_some() { "CHAP" } else { "None" };
        let who = [
            ("InitiatorName", asked.initiator.as_str()),
            ("SessionType", "Normal"),
            ("TargetName", asked.target.as_str()),
            ("AuthMethod", method),
        ];
        let qualifier = qualifier();
        let mut own = Login { session: self, qualifier, handle: 0 };
        match asked.account {
            None => drop(own.lead_on((SECURITY, OPERATIONAL), &who)?),
            Some(account) => {
                let told = own.say(SECURITY, &who)?;
                if keys::value(&told, "AuthMethod") != Some("CHAP") {
                    return Err(Refusal::Protocol("another way to log in than CHAP"));
                }
                let told = own.say(SECURITY, &[("CHAP_A", "5")])?;
                let number = keys::value(&told, "CHAP_I").and_then(|own| own.parse().ok());
                let challenge = keys::value(&told, "CHAP_C").and_then(keys::bytes);
                let (Some(number), Some(challenge)) = (number, challenge) else {
                    return Err(Refusal::Protocol("no challenge"));
                };
                let answer = keys::digits(&response(number, account.secret(), &challenge));
                let pairs = [("CHAP_N", account.user()), ("CHAP_R", answer.as_str())];
                own.lead_on((SECURITY, OPERATIONAL), &pairs)?;
            }
        }
        own.lead_on((OPERATIONAL, FULL), wants)
    }

    fn read_a_block(&mut self, unit: u8) -> Result<Told> {
        // READ CAPACITY (16), SBC-3, 5.16.
        let mut capacity = [0; 16];
        (capacity[0], capacity[1]) = (0x9e, 0x10);
        capacity[10..14].copy_from_slice(&CAPACITY.to_be_bytes());
        let told = self.command(unit, capacity, CAPACITY)?;
        let bytes = told.get(8..12).and_then(|field| field.first_chunk().copied());
        let bytes = bytes.map_or(0, u32::from_be_bytes);
        if !BLOCK.contains(&bytes) {
            return Err(Refusal::Protocol("blocks of a size that there is not"));
        }
        // The last block's number comes before its size.
        let last = told.first_chunk().map_or(0, |field| u64::from_be_bytes(*field));
        // READ (16), SBC-3, 5.11: one block, the first.
        let mut read = [0; 16];
        (read[0], read[13]) = (0x88, 1);
        let block = self.command(unit, read, bytes)?;
        match block.len() == bytes as usize {
            true => Ok(Told { block, bytes: last.saturating_add(1).saturating_mul(bytes.into()) }),
            false => Err(Refusal::Protocol("less than a block")),
        }
    }

    /// What a command that reads so many bytes gives.
    fn command(&mut self, unit: u8, command: [u8; 16], bytes: u32) -> Result<Vec<u8>> {
        for _ in 0..ROUNDS {
            match self.try_command(unit, command, bytes) {
                Err(Refusal::Command { key: UNIT_ATTENTION, .. }) => {}
                Err(Refusal::Command { status, .. }) if BUSY.contains(&status) => {
                    std::thread::sleep(AGAIN);
                }
                other => return other,
            }
        }
        Err(Refusal::Protocol("it has no end of things to tell"))
    }

    fn try_command(&mut self, unit: u8, command: [u8; 16], bytes: u32) -> Result<Vec<u8>> {
        self.tag += 1;
        // It is final, reads, and is a simple task.
        let mut pdu = Pdu::new(to_target::COMMAND, 0xc1, self.tag);
        pdu.header[9] = unit;
        pdu.put(20, bytes);
        pdu.header[32..].copy_from_slice(&command);
        self.send(pdu)?;
        self.command = self.command.wrapping_add(1);
        let (mut data, mut parts) = (Vec::new(), 0);
        loop {
            let pdu = self.next()?;
            match pdu.code() {
                to_initiator::DATA => {
                    parts += 1;
                    if parts > PARTS {
                        return Err(Refusal::Protocol("a block in too many parts"));
                    }
                    if data.len() + pdu.data.len() > bytes as usize {
                        return Err(Refusal::Protocol("more than was asked for"));
                    }
                    data.extend_from_slice(&pdu.data);
                    // The status may come with the last data.
                    if pdu.flags() & 1 != 0 {
                        self.status = pdu.get(24).wrapping_add(1);
                        return outcome(pdu.header[3], &[]).map(|()| data);
                    }
                }
                to_initiator::RESPONSE => {
                    self.status = pdu.get(24).wrapping_add(1);
                    if pdu.header[2] != 0 {
                        return Err(Refusal::Protocol("a failure of the target"));
                    }
                    return outcome(pdu.header[3], &pdu.data).map(|()| data);
                }
                _ => return Err(Refusal::Protocol("an answer of another kind")),
            }
        }
    }

    fn log_out(&mut self) -> Result<()> {
        self.tag += 1;
        self.send(Pdu::new(to_target::LOGOUT, 0x80, self.tag))?;
        match self.next()?.code() {
            to_initiator::LOGOUT => Ok(()),
            _ => Err(Refusal::Protocol("an answer of another kind")),
        }
    }
}

/// What came of a command, by its status and the data of the response: the sense data's length and
/// the sense data, in fixed or descriptor format (SPC-4, 4.5).
fn outcome(status: u8, data: &[u8]) -> Result<()> {
    let at = |index: usize| data.get(2 + index).copied().unwrap_or_default();
    let (key, code, more) = match (status, at(0) & 0x7f) {
        (GOOD, _) => return Ok(()),
        (RESERVED, _) => return Err(Refusal::Reserved),
        (CHECK, 0x72 | 0x73) => (at(1) & 0xf, at(2), at(3)),
        (CHECK, _) => (at(2) & 0xf, at(12), at(13)),
        _ => (0, 0, 0),
    };
    Err(Refusal::Command { status, key, code, more })
}

/// Five bytes that no other session of this initiator has, most likely.
fn qualifier() -> [u8; 5] {
    use core::hash::{BuildHasher, Hasher};
    // Its keys are random.
    let hash = std::hash::RandomState::new().build_hasher().finish();
    let [one, two, three, four, five, ..] = hash.to_le_bytes();
    [one, two, three, four, five]
}

/// A session that is about to be.
struct Login<'a, S> {
    session: &'a mut Session<S>,
    qualifier: [u8; 5],
    /// What the target calls the session (TSIH).
    handle: u16,
}

impl<S: Read + Write> Login<'_, S> {
    /// Says pairs, without leading on; what the target says.
    fn say(&mut self, stage: u8, pairs: &[(&str, &str)]) -> Result<Vec<u8>> {
        let told = self.exchange(stage << 2, pairs)?;
        match told.flags() & TRANSIT {
            0 => Ok(told.data),
            _ => Err(Refusal::Protocol("it leads on by itself")),
        }
    }

    /// Says pairs, and goes from one stage to another once the target does; what the target says.
    fn lead_on(&mut self, (from, to): (u8, u8), pairs: &[(&str, &str)]) -> Result<Vec<u8>> {
        let (mut pairs, mut all) = (pairs, Vec::new());
        for _ in 0..ROUNDS {
            let told = self.exchange(TRANSIT | from << 2 | to, pairs)?;
            all.extend_from_slice(&told.data);
            if told.flags() & TRANSIT != 0 {
                return match told.flags() & 3 == to {
                    true => Ok(all),
                    false => Err(Refusal::Protocol("it leads elsewhere")),
                };
            }
            pairs = &[];
        }
        Err(Refusal::Protocol("a login without an end"))
    }

    fn exchange(&mut self, flags: u8, pairs: &[(&str, &str)]) -> Result<Pdu> {
        let mut pdu = Pdu::new(to_target::LOGIN, flags, self.session.tag);
        pdu.header[8] = RANDOM;
        pdu.header[9..14].copy_from_slice(&self.qualifier);
        pdu.header[14..16].copy_from_slice(&self.handle.to_be_bytes());
        pdu.data = keys::written(pairs);
        self.session.send(pdu)?;
        let told = self.session.next()?;
        if told.code() != to_initiator::LOGIN {
            return Err(Refusal::Protocol("no answer to a login"));
        }
        let (class, detail) = (told.header[36], told.header[37]);
        if class != 0 {
            return Err(Refusal::Login { class, detail });
        }
        self.handle = u16::from_be_bytes([told.header[14], told.header[15]]);
        self.session.status = told.get(24).wrapping_add(1);
        self.session.command = told.get(28);
        Ok(told)
    }
}

#[cfg(test)]
#[path = "ask_tests.rs"]
mod tests;
