//! A line of the audit log as text: one JSON object, that of [`Entry`], and two keys more.
//! `previous` is the hash of the line before, `hash` the SHA-256 (FIPS 180-4) of all text of the
//! line before `,"hash"`. The line before the first has a hash of zeros.
//!
//! Invariant: a line that was changed has another hash than the one it tells.

use crate::chance::hex;
use redfish::view::{Entry, Verified};
use sha2::{Digest, Sha256};

/// A hash.
pub type Hash = [u8; 32];

/// What stands between what a line says and the hash of the line before.
const PREVIOUS: &str = ",\"previous\":\"";

/// What stands between a line's text and its hash.
const HASH: &str = ",\"hash\":\"";

/// A line that is in the chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Its number.
    pub number: u64,
    /// All of it, with the end of the line.
    pub text: String,
    /// Its hash.
    pub hash: Hash,
}

/// A line that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    /// What it says.
    pub entry: Entry,
    /// The hash of the line before, as it tells.
    pub previous: Hash,
    /// Its own.
    pub hash: Hash,
}

/// Why a line can't be believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// It is none.
    #[error("is no line of an audit log")]
    Format,
    /// Its hash is that of another text.
    #[error("was changed")]
    Changed,
}

/// Makes a line that follows from one of this hash.
pub fn line(entry: &Entry, previous: &Hash) -> Line {
    let object = serde_json::to_string(entry).unwrap_or_default();
    let object = object.strip_suffix('}').unwrap_or_default();
    let text = format!("{object}{PREVIOUS}{}\"", hex(previous));
    let hash: Hash = Sha256::digest(&text).into();
    let text = format!("{text}{HASH}{}\"}}\n", hex(&hash));
    Line { number: entry.number, text, hash }
}

/// Reads a line, without its end.
///
/// # Errors
/// It is no line, or not the one that was written.
pub fn read(bytes: &[u8]) -> Result<Read, Wrong> {
    let text = core::str::from_utf8(bytes).map_err(|_| Wrong::Format)?;
    let (told, _) = text.rsplit_once(HASH).ok_or(Wrong::Format)?;
    let entry: Entry = serde_json::from_str(text).map_err(|_| Wrong::Format)?;
    let previous = told.rsplit_once(PREVIOUS).and_then(|(_, hash)| hash.strip_suffix('"'));
    let previous = previous.and_then(unhex).ok_or(Wrong::Format)?;
    let hash: Hash = Sha256::digest(told).into();
    // What stands behind the hash is nothing but the end of the object.
    let whole = format!("{told}{HASH}{}\"}}", hex(&hash));
    if whole != text {
        return Err(Wrong::Changed);
    }
    Ok(Read { entry, previous, hash })
}

fn unhex(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    let bytes = text.as_bytes();
    if bytes.len() != 64 {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(bytes.chunks(2)) {
        let digits = core::str::from_utf8(digits).ok()?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(hash)
}

/// Follows a chain from line to line, and says where it breaks.
#[derive(Default)]
pub struct Follower {
    /// What was found so far.
    pub found: Verified,
    /// The number and hash of the last line that could be read.
    last: Option<(u64, Hash)>,
}

/// More breaks are not told.
const MOST_BREAKS: usize = 100;

impl Follower {
    /// Takes the next line, without its end; `place` says where it stands.
    pub fn take(&mut self, place: &str, bytes: &[u8]) {
        self.found.lines += 1;
        let read = match read(bytes) {
            Ok(read) => read,
            Err(wrong) => return self.breaks(format!("{place} {wrong}")),
        };
        let number = read.entry.number;
        let told = match self.last {
            None if number == 1 && read.previous != Hash::default() => {
                Some(format!("{place} (number 1) does not begin the chain"))
            }
            Some((last, _)) if number > last.saturating_add(1) => {
                Some(format!("{place}: numbers {} to {} are missing", last + 1, number - 1))
            }
            Some((last, _)) if number <= last => {
                Some(format!("{place}: number {number} comes after number {last}"))
            }
            Some((_, hash)) if read.previous != hash => {
                Some(format!("{place} (number {number}) does not follow from the line before"))
            }
            _ => None,
        };
        if let Some(told) = told {
            self.breaks(told);
        }
        self.found.first = self.found.first.or(Some(number));
        self.found.last = Some(number);
        self.last = Some((number, read.hash));
    }

    /// The number and hash of the last line that could be read.
    pub fn last(&self) -> Option<(u64, Hash)> {
        self.last
    }

    /// The chain ends; `wanted` are the number and hash of the line that is known to be its last.
    pub fn end(mut self, wanted: Option<(u64, Hash)>) -> Verified {
        match (wanted, self.last) {
            (Some((number, _)), None) => self.breaks(format!("numbers up to {number} are missing")),
            (Some((number, _)), Some((last, _))) if last < number => {
                self.breaks(format!("the end is missing: numbers {} to {number}", last + 1));
            }
            (Some((number, hash)), Some((last, own))) if last == number && own != hash => {
                self.breaks(format!("number {number} is not the line that was written"));
            }
            _ => {}
        }
        self.found
    }

    fn breaks(&mut self, what: String) {
        if self.found.breaks.len() < MOST_BREAKS {
            self.found.breaks.push(what);
        }
    }
}
