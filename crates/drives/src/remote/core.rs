//! What each core has of subsystems: its requests to them, and what carries these.
//!
//! A drive is bound by what knows a core's reactor only. So a core that serves a fabric says so for
//! its thread, and drives find what it has there, as long as the core runs.

use super::line::Tcp;
use core::cell::RefCell;
use core::future::pending;
use io::{DriveError, Env, Priority};
use nvme_host::{Requests, Subsystem, carry, keep, oversee};
use runtime::{Bind, CoreEnv};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use units::Nanos;

/// Begins a core's requests to a subsystem.
type Begin = Box<dyn Fn(&Arc<Subsystem>) -> Rc<Requests>>;

/// One core of a fabric.
struct Served {
    /// The fabric's number.
    fabric: u64,
    begin: Begin,
    requests: RefCell<Vec<(Arc<Subsystem>, Rc<Requests>)>>,
}

thread_local! {
    static SERVED: RefCell<Weak<Served>> = const { RefCell::new(Weak::new()) };
}

pub(super) fn dial<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>, keep_alive: Nanos) -> Tcp {
    Tcp { reactor: env.reactor().clone(), keep_alive }
}

/// From now on this core can have drives of that fabric, and of no other, by I/O queues of that
/// number.
pub(super) fn serve<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>, fabric: u64, queue: u16) {
    let own = env.clone();
    let begin = move |subsystem: &Arc<Subsystem>| {
        let dial = dial(&own, subsystem.settings.keep_alive);
        carry(&own, &dial, subsystem, queue)
    };
    let served = Served { fabric, begin: Box::new(begin), requests: RefCell::default() };
    let served = Rc::new(served);
    SERVED.set(Rc::downgrade(&served));
    // It has the core, and ends with it.
    env.spawn(Priority::First, async move {
        let _served = served;
        pending().await
    });
}

/// This core's requests to a subsystem. A core that does not serve the fabric can ask nothing.
pub(super) fn requests(fabric: u64, subsystem: &Arc<Subsystem>) -> Rc<Requests> {
    let served = SERVED.with_borrow(Weak::upgrade).filter(|own| own.fabric == fabric);
    let Some(served) = served else {
        let requests = Requests::default();
        requests.refuse(DriveError::Gone);
        return Rc::new(requests);
    };
    let mut all = served.requests.borrow_mut();
    all.retain(|(own, _)| !own.is_closed());
    if let Some((_, requests)) = all.iter().find(|(own, _)| Arc::ptr_eq(own, subsystem)) {
        return requests.clone();
    }
    let requests = (served.begin)(subsystem);
    all.push((subsystem.clone(), requests.clone()));
    requests
}

/// Has this core look after a subsystem.
pub(super) fn look_after<M: Send + 'static, S: Bind>(
    env: &CoreEnv<M, S>,
    subsystem: &Arc<Subsystem>,
) {
    env.spawn(Priority::First, oversee(env.clone(), subsystem.clone()));
}

/// Has this core keep a path.
pub(super) fn keep_path<M: Send + 'static, S: Bind>(
    env: &CoreEnv<M, S>,
    subsystem: &Arc<Subsystem>,
    path: nvme_host::Path,
) {
    let dial = dial(env, subsystem.settings.keep_alive);
    env.spawn(Priority::First, keep(env.clone(), dial, subsystem.clone(), path));
}
