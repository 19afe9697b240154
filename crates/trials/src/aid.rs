//! A simulated accelerator: does jobs of parity late, in any order, or not at all.
//!
//! Purpose: what the engine leaves to somebody else must be as safe as what it does itself.
//! Invariant: all chance comes from the machine's seed, and machines without one draw as before.

use crate::machine::Machine;
use core::cell::{Cell, RefCell};
use engine::Accelerator;
use io::{Buf, BufMut, Env, Memory, Priority, Reach};
use parity::offload::{Job, Offload, Operation, Ticket, Undone, ticket};
use sim::Rng;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// One machine of this many has one.
const SHARE: u64 = 4;
/// One job of this many is not done; its buffers come free later.
const UNDONE: u64 = 8;

/// What became of a machine's jobs.
#[derive(Default)]
pub struct Jobs {
    /// Jobs that were done.
    pub done: Cell<u64>,
    /// Jobs that were given up.
    pub undone: Cell<u64>,
}

/// One core's way to it.
struct Aid {
    env: Machine,
    rng: RefCell<Rng>,
    /// Jobs of this many are wanted.
    wanted: u64,
    jobs: Rc<Jobs>,
}

/// Memory is all the same to it.
struct Anywhere;

impl Reach for Anywhere {
    fn begin(&self, _: usize, _: usize) {}
    fn end(&self, memory: Memory) {
        drop(memory);
    }
}

/// The accelerator of a core, if this machine has one.
pub fn of(env: &Machine, seed: u64, jobs: &Rc<Jobs>) -> Option<Accelerator> {
    let mut rng = Rng::new(seed ^ 0x6772_6170_6869_6373);
    if rng.below(SHARE) > 0 {
        return None;
    }
    let wanted = 1 + rng.below(3);
    for _ in 0..env.core().0 {
        rng = rng.fork();
    }
    let aid = Aid { env: env.clone(), rng: RefCell::new(rng), wanted, jobs: jobs.clone() };
    Some(Accelerator { jobs: Rc::new(aid), reach: Arc::new(Anywhere) })
}

impl Offload<Buf, BufMut> for Aid {
    fn wants(&self, _: &Operation, _: usize, _: bool) -> bool {
        self.rng.borrow_mut().below(self.wanted) == 0
    }

    fn submit(&self, mut job: Job<Buf, BufMut>) -> Ticket<BufMut> {
        let (answerer, waits) = ticket();
        let mut rng = self.rng.borrow_mut();
        let (undone, kept) = (rng.below(UNDONE) == 0, rng.below(UNDONE) == 0);
        let most = [1_000, 100_000, 5_000_000][rng.index(3)];
        let (first, then) = (Nanos(rng.below(most)), Nanos(rng.below(50_000_000)));
        let (env, jobs) = (self.env.clone(), self.jobs.clone());
        self.env.spawn(Priority::Last, async move {
            env.sleep(first).await;
            if undone {
                jobs.undone.set(jobs.undone.get() + 1);
                answerer.answer(Err(Undone));
                env.sleep(then).await;
                // It is late and does something, to buffers that nobody else has.
                job.outputs.iter_mut().for_each(|output| output.fill(0xa5));
                return;
            }
            let answer = job.compute();
            jobs.done.set(jobs.done.get() + 1);
            let Job { inputs, outputs, .. } = job;
            // They should be gone before the answer; nothing may hang on it.
            let kept = kept.then(|| inputs.clone());
            drop(inputs);
            answerer.answer(Ok((answer, outputs)));
            if kept.is_some() {
                env.sleep(then).await;
            }
        });
        waits
    }
}
