//! Record slots of one drive: read, write, erase, through the drive trait (D8); and what is read
//! whole of it at a start. Who examines a drive outside the engine reads and erases through the
//! same functions, with a drive that blocks.
//!
//! Invariant: the newest valid record of a drive is never overwritten; a write goes to the slot
//! that follows it in the order head, tail, head, tail, and is durable when the call returns. A
//! slot that can't be read is passed over like one that was not written whole. The tail of a drive
//! that has grown is read where it was; what follows is written where it is now.

use crate::buffers::copy;
use crate::limits::MAP_STEP;
use crate::mutants::{self, Mutant};
use format::limits::{AREA_BYTES, BATCH_ALIGN, OWNER_AT, OWNER_BYTES, PAGE_BYTES};
use format::{ArrayRecord, FormatError, LostTail};
use io::{Buf, BufMut, Drive, DriveError, Pool};
use std::collections::BTreeSet;
use units::MIB;

/// Where the next record of a drive goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NextSlot(pub usize);

/// Makes durable what a drive may have in a volatile cache, since a daemon that was killed wrote
/// it: what is read behind this is not taken back by a power cut, so nothing is decided by what is
/// gone later, and no record that was between two others is ever missing ([`LostTail`]).
pub async fn settle<D: Drive>(drive: &D) -> Result<(), DriveError> {
    match drive.info().volatile_cache {
        true => drive.flush().await,
        false => Ok(()),
    }
}

/// Reads a drive's newest record; with it, where the next one goes. The outer error is the
/// drive's, the inner one the format's.
pub async fn read<D: Drive>(
    drive: &D,
) -> Result<Result<(NextSlot, ArrayRecord), FormatError>, DriveError> {
    let bytes = drive.info().bytes;
    if bytes < 2 * AREA_BYTES {
        return Ok(Err(FormatError::NoMagic));
    }
    let mut images = [const { None }; format::slots::SLOTS];
    for (image, offset) in images.iter_mut().zip(format::slot_offsets(bytes)) {
        *image = read_slot(drive, offset).await?;
    }
    if images.iter().all(Option::is_none) {
        return Err(DriveError::Media);
    }
    let mut lost = LostTail::of(images.each_ref().map(Option::as_deref));
    if let Some(lost) = &mut lost {
        for (slot, offset) in lost.places(bytes) {
            let image = read_slot(drive, offset).await?;
            if image.as_ref().is_some_and(|image| lost.take(slot, image)) {
                images[slot] = image;
            }
        }
    }
    let newest = format::newest(images.each_ref().map(|i| i.as_deref().unwrap_or_default()));
    let newest = newest.and_then(|newest| match &lost {
        Some(lost) => lost.doubt(newest),
        None => Ok(newest),
    });
    Ok(newest.map(|(at, record)| (NextSlot(format::next_slot(at)), record)))
}

/// Bytes of a slot that are read first; most records are shorter.
const FRONT_BYTES: usize = format::limits::IMAGE_ALIGN;

/// Reads the front of a record slot, and as much more of it as its header says that the record has:
/// whether anything behind that can be read tells nothing of the record. `None`: it can't be read.
async fn read_slot<D: Drive>(drive: &D, offset: u64) -> Result<Option<BufMut>, DriveError> {
    let (result, front) = drive.read(offset, Pool::single(FRONT_BYTES)).await;
    let (result, image) = match (result, format::longer_than(&front)) {
        (Ok(()), Some(bytes)) => drive.read(offset, Pool::single(bytes)).await,
        (result, _) => (result, front),
    };
    match result {
        Err(DriveError::Media) => Ok(None),
        result => result.map(|()| Some(image)),
    }
}

/// Writes a record to the slot `next`, durably, and tells where the one after it goes.
pub async fn write<D: Drive>(
    drive: &D,
    next: NextSlot,
    record: &ArrayRecord,
) -> Result<NextSlot, DriveError> {
    let image = format::encode(record);
    let offset = format::slot_offsets(drive.info().bytes)[next.0];
    let durable = !mutants::is(Mutant::RecordNotDurable);
    drive.write(offset, &[copy(&image)], durable).await?;
    if mutants::is(Mutant::SameSlot) {
        return Ok(next);
    }
    Ok(NextSlot(format::next_slot(next.0)))
}

/// Writes pieces at their places, `at_once` at a time: a drive has a request's deadline for that
/// many of them, however many there are.
pub async fn write_pieces<D: Drive>(
    drive: &D,
    pieces: &[(u64, Buf)],
    durable: bool,
    at_once: usize,
) -> Result<(), DriveError> {
    for some in pieces.chunks(at_once) {
        let write =
            |(at, piece): &(u64, Buf)| drive.write(*at, core::slice::from_ref(piece), durable);
        let tickets: Vec<D::Done> = some.iter().map(write).collect();
        let mut result = Ok(());
        for ticket in tickets {
            result = result.and(ticket.await);
        }
        result?;
    }
    Ok(())
}

/// Overwrites head area, tail area and what lies behind it with zeros, durably: no record and no
/// signature is left.
pub async fn erase<D: Drive>(drive: &D) -> Result<(), DriveError> {
    let bytes = drive.info().bytes;
    let tail = format::tail_offset(bytes);
    write_zeros(drive, 0, bytes.min(AREA_BYTES), true).await?;
    write_zeros(drive, tail, bytes - tail, true).await
}

/// The same of a drive of a shared array, but for its owner page: that tells other servers whose
/// the drive is.
pub async fn erase_all_but_page<D: Drive>(drive: &D) -> Result<(), DriveError> {
    let bytes = drive.info().bytes;
    let (tail, behind) = (format::tail_offset(bytes), OWNER_AT + OWNER_BYTES as u64);
    write_zeros(drive, tail, bytes - tail, true).await?;
    write_zeros(drive, 0, OWNER_AT, true).await?;
    write_zeros(drive, behind, AREA_BYTES - behind, true).await
}

/// The same, and the page last.
pub async fn erase_page_last<D: Drive>(drive: &D) -> Result<(), DriveError> {
    erase_all_but_page(drive).await?;
    write_zeros(drive, OWNER_AT, OWNER_BYTES as u64, true).await
}

/// Makes a part of a drive read as zeros.
pub async fn zero<D: Drive>(drive: &D, start: u64, bytes: u64) -> Result<(), DriveError> {
    match drive.write_zeroes(start, bytes).await {
        Err(DriveError::Unsupported) => write_zeros(drive, start, bytes, false).await,
        result => result,
    }
}

async fn write_zeros<D: Drive>(
    drive: &D,
    start: u64,
    bytes: u64,
    durable: bool,
) -> Result<(), DriveError> {
    let zeros = Pool::single(MIB as usize).freeze();
    let mut done = 0;
    while done < bytes {
        let n = MIB.min(bytes - done);
        drive.write(start + done, &[zeros.slice(..n as usize)], durable).await?;
        done += n;
    }
    Ok(())
}

/// Bytes that are read one by one where more can't be: a page of the map; in the journal area what
/// batches and in-flight pages begin at multiples of.
const PIECE: usize = PAGE_BYTES;
const _: () = assert!(PIECE == BATCH_ALIGN);

/// Bytes that are read at once.
const STEP: usize = MAP_STEP as usize;

/// Reads `bytes` from `start` on; zeros where they can't be read.
pub async fn read_area<D: Drive>(drive: &D, start: u64, bytes: u64) -> BufMut {
    read_noting(drive, start, Pool::single(bytes as usize)).await.0
}

/// The same, into a buffer whatever it held; with where the pieces begin, from `start` on, that
/// can't be read.
pub async fn read_noting<D: Drive>(
    drive: &D,
    start: u64,
    mut image: BufMut,
) -> (BufMut, BTreeSet<usize>) {
    let mut unread = BTreeSet::new();
    let bytes = image.len();
    if bytes <= STEP {
        let (result, all) = drive.read(start, image).await;
        if result.is_ok() {
            return (all, unread);
        }
        image = all;
    }
    let (mut step, mut piece) = (Pool::single(STEP.min(bytes)), Pool::single(PIECE));
    for at in (0..bytes).step_by(STEP) {
        let result;
        step.truncate(bytes - at);
        (result, step) = drive.read(start + at as u64, step).await;
        if result.is_ok() {
            image[at..][..step.len()].copy_from_slice(&step);
            continue;
        }
        for at in (at..at + step.len()).step_by(PIECE) {
            let result;
            (result, piece) = drive.read(start + at as u64, piece).await;
            match result {
                Ok(()) => image[at..][..PIECE].copy_from_slice(&piece),
                Err(_) => {
                    image[at..][..PIECE].fill(0);
                    unread.insert(at);
                }
            }
        }
    }
    (image, unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use io::{Env, Priority};
    use sim::{DriveConfig, SharedSimDrive, World, WorldConfig};
    use std::rc::Rc;
    use units::{CoreId, Nanos};

    /// What is read of an area, with one bad piece, into a buffer that held something else.
    fn reads_zeros_where_it_is_bad(bytes: usize) {
        let shared = SharedSimDrive::new(DriveConfig::new(8 * MIB, 1));
        let bad = bytes - 3 * PIECE;
        shared.fail_range(MIB + bad as u64, 1);
        let mut held = Pool::single(bytes);
        held.fill(7);
        let world = World::<()>::new(WorldConfig::new(1));
        let drive = world.env(CoreId(0)).bind(&shared);
        let read = async move { read_noting(&drive, MIB, held).await };
        let (image, unread) = world.block_on(CoreId(0), read);
        assert_eq!(unread, BTreeSet::from([bad]));
        let mut expected = shared.peek(MIB, bytes as u64);
        expected[bad..bad + PIECE].fill(0);
        assert!(image[..] == expected[..]);
    }

    #[test]
    fn what_can_not_be_read_is_zeros_whatever_the_buffer_held() {
        reads_zeros_where_it_is_bad(STEP / 2);
        reads_zeros_where_it_is_bad(3 * STEP);
        reads_zeros_where_it_is_bad(2 * STEP + 16 * PIECE);
    }

    /// Many pages of a map at once took longer than a deadline on a drive that is slow at small
    /// durable writes.
    #[test]
    fn few_pieces_are_on_their_way_at_once() {
        let shared = SharedSimDrive::new(DriveConfig::new(8 * MIB, 1));
        let world = World::<()>::new(WorldConfig::new(1));
        let (env, other) = (world.env(CoreId(0)), shared.clone());
        let drive = env.bind(&shared);
        let most = Rc::new(Cell::new(0));
        let seen = most.clone();
        world.env(CoreId(0)).spawn(Priority::First, async move {
            loop {
                seen.set(other.in_flight().max(seen.get()));
                env.sleep(Nanos::from_micros(1)).await;
            }
        });
        let piece = |i: u64| (i * 4096, copy(&[i as u8; 4096]));
        let pieces: Vec<_> = (0..600).map(piece).collect();
        let list = pieces.clone();
        let written = async move { write_pieces(&drive, &list, true, 16).await };
        assert_eq!(world.block_on(CoreId(0), written), Ok(()));
        assert!((1..=16).contains(&most.get()), "{} at once", most.get());
        for (at, piece) in &pieces {
            assert_eq!(shared.peek(*at, 4096), piece[..], "at {at}");
        }
        shared.fail_writes(40, 1);
        let drive = world.env(CoreId(0)).bind(&shared);
        let written = async move { write_pieces(&drive, &pieces, true, 16).await };
        assert_eq!(world.block_on(CoreId(0), written), Err(DriveError::Fault));
    }
}
