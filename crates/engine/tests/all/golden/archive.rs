//! Golden images as files: what an array's volume holds, and its drives, byte for byte.
//!
//! Purpose: a release that is long gone may have left these drives. The file says what they hold in
//! a way that needs nobody's code:
//!
//! ```text
//! Palisade golden image
//! about LEVEL, WHAT HAPPENED
//! drives COUNT BYTES       so many files of so many bytes each
//! failed SLOT…             slots out of service
//! volume BYTES             of the only volume, called `v`
//! blocks FROM COUNT GENERATION…
//!                          what these blocks of 512 bytes may hold; `lost`: they are listed,
//!                          and reads of them fail
//! ```
//!
//! Blocks that no line names, and those of generation 0, are zeros. Any other has 64 times the same
//! 8 bytes, little-endian: `(block * 256 + generation) * 0x9e3779b97f4a7c15` modulo 2^64.
//!
//! Behind an empty line come the drives, one behind the other, as pairs until all bytes are there:
//! a run of bytes as they are (its length, then the bytes), then a copy of earlier bytes (its
//! length, and how far back it begins, which may be less than its length). Numbers are LEB128.

/// A file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Archive {
    /// Level and what happened, for people.
    pub about: String,
    /// Slots out of service.
    pub failed: Vec<usize>,
    /// What each block of the volume may hold.
    pub blocks: Vec<Vec<u8>>,
    /// The drives, all of one size.
    pub drives: Vec<Vec<u8>>,
}

/// Bytes of a block.
pub const BLOCK: usize = 512;

/// The generation of blocks that are lost.
pub const LOST: u8 = 255;

/// What a block holds.
pub fn block(number: usize, generation: u8) -> [u8; BLOCK] {
    let word = (number as u64 * 256 + u64::from(generation)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut bytes = [0; BLOCK];
    if generation > 0 {
        bytes.chunks_mut(8).for_each(|part| part.copy_from_slice(&word.to_le_bytes()));
    }
    bytes
}

impl Archive {
    /// Bytes of the volume.
    pub fn volume_bytes(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    /// The file.
    pub fn encode(&self) -> Vec<u8> {
        let failed: Vec<String> = self.failed.iter().map(usize::to_string).collect();
        let mut text = format!(
            "Palisade golden image\nabout {}\ndrives {} {}\nfailed {}\nvolume {}\n",
            self.about,
            self.drives.len(),
            self.drives[0].len(),
            failed.join(" "),
            self.volume_bytes()
        );
        let mut from = 0;
        for same in self.blocks.chunk_by(|a, b| a == b) {
            if same[0] != [0] {
                let list = match &same[0][..] {
                    [LOST] => "lost".into(),
                    list => list.iter().map(u8::to_string).collect::<Vec<_>>().join(" "),
                };
                text += &format!("blocks {from} {} {list}\n", same.len());
            }
            from += same.len();
        }
        text.push('\n');
        let mut out = text.into_bytes();
        compress(&self.drives.concat(), &mut out);
        out
    }

    /// Reads a file; panics where it is not one.
    pub fn decode(file: &[u8]) -> Self {
        let end = file.windows(2).position(|pair| pair == b"\n\n").expect("an empty line");
        let text = std::str::from_utf8(&file[..end]).expect("text");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("Palisade golden image"));
        let mut found = Self {
            about: String::new(),
            failed: Vec::new(),
            blocks: Vec::new(),
            drives: Vec::new(),
        };
        let (mut count, mut bytes) = (0, 0);
        for line in lines {
            let (word, rest) = line.split_once(' ').expect("a word and more");
            let numbers: Vec<usize> = rest.split(' ').map_while(|n| n.parse().ok()).collect();
            match word {
                "about" => found.about = rest.into(),
                "drives" => (count, bytes) = (numbers[0], numbers[1]),
                "failed" => found.failed = numbers,
                "volume" => found.blocks = vec![vec![0]; numbers[0] / BLOCK],
                "blocks" => {
                    let lost = rest.ends_with(" lost").then_some(LOST);
                    let list = numbers[2..].iter().map(|n| *n as u8);
                    let list: Vec<u8> = list.chain(lost).collect();
                    assert!(!list.is_empty(), "{line}");
                    found.blocks[numbers[0]..][..numbers[1]].fill(list);
                }
                _ => panic!("a line of another kind: {line}"),
            }
        }
        let all = expand(&file[end + 2..], count * bytes);
        found.drives = all.chunks(bytes).map(<[u8]>::to_vec).collect();
        found
    }

    /// The blocks that are lost.
    pub fn lost(&self) -> Vec<usize> {
        (0..self.blocks.len()).filter(|i| self.blocks[*i] == [LOST]).collect()
    }

    /// Panics unless these are bytes that the volume may hold, but for lost blocks.
    pub fn compare(&self, name: &str, found: &[u8]) {
        assert_eq!(found.len(), self.volume_bytes(), "{name}");
        for (number, (got, may)) in found.chunks(BLOCK).zip(&self.blocks).enumerate() {
            let right = *may == [LOST] || may.iter().any(|g| block(number, *g)[..] == *got);
            assert!(right, "{name}: block {number} holds none of {may:?}: {:x?}", &got[..8]);
        }
    }
}

fn put(mut number: usize, out: &mut Vec<u8>) {
    while number >= 128 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(from: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (first, rest) = from.split_first().expect("it is not cut short");
        *from = rest;
        number |= usize::from(first & 127) << shift;
        shift += 7;
        if first & 128 == 0 {
            return number;
        }
    }
}

/// Copies shorter than this are not worth their numbers.
const LEAST: usize = 8;

fn compress(all: &[u8], out: &mut Vec<u8>) {
    let slot = |at: usize| {
        let word = u64::from_le_bytes(all[at..at + LEAST].try_into().expect("eight bytes"));
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize
    };
    // Where bytes like these were last.
    let mut known = vec![usize::MAX; 1 << 20];
    let (mut at, mut begun) = (0, 0);
    while at + LEAST <= all.len() {
        let earlier = known[slot(at)];
        let same = |from: usize| all[from..].iter().zip(&all[at..]).take_while(|(a, b)| a == b);
        let length = if earlier == usize::MAX { 0 } else { same(earlier).count() };
        if length < LEAST {
            known[slot(at)] = at;
            at += 1;
            continue;
        }
        put(at - begun, out);
        out.extend(&all[begun..at]);
        put(length, out);
        put(at - earlier, out);
        for inside in (at..at + length.min(4096)).take_while(|i| i + LEAST <= all.len()) {
            known[slot(inside)] = inside;
        }
        at += length;
        begun = at;
    }
    if begun < all.len() {
        put(all.len() - begun, out);
        out.extend(&all[begun..]);
    }
}

fn expand(mut from: &[u8], bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes);
    while all.len() < bytes {
        let run = take(&mut from);
        let (now, rest) = from.split_at(run);
        all.extend(now);
        from = rest;
        if all.len() < bytes {
            let (mut left, back) = (take(&mut from), take(&mut from));
            let begin = all.len() - back;
            while left > 0 {
                let n = left.min(all.len() - begin);
                all.extend_from_within(begin..begin + n);
                left -= n;
            }
        }
    }
    assert!(all.len() == bytes && from.is_empty(), "as long as it says");
    all
}
