//! Whole-stripe work: reads that need recovery, rebuild of one strip, and check or repair of
//! parity and copies. All of it runs on the home core with the stripe busy.
//!
//! # Unreadable blocks
//! A drive may be unable to read some blocks and be fine otherwise. What happens to a range of a
//! strip that is met so:
//!
//! | what was found                         | then                                           |
//! |----------------------------------------|------------------------------------------------|
//! | the range is longer than it need be    | it is halved, and each half is met anew        |
//! | the others give its content            | that is returned, written back, and read again |
//! | the drive fails that write or read     | it is taken out, as by any failed write        |
//! | the others do not give its content, or | the read fails, the stripe counts as not right;|
//! | a resync sees them contradict each     | a rebuild or resync gives it up                |
//! | other about it                         |                                                |
//!
//! # Strips that contradict each other
//! A check that finds some in a range whose redundancy is trusted asks which strip is wrong:
//!
//! | what is there                    | what is known                                           |
//! |----------------------------------|---------------------------------------------------------|
//! | P and Q, every strip             | the one strip whose replacement makes all agree, if one |
//! |                                  | is ([`parity::Code::locate`]); the range is halved      |
//! |                                  | until it is, or is a block                              |
//! | three copies or more             | those that differ from a majority                       |
//! | two copies, one parity, or less  | nothing                                                 |
//!
//! What is known is repaired by recovery from the others; what is not is left as it is, unless
//! the data is to be trusted ([`Repair::TrustData`]).
//!
//! Invariants
//! - Nothing but the content recovered is ever written over unreadable blocks, unless it is lost
//!   and listed ([`crate::stripe::give_up`]).
//! - A stripe is called compared or filled only if every block of it was: whoever moves a border
//!   over stripes (rebuild, resync) relies on it.
//! - What a check or repair writes is what the strips it trusts say already, so that a crash at
//!   any point leaves each block as it was or right.

use crate::Host;
use crate::array::message::{Checked, Repair};
use crate::array::{Array, Bound};
use crate::buffers::join;
use crate::limits::{PARITIES_MAX, SLICE_BYTES_MAX};
use crate::mutants::{self, Mutant};
use crate::stripe::cursor::{Cursor, too_long};
use crate::stripe::execute::{Columns, STRIPS, Unread, Work, Writes, settle, take_out};
use crate::stripe::give_up;
use crate::stripe::plan::StripSet;
use crate::stripe::run::Run;
use crate::stripe::table::StripeKey;
use arrayvec::ArrayVec;
use format::LostReason;
use io::{BlockError, Buf, BufMut, Drive};
use layout::CodeKind;
use parity::Located;
use std::rc::Rc;
use units::{Slot, SlotSet};

/// Over a whole strip of the array.
fn over_strip<E: Host>(array: &Array<E>) -> Cursor {
    let view = &array.bound().view;
    Cursor::new(0, view.layout.strip_bytes(), view.block_bytes)
}

/// What became of a range.
enum Tried<T> {
    /// This.
    Done(T),
    /// It has unreadable blocks and must be tried in smaller parts.
    Narrow,
}

/// Reads a run of bytes of one data strip, recovering it if it is lost.
pub(crate) async fn read<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    at: u32,
    mut into: BufMut,
) -> (Result<(), BlockError>, BufMut) {
    let (strip_bytes, block) = {
        let view = &array.bound().view;
        (view.layout.strip_bytes(), view.block_bytes)
    };
    let (strip, from) = ((at / strip_bytes) as usize, at % strip_bytes);
    let range = array.bound().view.addresses(key, strip, (from, from + into.len() as u32));
    if array.refuses(range) {
        return (Err(BlockError::Unavailable), into);
    }
    if array.bound().view.unlike(key) {
        let span = (from, from + into.len() as u32);
        if let Err(error) = make_alike(array, key, span).await {
            return (Err(error), into);
        }
    }
    // The copy that the request was read from, so that what that could not read is found.
    let copy = array.bound().view.copy(key, from);
    let mut cursor = Cursor::new(from, from + into.len() as u32, block);
    let mut done = into.split_to(0);
    while let Some((lo, hi)) = cursor.range() {
        let piece = into.split_to((hi - lo) as usize);
        let (outcome, piece) = read_piece(array, key, (strip, copy), lo, piece).await;
        match outcome {
            Ok(Tried::Narrow) => {
                into = join(piece, into);
                cursor.narrow();
            }
            Ok(Tried::Done(())) => {
                done = join(done, piece);
                cursor.pass();
            }
            Err(error) => {
                return (Err(error), join(join(done, piece), into));
            }
        }
    }
    (Ok(()), join(done, into))
}

/// Reads a run of bytes of one data strip or of several, recovering what is lost.
pub(crate) async fn read_run<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    at: u32,
    into: BufMut,
) -> (Result<(), BlockError>, BufMut) {
    let strip_bytes = array.bound().view.layout.strip_bytes();
    let mut run = Run::cut(at, into, strip_bytes);
    if read_at_once(array, key, &mut run).await {
        return (Ok(()), run.join());
    }
    let mut result = Ok(());
    for part in run.parts() {
        let at = part.strip as u32 * strip_bytes + part.from;
        let (read, into) = read(array, key, at, part.take()).await;
        part.into = into;
        result = result.and(read);
    }
    (result, run.join())
}

/// Reads a run of a stripe that lacks one of its strips, each of the others once; false if it is
/// another one, or that did not go well.
async fn read_at_once<E: Host>(array: &Array<E>, key: StripeKey, run: &mut Run) -> bool {
    let bound = array.bound();
    let state = bound.view.stripe_state(key);
    let Some((lost, span)) = run.lacks(state.readable) else { return false };
    let is_refused =
        run.spans().any(|(strip, span)| array.refuses(bound.view.addresses(key, strip, span)));
    // A scratch slice holds no more.
    let is_short = (span.1 - span.0) as usize <= SLICE_BYTES_MAX;
    let is_meant = bound.view.code(key) == CodeKind::Parity && is_short && !is_refused;
    let sources = state.sources(StripSet::one(lost)).filter(|_| is_meant);
    let Some(sources) = sources else { return false };
    let work = Work { array, bound: &bound, key, state };
    let units = sources.len() + 1;
    array.scratch().reserve(units).await;
    let outcome = work.read_run(run, (lost, span), sources).await;
    array.scratch().release(units);
    outcome.is_ok()
}

/// Makes the copies of a range alike that a crash may have left different, durably, before anybody
/// sees one of them. A copy that fails it is out, durably, when this returns: it would come back
/// with what nobody compared. Blocks that no copy gives, the read that follows meets too.
async fn make_alike<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    span: (u32, u32),
) -> Result<(), BlockError> {
    if array.bound().view.code(key) != CodeKind::Mirror {
        return Ok(());
    }
    let mut cursor = Cursor::new(span.0, span.1, array.bound().view.block_bytes);
    while let Some(span) = cursor.range() {
        let bound = array.bound();
        let others = bound.view.stripe_state(key).readable.len().saturating_sub(1);
        if others == 0 {
            return Ok(());
        }
        match check_range(array, key, span, Repair::Resync, false).await? {
            Tried::Narrow => cursor.narrow(),
            Tried::Done(Ok(_)) => cursor.pass(),
            Tried::Done(Err(going)) => {
                // The last copy stays whatever it does.
                take_out(array, key, &bound, going.first(others)).await;
                if array.bound().view.frozen(key.group) {
                    return Err(BlockError::Unavailable);
                }
            }
        }
    }
    Ok(())
}

/// Reads a range of a data strip, of a mirror from `copy` if that can be read.
async fn read_piece<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    (strip, copy): (usize, u16),
    from: u32,
    mut into: BufMut,
) -> (Result<Tried<()>, BlockError>, BufMut) {
    let bytes = into.len() as u32;
    let mut unread = Unread::default();
    loop {
        let bound = array.bound();
        let mut state = bound.view.stripe_state(key);
        let counts = state.readable;
        let mirror = bound.view.code(key) == CodeKind::Mirror;
        let (block, pinned) = (bound.view.block_bytes, mirror && !state.parity_trusted);
        if !unread.bad.is_empty() && too_long(bytes, block, pinned) {
            return (Ok(Tried::Narrow), into);
        }
        state.readable = state.readable.without(unread.strips);
        let direct = match mirror {
            false => StripSet::one(strip),
            true if state.readable.has(copy.into()) => StripSet::one(copy.into()),
            true => state.readable.first(1),
        };
        let work = Work { array, bound: &bound, key, state };
        let found = if let Some(source) = direct.and(state.readable).iter().next() {
            let outcome = work.read_strip(source, from, into).await;
            into = outcome.1;
            outcome.0
        } else if let (false, Some(sources)) = (mirror, state.sources(StripSet::one(strip))) {
            work.recover_into(strip, sources, from, &mut into).await
        } else if !unread.bad.is_empty() && bytes > block {
            return (Ok(Tried::Narrow), into);
        } else {
            if !unread.bad.is_empty() {
                array.note(key, strip, (from, from + bytes));
            }
            return (Err(BlockError::Unavailable), into);
        };
        match found {
            Ok(()) => {
                let wanted = if mirror { unread.bad } else { StripSet::one(strip) };
                let bad = unread.bad.and(wanted).and(counts);
                if !bad.is_empty() {
                    write_back(array, key, bound, bad, from, &into).await;
                }
                return (Ok(Tried::Done(())), into);
            }
            Err(failed) => unread.add(failed),
        }
    }
}

/// Writes recovered bytes over the unreadable ones of some strips and reads them again. A drive
/// that fails either is taken out. What was recovered is right whatever becomes of that.
async fn write_back<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    bound: Rc<Bound<E>>,
    bad: StripSet,
    from: u32,
    content: &[u8],
) {
    let units = 1 + bad.len();
    array.scratch().reserve(units).await;
    let state = bound.view.stripe_state(key);
    let work = Work { array, bound: &bound, key, state };
    let mut copy = work.scratch(content.len());
    copy.copy_from_slice(content);
    let copy = copy.freeze();
    let mut out = Writes::new(&work);
    for strip in bad.iter() {
        out.push(strip, from, core::slice::from_ref(&copy), false).await;
    }
    let missed = out.finish().await;
    array.scratch().put_shared(copy);
    let span = (from, from + content.len() as u32);
    let missed = missed.or(work.read_again(bad.without(missed), span).await);
    array.scratch().release(units);
    let _ = settle(array, key, bound, missed).await;
}

/// Fills the strip of `slot` from the others. `Unavailable` if they do not suffice. With `give_up`
/// it goes on without what unreadable blocks keep it from.
pub(crate) async fn rebuild<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    slot: Slot,
    give_up: bool,
) -> Result<Checked, BlockError> {
    let mut sum = Checked { compared: true, ..Checked::default() };
    let mut cursor = over_strip(array);
    while let Some(span) = cursor.range() {
        match rebuild_range(array, key, slot, span, give_up).await? {
            Tried::Narrow => cursor.narrow(),
            Tried::Done(true) => cursor.pass(),
            Tried::Done(false) => {
                (sum.compared, sum.unreadable, sum.beyond) = (false, true, true);
                cursor.pass();
            }
        }
    }
    Ok(sum)
}

/// Fills a range of the strip; false if blocks that it needs can't be read.
async fn rebuild_range<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    slot: Slot,
    span: (u32, u32),
    give_up: bool,
) -> Result<Tried<bool>, BlockError> {
    let mut unread = Unread::default();
    loop {
        let bound = array.bound();
        let Some(strip) = bound.view.layout.strip(key.group, key.stripe, slot) else {
            return Ok(Tried::Done(true));
        };
        let strip = strip.index();
        let mut state = bound.view.stripe_state(key);
        state.readable = state.readable.without(unread.strips).without(StripSet::one(strip));
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
        let Some(sources) = sources else {
            if unread.bad.is_empty() {
                return Err(BlockError::Unavailable);
            }
            if span.1 - span.0 > bound.view.block_bytes {
                return Ok(Tried::Narrow);
            }
            if !give_up {
                return Ok(Tried::Done(mutants::is(Mutant::FillFails)));
            }
            if give_up::give_up(array, key, span, (LostReason::Rebuild, false)).await? {
                return Ok(Tried::Done(true));
            }
            unread = Unread::default();
            continue;
        };
        let work = Work { array, bound: &bound, key, state };
        let units = sources.len() + 1 + state.m;
        array.scratch().reserve(units).await;
        let outcome = work.rebuild_strip(strip, sources, span).await;
        array.scratch().release(units);
        match outcome {
            Ok(missed) => {
                settle(array, key, bound, missed).await?;
                let filled = missed.is_empty();
                return filled.then_some(Tried::Done(true)).ok_or(BlockError::Unavailable);
            }
            Err(failed) => unread.add(failed),
        }
    }
}

impl<E: Host> Work<'_, E> {
    /// Fills `into` from one strip.
    async fn read_strip(
        &self,
        strip: usize,
        from: u32,
        into: BufMut,
    ) -> (Result<(), Unread>, BufMut) {
        let (drive, at, slot) = self.bound.strip(self.key, strip);
        let (result, into) = drive.read(at + u64::from(from), into).await;
        let believed = self.array.believe(self.bound, self.key, slot, result);
        let unread = |()| {
            let mut unread = Unread::default();
            unread.strip(strip, result);
            unread
        };
        (believed.map_err(unread), into)
    }

    /// Reads a run's parts, and what it lacks from `sources`: those that are parts are not read for
    /// that once more.
    async fn read_run(
        &self,
        run: &mut Run,
        (lost, span): (usize, (u32, u32)),
        sources: StripSet,
    ) -> Result<(), Unread> {
        let mut tickets = ArrayVec::<_, STRIPS>::new();
        for part in run.parts().filter(|part| part.strip != lost) {
            let (drive, at, slot) = self.bound.strip(self.key, part.strip);
            tickets.push((part.strip, slot, drive.read(at + u64::from(part.from), part.take())));
        }
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let shared = sources.and(run.covers(span));
        let mut outcome = self.read_strips(sources.without(shared), |_| span, &mut columns).await;
        for (strip, slot, ticket) in &mut tickets {
            let (result, into) = ticket.await;
            run.give_back(*strip, into);
            if self.array.believe(self.bound, self.key, *slot, result).is_err() {
                outcome = Err(Unread::default());
            }
        }
        if outcome.is_ok() {
            let lent = run.lend(shared, span, &mut columns);
            self.recover(&[lost], (span.1 - span.0) as usize, &mut columns).await;
            run.fill(lost, columns[lost].as_ref().expect("recovered"));
            lent.end(run, &mut columns);
        }
        self.put_back(&mut columns);
        outcome
    }

    /// Fills `into` with what a strip should hold by the others.
    async fn recover_into(
        &self,
        strip: usize,
        sources: StripSet,
        from: u32,
        into: &mut BufMut,
    ) -> Result<(), Unread> {
        let units = sources.len() + 1;
        self.array.scratch().reserve(units).await;
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let span = (from, from + into.len() as u32);
        let outcome = self.read_strips(sources, |_| span, &mut columns).await;
        if outcome.is_ok() {
            self.recover(&[strip], into.len(), &mut columns).await;
            into.copy_from_slice(columns[strip].as_ref().expect("recovered"));
        }
        self.put_back(&mut columns);
        self.array.scratch().release(units);
        outcome
    }

    async fn rebuild_strip(
        &self,
        strip: usize,
        sources: StripSet,
        span: (u32, u32),
    ) -> Result<StripSet, Unread> {
        let mut columns = Columns::new();
        self.clear(&mut columns);
        self.read_strips(sources, |_| span, &mut columns).await?;
        let bytes = (span.1 - span.0) as usize;
        if self.bound.view.code(self.key) == CodeKind::Mirror {
            let source = sources.iter().next().expect("a source was chosen");
            columns.swap(source, strip);
        } else {
            self.recover(&[strip], bytes, &mut columns).await;
        }
        let column = columns[strip].take().expect("recovered").freeze();
        self.put_back(&mut columns);
        let mut out = Writes::new(self);
        out.push(strip, span.0, core::slice::from_ref(&column), false).await;
        let missed = out.finish().await;
        self.array.scratch().put_shared(column);
        Ok(missed)
    }

    /// Reads blocks that were just written over unreadable ones; the strips that still can't be
    /// read.
    pub async fn read_again(&self, strips: StripSet, span: (u32, u32)) -> StripSet {
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let outcome = self.read_strips(strips, |_| span, &mut columns).await;
        self.put_back(&mut columns);
        let bad = outcome.err().unwrap_or_default().bad;
        for strip in strips.without(bad).iter() {
            let (_, _, slot) = self.bound.strip(self.key, strip);
            self.array.unreadable(slot, self.bound.view.slots[slot.index()].incarnation, true);
        }
        bad
    }

    /// What the strips say that were read (`present`) of those that could not be (`bad`), and of
    /// each other. The right content of each strip that is wrong or bad is left in its column.
    async fn compare(&self, bytes: usize, present: StripSet, columns: &mut Columns) -> Verdict {
        if self.bound.view.code(self.key) == CodeKind::Mirror {
            return self.compare_copies(present, columns);
        }
        let (k, m) = (self.state.k, self.state.m);
        let parity_always = mutants::is(Mutant::RepairParityAlways);
        if present.len() == k + m {
            if self.agree_elsewhere(bytes, columns).await == Some(true) {
                return Verdict::Agree;
            }
            let strips: ArrayVec<&[u8], STRIPS> =
                columns.iter().map(|c| &c.as_ref().expect("it was read")[..]).collect();
            let mut located = self.code().locate(&strips);
            let wrong = self
                .code()
                .verify(&strips)
                .filter(|_| mutants::is(Mutant::LocatedUnverified) && located == Located::Unknown);
            if let Some(at) = wrong {
                let bytes: ArrayVec<&[u8], STRIPS> =
                    strips.iter().map(|strip| &strip[at..=at]).collect();
                located = self.code().locate(&bytes);
            }
            drop(strips);
            match located {
                Located::Clean => return Verdict::Agree,
                Located::Strip(strip) if self.state.parity_trusted && !parity_always => {
                    columns[strip].take().into_iter().for_each(|c| self.array.scratch().put(c));
                    self.recover(&[strip], bytes, columns).await;
                    return Verdict::Known(StripSet::one(strip));
                }
                _ => {}
            }
        }
        self.recover_data(bytes, columns).await;
        let found: ArrayVec<Option<BufMut>, PARITIES_MAX> =
            (k..k + m).map(|strip| columns[strip].take()).collect();
        let lost: ArrayVec<usize, PARITIES_MAX> = (k..k + m).collect();
        self.recover(&lost, bytes, columns).await;
        let mut differ = StripSet::default();
        for (strip, found) in lost.iter().zip(found) {
            let right = columns[*strip].as_ref().expect("computed");
            if found.is_some_and(|found| found[..] != right[..]) {
                differ = differ.or(StripSet::one(*strip));
            }
        }
        match differ.is_empty() {
            true => Verdict::Agree,
            false if parity_always => Verdict::Known(differ),
            false => Verdict::Unknown(differ),
        }
    }

    /// The same of copies.
    fn compare_copies(&self, present: StripSet, columns: &mut Columns) -> Verdict {
        let alike = |one: usize| {
            let same = |other: &usize| columns[*other].as_deref() == columns[one].as_deref();
            present.iter().filter(same).collect()
        };
        let first = present.iter().next().expect("a copy is present");
        let as_first = alike(first);
        if as_first == present {
            return Verdict::Agree;
        }
        let majority = |strips: &StripSet| strips.len() * 2 > present.len();
        let most = present.iter().map(alike).find(majority).filter(|_| self.state.parity_trusted);
        let Some(most) = most else {
            return Verdict::Unknown(present.without(as_first));
        };
        let right = most.iter().next().expect("a majority is not empty");
        // The repair copies the first that was read.
        columns.swap(first, right);
        Verdict::Known(present.without(most))
    }
}

/// Compares parity or copies with the data, and writes what `repair` says, also over blocks that
/// can't be read.
pub(crate) async fn check<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    repair: Repair,
    give_up: bool,
) -> Result<Checked, BlockError> {
    let mut sum = Checked { compared: true, ..Checked::default() };
    let mut cursor = over_strip(array);
    while let Some(span) = cursor.range() {
        let part = match check_range(array, key, span, repair, give_up).await? {
            Tried::Done(part) => part.unwrap_or_default(),
            Tried::Narrow => {
                cursor.narrow();
                continue;
            }
        };
        sum.compared &= part.compared;
        sum.alone |= part.alone;
        sum.mismatch |= part.mismatch;
        sum.unlocated |= part.unlocated;
        sum.guilty = sum.guilty.or(part.guilty);
        sum.unreadable |= part.unreadable;
        sum.repaired |= part.repaired;
        sum.beyond |= part.beyond;
        cursor.pass();
    }
    Ok(sum)
}

/// What the strips of a range say of each other.
#[derive(Clone, Copy)]
enum Verdict {
    /// Nothing contradicts.
    Agree,
    /// These are wrong.
    Known(StripSet),
    /// Something is, and nobody can know what: these strips are not what the data (of copies: the
    /// first) says.
    Unknown(StripSet),
}

impl Verdict {
    fn differ(self) -> StripSet {
        match self {
            Self::Agree => StripSet::default(),
            Self::Known(strips) | Self::Unknown(strips) => strips,
        }
    }
}

/// Whether no redundant strip is among those that are there.
fn alone(there: StripSet, k: usize, mirror: bool) -> bool {
    match mirror {
        true => there.len() < 2,
        false => there.without(StripSet::range(0, k)).is_empty(),
    }
}

/// Shows people the blocks of a range that can't be read and that nothing gives; what a check tells
/// of it.
fn beyond<E: Host>(array: &Array<E>, key: StripeKey, bad: StripSet, span: (u32, u32)) -> Checked {
    let view = &array.bound().view;
    let lost = match view.code(key) {
        CodeKind::Mirror => StripSet::one(0),
        _ => bad.and(StripSet::range(0, view.layout.k(key.group).into())),
    };
    lost.iter().for_each(|strip| array.note(key, strip, span));
    Checked { unreadable: true, beyond: true, ..Checked::default() }
}

/// Checks a range of every strip. `Err`: the drives of these strips are going, what they hold is
/// not known.
async fn check_range<E: Host>(
    array: &Array<E>,
    key: StripeKey,
    span: (u32, u32),
    repair: Repair,
    give_up: bool,
) -> Result<Tried<Result<Checked, StripSet>>, BlockError> {
    // Whether strips that are there were seen to contradict each other about those that are not.
    let (mut unread, mut contrary) = (Unread::default(), false);
    loop {
        let bound = array.bound();
        let mut state = bound.view.stripe_state(key);
        state.parity_gives &= !contrary;
        let mirror = bound.view.code(key) == CodeKind::Mirror;
        let data = StripSet::range(0, state.k);
        let lacking = if mirror {
            state.readable.is_empty()
        } else {
            !data.without(state.readable).is_empty()
        };
        if state.m == 0 || lacking {
            return Ok(Tried::Done(Ok(Checked::default())));
        }
        if repair == Repair::Resync && alone(state.readable, state.k, mirror) {
            // Nothing is there to be made right; what can't be read now may be read later.
            return Ok(Tried::Done(Ok(Checked::alone())));
        }
        let (bytes, block) = (span.1 - span.0, bound.view.block_bytes);
        let bad = unread.bad.and(state.readable);
        state.readable = state.readable.without(unread.strips);
        if !bad.is_empty() {
            let pinned = mirror && !state.parity_trusted;
            let known = state.says_all(mirror);
            if too_long(bytes, block, pinned) || (!known && bytes > block) {
                return Ok(Tried::Narrow);
            }
            if !known && give_up {
                let reason = (LostReason::Resync, contrary);
                if give_up::give_up(array, key, span, reason).await? {
                    let done = Checked { compared: true, unreadable: true, ..Checked::default() };
                    return Ok(Tried::Done(Ok(Checked { repaired: true, ..done })));
                }
                (unread, contrary) = (Unread::default(), false);
                continue;
            }
            if !known {
                return Ok(Tried::Done(Ok(beyond(array, key, bad, span))));
            }
        }
        let work = Work { array, bound: &bound, key, state };
        let units = state.k + 2 * state.m;
        array.scratch().reserve(units).await;
        let outcome = work.check_strips(span, bad, repair).await;
        array.scratch().release(units);
        match outcome {
            Ok(Tried::Narrow) => return Ok(Tried::Narrow),
            Ok(Tried::Done((checked, _))) if checked.beyond => contrary = true,
            Ok(Tried::Done((checked, missed))) => {
                settle(array, key, bound, missed).await?;
                return Ok(Tried::Done(Ok(checked)));
            }
            Err(failed) if failed.strips != failed.bad => {
                return Ok(Tried::Done(Err(failed.strips.without(failed.bad))));
            }
            Err(failed) => unread.add(failed),
        }
    }
}

impl<E: Host> Work<'_, E> {
    /// Compares, and writes what `repair` says of what is not right or `bad`. `Err`: not all
    /// strips could be read; nothing was written. Nor is anything where it is `beyond` a resync.
    async fn check_strips(
        &self,
        span: (u32, u32),
        bad: StripSet,
        repair: Repair,
    ) -> Result<Tried<(Checked, StripSet)>, Unread> {
        let mut columns = Columns::new();
        self.clear(&mut columns);
        let present = self.state.readable;
        self.read_strips(present, |_| span, &mut columns).await?;
        let bytes = span.1 - span.0;
        let verdict = self.compare(bytes as usize, present, &mut columns).await;
        let mirror = self.bound.view.code(self.key) == CodeKind::Mirror;
        if matches!(verdict, Verdict::Unknown(_)) && self.divisible(bytes, mirror) {
            // In smaller parts, each may have one wrong strip only.
            self.put_back(&mut columns);
            return Ok(Tried::Narrow);
        }
        let mut checked = self.judged(verdict, bad, mirror);
        // What was recovered from strips that contradict each other is nobody's guess to write.
        let guess = !verdict.differ().is_empty()
            && !mirror
            && !bad.and(StripSet::range(0, self.state.k)).is_empty();
        // Nobody ever wrote that, or else redundancy that gives it would be right.
        checked.beyond = guess && repair == Repair::Resync && !self.state.parity_trusted;
        let trusting = matches!(repair, Repair::TrustData | Repair::Resync);
        let known = !matches!(verdict, Verdict::Unknown(_)) || trusting;
        let repair = repair != Repair::Nothing && known && !guess;
        let wrong = verdict.differ().or(bad);
        checked.compared = bad.is_empty() || repair;
        checked.repaired = repair && !wrong.is_empty();
        if !checked.repaired {
            self.put_back(&mut columns);
            return Ok(Tried::Done((checked, StripSet::default())));
        }
        if !verdict.differ().is_empty() && self.state.parity_trusted {
            // Until the repair is whole and flushed, a crash owes a resync.
            self.array.ensure_unclean(self.key.group).await;
        }
        if let Some((_, lane)) = self.array.lane_of(self.key) {
            // What the journal says of the stripe would undo it.
            lane.forget(self.array).await;
        }
        let missed = self.write_right(wrong, mirror, span, &mut columns).await;
        let again = self.read_again(bad.without(missed), span).await;
        Ok(Tried::Done((checked, missed.or(again))))
    }

    /// Whether a range that nobody can judge is to be judged in parts.
    fn divisible(&self, bytes: u32, mirror: bool) -> bool {
        let judges = if mirror { 3 } else { self.state.k + 2 };
        let judged = self.state.readable.len() >= judges && self.state.parity_trusted;
        judged && bytes > self.bound.view.block_bytes
    }

    /// What a check tells of a verdict.
    fn judged(&self, verdict: Verdict, bad: StripSet, mirror: bool) -> Checked {
        let alone = alone(self.state.readable.or(bad), self.state.k, mirror);
        let guilty = match verdict {
            Verdict::Known(strips) => {
                strips.iter().map(|strip| self.bound.strip(self.key, strip).2).collect()
            }
            Verdict::Agree | Verdict::Unknown(_) => SlotSet::EMPTY,
        };
        Checked {
            alone,
            mismatch: !verdict.differ().is_empty(),
            unlocated: matches!(verdict, Verdict::Unknown(_)),
            guilty,
            unreadable: !bad.is_empty(),
            ..Checked::default()
        }
    }

    /// Writes what `compare` left in the columns to the strips that are `wrong`; those that
    /// missed it.
    async fn write_right(
        &self,
        wrong: StripSet,
        mirror: bool,
        span: (u32, u32),
        columns: &mut Columns,
    ) -> StripSet {
        let copy: Option<Buf> = mirror.then(|| {
            let source = self.state.readable.iter().next().expect("a copy is present");
            columns[source].take().expect("it was read").freeze()
        });
        let mut out = Writes::new(self);
        for strip in wrong.iter() {
            let column = match &copy {
                Some(copy) => copy.clone(),
                None => columns[strip].take().expect("computed").freeze(),
            };
            // A copy that a read depends on stays as it is read.
            let durable = mirror && !self.state.parity_trusted;
            out.push(strip, span.0, &[column], durable).await;
        }
        self.put_back(columns);
        out.finish().await
    }
}
