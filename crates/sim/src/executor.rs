//! Tasks of the virtual cores and the random choice among those that are ready.
//!
//! A task is *waiting*, *queued* (woken, in the ready list of its core and priority), *running*
//! (its future is taken out of the table) or *finished*. Waking moves waiting to queued; being
//! picked moves queued to running; the poll's outcome moves running to waiting or finished.
//!
//! Invariants
//! - A task is in the ready list at most once; a finished task is never polled again.
//! - A `Last` task is picked only while its core has no ready `First` task.
//! - No task of a core that stands still is picked.

use crate::lock;
use crate::rng::Rng;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use io::Priority;
use std::panic::Location;
use std::sync::{Arc, Mutex};
use std::task::Wake;
use units::CoreId;

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// What a waker knows of its task.
pub(crate) struct Handle {
    ready: Arc<Mutex<Ready>>,
    slot: usize,
    pub(crate) serial: u64,
    pub(crate) core: CoreId,
    priority: Priority,
    /// In the ready list, or finished: in both cases waking does nothing.
    queued: AtomicBool,
}

impl Wake for Handle {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let ready = self.ready.clone();
            lock(&ready).push(self);
        }
    }
}

/// The ready tasks of each core: `First` ones, `Last` ones.
struct Ready {
    cores: Vec<[Vec<Arc<Handle>>; 2]>,
    halted: Vec<bool>,
}

impl Ready {
    fn push(&mut self, handle: Arc<Handle>) {
        let kind = usize::from(handle.priority == Priority::Last);
        self.cores[handle.core.index()][kind].push(handle);
    }

    fn eligible(core: &[Vec<Arc<Handle>>; 2]) -> usize {
        usize::from(core[0].is_empty())
    }

    fn pick(&mut self, rng: &mut Rng) -> Option<Arc<Handle>> {
        let running = |at: usize| !self.halted[at];
        let all = self.cores.iter().enumerate().filter(|(at, _)| running(*at));
        let total: usize = all.map(|(_, core)| core[Self::eligible(core)].len()).sum();
        if total == 0 {
            return None;
        }
        let mut at = rng.index(total);
        let running = self.halted.iter().map(|halted| !halted);
        for (core, _) in self.cores.iter_mut().zip(running).filter(|(_, running)| *running) {
            let list = &mut core[Self::eligible(core)];
            if at < list.len() {
                return Some(list.swap_remove(at));
            }
            at -= list.len();
        }
        None
    }
}

struct Task {
    /// `None` while it runs.
    work: Option<Work>,
    handle: Arc<Handle>,
    name: &'static str,
    spawned_at: &'static Location<'static>,
    polls: u64,
}

/// All tasks of a world.
pub(crate) struct Executor {
    ready: Arc<Mutex<Ready>>,
    tasks: RefCell<Vec<Option<Task>>>,
    free: RefCell<Vec<usize>>,
    serial: RefCell<u64>,
}

impl Executor {
    pub(crate) fn new(cores: u16) -> Self {
        let ready = Ready {
            cores: (0..cores).map(|_| [Vec::new(), Vec::new()]).collect(),
            halted: vec![false; usize::from(cores)],
        };
        Self {
            ready: Arc::new(Mutex::new(ready)),
            tasks: RefCell::default(),
            free: RefCell::default(),
            serial: RefCell::default(),
        }
    }

    /// Adds a task, ready to run.
    pub(crate) fn spawn<F: Future<Output = ()> + 'static>(
        &self,
        core: CoreId,
        priority: Priority,
        spawned_at: &'static Location<'static>,
        work: F,
    ) {
        let mut tasks = self.tasks.borrow_mut();
        let slot = self.free.borrow_mut().pop().unwrap_or_else(|| {
            tasks.push(None);
            tasks.len() - 1
        });
        let serial = self.serial.replace_with(|n| *n + 1);
        let queued = AtomicBool::new(false);
        let ready = self.ready.clone();
        let handle = Arc::new(Handle { ready, slot, serial, core, priority, queued });
        let name = core::any::type_name::<F>();
        let work = Some(Box::pin(work) as Work);
        tasks[slot] = Some(Task { work, handle: handle.clone(), name, spawned_at, polls: 0 });
        handle.wake();
    }

    /// A core stands still from now on, or goes on.
    pub(crate) fn halt(&self, core: CoreId, is_halted: bool) {
        lock(&self.ready).halted[core.index()] = is_halted;
    }

    /// Takes a random ready task out of the ready list.
    pub(crate) fn pick(&self, rng: &mut Rng) -> Option<Arc<Handle>> {
        lock(&self.ready).pick(rng)
    }

    /// True if any task is ready.
    pub(crate) fn any_ready(&self) -> bool {
        lock(&self.ready).cores.iter().flatten().any(|list| !list.is_empty())
    }

    /// Polls the task once.
    pub(crate) fn poll(&self, handle: &Arc<Handle>) {
        let work = {
            let mut tasks = self.tasks.borrow_mut();
            let task = tasks[handle.slot].as_mut();
            task.filter(|t| Arc::ptr_eq(&t.handle, handle)).and_then(|t| {
                t.polls += 1;
                t.work.take()
            })
        };
        // A task that woke itself in its last poll is still in the list: nothing to do.
        let Some(mut work) = work else { return };
        handle.queued.store(false, Ordering::Relaxed);
        let waker = Waker::from(handle.clone());
        let outcome = work.as_mut().poll(&mut Context::from_waker(&waker));
        if outcome == Poll::Pending
            && let Some(task) = &mut self.tasks.borrow_mut()[handle.slot]
        {
            task.work = Some(work);
            return;
        }
        handle.queued.store(true, Ordering::Relaxed);
        drop(work);
        let task = self.tasks.borrow_mut()[handle.slot].take();
        self.free.borrow_mut().push(handle.slot);
        drop(task);
    }

    /// Describes the tasks that are not finished.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let tasks = self.tasks.borrow();
        let describe = |task: &Task| {
            let Handle { serial, core, .. } = &*task.handle;
            let Task { name, spawned_at, polls, .. } = task;
            format!("task {serial} on core {core}, polled {polls} times: {name} ({spawned_at})")
        };
        tasks.iter().flatten().map(describe).collect()
    }

    /// Drops all tasks without running them.
    pub(crate) fn clear(&self) {
        let tasks = self.tasks.take();
        self.free.take();
        drop(tasks);
        for list in lock(&self.ready).cores.iter_mut().flatten() {
            list.clear();
        }
    }
}
