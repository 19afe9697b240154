//! The executor: carries out what a worker has gathered for a stripe.
//!
//! A batch of writes is cut into slices; each is planned, read, computed and written by one
//! short async function (`write_slice`, `write_copies`). A plan belongs to the stripe and runs
//! to its end; requesters only wait for it.
//!
//! Invariants
//! - Nothing is written before everything the plan reads was read. A read that fails, or whose
//!   drive was taken out before it ended (D2), takes its strip out of the count ([`Unread`]) and
//!   the slice is planned again; nothing has changed on any drive.
//! - Once writing has begun it goes on whatever a drive says: parity is written from memory, so
//!   with the failed drive out the stripe is consistent. The answer waits until the failure is
//!   durable and known to all cores.
//! - A worker holds at most one reservation of scratch slices and takes it whole, so that
//!   workers can't wait for each other.

use crate::Host;
use crate::array::{Active, Array, Bound};
use crate::journal::Logged;
use crate::journal::lane::Wanted;
use crate::limits::{DRIVES_MAX, PARITIES_MAX};
use crate::mutants::{self, Mutant};
use crate::stripe::give_up;
use crate::stripe::plan::{Mode, Plan, StripSet, StripeState, plan_write};
use crate::stripe::slice::{Fragment, coverage};
use crate::stripe::table::StripeKey;
use crate::stripe::worker::Bench;
use crate::watch::Doing;
use arrayvec::ArrayVec;
use format::flight::Columns as FlightColumns;
use format::journal::StripRange;
use io::drive::GATHER_MAX;
use io::{BlockError, Buf, BufMut, Drive, DriveError, Gather};
use layout::CodeKind;
use std::rc::Rc;

/// Most strips of a stripe.
pub(crate) const STRIPS: usize = DRIVES_MAX;

/// One buffer per strip of a stripe, where there is one.
pub(crate) type Columns = ArrayVec<Option<BufMut>, STRIPS>;

/// A stripe and the snapshot under which it is worked on.
pub(crate) struct Work<'a, E: Host> {
    pub array: &'a Array<E>,
    pub bound: &'a Bound<E>,
    pub key: StripeKey,
    pub state: StripeState,
}

/// Strips that a read did not give.
#[derive(Clone, Copy, Default)]
pub(crate) struct Unread {
    /// All of them.
    pub strips: StripSet,
    /// Those of drives that count and could not read these blocks.
    pub bad: StripSet,
}

impl Unread {
    /// Adds a strip whose read ended so.
    pub fn strip(&mut self, strip: usize, result: Result<(), DriveError>) {
        let one = StripSet::one(strip);
        self.strips = self.strips.or(one);
        if result == Err(DriveError::Media) {
            self.bad = self.bad.or(one);
        }
    }

    /// Adds what another read did not give.
    pub fn add(&mut self, other: Self) {
        self.strips = self.strips.or(other.strips);
        self.bad = self.bad.or(other.bad);
    }
}

pub(super) async fn write_batch<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    bench: &mut Bench,
) -> Result<(), BlockError> {
    let Bench { batch, part, durable, .. } = bench;
    *durable &= !mutants::is(Mutant::FuaDropped);
    array.ensure_unclean(key.group).await;
    batch.cut();
    let mut result = Ok(());
    for &(lo, end) in batch.ranges() {
        let mut lo = lo;
        while lo < end {
            // Again from here if the array became degraded since: then slices are shorter.
            let hi = end.min(lo + array.slice_most());
            let fragments = if batch.ranges().len() == 1 && batch.ranges()[0] == (lo, hi) {
                batch.fragments()
            } else {
                part.clear();
                part.extend(batch.fragments().iter().filter_map(|f| f.within(lo, hi)));
                &part[..]
            };
            let slice = Slice { lo, hi, fragments, durable: *durable };
            let mirror = array.bound().view.code(key) == CodeKind::Mirror;
            let outcome = if mirror {
                Some(write_copies(array, key, &slice).await)
            } else {
                write_slice(array, key, &slice).await
            };
            if let Some(outcome) = outcome {
                result = result.and(outcome);
                lo = hi;
            }
        }
    }
    part.clear();
    result
}

/// What is written of a stripe in one go: bytes `lo..hi` of every strip.
pub(super) struct Slice<'a> {
    pub lo: u32,
    pub hi: u32,
    pub fragments: &'a [Fragment],
    durable: bool,
}

impl Slice<'_> {
    pub fn bytes(&self) -> usize {
        (self.hi - self.lo) as usize
    }

    /// The bounding range of what is written to a strip.
    pub fn span(&self, strip: usize) -> (u32, u32) {
        let mut span = (u32::MAX, 0);
        for f in self.fragments.iter().filter(|f| usize::from(f.strip) == strip) {
            span = (span.0.min(f.from), span.1.max(f.to()));
        }
        span
    }

    /// The new bytes of a strip where they are one run over the whole slice.
    pub fn single(&self, strip: usize) -> Option<&Buf> {
        self.fragments
            .iter()
            .find(|f| usize::from(f.strip) == strip && f.data.len() == self.bytes())
            .map(|f| &f.data)
    }
}

/// Writes a slice of a stripe with parity; `None`: it is too long.
async fn write_slice<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    slice: &Slice<'_>,
) -> Option<Result<(), BlockError>> {
    let (touched, whole) = coverage(slice.fragments, slice.lo, slice.hi);
    let mut unread = Unread::default();
    loop {
        let (bound, change) = array.begin_change().await;
        if bound.view.frozen(key.group) {
            return Some(Err(BlockError::Unavailable));
        }
        if slice.hi - slice.lo > array.slice_most() {
            return None;
        }
        let mut state = bound.view.stripe_state(key);
        state.readable = state.readable.without(unread.strips);
        let Some(plan) = plan_write(&state, touched, whole) else {
            if unread.bad.is_empty() {
                return Some(Err(BlockError::Unavailable));
            }
            drop(change);
            let given_up = give_up::give_up_blocks(array, key, (slice.lo, slice.hi)).await;
            if let Err(error) = given_up {
                return Some(Err(error));
            }
            unread = Unread::default();
            continue;
        };
        let work = Work { array, bound: &bound, key, state };
        let units = match plan.mode {
            // Parities change in place.
            Mode::ReadModifyWrite => plan.read.len(),
            _ => {
                let assembled = (0..state.k).filter(|s| slice.single(*s).is_none()).count();
                plan.read.len().max(assembled) + 2 * state.m
            }
        };
        array.scratch().reserve(units).await;
        let outcome = work.write_planned(&plan, slice, touched).await;
        array.scratch().release(units);
        match outcome {
            Ok((missed, logged)) => {
                return Some(
                    end(array, key, (bound, change), missed, (logged, slice.durable)).await,
                );
            }
            Err(failed) => unread.add(failed),
        }
    }
}

/// Ends a change that is in place: as [`settle`], and the journal need not stand for it any more.
/// It counts as under way until the drives that missed it are out: no guard is recorded over one
/// that is not. And it is not acknowledged before its group is guarded again. What was written
/// `durable` is in no cache.
pub(crate) async fn end<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    (bound, change): (Rc<Bound<E>>, Active<'_>),
    missed: StripSet,
    (logged, durable): (Logged, bool),
) -> Result<(), BlockError> {
    if !mutants::is(Mutant::NoFailureWait) {
        take_out(array, key, &bound, missed).await;
    }
    drop(change);
    let settled = settle(array, key, bound, missed).await;
    // What a dropped drive missed stays in the journal area: it will be back.
    if settled.is_ok() {
        over(array, logged, !durable);
    }
    if settled.is_ok() && !missed.is_empty() {
        array.past_hold().await;
        if array.bound().view.frozen(key.group) {
            return Err(BlockError::Unavailable);
        }
    }
    settled
}

/// The journal area need not tell of a change any more, or not once caches that hold it are
/// flushed.
fn over<E: Host>(array: &Array<E>, logged: Logged, cached: bool) {
    match (logged, array.flight()) {
        (Logged::Batch(lane, batch), _) => array.lanes()[lane].over(batch),
        (Logged::Flight(ticket), Some(flight)) => flight.over(array, ticket, cached),
        _ => {}
    }
}

/// Waits until every core routes as a write under `bound` did: until then another core may read
/// a drive that the write left out (D2). And until the drive of every strip that missed it is out
/// of the array: the write counts if all of them are recorded as failed, durably; a dropped one
/// would come back without it.
pub(crate) async fn settle<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    bound: Rc<Bound<E>>,
    missed: StripSet,
) -> Result<(), BlockError> {
    array.known_to_all(bound.view.generation).await;
    if missed.is_empty() {
        return Ok(());
    }
    if mutants::is(Mutant::NoFailureWait) {
        return Ok(());
    }
    take_out(array, key, &bound, missed).await;
    let frozen = array.bound().view.frozen(key.group);
    if frozen { Err(BlockError::Unavailable) } else { Ok(()) }
}

/// Has the drives of strips fail that missed a write, and waits until they are out.
pub(crate) async fn take_out<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    bound: &Bound<E>,
    missed: StripSet,
) {
    if missed.is_empty() {
        return;
    }
    let slots = missed.iter().map(|strip| bound.strip(key, strip).2).collect();
    array.fail_all_and_wait(bound, slots).await;
}

impl<E: Host> Work<'_, E> {
    /// A scratch slice; the caller's reservation covers it.
    pub fn scratch(&self, bytes: usize) -> BufMut {
        self.array.scratch().take(bytes)
    }

    /// Makes one column without a buffer for each strip.
    pub fn clear(&self, columns: &mut Columns) {
        columns.clear();
        for _ in 0..self.state.k + self.state.m {
            columns.push(None);
        }
    }

    /// Gives the buffers of columns back.
    pub fn put_back(&self, columns: &mut Columns) {
        for column in columns.iter_mut().filter_map(Option::take) {
            self.array.scratch().put(column);
        }
    }

    /// Reads bytes `lo..hi` of the `wanted` strips, or what `span` says of each. `Err` says which
    /// could not be read.
    pub async fn read_strips(
        &self,
        wanted: StripSet,
        span: impl Fn(usize) -> (u32, u32),
        columns: &mut Columns,
    ) -> Result<(), Unread> {
        let mut tickets = ArrayVec::<_, STRIPS>::new();
        for strip in wanted.iter() {
            let (lo, hi) = span(strip);
            let (drive, at, slot) = self.bound.strip(self.key, strip);
            let into = self.scratch((hi - lo) as usize);
            tickets.push((strip, slot, drive.read(at + u64::from(lo), into)));
        }
        let mut failed = Unread::default();
        for (strip, slot, ticket) in &mut tickets {
            let (strip, (result, mut column)) = (*strip, ticket.await);
            if mutants::is(Mutant::UnreadAsZeros) && result == Err(DriveError::Media) {
                column.fill(0);
                columns[strip] = Some(column);
                continue;
            }
            columns[strip] = Some(column);
            if self.array.believe(self.bound, self.key, *slot, result).is_err() {
                failed.strip(strip, result);
            }
        }
        if failed.strips.is_empty() { Ok(()) } else { Err(failed) }
    }

    /// Reads, computes, logs and writes as planned: the strips that missed it, and what of the
    /// journal area tells of it. `Err`: strips that could not be read, or none where it was not
    /// logged;
    /// then nothing was written.
    async fn write_planned(
        &self,
        plan: &Plan,
        slice: &Slice<'_>,
        touched: StripSet,
    ) -> Result<(StripSet, Logged), Unread> {
        let entered = self.enter_flight((slice.lo, slice.hi)).await;
        if self.bound.view.inline {
            // No read goes on beside the page: what is read is still at hand when it is written.
            let named = self.named(entered).await;
            named.map_err(|()| Unread::default())?;
        }
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let modify = plan.mode == Mode::ReadModifyWrite;
        let whole_slice = (slice.lo, slice.hi);
        let span = |strip: usize| {
            if modify && strip < self.state.k { slice.span(strip) } else { whole_slice }
        };
        let read = self.read_strips(plan.read, span, &mut columns).await;
        if let Err(failed) = read {
            self.put_back(&mut columns);
            over(self.array, entered, false);
            return Err(failed);
        }
        let mut parity: ArrayVec<Option<Buf>, PARITIES_MAX> = ArrayVec::new();
        if modify {
            self.apply_difference(slice, plan.parity, &mut columns);
            for i in 0..self.state.m {
                parity.push(columns[self.state.k + i].take().map(BufMut::freeze));
            }
        } else {
            if plan.mode == Mode::Degraded {
                self.recover_data(slice.bytes(), &mut columns).await;
                if let (true, Some(first)) = (mutants::is(Mutant::ScratchReused), &mut columns[0]) {
                    first.fill(0);
                }
            }
            self.compute_parity(slice, &mut columns, &mut parity).await;
        }
        self.put_back(&mut columns);
        let logged = match entered {
            Logged::Nothing => self.log(plan, slice, touched, &parity).await,
            _ => self.named(entered).await,
        };
        let mut missed = StripSet::default();
        if logged.is_ok() {
            missed = self.write_out(plan, slice, touched, &parity).await;
        }
        for column in parity.into_iter().flatten() {
            self.array.scratch().put_shared(column);
        }
        logged.map(|logged| (missed, logged)).map_err(|()| Unread::default())
    }

    /// Has a batch say what is about to be written, if the group lacks a drive. `Err`: it must be
    /// planned anew.
    async fn log(
        &self,
        plan: &Plan,
        slice: &Slice<'_>,
        touched: StripSet,
        parity: &[Option<Buf>],
    ) -> Result<Logged, ()> {
        let targets = touched.and(self.state.writable);
        let data = slice.fragments.iter().filter(|f| targets.has(f.strip.into()));
        let data = data.map(|f| (usize::from(f.strip), f.from, &f.data));
        let parity = parity.iter().enumerate().filter_map(|(i, column)| {
            let strip = self.state.k + i;
            let column = column.as_ref().filter(|_| plan.parity.has(strip))?;
            Some((strip, slice.lo, column))
        });
        self.log_ranges(data.chain(parity)).await
    }

    /// Puts new bytes of strips into the journal, where it is in use, before they are written:
    /// strip, first byte, bytes. The batch they are in; `Err`: the snapshot is not the one to
    /// write under any more.
    pub(crate) async fn log_ranges<'a>(
        &self,
        ranges: impl Iterator<Item = (usize, u32, &'a Buf)>,
    ) -> Result<Logged, ()> {
        let view = &self.bound.view;
        let used = view.journal_key != 0 && !mutants::is(Mutant::JournalSkipped);
        let Some((at, lane)) = self.array.lane_of(self.key).filter(|_| used) else {
            return Ok(Logged::Nothing);
        };
        let (mut into, mut payload) = (Vec::new(), Vec::new());
        for (strip, from, data) in ranges {
            let (_, _, slot) = self.bound.strip(self.key, strip);
            let drive = view.slots[slot.index()].drive;
            let (strip, bytes) = (strip as u16, data.len() as u32);
            into.push(StripRange { strip, from, bytes, drive });
            payload.push(data.clone());
        }
        let (key, stripe) = (view.journal_key, self.key.stripe.0);
        let wanted = Wanted { key, stripe, ranges: into, payload };
        lane.log(wanted).await.map(|batch| Logged::Batch(at, batch))
    }

    /// Enters columns of a whole group that are about to be written in what is in flight.
    pub(crate) async fn enter_flight(&self, (from, to): (u32, u32)) -> Logged {
        let used = self.bound.view.flight_key != 0 && !mutants::is(Mutant::FlightSkipped);
        let Some(flight) = self.array.flight().filter(|_| used) else {
            return Logged::Nothing;
        };
        let stripe = self.key.stripe.0;
        Logged::Flight(flight.enter(FlightColumns { stripe, from, to }).await)
    }

    /// Waits until what was entered may be written in place. `Err`: plan it anew.
    pub(crate) async fn named(&self, entered: Logged) -> Result<Logged, ()> {
        let (Logged::Flight(ticket), Some(flight)) = (entered, self.array.flight()) else {
            return Ok(entered);
        };
        let named = flight.named(self.array, self.bound.view.flight_key, ticket).await;
        if named.is_err() {
            over(self.array, entered, false);
        }
        named.map(|()| entered)
    }

    /// Writes the new data and the parities to every drive that takes writes.
    async fn write_out(
        &self,
        plan: &Plan,
        slice: &Slice<'_>,
        touched: StripSet,
        parity: &[Option<Buf>],
    ) -> StripSet {
        let mut out = Writes::new(self);
        let targets = touched.and(self.state.writable);
        let mut rest = slice.fragments;
        while let Some(first) = rest.first() {
            let run = run_length(rest);
            let (these, behind) = rest.split_at(run);
            rest = behind;
            let strip = usize::from(first.strip);
            if !targets.has(strip) {
                continue;
            }
            if run == 1 {
                let data = core::slice::from_ref(&first.data);
                out.push(strip, first.from, data, slice.durable).await;
            } else {
                let data: Gather = these.iter().map(|f| f.data.clone()).collect();
                out.push(strip, first.from, &data, slice.durable).await;
            }
        }
        for (i, column) in parity.iter().enumerate() {
            let strip = self.state.k + i;
            if let (true, Some(column)) = (plan.parity.has(strip), column) {
                out.push(strip, slice.lo, core::slice::from_ref(column), slice.durable).await;
            }
        }
        out.finish().await
    }
}

/// How many of the first fragments make one write: each begins where the one before it ends.
fn run_length(fragments: &[Fragment]) -> usize {
    let joins = |pair: &[Fragment]| pair[0].strip == pair[1].strip && pair[0].to() == pair[1].from;
    let joined = fragments.windows(2).take_while(|pair| joins(pair)).count();
    (joined + 1).min(GATHER_MAX)
}

/// Writes of a stripe under way, and the strips that missed one.
pub(crate) struct Writes<'w, 'a, E: Host> {
    work: &'w Work<'a, E>,
    tickets: ArrayVec<(u8, Doing<E>), STRIPS>,
    missed: StripSet,
}

impl<'w, 'a, E: Host> Writes<'w, 'a, E> {
    pub fn new(work: &'w Work<'a, E>) -> Self {
        Self { work, tickets: ArrayVec::new(), missed: StripSet::default() }
    }

    /// Starts a write at `from` in a strip.
    pub async fn push(&mut self, strip: usize, from: u32, data: &[Buf], fua: bool) {
        if self.tickets.is_full() {
            self.collect().await;
        }
        let (drive, at, _) = self.work.bound.strip(self.work.key, strip);
        self.tickets.push((strip as u8, drive.write(at + u64::from(from), data, fua)));
    }

    async fn collect(&mut self) {
        for (strip, ticket) in &mut self.tickets {
            if ticket.await.is_err() && !mutants::is(Mutant::WriteErrorLost) {
                self.missed = self.missed.or(StripSet::one((*strip).into()));
            }
        }
        self.tickets.clear();
    }

    /// Waits for all of them; the strips that missed something.
    pub async fn finish(&mut self) -> StripSet {
        self.collect().await;
        self.missed
    }
}

/// Writes a slice of a mirrored stripe: every fragment to every copy.
async fn write_copies<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    slice: &Slice<'_>,
) -> Result<(), BlockError> {
    let bound = array.bound();
    let state = bound.view.stripe_state(key);
    if state.readable.is_empty() || bound.view.frozen(key.group) {
        return Err(BlockError::Unavailable);
    }
    let work = Work { array, bound: &bound, key, state };
    let mut out = Writes::new(&work);
    for fragment in slice.fragments {
        let skip = usize::from(mutants::is(Mutant::CopyMissing));
        for strip in state.writable.iter().take(state.writable.len() - skip) {
            let data = core::slice::from_ref(&fragment.data);
            out.push(strip, fragment.from, data, slice.durable).await;
        }
    }
    let missed = out.finish().await;
    settle(array, key, bound, missed).await
}
