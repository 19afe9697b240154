//! Deadlines of requests to drives (D16): every request of the engine goes through a [`Watched`]
//! drive.
//!
//! A request that is older than the deadline has an *unknown outcome*: it may be carried out
//! later, or never. Its waiter is told so (`DriveError::Timeout`) and goes on without the drive,
//! which is then taken out of the array as after any failure. The request itself goes on: the
//! runtime keeps its memory, a task of its own waits for its end, and until all such requests of
//! an opening have ended nobody may write the drive again (see [`quarantine`]).
//!
//! | a request is | its waiter            | leaves by                                          |
//! |--------------|-----------------------|----------------------------------------------------|
//! | under way    | waits                 | the drive answers → over; it is too old, or the    |
//! |              |                       | opening is given up, or its ticket is dropped      |
//! |              |                       | → left behind                                      |
//! | left behind  | was told, or is gone  | the drive answers → over                           |
//! | over         | has the outcome       |                                                    |
//!
//! | an opening is | requests                                 | leaves by                       |
//! |---------------|------------------------------------------|---------------------------------|
//! | open          | go to the drive                          | one is too old, or the array    |
//! |               |                                          | has excluded the drive →        |
//! |               |                                          | given up                        |
//! | given up      | are refused; those under way left behind |                                 |
//!
//! Time is counted in ticks of a quarter of the deadline, so that a process that was stopped for
//! a while blames no drive, and a request costs no look at the clock. A waiter learns of a hung
//! drive between one deadline and 5/4 of it after the request began.
//!
//! Invariants
//! - A ticket ends within 5/4 deadlines of its request; it says `Timeout` only of a request that
//!   has not ended when it is polled. A flush that waits for another ([`flush`]) has that of the
//!   other, too.
//! - A waiter that was told `Timeout` holds no memory of the request: a read gives another
//!   buffer back.
//! - The opening's token lives until the last handle and the last request of the opening is gone.
//! - Nothing is allocated for a request that ends in time.
//! - Nothing is changed while the lease of a shared array does not hold ([`Lease`]): what comes
//!   meanwhile is sent once it holds again, and its time counts from then on.

mod flush;
mod lease;
pub(crate) mod quarantine;
mod ticket;

use crate::mutants::{self, Mutant};
use core::cell::{Cell, OnceCell, RefCell};
use core::task::Waker;
use flush::{Flush, Flushes};
use io::local::Event;
use io::{Buf, BufMut, Drive, DriveError, DriveInfo, Env, Gather, Priority, Reached};
pub use lease::Lease;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use ticket::Pass;
pub use ticket::{Doing, Reading};
use units::Nanos;

/// Ticks of a deadline. A request is too old when more of them have passed since it began.
const TICKS: u32 = 4;

/// No entry in the list of those who wait.
const NONE: u32 = u32::MAX;

/// A drive as the manager opened it for an array, for every core to bind.
#[derive(Clone)]
pub struct Opened<S> {
    /// What a core makes its handle from.
    pub shared: S,
    /// Alive while a core has a handle of this opening, or a request of it is under way.
    token: Arc<()>,
    flushes: Arc<Flushes>,
    lease: Option<Arc<Lease>>,
}

impl<S> Opened<S> {
    /// A new opening of a drive.
    pub fn new(shared: S) -> Self {
        Self { shared, token: Arc::new(()), flushes: Arc::default(), lease: None }
    }
}

/// Who waits for a request that was not over when it was looked at first.
struct Entry {
    opening: u32,
    since: u32,
    waker: Option<Waker>,
}

struct Inner<E: Env> {
    env: E,
    period: Nanos,
    tick: Cell<u32>,
    entries: RefCell<Vec<Entry>>,
    free: RefCell<Vec<u32>>,
    waiting: Cell<usize>,
    /// The ticker waits for somebody to wait.
    idle: Cell<bool>,
    closed: Cell<bool>,
    news: Event,
    openings: Cell<u32>,
    given_up: Rc<Cell<u64>>,
}

/// The watch over all drives of an array on one core. Clones share it.
pub struct Watch<E: Env> {
    inner: Rc<Inner<E>>,
}

impl<E: Env> Clone for Watch<E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<E: Env> Watch<E> {
    /// A watch with this deadline; it runs until [`Watch::close`].
    pub fn new(env: &E, deadline: Nanos) -> Self {
        let room = crate::limits::PENDING;
        let watch = Self {
            inner: Rc::new(Inner {
                env: env.clone(),
                period: Nanos((deadline.0 / u64::from(TICKS)).max(1)),
                tick: Cell::new(0),
                entries: RefCell::new(Vec::with_capacity(room)),
                free: RefCell::new(Vec::with_capacity(room)),
                waiting: Cell::new(0),
                idle: Cell::new(false),
                closed: Cell::new(false),
                news: Event::default(),
                openings: Cell::new(0),
                given_up: Rc::default(),
            }),
        };
        env.spawn(Priority::First, watch.clone().run());
        watch
    }

    /// Ends the watch; nothing is asked of its drives any more.
    pub fn close(&self) {
        self.inner.closed.set(true);
        self.inner.news.notify();
    }

    /// Counts the requests whose waiters were told that they take too long.
    pub fn given_up(&self) -> Rc<Cell<u64>> {
        self.inner.given_up.clone()
    }

    /// This core's handle to an opening.
    pub fn open(&self, opened: &Opened<E::Shared>) -> Watched<E> {
        let number = self.inner.openings.get();
        self.inner.openings.set(number.wrapping_add(1));
        Watched {
            opening: Rc::new(Opening {
                drive: self.inner.env.bind(&opened.shared),
                watch: self.clone(),
                number,
                out: Cell::new(None),
                error: Cell::new(None),
                under_way: Cell::new(0),
                token: Some(opened.token.clone()),
                flushes: opened.flushes.clone(),
                lease: opened.lease.clone().map_or_else(OnceCell::new, OnceCell::from),
                unleased: Cell::new(0),
            }),
        }
    }

    /// Counts ticks while somebody waits, and has those look again who have waited for too long.
    async fn run(self) {
        let inner = &self.inner;
        loop {
            let news = || {
                let some = inner.closed.get() || inner.waiting.get() > 0;
                // Also where whoever woke it is gone by now: the next one has to wake it again.
                inner.idle.set(!some);
                some.then_some(())
            };
            inner.news.wait_until(news).await;
            if inner.closed.get() {
                return;
            }
            inner.env.sleep(inner.period).await;
            inner.tick.set(inner.tick.get().wrapping_add(1));
            self.wake(|entry| self.is_old(entry.since));
        }
    }

    fn is_old(&self, since: u32) -> bool {
        !mutants::is(Mutant::DeadlineOff) && self.inner.tick.get().wrapping_sub(since) > TICKS
    }

    fn wake(&self, which: impl Fn(&Entry) -> bool) {
        for entry in self.inner.entries.borrow().iter().filter(|e| which(e)) {
            if let Some(waker) = &entry.waker {
                waker.wake_by_ref();
            }
        }
    }

    /// Has `waker` woken when the request of this entry is too old or given up.
    fn wait(&self, entry: &mut u32, opening: u32, since: u32, waker: &Waker) {
        let inner = &self.inner;
        if *entry == NONE {
            let new = Entry { opening, since, waker: Some(waker.clone()) };
            let mut entries = inner.entries.borrow_mut();
            *entry = match inner.free.borrow_mut().pop() {
                Some(at) => {
                    entries[at as usize] = new;
                    at
                }
                None => {
                    entries.push(new);
                    (entries.len() - 1) as u32
                }
            };
            inner.waiting.set(inner.waiting.get() + 1);
            if inner.idle.replace(false) {
                inner.news.notify();
            }
            return;
        }
        let known = &mut inner.entries.borrow_mut()[*entry as usize].waker;
        if !known.as_ref().is_some_and(|w| w.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    /// Nobody waits for the request of this entry any more.
    #[inline]
    fn leave(&self, entry: &mut u32) {
        if *entry != NONE {
            self.forget(core::mem::replace(entry, NONE));
        }
    }

    fn forget(&self, at: u32) {
        let waker = self.inner.entries.borrow_mut()[at as usize].waker.take();
        drop(waker);
        self.inner.free.borrow_mut().push(at);
        self.inner.waiting.set(self.inner.waiting.get() - 1);
    }
}

/// One core's handle to an opening.
struct Opening<E: Env> {
    drive: E::Drive,
    watch: Watch<E>,
    number: u32,
    /// Given up, and what for: not always what spoke against the drive first, which may have been
    /// nothing to give it up for.
    out: Cell<Option<DriveError>>,
    /// The first failure that speaks against the drive.
    error: Cell<Option<DriveError>>,
    /// Requests of this core that somebody waits for.
    under_way: Cell<u32>,
    token: Option<Arc<()>>,
    flushes: Arc<Flushes>,
    /// Whether it may be changed, if others could have it.
    lease: OnceCell<Arc<Lease>>,
    /// Writes under way that the lease says nothing of.
    unleased: Cell<u32>,
}

impl<E: Env> Opening<E> {
    /// Leaves all requests under way behind, and refuses new ones.
    fn give_up(&self, error: DriveError) {
        self.note(error);
        if !self.is_out() {
            self.out.set(Some(error));
            self.watch.wake(|entry| entry.opening == self.number);
        }
    }

    fn note(&self, error: DriveError) {
        if self.error.get().is_none() {
            self.error.set(Some(error));
        }
    }

    fn is_out(&self) -> bool {
        self.out.get().is_some()
    }

    /// What those are told whose requests are given up.
    fn why(&self) -> DriveError {
        self.out.get().unwrap_or(DriveError::Gone)
    }
}

/// A drive with a deadline. Clones are the same handle.
pub struct Watched<E: Env> {
    opening: Rc<Opening<E>>,
}

impl<E: Env> Clone for Watched<E> {
    fn clone(&self) -> Self {
        Self { opening: self.opening.clone() }
    }
}

impl<E: Env> Watched<E> {
    /// Leaves all requests under way behind, and refuses new ones.
    pub fn give_up(&self, error: DriveError) {
        self.opening.give_up(error);
    }

    /// Whether requests are refused.
    pub fn is_given_up(&self) -> bool {
        self.opening.is_out()
    }

    /// The first failure that speaks against the drive.
    pub fn error(&self) -> Option<DriveError> {
        self.opening.error.get()
    }

    /// Requests of this core that it has not answered, as far as those who wait have looked.
    pub fn under_way(&self) -> u32 {
        self.opening.under_way.get()
    }

    /// The opening, for other cores; `None` once this handle is retired.
    pub fn opened(&self, shared: &E::Shared) -> Option<Opened<E::Shared>> {
        let token = self.opening.token.clone()?;
        let (flushes, lease) = (self.opening.flushes.clone(), self.opening.lease.get().cloned());
        Some(Opened { shared: shared.clone(), token, flushes, lease })
    }

    /// Whether this handle stays only to tell what the drive is.
    pub fn is_retired(&self) -> bool {
        self.opening.token.is_none()
    }

    /// Gives the opening up for good: this handle stays only to tell what the drive is. What is
    /// returned dies with the last request of the opening and the last handle of another core.
    pub fn retire(&mut self) -> Weak<()> {
        let old = &*self.opening;
        old.give_up(DriveError::Gone);
        let token = old.token.as_ref().map(Arc::downgrade).unwrap_or_default();
        let retired = Opening {
            drive: old.drive.clone(),
            watch: old.watch.clone(),
            number: old.number,
            out: Cell::new(Some(old.why())),
            error: old.error.clone(),
            under_way: Cell::new(0),
            token: None,
            flushes: old.flushes.clone(),
            lease: old.lease.clone(),
            unleased: Cell::new(0),
        };
        self.opening = Rc::new(retired);
        token
    }

    /// From now on nothing is changed while that lease does not hold. Said once of an opening.
    pub fn lease(&self, lease: &Arc<Lease>) {
        let is_first = self.opening.lease.set(lease.clone()).is_ok();
        debug_assert!(is_first, "one array has it");
    }

    /// Writes whatever the lease says: by this it is found out. Whether no other such write of the
    /// opening was under way as this one began, or may be still.
    pub async fn write_unleased(
        &self,
        offset: u64,
        data: &[Buf],
    ) -> (bool, Result<(), DriveError>) {
        let opening = &self.opening;
        let others = opening.unleased.replace(opening.unleased.get() + 1);
        let result = self.done(|drive| drive.write(offset, data, false)).await;
        // Of others nobody knows whether they have ended: one whose waiter was told that it takes
        // too long, or is gone, counts for good.
        if result != Err(DriveError::Timeout) {
            opening.unleased.set(opening.unleased.get() - 1);
        }
        (others == 0, result)
    }

    /// The lease, if it does not hold.
    #[inline]
    fn expired(&self) -> Option<Arc<Lease>> {
        let lease = self.opening.lease.get()?;
        (!lease.holds(self.opening.watch.inner.env.now())).then(|| lease.clone())
    }

    /// Begins a change once the lease holds; whoever asked for it may go meanwhile.
    #[cold]
    fn held(
        &self,
        lease: Arc<Lease>,
        start: impl FnOnce(&E::Drive) -> <E::Drive as Drive>::Done + 'static,
    ) -> Doing<E> {
        let held = Rc::new((Cell::new(None), Event::default()));
        let (me, own) = (self.clone(), held.clone());
        let env = self.opening.watch.inner.env.clone();
        self.opening.watch.inner.env.spawn(Priority::First, async move {
            let past = loop {
                if me.opening.is_out() {
                    break Err(me.opening.why());
                }
                if lease.is_revoked() {
                    break Err(DriveError::Gone);
                }
                if lease.holds(env.now()) {
                    break Ok(());
                }
                env.sleep(lease.look()).await;
            };
            let result = match past {
                Ok(()) => me.done(start).await,
                Err(error) => Err(error),
            };
            own.0.set(Some(result));
            own.1.notify();
        });
        Doing::held(Box::pin(async move { held.1.wait_until(|| held.0.get()).await }))
    }

    /// Begins a change, once the lease holds.
    fn change(
        &self,
        start: impl FnOnce(&E::Drive) -> <E::Drive as Drive>::Done + 'static,
    ) -> Doing<E> {
        match self.expired() {
            Some(lease) => self.held(lease, start),
            None => self.done(start),
        }
    }

    #[inline]
    fn pass<T>(&self, start: impl FnOnce(&E::Drive) -> T) -> Pass<E, T>
    where
        T: Future + Unpin + 'static,
    {
        Pass::new(self.opening.clone(), start(&self.opening.drive))
    }

    #[inline]
    fn done(&self, start: impl FnOnce(&E::Drive) -> <E::Drive as Drive>::Done) -> Doing<E> {
        if self.opening.is_out() {
            return Doing::refused(self.opening.why());
        }
        Doing::going(self.pass(start))
    }
}

impl<E: Env> Drive for Watched<E> {
    type Read = Reading<E>;
    type Done = Doing<E>;

    fn info(&self) -> &DriveInfo {
        self.opening.drive.info()
    }

    #[inline]
    fn read(&self, offset: u64, into: BufMut) -> Reading<E> {
        if self.opening.is_out() {
            return Reading::refused(self.opening.why(), into);
        }
        let bytes = into.len();
        Reading::going(self.pass(|drive| drive.read(offset, into)), bytes)
    }

    #[inline]
    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> Doing<E> {
        if let Some(lease) = self.expired() {
            let data: Gather = data.iter().cloned().collect();
            return self.held(lease, move |drive| drive.write(offset, &data, fua));
        }
        self.done(|drive| drive.write(offset, data, fua))
    }

    fn flush(&self) -> Doing<E> {
        if self.opening.is_out() {
            return Doing::refused(self.opening.why());
        }
        Doing::flushing(Flush::new(self.opening.clone()))
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Doing<E> {
        self.change(move |drive| drive.write_zeroes(offset, bytes))
    }

    fn discard(&self, offset: u64, bytes: u64) -> Doing<E> {
        self.change(move |drive| drive.discard(offset, bytes))
    }

    fn reached(&self) -> Option<&dyn Reached> {
        self.opening.drive.reached()
    }
}
