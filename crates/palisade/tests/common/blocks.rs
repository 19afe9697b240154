//! What every block of a volume may hold, and a load that keeps the account.
//!
//! Every write gives its blocks a new version; a block's bytes follow from its number and its
//! version. For each block the writes are kept that a reader may still see:
//!
//! - A write that is sent is added.
//! - A write that is acknowledged removes all that had ended (acknowledged, or cut off by a
//!   crash) before it was sent; one that was under way beside it may have come later, and stays.
//! - A look that finds a version removes all others, if nothing is under way.
//!
//! Invariant: a block that holds none of its kept writes is corrupt.

use super::Rng;
use super::nbd::{Client, FUA, Kind};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Requests under way at the same time.
const DEPTH: usize = 16;
/// Most blocks of a request: 256 KiB.
const BLOCKS_MAX: u64 = 64;

/// A write that a block may hold. Moments are counted in requests and replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Write {
    version: u64,
    zeroes: bool,
    sent: u64,
    ended: Option<u64>,
}

/// The account of one volume.
pub struct Blocks {
    kept: Vec<Vec<Write>>,
    moment: u64,
    version: u64,
}

struct Flight {
    first: usize,
    count: usize,
    version: u64,
}

impl Blocks {
    /// A new volume of `bytes`, all zeros.
    pub fn new(bytes: u64) -> Self {
        let zeroes = Write { version: 0, zeroes: true, sent: 0, ended: Some(0) };
        Self { kept: vec![vec![zeroes]; bytes as usize / BLOCK], moment: 1, version: 0 }
    }

    /// Bytes of a block: two words that name it, then noise from them.
    pub fn content(block: usize, version: u64) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        let number = block as u64;
        Rng(number.rotate_left(40) ^ version).fill(&mut bytes);
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..16].copy_from_slice(&version.to_le_bytes());
        bytes
    }

    fn send(&mut self, client: &mut Client, rng: &mut Rng) -> io::Result<(u64, Option<Flight>)> {
        let cookie = self.moment;
        self.moment += 1;
        let dice = rng.below(100);
        if dice < 2 {
            client.send(Kind::Flush, 0, cookie, (0, 0), &[])?;
            return Ok((cookie, None));
        }
        let blocks = self.kept.len() as u64;
        let most = if rng.below(2) == 0 { 4 } else { BLOCKS_MAX };
        let count = 1 + rng.below(most) as usize;
        // Half of the requests meet in one place, so that they wait for each other's stripes.
        let end = if rng.below(2) == 0 { blocks } else { blocks.min(512) };
        let first = rng.below(end - count as u64 + 1) as usize;
        self.version += 1;
        let (version, zeroes) = (self.version, dice < 10);
        let write = Write { version, zeroes, sent: cookie, ended: None };
        let mut data = Vec::new();
        for block in first..first + count {
            self.kept[block].push(write);
            if !zeroes {
                data.extend(Self::content(block, version));
            }
        }
        let flags = if dice.is_multiple_of(5) { FUA } else { 0 };
        let kind = if zeroes { Kind::WriteZeroes } else { Kind::Write };
        let range = ((first * BLOCK) as u64, (count * BLOCK) as u32);
        // What was cut off in the middle of being sent is no write, but may count as one.
        client.send(kind, flags, cookie, range, &data)?;
        Ok((cookie, Some(Flight { first, count, version })))
    }

    fn acknowledged(&mut self, flight: &Flight) {
        let now = self.moment;
        self.moment += 1;
        for kept in &mut self.kept[flight.first..flight.first + flight.count] {
            let write = kept.iter_mut().find(|write| write.version == flight.version);
            let write = write.expect("kept while under way");
            write.ended = Some(now);
            let sent = write.sent;
            kept.retain(|write| write.ended.is_none_or(|ended| ended >= sent));
        }
    }

    /// Writes until the connection breaks; `replied` hears of every reply. Gives their number.
    pub fn load(
        &mut self,
        client: &mut Client,
        rng: &mut Rng,
        mut replied: impl FnMut(u64),
    ) -> u64 {
        let mut flights: BTreeMap<u64, Option<Flight>> = BTreeMap::new();
        let mut replies = 0;
        loop {
            while flights.len() < DEPTH
                && let Ok((cookie, flight)) = self.send(client, rng)
            {
                flights.insert(cookie, flight);
            }
            match client.receive() {
                Ok(cookie) => {
                    let flight = flights.remove(&cookie).expect("asked for");
                    if let Some(flight) = flight {
                        self.acknowledged(&flight);
                    }
                    replies += 1;
                    replied(replies);
                }
                Err(error) => {
                    assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "no reply for long");
                    break;
                }
            }
        }
        self.crashed();
        replies
    }

    /// Nothing is under way any more.
    fn crashed(&mut self) {
        let now = self.moment;
        self.moment += 1;
        for write in self.kept.iter_mut().flatten() {
            write.ended.get_or_insert(now);
        }
    }

    /// Looks at one block, and from now on expects what it found.
    fn look(&mut self, block: usize, bytes: &[u8]) {
        let kept = &mut self.kept[block];
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let (number, version) = (word(0), word(8));
        let zeroes = bytes.iter().all(|byte| *byte == 0);
        let found = kept.iter().copied().find(|write| match write.zeroes {
            true => zeroes,
            false => write.version == version && bytes == Self::content(block, version).as_slice(),
        });
        let Some(found) = found else {
            let whole = (number as usize) < usize::MAX / BLOCK
                && bytes == Self::content(number as usize, version).as_slice();
            panic!(
                "block {block} is corrupt: it may hold one of {kept:?}; zeros: {zeroes}, says \
                 block {number} version {version}, all of it: {whole}"
            );
        };
        *kept = vec![found];
    }

    /// Reads the whole volume and looks at every block.
    pub fn verify(&mut self, socket: &Path, export: &str) {
        let mut client = Client::connect(socket, export).expect("connected");
        assert_eq!(client.size, (self.kept.len() * BLOCK) as u64);
        let mut bytes = vec![0; 512 * BLOCK];
        for first in (0..self.kept.len()).step_by(512) {
            let count = (self.kept.len() - first).min(512);
            let part = &mut bytes[..count * BLOCK];
            client.read((first * BLOCK) as u64, part).expect("read");
            for (at, block) in part.as_chunks::<BLOCK>().0.iter().enumerate() {
                self.look(first + at, block);
            }
        }
    }

    /// Looks at every block of a copy of the volume.
    pub fn verify_file(&mut self, path: &Path) {
        let bytes = std::fs::read(path).expect("read");
        assert_eq!(bytes.len(), self.kept.len() * BLOCK);
        for (block, bytes) in bytes.as_chunks::<BLOCK>().0.iter().enumerate() {
            self.look(block, bytes);
        }
    }
}
