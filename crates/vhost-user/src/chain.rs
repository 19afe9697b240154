//! A request's descriptors: where its bytes lie in the machine's memory (Virtual I/O Device version
//! 1.2, section 2.7.5).
//!
//! First come those that are read here, then those that are written. A request is not known by
//! their borders (2.7.4): bytes are counted over all of them.
//!
//! Invariant: a chain that was followed has at most [`PARTS_MAX`] and three descriptors; where they
//! lead is looked at when bytes are moved.

use crate::limits::PARTS_MAX;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Bytes of a descriptor.
const DESCRIPTOR: u64 = 16;
/// Most of a chain: a header's, a status's, and those of payload.
const MOST: usize = PARTS_MAX + 2;

/// The chain, or what it leads to, can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken;

/// A run of bytes.
#[derive(Clone, Copy, Debug)]
struct Part {
    at: GuestAddress,
    bytes: u64,
}

/// One side of a request: what is read of it, or written to it.
#[derive(Debug, Default)]
pub struct Side {
    parts: Vec<Part>,
    bytes: u64,
}

impl Side {
    fn clear(&mut self) {
        self.parts.clear();
        self.bytes = 0;
    }

    fn push(&mut self, descriptor: &Descriptor) {
        let bytes = u64::from(descriptor.len());
        self.parts.push(Part { at: descriptor.addr(), bytes });
        self.bytes += bytes;
    }

    /// Its bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Moves a buffer's bytes, from some byte on, run by run.
    fn each_run(
        &self,
        from: u64,
        bytes: usize,
        mut each: impl FnMut(GuestAddress, core::ops::Range<usize>) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let (mut skip, mut done) = (from, 0);
        for part in &self.parts {
            if done == bytes {
                break;
            }
            if skip >= part.bytes {
                skip -= part.bytes;
                continue;
            }
            let run = ((part.bytes - skip) as usize).min(bytes - done);
            let at = part.at.0.checked_add(skip).ok_or(Broken)?;
            each(GuestAddress(at), done..done + run)?;
            (skip, done) = (0, done + run);
        }
        if done == bytes { Ok(()) } else { Err(Broken) }
    }

    /// Copies bytes from the machine's memory, from this byte of the side on.
    ///
    /// # Errors
    /// There are fewer, or they lie nowhere.
    pub fn read(&self, memory: &GuestMemoryMmap, from: u64, into: &mut [u8]) -> Result<(), Broken> {
        self.each_run(from, into.len(), |at, run| {
            memory.read_slice(&mut into[run], at).map_err(|_| Broken)
        })
    }

    /// Copies bytes to the machine's memory, from this byte of the side on.
    ///
    /// # Errors
    /// There is less room, or it lies nowhere.
    pub fn write(&self, memory: &GuestMemoryMmap, from: u64, data: &[u8]) -> Result<(), Broken> {
        self.each_run(from, data.len(), |at, run| {
            memory.write_slice(&data[run], at).map_err(|_| Broken)
        })
    }
}

/// A request's chain. Kept by who takes requests one after the other, so that nothing is allocated
/// for each.
#[derive(Debug, Default)]
pub struct Chain {
    /// What is read of it.
    pub readable: Side,
    /// What is written to it.
    pub writable: Side,
}

/// A table of descriptors, in which a chain is followed.
#[derive(Clone, Copy)]
struct Table {
    at: u64,
    length: u32,
}

impl Table {
    fn descriptor(self, memory: &GuestMemoryMmap, index: u16) -> Result<Descriptor, Broken> {
        if u32::from(index) >= self.length {
            return Err(Broken);
        }
        let at = self.at.checked_add(u64::from(index) * DESCRIPTOR).ok_or(Broken)?;
        // Once: the machine may change it meanwhile.
        memory.read_obj(GuestAddress(at)).map_err(|_| Broken)
    }
}

impl Chain {
    /// Follows the chain that begins with a descriptor of a ring's table.
    ///
    /// # Errors
    /// It can't be a request.
    pub fn follow(
        &mut self,
        memory: &GuestMemoryMmap,
        (table, length): (u64, u16),
        head: u16,
    ) -> Result<(), Broken> {
        self.readable.clear();
        self.writable.clear();
        let mut table = Table { at: table, length: length.into() };
        let (mut index, mut is_indirect) = (head, false);
        // One more leads to a table.
        for _ in 0..=MOST {
            let descriptor = table.descriptor(memory, index)?;
            if descriptor.refers_to_indirect_table() {
                // A table has all that follows (2.7.5.3).
                let count = descriptor.len() / DESCRIPTOR as u32;
                let is_whole = u64::from(descriptor.len()) % DESCRIPTOR == 0 && count > 0;
                if is_indirect || descriptor.has_next() || !is_whole {
                    return Err(Broken);
                }
                table = Table { at: descriptor.addr().0, length: count };
                (index, is_indirect) = (0, true);
                continue;
            }
            match descriptor.is_write_only() {
                true => self.writable.push(&descriptor),
                false if !self.writable.parts.is_empty() => return Err(Broken),
                false => self.readable.push(&descriptor),
            }
            if !descriptor.has_next() {
                return Ok(());
            }
            index = descriptor.next();
        }
        Err(Broken)
    }
}
