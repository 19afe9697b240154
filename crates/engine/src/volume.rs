//! A volume on one core: maps its blocks to the array's and checks bounds.
//!
//! Invariant: every request is mapped by the extents of one snapshot; a request that does not lie
//! wholly inside the volume of that snapshot, or is not aligned to its blocks, touches nothing.
//! A request counts as one operation of the array from that mapping to its end, so that rows given
//! back by a shrinking volume are never reached by a later part of it.

use crate::Host;
use crate::array::Array;
use crate::array::view::VolumeView;
use crate::buffers::join;
use crate::mutants::{self, Mutant};
use core::cell::RefCell;
use io::{BlockError, Blocks, Buf, BufMut};
use std::rc::Rc;
use std::sync::Arc;
use units::{Generation, Uuid};

/// What a volume was at a generation.
struct Known {
    generation: Generation,
    volume: Option<Arc<VolumeView>>,
}

/// A volume as front ends of this core use it. Clones share it.
pub struct Volume<E: Host> {
    array: Array<E>,
    uuid: Uuid,
    known: Rc<RefCell<Known>>,
}

impl<E: Host> Clone for Volume<E> {
    fn clone(&self) -> Self {
        Self { array: self.array.clone(), uuid: self.uuid, known: self.known.clone() }
    }
}

impl<E: Host> Volume<E> {
    /// The volume of this identity; requests fail with `Stopped` where there is none.
    pub fn new(array: Array<E>, uuid: Uuid) -> Self {
        let known = Known { generation: Generation(0), volume: None };
        let volume = Self { array, uuid, known: Rc::new(RefCell::new(known)) };
        volume.now();
        volume
    }

    /// The volume as of the array's present snapshot.
    fn now(&self) -> Option<Arc<VolumeView>> {
        let bound = self.array.bound();
        let mut known = self.known.borrow_mut();
        let stale = known.volume.is_some() && mutants::is(Mutant::StaleVolume);
        if known.generation != bound.view.generation && !stale {
            known.generation = bound.view.generation;
            known.volume = bound.view.volume(self.uuid).cloned();
        }
        known.volume.clone()
    }

    /// Checks a request and finds its first run: where in the array, and how many bytes.
    fn check(&self, offset: u64, bytes: u64) -> Result<Arc<VolumeView>, BlockError> {
        let volume = self.now().ok_or(BlockError::Stopped)?;
        let block = u64::from(self.block_bytes());
        let end = offset.checked_add(bytes).ok_or(BlockError::Bounds)?;
        if end > volume.bytes || !offset.is_multiple_of(block) || !bytes.is_multiple_of(block) {
            return Err(BlockError::Bounds);
        }
        Ok(volume)
    }
}

/// Where `offset` of the volume lies in the array, and how many bytes follow it there.
fn place(volume: &VolumeView, mut offset: u64) -> (u64, u64) {
    for extent in &volume.extents {
        if offset < extent.bytes {
            return (extent.array_start + offset, extent.bytes - offset);
        }
        offset -= extent.bytes;
    }
    unreachable!("a volume's extents cover its bytes")
}

impl<E: Host> Blocks for Volume<E> {
    fn bytes(&self) -> u64 {
        self.now().map_or(0, |v| v.bytes)
    }

    fn block_bytes(&self) -> u32 {
        self.array.bound().view.block_bytes
    }

    fn strip_bytes(&self) -> u32 {
        self.array.bound().view.layout.strip_bytes()
    }

    fn stripe_bytes(&self) -> u32 {
        let layout = &self.array.bound().view.layout;
        layout.strip_bytes() * u32::from(layout.k(units::GroupNo(0)))
    }

    fn volatile_cache(&self) -> bool {
        self.array.bound().view.volatile_cache
    }

    async fn read(&self, offset: u64, mut into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let volume = match self.check(offset, into.len() as u64) {
            Ok(volume) => volume,
            Err(error) => return (Err(error), into),
        };
        if into.is_empty() {
            return (Ok(()), into);
        }
        let (at, room) = place(&volume, offset);
        if into.len() as u64 <= room {
            return self.array.read(at, into).await;
        }
        let _active = match self.array.begin() {
            Ok(active) => active,
            Err(error) => return (Err(error), into),
        };
        let mut done = into.split_to(0);
        let (mut result, mut offset) = (Ok(()), offset);
        while !into.is_empty() {
            let (at, room) = place(&volume, offset);
            let part = into.split_to(into.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            offset += part.len() as u64;
            let (outcome, part) = self.array.read(at, part).await;
            result = result.and(outcome);
            done = join(done, part);
        }
        (result, join(done, into))
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        let volume = self.check(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        let (at, room) = place(&volume, offset);
        if data.len() as u64 <= room {
            return self.array.write(at, data, fua).await;
        }
        let _active = self.array.begin()?;
        let (mut result, mut done) = (Ok(()), 0usize);
        while done < data.len() {
            let (at, room) = place(&volume, offset + done as u64);
            let n = (data.len() - done).min(usize::try_from(room).unwrap_or(usize::MAX));
            let part = data.slice(done..done + n);
            result = result.and(self.array.write(at, part, fua).await);
            done += n;
        }
        result
    }

    async fn compare_and_write(
        &self,
        offset: u64,
        (expected, data): (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        loop {
            let volume = self.check(offset, data.len() as u64)?;
            if data.len() != self.block_bytes() as usize || expected.len() != data.len() {
                return Err(BlockError::Bounds);
            }
            let (at, _) = place(&volume, offset);
            if self.array.is_homed(at) {
                return self.array.compare_and_write(at, (expected, data), fua).await;
            }
            self.array.end_direct_writes().await?;
        }
    }

    async fn in_order(&self) -> Result<(), BlockError> {
        let volume = self.check(0, 0)?;
        // All groups of an array are of one level.
        if self.array.is_homed(place(&volume, 0).0) {
            return Ok(());
        }
        self.array.end_direct_writes().await
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        let volume = self.check(offset, bytes)?;
        let _active = self.array.begin()?;
        let (mut result, mut done) = (Ok(()), 0u64);
        while done < bytes {
            let (at, room) = place(&volume, offset + done);
            let n = (bytes - done).min(room);
            result = result.and(self.array.write_zeroes(at, n, fua).await);
            done += n;
        }
        result
    }

    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let volume = self.check(offset, bytes)?;
        let _active = self.array.begin()?;
        let (mut result, mut done) = (Ok(()), 0u64);
        while done < bytes {
            let (at, room) = place(&volume, offset + done);
            let n = (bytes - done).min(room);
            result = result.and(self.array.discard(at, n).await);
            done += n;
        }
        result
    }

    async fn flush(&self) -> Result<(), BlockError> {
        self.now().ok_or(BlockError::Stopped)?;
        self.array.flush().await
    }
}
