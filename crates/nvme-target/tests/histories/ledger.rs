//! What a host knows of its blocks, and of the commands that it sent.
//!
//! Invariant: a value that a read may give is in the list of its block, or of the command.

use super::{BLOCK, Status};
use std::collections::BTreeSet;

/// What a block may hold: the first is certain unless others may have come after it.
#[derive(Clone, Debug)]
pub struct Block {
    /// Values that a read may give.
    pub may: BTreeSet<u64>,
    /// Values of commands in progress on the association.
    pub under_way: BTreeSet<u64>,
}

/// A command that was sent.
pub struct Sent {
    pub opcode: u8,
    pub first: u64,
    pub count: u64,
    pub value: u64,
    /// What was under way or possible as it was sent, per block; reads only.
    pub possible: Vec<BTreeSet<u64>>,
    pub data: Vec<u8>,
    pub got: Vec<u8>,
    /// The only answer that it may have from a namespace that is there.
    pub answer: Option<Status>,
    /// Bytes that the host has room for; reads only.
    pub room: u32,
    /// Its namespace was not there; changes so far.
    pub gone: Option<u64>,
}

/// What a host knows.
pub struct Ledger {
    pub blocks: Vec<Block>,
    pub next: u64,
}

pub fn bytes_of(value: u64, block: u64) -> Vec<u8> {
    if value == 0 {
        return vec![0; BLOCK];
    }
    let mut bytes = vec![value as u8 ^ block as u8; BLOCK];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes[8..16].copy_from_slice(&block.to_le_bytes());
    bytes
}

/// The value of a block's bytes; bytes of no value are damage.
fn value_of(bytes: &[u8], block: u64) -> u64 {
    let value = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == bytes_of(value, block), "block {block} has bytes that nobody wrote");
    value
}

impl Ledger {
    pub fn is_busy(&self, first: u64, count: u64) -> bool {
        self.range(first, count).any(|block| !block.under_way.is_empty())
    }

    pub fn range(&self, first: u64, count: u64) -> impl Iterator<Item = &Block> {
        self.blocks[first as usize..(first + count) as usize].iter()
    }

    pub fn each(&mut self, sent: &Sent, mut then: impl FnMut(&mut Block)) {
        let range = sent.first as usize..(sent.first + sent.count) as usize;
        self.blocks[range].iter_mut().for_each(&mut then);
    }

    /// A command changed blocks, and said so.
    pub fn done(&mut self, sent: &Sent) {
        self.each(sent, |block| {
            block.under_way.remove(&sent.value);
            block.may = [sent.value].into();
        });
    }

    /// The association, or its epoch, is over: what was under way is there or not, and stays so.
    pub fn settle(&mut self) {
        for block in &mut self.blocks {
            block.may.append(&mut block.under_way);
        }
    }

    /// It said that it did not, or not all of it.
    pub fn failed(&mut self, sent: &Sent) {
        self.each(sent, |block| {
            block.under_way.remove(&sent.value);
            block.may.insert(sent.value);
        });
    }

    /// A read gave these bytes: of writes whose end is not known, one has settled it.
    pub fn read(&mut self, sent: &Sent, settles: bool) {
        for at in 0..sent.count {
            let part = &sent.got[at as usize * BLOCK..][..BLOCK];
            let (number, value) = (sent.first + at, value_of(part, sent.first + at));
            let possible = &sent.possible[at as usize];
            assert!(possible.contains(&value), "block {number}: {value}, not of {possible:?}");
            let block = &mut self.blocks[number as usize];
            if settles && block.under_way.is_empty() && block.may == *possible {
                block.may = [value].into();
            }
        }
    }
}

/// A change began while `open` was under way: a read may give it.
pub fn may_be(open: &mut Sent, by: &Sent) {
    for at in 0..open.count {
        if (by.first..by.first + by.count).contains(&(open.first + at)) {
            open.possible[at as usize].insert(by.value);
        }
    }
}
