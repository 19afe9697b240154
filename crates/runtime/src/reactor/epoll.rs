//! The back end without io_uring: epoll for sockets, a blocking pool for files.
//!
//! Invariant: at most one waiting slot per descriptor and kind (to read, to write, for the end) is
//! registered at a time; a second one of the same kind takes the first one's place after waking it
//! (a readiness report may always be spurious).

use super::pool::{Pool, Sink};
use super::slab::Call;
use crate::doorbell::Doorbell;
use crate::sys;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use units::Nanos;

const READ: u32 = libc::EPOLLIN as u32;
const WRITE: u32 = libc::EPOLLOUT as u32;
/// The peer sends nothing more.
const END: u32 = libc::EPOLLRDHUP as u32;

/// Slots that wait for a descriptor.
#[derive(Default, Clone, Copy)]
struct Waiting {
    read: Option<u32>,
    write: Option<u32>,
    end: Option<u32>,
}

impl Waiting {
    fn places(&mut self) -> [(&mut Option<u32>, u32); 3] {
        [(&mut self.read, READ), (&mut self.write, WRITE), (&mut self.end, END)]
    }
}

pub(crate) struct Epoll {
    epoll: OwnedFd,
    waiting: BTreeMap<RawFd, Waiting>,
    pool: Arc<Pool>,
    sink: Arc<Sink>,
    done: Vec<(u32, i32)>,
    doorbell: Arc<Doorbell>,
}

impl Epoll {
    pub(crate) fn new(pool: Arc<Pool>, doorbell: Arc<Doorbell>) -> io::Result<Self> {
        let epoll = sys::epoll()?;
        sys::epoll_ctl(&epoll, libc::EPOLL_CTL_ADD, doorbell.fd(), READ)?;
        let sink = Arc::new(Sink::new(doorbell.clone()));
        let done = Vec::with_capacity(64);
        Ok(Self { epoll, waiting: BTreeMap::new(), pool, sink, done, doorbell })
    }

    pub(crate) fn start(&mut self, index: u32, fd: RawFd, call: Call) {
        if let Call::Command { .. } = call {
            return self.done.push((index, -libc::EOPNOTSUPP));
        }
        let Call::Poll { events } = call else {
            return self.pool.submit(self.sink.clone(), index, fd, call);
        };
        let mut waiting = self.waiting.get(&fd).copied().unwrap_or_default();
        let own = waiting.places().into_iter().find(|(_, kind)| events & kind != 0);
        let (place, _) = own.expect("it waits for one of the kinds");
        if let Some(before) = place.replace(index) {
            self.done.push((before, events as i32));
        }
        self.register(fd, waiting);
    }

    pub(crate) fn cancel_poll(&mut self, index: u32) {
        let is_ours = |w: &Waiting| [w.read, w.write, w.end].contains(&Some(index));
        let Some((fd, waiting)) = self.waiting.iter().find(|(_, w)| is_ours(w)) else { return };
        let (fd, mut waiting) = (*fd, *waiting);
        for (place, _) in waiting.places() {
            place.take_if(|ours| *ours == index);
        }
        self.register(fd, waiting);
        self.done.push((index, -libc::ECANCELED));
    }

    /// Tells the kernel what is waited for on `fd` now.
    fn register(&mut self, fd: RawFd, mut waiting: Waiting) {
        let before = self.waiting.remove(&fd);
        let asked = waiting.places().into_iter().filter(|(place, _)| place.is_some());
        let events = asked.fold(0, |events, (_, kind)| events | kind);
        let op = match (before.is_some(), events) {
            (false, 0) => return,
            (true, 0) => libc::EPOLL_CTL_DEL,
            (false, _) => libc::EPOLL_CTL_ADD,
            (true, _) => libc::EPOLL_CTL_MOD,
        };
        match sys::epoll_ctl(&self.epoll, op, fd, events) {
            Ok(()) if events != 0 => {
                self.waiting.insert(fd, waiting);
            }
            Ok(()) => {}
            // Cannot be waited for: report it as ready, the system call says why.
            Err(_) => self.report(waiting),
        }
    }

    fn report(&mut self, mut waiting: Waiting) {
        for (place, kind) in waiting.places() {
            self.done.extend(place.map(|index| (index, kind as i32)));
        }
    }

    pub(crate) fn has_news(&self) -> bool {
        !self.done.is_empty()
    }

    /// Waits for a socket, the doorbell or the end of `timeout`.
    pub(crate) fn wait(&mut self, timeout: Option<Nanos>) {
        let timeout = if self.done.is_empty() { timeout.map(|n| n.0) } else { Some(0) };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let count = sys::epoll_wait(&self.epoll, &mut events, timeout);
        for event in &events[..count] {
            self.ready(event.u64 as RawFd, event.events);
        }
    }

    fn ready(&mut self, fd: RawFd, events: u32) {
        if fd == self.doorbell.fd() {
            return self.doorbell.silence();
        }
        let Some(mut waiting) = self.waiting.get(&fd).copied() else { return };
        let mut ready = Waiting::default();
        let failed = events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
        for ((place, kind), (ready, _)) in waiting.places().into_iter().zip(ready.places()) {
            if failed || events & kind != 0 {
                *ready = place.take();
            }
        }
        self.register(fd, waiting);
        self.report(ready);
    }

    /// Looks at sockets and finished files without waiting.
    pub(crate) fn flush(&mut self) {
        self.sink.take(&mut self.done);
        if !self.waiting.is_empty() {
            self.wait(Some(Nanos(0)));
        }
    }

    pub(crate) fn reap(&mut self, into: &mut [(u32, i32)]) -> usize {
        let count = self.done.len().min(into.len());
        for place in &mut into[..count] {
            let Some(done) = self.done.pop() else { break };
            *place = done;
        }
        count
    }
}
