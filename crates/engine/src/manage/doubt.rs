//! Decides, before anything is served, what became of the blocks that a whole group was writing at
//! a crash ([`crate::journal`]): `docs/format.md`, "Writes in flight". The crash may have taken a
//! drive from it; if not, only a block that can't be read is unknown, and usually none is.
//!
//! 1. The newest in-flight page of each lane is found, and written to all drives in sync that don't
//!    have it: it may be on too few of them. A drive that has it is left alone: a power cut might
//!    make the only copy unreadable.
//! 2. Every block of the columns it names is looked at. One that nothing gives for certain is lost.
//! 3. What is lost is listed, in a record of an epoch in which the missing drives have failed.
//! 4. Redundancy is made of what the data is then, with zeros for what is lost; drives are flushed.
//!    Then it is right in every stripe: no region is owed, though some stay dirty until they are
//!    cleaned as any others.
//!
//! Cut short before 3, the next start does the same. After it, it finds the blocks listed, and does
//! not ask redundancy, which may already be made of zeros. The record of the start ends the key.
//!
//! Invariants
//! - Nothing is written but redundant blocks of named columns, and unreadable blocks of them.
//! - A block that a drive gives, or that is in no named column, is never lost.
//! - No redundancy is changed before every block that it alone might have given is listed.

use crate::Host;
use crate::buffers::copy;
use crate::journal::GROUP;
use crate::limits::{DOUBT_STRIPS_AT_ONCE, DOUBTS_AT_ONCE, SLICE_BYTES_MAX};
use crate::lost::{Ranges, from_record};
use crate::manage::area::{Said, in_sync, settle, spread};
use crate::manage::command::ManageError;
use crate::manage::lost::add_to_record;
use crate::manage::managed::Managed;
use crate::mutants::{self, Mutant};
use crate::stripe::give_up::answers;
use crate::watch::{Doing, Watched};
use format::flight::Columns;
use format::limits::LOST_MAX;
use format::{ArrayRecord, AssembleError, Assembly, LostReason, Missing};
use io::{Drive, DriveError, Pool};
use layout::Place;
use parity::Code;
use units::{Slot, StripIndex, StripeNo};

/// What the start goes on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decided {
    /// The group's redundancy is right.
    Right,
    /// A person accepted that it may not be: the group is not guarded any more.
    Unguarded,
}

/// Does what the module says, where there is anything to do. Drives that fail on the way are added
/// to the missing ones.
pub(super) async fn carry_out<E: Host>(
    managed: &Managed<E>,
    assembly: &mut Assembly,
    accept_loss: bool,
    Said { pages, .. }: &Said,
) -> Result<Decided, ManageError> {
    let none = pages.values().all(|found| found.what.entries.is_empty());
    let whole = !managed.lacks(GROUP);
    let keeps = mutants::is(Mutant::DoubtKeepsAll) || whole && mutants::is(Mutant::DoubtWhole);
    if none || keeps {
        return Ok(Decided::Right);
    }
    for found in pages.values() {
        spread(managed, (found.at, &found.image), &found.on, &mut assembly.missing).await?;
    }
    let columns = columns(managed, pages.values().flat_map(|found| &found.what.entries));
    loop {
        let listed_now = || from_record(&managed.record().lost);
        let mut doubt = Doubt { managed, drives: in_sync(managed), listed: listed_now() };
        let lost = match doubt.look(&columns, &mut assembly.missing).await? {
            Looked::Again => continue,
            Looked::All(lost) => lost,
        };
        if mutants::is(Mutant::DoubtUnlisted) {
            doubt.make_right(&columns, &mut assembly.missing).await?;
        }
        if !lost.is_empty() {
            let listed = |r: &ArrayRecord| listed(managed, assembly, r, &lost);
            if listed(&managed.record()).lost.len() > LOST_MAX {
                return too_many(managed, accept_loss).await;
            }
            managed.commit(false, |r| *r = listed(r)).await?;
            managed.all_there()?;
            doubt = Doubt { managed, drives: in_sync(managed), listed: listed_now() };
        }
        if doubt.make_right(&columns, &mut assembly.missing).await? {
            break;
        }
    }
    let drives = managed.drives_taking_part();
    let flushes = drives.iter().map(|(slot, drive)| (*slot, drive.flush())).collect();
    settle(managed, flushes, &mut assembly.missing).await?;
    Ok(Decided::Right)
}

/// The record of an epoch of the drives that are there.
pub(super) fn begin_epoch<E: Host>(
    managed: &Managed<E>,
    assembly: &Assembly,
    now: &ArrayRecord,
) -> ArrayRecord {
    let id = managed.env().random();
    Assembly { record: now.clone(), ..assembly.clone() }.begin(id)
}

/// Makes redundancy of columns that of the data there, with zeros for what is listed and can't be
/// read; false: a drive is out since, or more is lost.
pub(super) async fn make_right<E: Host>(
    managed: &Managed<E>,
    columns: &[Columns],
    out: &mut Vec<Missing>,
) -> Result<bool, ManageError> {
    let listed = from_record(&managed.record().lost);
    Doubt { managed, drives: in_sync(managed), listed }.make_right(columns, out).await
}

/// The record that lists what is lost, in an epoch of the drives that are there.
fn listed<E: Host>(
    managed: &Managed<E>,
    assembly: &Assembly,
    now: &ArrayRecord,
    lost: &[Block],
) -> ArrayRecord {
    let mut record = begin_epoch(managed, assembly, now);
    let mut lost = lost.to_vec();
    lost.sort_unstable();
    let next = |a: &Block, b: &Block| *b == Block { from: a.from + now.block_bytes, ..*a };
    for run in lost.chunk_by(next) {
        let first = run[0];
        let at = (GROUP, StripeNo(first.stripe), StripIndex(first.strip));
        let span = first.from..first.from + run.len() as u32 * now.block_bytes;
        add_to_record(&mut record, managed.layout(), at, span, LostReason::Crash);
    }
    record
}

/// More is lost than can be listed: a person has to accept that nobody knows what.
async fn too_many<E: Host>(
    managed: &Managed<E>,
    accept_loss: bool,
) -> Result<Decided, ManageError> {
    if !accept_loss {
        return Err(AssembleError::NeedsAcceptLoss { groups: vec![GROUP] }.into());
    }
    managed.commit(false, |r| r.groups[GROUP.index()].guarded = false).await?;
    managed.all_there()?;
    Ok(Decided::Unguarded)
}

/// The columns that are named, those that mean something, in pieces that do not overlap. Those of
/// clean regions do not: what was written there is flushed, its redundancy is right, and a drive
/// that comes back is not filled there.
fn columns<'a, E: Host>(
    managed: &Managed<E>,
    named: impl Iterator<Item = &'a Columns>,
) -> Vec<Columns> {
    let layout = managed.layout();
    let block = managed.record().block_bytes;
    let map = managed.keeper().map.borrow();
    let counts = |c: &Columns| {
        c.stripe < layout.stripes(GROUP)
            && c.to <= layout.strip_bytes()
            && c.from.is_multiple_of(block)
            && c.to.is_multiple_of(block)
            && map.may_be_written(GROUP, c.stripe)
    };
    let mut all: Vec<Columns> = named.copied().filter(counts).collect();
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let joined = next.stripe == last.stripe && next.from <= last.to;
        if joined {
            last.to = last.to.max(next.to);
        }
        joined
    });
    let step = SLICE_BYTES_MAX as u32;
    let pieces = |c: Columns| {
        let begins = (c.from..c.to).step_by(step as usize);
        begins.map(move |from| Columns { from, to: c.to.min(from + step), ..c })
    };
    all.into_iter().flat_map(pieces).collect()
}

/// A block of a data strip.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Block {
    stripe: u64,
    strip: u16,
    from: u32,
}

/// What a look at all columns came to.
enum Looked {
    /// A drive is out since.
    Again,
    /// These are lost, and not listed.
    All(Vec<Block>),
}

/// Columns as the drives have them: a strip for each that is there, and which blocks could be read.
struct Strips {
    bytes: Vec<Option<Vec<u8>>>,
    readable: Vec<Vec<bool>>,
}

/// The drives that the decision rests on.
struct Doubt<'a, E: Host> {
    managed: &'a Managed<E>,
    drives: Vec<(Slot, Watched<E>)>,
    /// What is listed as lost.
    listed: Ranges<LostReason>,
}

impl<E: Host> Doubt<'_, E> {
    fn shape(&self) -> (usize, usize, usize) {
        let layout = self.managed.layout();
        let block = self.managed.record().block_bytes as usize;
        (layout.k(GROUP).into(), layout.m(GROUP).into(), block)
    }

    /// How many columns are in memory at the same time.
    fn at_once(&self) -> usize {
        let (k, m, _) = self.shape();
        DOUBTS_AT_ONCE.min(DOUBT_STRIPS_AT_ONCE / (k + m))
    }

    /// The drive of a strip, if it is there, and where its columns begin on it.
    fn strip(&self, columns: &Columns, strip: usize) -> (Slot, Option<&Watched<E>>, u64) {
        let stripe = StripeNo(columns.stripe);
        let (slot, offset) = self.managed.layout().seat(GROUP, stripe, StripIndex(strip as u16));
        let drive = self.drives.iter().find(|(s, _)| *s == slot).map(|(_, drive)| drive);
        (slot, drive, self.managed.record().data_offset + offset + u64::from(columns.from))
    }

    /// Reads columns, all at once; `None` if a drive failed, and is out since.
    async fn read(
        &self,
        all: &[Columns],
        out: &mut Vec<Missing>,
    ) -> Result<Option<Vec<Strips>>, ManageError> {
        let (k, m, block) = self.shape();
        let seats = all.iter().flat_map(|c| (0..k + m).map(move |strip| (*c, strip)));
        let mut tickets = Vec::new();
        for (columns, strip) in seats {
            let (slot, drive, at) = self.strip(&columns, strip);
            let bytes = (columns.to - columns.from) as usize;
            let reading = drive.map(|drive| (drive, drive.read(at, Pool::single(bytes))));
            tickets.push((bytes, slot, at, reading));
        }
        let (mut bytes, mut readable, mut failed) = (Vec::new(), Vec::new(), None);
        for (size, slot, at, reading) in tickets {
            let Some((drive, reading)) = reading else {
                bytes.push(None);
                readable.push(vec![false; size / block]);
                continue;
            };
            let (mut result, part) = reading.await;
            let (mut image, mut known) = (part.to_vec(), vec![true; size / block]);
            if result == Err(DriveError::Media) {
                result = read_blocks(drive, at, &mut image, &mut known).await;
                if result.is_ok() && !answers(drive).await {
                    result = Err(DriveError::Gone);
                }
            }
            failed = result.err().map(|error| (slot, error)).or(failed);
            bytes.push(Some(image));
            readable.push(known);
        }
        if let Some((slot, error)) = failed {
            self.managed.leave_out(slot, error, out)?;
            return Ok(None);
        }
        let mut strips = Vec::new();
        while !bytes.is_empty() {
            let (bytes, readable) = (bytes.drain(..k + m), readable.drain(..k + m));
            strips.push(Strips { bytes: bytes.collect(), readable: readable.collect() });
        }
        Ok(Some(strips))
    }

    /// Whether a block is listed as lost.
    fn is_listed(&self, block: Block) -> bool {
        let record = self.managed.record();
        let (stripe, strip) = (StripeNo(block.stripe), StripIndex(block.strip));
        let place = Place { group: GROUP, stripe, strip, offset: block.from };
        let start = self.managed.layout().array_offset(place);
        self.listed.touches(start..start + u64::from(record.block_bytes))
    }

    /// Fills in what P and Q give, and zeros for the rest of the data that nothing gives: that is
    /// lost. All data is there on return.
    fn decide(&self, columns: &Columns, strips: &mut Strips) -> Vec<Block> {
        let (k, m, block) = self.shape();
        let mut lost = Vec::new();
        for i in 0..(columns.to - columns.from) as usize / block {
            let unknown: Vec<usize> = (0..k).filter(|s| !strips.readable[*s][i]).collect();
            let from = columns.from + (i * block) as u32;
            let named = |strip: usize| Block { stripe: columns.stripe, strip: strip as u16, from };
            let mut value = None;
            if let ([one], 2) = (&unknown[..], m)
                && !self.is_listed(named(*one))
            {
                value = self.both_say(strips, *one, i);
            }
            if value.is_none() {
                lost.extend(unknown.iter().map(|strip| named(*strip)));
            }
            for strip in unknown {
                let all = strips.readable[strip].len() * block;
                let image = strips.bytes[strip].get_or_insert_with(|| vec![0; all]);
                let place = &mut image[i * block..][..block];
                match &value {
                    Some(value) => place.copy_from_slice(value),
                    None => place.fill(0),
                }
            }
        }
        lost
    }

    /// What P and Q both give for a block of a data strip, if they do.
    fn both_say(&self, strips: &Strips, strip: usize, i: usize) -> Option<Vec<u8>> {
        let (k, m, block) = self.shape();
        let code = Code::new(k, m).expect("a layout's k and m are a code's");
        let by = |without: usize| {
            let column = |s: usize| {
                let there = s != strip && s != without && strips.readable[s][i];
                let image = strips.bytes[s].as_ref().filter(|_| there)?;
                Some(&image[i * block..][..block])
            };
            let given: Vec<Option<&[u8]>> = (0..k + m).map(column).collect();
            let mut out = vec![0; block];
            code.recover(&given, &[strip], &mut [&mut out]).ok().map(|()| out)
        };
        let (p, q) = (by(k + 1)?, by(k)?);
        (p == q).then_some(p)
    }

    /// What is lost of all columns, and not listed.
    async fn look(&self, all: &[Columns], out: &mut Vec<Missing>) -> Result<Looked, ManageError> {
        let mut lost = Vec::new();
        for some in all.chunks(self.at_once()) {
            let Some(strips) = self.read(some, out).await? else {
                return Ok(Looked::Again);
            };
            for (columns, mut strips) in some.iter().zip(strips) {
                let found = self.decide(columns, &mut strips);
                lost.extend(found.into_iter().filter(|block| !self.is_listed(*block)));
            }
        }
        Ok(Looked::All(lost))
    }

    /// Writes what step 4 says; false: a drive is out, or lost more, and all has to be looked at
    /// again.
    async fn make_right(
        &self,
        all: &[Columns],
        out: &mut Vec<Missing>,
    ) -> Result<bool, ManageError> {
        for some in all.chunks(self.at_once()) {
            let Some(strips) = self.read(some, out).await? else {
                return Ok(false);
            };
            let mut tickets = Vec::new();
            for (columns, mut strips) in some.iter().zip(strips) {
                let lost = self.decide(columns, &mut strips);
                let unlisted = mutants::is(Mutant::DoubtUnlisted);
                if !unlisted && lost.iter().any(|block| !self.is_listed(*block)) {
                    settle(self.managed, tickets, out).await?;
                    return Ok(false);
                }
                self.write(columns, &strips, &mut tickets);
            }
            let before = out.len();
            settle(self.managed, tickets, out).await?;
            if out.len() > before {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Begins to write what is not right of columns whose data is decided.
    fn write(&self, columns: &Columns, strips: &Strips, tickets: &mut Vec<(Slot, Doing<E>)>) {
        let (k, m, block) = self.shape();
        let code = Code::new(k, m).expect("a layout's k and m are a code's");
        let bytes = (columns.to - columns.from) as usize;
        let mut parity = vec![vec![0; bytes]; m];
        {
            let whole = |s: usize| &strips.bytes[s].as_ref().expect("all data is there")[..];
            let data: Vec<&[u8]> = (0..k).map(whole).collect();
            let mut outputs: Vec<&mut [u8]> = parity.iter_mut().map(|p| &mut p[..]).collect();
            code.generate(&data, &mut outputs);
        }
        for strip in 0..k + m {
            let (slot, Some(drive), at) = self.strip(columns, strip) else {
                continue;
            };
            let old = strips.bytes[strip].as_ref().expect("it was read");
            let new = if strip < k { old } else { &parity[strip - k] };
            for i in 0..bytes / block {
                let range = i * block..(i + 1) * block;
                let right = strips.readable[strip][i] && old[range.clone()] == new[range.clone()];
                if !right {
                    let place = at + range.start as u64;
                    tickets.push((slot, drive.write(place, &[copy(&new[range])], false)));
                }
            }
        }
    }
}

/// Reads blocks one by one where not all of a range can be read: which can, and what they hold.
async fn read_blocks<E: Host>(
    drive: &Watched<E>,
    at: u64,
    image: &mut [u8],
    known: &mut [bool],
) -> Result<(), DriveError> {
    let block = image.len() / known.len();
    let mut outcome = Ok(());
    for (i, known) in known.iter_mut().enumerate() {
        let (read, part) = drive.read(at + (i * block) as u64, Pool::single(block)).await;
        *known = read.is_ok();
        image[i * block..][..block].copy_from_slice(&part);
        if read != Err(DriveError::Media) {
            outcome = outcome.and(read);
        }
    }
    outcome
}
