//! What `palisade bench parity` measures: names, numbers of strips, goals.

use super::Place;
use super::arena::Arena;
use super::checksum::{Checksum, CopyChecksum};
use super::contest::{Contest, Delta, Generate, Recover};
use crate::isal::Isal;
use crate::report::Goal;
use ::parity::{Code, Stores};

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// This many parities of the data.
    Generate(usize),
    /// P and Q follow a 4 KiB change.
    Delta,
    /// These data strips of a stripe with P and Q.
    Recover(&'static [usize]),
    /// The CRC-32C of each strip.
    Checksum,
    /// The CRC-32C of each piece of this many bytes: 24 as a header's digest, 72 as that of a
    /// command, 512 as that of a small payload. They are hot always, as what has just arrived.
    ShortChecksums(usize),
    /// Copies of the strips and their CRC-32C.
    CopyChecksum,
}

/// One work, at both places.
pub struct Work {
    what: What,
    data: usize,
    /// What the ratio to ISA-L should reach, hot and from memory.
    goals: Option<(f64, f64)>,
}

const fn work(what: What, data: usize) -> Work {
    Work { what, data, goals: None }
}

const fn aimed(what: What, data: usize, hot: f64, memory: f64) -> Work {
    Work { what, data, goals: Some((hot, memory)) }
}

const ONE: What = What::Recover(&[1]);
const TWO: What = What::Recover(&[1, 2]);

/// All works: first those with goals, then other numbers of data strips.
pub const WORKS: [Work; 24] = [
    aimed(What::Generate(1), 8, 1.15, 1.0),
    aimed(What::Generate(2), 8, 1.10, 1.0),
    aimed(What::Generate(3), 8, 2.7, 1.8),
    aimed(What::Delta, 8, 8.0, 1.5),
    aimed(ONE, 8, 1.2, 1.0),
    aimed(TWO, 8, 1.2, 1.0),
    aimed(What::Generate(4), 16, 1.3, 1.0),
    work(What::Checksum, 8),
    work(What::ShortChecksums(24), 8),
    work(What::ShortChecksums(72), 8),
    work(What::ShortChecksums(512), 8),
    work(What::CopyChecksum, 8),
    work(What::Generate(1), 4),
    work(What::Generate(1), 16),
    work(What::Generate(2), 4),
    work(What::Generate(2), 16),
    work(What::Generate(3), 4),
    work(What::Generate(3), 16),
    work(ONE, 4),
    work(ONE, 16),
    work(TWO, 4),
    work(TWO, 16),
    work(What::Generate(4), 4),
    work(What::Generate(4), 8),
];

impl Place {
    /// The last word of a result's name.
    pub fn name(self) -> &'static str {
        match self {
            Place::Hot => "hot",
            Place::Memory => "memory",
        }
    }

    /// Places of the small writes: one, whose four pieces stay in the first-level cache, or as
    /// many as there are.
    fn pieces(self) -> usize {
        match self {
            Place::Hot => 1,
            Place::Memory => usize::MAX,
        }
    }

    /// How results that nobody here reads next are stored.
    fn stores(self) -> Stores {
        match self {
            Place::Hot => Stores::Cached,
            Place::Memory => Stores::Streaming,
        }
    }
}

impl Work {
    /// The result's name.
    pub fn name(&self, place: Place) -> String {
        let k = self.data;
        let strips = if k == 8 { String::new() } else { format!("-{k}") };
        let what = match self.what {
            What::Generate(1) => format!("p{strips}"),
            What::Generate(2) => format!("pq{strips}"),
            What::Generate(3) => format!("pqr{strips}"),
            What::Generate(m) => format!("k{k}m{m}"),
            What::Delta => "delta4k-pq".to_owned(),
            What::Checksum => "crc32c".to_owned(),
            What::ShortChecksums(bytes) => format!("crc32c-{bytes}b"),
            What::CopyChecksum => "copy-crc32c".to_owned(),
            What::Recover(lost) => format!("recover{}-{k}p2", lost.len()),
        };
        format!("{what}-{}", place.name())
    }

    /// Whether the work is done at `place`.
    pub fn is_at(&self, place: Place) -> bool {
        place == Place::Hot || !matches!(self.what, What::ShortChecksums(_))
    }

    /// The functions that do it on the other side.
    pub fn against(&self) -> &'static str {
        match self.what {
            What::Generate(1) => "xor_gen",
            What::Generate(2) => "pq_gen",
            What::Generate(_) | What::Recover(_) => "ec_encode_data",
            What::Delta => "xor_gen, ec_encode_data_update",
            What::Checksum | What::ShortChecksums(_) => "crc32_iscsi",
            What::CopyChecksum => "memcpy, crc32_iscsi",
        }
    }

    /// What the ratio to ISA-L should reach.
    pub fn goal(&self, place: Place) -> Option<Goal> {
        self.goals.map(|(hot, memory)| match place {
            Place::Hot => Goal::AtLeast(hot),
            Place::Memory => Goal::AtLeast(memory),
        })
    }

    /// Where this work's `memcpy` and read-only pass are reported as rates of their own: the
    /// number of strips as a part of the name.
    pub fn yardstick(&self) -> Option<String> {
        match (self.what, self.data) {
            (What::Generate(1), 8) => Some(String::new()),
            (What::Generate(1), k) => Some(format!("-{k}")),
            _ => None,
        }
    }

    /// The contest in this arena.
    pub fn contest<'a>(
        &self,
        place: Place,
        arena: &'a mut Arena,
        isal: Option<&Isal>,
    ) -> Box<dyn Contest<'a> + 'a> {
        match self.what {
            What::Generate(m) => {
                let code = Code::new(self.data, m).expect("a code within bounds");
                Box::new(Generate::new(code, place.stores(), arena, isal))
            }
            What::Delta => Box::new(Delta::new(place.pieces(), arena, isal)),
            What::Checksum | What::ShortChecksums(_) | What::CopyChecksum => self.checksum(arena),
            What::Recover(lost) => {
                Box::new(Recover::new(self.data, lost, place.stores(), arena, isal))
            }
        }
    }

    /// The contest, if it is one of checksums.
    fn checksum<'a>(&self, arena: &'a mut Arena) -> Box<dyn Contest<'a> + 'a> {
        let (data, copies) = (&arena.data[..self.data], &mut arena.copies[..self.data]);
        if let What::ShortChecksums(bytes) = self.what {
            return Box::new(Checksum::of_pieces(bytes, data, copies));
        }
        let sums = Checksum::of_strips(data, copies);
        if self.what == What::Checksum {
            return Box::new(sums);
        }
        let (ours, theirs) = (&mut arena.ours[..self.data], &mut arena.theirs[..self.data]);
        Box::new(CopyChecksum::new(sums, ours, theirs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_promised_ones() {
        let names: Vec<_> =
            WORKS.iter().filter(|w| w.goals.is_some()).map(|w| w.name(Place::Hot)).collect();
        let promised = ["p", "pq", "pqr", "delta4k-pq", "recover1-8p2", "recover2-8p2", "k16m4"];
        assert_eq!(names, promised.map(|name| format!("{name}-hot")));
        let mut all: Vec<_> = WORKS.iter().map(|w| w.name(Place::Memory)).collect();
        assert!(all.contains(&"pq-16-memory".to_owned()));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), WORKS.len(), "every name is one work's");
    }
}
