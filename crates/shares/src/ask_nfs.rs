//! A client of NFS version 4.0 that looks shares up and lists a little of each (RFC 7530; its calls
//! by RFC 5531). It has no state at the server, and opens nothing.
//!
//! Invariants
//! - What a server sends is bounded before it is held.
//! - An answer is waited for until a moment that is set at the begin.

use crate::names::ShareName;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket_with};
use rustix::net::{SocketFlags, ipproto};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Ports that only root may have, but for those that servers have (bindresvport(3)).
const FIRST_PORT: u16 = 665;
const LAST_PORT: u16 = 1023;
const OTHERS: &[u16] = &[774, 853, 873, 921, 989, 990, 993, 995];
/// Most bytes of an answer, and most entries of the root that are looked at.
const ANSWER_MOST: usize = 128 << 10;
const ENTRIES_MOST: usize = 4096;
/// Bytes of a directory that are asked for at once: of a share a few do.
const ROOT_BYTES: u32 = 32 << 10;
const SHARE_BYTES: u32 = 2 << 10;

const PROGRAM: u32 = 100_003;
const VERSION: u32 = 4;
const COMPOUND: u32 = 1;
const AUTH_SYS: u32 = 1;
const LOOKUP: u32 = 15;
const PUTROOTFH: u32 = 24;
const READDIR: u32 = 26;
/// Most bytes of what says who the server is (RFC 5531, section 8.2).
const VERIFIER_MOST: usize = 400;
/// A record's last fragment has this bit (RFC 5531, section 11).
const LAST: u32 = 1 << 31;

/// What a server said.
#[derive(Debug, Default)]
pub struct Told {
    /// Names in its root.
    pub names: Vec<String>,
    /// Why a share can't be had.
    pub problems: BTreeMap<ShareName, String>,
}

/// Lists a server's root, and looks up each of these shares.
///
/// # Errors
/// The server does not answer, or not as it has to.
pub fn ask(server: SocketAddr, shares: &[ShareName]) -> io::Result<Told> {
    let end = Instant::now() + LIMIT;
    let mut client = Client { stream: connected(server, end)?, end, calls: 0 };
    let mut told = Told::default();
    let (mut cookie, mut verifier) = (0, [0; 8]);
    loop {
        let listed = client.list(None, (cookie, verifier), ROOT_BYTES)?;
        let List { names, last, verifier: own, is_all } = listed.map_err(refused)?;
        told.names.extend(names);
        if is_all || told.names.len() > ENTRIES_MOST || last == cookie {
            break;
        }
        (cookie, verifier) = (last, own);
    }
    for share in shares {
        if let Err(status) = client.list(Some(share), (0, [0; 8]), SHARE_BYTES)? {
            told.problems.insert(share.clone(), words(status).to_owned());
        }
    }
    Ok(told)
}

fn refused(status: u32) -> io::Error {
    io::Error::other(format!("its root can't be listed: {}", words(status)))
}

/// What a status says (RFC 7530, section 13.1).
const fn words(status: u32) -> &'static str {
    match status {
        1 | 13 => "access is denied",
        2 => "there is no such share",
        5 => "an I/O error",
        70 => "its folder is gone",
        10_008 => "the server is busy",
        10_013 => "the server waits for its clients",
        _ => "the server refuses it",
    }
}

/// A connection from a port that only root may have.
fn connected(server: SocketAddr, end: Instant) -> io::Result<TcpStream> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut last = io::Error::from(ErrorKind::AddrInUse);
    for port in (FIRST_PORT..=LAST_PORT).rev().filter(|port| !OTHERS.contains(port)) {
        let flags = SocketFlags::CLOEXEC;
        let own = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        let any: IpAddr = match server {
            SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        set_socket_timeout(&own, Timeout::Send, Some(left(end)?))?;
        let connects =
            bind(&own, &SocketAddr::new(any, port)).and_then(|()| connect(&own, &server));
        match connects.map_err(io::Error::from) {
            Ok(()) => return Ok(own.into()),
            // Another has it, or had it to the same server a moment ago.
            Err(error) if is_taken(&error) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable)
}

/// What is left of the time.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the server's answer is wrong: {what}"))
}

/// What a directory has.
struct List {
    names: Vec<String>,
    /// Where to go on.
    last: u64,
    verifier: [u8; 8],
    is_all: bool,
}

struct Client {
    stream: TcpStream,
    end: Instant,
    calls: u32,
}

impl Client {
    /// Lists the root, or a share; else the status by which the server refuses that.
    fn list(
        &mut self,
        share: Option<&ShareName>,
        (cookie, verifier): (u64, [u8; 8]),
        bytes: u32,
    ) -> io::Result<Result<List, u32>> {
        let mut call = Words::default();
        // No tag, the minor version, and how many operations.
        call.numbers(&[0, 0, 2 + u32::from(share.is_some()), PUTROOTFH]);
        if let Some(share) = share {
            call.number(LOOKUP);
            call.text(share.as_str().as_bytes());
        }
        call.number(READDIR);
        call.0.extend(cookie.to_be_bytes());
        call.0.extend(verifier);
        // Most bytes of names, and of all; no attributes.
        call.numbers(&[bytes, bytes, 0]);
        let answer = self.call(&call.0)?;
        let mut own = Answer(&answer);
        let status = own.number()?;
        own.opaque(ANSWER_MOST)?;
        let count = own.number()?;
        for _ in 0..count {
            let (operation, status) = (own.number()?, own.number()?);
            if status != 0 {
                return Ok(Err(status));
            }
            if operation == READDIR {
                return own.list().map(Ok);
            }
        }
        if status == 0 { Err(wrong("it has not listed")) } else { Ok(Err(status)) }
    }

    /// Calls the one procedure; the answer without what all answers begin with.
    fn call(&mut self, arguments: &[u8]) -> io::Result<Vec<u8>> {
        self.calls += 1;
        let mut call = Words::default();
        call.numbers(&[self.calls, 0, 2, PROGRAM, VERSION, COMPOUND]);
        // Who asks: root, of no further groups.
        let mut credential = Words::default();
        credential.number(0);
        credential.text(b"palisade");
        credential.numbers(&[0, 0, 0]);
        call.number(AUTH_SYS);
        call.text(&credential.0);
        call.numbers(&[0, 0]);
        call.0.extend(arguments);
        let length = u32::try_from(call.0.len()).map_err(|_| ErrorKind::InvalidInput)?;
        let whole = [&(LAST | length).to_be_bytes()[..], &call.0].concat();
        self.stream.set_write_timeout(Some(left(self.end)?))?;
        self.stream.write_all(&whole)?;
        let record = self.record()?;
        let mut own = Answer(&record);
        let (id, kind, denied) = (own.number()?, own.number()?, own.number()?);
        if (id, kind) != (self.calls, 1) {
            return Err(wrong("it is to another call"));
        }
        if denied != 0 {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "the server lets nobody in"));
        }
        own.number()?;
        own.opaque(VERIFIER_MOST)?;
        match own.number()? {
            0 => Ok(own.0.to_vec()),
            1 | 2 => Err(io::Error::other("who answers does not serve NFS 4")),
            _ => Err(wrong("the server can't read the call")),
        }
    }

    /// A record: all its fragments.
    fn record(&mut self) -> io::Result<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let mut head = [0; 4];
            self.read(&mut head)?;
            let head = u32::from_be_bytes(head);
            let length = (head & !LAST) as usize;
            if record.len() + length > ANSWER_MOST {
                return Err(wrong("it is too long"));
            }
            let from = record.len();
            record.resize(from + length, 0);
            let mut part = record.split_off(from);
            self.read(&mut part)?;
            record.append(&mut part);
            if head & LAST != 0 {
                return Ok(record);
            }
        }
    }

    fn read(&mut self, mut room: &mut [u8]) -> io::Result<()> {
        while !room.is_empty() {
            self.stream.set_read_timeout(Some(left(self.end)?))?;
            match self.stream.read(room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => room = room.split_at_mut(count).1,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What is said, in XDR (RFC 4506).
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn number(&mut self, number: u32) {
        self.0.extend(number.to_be_bytes());
    }

    fn numbers(&mut self, numbers: &[u32]) {
        numbers.iter().for_each(|number| self.number(*number));
    }

    /// Bytes, with their number before them and up to a multiple of 4.
    fn text(&mut self, bytes: &[u8]) {
        // What is said here is short.
        self.number(bytes.len() as u32);
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// What is left of an answer.
struct Answer<'a>(&'a [u8]);

impl<'a> Answer<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (own, rest) = self.0.split_at_checked(count).ok_or_else(|| wrong("it is cut off"))?;
        self.0 = rest;
        Ok(own)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| wrong("it is cut off"))
    }

    fn number(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn opaque(&mut self, most: usize) -> io::Result<&'a [u8]> {
        let count = self.number()? as usize;
        if count > most {
            return Err(wrong("a part of it is too long"));
        }
        let own = self.take(count.next_multiple_of(4))?;
        own.get(..count).ok_or_else(|| wrong("it is cut off"))
    }

    fn list(&mut self) -> io::Result<List> {
        let verifier = self.array()?;
        let (mut names, mut last) = (Vec::new(), 0);
        while self.number()? != 0 {
            last = u64::from_be_bytes(self.array()?);
            names.push(String::from_utf8_lossy(self.opaque(ANSWER_MOST)?).into_owned());
            let words = self.number()? as usize;
            self.take(words.checked_mul(4).ok_or_else(|| wrong("a part of it is too long"))?)?;
            self.opaque(ANSWER_MOST)?;
        }
        Ok(List { names, last, verifier, is_all: self.number()? != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    /// Answers one call with these bytes, after those that answer it.
    fn answered(bytes: Vec<u8>) -> (SocketAddr, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("known");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepted");
            let mut head = [0; 4];
            while stream.read_exact(&mut head).is_ok() {
                let length = (u32::from_be_bytes(head) & !LAST) as usize;
                let mut call = vec![0; length];
                stream.read_exact(&mut call).expect("a call");
                let mut answer = call[..4].to_vec();
                answer.extend(&bytes);
                let length = answer.len() as u32;
                // In two fragments.
                let (one, two) = answer.split_at(6.min(answer.len()));
                let whole = [
                    &(one.len() as u32).to_be_bytes()[..],
                    one,
                    &(LAST | (length - one.len() as u32)).to_be_bytes(),
                    two,
                ];
                if stream.write_all(&whole.concat()).is_err() {
                    return;
                }
            }
        });
        (address, server)
    }

    fn words(numbers: &[u32]) -> Vec<u8> {
        let mut own = Words::default();
        own.numbers(numbers);
        own.0
    }

    /// What an answer has before what is asked for: it is one, accepted, well; no tag.
    const WELL: &[u32] = &[1, 0, 0, 0, 0];

    #[test]
    fn names_are_listed() {
        let mut all = words(WELL);
        all.extend(words(&[0, 0, 2, PUTROOTFH, 0, READDIR, 0, 0, 0]));
        for (cookie, name) in [(3, "größe 1"), (4, "docs")] {
            all.extend(words(&[1, 0, cookie]));
            let mut own = Words::default();
            own.text(name.as_bytes());
            all.extend(own.0);
            all.extend(words(&[1, 0, 0]));
        }
        all.extend(words(&[0, 1]));
        let (server, thread) = answered(all);
        let docs = ShareName::new("docs").expect("a name");
        let told = ask(server, &[docs]).expect("answered");
        assert_eq!(told.names, ["größe 1", "docs"]);
        assert!(told.problems.is_empty(), "{:?}", told.problems);
        thread.join().expect("ended");
    }

    #[test]
    fn a_server_that_refuses_is_told() {
        for (answer, told) in [
            ([WELL, &[13, 0, 2, PUTROOTFH, 0, READDIR, 13]].concat(), "access is denied"),
            ([WELL, &[2, 0, 1, PUTROOTFH, 2]].concat(), "no such share"),
            (vec![1, 1, 0], "lets nobody in"),
            (vec![1, 0, 0, 0, 1], "does not serve NFS 4"),
            (vec![1, 0, 0, 0, 4], "can't read"),
            (vec![0, 0], "another call"),
            ([WELL, &[0, 0, 1, READDIR, 0, 0]].concat(), "cut off"),
            ([WELL, &[0, u32::MAX]].concat(), "too long"),
        ] {
            let (server, thread) = answered(words(&answer));
            let why = ask(server, &[]).expect_err("refused").to_string();
            assert!(why.contains(told), "{why}, not {told}");
            thread.join().expect("ended");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Answer(&bytes).list();
            let _ = Answer(&bytes).opaque(100);
        }
    }
}
