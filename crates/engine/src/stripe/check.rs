//! Whole-stripe work: reads that need recovery, rebuild of one strip, and check or repair of
//! parity and copies. All of it runs on the home core with the stripe busy.

use crate::Host;
use crate::array::Array;
use crate::array::message::Checked;
use crate::limits::SLICE_BYTES_MAX;
use crate::stripe::execute::{Columns, Work, Writes, settle};
use crate::stripe::plan::StripSet;
use crate::stripe::table::StripeKey;
use io::{BlockError, BufMut, Drive};
use layout::CodeKind;
use units::Slot;

/// Reads a run of bytes of one data strip, recovering it if it is lost.
pub(crate) async fn read<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    at: u32,
    mut into: BufMut,
) -> (Result<(), BlockError>, BufMut) {
    let strip_bytes = array.bound().view.layout.strip_bytes();
    let (strip, mut from) = ((at / strip_bytes) as usize, at % strip_bytes);
    let mut done = into.split_to(0);
    let mut result = Ok(());
    while !into.is_empty() && result.is_ok() {
        let piece = into.split_to(into.len().min(SLICE_BYTES_MAX));
        let bytes = piece.len() as u32;
        let (outcome, piece) = read_piece(array, key, strip, from, piece).await;
        result = outcome;
        from += bytes;
        done.unsplit(piece);
    }
    done.unsplit(into);
    (result, done)
}

async fn read_piece<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    strip: usize,
    from: u32,
    mut into: BufMut,
) -> (Result<(), BlockError>, BufMut) {
    let mut unread = StripSet::default();
    loop {
        let bound = array.bound();
        let mut state = bound.view.stripe_state(key);
        state.readable = state.readable.without(unread);
        let mirror = bound.view.code(key) == CodeKind::Mirror;
        let direct = if mirror { state.readable.first(1) } else { StripSet::one(strip) };
        if let Some(source) = direct.and(state.readable).iter().next() {
            let (drive, at, slot) = bound.strip(key, source);
            let (result, back) = drive.read(at + u64::from(from), into).await;
            into = back;
            if array.believe(&bound, key, slot, result).is_ok() {
                return (Ok(()), into);
            }
            unread = unread.or(StripSet::one(source));
            continue;
        }
        let sources = if mirror { None } else { state.sources(StripSet::one(strip)) };
        let Some(sources) = sources else {
            return (Err(BlockError::Unavailable), into);
        };
        let work = Work { array, bound: &bound, key, state };
        let units = sources.len() + 1;
        array.scratch().reserve(units).await;
        let mut columns = Columns::new();
        work.clear(&mut columns);
        let span = (from, from + into.len() as u32);
        let outcome = work.read_strips(sources, |_| span, &mut columns).await;
        if outcome.is_ok() {
            work.recover(&[strip], into.len(), &mut columns);
            into.copy_from_slice(columns[strip].as_ref().expect("recovered"));
        }
        work.put_back(&mut columns);
        array.scratch().release(units);
        match outcome {
            Ok(()) => return (Ok(()), into),
            Err(failed) => unread = unread.or(failed),
        }
    }
}

/// The byte ranges of a strip that are worked on one after the other.
fn windows(strip_bytes: u32) -> impl Iterator<Item = (u32, u32)> {
    let step = strip_bytes.min(SLICE_BYTES_MAX as u32);
    (0..strip_bytes / step).map(move |i| (i * step, (i + 1) * step))
}

/// Fills the strip of `slot` from the others. `Unavailable` if they do not suffice.
pub(crate) async fn rebuild<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    slot: Slot,
) -> Result<(), BlockError> {
    let strip_bytes = array.bound().view.layout.strip_bytes();
    for span in windows(strip_bytes) {
        rebuild_window(array, key, slot, span).await?;
    }
    Ok(())
}

async fn rebuild_window<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    slot: Slot,
    span: (u32, u32),
) -> Result<(), BlockError> {
    let mut unread = StripSet::default();
    loop {
        let bound = array.bound();
        let Some(strip) = bound.view.layout.strip(key.group, key.stripe, slot) else {
            return Ok(());
        };
        let strip = strip.index();
        let mut state = bound.view.stripe_state(key);
        state.readable = state.readable.without(unread).without(StripSet::one(strip));
        if !state.writable.has(strip) {
            return Err(BlockError::Unavailable);
        }
        let mirror = bound.view.code(key) == CodeKind::Mirror;
        let sources = if mirror {
            Some(state.readable.first(1)).filter(|s| !s.is_empty())
        } else if strip >= state.k {
            state.sources(StripSet::range(0, state.k))
        } else {
            state.sources(StripSet::one(strip))
        };
        let sources = sources.ok_or(BlockError::Unavailable)?;
        let work = Work { array, bound: &bound, key, state };
        let units = sources.len() + 1 + state.m;
        array.scratch().reserve(units).await;
        let outcome = work.rebuild_strip(strip, sources, span).await;
        array.scratch().release(units);
        match outcome {
            Ok(missed) => {
                settle(array, key, bound, missed).await?;
                return if missed.is_empty() { Ok(()) } else { Err(BlockError::Unavailable) };
            }
            Err(failed) => unread = unread.or(failed),
        }
    }
}

impl<E: Host> Work<'_, E> {
    async fn rebuild_strip(
        &self,
        strip: usize,
        sources: StripSet,
        span: (u32, u32),
    ) -> Result<StripSet, StripSet> {
        let mut columns = Columns::new();
        self.clear(&mut columns);
        self.read_strips(sources, |_| span, &mut columns).await?;
        let bytes = (span.1 - span.0) as usize;
        if self.bound.view.code(self.key) == CodeKind::Mirror {
            let source = sources.iter().next().expect("a source was chosen");
            columns.swap(source, strip);
        } else {
            self.recover(&[strip], bytes, &mut columns);
        }
        let column = columns[strip].take().expect("recovered").freeze();
        self.put_back(&mut columns);
        let mut out = Writes::new(self);
        out.push(strip, span.0, core::slice::from_ref(&column), false).await;
        let missed = out.finish().await;
        self.array.scratch().put_shared(column);
        Ok(missed)
    }

    /// Computes what the redundant strips of the columns should be; returns which differ, with
    /// their right content left in the columns.
    fn differing(&self, bytes: usize, present: StripSet, columns: &mut Columns) -> StripSet {
        let (k, m) = (self.state.k, self.state.m);
        let mut differ = StripSet::default();
        if self.bound.view.code(self.key) == CodeKind::Mirror {
            let source = present.iter().next().expect("a copy is present");
            let right = columns[source].take().expect("it was read");
            for strip in present.without(StripSet::one(source)).iter() {
                let copy = columns[strip].as_mut().expect("it was read");
                if copy[..] != right[..] {
                    copy.copy_from_slice(&right);
                    differ = differ.or(StripSet::one(strip));
                }
            }
            return differ;
        }
        let found: arrayvec::ArrayVec<Option<BufMut>, 4> =
            (k..k + m).map(|strip| columns[strip].take()).collect();
        let lost: arrayvec::ArrayVec<usize, 4> = (k..k + m).collect();
        self.recover(&lost, bytes, columns);
        for (strip, found) in lost.iter().zip(found) {
            let right = columns[*strip].as_ref().expect("computed");
            if found.is_some_and(|found| found[..] != right[..]) {
                differ = differ.or(StripSet::one(*strip));
            }
        }
        differ
    }
}

/// Compares parity or copies with the data, and with `repair` writes what the data says.
pub(crate) async fn check<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    repair: bool,
) -> Result<Checked, BlockError> {
    let strip_bytes = array.bound().view.layout.strip_bytes();
    let mut sum = Checked { compared: true, ..Checked::default() };
    for span in windows(strip_bytes) {
        let part = check_window(array, key, span, repair).await?;
        sum.compared &= part.compared;
        sum.mismatch |= part.mismatch;
        sum.repaired |= part.repaired;
    }
    Ok(sum)
}

async fn check_window<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    span: (u32, u32),
    repair: bool,
) -> Result<Checked, BlockError> {
    let bound = array.bound();
    let state = bound.view.stripe_state(key);
    let mirror = bound.view.code(key) == CodeKind::Mirror;
    let data = StripSet::range(0, state.k);
    if state.m == 0 || (!mirror && !data.without(state.readable).is_empty()) {
        return Ok(Checked::default());
    }
    let work = Work { array, bound: &bound, key, state };
    let units = state.k + 2 * state.m;
    array.scratch().reserve(units).await;
    let outcome = work.check_strips(span, repair).await;
    array.scratch().release(units);
    let Ok((checked, missed)) = outcome else {
        return Ok(Checked::default());
    };
    settle(array, key, bound, missed).await?;
    Ok(checked)
}

impl<E: Host> Work<'_, E> {
    async fn check_strips(
        &self,
        span: (u32, u32),
        repair: bool,
    ) -> Result<(Checked, StripSet), StripSet> {
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let present = self.state.readable;
        self.read_strips(present, |_| span, &mut columns).await?;
        let bytes = (span.1 - span.0) as usize;
        let differ = self.differing(bytes, present, &mut columns);
        let mut checked = Checked { compared: true, mismatch: !differ.is_empty(), repaired: false };
        let mut out = Writes::new(self);
        for strip in differ.iter().filter(|_| repair) {
            let column = columns[strip].take().expect("computed").freeze();
            out.push(strip, span.0, &[column], false).await;
            checked.repaired = true;
        }
        Ok((checked, out.finish().await))
    }
}
