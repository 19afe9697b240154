//! The desk: what cores, the device's thread and the watch have in common.
//!
//! Purpose: jobs and memory on their way to the device's thread, and the tickets of jobs that it
//! has. Tickets lie here, not with the device's thread, so that they can be answered while that
//! is in the driver.
//! Invariants: a ticket is answered by who takes it out of its entry, under the lock, and after
//! the lock is free again; an entry goes when its job has come back from the queue.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use io::{Buf, BufMut, Memory};
use parity::offload::{Answer, Answerer, Job, Ticket, Undone, ticket};

use super::{Event, Tell};
use crate::driver::DriverError;
use crate::fence::{Fence, Limits};
use crate::place::{Place, work};
use crate::queue::{Outcome, Passed};
use crate::selftest::Timed;

/// What a device did for its cores.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Figures {
    /// Jobs that it did.
    pub jobs: u64,
    /// Bytes that these read.
    pub bytes: u64,
    /// Jobs that were handed in and not done.
    pub undone: u64,
    /// Batches that ended.
    pub batches: u64,
    /// Batches of 1, 2 to 3, 4 to 7 jobs, and so on; the last one takes all that are larger.
    pub sizes: [u64; 16],
    /// Jobs that were done on the CPU too and compared.
    pub sampled: u64,
    /// Bytes of pools that the device reaches by itself.
    pub reached: u64,
    /// Bytes of pools that it can't reach by itself, though it was asked to.
    pub unshared: u64,
    /// Bytes of pools that are kept for good, as the device may reach for them yet.
    pub kept: u64,
}

/// What the device's thread is told.
pub(super) enum Letter {
    Job(u64, Job<Buf, BufMut>),
    /// Memory from an address, so many bytes.
    Begin(usize, usize),
    End(Memory),
}

/// How the device's thread finds the device.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Standing {
    /// It has something to do,
    pub(super) works: bool,
    /// and may be done with some of it then.
    pub(super) ends: Option<Duration>,
    /// It has just done something.
    pub(super) news: bool,
    /// What came now would be on its way at once.
    pub(super) room: bool,
}

/// A job that has not come back from the queue.
struct Entry {
    /// None once its ticket is answered.
    answerer: Option<Answerer<BufMut>>,
    since: Duration,
    bytes: usize,
}

/// How the device's thread ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The device reaches for nothing any more.
    Clean,
    /// It may.
    Unclean,
}

/// All that is under the lock.
struct State {
    letters: VecDeque<Letter>,
    /// By the order of coming.
    entries: BTreeMap<u64, Entry>,
    next: u64,
    /// The device's name, once it is open.
    device: Option<String>,
    fence: Option<Fence>,
    /// Until when the device's thread may be among the driver's calls, if it is.
    inside: Option<Duration>,
    /// The longest that a job took; it fades.
    slowest: Duration,
    /// Whether the device's thread, or the watch, sleeps until it is told.
    thread_sleeps: bool,
    watch_sleeps: bool,
    ending: bool,
    ended: Option<Ended>,
    figures: Figures,
}

/// See the module.
pub(super) struct Desk {
    since: Instant,
    limits: Limits,
    place: Place,
    tell: Mutex<Tell>,
    /// Whether jobs are taken: the device is open, not fenced, not late, not ending.
    open: AtomicBool,
    state: Mutex<State>,
    for_thread: Condvar,
    for_watch: Condvar,
    thread_ended: Condvar,
    opened: Condvar,
}

/// A ticket's answer, to be given without the lock.
type Told = (Answerer<BufMut>, Result<(Answer, Vec<BufMut>), Undone>);

/// How many times the longest time a job may take.
const TIMES: u32 = 20;
/// The part of the longest time that each job takes off.
const FADES: u32 = 256;
/// How long the device's thread sleeps while the device works: at least, and at most.
const NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// The same once it is fenced, and only limbo is left.
const LIMBO_NAP: Duration = Duration::from_millis(5);

impl Desk {
    pub(super) fn new(limits: Limits, tell: Tell) -> Desk {
        let state = State {
            letters: VecDeque::new(),
            entries: BTreeMap::new(),
            next: 0,
            device: None,
            fence: None,
            inside: Some(limits.start),
            slowest: Duration::ZERO,
            thread_sleeps: false,
            watch_sleeps: false,
            ending: false,
            ended: None,
            figures: Figures::default(),
        };
        Desk {
            since: Instant::now(),
            limits,
            place: Place::new(limits.latency),
            tell: Mutex::new(tell),
            open: AtomicBool::new(false),
            state: Mutex::new(state),
            for_thread: Condvar::new(),
            for_watch: Condvar::new(),
            thread_ended: Condvar::new(),
            opened: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn fence(&self) -> Option<Fence> {
        self.state().fence.clone()
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.state();
        let mut figures = state.figures;
        if state.fence.is_some() {
            // What the device's thread may never come to.
            let kept = state.letters.iter().map(|letter| match letter {
                Letter::End(memory) => memory.bytes() as u64,
                _ => 0,
            });
            figures.kept += kept.sum::<u64>();
        }
        figures
    }

    /// Before the first job: the device's name, and what its self-test measured.
    pub(super) fn begin(&self, device: &str, timed: &Timed) {
        self.place.started(timed.cpu.0, timed.cpu.1);
        timed.device.iter().for_each(|batch| self.place.passed(batch.bytes, batch.took));
        let mut state = self.state();
        state.inside = None;
        if state.fence.is_some() || state.ending {
            return;
        }
        state.device = Some(device.to_owned());
        self.open.store(true, Ordering::Relaxed);
        drop(state);
        self.opened.notify_all();
        self.say(Event::Opened(device.to_owned()));
    }

    /// Waits until the device is open, or is not going to be.
    pub(super) fn wait_until_open(&self) -> Result<(), Fence> {
        let mut state = self.state();
        while state.device.is_none() && state.fence.is_none() {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.fence.clone().map_or(Ok(()), Err)
    }

    pub(super) fn device(&self) -> Option<String> {
        self.state().device.clone()
    }

    fn say(&self, event: Event) {
        let tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner);
        tell(event);
    }

    /// A core's job, at the time `at`.
    pub(super) fn hand_in(&self, job: Job<Buf, BufMut>, at: Instant) -> Ticket<BufMut> {
        let (answerer, ticket) = ticket();
        let bytes = work(&job.operation, job.strip_len());
        let since = at.saturating_duration_since(self.since);
        let mut state = self.state();
        if state.fence.is_some() || state.ending {
            state.figures.undone += 1;
            // Dropped, the answerer says that nothing was done.
            return ticket;
        }
        let number = state.next;
        state.next += 1;
        self.place.begins(bytes);
        state.entries.insert(number, Entry { answerer: Some(answerer), since, bytes });
        self.post(state, Letter::Job(number, job));
        ticket
    }

    fn post(&self, mut state: MutexGuard<'_, State>, letter: Letter) {
        state.letters.push_back(letter);
        let thread = std::mem::take(&mut state.thread_sleeps);
        let watch = !state.entries.is_empty() && std::mem::take(&mut state.watch_sleeps);
        drop(state);
        if thread {
            self.for_thread.notify_one();
        }
        if watch {
            self.for_watch.notify_one();
        }
    }

    /// Uses the device no more: all tickets are answered, and what the device's thread has not
    /// seen yet it never will.
    pub(super) fn put_fence(&self, fence: Fence) {
        let mut state = self.state();
        if state.fence.is_some() || state.ending {
            return;
        }
        state.fence = Some(fence.clone());
        self.open.store(false, Ordering::Relaxed);
        self.give_up_all(state);
        self.opened.notify_all();
        self.say(Event::Fenced(fence));
    }

    /// The service ends.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.ending = true;
        self.open.store(false, Ordering::Relaxed);
        self.give_up_all(state);
        self.for_watch.notify_one();
        self.for_thread.notify_one();
    }

    fn give_up_all(&self, mut state: MutexGuard<'_, State>) {
        let answerers: Vec<_> =
            state.entries.values_mut().filter_map(|entry| entry.answerer.take()).collect();
        state.figures.undone += answerers.len() as u64;
        let (jobs, others): (VecDeque<_>, _) = std::mem::take(&mut state.letters)
            .into_iter()
            .partition(|letter| matches!(letter, Letter::Job(..)));
        state.letters = others;
        for letter in &jobs {
            if let Letter::Job(number, _) = letter {
                self.close(&mut state, *number);
            }
        }
        drop(state);
        // A buffer that goes back to its pool may be the last one, and the pool's memory then
        // comes here. Buffers go first, so that who is answered is their only owner.
        drop(jobs);
        drop(answerers);
    }

    /// Takes out a job's entry: its answerer, if its ticket waits yet, and since when.
    fn close(
        &self,
        state: &mut State,
        number: u64,
    ) -> Option<(Option<Answerer<BufMut>>, Duration)> {
        let entry = state.entries.remove(&number)?;
        self.place.ends(entry.bytes);
        Some((entry.answerer, entry.since))
    }

    /// How long a job may take.
    fn bound(&self, state: &State) -> Duration {
        (state.slowest * TIMES)
            .clamp(self.limits.late.min(self.limits.patience), self.limits.patience)
    }
}

/// The device's thread's part.
impl Desk {
    /// Letters, or none if it is time to look at the device again; `None` at the end.
    pub(super) fn letters(&self, device: Standing) -> Option<VecDeque<Letter>> {
        let mut state = self.state();
        if state.letters.is_empty() && !state.ending && !device.news {
            if device.works {
                // Half of what is left, so that a forecast that is too long costs little.
                let left = device.ends.map_or(NAP, |at| at.saturating_sub(self.now()) / 2);
                let nap = left.clamp(NAP, LONGEST_NAP);
                let nap = if state.fence.is_some() { LIMBO_NAP } else { nap };
                state.thread_sleeps = device.room;
                let woken = self.for_thread.wait_timeout(state, nap);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                state.thread_sleeps = false;
            } else {
                while state.letters.is_empty() && !state.ending {
                    state.thread_sleeps = true;
                    state = self.for_thread.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        (!state.ending).then(|| self.take_letters(&mut state))
    }

    /// What came before the device takes jobs; `None` if there is nothing more.
    pub(super) fn early_letters(&self) -> Option<VecDeque<Letter>> {
        let mut state = self.state();
        let some = !state.letters.is_empty() && !state.ending;
        some.then(|| self.take_letters(&mut state))
    }

    /// All jobs, but one piece of memory at a time: large ones take long to be shared.
    fn take_letters(&self, state: &mut State) -> VecDeque<Letter> {
        let mut memory = false;
        let (now, later) = std::mem::take(&mut state.letters).into_iter().partition(|letter| {
            matches!(letter, Letter::Job(..)) || !std::mem::replace(&mut memory, true)
        });
        state.letters = later;
        let patience = if memory { self.limits.start } else { self.limits.patience };
        state.inside = Some(self.now() + patience);
        now
    }

    /// The device can't reach `bytes` of a pool: they are copied.
    pub(super) fn not_shared(&self, bytes: usize, error: DriverError) {
        let mut state = self.state();
        state.figures.unshared += bytes as u64;
        let first = state.figures.unshared == bytes as u64;
        drop(state);
        if first {
            self.say(Event::NotShared(error));
        }
    }

    /// The driver's calls came back: what is done now, and with how much memory of others.
    pub(super) fn deliver(
        &self,
        finished: Vec<(u64, Outcome<Buf, BufMut>)>,
        batches: &[Passed],
        (reached, kept): (usize, usize),
    ) {
        batches.iter().for_each(|batch| self.place.passed(batch.bytes, batch.took));
        let now = self.now();
        let mut told: Vec<Told> = Vec::with_capacity(finished.len());
        let mut unwanted = Vec::new();
        let mut state = self.state();
        state.inside = None;
        state.figures.reached = reached as u64;
        state.figures.kept += kept as u64;
        for batch in batches {
            let size = (batch.jobs.max(1).ilog2() as usize).min(state.figures.sizes.len() - 1);
            state.figures.sizes[size] += 1;
            state.figures.batches += 1;
            state.figures.sampled += batch.sampled;
        }
        for (number, outcome) in finished {
            let bytes = state.entries.get(&number).map_or(0, |entry| entry.bytes as u64);
            let Some((answerer, since)) = self.close(&mut state, number) else {
                unwanted.push(outcome);
                continue;
            };
            if matches!(outcome, Outcome::Done(..)) {
                // Of jobs that were given up too: the device is that slow now.
                let faded = state.slowest - state.slowest / FADES;
                state.slowest = faded.max(now.saturating_sub(since));
            }
            match (answerer, outcome) {
                (Some(answerer), Outcome::Done(answer, outputs)) => {
                    state.figures.jobs += 1;
                    state.figures.bytes += bytes;
                    told.push((answerer, Ok((answer, outputs))));
                }
                (Some(answerer), outcome) => {
                    state.figures.undone += 1;
                    told.push((answerer, Err(Undone)));
                    unwanted.push(outcome);
                }
                (None, outcome) => unwanted.push(outcome),
            }
        }
        let late = self.is_late(&state, now);
        self.open.store(!late && state.fence.is_none() && !state.ending, Ordering::Relaxed);
        drop(state);
        // Not under the lock: their pools' memory may come here.
        drop(unwanted);
        told.into_iter().for_each(|(answerer, done)| answerer.answer(done));
    }

    /// The device's thread is over.
    pub(super) fn thread_ends(&self, ended: Ended) {
        let mut state = self.state();
        state.ended = Some(ended);
        state.inside = None;
        let letters = std::mem::take(&mut state.letters);
        drop(state);
        for letter in letters {
            if let Letter::End(memory) = letter {
                self.release(memory, ended);
            }
        }
        self.thread_ended.notify_all();
    }

    /// Waits until the device's thread is over, as long as a batch may take; says whether it is.
    pub(super) fn wait_for_thread(&self) -> bool {
        let until = self.now() + 2 * self.limits.patience;
        let mut state = self.state();
        while state.ended.is_none() {
            let now = self.now();
            let left = until.saturating_sub(now);
            let stuck = |until: Duration| until <= now;
            if left.is_zero() || state.inside.is_some_and(stuck) {
                return false;
            }
            let woken = self.thread_ended.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Memory that comes back after the device's thread has ended.
    fn release(&self, memory: Memory, ended: Ended) {
        match ended {
            Ended::Clean => drop(memory),
            Ended::Unclean => {
                self.state().figures.kept += memory.bytes() as u64;
                std::mem::forget(memory);
            }
        }
    }
}

/// What the watch sees.
pub(super) enum Seen {
    /// A call does not come back.
    Stuck,
    /// The service ends.
    Ending,
}

/// The watch's part.
impl Desk {
    fn is_late(&self, state: &State, now: Duration) -> bool {
        let bound = self.bound(state);
        let first = state.entries.first_key_value();
        first.is_some_and(|(_, entry)| entry.since + bound <= now)
    }

    /// Gives up jobs that are late, until there is something that it can't see to.
    pub(super) fn watch(&self) -> Seen {
        let mut state = self.state();
        // The call that was seen to be late, and since when.
        let mut late: Option<(Duration, Duration)> = None;
        loop {
            if state.ending {
                return Seen::Ending;
            }
            let now = self.now();
            let stuck = state.inside.filter(|until| *until <= now && state.fence.is_none());
            late = stuck.map(|of| late.filter(|(known, _)| *known == of).unwrap_or((of, now)));
            let grace = late.map(|(_, since)| since + self.limits.grace());
            if grace.is_some_and(|until| until <= now) {
                return Seen::Stuck;
            }
            let bound = self.bound(&state);
            if self.is_late(&state, now) {
                self.open.store(false, Ordering::Relaxed);
                let late = state.entries.values_mut().filter(|entry| entry.since + bound <= now);
                let answerers: Vec<_> = late.filter_map(|entry| entry.answerer.take()).collect();
                state.figures.undone += answerers.len() as u64;
                drop(state);
                drop(answerers);
                state = self.state();
            }
            // With jobs about, a call may begin at any time.
            let busy = (!state.entries.is_empty()).then(|| now + self.limits.patience);
            let open = state.entries.values().find(|entry| entry.answerer.is_some());
            let open = open.map(|entry| entry.since + bound);
            let call = grace.or(state.inside);
            let next = call.into_iter().chain(busy).chain(open).min();
            // The first job's bound may come sooner than what is waited for.
            state.watch_sleeps = state.entries.is_empty();
            state = match next.filter(|_| state.fence.is_none()) {
                Some(until) => {
                    // Not sooner than it can make a difference.
                    let left = until.saturating_sub(self.now()).max(Duration::from_millis(1));
                    let woken = self.for_watch.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.for_watch.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl io::Reach for Desk {
    fn begin(&self, address: usize, bytes: usize) {
        let state = self.state();
        if state.fence.is_none() && !state.ending {
            self.post(state, Letter::Begin(address, bytes));
        }
    }

    fn end(&self, memory: Memory) {
        let state = self.state();
        match state.ended {
            None => self.post(state, Letter::End(memory)),
            Some(ended) => {
                drop(state);
                self.release(memory, ended);
            }
        }
    }
}
