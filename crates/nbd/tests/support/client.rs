//! A client that speaks bytes, written from proto.md and not from this crate's encoders.

use super::transport::Pipe;
use std::rc::Rc;

pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const SET_CONTEXT: u32 = 10;
pub const ACK: u32 = 1;
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const ZEROES: u16 = 6;
pub const STATUS: u16 = 7;
pub const FUA: u16 = 1;
pub const DF: u16 = 4;

pub fn option(code: u32, data: &[u8]) -> Vec<u8> {
    let mut out = b"IHAVEOPT".to_vec();
    out.extend(code.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
    out
}

pub fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text].concat()
}

/// Data of `NBD_OPT_GO` and `NBD_OPT_INFO`.
pub fn go(name: &[u8], infos: &[u16]) -> Vec<u8> {
    let mut out = string(name);
    out.extend((infos.len() as u16).to_be_bytes());
    out.extend(infos.iter().flat_map(|info| info.to_be_bytes()));
    out
}

/// Data of the metadata context options.
pub fn contexts(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut out = string(name);
    out.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| out.extend(string(query)));
    out
}

pub fn request(kind: u16, flags: u16, cookie: u64, offset: u64, bytes: u32) -> Vec<u8> {
    let mut out = 0x2560_9513u32.to_be_bytes().to_vec();
    out.extend(flags.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(offset.to_be_bytes());
    out.extend(bytes.to_be_bytes());
    out
}

/// Client flags, structured replies, `base:allocation`, and GO for "vol".
pub fn hello(structured: bool) -> Vec<u8> {
    let mut out = 3u32.to_be_bytes().to_vec();
    if structured {
        out.extend(option(8, &[]));
        out.extend(option(SET_CONTEXT, &contexts(b"vol", &[b"base:allocation"])));
    }
    out.extend(option(GO, &go(b"vol", &[])));
    out
}

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub done: bool,
    pub kind: u16,
    pub cookie: u64,
    pub payload: Vec<u8>,
}

pub struct Client {
    pub pipe: Rc<Pipe>,
}

impl Client {
    pub fn new(pipe: Rc<Pipe>) -> Self {
        Self { pipe }
    }

    pub fn send(&self, bytes: &[u8]) {
        self.pipe.send(bytes);
    }

    pub async fn take(&self, n: usize) -> Vec<u8> {
        self.pipe.receive(n).await.expect("the server closed")
    }

    /// True if the server closes without sending anything more.
    pub async fn is_closed(&self) -> bool {
        self.pipe.receive(1).await.is_none()
    }

    /// Takes the greeting and answers it.
    pub async fn greet(&self, flags: u32) {
        assert_eq!(self.take(18).await, *b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&flags.to_be_bytes());
    }

    /// Sends an option and takes its replies up to the last one.
    pub async fn ask(&self, code: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send(&option(code, data));
        self.answers(code).await
    }

    pub async fn answers(&self, code: u32) -> Vec<(u32, Vec<u8>)> {
        let mut replies = Vec::new();
        loop {
            let head = self.take(20).await;
            assert_eq!((u64_at(&head, 0), u32_at(&head, 8)), (0x3_e889_0455_65a9, code));
            let kind = u32_at(&head, 12);
            replies.push((kind, self.take(u32_at(&head, 16) as usize).await));
            if kind == ACK || kind >> 31 == 1 {
                return replies;
            }
        }
    }

    /// The whole handshake for "vol".
    pub async fn enter(&self, structured: bool) {
        assert_eq!(self.take(18).await.len(), 18);
        self.send(&hello(structured));
        if structured {
            assert_eq!(self.answers(8).await, [(ACK, vec![])]);
            assert_eq!(self.answers(SET_CONTEXT).await.len(), 2);
        }
        assert_eq!(self.answers(GO).await.last(), Some(&(ACK, vec![])));
    }

    /// Sends a request without payload.
    pub fn request(&self, kind: u16, flags: u16, cookie: u64, offset: u64, bytes: u32) {
        self.send(&request(kind, flags, cookie, offset, bytes));
    }

    pub fn write(&self, flags: u16, cookie: u64, offset: u64, data: &[u8]) {
        self.send(&request(WRITE, flags, cookie, offset, data.len() as u32));
        self.send(data);
    }

    /// Takes a simple reply: cookie and error.
    pub async fn simple(&self) -> (u64, u32) {
        let head = self.take(16).await;
        assert_eq!(u32_at(&head, 0), 0x6744_6698);
        (u64_at(&head, 8), u32_at(&head, 4))
    }

    pub async fn chunk(&self) -> Chunk {
        let head = self.take(20).await;
        assert_eq!(u32_at(&head, 0), 0x668e_33ef);
        let payload = self.take(u32_at(&head, 16) as usize).await;
        let (flags, kind) = (u16_at(&head, 4), u16_at(&head, 6));
        Chunk { done: flags == 1, kind, cookie: u64_at(&head, 8), payload }
    }

    /// Takes one command's error chunk: cookie and error.
    pub async fn error(&self) -> (u64, u32) {
        let chunk = self.chunk().await;
        assert!(chunk.done && chunk.kind >> 15 == 1, "no error: {chunk:?}");
        (chunk.cookie, u32_at(&chunk.payload, 0))
    }
}
