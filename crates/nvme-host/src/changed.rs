//! Waiting for what tasks of other cores change.

use core::future::{Future, poll_fn};
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};
use std::sync::Mutex;

/// As [`io::local::Event`], for tasks of any core.
#[derive(Default)]
pub(crate) struct Changed {
    count: AtomicU64,
    waiters: Mutex<Vec<Waker>>,
}

impl Changed {
    /// Something changed: wakes all who wait.
    pub fn notify(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        let waiters = core::mem::take(&mut *self.waiters.lock().unwrap_or_else(|e| e.into_inner()));
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Waits until `ready` says something, asking now and after every [`Changed::notify`].
    pub fn wait_until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
        let mut seen = None;
        poll_fn(move |cx| {
            let count = self.count.load(Ordering::SeqCst);
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            if seen != Some(count) {
                seen = Some(count);
                let mut waiters = self.waiters.lock().unwrap_or_else(|e| e.into_inner());
                waiters.push(cx.waker().clone());
            }
            // It changed meanwhile, and who changed it may not have seen the waker.
            if self.count.load(Ordering::SeqCst) != count {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}
