//! Changes of bytes that are not whole blocks.
//!
//! A file has bytes, and a volume has blocks. What is aligned goes to the volume as it is. Else the
//! block at either end is read, changed in part, and written if it still is what was read; what
//! lies between goes by pieces of memory that is aligned.
//!
//! Invariant: a byte outside of the range is never written with what it held before another change.

use crate::limits::UNALIGNED_BYTES;
use io::{BlockError, Blocks, Buf, Pool};

/// What becomes of the bytes.
pub enum Change {
    /// These.
    Write {
        /// As many as the range has.
        data: Buf,
        /// Durable before the answer.
        fua: bool,
    },
    /// Zeros. Whole bands of them take no place; a hole that is punched is no more than that, as
    /// what a volume is only told not to be needed need not read as zeros.
    Zero,
}

impl Change {
    /// A part of the change, from so many bytes of its range on, over some bytes of a block.
    fn put(&self, from: u64, into: &mut [u8]) {
        match self {
            Self::Write { data, .. } => {
                let from = from as usize;
                into.copy_from_slice(&data[from..from + into.len()]);
            }
            Self::Zero => into.fill(0),
        }
    }

    const fn fua(&self) -> bool {
        matches!(self, Self::Write { fua: true, .. })
    }
}

/// Changes a range of a volume, which is inside it.
pub async fn change<V: Blocks>(
    volume: &V,
    offset: u64,
    bytes: u64,
    change: Change,
) -> Result<(), BlockError> {
    let block = u64::from(volume.block_bytes());
    let end = offset + bytes;
    let (first, last) = (offset.next_multiple_of(block), end - end % block);
    if first == offset && last == end {
        return match change {
            Change::Write { data, fua } => volume.write(offset, data, fua).await,
            Change::Zero => zero(volume, (offset, end)).await,
        };
    }
    if first > last {
        // Within a block.
        return part(volume, offset, (offset, end), &change).await;
    }
    if offset < first {
        part(volume, offset, (offset, first), &change).await?;
    }
    match &change {
        Change::Write { .. } => pieces(volume, offset, (first, last), &change).await?,
        Change::Zero => zero(volume, (first, last)).await?,
    }
    if last < end { part(volume, offset, (last, end), &change).await } else { Ok(()) }
}

/// Whole blocks of zeros.
async fn zero<V: Blocks>(volume: &V, (from, to): (u64, u64)) -> Result<(), BlockError> {
    if from == to { Ok(()) } else { volume.write_zeroes(from, to - from, false).await }
}

/// Whole blocks, of which the data do not lie as drives want it.
async fn pieces<V: Blocks>(
    volume: &V,
    offset: u64,
    (mut from, to): (u64, u64),
    change: &Change,
) -> Result<(), BlockError> {
    while from < to {
        let bytes = (to - from).min(UNALIGNED_BYTES as u64);
        let mut piece = Pool::single(bytes as usize);
        change.put(from - offset, &mut piece);
        volume.write(from, piece.freeze(), change.fua()).await?;
        from += bytes;
    }
    Ok(())
}

/// Some bytes of a block, of a change that begins at `offset`.
async fn part<V: Blocks>(
    volume: &V,
    offset: u64,
    (from, to): (u64, u64),
    change: &Change,
) -> Result<(), BlockError> {
    let block = u64::from(volume.block_bytes());
    let at = from - from % block;
    let within = (from - at) as usize..(to - at) as usize;
    loop {
        let (outcome, old) = volume.read(at, Pool::single(block as usize)).await;
        outcome?;
        let mut new = Pool::single(block as usize);
        new.copy_from_slice(&old);
        change.put(from - offset, &mut new[within.clone()]);
        let blocks = (old.freeze(), new.freeze());
        if volume.compare_and_write(at, blocks, change.fua()).await? {
            return Ok(());
        }
    }
}
