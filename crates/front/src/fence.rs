//! What is left of connections that broke, and who waits for it.
//!
//! A host whose connection broke sends again what was not answered, by another connection, and
//! then whatever it likes. Nothing else keeps what it sent first from being carried out last. So
//! the connections of a volume, on all cores, share a fence: once one has broken, nothing that
//! comes by any other begins before all has ended that the broken one still had to change.
//!
//! States of a connection: *entered* → *broken* (it ended, or was found to be gone) → *left* (its
//! [`Passage`] is dropped, and with it the last that it began).
//!
//! A connection that has room for no more requests does not see its end. Whoever is told of it by
//! the system has the fence look ([`Fence::look`]).
//!
//! What a broken one had sent before is still carried out as far as it is received: whether its
//! host has gone or only sends nothing more and waits for the answers can't be told apart. Whoever
//! serves it ends it when it has had time for them.
//!
//! Invariants
//! - A connection waits for those only that broke before it asked: that ends, whatever others do.
//! - One that broke itself waits for those only that broke before it, so that no two wait for each
//!   other.

use core::fmt;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A connection as others see it, from any core.
pub trait Link: Send + Sync {
    /// Whether the host has closed it, or sends nothing more, whatever is left to be received.
    /// Whoever serves it may not have come to look, as it does not while it has no room for more
    /// requests.
    fn is_over(&self) -> bool;
}

/// The connections of a volume.
#[derive(Default)]
pub struct Fence {
    state: Mutex<State>,
    /// Connections that broke and have not left: most of the time there are none.
    broken: AtomicUsize,
}

#[derive(Default)]
struct State {
    entered: BTreeMap<u64, Entered>,
    /// Connections that entered so far, and that broke.
    count: (u64, u64),
    waiting: Vec<Waker>,
}

struct Entered {
    link: Arc<dyn Link>,
    /// How many broke before it did.
    broken: Option<u64>,
}

impl State {
    fn wake(&mut self) {
        // It only queues tasks: nothing of it comes back here.
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Fence {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A connection begins. Those that are over by now have broken, and be it this one.
    pub fn enter(self: &Arc<Self>, link: Arc<dyn Link>) -> Passage {
        let mut state = self.lock();
        let id = state.count.0;
        state.count.0 += 1;
        state.entered.insert(id, Entered { link, broken: None });
        self.find_gone(&mut state);
        drop(state);
        Passage { fence: self.clone(), id }
    }

    /// Some connection may be over: those that are have broken.
    pub fn look(&self) {
        self.find_gone(&mut self.lock());
    }

    fn find_gone(&self, state: &mut State) {
        let there = |(id, other): (&u64, &Entered)| {
            (other.broken.is_none() && other.link.is_over()).then_some(*id)
        };
        let gone: Vec<u64> = state.entered.iter().filter_map(there).collect();
        gone.into_iter().for_each(|id| self.break_off(state, id));
    }

    fn break_off(&self, state: &mut State, id: u64) {
        let before = state.count.1;
        let Some(entered) = state.entered.get_mut(&id) else { return };
        if entered.broken.is_none() {
            entered.broken = Some(before);
            state.count.1 += 1;
            self.broken.fetch_add(1, Ordering::Release);
            state.wake();
        }
    }
}

/// A connection's place at the fence. It is kept by whatever changes the volume for it.
pub struct Passage {
    fence: Arc<Fence>,
    id: u64,
}

impl Passage {
    /// The connection has ended, but for what keeps this.
    pub fn break_off(&self) {
        self.fence.break_off(&mut self.fence.lock(), self.id);
    }

    /// Waits until nothing is left of the connections that broke before.
    pub async fn pass(&self) {
        if self.fence.broken.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut limit = None;
        poll_fn(|cx| {
            let mut state = self.fence.lock();
            let asked = *limit.get_or_insert(state.count.1);
            let own = state.entered.get(&self.id).and_then(|own| own.broken);
            let limit = own.map_or(asked, |own| own.min(asked));
            let is_before = |other: &Entered| other.broken.is_some_and(|before| before < limit);
            if !state.entered.values().any(is_before) {
                return Poll::Ready(());
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let mut state = self.fence.lock();
        if state.entered.remove(&self.id).is_some_and(|own| own.broken.is_some()) {
            self.fence.broken.fetch_sub(1, Ordering::Release);
            state.wake();
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entered = self.lock().entered.len();
        write!(f, "Fence({entered} entered, {} broken)", self.broken.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::pin::pin;
    use core::task::Context;
    use std::sync::atomic::AtomicBool;
    use std::task::Wake;

    /// Whether the host has gone.
    #[derive(Default)]
    struct Host(AtomicBool);

    impl Link for Host {
        fn is_over(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn passes(passage: &Passage) -> bool {
        pin!(passage.pass()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn who_breaks_is_waited_for_until_it_has_left() {
        let fence = Arc::<Fence>::default();
        let enter = || fence.enter(Arc::new(Host::default()));
        let (first, second) = (enter(), enter());
        assert!(passes(&first) && passes(&second));
        first.break_off();
        first.break_off();
        let third = enter();
        assert!(!passes(&second) && !passes(&third));
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(woken.clone());
        let mut passing = pin!(second.pass());
        assert!(passing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(!woken.0.load(Ordering::Relaxed));
        drop(first);
        assert!(woken.0.load(Ordering::Relaxed));
        assert!(passing.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        assert!(passes(&third));
    }

    #[test]
    fn who_waits_does_not_wait_for_what_breaks_later() {
        let fence = Arc::<Fence>::default();
        let enter = || fence.enter(Arc::new(Host::default()));
        let (first, second, third) = (enter(), enter(), enter());
        first.break_off();
        let mut context = Context::from_waker(Waker::noop());
        let mut passing = pin!(third.pass());
        assert!(passing.as_mut().poll(&mut context).is_pending());
        second.break_off();
        drop(first);
        assert!(passing.as_mut().poll(&mut context).is_ready());
        assert!(!passes(&third));
        drop(second);
    }

    #[test]
    fn two_that_broke_do_not_wait_for_each_other() {
        let fence = Arc::<Fence>::default();
        let enter = || fence.enter(Arc::new(Host::default()));
        let (first, second) = (enter(), enter());
        first.break_off();
        assert!(!passes(&second));
        let mut passing = pin!(second.pass());
        assert!(passing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        second.break_off();
        assert!(passes(&first), "what it still has comes first");
        assert!(!passes(&second));
        drop(first);
        assert!(passes(&second));
        assert!(passing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    #[test]
    fn who_comes_finds_those_that_are_gone() {
        let fence = Arc::<Fence>::default();
        let host = Arc::<Host>::default();
        let first = fence.enter(host.clone());
        let second = fence.enter(Arc::new(Host::default()));
        host.0.store(true, Ordering::Relaxed);
        assert!(passes(&second), "nobody has looked");
        let third = fence.enter(Arc::new(Host::default()));
        assert!(!passes(&second) && !passes(&third));
        drop(first);
        assert!(passes(&third));
    }

    #[test]
    fn who_is_told_finds_those_that_are_gone() {
        let fence = Arc::<Fence>::default();
        let host = Arc::<Host>::default();
        let (first, second) = (fence.enter(host.clone()), fence.enter(Arc::new(Host::default())));
        fence.look();
        assert!(passes(&second), "all are there");
        host.0.store(true, Ordering::Relaxed);
        fence.look();
        assert!(!passes(&second));
        drop(first);
        assert!(passes(&second));
        // One that is over before it has a place.
        let late = fence.enter(host);
        assert!(passes(&late) && !passes(&second));
    }
}
