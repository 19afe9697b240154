//! One virtual core as the engine sees it: [`io::Env`] on a [`crate::World`].
//!
//! Invariants
//! - Mail is never lost or duplicated while the world has power; its delay is random, so its
//!   order is not kept unless the world was made with `mail_in_order`.
//! - After a crash every method is harmless: tasks are dropped at once, requests and timers
//!   never end.

use crate::drive::{DriveCell, SharedSimDrive, SimDrive};
use crate::executor::Executor;
use crate::lock;
use crate::timeline::{Due, Event, Timeline};
use crate::world::WorldConfig;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use io::{Env, Priority};
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use units::{CoreId, Nanos};

/// What simulated wall clocks show when the virtual clock shows 0 (14 November 2023).
const WALL_START: u64 = 1_700_000_000;

/// What arrived for one core and who waits for it.
struct Mailbox<M> {
    arrived: VecDeque<M>,
    receiver: Option<Waker>,
}

/// The state that the world and its cores share.
pub(crate) struct Kernel<M> {
    pub(crate) config: WorldConfig,
    pub(crate) timeline: Timeline,
    pub(crate) executor: Executor,
    boxes: Vec<RefCell<Mailbox<M>>>,
    in_transit: RefCell<BTreeMap<u64, M>>,
    letters: RefCell<u64>,
    /// With `mail_in_order`: when the latest letter from one core to another arrives.
    latest: RefCell<BTreeMap<(u16, u16), Nanos>>,
    drives: RefCell<Vec<DriveCell>>,
}

impl<M> Kernel<M> {
    pub(crate) fn new(config: WorldConfig) -> Self {
        let mailbox = |_| RefCell::new(Mailbox { arrived: VecDeque::new(), receiver: None });
        Self {
            timeline: Timeline::new(config.seed, config.start),
            executor: Executor::new(config.cores),
            boxes: (0..config.cores).map(mailbox).collect(),
            in_transit: RefCell::default(),
            letters: RefCell::default(),
            latest: RefCell::default(),
            drives: RefCell::default(),
            config,
        }
    }

    /// Delivers a letter.
    pub(crate) fn deliver(&self, to: u16, letter: u64) {
        let mail = self.in_transit.borrow_mut().remove(&letter);
        let Some(mail) = mail else { return };
        let mut mailbox = self.boxes[usize::from(to)].borrow_mut();
        mailbox.arrived.push_back(mail);
        if let Some(waker) = mailbox.receiver.take() {
            waker.wake();
        }
    }

    /// The drives bound so far, in order of binding.
    pub(crate) fn drives(&self) -> Vec<DriveCell> {
        self.drives.borrow().clone()
    }

    fn drive_number(&self, cell: &DriveCell) -> u64 {
        let mut drives = self.drives.borrow_mut();
        let known = drives.iter().position(|d| Arc::ptr_eq(d, cell));
        let number = known.unwrap_or_else(|| {
            drives.push(cell.clone());
            drives.len() - 1
        });
        number as u64
    }

    /// Drops tasks and mail without running anything. The power is off already.
    pub(crate) fn clear(&self) {
        self.executor.clear();
        drop(self.in_transit.take());
        for mailbox in &self.boxes {
            let arrived = core::mem::take(&mut mailbox.borrow_mut().arrived);
            drop(arrived);
            mailbox.borrow_mut().receiver = None;
        }
        self.drives.take();
    }

    #[track_caller]
    pub(crate) fn spawn(
        &self,
        core: CoreId,
        priority: Priority,
        task: impl Future<Output = ()> + 'static,
    ) {
        if self.timeline.powered() {
            self.executor.spawn(core, priority, Location::caller(), task);
        }
    }

    fn post(&self, from: CoreId, to: CoreId, mail: M) {
        if !self.timeline.powered() {
            return;
        }
        let letter = self.letters.replace_with(|n| *n + 1);
        self.in_transit.borrow_mut().insert(letter, mail);
        let most = self.config.mail_delay_most.0;
        let mut delay = Nanos(self.timeline.random(|rng| rng.between(0, most)));
        if self.config.mail_in_order {
            let now = self.timeline.now();
            let mut latest = self.latest.borrow_mut();
            let last = latest.entry((from.0, to.0)).or_default();
            *last = now.after(delay).max(last.after(Nanos(1)));
            delay = last.since(now);
        }
        self.timeline.schedule(delay, Event::Mail { to: to.0, letter });
    }
}

/// A virtual core. Clones are the same core.
pub struct SimEnv<M> {
    kernel: Rc<Kernel<M>>,
    core: CoreId,
}

impl<M> Clone for SimEnv<M> {
    fn clone(&self) -> Self {
        Self { kernel: self.kernel.clone(), core: self.core }
    }
}

impl<M> SimEnv<M> {
    pub(crate) fn new(kernel: Rc<Kernel<M>>, core: CoreId) -> Self {
        Self { kernel, core }
    }

    /// The next number of the world's total order. A drive's log
    /// ([`SharedSimDrive::log`](crate::SharedSimDrive::log)) uses the same order, so a test can
    /// say what came before what.
    pub fn sequence(&self) -> u64 {
        self.kernel.timeline.sequence()
    }
}

impl<M: Send + 'static> Env for SimEnv<M> {
    type Drive = SimDrive;
    type Shared = SharedSimDrive;
    type Mail = M;
    type Sleep = SimSleep;

    fn core(&self) -> CoreId {
        self.core
    }

    fn cores(&self) -> u16 {
        self.kernel.config.cores
    }

    fn now(&self) -> Nanos {
        self.kernel.timeline.now()
    }

    fn sleep(&self, span: Nanos) -> SimSleep {
        let timeline = self.kernel.timeline.clone();
        let waker = Arc::new(Mutex::new(None));
        let until = timeline.now().after(span);
        let due = timeline.schedule(span, Event::Wake(waker.clone()));
        SimSleep { timeline, until, due, waker }
    }

    #[track_caller]
    fn spawn(&self, priority: Priority, task: impl Future<Output = ()> + 'static) {
        self.kernel.spawn(self.core, priority, task);
    }

    fn post(&self, to: CoreId, mail: M) {
        assert!(to.0 < self.cores(), "mail to a core that does not exist");
        self.kernel.post(self.core, to, mail);
    }

    fn receive(&self) -> impl Future<Output = M> {
        let mailbox = &self.kernel.boxes[self.core.index()];
        poll_fn(move |cx| {
            let mut mailbox = mailbox.borrow_mut();
            match mailbox.arrived.pop_front() {
                Some(mail) => Poll::Ready(mail),
                None => {
                    mailbox.receiver = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn bind(&self, shared: &SharedSimDrive) -> SimDrive {
        let number = self.kernel.drive_number(shared.cell());
        SimDrive::new(shared.clone(), self.kernel.timeline.clone(), number)
    }

    fn random(&self) -> u64 {
        self.kernel.timeline.random(|rng| rng.bits())
    }

    fn wall_millis(&self) -> u64 {
        WALL_START * 1_000 + self.now().0 / 1_000_000
    }
}

/// A running virtual timer; dropping it stops it.
pub struct SimSleep {
    timeline: Timeline,
    until: Nanos,
    due: Due,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Future for SimSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.timeline.now() >= self.until && self.timeline.powered() {
            return Poll::Ready(());
        }
        *lock(&self.waker) = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for SimSleep {
    fn drop(&mut self) {
        self.timeline.cancel(&self.due);
    }
}
