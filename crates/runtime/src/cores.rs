//! Starting cores, stopping them, and talking to them from other threads.
//!
//! Life of a core: starting (its reactor is made, `main` called) → running (turns) → stopping
//! (tasks dropped, requests in flight awaited for a bounded time) → gone (thread joined), or left
//! to the kernel, which keeps a thread for as long as a drive keeps a request of it. Nobody waits
//! for that: what the core had is closed, but for what such requests need.
//!
//! A core whose ring can't be made uses the blocking pool, whatever the others have: rings count
//! as locked memory, of which there may be enough for some cores only.

use crate::busy::{Busy, CoreCounts};
use crate::config::Config;
use crate::doorbell::Doorbell;
use crate::env::{Bind, CoreEnv};
use crate::lookout::Lookout;
use crate::reactor::{BlockingPool, DRAIN, Reactor};
use crate::say::say;
use crate::sys;
use crate::task::Executor;
use core::cell::Cell;
use core::time::Duration;
use io::{Env, Priority};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Once};
use std::thread::JoinHandle;
use std::time::Instant;
use units::{CoreId, Nanos};

/// How long all cores may take to stop: what they wait for requests, and what a busy machine needs.
const STOP: Duration = DRAIN.saturating_add(Duration::from_secs(5));

/// A function to run on a core; see [`Handle::run_on`].
pub type Call<M, S> = Box<dyn FnOnce(&CoreEnv<M, S>) + Send>;

/// One core's boxes.
pub(crate) struct Post<M, S> {
    pub(crate) doorbell: Arc<Doorbell>,
    pub(crate) mail: Mutex<VecDeque<M>>,
    calls: Mutex<VecDeque<Call<M, S>>>,
    /// The core's alone.
    pub(crate) busy: Busy,
}

impl<M, S> Post<M, S> {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            doorbell: Arc::new(Doorbell::new()?),
            mail: Mutex::new(VecDeque::with_capacity(64)),
            calls: Mutex::default(),
            busy: Busy::default(),
        })
    }

    pub(crate) fn take_call(&self) -> Option<Call<M, S>> {
        self.calls.lock().unwrap_or_else(|e| e.into_inner()).pop_front()
    }
}

/// What all cores of a runtime share.
pub(crate) struct Shared<M, S> {
    posts: Box<[Post<M, S>]>,
    stop: AtomicBool,
    config: Config,
    start: Instant,
    /// Whether no core may have a ring.
    blocking: bool,
    /// Whether one that might has none.
    lacks_rings: AtomicBool,
    /// From when the first core needs it.
    pool: Mutex<Option<Arc<BlockingPool>>>,
}

impl<M: Send + 'static, S: Bind> Shared<M, S> {
    fn new(config: Config) -> std::io::Result<Arc<Self>> {
        assert!(config.cores > 0, "a runtime has at least one core");
        let blocking = use_blocking(&config);
        let posts = (0..config.cores).map(|_| Post::new()).collect::<Result<_, _>>()?;
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        let (lacks_rings, pool) = (AtomicBool::new(blocking), Mutex::default());
        let shared = Self { posts, stop, config, start, blocking, lacks_rings, pool };
        if blocking {
            shared.pool()?;
        }
        Ok(Arc::new(shared))
    }

    fn pool(&self) -> std::io::Result<Arc<BlockingPool>> {
        let mut pool = self.pool.lock().unwrap_or_else(|e| e.into_inner());
        if pool.is_none() {
            *pool = Some(Arc::new(BlockingPool::new(self.config.blocking_threads)?));
        }
        Ok(pool.clone().expect("made above"))
    }

    pub(crate) fn post_of(&self, core: CoreId) -> &Post<M, S> {
        &self.posts[core.index()]
    }

    pub(crate) fn cores(&self) -> u16 {
        self.config.cores
    }

    pub(crate) fn post(&self, to: CoreId, mail: M) {
        let post = self.post_of(to);
        post.mail.lock().unwrap_or_else(|e| e.into_inner()).push_back(mail);
        post.doorbell.ring();
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        for post in &self.posts {
            post.doorbell.ring();
        }
    }

    /// Makes the calling thread core `id`.
    fn enter(self: &Arc<Self>, id: CoreId) -> std::io::Result<CoreEnv<M, S>> {
        let doorbell = self.post_of(id).doorbell.clone();
        let with = |pool| Reactor::new(&self.config, pool, doorbell.clone(), self.start);
        let reactor = match self.blocking {
            true => with(Some(self.pool()?))?,
            false => with(None).or_else(|error| {
                warn_blocking(&error);
                self.lacks_rings.store(true, Ordering::Relaxed);
                with(Some(self.pool()?))
            })?,
        };
        Ok(CoreEnv::new(id, self.clone(), reactor, Executor::new(doorbell)))
    }
}

/// Decides between io_uring and its replacement.
fn use_blocking(config: &Config) -> bool {
    config.wants_blocking() || Reactor::probe(config).inspect_err(warn_blocking).is_err()
}

/// Says once that at least one core has to do without io_uring.
fn warn_blocking(error: &std::io::Error) {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        say(format_args!(
            "palisade: warning: io_uring is not available ({error}): blocking threads are used, \
             which are slower\n  allow io_uring: check seccomp, kernel.io_uring_disabled and \
             LimitMEMLOCK"
        ));
    });
}

/// Runs turns until `done` says so.
fn run<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>, done: impl Fn() -> bool) {
    let reactor = env.reactor();
    let mut lookout = reactor.lookout();
    let busy = &env.shared().post_of(env.core()).busy;
    loop {
        for priority in [Priority::First, Priority::Last] {
            reactor.begin_turn();
            env.executor().run(priority, || reactor.begin_poll());
        }
        // The doorbell is answered before the turn: what is reported after the turn has looked
        // rings again, so that the core does not sleep over it.
        env.collect();
        reactor.turn();
        busy.turn();
        if done() {
            return;
        }
        if !env.executor().has_ready() {
            wait(env, &mut lookout);
        }
    }
}

/// Waits for something: looks around if that pays, then sleeps.
fn wait<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>, lookout: &mut Lookout) {
    let start = env.now();
    let busy = &env.shared().post_of(env.core()).busy;
    let is_found = look_around(env, lookout.look().max(env.reactor().exact_look()));
    // As of the last look.
    let looked = env.now();
    if is_found {
        env.reactor().refresh_now();
        busy.looked(env.now().since(start));
    } else {
        busy.looked(looked.since(start));
        busy.sleeps(looked);
        sleep(env);
        env.reactor().refresh_now();
        busy.woke(env.now());
    }
    lookout.ended(env.now().since(start));
}

/// Looks around for at most `span`; true if something came.
fn look_around<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>, span: Nanos) -> bool {
    let reactor = env.reactor();
    let doorbell = &env.shared().post_of(env.core()).doorbell;
    if span == Nanos(0) {
        return false;
    }
    let end = env.now().after(span);
    loop {
        if reactor.has_news() || doorbell.pending() {
            return true;
        }
        if env.now() >= end {
            return false;
        }
        core::hint::spin_loop();
        reactor.refresh_now();
    }
}

fn sleep<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>) {
    let doorbell = &env.shared().post_of(env.core()).doorbell;
    if doorbell.begin_sleep() {
        env.reactor().wait(env.reactor().until_wake());
        doorbell.end_sleep();
    }
}

/// Drops the core's tasks and waits a bounded time for what the kernel still does for it; whether
/// that is over.
fn leave<M: Send + 'static, S: Bind>(env: &CoreEnv<M, S>) -> bool {
    env.executor().clear();
    env.reactor().drain()
}

/// Talks to the cores of a runtime from any thread. Clones talk to the same runtime.
pub struct Handle<M, S> {
    shared: Arc<Shared<M, S>>,
}

impl<M, S> Clone for Handle<M, S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<M: Send + 'static, S: Bind> Handle<M, S> {
    /// How many cores there are.
    pub fn cores(&self) -> u16 {
        self.shared.cores()
    }

    /// Whether all cores have io_uring, as far as they have started.
    pub fn has_rings(&self) -> bool {
        !self.shared.lacks_rings.load(Ordering::Relaxed)
    }

    /// How a core has spent its time until now; `None` if there is no such core.
    pub fn counts(&self, core: CoreId) -> Option<CoreCounts> {
        let post = self.shared.posts.get(core.index())?;
        Some(post.busy.read(Nanos(self.shared.start.elapsed().as_nanos() as u64)))
    }

    /// Puts mail into a core's box. Mail to a stopped runtime is dropped with it.
    pub fn post(&self, core: CoreId, mail: M) {
        self.shared.post(core, mail);
    }

    /// Runs a function on a core, between two batches of tasks. Dropped unrun if the runtime
    /// stops first.
    pub fn run_on(&self, core: CoreId, call: Call<M, S>) {
        let post = self.shared.post_of(core);
        let mut calls = post.calls.lock().unwrap_or_else(|e| e.into_inner());
        // Looked at under the lock: the core drops its calls once this is set.
        if !self.shared.stop.load(Ordering::SeqCst) {
            calls.push_back(call);
        }
        drop(calls);
        post.doorbell.ring();
    }
}

/// Running cores. Dropping it stops them.
pub struct Runtime<M: Send + 'static, S: Bind> {
    shared: Arc<Shared<M, S>>,
    threads: Vec<Thread>,
}

/// A core's thread.
struct Thread {
    handle: JoinHandle<()>,
    /// Whether nothing is in flight any more; said when the core has closed what it had.
    left: Receiver<bool>,
}

impl Thread {
    /// Waits until the core has left. `None`: the kernel keeps its thread, or may.
    fn join(self, end: Instant) -> Option<std::thread::Result<()>> {
        match self.left.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(false) | Err(RecvTimeoutError::Timeout) => None,
            Ok(true) | Err(RecvTimeoutError::Disconnected) => Some(self.handle.join()),
        }
    }
}

impl<M: Send + 'static, S: Bind> Runtime<M, S> {
    /// Starts `cores` threads and calls `main` once on each to spawn its tasks.
    ///
    /// # Panics
    /// If threads or their descriptors cannot be made.
    pub fn start(
        cores: u16,
        pin: bool,
        main: impl Fn(CoreEnv<M, S>) + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(Config { cores, pin, ..Config::default() }, main)
            .unwrap_or_else(|error| panic!("the runtime can't start: {error}"))
    }

    /// As [`Runtime::start`], with all choices and with errors returned.
    pub fn start_with(
        config: Config,
        main: impl Fn(CoreEnv<M, S>) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let shared = Shared::new(config)?;
        let main = Arc::new(main);
        let mut runtime = Self { shared, threads: Vec::new() };
        for core in 0..runtime.shared.cores() {
            let (shared, main) = (runtime.shared.clone(), main.clone());
            let builder = std::thread::Builder::new().name(format!("palisade-{core}"));
            let (tell, left) = mpsc::channel();
            let handle = builder.spawn(move || {
                let is_over = thread_main(&shared, CoreId(core), &*main);
                // Held by a thread that the kernel keeps, it would keep what it owns.
                drop((shared, main));
                // Nobody waits any more where it took too long.
                let _ = tell.send(is_over);
            })?;
            runtime.threads.push(Thread { handle, left });
        }
        Ok(runtime)
    }

    /// Something to talk to the cores with.
    pub fn handle(&self) -> Handle<M, S> {
        Handle { shared: self.shared.clone() }
    }

    /// Stops all cores; their tasks are dropped. Joins their threads but those that the kernel
    /// keeps, since requests of theirs to a drive have not ended within a bounded time: false if
    /// there are any. Nothing else keeps open what the tasks had.
    ///
    /// # Panics
    /// If a core panicked.
    pub fn stop(mut self) -> bool {
        let mut is_over = true;
        for outcome in self.end() {
            match outcome {
                Some(Ok(())) => {}
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => is_over = false,
            }
        }
        is_over
    }

    fn end(&mut self) -> Vec<Option<std::thread::Result<()>>> {
        self.shared.stop();
        let end = Instant::now() + STOP;
        self.threads.drain(..).map(|thread| thread.join(end)).collect()
    }
}

impl<M: Send + 'static, S: Bind> Drop for Runtime<M, S> {
    fn drop(&mut self) {
        // `stop` is the way to learn of a panic.
        self.end();
    }
}

/// Is the core until it is told to stop; whether nothing is in flight then.
fn thread_main<M: Send + 'static, S: Bind>(
    shared: &Arc<Shared<M, S>>,
    id: CoreId,
    main: &dyn Fn(CoreEnv<M, S>),
) -> bool {
    let env = match shared.enter(id) {
        Ok(env) => env,
        Err(error) => panic!("core {id} can't start: {error}"),
    };
    // Not before: threads that it may have had to start would be pinned, too.
    if shared.config.pin
        && let Err(error) = sys::pin_to(id.index())
    {
        say(format_args!("palisade: warning: data core {id} can't be pinned to a CPU: {error}"));
    }
    main(env.clone());
    run(&env, || shared.stop.load(Ordering::SeqCst));
    // Who waits for what comes of them hears that nothing does.
    while shared.post_of(id).take_call().is_some() {}
    leave(&env)
}

/// Runs one core on the calling thread until the future that `f` makes is done. For tests,
/// benches and tools.
///
/// # Panics
/// If the core cannot start, or one runs on this thread already.
pub fn run_single<M: Send + 'static, S: Bind, T: 'static>(
    f: impl AsyncFnOnce(CoreEnv<M, S>) -> T + 'static,
) -> T {
    run_single_with(Config::default(), f)
}

/// As [`run_single`], with choices; `cores` counts as 1.
///
/// # Panics
/// As [`run_single`].
pub fn run_single_with<M: Send + 'static, S: Bind, T: 'static>(
    config: Config,
    f: impl AsyncFnOnce(CoreEnv<M, S>) -> T + 'static,
) -> T {
    let shared = Shared::new(Config { cores: 1, ..config });
    let env = match shared.and_then(|shared| shared.enter(CoreId(0))) {
        Ok(env) => env,
        Err(error) => panic!("the core can't start: {error}"),
    };
    let (result, main_env) = (Rc::new(Cell::new(None)), env.clone());
    let (slot, finished) = (result.clone(), Rc::new(Cell::new(false)));
    let flag = finished.clone();
    env.spawn(Priority::First, async move {
        slot.set(Some(f(main_env).await));
        flag.set(true);
    });
    run(&env, || finished.get());
    leave(&env);
    match result.take() {
        Some(value) => value,
        None => unreachable!("the loop ends when the result is there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoDrive;

    /// Whoever waits for its end hears of it, though somebody still has the handle.
    #[test]
    fn a_call_to_a_runtime_that_has_stopped_is_dropped() {
        let runtime = Runtime::<(), NoDrive>::start(1, false, |_| ());
        let handle = runtime.handle();
        let (sender, answer) = std::sync::mpsc::channel::<()>();
        // Stopping, it may or may not come to the first.
        for is_over in [false, true] {
            let sender = sender.clone();
            handle.run_on(CoreId(0), Box::new(move |_| drop(sender)));
            if is_over {
                break;
            }
            handle.shared.stop();
        }
        drop(sender);
        assert!(answer.recv().is_err(), "nothing is left that could send");
        runtime.stop();
    }

    /// Also where no CPU is left over, and on a thread that is kept on one.
    #[test]
    fn a_core_looks_around_whatever_the_number_of_cpus() {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as u16;
        let wanted = Nanos(Config::default().spin.as_nanos() as u64);
        let config = Config { cores, pin: true, ..Config::default() };
        let runtime = Runtime::<(), NoDrive>::start_with(config, |_| ()).expect("starts");
        let (sender, receiver) = std::sync::mpsc::channel();
        for core in 0..cores {
            let sender = sender.clone();
            let call = Box::new(move |env: &CoreEnv<(), NoDrive>| {
                let _ = sender.send(env.reactor().lookout().look());
            });
            runtime.handle().run_on(CoreId(core), call);
        }
        for _ in 0..cores {
            assert_eq!(receiver.recv().expect("each core answers"), wanted);
        }
        runtime.stop();
    }

    /// A sleep would end late. It may look as long as the timer takes, and sleeps for longer ones.
    #[test]
    fn a_core_does_not_sleep_before_an_exact_timer_that_is_soon() {
        let asleep = |span: Nanos, is_exact: bool| {
            run_single::<(), NoDrive, _>(async move |env| {
                let counts = |env: &CoreEnv<(), NoDrive>| {
                    let busy = &env.shared().post_of(env.core()).busy;
                    busy.read(env.reactor().look_at_clock()).asleep
                };
                let before = counts(&env);
                for _ in 0..20 {
                    let until = env.reactor().look_at_clock().after(span);
                    if is_exact {
                        env.reactor().sleep_until_exactly(until).await;
                    } else {
                        env.sleep(span).await;
                    }
                    assert!(env.now() >= until);
                }
                counts(&env).since(before)
            })
        };
        assert_eq!(asleep(Nanos::from_micros(150), true), Nanos(0));
        assert!(asleep(Nanos::from_micros(150), false) > Nanos(0));
        assert!(asleep(Nanos::from_millis(2), true) > Nanos(0), "it does not look for long");
    }
}
