//! A small NBD client that keeps several requests on the way.
//!
//! Wire format: <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, fixed
//! newstyle with `NBD_OPT_EXPORT_NAME` and simple replies. All integers are big-endian.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const OPTION_MAGIC: &[u8; 8] = b"IHAVEOPT";
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// `NBD_FLAG_C_FIXED_NEWSTYLE` and `NBD_FLAG_C_NO_ZEROES`.
const CLIENT_FLAGS: u32 = 3;
const OPTION_EXPORT_NAME: u32 = 1;

/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// `NBD_CMD_FLAG_FUA`.
pub const FUA: u16 = 1;

/// What a request wants (`NBD_CMD_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Kind {
    Read = 0,
    Write = 1,
    Flush = 3,
    WriteZeroes = 6,
}

/// A connection after its handshake.
pub struct Client {
    stream: UnixStream,
    /// Size of the export in bytes.
    pub size: u64,
    /// The connection is over with the first reply that is an error. Else there must be none.
    pub ends_by_error: bool,
}

impl Client {
    /// Connects and enters the transmission phase.
    pub fn connect(socket: &Path, export: &str) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut hello = [0; 18];
        stream.read_exact(&mut hello)?;
        assert_eq!(&hello[..8], b"NBDMAGIC");
        assert_eq!(&hello[8..16], OPTION_MAGIC);
        let mut answer = CLIENT_FLAGS.to_be_bytes().to_vec();
        answer.extend(OPTION_MAGIC);
        answer.extend(OPTION_EXPORT_NAME.to_be_bytes());
        answer.extend((export.len() as u32).to_be_bytes());
        answer.extend(export.as_bytes());
        stream.write_all(&answer)?;
        let mut about = [0; 10];
        stream.read_exact(&mut about)?;
        let size = u64::from_be_bytes(about[..8].try_into().expect("8 bytes"));
        Ok(Self { stream, size, ends_by_error: false })
    }

    /// Sends a request; `data` is a write's.
    pub fn send(
        &mut self,
        kind: Kind,
        flags: u16,
        cookie: u64,
        (offset, length): (u64, u32),
        data: &[u8],
    ) -> io::Result<()> {
        let mut request = Vec::with_capacity(28 + data.len());
        request.extend(REQUEST_MAGIC.to_be_bytes());
        request.extend(flags.to_be_bytes());
        request.extend((kind as u16).to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request)
    }

    /// Cookie and error of the next reply.
    fn reply(&mut self) -> io::Result<(u64, u32)> {
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        assert_eq!(reply[..4], SIMPLE_REPLY_MAGIC.to_be_bytes());
        let error = u32::from_be_bytes(reply[4..8].try_into().expect("4 bytes"));
        Ok((u64::from_be_bytes(reply[8..].try_into().expect("8 bytes")), error))
    }

    /// The cookie of the next reply, which must not be an error. A read's data is still to come.
    pub fn receive(&mut self) -> io::Result<u64> {
        let (cookie, error) = self.reply()?;
        if error != 0 && self.ends_by_error {
            return Err(io::ErrorKind::Other.into());
        }
        assert_eq!(error, 0, "the server answered with an error");
        Ok(cookie)
    }

    /// As [`Client::receive`]; nothing if no reply comes within a time.
    pub fn receive_within(&mut self, time: Duration) -> io::Result<Option<u64>> {
        self.stream.set_read_timeout(Some(time))?;
        let received = self.receive();
        self.stream.set_read_timeout(Some(PATIENCE))?;
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            other => other.map(Some),
        }
    }

    /// Says that nothing more is sent; what was asked may still be answered.
    pub fn finish(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    /// The data of a read that was answered.
    pub fn receive_data(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(into)
    }

    /// Reads and waits for the data.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.send(Kind::Read, 0, offset, (offset, into.len() as u32), &[])?;
        assert_eq!(self.receive()?, offset);
        self.stream.read_exact(into)
    }

    /// Whether there is data to be read; waits for it.
    pub fn can_read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<bool> {
        self.send(Kind::Read, 0, offset, (offset, into.len() as u32), &[])?;
        let (cookie, error) = self.reply()?;
        assert_eq!(cookie, offset);
        if error == 0 {
            self.stream.read_exact(into)?;
        }
        Ok(error == 0)
    }

    /// Whether a write is done; false also if the server has gone.
    pub fn can_write(&mut self, offset: u64, data: &[u8]) -> bool {
        let sent = self.send(Kind::Write, 0, offset, (offset, data.len() as u32), data);
        sent.is_ok() && self.reply().is_ok_and(|reply| reply == (offset, 0))
    }

    /// Writes and waits until it is done.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.send(Kind::Write, 0, offset, (offset, data.len() as u32), data)?;
        assert_eq!(self.receive()?, offset);
        Ok(())
    }
}
