//! What every block of a volume may hold, and a load that keeps the account.
//!
//! Every write gives its blocks a new version; a block's bytes follow from its number and its
//! version. For each block the writes are kept that a reader may still see:
//!
//! - A write that is sent is added.
//! - A write that is acknowledged removes all that had ended (acknowledged, or cut off by a
//!   crash) before it was sent; one that was under way beside it may have come later, and stays.
//! - A look that finds a version removes all others, if nothing is under way.
//! - What a crash with a lost drive took is listed by the daemon: a read of it must fail, and no
//!   other may. It may be taken only from a *column* (the same place of each strip of a stripe)
//!   that was being written, one block of each: with P and Q a write of it was cut off; with P
//!   alone it was that, or was over only a moment ago. No clock can say how long that is where the
//!   daemon has to wait for a core. But it writes nothing before a list names it, and a new list
//!   leaves out what was over: so a write is over for long when [`LATER`] others were sent behind
//!   its reply, and were acknowledged too.
//!
//! Invariant: a block that holds none of its kept writes is corrupt.

use super::Rng;
use super::nbd::{Client, FUA, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Requests under way at the same time.
const DEPTH: usize = 16;
/// Most blocks of a request: 256 KiB.
const BLOCKS_MAX: u64 = 64;
/// So many writes that were sent behind the reply to one, and acknowledged, had some list made
/// anew. A few may do with the list that there is, if others have just been where they write.
pub const LATER: usize = 32;
/// Most blocks of a read that looks.
const READ_BLOCKS: usize = 512;

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
    /// What the last load wrote, and when the newest reply to a write of it came.
    touched: BTreeMap<usize, u64>,
    /// What of that was not acknowledged.
    cut: BTreeSet<usize>,
    /// When the writes of the last load were sent that were acknowledged.
    sent: Vec<u64>,
}

/// How blocks of a volume make stripes.
#[derive(Clone, Copy, Debug)]
pub struct Stripes {
    /// Blocks of a strip.
    pub strip: usize,
    /// Strips of data in a stripe.
    pub data: usize,
}

impl Stripes {
    /// The stripe of a block, and its place in the strip.
    fn column(self, block: usize) -> (usize, usize) {
        (block / (self.strip * self.data), block % self.strip)
    }

    /// Whether two blocks are in one column.
    pub fn same(self, one: usize, other: usize) -> bool {
        self.column(one) == self.column(other)
    }

    /// Each of the blocks that are lost must be in the column of one that was being written; of a
    /// column one drive that is gone takes no more than one.
    pub fn explain(self, lost: &BTreeSet<usize>, written: impl Iterator<Item = usize>) {
        let columns: BTreeSet<_> = written.map(|block| self.column(block)).collect();
        let mut taken = BTreeSet::new();
        for block in lost {
            let column = self.column(*block);
            let written = columns.contains(&column);
            assert!(written, "block {block} is lost, and {column:?} was not being written");
            let alone = taken.insert(column);
            assert!(alone, "block {block} is lost, as is another of {column:?}");
        }
    }
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
        Self {
            kept: vec![vec![zeroes]; bytes as usize / BLOCK],
            moment: 1,
            version: 0,
            touched: BTreeMap::new(),
            cut: BTreeSet::new(),
            sent: Vec::new(),
        }
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
            self.touched.entry(block).or_default();
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
        for block in flight.first..flight.first + flight.count {
            let kept = &mut self.kept[block];
            let write = kept.iter_mut().find(|write| write.version == flight.version);
            let write = write.expect("kept while under way");
            write.ended = Some(now);
            let sent = write.sent;
            kept.retain(|write| write.ended.is_none_or(|ended| ended >= sent));
            self.touched.insert(block, now);
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
        self.touched.clear();
        self.sent.clear();
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
                        self.sent.push(cookie);
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
        let cut = |writes: &Vec<Write>| writes.iter().any(|write| write.ended.is_none());
        self.cut = (0..self.kept.len()).filter(|block| cut(&self.kept[*block])).collect();
        for write in self.kept.iter_mut().flatten() {
            write.ended.get_or_insert(now);
        }
    }

    /// Of these blocks, which are listed as lost, each must be in a column that was being written
    /// at the end of the last load: a write of it was cut off, or, if `over`, over a moment ago.
    /// How many writes later the crash came, of what was over for longest.
    pub fn may_be_lost(&self, lost: &BTreeSet<usize>, stripes: Stripes, over: bool) -> usize {
        let later = |block: usize, moment: u64| match self.cut.contains(&block) {
            true => 0,
            false => self.sent.iter().filter(|sent| **sent > moment).count(),
        };
        let ages: Vec<_> =
            self.touched.iter().map(|(b, moment)| (*b, later(*b, *moment))).collect();
        let may = |age: usize| age < LATER && over;
        let lately = ages.iter().filter(|(block, age)| may(*age) || self.cut.contains(block));
        stripes.explain(lost, lately.map(|(block, _)| *block));
        let age = |block: &usize| {
            let column = stripes.column(*block);
            let same = ages.iter().filter(|(block, _)| stripes.column(*block) == column);
            same.map(|(_, age)| *age).min()
        };
        lost.iter().filter_map(age).max().unwrap_or_default()
    }

    /// As after a load that wrote one block, and was cut off in that, or went on for so many
    /// writes.
    pub fn wrote(&mut self, block: usize, later: Option<usize>) {
        self.touched = BTreeMap::from([(block, 1)]);
        self.cut = if later.is_none() { BTreeSet::from([block]) } else { BTreeSet::new() };
        self.sent = vec![2; later.unwrap_or(0)];
    }

    /// Writes blocks anew that were lost.
    pub fn heal(&mut self, socket: &Path, export: &str, lost: &BTreeSet<usize>) {
        let mut client = Client::connect(socket, export).expect("connected");
        for block in lost {
            self.version += 1;
            let data = Self::content(*block, self.version);
            client.write((block * BLOCK) as u64, &data).expect("written");
            let ended = Some(self.moment);
            let write = Write { version: self.version, zeroes: false, sent: self.moment, ended };
            self.kept[*block] = vec![write];
        }
        self.moment += 1;
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

    /// Reads the whole volume and looks at every block; of those that are lost a read must fail.
    pub fn verify(&mut self, socket: &Path, export: &str, lost: &BTreeSet<usize>) {
        let mut client = Client::connect(socket, export).expect("connected");
        assert_eq!(client.size, (self.kept.len() * BLOCK) as u64);
        read_but(&mut client, lost, |block, bytes| self.look(block, bytes));
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

/// Reads a whole volume, and shows every block that is not listed as lost; of these a read must
/// fail.
pub fn read_but(client: &mut Client, lost: &BTreeSet<usize>, mut show: impl FnMut(usize, &[u8])) {
    let all = client.size as usize / BLOCK;
    let mut bytes = vec![0; READ_BLOCKS * BLOCK];
    let mut first = 0;
    while first < all {
        if lost.contains(&first) {
            let one = &mut bytes[..BLOCK];
            let read = client.can_read((first * BLOCK) as u64, one).expect("connected");
            assert!(!read, "block {first} is listed as lost, and is read");
            first += 1;
            continue;
        }
        let end = lost.range(first..).next().copied().unwrap_or(all).min(first + READ_BLOCKS);
        let part = &mut bytes[..(end - first) * BLOCK];
        let read = client.can_read((first * BLOCK) as u64, part).expect("connected");
        assert!(read, "blocks {first} to {end} are not listed as lost, and one can't be read");
        for (at, block) in part.as_chunks::<BLOCK>().0.iter().enumerate() {
            show(first + at, block);
        }
        first = end;
    }
}
