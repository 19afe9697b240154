//! Cores, clock, tasks and mailboxes.
//!
//! A core runs its tasks one at a time on one thread; tasks of one core share `Rc` state and
//! never block. Cores talk by mail alone. Mail between two cores may be delayed and, between
//! different senders, arrives in any order; it is never lost or duplicated.

use crate::drive::Drive;
use core::future::Future;
use units::{CoreId, Nanos};

/// When a ready task runs within a poll batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// As soon as it is ready: connections, requesters, mail.
    First,
    /// When no `First` task is ready: stripe workers, so that a batch gathers before it starts.
    Last,
}

/// One core as seen by the code that runs on it. Cheap to clone.
pub trait Env: Clone + 'static {
    /// This core's handles to drives.
    type Drive: Drive;
    /// What every core can make its own handle from.
    type Shared: Clone + Send + Sync + 'static;
    /// What cores send each other.
    type Mail: Send + 'static;
    /// A running timer.
    type Sleep: Future<Output = ()> + Unpin + 'static;

    /// Which core this is.
    fn core(&self) -> CoreId;
    /// How many cores there are.
    fn cores(&self) -> u16;
    /// Monotonic time, as of the current poll batch or fresher.
    fn now(&self) -> Nanos;
    /// Completes once `now` has reached `span` from now.
    fn sleep(&self, span: Nanos) -> Self::Sleep;
    /// Runs a task on this core. Allocates: not for the data path.
    fn spawn(&self, priority: Priority, task: impl Future<Output = ()> + 'static);
    /// Puts mail into another core's (or this core's) box. Never blocks, never fails.
    fn post(&self, to: CoreId, mail: Self::Mail);
    /// Takes the next mail out of this core's box, waiting for one. One receiver a core.
    fn receive(&self) -> impl Future<Output = Self::Mail>;
    /// Makes this core's handle to a drive.
    fn bind(&self, shared: &Self::Shared) -> Self::Drive;
    /// A random number, for identities; the deterministic runtime takes it from its seed.
    fn random(&self) -> u64;
    /// Milliseconds since 1970, for people only; never used to decide anything.
    fn wall_millis(&self) -> u64;
    /// The same in seconds.
    fn wall_seconds(&self) -> u64 {
        self.wall_millis() / 1_000
    }
}
