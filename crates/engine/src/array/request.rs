//! Reads and writes of the array's address space: split into pieces, started together, awaited
//! in order. Offsets and lengths are bytes, multiples of the array's block.

use crate::Host;
use crate::array::message::{Job, Outcome};
use crate::array::pending::Answer;
use crate::array::{Array, Bound};
use crate::limits::PIECES;
use crate::stripe::table::StripeKey;
use arrayvec::ArrayVec;
use io::{BlockError, Buf, BufMut, Drive, DriveError};
use layout::{CodeKind, Place};
use units::{Slot, StripIndex};

/// A piece of a read that is on its way.
enum Started<'a, D: Drive> {
    Direct { ticket: D::Read, place: Place, slot: Slot, incarnation: u32 },
    Home(Answer<'a>),
    Refused(BufMut),
}

/// A piece of a write that is on its way.
enum Writing<'a, D: Drive> {
    Direct { ticket: D::Done, slot: Slot },
    Home(Answer<'a>),
}

fn key(place: &Place) -> StripeKey {
    StripeKey { group: place.group, stripe: place.stripe }
}

impl<E: Host> Array<E> {
    /// Which strip to read directly: the one asked for, or any copy of it; `None` if the home
    /// core must see to it.
    fn direct(&self, bound: &Bound<E::Drive>, place: &Place) -> Option<StripIndex> {
        let view = &bound.view;
        let counts = |strip: u16| {
            let slot = view.layout.slot(place.group, place.stripe, StripIndex(strip));
            view.readable(slot, key(place)).then_some(StripIndex(strip))
        };
        if view.code(key(place)) != CodeKind::Mirror {
            return counts(place.strip.0);
        }
        let copies = view.layout.m(place.group) + 1;
        // Ahead of the resync border the copies may differ: everybody reads the same one.
        let start = if view.trusted(key(place)) {
            ((place.stripe.0 ^ u64::from(place.offset >> 12)) % u64::from(copies)) as u16
        } else {
            0
        };
        (0..copies).find_map(|i| counts((start + i) % copies))
    }

    fn start_read(&self, place: Place, into: BufMut) -> Started<'_, E::Drive> {
        let bound = self.inner.bound.borrow();
        if let Some(strip) = self.direct(&bound, &place) {
            let (drive, at, slot) = bound.strip(key(&place), strip.index());
            let incarnation = bound.view.slots[slot.index()].incarnation;
            let ticket = drive.read(at + u64::from(place.offset), into);
            return Started::Direct { ticket, place, slot, incarnation };
        }
        let none = bound.view.code(key(&place)) == CodeKind::None;
        drop(bound);
        if none { Started::Refused(into) } else { Started::Home(self.ask(place, into)) }
    }

    fn ask(&self, place: Place, into: BufMut) -> Answer<'_> {
        let strip_bytes = self.inner.bound.borrow().view.layout.strip_bytes();
        let at = u32::from(place.strip.0) * strip_bytes + place.offset;
        self.request(key(&place), Job::Read { at, into })
    }

    async fn finish_read(
        &self,
        started: Started<'_, E::Drive>,
    ) -> (Result<(), BlockError>, BufMut) {
        let answer = match started {
            Started::Refused(into) => return (Err(BlockError::Unavailable), into),
            Started::Home(answer) => answer,
            Started::Direct { ticket, place, slot, incarnation } => {
                let (result, into) = ticket.await;
                let (counts, code) = {
                    let view = &self.inner.bound.borrow().view;
                    let counts = view.still_readable(slot, incarnation, key(&place));
                    (counts, view.code(key(&place)))
                };
                match result {
                    Ok(()) if counts => return (Ok(()), into),
                    Ok(()) => {}
                    Err(error) => self.report(slot, incarnation, error),
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
    pub async fn read(&self, offset: u64, mut into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let _active = match self.begin() {
            Ok(active) => active,
            Err(error) => return (Err(error), into),
        };
        let (place, room) = self.locate(offset);
        if into.len() <= room {
            let started = self.start_read(place, into);
            return self.finish_read(started).await;
        }
        let mut done = into.split_to(0);
        let mut result = Ok(());
        let mut at = offset;
        while !into.is_empty() {
            let mut started = ArrayVec::<_, PIECES>::new();
            while !into.is_empty() && !started.is_full() {
                let (place, room) = self.locate(at);
                let piece = into.split_to(room.min(into.len()));
                at += piece.len() as u64;
                started.push(Some(self.start_read(place, piece)));
            }
            // Taken in place: moving the list as a whole costs more than a small read's overhead.
            for piece in started.iter_mut().filter_map(Option::take) {
                let (outcome, piece) = self.finish_read(piece).await;
                result = result.and(outcome);
                done.unsplit(piece);
            }
        }
        done.unsplit(into);
        (result, done)
    }

    /// Where an address lies, and how many bytes follow it in the same strip.
    fn locate(&self, offset: u64) -> (Place, usize) {
        let layout = &self.inner.bound.borrow().view.layout;
        let place = layout.locate(offset);
        (place, (layout.strip_bytes() - place.offset) as usize)
    }

    /// How many bytes one job may cover from `place`: to the end of the stripe, or of the strip
    /// where there is no stripe to keep consistent. And the place in the stripe's data.
    fn job_room(&self, place: &Place) -> (u32, u32, CodeKind) {
        let bound = self.inner.bound.borrow();
        let layout = &bound.view.layout;
        let at = u32::from(place.strip.0) * layout.strip_bytes() + place.offset;
        let code = bound.view.code(key(place));
        let room = match code {
            CodeKind::None => layout.strip_bytes() - place.offset,
            _ => u32::from(layout.k(place.group)) * layout.strip_bytes() - at,
        };
        (at, room, code)
    }

    /// Writes `data` at `offset`; durable on return with `fua`.
    pub async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        let whole = data.len();
        self.change(offset, whole as u64, |at, from, n| {
            let (from, n) = (from as usize, n as usize);
            let data = if n == whole { data.clone() } else { data.slice(from..from + n) };
            Job::Write { at, data, fua }
        })
        .await
    }

    /// Makes a range read as zeros.
    pub async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        self.change(offset, bytes, |at, _, n| Job::Zero { at, bytes: n, fua }).await
    }

    /// Carries out the jobs that `job` makes of a range: of where in the stripe's data each
    /// begins, where in the range, and how many bytes it covers.
    async fn change(
        &self,
        offset: u64,
        bytes: u64,
        job: impl Fn(u32, u64, u32) -> Job,
    ) -> Result<(), BlockError> {
        let _active = self.begin()?;
        let mut result = Ok(());
        let mut done = 0;
        while done < bytes {
            let mut started = ArrayVec::<_, PIECES>::new();
            while done < bytes && !started.is_full() {
                let (place, _) = self.locate(offset + done);
                let (at, room, code) = self.job_room(&place);
                let n = (bytes - done).min(u64::from(room)) as u32;
                let job = job(at, done, n);
                done += u64::from(n);
                if code != CodeKind::None {
                    started.push(Writing::Home(self.request(key(&place), job)));
                } else if let Some(piece) = self.start_write(place, job) {
                    started.push(piece);
                } else {
                    result = Err(BlockError::Unavailable);
                }
            }
            for piece in &mut started {
                result = result.and(self.finish_write(piece).await);
            }
        }
        result
    }

    /// Starts a job's write to the only drive that holds it; `None` if that takes no writes.
    fn start_write(&self, place: Place, job: Job) -> Option<Writing<'_, E::Drive>> {
        let (data, fua) = match job {
            Job::Write { data, fua, .. } => (data, fua),
            Job::Zero { bytes, fua, .. } => (self.zeros().slice(..bytes as usize), fua),
            other => unreachable!("a change writes, not {other:?}"),
        };
        let bound = self.inner.bound.borrow();
        let slot = bound.view.layout.slot(place.group, place.stripe, place.strip);
        bound.view.writable(slot).then(|| {
            let (drive, at, slot) = bound.strip(key(&place), place.strip.index());
            let data = core::iter::once(data).collect();
            let ticket = drive.write(at + u64::from(place.offset), data, fua);
            Writing::Direct { ticket, slot }
        })
    }

    async fn finish_write(&self, piece: &mut Writing<'_, E::Drive>) -> Result<(), BlockError> {
        match piece {
            Writing::Home(answer) => match answer.await {
                Outcome::Done(result) => result,
                other => unreachable!("a write is answered as done, not {other:?}"),
            },
            Writing::Direct { ticket, slot } => ticket.await.map_err(|error| {
                let error = if error == DriveError::Media { DriveError::Fault } else { error };
                let incarnation = self.bound().view.slots[slot.index()].incarnation;
                self.report(*slot, incarnation, error);
                BlockError::Unavailable
            }),
        }
    }
}
