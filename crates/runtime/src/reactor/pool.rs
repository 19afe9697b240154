//! A few threads that make blocking file calls where io_uring is switched off.
//!
//! No file has more than a quarter of them at a time, so that two files whose calls never end
//! leave half of the threads to the others.
//!
//! Invariant: a job's memory belongs to a slab slot that stays until the job's result was taken
//! from its [`Sink`].
#![allow(unsafe_code)]

use super::slab::Call;
use crate::doorbell::Doorbell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Where a core's finished jobs go.
pub(crate) struct Sink {
    done: Mutex<Vec<(u32, i32)>>,
    doorbell: Arc<Doorbell>,
}

impl Sink {
    pub(crate) fn new(doorbell: Arc<Doorbell>) -> Self {
        Self { done: Mutex::new(Vec::with_capacity(64)), doorbell }
    }

    /// Moves the results to `into`.
    pub(crate) fn take(&self, into: &mut Vec<(u32, i32)>) {
        into.append(&mut self.done.lock().unwrap_or_else(|e| e.into_inner()));
    }

    fn put(&self, index: u32, result: i32) {
        self.done.lock().unwrap_or_else(|e| e.into_inner()).push((index, result));
        self.doorbell.ring();
    }
}

struct Job {
    sink: Arc<Sink>,
    index: u32,
    fd: RawFd,
    call: Call,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The files of the jobs that threads are at.
    busy: Vec<RawFd>,
    /// Most jobs of one file at a time.
    most: usize,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

impl Queue {
    /// The first job whose file may have another thread.
    fn next(&mut self) -> Option<Job> {
        let may = |job: &Job| self.busy.iter().filter(|fd| **fd == job.fd).count() < self.most;
        let job = self.jobs.iter().position(may).and_then(|at| self.jobs.remove(at))?;
        self.busy.push(job.fd);
        Some(job)
    }

    fn done(&mut self, fd: RawFd) {
        if let Some(at) = self.busy.iter().position(|busy| *busy == fd) {
            self.busy.swap_remove(at);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            let job = loop {
                if let Some(job) = queue.next() {
                    break job;
                }
                if queue.stopping && queue.jobs.is_empty() {
                    self.filled.notify_all();
                    return;
                }
                queue = self.filled.wait(queue).unwrap_or_else(|e| e.into_inner());
            };
            drop(queue);
            let result = perform(job.fd, job.call);
            // Before the result is told: from then on the descriptor may be another file's. What
            // this lets go on is the one job that this thread takes next.
            self.lock().done(job.fd);
            job.sink.put(job.index, result);
            queue = self.lock();
        }
    }
}

/// The threads; they end when the pool is dropped and its jobs are done. Nobody waits for those
/// that have jobs yet: that may be for ever.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.lock().most = (threads / 4).max(1);
        let threads = (0..threads.max(1))
            .map(|_| {
                let shared = shared.clone();
                let builder = std::thread::Builder::new().name("palisade-block".into());
                builder.spawn(move || shared.work())
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { shared, threads })
    }

    pub(crate) fn submit(&self, sink: Arc<Sink>, index: u32, fd: RawFd, call: Call) {
        self.shared.lock().jobs.push_back(Job { sink, index, fd, call });
        self.shared.filled.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let is_idle = {
            let mut queue = self.shared.lock();
            queue.stopping = true;
            queue.jobs.is_empty() && queue.busy.is_empty()
        };
        self.shared.filled.notify_all();
        if !is_idle {
            return;
        }
        for thread in self.threads.drain(..) {
            // A thread only ends by panicking if we made a mistake, and that aborts.
            let _ = thread.join();
        }
    }
}

/// Makes the call; the result is as io_uring gives it.
fn perform(fd: RawFd, call: Call) -> i32 {
    // SAFETY: the slab keeps the memory behind the pointers until the result was reported, and
    // the descriptor open.
    let answer = unsafe {
        match call {
            Call::Read { to, bytes, offset } => libc::pread64(fd, to.cast(), bytes, offset as i64),
            Call::Write { from, bytes, offset, flags } => {
                let one = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: bytes };
                libc::pwritev2(fd, &one, 1, offset as i64, flags)
            }
            Call::Gather { vectors, count, offset, flags } => {
                libc::pwritev2(fd, vectors, count as i32, offset as i64, flags)
            }
            Call::Sync => libc::fdatasync(fd) as isize,
            Call::Fallocate { mode, offset, bytes } => {
                libc::fallocate64(fd, mode, offset as i64, bytes as i64) as isize
            }
            Call::Poll { .. } => unreachable!("polls go to epoll"),
            Call::Command { .. } => unreachable!("commands are refused"),
        }
    };
    if answer < 0 {
        -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
    } else {
        answer.min(i32::MAX as isize) as i32
    }
}
