//! One core as its tasks see it: the real implementation of [`io::Env`].

use crate::cores::Shared;
use crate::reactor::{Reactor, Sleep};
use crate::sys;
use crate::task::Executor;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};
use io::{Buf, BufMut, Drive, DriveError, DriveInfo, Priority};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use units::{CoreId, Nanos};

/// What every core can make its own drive handle from.
pub trait Bind: Clone + Send + Sync + 'static {
    /// One core's handle.
    type Bound: Drive;
    /// Makes the handle of the core that owns `reactor`.
    fn bind(&self, reactor: &Reactor) -> Self::Bound;
}

struct Core<M, S> {
    id: CoreId,
    shared: Arc<Shared<M, S>>,
    reactor: Reactor,
    executor: Executor,
    mail: RefCell<VecDeque<M>>,
    receiver: RefCell<Option<Waker>>,
}

/// One core. `M` is the mail, `S` what drives are bound from. Clones share it; it never leaves
/// its thread.
pub struct CoreEnv<M, S> {
    core: Rc<Core<M, S>>,
}

impl<M, S> Clone for CoreEnv<M, S> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone() }
    }
}

impl<M: Send + 'static, S: Bind> CoreEnv<M, S> {
    pub(crate) fn new(
        id: CoreId,
        shared: Arc<Shared<M, S>>,
        reactor: Reactor,
        executor: Executor,
    ) -> Self {
        let mail = RefCell::new(VecDeque::with_capacity(64));
        let receiver = RefCell::new(None);
        Self { core: Rc::new(Core { id, shared, reactor, executor, mail, receiver }) }
    }

    /// This core's reactor: sockets and files outside the drives.
    pub fn reactor(&self) -> &Reactor {
        &self.core.reactor
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.core.executor
    }

    pub(crate) fn shared(&self) -> &Shared<M, S> {
        &self.core.shared
    }

    /// Empties this core's boxes: mail, calls, wakes of other threads.
    pub(crate) fn collect(&self) {
        let post = self.core.shared.post_of(self.core.id);
        if !post.doorbell.answer() {
            return;
        }
        self.core.executor.take_remote_wakes();
        {
            let mut mail = self.core.mail.borrow_mut();
            let mut arrived = post.mail.lock().unwrap_or_else(|e| e.into_inner());
            post.busy.mail(arrived.len());
            if mail.is_empty() {
                core::mem::swap(&mut *mail, &mut *arrived);
            } else {
                mail.append(&mut arrived);
            }
        }
        self.wake_receiver();
        while let Some(call) = post.take_call() {
            call(self);
        }
    }

    fn wake_receiver(&self) {
        if self.core.mail.borrow().is_empty() {
            return;
        }
        let receiver = self.core.receiver.borrow_mut().take();
        if let Some(waker) = receiver {
            waker.wake();
        }
    }
}

impl<M: Send + 'static, S: Bind> io::Env for CoreEnv<M, S> {
    type Drive = S::Bound;
    type Shared = S;
    type Mail = M;
    type Sleep = Sleep;

    fn core(&self) -> CoreId {
        self.core.id
    }

    fn cores(&self) -> u16 {
        self.core.shared.cores()
    }

    fn now(&self) -> Nanos {
        self.core.reactor.now()
    }

    fn sleep(&self, span: Nanos) -> Sleep {
        self.core.reactor.sleep(span)
    }

    fn spawn(&self, priority: Priority, task: impl Future<Output = ()> + 'static) {
        self.core.executor.spawn(priority, task);
    }

    fn post(&self, to: CoreId, mail: M) {
        if to == self.core.id {
            self.core.mail.borrow_mut().push_back(mail);
            self.wake_receiver();
        } else {
            self.core.shared.post(to, mail);
        }
    }

    fn receive(&self) -> impl Future<Output = M> {
        poll_fn(move |cx| {
            if let Some(mail) = self.core.mail.borrow_mut().pop_front() {
                return Poll::Ready(mail);
            }
            let mut receiver = self.core.receiver.borrow_mut();
            match &mut *receiver {
                Some(old) => old.clone_from(cx.waker()),
                None => *receiver = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
    }

    fn bind(&self, shared: &S) -> S::Bound {
        shared.bind(&self.core.reactor)
    }

    fn random(&self) -> u64 {
        sys::random()
    }

    fn wall_millis(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
    }
}

/// No drive at all: for runtimes whose tasks need none. Every request fails with `Gone`.
#[derive(Clone, Debug)]
pub struct NoDrive;

const NO_DRIVE: DriveInfo =
    DriveInfo { bytes: 0, block_bytes: 512, volatile_cache: false, inline: true };

impl Bind for NoDrive {
    type Bound = Self;
    fn bind(&self, _: &Reactor) -> Self {
        Self
    }
}

impl Drive for NoDrive {
    type Read = core::future::Ready<(Result<(), DriveError>, BufMut)>;
    type Done = core::future::Ready<Result<(), DriveError>>;

    fn info(&self) -> &DriveInfo {
        &NO_DRIVE
    }
    fn read(&self, _: u64, into: BufMut) -> Self::Read {
        core::future::ready((Err(DriveError::Gone), into))
    }
    fn write(&self, _: u64, _: &[Buf], _: bool) -> Self::Done {
        core::future::ready(Err(DriveError::Gone))
    }
    fn flush(&self) -> Self::Done {
        core::future::ready(Err(DriveError::Gone))
    }
    fn write_zeroes(&self, _: u64, _: u64) -> Self::Done {
        core::future::ready(Err(DriveError::Gone))
    }
    fn discard(&self, _: u64, _: u64) -> Self::Done {
        core::future::ready(Err(DriveError::Gone))
    }
}
