//! Goes on without blocks that nobody can give: a rebuild or resync that meets them would have to
//! stop otherwise, and everything behind them would be without redundancy; a write that needs them
//! (its own blocks, or those of a missing drive that only parity holds) could not be taken.
//!
//! | step | what                                                                                 |
//! |------|--------------------------------------------------------------------------------------|
//! | 1    | all strips of the range are read once more; if they say enough now, nothing is lost.  |
//! |      | A drive that can't read them must be able to read something: see [`answers`]          |
//! | 2    | the data that can't be read, or computed, is listed: durable, known to every core     |
//! | 3    | zeros are written in its place, on every drive that takes writes, and parity anew;   |
//! |      | in a group that lacks a drive all of that is in the journal first                    |
//!
//! The stripe is busy all the time, and its region dirty. Cut short after step 2, the range is met
//! again: it lies above the border, or in a region that is still dirty. Whatever it holds by then
//! is nobody's data, and what the other strips hold was not touched.
//!
//! Invariants
//! - Only what is listed is written over, and parity. A strip that can be read is left as it is.
//! - Nothing is given up that a drive would give that is only missing, or whose redundancy is not
//!   right yet: it must be unreadable blocks that are in the way.

use crate::Host;
use crate::array::Array;
use crate::array::message::LostChange;
use crate::journal::Logged;
use crate::limits::PARITIES_MAX;
use crate::mutants::{self, Mutant};
use crate::stripe::execute::{Columns, Unread, Work, Writes, end};
use crate::stripe::plan::StripSet;
use crate::stripe::table::StripeKey;
use crate::watch::Watched;
use arrayvec::ArrayVec;
use format::LostReason;
use io::{BlockError, BufMut, Drive, DriveError, Pool};
use layout::CodeKind;

/// Gives up what nobody can give of a range of a stripe's strips. False: there is nothing to give
/// up, the strips can be read after all. With `contrary`, what is computed from redundancy that is
/// not trusted counts for nothing: it was seen to contradict itself in this range.
///
/// # Errors
/// `Unavailable`: drives are in the way, not blocks, or the list has no room.
pub(crate) async fn give_up<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    span: (u32, u32),
    (reason, contrary): (LostReason, bool),
) -> Result<bool, BlockError> {
    array.ensure_unclean(key.group).await;
    loop {
        let (bound, change) = array.begin_change().await;
        let mut state = bound.view.stripe_state(key);
        state.parity_gives &= !contrary;
        if bound.view.frozen(key.group) || !state.says_all(bound.view.code(key) == CodeKind::Mirror)
        {
            return Err(BlockError::Unavailable);
        }
        let units = state.k + 2 * state.m;
        array.scratch().reserve(units).await;
        let mut work = Work { array, bound: &bound, key, state };
        let step = work.give_up(span).await;
        array.scratch().release(units);
        match step {
            Step::Known => return Ok(false),
            Step::Moved => return Err(BlockError::Unavailable),
            Step::Unlisted(lost) => {
                drop(change);
                array.change_lost(LostChange::Add(lost, reason)).await?;
            }
            Step::Again => {}
            Step::Written(missed, logged) => {
                end(array, key, (bound, change), missed, (logged, false)).await?;
                return missed.is_empty().then_some(true).ok_or(BlockError::Unavailable);
            }
        }
    }
}

/// Gives up what nobody can give of a range that is about to be written, block by block, so that
/// nothing is lost beside it.
///
/// # Errors
/// As [`give_up`].
pub(crate) async fn give_up_blocks<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    (mut lo, hi): (u32, u32),
) -> Result<(), BlockError> {
    let block = array.bound().view.block_bytes;
    while lo < hi {
        give_up(array, key, (lo, lo + block), (LostReason::Write, false)).await?;
        lo += block;
    }
    Ok(())
}

/// Whether a drive that can't read some blocks can read anything: one that was pulled, or whose
/// path is gone, may answer every read as if its blocks were bad (Linux: `EIO` for all of them).
/// One of its records it could read when it was taken.
pub(crate) async fn answers<E: Host>(drive: &Watched<E>) -> bool {
    for at in format::slot_offsets(drive.info().bytes) {
        if drive.read(at, Pool::single(format::limits::IMAGE_ALIGN)).await.0.is_ok() {
            return true;
        }
    }
    false
}

/// How far giving up came under one snapshot.
enum Step {
    /// The strips say what all data is.
    Known,
    /// A drive is going; nobody knows yet what that means.
    Moved,
    /// These must be listed first.
    Unlisted(Vec<core::ops::Range<u64>>),
    /// The journal does not take what was planned under this snapshot.
    Again,
    /// Done, but for the strips that missed it; and what of the journal area tells of it.
    Written(StripSet, Logged),
}

impl<E: Host> Work<'_, E> {
    async fn give_up(&mut self, span: (u32, u32)) -> Step {
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let read = self.read_strips(self.state.readable, |_| span, &mut columns).await;
        let step = self.go_on_without(span, read.err().unwrap_or_default(), &mut columns).await;
        self.put_back(&mut columns);
        step
    }

    async fn go_on_without(
        &mut self,
        span: (u32, u32),
        unread: Unread,
        columns: &mut Columns,
    ) -> Step {
        if unread.strips != unread.bad || !self.all_answer(unread.bad).await {
            return Step::Moved;
        }
        self.state.readable = self.state.readable.without(unread.bad);
        let (state, view) = (self.state, &self.bound.view);
        let mirror = view.code(self.key) == CodeKind::Mirror;
        if state.says_all(mirror) {
            return Step::Known;
        }
        let data = if mirror { 1 } else { state.k };
        let lost = StripSet::range(0, data).without(state.readable);
        let lost = if mirror { StripSet::one(0) } else { lost };
        let mut unlisted = Vec::new();
        for range in lost.iter().map(|strip| view.addresses(self.key, strip, span)) {
            let listed: u64 =
                view.lost.listed.within(range.clone()).map(|(r, _)| r.end - r.start).sum();
            if listed < range.end - range.start {
                unlisted.push(range);
            }
        }
        if !unlisted.is_empty() && !mutants::is(Mutant::LostUnlisted) {
            return Step::Unlisted(unlisted);
        }
        let written = self.write_without(span, lost, mirror, columns).await;
        let Ok((missed, logged)) = written else { return Step::Again };
        let written = unread.bad.without(missed);
        // What was read is not needed any more, and was reserved for.
        self.put_back(columns);
        Step::Written(missed.or(self.read_again(written, span).await), logged)
    }

    /// Whether the drives of strips that can't be read are there; those that are not are reported.
    async fn all_answer(&self, bad: StripSet) -> bool {
        let mut all = true;
        for strip in bad.iter() {
            let (drive, _, slot) = self.bound.strip(self.key, strip);
            if !answers(drive).await {
                let incarnation = self.bound.view.slots[slot.index()].incarnation;
                self.array.report(slot, incarnation, DriveError::Gone);
                all = false;
            }
        }
        all
    }

    /// Writes zeros for the lost strips and parity over what all data strips hold then. `Err`: the
    /// journal must have it first, and does not take it.
    async fn write_without(
        &self,
        span: (u32, u32),
        lost: StripSet,
        mirror: bool,
        columns: &mut Columns,
    ) -> Result<(StripSet, Logged), ()> {
        let bytes = (span.1 - span.0) as usize;
        let zeros = self.array.zeros().slice(..bytes);
        let (k, m) = (self.state.k, self.state.m);
        if mirror {
            let mut out = Writes::new(self);
            for strip in StripSet::range(0, k + m).and(self.state.writable).iter() {
                out.push(strip, span.0, core::slice::from_ref(&zeros), false).await;
            }
            return Ok((out.finish().await, Logged::Nothing));
        }
        // Parity that was read makes room for what is computed.
        for column in columns.iter_mut().skip(k) {
            column.take().into_iter().for_each(|c| self.array.scratch().put(c));
        }
        let mut parity: ArrayVec<BufMut, PARITIES_MAX> =
            (0..m).map(|_| self.scratch(bytes)).collect();
        {
            let data: ArrayVec<&[u8], { crate::stripe::execute::STRIPS }> = (0..k)
                .map(|strip| match &columns[strip] {
                    Some(column) if !lost.has(strip) => &column[..],
                    _ => &zeros[..],
                })
                .collect();
            let mut outputs: ArrayVec<&mut [u8], PARITIES_MAX> =
                parity.iter_mut().map(|p| &mut p[..]).collect();
            self.code().generate(&data, &mut outputs);
        }
        let parity: ArrayVec<_, PARITIES_MAX> = parity.into_iter().map(BufMut::freeze).collect();
        let anew = (k..).zip(&parity);
        let all = || lost.iter().map(|strip| (strip, &zeros)).chain(anew.clone());
        let all = || all().filter(|(strip, _)| self.state.writable.has(*strip));
        let logged = match self.enter_flight(span).await {
            Logged::Nothing => {
                self.log_ranges(all().map(|(strip, data)| (strip, span.0, data))).await
            }
            entered => self.named(entered).await,
        };
        let mut missed = StripSet::default();
        if logged.is_ok() {
            let mut out = Writes::new(self);
            for (strip, data) in all() {
                out.push(strip, span.0, core::slice::from_ref(data), false).await;
            }
            missed = out.finish().await;
        }
        parity.into_iter().for_each(|column| self.array.scratch().put_shared(column));
        logged.map(|logged| (missed, logged))
    }
}
