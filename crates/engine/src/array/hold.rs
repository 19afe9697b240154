//! Changes of parity stripes: counted, and held back while their group is not guarded
//! ([`crate::journal`]).
//!
//! | a change | leaves by                                                                       |
//! |----------|---------------------------------------------------------------------------------|
//! | held     | a snapshot without [`hold`](crate::array::view::View::hold) is adopted → counted|
//! | counted  | it is in place, or is to be planned anew                                        |
//!
//! A snapshot may be published to be told when everything is over that was counted before it
//! ([`Mail::Quiet`]).
//!
//! Invariants
//! - What is counted follows the snapshot under which it was counted.
//! - What is counted waits for nothing that waits for it to be over: not for the guard of its
//!   group, and not for an acknowledgement. It may wait for the record of a failure.

use crate::Host;
use crate::array::message::Mail;
use crate::array::{Active, Array, Bound, MANAGER};
use core::cell::Cell;
use io::Priority;
use io::local::Event;
use std::rc::Rc;

/// The changes under way on one core: those begun in even and odd turns, and which turn is now.
#[derive(Default)]
pub(super) struct Changes {
    under_way: [Cell<usize>; 2],
    turn: Cell<usize>,
    over: Event,
}

impl<E: Host> Array<E> {
    /// Begins a change of a stripe of a group with parity, once nothing holds it back. It follows
    /// the snapshot, and is over when the other is dropped.
    pub(crate) async fn begin_change(&self) -> (Rc<Bound<E>>, Active<'_>) {
        self.past_hold().await;
        let changes = &self.inner.changes;
        let count = &changes.under_way[changes.turn.get()];
        count.set(count.get() + 1);
        (self.bound(), Active { count, idle: &changes.over })
    }

    /// Waits until changes are not held back: what depends on the failure of a drive is not
    /// acknowledged before its group is guarded, or can't be.
    #[inline]
    pub(crate) async fn past_hold(&self) {
        let held = || self.inner.bound.borrow().view.hold;
        if held() {
            self.inner.changed.wait_until(|| (!held()).then_some(())).await;
        }
    }

    /// Tells the manager when all changes are over that were begun before. One such wait at a time.
    pub(super) fn tell_quiet(&self) {
        let changes = &self.inner.changes;
        let before = changes.turn.replace(1 - changes.turn.get());
        let array = self.clone();
        self.inner.env.spawn(Priority::First, async move {
            let changes = &array.inner.changes;
            let over = || (changes.under_way[before].get() == 0).then_some(());
            changes.over.wait_until(over).await;
            let core = array.inner.env.core();
            array.post(MANAGER, Mail::Quiet { core });
        });
    }
}
