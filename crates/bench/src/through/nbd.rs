//! A client of NBD: fixed newstyle, simple replies.
//!
//! <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>: "Newstyle negotiation",
//! `NBD_OPT_EXPORT_NAME`; "Request message"; "Simple reply message".

use super::line::{Ask, Line, Protocol};
use io::{Closed, Transport};
use nbd::wire::{
    FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, OPTION_MAGIC, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, command,
    option,
};
use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpStream};

/// Bytes of the server's greeting, and of its answer to the choice of an export.
const GREETING: usize = 18;
const EXPORT: usize = 10;
/// Bytes of a simple reply's header.
const REPLY: usize = 16;

/// A connection to the export of this name.
///
/// # Errors
/// When there is no server, or it has no such export.
pub fn connect(address: SocketAddr, name: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.read_exact(&mut [0; GREETING])?;
    let flags = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    let mut choice = flags.to_be_bytes().to_vec();
    choice.extend(OPTION_MAGIC.to_be_bytes());
    choice.extend(option::EXPORT_NAME.to_be_bytes());
    choice.extend((name.len() as u32).to_be_bytes());
    choice.extend(name.as_bytes());
    stream.write_all(&choice)?;
    stream.read_exact(&mut [0; EXPORT])?;
    Ok(stream)
}

/// See the module.
pub struct Nbd;

impl Protocol for Nbd {
    type Kept = ();

    fn ask((): &(), out: &mut Vec<u8>, slot: u16, (_, at): (u32, u64), what: Ask<'_>) {
        let (kind, bytes, data) = match what {
            Ask::Read(bytes) => (command::READ, bytes, &[][..]),
            Ask::Write(data) => (command::WRITE, data.len(), data),
        };
        out.extend(REQUEST_MAGIC.to_be_bytes());
        out.extend(0u16.to_be_bytes());
        out.extend(kind.to_be_bytes());
        out.extend(u64::from(slot).to_be_bytes());
        out.extend(at.to_be_bytes());
        out.extend((bytes as u32).to_be_bytes());
        out.extend(data);
    }

    async fn receive(line: &Line<Self>) -> core::result::Result<(), Closed> {
        let mut header = [0; REPLY];
        line.stream.read_exact(&mut header).await?;
        let [m0, m1, m2, m3, e0, e1, e2, e3, cookie @ ..] = header;
        let is_reply = u32::from_be_bytes([m0, m1, m2, m3]) == SIMPLE_REPLY_MAGIC;
        let slot = u16::try_from(u64::from_be_bytes(cookie)).ok().filter(|_| is_reply);
        let slot = slot.ok_or(Closed)?;
        let succeeded = [e0, e1, e2, e3] == [0; 4];
        if succeeded && line.reads(slot) {
            line.fill(slot, None).await?;
        }
        line.answer(slot, succeeded)
    }
}
