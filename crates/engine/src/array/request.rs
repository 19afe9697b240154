//! Reads and writes of the array's address space: split into pieces, started together, awaited
//! in order. Offsets and lengths are bytes, multiples of the array's block.

use crate::Host;
use crate::array::message::{Job, Outcome};
use crate::array::pending::Answer;
use crate::array::view::DirectWrites;
use crate::array::{Array, Bound};
use crate::buffers::join;
use crate::limits::PIECES;
use crate::mutants::{self, Mutant};
use crate::region::table::Entry;
use crate::stripe::table::{StripeKey, Waiting};
use crate::watch::{Doing, Reading};
use arrayvec::ArrayVec;
use io::{BlockError, Buf, BufMut, Drive, DriveError, Pool};
use layout::{CodeKind, Place};
use units::{Slot, StripIndex};

/// A piece of a read that is on its way.
enum Started<'a, E: Host> {
    Direct {
        ticket: Reading<E>,
        place: Place,
        slot: Slot,
        incarnation: u32,
        /// How often bits were withdrawn when it began.
        withdrawn: u64,
        /// How often anything was added to the list of lost blocks then.
        adds: u64,
    },
    Zeros(BufMut),
    Home(Answer<'a>),
    Refused(BufMut),
}

/// A piece of a write that is on its way.
enum Writing<'a, E: Host> {
    Direct {
        ticket: Direct<'a, E>,
        slot: Slot,
        incarnation: u32,
    },
    /// Its band must be prepared first.
    Unprepared(Place, Job),
    Refused,
    Home(Answer<'a>),
}

impl<E: Host> Writing<'_, E> {
    /// When it is ended, beside others of a request.
    const fn turn(&self) -> u8 {
        match self {
            Self::Direct { .. } | Self::Refused => 0,
            Self::Home(_) => 1,
            Self::Unprepared(..) => 2,
        }
    }
}

/// A write on its way to a drive. Dropped before its end, it keeps a drain waiting until then.
struct Direct<'a, E: Host> {
    array: &'a Array<E>,
    entry: Entry,
    ticket: Option<Doing<E>>,
}

impl<E: Host> Direct<'_, E> {
    async fn done(&mut self) -> Result<(), DriveError> {
        let ticket = self.ticket.as_mut().expect("awaited once");
        let result = ticket.await;
        self.ticket = None;
        self.array.leave(self.entry);
        result
    }
}

impl<E: Host> Drop for Direct<'_, E> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.array.abandon(ticket, self.entry);
        }
    }
}

/// Where a change goes.
struct Route {
    place: Place,
    /// Where in the stripe's data it begins.
    at: u32,
    /// How many bytes one job may cover: to the end of the stripe, or of the strip where there is
    /// no stripe to keep consistent.
    room: u32,
    /// Its home core carries it out.
    is_homed: bool,
}

fn key(place: &Place) -> StripeKey {
    StripeKey { group: place.group, stripe: place.stripe }
}

/// How many of the first `bytes` from a place on lie in its stripe, if one of their strips can't
/// be read: then the others are read once for all of them.
fn lossy_run<E: Host>(bound: &Bound<E>, place: &Place, bytes: usize) -> Option<usize> {
    let (view, layout) = (&bound.view, &bound.view.layout);
    let (k, strip_bytes) = (layout.k(place.group), layout.strip_bytes());
    let at = u32::from(place.strip.0) * strip_bytes + place.offset;
    let run = bytes.min((u32::from(k) * strip_bytes - at) as usize);
    let last = (at as usize + run - 1) / strip_bytes as usize;
    let is_lost = |strip: u16| {
        let slot = layout.slot(place.group, place.stripe, StripIndex(strip));
        !view.readable(slot, key(place))
    };
    let is_parity = view.code(key(place)) == CodeKind::Parity;
    let is_lossy = is_parity && (place.strip.0..=last as u16).any(is_lost);
    is_lossy.then_some(run)
}

impl<E: Host> Array<E> {
    /// Which strip to read directly: the one asked for, or any copy of it; `None` if the home
    /// core must see to it.
    fn direct(&self, bound: &Bound<E>, place: &Place) -> Option<StripIndex> {
        let view = &bound.view;
        let counts = |strip: u16| {
            let slot = view.layout.slot(place.group, place.stripe, StripIndex(strip));
            view.readable(slot, key(place)).then_some(StripIndex(strip))
        };
        if view.code(key(place)) != CodeKind::Mirror {
            return counts(place.strip.0);
        }
        let copies = view.layout.m(place.group) + 1;
        if view.unlike(key(place)) && (0..copies).filter_map(counts).nth(1).is_some() {
            return None;
        }
        let start = view.copy(key(place), place.offset);
        (0..copies).find_map(|i| counts((start + i) % copies))
    }

    /// Starts to read as much of the front of `into` as lies in one strip, or in one stripe of
    /// which something is lost there; `into` keeps the rest, or is `None` when there is none.
    fn start_read(&self, offset: u64, into: &mut Option<BufMut>) -> Started<'_, E> {
        let bound = self.inner.bound.borrow();
        let layout = &bound.view.layout;
        let place = layout.locate(offset);
        let mut room = (layout.strip_bytes() - place.offset) as usize;
        let mut piece = into.take().expect("there is something to read");
        let run = (piece.len() > room).then(|| lossy_run(&bound, &place, piece.len())).flatten();
        room = run.unwrap_or(room);
        if piece.len() > room {
            let front = piece.split_to(room);
            *into = Some(core::mem::replace(&mut piece, front));
        }
        let adds = bound.view.lost.adds;
        if bound.view.lost.refuses(offset..offset + piece.len() as u64) {
            return Started::Refused(piece);
        }
        if self.never_written(key(&place)) && !mutants::is(Mutant::UnwrittenRead) {
            piece.fill(0);
            return Started::Zeros(piece);
        }
        let withdrawn = self.withdrawn();
        if let (Some(strip), None) = (self.direct(&bound, &place), run) {
            let (drive, at, slot) = bound.strip(key(&place), strip.index());
            let incarnation = bound.view.slots[slot.index()].incarnation;
            let ticket = drive.read(at + u64::from(place.offset), piece);
            return Started::Direct { ticket, place, slot, incarnation, withdrawn, adds };
        }
        let none = bound.view.code(key(&place)) == CodeKind::None;
        drop(bound);
        if none { Started::Refused(piece) } else { Started::Home(self.ask(place, piece)) }
    }

    fn ask(&self, place: Place, into: BufMut) -> Answer<'_> {
        let strip_bytes = self.inner.bound.borrow().view.layout.strip_bytes();
        let at = u32::from(place.strip.0) * strip_bytes + place.offset;
        self.request(key(&place), Job::Read { at, into })
    }

    async fn finish_read(&self, started: Started<'_, E>) -> (Result<(), BlockError>, BufMut) {
        let answer = match started {
            Started::Refused(into) => return (Err(BlockError::Unavailable), into),
            Started::Home(answer) => answer,
            Started::Zeros(into) => return (Ok(()), into),
            Started::Direct { ticket, place, slot, incarnation, withdrawn, adds } => {
                let (result, into) = ticket.await;
                let (counts, code) = {
                    let view = &self.inner.bound.borrow().view;
                    let counts = view.still_readable(slot, incarnation, key(&place));
                    (counts && view.lost.adds == adds, view.code(key(&place)))
                };
                match result {
                    Ok(()) if counts && withdrawn == self.withdrawn() => return (Ok(()), into),
                    Ok(()) if counts && code == CodeKind::None => {
                        return self.read_again(place, into).await;
                    }
                    Ok(()) => {}
                    Err(DriveError::Media) if code == CodeKind::None => {
                        self.unreadable(slot, incarnation, false);
                        // Rare: its state does not make that of every read larger.
                        let into = Box::pin(self.note_first(place, into)).await;
                        return (Err(BlockError::Unavailable), into);
                    }
                    Err(error) => self.report_read(slot, incarnation, error),
                }
                if code == CodeKind::None {
                    return (Err(BlockError::Unavailable), into);
                }
                self.ask(place, into)
            }
        };
        match answer.await {
            Outcome::Read(result, into) => (result, into),
            other => unreachable!("a read is answered as a read, not {other:?}"),
        }
    }

    /// Fills `into` from `offset`.
    pub async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let _active = match self.begin() {
            Ok(active) => active,
            Err(error) => return (Err(error), into),
        };
        let end = offset + into.len() as u64;
        let mut rest = Some(into);
        let first = self.start_read(offset, &mut rest);
        if rest.is_none() {
            let (result, into) = self.finish_read(first).await;
            if result.is_ok() {
                self.readable_again(offset..end);
            }
            return (result, into);
        }
        // The pieces that fit are on their way before the first is awaited.
        let mut started = ArrayVec::<_, PIECES>::new();
        started.push(Some(first));
        let (mut result, mut done) = (Ok(()), None::<BufMut>);
        loop {
            while let Some(left) = &rest
                && !started.is_full()
            {
                let at = end - left.len() as u64;
                started.push(Some(self.start_read(at, &mut rest)));
            }
            // Taken in place: moving the list as a whole costs more than a small read's overhead.
            for piece in started.iter_mut().filter_map(Option::take) {
                let (outcome, piece) = self.finish_read(piece).await;
                result = result.and(outcome);
                done = Some(match done {
                    Some(done) => join(done, piece),
                    None => piece,
                });
            }
            started.clear();
            if rest.is_none() {
                break;
            }
        }
        if result.is_ok() {
            self.readable_again(offset..end);
        }
        (result, done.expect("at least the first piece was read"))
    }

    /// Where a change that begins at `offset` goes.
    fn route(&self, offset: u64) -> Route {
        let bound = self.inner.bound.borrow();
        let layout = &bound.view.layout;
        let place = layout.locate(offset);
        let at = u32::from(place.strip.0) * layout.strip_bytes() + place.offset;
        let code = bound.view.code(key(&place));
        let room = match code {
            CodeKind::None => layout.strip_bytes() - place.offset,
            _ => u32::from(layout.k(place.group)) * layout.strip_bytes() - at,
        };
        let is_direct = bound.view.direct_writes == DirectWrites::Allowed;
        Route { place, at, room, is_homed: code != CodeKind::None || !is_direct }
    }

    /// Writes `data` at `offset`; durable on return with `fua`.
    pub async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        let _active = self.begin()?;
        let (route, bytes) = (self.route(offset), data.len() as u64);
        let written = if bytes <= u64::from(route.room) {
            let at = route.at;
            let mut piece = self.start_change(route, Job::Write { at, data, fua })?;
            self.finish_write(&mut piece).await
        } else {
            self.change(offset, bytes, |at, from, n| {
                let (from, n) = (from as usize, n as usize);
                Job::Write { at, data: data.slice(from..from + n), fua }
            })
            .await
        };
        if written.is_ok() {
            self.readable_again(offset..offset + bytes);
        }
        written
    }

    /// Writes `data` to the block at `offset` if that holds `expected`; nothing comes between.
    /// False: it holds something else.
    pub async fn compare_and_write(
        &self,
        offset: u64,
        (expected, data): (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        let _active = self.begin()?;
        let (Route { place, at, .. }, bytes) = (self.route(offset), data.len() as u64);
        let job = Job::CompareWrite { at, expected, data, fua };
        let compared = match self.request(key(&place), job).await {
            Outcome::Compared(compared) => compared,
            other => unreachable!("a comparison is answered as one, not {other:?}"),
        };
        if compared == Ok(true) {
            self.readable_again(offset..offset + bytes);
        }
        compared
    }

    /// Whether no change of the block at `offset` is carried out but on its home core.
    pub(crate) fn is_homed(&self, offset: u64) -> bool {
        let view = &self.inner.bound.borrow().view;
        let code = view.code(key(&view.layout.locate(offset)));
        code != CodeKind::None || view.direct_writes == DirectWrites::Over
    }

    /// Carries out changes of a stripe without redundancy, on its home core.
    pub(crate) async fn change_here(&self, key: StripeKey, jobs: &mut Vec<Waiting>) {
        while !jobs.is_empty() {
            let mut started = ArrayVec::<_, PIECES>::new();
            for Waiting { job, origin } in jobs.drain(..jobs.len().min(PIECES)) {
                let piece = self.prepared(self.place_of(key, &job), job).await;
                started.push((piece, origin));
            }
            for (piece, origin) in &mut started {
                let done = match piece {
                    Ok(Some(piece)) => self.finish_write(piece).await,
                    Ok(None) => Ok(()),
                    Err(error) => Err(*error),
                };
                self.answer(*origin, Outcome::Done(done));
            }
        }
    }

    /// Compares and writes a block without redundancy, on its home core.
    pub(crate) async fn compare_here(
        &self,
        key: StripeKey,
        (at, expected): (u32, Buf),
        (data, fua): (Buf, bool),
    ) -> Result<bool, BlockError> {
        let job = Job::Write { at, data, fua };
        let place = self.place_of(key, &job);
        // As a change, so that no discard comes between.
        let entry = self.enter_change(key).await?;
        let read = self.read_entered(&place, Pool::single(expected.len())).await;
        if read.as_ref().map_or(true, |now| now[..] != expected[..]) {
            self.leave(entry);
            return read.map(|_| false);
        }
        let mut piece = self.start_direct(&place, job, entry)?;
        self.finish_write(&mut piece).await.map(|()| true)
    }

    /// Reads a part of a strip without redundancy that was entered for a change. What a discard
    /// that waits for that change is about to give up is still there, and counts.
    async fn read_entered(&self, place: &Place, into: BufMut) -> Result<BufMut, BlockError> {
        let (bound, key) = (self.bound(), key(place));
        let (drive, at, slot) = {
            let slot = bound.view.layout.slot(place.group, place.stripe, place.strip);
            let begin = bound.view.layout.array_offset(*place);
            let range = begin..begin + into.len() as u64;
            if !bound.view.readable(slot, key) || bound.view.lost.refuses(range) {
                return Err(BlockError::Unavailable);
            }
            bound.strip(key, place.strip.index())
        };
        let (result, now) = drive.read(at + u64::from(place.offset), into).await;
        let believed = self.believe(&bound, key, slot, result);
        believed.map(|()| now).map_err(|()| BlockError::Unavailable)
    }

    /// Where a change goes of a stripe that is known.
    fn place_of(&self, key: StripeKey, job: &Job) -> Place {
        let at = match job {
            Job::Write { at, .. } | Job::Zero { at, .. } => *at,
            other => unreachable!("a change writes, not {other:?}"),
        };
        let strip_bytes = self.inner.bound.borrow().view.layout.strip_bytes();
        let (strip, offset) = (StripIndex((at / strip_bytes) as u16), at % strip_bytes);
        Place { group: key.group, stripe: key.stripe, strip, offset }
    }

    /// Makes a range read as zeros: whole rows of it by unwriting them.
    pub async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        let _active = self.begin()?;
        let rows = self.whole_rows(offset, bytes);
        let zero = |at, n| self.change(at, n, move |at, _, n| Job::Zero { at, bytes: n, fua });
        let zeroed = if rows.is_empty() {
            zero(offset, bytes).await
        } else {
            let result = self.clear_rows(rows.clone()).await;
            let result = result.and(zero(offset, rows.start - offset).await);
            result.and(zero(rows.end, offset + bytes - rows.end).await)
        };
        if zeroed.is_ok() {
            self.readable_again(offset..offset + bytes);
        }
        zeroed
    }

    /// Tells that a range is not needed: whole rows of it read as zeros from then on, and the rest
    /// as before.
    pub async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let _active = self.begin()?;
        self.clear_rows(self.whole_rows(offset, bytes)).await
    }

    /// Reads again what may have been discarded under a read.
    async fn read_again(&self, place: Place, mut into: BufMut) -> (Result<(), BlockError>, BufMut) {
        loop {
            let offset = self.bound().view.layout.array_offset(place);
            let mut rest = Some(into);
            match self.start_read(offset, &mut rest) {
                Started::Direct { ticket, slot, incarnation, withdrawn, .. } => {
                    let (result, back) = ticket.await;
                    into = back;
                    if let Err(error) = result {
                        self.report_read(slot, incarnation, error);
                        return (Err(BlockError::Unavailable), into);
                    }
                    if withdrawn == self.withdrawn() {
                        return (Ok(()), into);
                    }
                }
                Started::Zeros(into) => return (Ok(()), into),
                Started::Refused(into) => return (Err(BlockError::Unavailable), into),
                Started::Home(_) => unreachable!("there is no home without redundancy"),
            }
        }
    }

    /// Looks for the first block of a piece of a strip that its drive can't read, and that nothing
    /// else gives, and has people see it. What `into` holds afterwards means nothing.
    async fn note_first(&self, place: Place, mut into: BufMut) -> BufMut {
        let bound = self.bound();
        let block = bound.view.block_bytes as usize;
        let begin = bound.view.layout.array_offset(place);
        // Where it is.
        let (mut lo, mut hi) = (0, into.len());
        while lo < hi {
            let bytes = ((hi - lo) / 2 / block * block).max(block);
            let mut front = Some(into.split_to(bytes));
            let started = self.start_read(begin + lo as u64, &mut front);
            let (result, front) = match started {
                Started::Direct { ticket, .. } => ticket.await,
                Started::Zeros(front) => (Ok(()), front),
                Started::Refused(front) => return join(front, into),
                Started::Home(_) => unreachable!("there is no home without redundancy"),
            };
            into = join(front, into);
            match result {
                Ok(()) => lo += bytes,
                Err(DriveError::Media) if bytes == block => {
                    let from = place.offset + lo as u32;
                    self.note(key(&place), place.strip.index(), (from, from + block as u32));
                    break;
                }
                Err(DriveError::Media) => hi = lo + bytes,
                Err(_) => break,
            }
        }
        into
    }

    /// Carries out the jobs that `job` makes of a range: of where in the stripe's data each
    /// begins, where in the range, and how many bytes it covers.
    async fn change(
        &self,
        offset: u64,
        bytes: u64,
        job: impl Fn(u32, u64, u32) -> Job,
    ) -> Result<(), BlockError> {
        let mut result = Ok(());
        let mut done = 0;
        while done < bytes {
            let mut started = ArrayVec::<_, PIECES>::new();
            while done < bytes && !started.is_full() {
                let route = self.route(offset + done);
                let n = (bytes - done).min(u64::from(route.room)) as u32;
                let job = job(route.at, done, n);
                done += u64::from(n);
                match self.start_change(route, job) {
                    Ok(piece) => started.push(piece),
                    Err(error) => result = Err(error),
                }
            }
            // What has entered ends before anything that may wait for its band: who withdraws bits
            // there waits for the one, and the other for who withdraws.
            for turn in 0..3 {
                for piece in started.iter_mut().filter(|piece| piece.turn() == turn) {
                    result = result.and(self.finish_write(piece).await);
                }
            }
        }
        result
    }

    /// Gives a job to the stripe's home core, or starts its write to the only drive that holds it;
    /// `Unavailable` if that takes no writes.
    fn start_change(&self, route: Route, job: Job) -> Result<Writing<'_, E>, BlockError> {
        let place = route.place;
        if route.is_homed {
            return Ok(Writing::Home(self.request(key(&place), job)));
        }
        match self.try_enter_change(key(&place)) {
            Some(entry) => self.start_direct(&place, job, entry),
            None => Ok(Writing::Unprepared(place, job)),
        }
    }

    /// Starts a write to the only drive that holds its strip. It was entered, and leaves.
    fn start_direct(
        &self,
        place: &Place,
        job: Job,
        entry: Entry,
    ) -> Result<Writing<'_, E>, BlockError> {
        let (data, fua) = match job {
            Job::Write { data, fua, .. } => (data, fua),
            Job::Zero { bytes, fua, .. } => (self.zeros().slice(..bytes as usize), fua),
            other => unreachable!("a change writes, not {other:?}"),
        };
        let key = key(place);
        let bound = self.inner.bound.borrow();
        let slot = bound.view.layout.slot(place.group, place.stripe, place.strip);
        if !bound.view.writable(slot) {
            self.leave(entry);
            return Err(BlockError::Unavailable);
        }
        let (drive, at, slot) = bound.strip(key, place.strip.index());
        let at = at + u64::from(place.offset);
        let incarnation = bound.view.slots[slot.index()].incarnation;
        let ticket = Some(drive.write(at, core::slice::from_ref(&data), fua));
        let ticket = Direct { array: self, entry, ticket };
        Ok(Writing::Direct { ticket, slot, incarnation })
    }

    /// Prepares a band and starts the write; zeros for one that was never written are there.
    async fn prepared(&self, place: Place, job: Job) -> Result<Option<Writing<'_, E>>, BlockError> {
        let key = key(&place);
        if matches!(job, Job::Zero { .. }) && self.never_written(key) {
            return self.unwritten_durably(key).await.map(|()| None);
        }
        let entry = self.enter_change(key).await?;
        self.start_direct(&place, job, entry).map(Some)
    }

    async fn finish_write<'a>(&'a self, piece: &mut Writing<'a, E>) -> Result<(), BlockError> {
        if matches!(piece, Writing::Unprepared(..))
            && let Writing::Unprepared(place, job) = core::mem::replace(piece, Writing::Refused)
        {
            match self.prepared(place, job).await? {
                Some(writing) => *piece = writing,
                None => return Ok(()),
            }
        }
        match piece {
            Writing::Refused | Writing::Unprepared(..) => Err(BlockError::Unavailable),
            Writing::Home(answer) => match answer.await {
                Outcome::Done(result) => result,
                other => unreachable!("a write is answered as done, not {other:?}"),
            },
            Writing::Direct { ticket, slot, incarnation } => ticket.done().await.map_err(|error| {
                // Blocks that can't be written cost this request: without redundancy the drive
                // is worth more in service than out of it.
                self.report(*slot, *incarnation, error);
                BlockError::Unavailable
            }),
        }
    }
}
