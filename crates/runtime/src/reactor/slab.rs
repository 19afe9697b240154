//! Requests in flight: who owns their memory until the kernel is done with it.
//!
//! States of a slot: free → pending (started; the kernel may touch its buffers) → done (the
//! result waits for its ticket) → free; or pending → orphan (ticket dropped; the kernel may still
//! touch its buffers) → free.
//!
//! Invariants
//! - A slot's address never changes, since the kernel reads its I/O vectors.
//! - The request of a pending or orphan slot is neither moved out nor dropped.
//! - A slot has at most one ticket; only a ticket or an orphan's completion frees it.
#![allow(unsafe_code)]

use super::Errno;
use core::task::Waker;
use io::drive::GATHER_MAX;
use io::{BufMut, Gather};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a request is asked again in a row after errors that pass.
const RETRIES: u8 = 8;

/// One core's counted handle to an open file or socket. Closed when the last owner is gone, the
/// reactor's requests included.
#[derive(Clone)]
pub struct Descriptor(Rc<Holder>);

struct Holder {
    fd: RawFd,
    owner: Owner,
    /// What stays open as long.
    _claim: Option<Arc<File>>,
    retries: Option<Arc<AtomicU64>>,
}

enum Owner {
    File(Arc<File>),
    Socket(Arc<OwnedFd>),
}

impl Descriptor {
    /// This core's handle to a file that other cores use too.
    pub fn file(file: Arc<File>) -> Self {
        let (fd, owner) = (file.as_raw_fd(), Owner::File(file));
        Self(Rc::new(Holder { fd, owner, _claim: None, retries: None }))
    }

    /// The same; counts in `retries` how often a request is asked again. `claim` is another opening
    /// that keeps others from the file: it stays open as long as any request does that this one is
    /// asked for, be it for ever.
    pub fn counted(file: Arc<File>, claim: Option<Arc<File>>, retries: Arc<AtomicU64>) -> Self {
        let (fd, owner) = (file.as_raw_fd(), Owner::File(file));
        Self(Rc::new(Holder { fd, owner, _claim: claim, retries: Some(retries) }))
    }

    pub(crate) fn socket(fd: Arc<OwnedFd>) -> Self {
        let (raw, owner) = (fd.as_raw_fd(), Owner::Socket(fd));
        Self(Rc::new(Holder { fd: raw, owner, _claim: None, retries: None }))
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.fd
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0.owner {
            Owner::File(file) => file.as_fd(),
            Owner::Socket(fd) => fd.as_fd(),
        }
    }
}

/// What is asked of the kernel. Owns the memory it needs, but for a write's buffers, which go
/// from the caller straight to the slot: they are too large to be moved about.
pub(crate) enum Work {
    Read {
        offset: u64,
        into: BufMut,
    },
    Write {
        offset: u64,
        fua: bool,
    },
    Sync,
    Fallocate {
        mode: i32,
        offset: u64,
        bytes: u64,
    },
    Poll {
        events: u32,
    },
    /// What a driver understands (`IORING_OP_URING_CMD`).
    Command {
        code: u32,
        says: [u8; 16],
    },
}

/// A request: its descriptor and its work.
pub(crate) struct Request {
    pub(crate) on: Descriptor,
    pub(crate) work: Work,
}

/// A request as the back end hands it to the kernel. The pointers are valid while the slot is
/// pending or orphan.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Read { to: *mut u8, bytes: usize, offset: u64 },
    Write { from: *const u8, bytes: usize, offset: u64, flags: i32 },
    Gather { vectors: *const libc::iovec, count: usize, offset: u64, flags: i32 },
    Sync,
    Fallocate { mode: i32, offset: u64, bytes: u64 },
    Poll { events: u32 },
    Command { code: u32, says: [u8; 16] },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Pending,
    Orphan,
    Done(i32),
}

struct Slot {
    state: State,
    waker: Option<Waker>,
    request: Option<Request>,
    /// The buffers of a write, empty for other work.
    data: Gather,
    /// Bytes transferred by earlier, short attempts.
    moved: usize,
    /// Errors in a row that pass.
    retries: u8,
    vectors: [libc::iovec; GATHER_MAX],
}

impl Slot {
    fn new() -> Box<Self> {
        let none = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        Box::new(Self {
            state: State::Free,
            waker: None,
            request: None,
            data: Gather::new(),
            moved: 0,
            retries: 0,
            vectors: [none; GATHER_MAX],
        })
    }

    /// Whether the request ends by itself. A driver's command does when that has something to say,
    /// or with the ring.
    fn ends(&self) -> bool {
        !matches!(self.request, Some(Request { work: Work::Command { .. }, .. }))
    }

    /// Bytes that are still to be moved; `None` if the work moves none.
    fn remaining(&self) -> Option<usize> {
        let whole = match &self.request.as_ref()?.work {
            Work::Read { into, .. } => into.len(),
            Work::Write { .. } => self.data.iter().map(|b| b.len()).sum(),
            _ => return None,
        };
        Some(whole - self.moved)
    }

    /// Whether the request is to be asked again: the error is one that passes and had no effect,
    /// and was not met too often in a row. A failed flush is never repeated: the second may end
    /// well without what the first lost.
    fn is_worth_a_retry(&mut self, errno: i32) -> bool {
        let Some(request) = &self.request else { return false };
        let passes = match request.work {
            Work::Poll { .. } | Work::Command { .. } => false,
            Work::Sync => errno == libc::EINTR,
            _ => matches!(errno, libc::EINTR | libc::EAGAIN | libc::ENOMEM | libc::EBUSY),
        };
        if !passes || self.retries == RETRIES {
            return false;
        }
        self.retries += 1;
        if let Some(retries) = &request.on.0.retries {
            retries.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// The call for what is still to be done.
    fn call(&mut self) -> (RawFd, Call) {
        let moved = self.moved;
        let Some(request) = &mut self.request else { unreachable!("only started slots call") };
        let call = match &mut request.work {
            Work::Read { offset, into } => {
                let rest = &mut into[moved..];
                let bytes = rest.len();
                Call::Read { to: rest.as_mut_ptr(), bytes, offset: *offset + moved as u64 }
            }
            Work::Write { offset, fua } => {
                let flags = if *fua { libc::RWF_DSYNC } else { 0 };
                let offset = *offset + moved as u64;
                let count = fill_vectors(&mut self.vectors, &self.data, moved);
                match count {
                    1 => {
                        let one = self.vectors[0];
                        let from = one.iov_base.cast_const().cast();
                        Call::Write { from, bytes: one.iov_len, offset, flags }
                    }
                    _ => Call::Gather { vectors: self.vectors.as_ptr(), count, offset, flags },
                }
            }
            Work::Sync => Call::Sync,
            Work::Fallocate { mode, offset, bytes } => {
                Call::Fallocate { mode: *mode, offset: *offset, bytes: *bytes }
            }
            Work::Poll { events } => Call::Poll { events: *events },
            Work::Command { code, says } => Call::Command { code: *code, says: *says },
        };
        (request.on.raw(), call)
    }
}

/// Writes the I/O vectors of all but the first `skip` bytes; returns how many there are.
fn fill_vectors(to: &mut [libc::iovec; GATHER_MAX], data: &Gather, mut skip: usize) -> usize {
    let mut count = 0;
    for buffer in data {
        let part = &buffer[skip.min(buffer.len())..];
        skip -= buffer.len() - part.len();
        if !part.is_empty() {
            to[count] =
                libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
            count += 1;
        }
    }
    count
}

/// What is to be done after a completion.
pub(crate) enum Next {
    /// Hand this call to the kernel again: it moved a part only.
    Again(RawFd, Call),
    /// The ticket is to be woken.
    Wake(Option<Waker>),
    /// Nobody waits; drop what the request owned.
    Drop(Option<Request>),
}

/// The requests of one core.
#[derive(Default)]
pub(crate) struct Slab {
    // Boxed, since a slot must not move when the vector grows.
    #[allow(clippy::vec_box)]
    slots: Vec<Box<Slot>>,
    free: Vec<u32>,
    in_flight: usize,
}

impl Slab {
    /// Takes a slot for a request and says what to ask of the kernel.
    pub(crate) fn start(&mut self, request: Request, data: Gather) -> (u32, RawFd, Call) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            // One place for each slot, so that freeing never allocates.
            self.free.reserve(self.slots.len());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        debug_assert_eq!(slot.state, State::Free);
        slot.state = State::Pending;
        slot.moved = 0;
        slot.retries = 0;
        slot.request = Some(request);
        slot.data.extend(data);
        self.in_flight += usize::from(slot.ends());
        let (fd, call) = slot.call();
        (index, fd, call)
    }

    /// Requests that the kernel has not finished, but for a driver's commands.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The kernel is done with `index`: bytes or a flag, or a negative error number.
    pub(crate) fn complete(&mut self, index: u32, result: i32) -> Next {
        let slot = &mut self.slots[index as usize];
        let result = match slot.remaining() {
            _ if slot.is_worth_a_retry(-result) => {
                let (fd, call) = slot.call();
                return Next::Again(fd, call);
            }
            Some(left) if result > 0 && (result as usize) < left => {
                slot.moved += result as usize;
                slot.retries = 0;
                let (fd, call) = slot.call();
                return Next::Again(fd, call);
            }
            // The file ends before the request does.
            Some(left) if result == 0 && left > 0 => -Errno::END.0,
            _ => result,
        };
        self.in_flight -= usize::from(slot.ends());
        // Gives the pieces back to their pool, which takes no borrow of ours.
        slot.data.clear();
        if slot.state == State::Orphan {
            slot.state = State::Free;
            self.free.push(index);
            return Next::Drop(slot.request.take());
        }
        assert_eq!(slot.state, State::Pending, "one completion per request");
        slot.state = State::Done(result);
        Next::Wake(slot.waker.take())
    }

    /// The result, if it is there; the slot is then free. Otherwise remembers whom to wake.
    pub(crate) fn take(&mut self, index: u32, waker: &Waker) -> Option<(i32, Request)> {
        let slot = &mut self.slots[index as usize];
        let State::Done(result) = slot.state else {
            match &mut slot.waker {
                Some(old) => old.clone_from(waker),
                None => slot.waker = Some(waker.clone()),
            }
            return None;
        };
        slot.state = State::Free;
        self.free.push(index);
        slot.request.take().map(|request| (result, request))
    }

    /// The ticket was dropped. Returns what may be dropped now, and whether the request is still
    /// in flight.
    pub(crate) fn abandon(&mut self, index: u32) -> (Option<Waker>, Option<Request>, bool) {
        let slot = &mut self.slots[index as usize];
        let waker = slot.waker.take();
        if slot.state == State::Pending {
            slot.state = State::Orphan;
            return (waker, None, true);
        }
        slot.state = State::Free;
        self.free.push(index);
        (waker, slot.request.take(), false)
    }

    /// True if the slot's request waits for readiness.
    pub(crate) fn is_poll(&self, index: u32) -> bool {
        let request = self.slots[index as usize].request.as_ref();
        request.is_some_and(|r| matches!(r.work, Work::Poll { .. }))
    }

    /// Gives up: the memory of requests in flight is never freed, since the kernel may still
    /// write to it. A driver's command has none: what it was asked by is closed.
    pub(crate) fn leak(&mut self) {
        for slot in self.slots.drain(..) {
            match slot.state {
                State::Pending | State::Orphan if slot.ends() => core::mem::forget(slot),
                _ => drop(slot),
            }
        }
    }
}

// SAFETY: the pointers lead into a slot that stays until the call's completion was reported, and
// nobody else touches that memory meanwhile.
unsafe impl Send for Call {}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Arc<File> {
        Arc::new(File::open("/dev/null").expect("it is there"))
    }

    fn descriptor(retries: &Arc<AtomicU64>) -> Descriptor {
        Descriptor::counted(file(), None, retries.clone())
    }

    /// How often a request that always ends with `result` is asked again.
    fn asked_again(work: Work, result: i32) -> u64 {
        let (mut slab, retries) = (Slab::default(), Arc::new(AtomicU64::new(0)));
        let request = Request { on: descriptor(&retries), work };
        let (index, _, _) = slab.start(request, Gather::new());
        while let Next::Again(..) = slab.complete(index, result) {}
        let taken = slab.take(index, Waker::noop());
        assert_eq!(taken.map(|(result, _)| result), Some(result));
        retries.load(Ordering::Relaxed)
    }

    #[test]
    fn errors_that_pass_are_met_a_bounded_number_of_times() {
        let zero = || Work::Fallocate { mode: 0, offset: 0, bytes: 4096 };
        let read = || Work::Read { offset: 0, into: io::Pool::single(512) };
        for errno in [libc::EINTR, libc::EAGAIN, libc::ENOMEM, libc::EBUSY] {
            assert_eq!(asked_again(zero(), -errno), 8);
            assert_eq!(asked_again(read(), -errno), 8);
        }
        assert_eq!(asked_again(read(), -libc::EIO), 0);
        assert_eq!(asked_again(Work::Sync, -libc::EINTR), 8);
        assert_eq!(asked_again(Work::Sync, -libc::ENOMEM), 0);
        assert_eq!(asked_again(Work::Poll { events: 1 }, -libc::EINTR), 0);
    }
    #[test]
    fn what_never_ends_keeps_its_claim() {
        let (mut slab, claim) = (Slab::default(), file());
        for work in [Work::Sync, Work::Poll { events: 1 }] {
            let on = Descriptor::counted(file(), Some(claim.clone()), Arc::default());
            slab.start(Request { on, work }, Gather::new());
        }
        slab.complete(1, 0);
        slab.leak();
        assert_eq!(Arc::strong_count(&claim), 2, "the one in flight has it, and nobody else");
    }

    /// Nobody waits for what a driver says only when it has something to say.
    #[test]
    fn a_drivers_command_is_not_waited_for_and_closes_its_file() {
        let (mut slab, driver) =
            (Slab::default(), Arc::new(OwnedFd::from(File::open("/dev/null").expect("open"))));
        let work = Work::Command { code: 1, says: [0; 16] };
        let on = Descriptor::socket(driver.clone());
        let (index, _, _) = slab.start(Request { on: on.clone(), work }, Gather::new());
        slab.start(Request { on, work: Work::Sync }, Gather::new());
        assert_eq!(slab.in_flight(), 1);
        slab.complete(1, 0);
        assert_eq!((slab.in_flight(), Arc::strong_count(&driver)), (0, 2));
        slab.abandon(index);
        slab.leak();
        assert_eq!(Arc::strong_count(&driver), 1);
    }
}
