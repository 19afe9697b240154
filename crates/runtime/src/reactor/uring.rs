//! The io_uring back end.
//!
//! Submissions gather in the ring and go to the kernel once per turn; what does not fit waits in
//! a backlog. With deferred task work the kernel finishes requests only while we are in
//! `io_uring_enter` asking for events, which `submit` does when the kernel has set its flag.
//!
//! What can't be begun without waiting (every flush and `fallocate`, and reads and writes of a
//! drive whose queue is full) goes to threads that the kernel keeps for the core, at most
//! [`WORKERS`]. A drive that hangs holds one for each such call until the call is over, which may
//! be never: calls to other drives wait behind it only if it holds them all.
//!
//! Invariant: every entry's memory belongs to a slab slot that stays until its completion.
#![allow(unsafe_code)]

use super::slab::Call;
use crate::doorbell::Doorbell;
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use units::Nanos;

/// Completions of cancellations: nobody waits for them.
const IGNORED: u64 = u64::MAX;
/// The poll of the doorbell.
const DOORBELL: u64 = u64::MAX - 1;
/// Most threads of the kernel that make a core's calls where these would block. Left alone it
/// takes the ring's entries or four for each CPU, what is less: so few that one hung drive holds
/// them all, and the flushes of all others wait until their deadline.
///
/// Until a drive counts as failed, a core leaves it the reads and writes of 64 stripes an array,
/// and a flush for each that hosts wait for: one or a few a connection, so that this is ample.
/// Hosts that ask for flushes only, 64 a connection, can still leave more.
///
/// A thread is made only when a call finds none that is idle, and goes when it has had nothing to
/// do for some seconds. The limit of the account's processes holds, too.
const WORKERS: u32 = 4096;

pub(crate) struct Uring {
    ring: IoUring,
    backlog: VecDeque<squeue::Entry>,
    doorbell: Arc<Doorbell>,
    doorbell_armed: bool,
}

impl Uring {
    /// Sets a ring up, with as much of what makes it fast as the kernel takes.
    pub(crate) fn new(entries: u32, doorbell: Arc<Doorbell>) -> io::Result<Self> {
        let ring = Self::fast_ring(entries).or_else(|_| Self::plain_ring(entries))?;
        let params = ring.params();
        if !(params.is_feature_ext_arg() && params.is_feature_nodrop()) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "kernel older than 5.11"));
        }
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Writev::CODE,
            opcode::Fsync::CODE,
            opcode::Fallocate::CODE,
            opcode::PollAdd::CODE,
            opcode::PollRemove::CODE,
        ];
        if !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "operations are restricted"));
        }
        Self::allow_workers(&ring)?;
        Ok(Self { ring, backlog: VecDeque::new(), doorbell, doorbell_armed: false })
    }

    /// Lets calls that block have [`WORKERS`]; those that never end (of sockets) stay as they are.
    fn allow_workers(ring: &IoUring) -> io::Result<()> {
        match ring.submitter().register_iowq_max_workers(&mut [WORKERS, 0]) {
            // Before 5.15 nothing can be said about it.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            told => told,
        }
    }

    fn fast_ring(entries: u32) -> io::Result<IoUring> {
        IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(entries * 4)
            .build(entries)
    }

    fn plain_ring(entries: u32) -> io::Result<IoUring> {
        IoUring::builder().setup_clamp().setup_cqsize(entries * 4).build(entries)
    }

    /// Queues a call; it reaches the kernel with the next flush, or now if the ring is full.
    pub(crate) fn start(&mut self, index: u32, fd: RawFd, call: Call) {
        let fd = types::Fd(fd);
        let entry = match call {
            Call::Read { to, bytes, offset } => {
                opcode::Read::new(fd, to, bytes as u32).offset(offset).build()
            }
            Call::Write { from, bytes, offset, flags } => {
                opcode::Write::new(fd, from, bytes as u32).offset(offset).rw_flags(flags).build()
            }
            Call::Gather { vectors, count, offset, flags } => {
                opcode::Writev::new(fd, vectors, count as u32)
                    .offset(offset)
                    .rw_flags(flags)
                    .build()
            }
            Call::Sync => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            Call::Fallocate { mode, offset, bytes } => {
                opcode::Fallocate::new(fd, bytes).offset(offset).mode(mode).build()
            }
            Call::Poll { events } => opcode::PollAdd::new(fd, events).build(),
            Call::Command { code, says } => opcode::UringCmd16::new(fd, code).cmd(says).build(),
        };
        self.push(entry.user_data(u64::from(index)));
    }

    /// Ends the poll of slot `index` early; it still completes.
    pub(crate) fn cancel_poll(&mut self, index: u32) {
        self.push(opcode::PollRemove::new(u64::from(index)).build().user_data(IGNORED));
    }

    fn push(&mut self, entry: squeue::Entry) {
        if self.backlog.is_empty() && self.try_push(&entry) {
            return;
        }
        self.backlog.push_back(entry);
        self.flush();
    }

    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: what the entry points to belongs to a slot that stays until its completion.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Hands queued entries to the kernel and lets it finish what is due, without waiting.
    pub(crate) fn flush(&mut self) {
        loop {
            let queue = self.ring.submission();
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return;
            }
            drop(queue);
            // Busy or interrupted: the entries stay queued and go with the next flush.
            let sent = self.ring.submit().is_ok();
            if !sent || !self.refill() {
                return;
            }
        }
    }

    /// Moves the backlog to the ring; true if there was any.
    fn refill(&mut self) -> bool {
        let mut moved = false;
        while let Some(entry) = self.backlog.pop_front() {
            if !self.try_push(&entry) {
                self.backlog.push_front(entry);
                break;
            }
            moved = true;
        }
        moved
    }

    /// True if a look at the ring is worth while.
    pub(crate) fn has_news(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().taskrun()
    }

    /// Waits for a completion, the doorbell or the end of `timeout`.
    pub(crate) fn wait(&mut self, timeout: Option<Nanos>) {
        if !self.doorbell_armed {
            self.doorbell_armed = true;
            let poll = opcode::PollAdd::new(types::Fd(self.doorbell.fd()), libc::POLLIN as u32);
            self.push(poll.build().user_data(DOORBELL));
        }
        if !self.ring.completion().is_empty() {
            return self.flush();
        }
        // Errors are a time-out, an interruption or a full completion queue: reaping helps all.
        let _ = match timeout {
            Some(Nanos(n)) => {
                let time = types::Timespec::from(core::time::Duration::from_nanos(n));
                let args = types::SubmitArgs::new().timespec(&time);
                self.ring.submitter().submit_with_args(1, &args)
            }
            None => self.ring.submit_and_wait(1),
        };
        self.refill();
    }

    /// Moves completions to `into`; returns how many, `into.len()` if there may be more.
    pub(crate) fn reap(&mut self, into: &mut [(u32, i32)]) -> usize {
        let mut count = 0;
        let mut rung = false;
        for entry in self.ring.completion() {
            match entry.user_data() {
                IGNORED => {}
                DOORBELL => rung = true,
                index => {
                    into[count] = (index as u32, entry.result());
                    count += 1;
                    if count == into.len() {
                        break;
                    }
                }
            }
        }
        if rung {
            self.doorbell_armed = false;
            self.doorbell.silence();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most processes that this account may have; the kernel asks for no more workers.
    fn processes() -> u32 {
        let limits = std::fs::read_to_string("/proc/self/limits").expect("read");
        let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"));
        let soft = line.and_then(|line| line.split_whitespace().next()).expect("is listed");
        soft.parse().unwrap_or(u32::MAX)
    }

    #[test]
    fn one_hung_drive_does_not_hold_all_workers() {
        let ring = match Uring::new(256, Arc::new(Doorbell::new().expect("made"))) {
            Ok(ring) => ring,
            Err(error) => return println!("skipped: io_uring can't be used here: {error}"),
        };
        let mut found = [0, 0];
        match ring.ring.submitter().register_iowq_max_workers(&mut found) {
            Ok(()) => assert_eq!(found[0], WORKERS.min(processes()), "{found:?}"),
            Err(error) => println!("skipped: this kernel has no such limit: {error}"),
        }
    }
}
