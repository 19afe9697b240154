//! The file of the past.
//!
//! All numbers are little-endian. It begins with [`MAGIC`] and a version of 32 bits, which is
//! [`VERSION`]; other versions are read by other daemons. Then comes a part for each thing, a byte
//! 0, and the SHA-256 of all before. A part is
//!
//! | bytes | what                                                                              |
//! |-------|-----------------------------------------------------------------------------------|
//! | 1     | what it is: 1 the machine, 2 an array, 3 a volume, 4 a drive                      |
//! | 2, n  | the length of its name, and the name                                              |
//! | 8     | when it was seen last, in seconds since 1970                                      |
//! | 4     | how active it is: IEEE 754 binary32                                               |
//! | …     | three rings: of seconds, minutes and hours                                        |
//! | …     | two sums: of the minute and of the hour that go on                                |
//!
//! A ring is the number of its last interval (8 bytes) and how many points there are up to it (2; 0
//! if there is no ring), then these: a code of 2 bytes ([`super::number`]) for each field
//! ([`super::series`]). A sum is the number of its interval (8), for each field two numbers (4
//! each), and 52 more if the thing has latencies ([`super::object::Sum`]).
//!
//! Parts are written one after the other while samples go on being taken: each is of a moment, and
//! they are of about the same one.
//!
//! Invariants
//! - What was written is read as it was, less rings for which there is no room any more.
//! - Whatever a file holds, reading it neither panics nor takes more memory than the past may.

use super::object::{Object, Sum};
use super::rows::Key;
use super::series::{Buckets, Kind};
use super::{History, MOST, Past, STEPS, Step};
use sha2::{Digest, Sha256};

/// What it begins with.
pub const MAGIC: &[u8; 16] = b"palisade history";

/// The version that is written.
pub const VERSION: u32 = 1;

/// How long the digest at its end is.
const DIGEST: usize = 32;

/// Why a file was not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strange {
    /// It is no file of the past.
    Foreign,
    /// It is of this version.
    Version(u32),
    /// It is not what was written.
    Damaged,
}

impl core::fmt::Display for Strange {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Foreign => f.write_str("it is not what the daemon writes"),
            Self::Version(version) => write!(f, "it has version {version}, not {VERSION}"),
            Self::Damaged => f.write_str("it is damaged"),
        }
    }
}

/// Gives the file away, piece by piece. Nobody waits for longer than a piece is made.
///
/// # Errors
/// Those of whoever takes the pieces.
pub fn write<E>(past: &Past, mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut digest = Sha256::new();
    let mut piece = MAGIC.to_vec();
    piece.extend(VERSION.to_le_bytes());
    let keys: Vec<Key> = past.lock().objects.keys().cloned().collect();
    for key in keys {
        digest.update(&piece);
        put(&piece)?;
        piece.clear();
        let history = past.lock();
        if let Some(object) = history.objects.get(&key) {
            part(&mut piece, &key, object, &history);
        }
    }
    piece.push(0);
    digest.update(&piece);
    piece.extend(digest.finalize());
    put(&piece)
}

fn part(piece: &mut Vec<u8>, key: &Key, object: &Object, history: &History) {
    let name = key.name().as_bytes();
    piece.push(1 + object.kind as u8);
    piece.extend((name.len() as u16).to_le_bytes());
    piece.extend(name);
    piece.extend(object.seen.to_le_bytes());
    piece.extend(object.activity.to_le_bytes());
    for step in Step::ALL {
        let end = history.end(step);
        piece.extend(end.to_le_bytes());
        let at = piece.len();
        piece.extend([0, 0]);
        let mut count = 0_u16;
        for codes in object.kept(step, end).into_iter().flatten() {
            count += 1;
            codes.iter().for_each(|code| piece.extend(code.to_le_bytes()));
        }
        if let Some(place) = piece.get_mut(at..at + 2) {
            place.copy_from_slice(&count.to_le_bytes());
        }
    }
    for sum in &object.sums {
        piece.extend(sum.tick.to_le_bytes());
        let parts = sum.parts.iter().flat_map(|(a, b)| [*a, *b]);
        let buckets = sum.buckets.iter().flat_map(|own| own.iter().flatten().copied());
        parts.chain(buckets).for_each(|number| piece.extend(number.to_le_bytes()));
    }
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that is one, and not below 0 but for a temperature.
    fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes).filter(|number| number.is_finite())
    }
}

impl History {
    /// Reads a file.
    ///
    /// # Errors
    /// It is none of this version.
    pub fn read(bytes: &[u8]) -> Result<Self, Strange> {
        let body = bytes.strip_prefix(MAGIC).ok_or(Strange::Foreign)?;
        let mut rest = Rest(body);
        let version = rest.array().map(u32::from_le_bytes).ok_or(Strange::Damaged)?;
        if version != VERSION {
            return Err(Strange::Version(version));
        }
        let end = bytes.len().checked_sub(DIGEST).ok_or(Strange::Damaged)?;
        let (whole, digest) = bytes.split_at_checked(end).ok_or(Strange::Damaged)?;
        if Sha256::digest(whole).as_slice() != digest {
            return Err(Strange::Damaged);
        }
        let mut history = Self::default();
        history.parts(&mut rest).ok_or(Strange::Damaged)?;
        if rest.0.len() != DIGEST {
            return Err(Strange::Damaged);
        }
        history.close_early();
        let last = history.end(Step::Seconds);
        history.give(last);
        Ok(history)
    }

    fn parts(&mut self, rest: &mut Rest<'_>) -> Option<()> {
        loop {
            let tag = rest.array::<1>()?[0];
            let Some(at) = tag.checked_sub(1) else { return Some(()) };
            let kind = Kind::ALL.get(usize::from(at))?;
            let length = rest.u16()?;
            let name = core::str::from_utf8(rest.take(usize::from(length))?).ok()?;
            let key = Key::of(*kind, name)?;
            if self.objects.len() >= MOST || self.objects.contains_key(&key) {
                return None;
            }
            self.part(key, rest)?;
        }
    }

    /// A part that was written when its minute or hour went on may stand beside one of the next.
    fn close_early(&mut self) {
        for step in [Step::Minutes, Step::Hours] {
            let end = self.end(step);
            for object in self.objects.values_mut() {
                let tick = step.sum().and_then(|at| object.sums.get(at)).map_or(0, |sum| sum.tick);
                if tick < end && tick.saturating_add(step.points() as u64) > end {
                    object.close(step, tick);
                }
            }
        }
    }

    fn part(&mut self, key: Key, rest: &mut Rest<'_>) -> Option<()> {
        let kind = key.kind();
        let mut object = Object::new(kind);
        object.seen = rest.u64()?;
        object.activity = rest.f32()?.max(0.0);
        let width = kind.fields().len();
        let mut rings = Vec::with_capacity(STEPS);
        for step in Step::ALL {
            let (end, count) = (rest.u64()?, usize::from(rest.u16()?));
            if count > step.points() || end > u64::MAX / (2 * 3600) {
                return None;
            }
            rings.push((step, end, count, rest.take(count * width * 2)?));
        }
        for sum in &mut object.sums {
            *sum = self::sum(kind, rest)?;
        }
        // All rings of a step end at the same interval: the last of which any part knows.
        for (step, end, ..) in &rings {
            let last = self.end(*step);
            for object in self.objects.values_mut().filter(|_| last < *end) {
                object.clear(*step, last + 1, *end);
            }
            self.set_end(*step, last.max(*end));
        }
        self.bare += Object::bytes(kind, key.bytes());
        // What has a place for its points does not lose them to another's.
        let own = rings.iter().filter(|ring| ring.2 > 0);
        let bytes: usize = own.map(|ring| Object::ring_bytes(width, ring.0)).sum();
        if self.bytes() + bytes <= super::BYTES {
            for (step, end, count, codes) in rings.into_iter().filter(|ring| ring.2 > 0) {
                object.set_ring(step, true);
                self.fill(&mut object, step, (end, count), codes);
            }
        }
        self.rings += object.rings_bytes();
        self.objects.insert(key, object);
        Some(())
    }

    /// Puts points in their places, but those that have left the window.
    fn fill(&self, object: &mut Object, step: Step, (end, count): (u64, usize), codes: &[u8]) {
        let width = object.kind.fields().len();
        let begin = (end + 1).saturating_sub(count as u64);
        let last = self.end(step);
        for (tick, codes) in (begin..).zip(codes.chunks_exact(width * 2)) {
            if tick + step.points() as u64 > last {
                let codes = codes.as_chunks::<2>().0.iter().map(|code| u16::from_le_bytes(*code));
                object.put(step, tick, codes);
            }
        }
    }
}

fn sum(kind: Kind, rest: &mut Rest<'_>) -> Option<Sum> {
    let mut sum = Sum::new(kind, rest.u64()?);
    for part in &mut sum.parts {
        *part = (rest.f32()?, rest.f32()?);
    }
    if kind.has_latencies() {
        let mut buckets = Buckets::default();
        for count in buckets.iter_mut().flatten() {
            *count = rest.f32()?.max(0.0);
        }
        sum.buckets = Some(Box::new(buckets));
    }
    Some(sum)
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
