//! A deterministic executor: tasks run in the order in which they became ready; time passes only
//! when nothing is ready.

use io::drive::{Drive, DriveError, DriveInfo};
use io::{Buf, BufMut, Env, Priority};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, Ready, pending};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use units::{CoreId, Nanos};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A test that polls more often than this hangs.
const POLLS_MAX: u64 = 50_000_000;
/// A test that waits longer than this hangs.
const TIME_MAX: u64 = 60_000_000_000;

#[derive(Default)]
pub struct Core {
    tasks: RefCell<Vec<Option<Task>>>,
    ready: Arc<Mutex<VecDeque<usize>>>,
    now: Cell<u64>,
    timers: RefCell<Vec<(u64, Waker)>>,
    polls: Cell<u64>,
}

struct Alarm {
    task: usize,
    ready: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap().push_back(self.task);
    }
}

impl Core {
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        self.ready.lock().unwrap().push_back(tasks.len());
        tasks.push(Some(Box::pin(task)));
    }

    /// Tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.borrow().iter().flatten().count()
    }

    /// Runs what is ready, without letting time pass.
    pub fn run_ready(&self) {
        loop {
            let next = self.ready.lock().unwrap().pop_front();
            let Some(at) = next else { return };
            let Some(mut task) = self.tasks.borrow_mut()[at].take() else { continue };
            self.polls.set(self.polls.get() + 1);
            assert!(self.polls.get() < POLLS_MAX, "the test does not come to rest");
            let waker = Waker::from(Arc::new(Alarm { task: at, ready: self.ready.clone() }));
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.tasks.borrow_mut()[at] = Some(task);
            }
        }
    }

    fn pass_time(&self) -> bool {
        let mut timers = self.timers.borrow_mut();
        let Some(first) = timers.iter().map(|(at, _)| *at).min() else { return false };
        assert!(first < TIME_MAX, "the test waits for ever");
        self.now.set(first);
        timers.retain(|(at, waker)| {
            if *at <= first {
                waker.wake_by_ref();
            }
            *at > first
        });
        true
    }

    /// Runs until nothing is ready and no timer is left.
    pub fn run(&self) {
        self.run_ready();
        while self.pass_time() {
            self.run_ready();
        }
    }

    /// Runs until `task` is done.
    pub fn block_on(&self, task: impl Future<Output = ()> + 'static) {
        let done = Rc::new(Cell::new(false));
        let told = done.clone();
        self.spawn(async move {
            task.await;
            told.set(true);
        });
        self.run_ready();
        while !done.get() {
            assert!(self.pass_time(), "the script waits for ever");
            self.run_ready();
        }
    }
}

#[derive(Clone)]
pub struct TestEnv(pub Rc<Core>);

pub struct Sleep {
    core: Rc<Core>,
    until: u64,
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.core.now.get() >= self.until {
            return Poll::Ready(());
        }
        self.core.timers.borrow_mut().push((self.until, cx.waker().clone()));
        Poll::Pending
    }
}

/// There are no drives.
#[derive(Clone)]
pub struct NoDrive;

impl Drive for NoDrive {
    type Read = Ready<(Result<(), DriveError>, BufMut)>;
    type Done = Ready<Result<(), DriveError>>;
    fn info(&self) -> &DriveInfo {
        unreachable!()
    }
    fn read(&self, _: u64, _: BufMut) -> Self::Read {
        unreachable!()
    }
    fn write(&self, _: u64, _: &[Buf], _: bool) -> Self::Done {
        unreachable!()
    }
    fn flush(&self) -> Self::Done {
        unreachable!()
    }
    fn write_zeroes(&self, _: u64, _: u64) -> Self::Done {
        unreachable!()
    }
    fn discard(&self, _: u64, _: u64) -> Self::Done {
        unreachable!()
    }
}

impl Env for TestEnv {
    type Drive = NoDrive;
    type Shared = ();
    type Mail = ();
    type Sleep = Sleep;
    fn core(&self) -> CoreId {
        CoreId(0)
    }
    fn cores(&self) -> u16 {
        1
    }
    fn now(&self) -> Nanos {
        Nanos(self.0.now.get())
    }
    fn sleep(&self, span: Nanos) -> Sleep {
        Sleep { core: self.0.clone(), until: self.0.now.get() + span.0 }
    }
    fn spawn(&self, _: Priority, task: impl Future<Output = ()> + 'static) {
        self.0.spawn(task);
    }
    fn post(&self, _: CoreId, (): ()) {}
    fn receive(&self) -> impl Future<Output = ()> {
        pending()
    }
    fn bind(&self, (): &()) -> NoDrive {
        NoDrive
    }
    fn random(&self) -> u64 {
        4
    }
    fn wall_millis(&self) -> u64 {
        0
    }
}
