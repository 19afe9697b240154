//! The queue: jobs in, batches to a device, results back, and everything back when it fails.
//!
//! Purpose: keep a device busy with what is waiting, and never let it cost a stripe. Nothing here
//! waits or knows a clock: whoever owns the queue polls it and says what time it is.
//!
//! Invariants: a job is finished exactly once, done or given back; a job that is given back with
//! its buffers has its outputs as they were; buffers that a device may still reach for are never
//! given back, nor freed; nothing computed by a device is believed after the first thing that was
//! wrong.
//!
//! A job:
//!
//! | state | leaves it by |
//! |---|---|
//! | waiting | a lane that is idle and takes all waiting jobs of its kind, to *running* |
//! | | no lane having room for it, or the queue being fenced, to *finished*, given back |
//! | running | its lane's mark passed and what was sampled agreed, to *finished*, done |
//! | | the queue being fenced, to *finished*, given back; its buffers to *limbo* |
//! | limbo | its lane's mark passed: the buffers are freed; never, if it does not pass |
//!
//! Buffers go to limbo only where the device reaches for the job's own memory. Otherwise it has
//! nothing but the lanes' memory, and the job comes back with them.
//!
//! Jobs of one kind start in the order in which they came; those under way at once end in any
//! order. Results of one stripe are in order because who works on it waits for each before it asks
//! for the next.
//!
//! A lane is *idle* or *running* one batch; a mark that passed makes it idle. The queue is *open*
//! until the device fails a call, is late by more than the bound, or computes something wrong;
//! then it is *fenced* for good, and all its jobs finish.

use std::collections::VecDeque;
use std::time::Duration;

use parity::offload::{Answer, Job};

use crate::driver::{Asked, Device, DriverError, Problem};
use crate::fence::{Fence, Limits};
use crate::kind::Kind;
use crate::lane::Lane;
use crate::pack::{Packed, Placed, fits};
use crate::plan::{Plan, Plans};
use crate::ranges::Ranges;

/// How a job ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome<I, O> {
    /// Done, by the device or, if it was sampled, here: what was found out, and the outputs.
    Done(Answer, Vec<O>),
    /// Given back as it came, or without its buffers if the device may reach for them.
    Back(
        Back,
        #[cfg_attr(not(test), expect(dead_code, reason = "tickets take no buffers back"))]
        Option<Job<I, O>>,
    ),
}

/// Why a job was given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Back {
    /// No lane has room for it, or its length is not for kernels.
    Unfit,
    /// The device is fenced.
    Fenced,
}

/// A batch that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Passed {
    pub(crate) jobs: u64,
    /// That were read.
    pub(crate) bytes: u64,
    /// Jobs that were done here too.
    pub(crate) sampled: u64,
    /// Since it, or all before it, began.
    pub(crate) took: Duration,
}

/// So many jobs, at first and after each memory that is new to the device, are all sampled.
const FIRST: u64 = 32;

/// A device with its lanes, free of jobs.
pub(crate) struct Lanes {
    device: Box<dyn Device>,
    lanes: Vec<Lane>,
    ranges: Ranges,
    limits: Limits,
}

impl Lanes {
    /// All memory there will be.
    pub(crate) fn new(mut device: Box<dyn Device>, limits: Limits) -> Result<Lanes, Fence> {
        if limits.lanes == 0 {
            return Err(Fence::Small);
        }
        let lane = |_| Lane::new(&mut *device, limits.in_bytes, limits.out_bytes);
        let lanes = (0..limits.lanes).map(lane).collect::<Result<_, _>>();
        let lanes = lanes.map_err(Fence::Failed)?;
        Ok(Lanes { device, lanes, ranges: Ranges::default(), limits })
    }
}

/// A job that has not ended.
struct Turn<I, O, T> {
    number: u64,
    tag: T,
    job: Job<I, O>,
    plan: std::sync::Arc<Plan>,
}

/// What a lane runs, or has in limbo.
struct Batch<I, O, T> {
    kind: Kind,
    since: Duration,
    bytes: u64,
    jobs: Vec<(Turn<I, O, T>, Placed)>,
    /// Buffers of jobs that are finished.
    limbo: Vec<Job<I, O>>,
    /// When it was first seen to be late.
    late: Option<Duration>,
    /// Whether there is a mark behind all that was asked for.
    marked: bool,
    /// Whether the device has come to it.
    passed: bool,
}

impl<I, O, T> Drop for Batch<I, O, T> {
    /// What a device may still reach for is nobody's ever after.
    fn drop(&mut self) {
        if self.passed {
            return;
        }
        let reached = self.jobs.drain(..).filter(|(_, placed)| placed.reached);
        self.limbo.drain(..).chain(reached.map(|(turn, _)| turn.job)).for_each(std::mem::forget);
    }
}

/// See the module. `T` is what a job is known by.
pub(crate) struct Queue<I, O, T> {
    lanes: Lanes,
    running: Vec<Option<Batch<I, O, T>>>,
    /// By the number of their kind.
    waiting: Vec<VecDeque<Turn<I, O, T>>>,
    plans: Plans,
    finished: Vec<(T, Outcome<I, O>)>,
    ended: Vec<Passed>,
    /// When the last batch ended.
    last: Duration,
    next: u64,
    /// Jobs that have not finished.
    count: usize,
    /// Jobs done since the last one that was sampled.
    unchecked: u64,
    /// Jobs before this number are all sampled.
    sure: u64,
    fence: Option<Fence>,
}

impl<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>, T> Queue<I, O, T> {
    pub(crate) fn over(lanes: Lanes) -> Queue<I, O, T> {
        Queue {
            running: lanes.lanes.iter().map(|_| None).collect(),
            lanes,
            waiting: Kind::ALL.iter().map(|_| VecDeque::new()).collect(),
            plans: Plans::default(),
            finished: Vec::new(),
            ended: Vec::new(),
            last: Duration::ZERO,
            next: 0,
            count: 0,
            unchecked: 0,
            sure: FIRST,
            fence: None,
        }
    }

    /// The device, if it is not fenced.
    pub(crate) fn into_lanes(self) -> Result<Lanes, Fence> {
        assert!(self.count == 0, "jobs under way");
        self.fence.map_or(Ok(self.lanes), Err)
    }

    /// With another number of jobs of which one is sampled.
    pub(crate) fn sampling(mut self, sample: u32) -> Self {
        self.lanes.limits.sample = sample;
        self
    }

    /// With another bound on a batch's time.
    #[cfg(test)]
    pub(crate) fn patient(mut self, patience: Duration) -> Self {
        self.lanes.limits.patience = patience;
        self
    }

    /// The device's name.
    pub(crate) fn device(&self) -> &str {
        self.lanes.device.name()
    }

    /// Why the device is not used any more, if so.
    pub(crate) fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// Uses the device no more, for a reason that its owner has.
    pub(crate) fn put_fence(&mut self, fence: Fence) {
        self.fence.get_or_insert(fence);
    }

    /// Whether all jobs are finished.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the device may still reach for anything but its own.
    pub(crate) fn is_quiet(&self) -> bool {
        self.running.iter().all(Option::is_none)
    }

    /// Whether a job that came now would be on its way at once.
    pub(crate) fn has_room(&self) -> bool {
        self.fence.is_none() && self.running.iter().any(Option::is_none)
    }

    /// When the next batch may end, where one that reads so many bytes takes what `takes` says.
    pub(crate) fn next_end(&self, takes: impl Fn(u64) -> Duration) -> Option<Duration> {
        self.running.iter().flatten().map(|batch| batch.since + takes(batch.bytes)).min()
    }

    /// Batches that ended since this was last asked.
    pub(crate) fn ended(&mut self) -> Vec<Passed> {
        std::mem::take(&mut self.ended)
    }

    /// Bytes of others that the device reaches.
    pub(crate) fn reached(&self) -> usize {
        self.lanes.ranges.bytes()
    }

    /// Lets the device reach for `bytes` of memory from `address`. Where that fails, what lies
    /// there is copied, as if this had not been asked for.
    ///
    /// # Errors
    ///
    /// If the device is fenced, or can't.
    pub(crate) fn register(&mut self, address: usize, bytes: usize) -> Result<(), DriverError> {
        if self.fence.is_some() || !self.lanes.ranges.is_free(address, bytes) {
            return Err(DriverError::new(Asked::Register, Problem::Arguments));
        }
        let reached = self.lanes.device.register(address, bytes).inspect_err(|error| {
            if let Problem::Lost(_) = error.problem {
                self.fence.get_or_insert(Fence::Failed(error.clone()));
            }
        })?;
        self.lanes.ranges.add(address, bytes, reached);
        self.sure = self.next + FIRST;
        Ok(())
    }

    /// Takes memory that is registered from the device; no job has any of it any more. Says
    /// whether the device is sure not to reach for it.
    pub(crate) fn unregister(&mut self, address: usize) -> bool {
        if !self.lanes.ranges.remove(address) {
            return true;
        }
        if self.fence.is_some() && !self.is_quiet() {
            return false;
        }
        match self.lanes.device.unregister(address) {
            Ok(()) => true,
            Err(error) => {
                self.put_fence(Fence::Failed(error));
                false
            }
        }
    }

    /// Takes all that is registered from the device, which has nothing to do any more.
    pub(crate) fn unregister_all(&mut self) -> bool {
        while let Some(address) = self.lanes.ranges.first() {
            if !self.unregister(address) {
                return false;
            }
        }
        true
    }

    /// Takes a job; [`Queue::poll`] starts it.
    ///
    /// # Panics
    ///
    /// If counts or lengths of buffers are not the operation's.
    pub(crate) fn submit(&mut self, job: Job<I, O>, tag: T) {
        assert!(job.is_whole(), "buffers as the operation wants them");
        let limits = self.lanes.limits;
        self.count += 1;
        if !fits(&job.operation, job.strip_len(), (limits.in_bytes, limits.out_bytes)) {
            self.finish(tag, Outcome::Back(Back::Unfit, Some(job)));
            return;
        }
        let plan = self.plans.of(&job.operation);
        let number = self.next;
        self.next += 1;
        self.waiting[plan.kind as usize].push_back(Turn { number, tag, job, plan });
    }

    /// Finishes what is done, starts what is waiting, and says what is finished. `now` is the
    /// time since any fixed moment.
    pub(crate) fn poll(&mut self, now: Duration) -> Vec<(T, Outcome<I, O>)> {
        for lane in 0..self.running.len() {
            self.look(lane, now);
        }
        for lane in 0..self.running.len() {
            if self.fence.is_none() && self.running[lane].is_none() {
                self.fill(lane, now);
            }
        }
        if self.fence.is_some() {
            self.drain();
        }
        std::mem::take(&mut self.finished)
    }

    /// Ends a lane's batch if it is done, or too late.
    fn look(&mut self, lane: usize, now: Duration) {
        let Some(batch) = &mut self.running[lane] else { return };
        if !batch.marked {
            return;
        }
        let limits = self.lanes.limits;
        if now.saturating_sub(batch.since) > limits.patience {
            batch.late.get_or_insert(now);
        }
        let late = batch.late.is_some_and(|since| now.saturating_sub(since) > limits.grace());
        match self.lanes.lanes[lane].passed(&mut *self.lanes.device) {
            Ok(true) => {
                batch.passed = true;
                self.complete(lane, now);
            }
            Ok(false) if late => self.put_fence(Fence::Hung),
            Ok(false) => {}
            Err(error) => {
                batch.marked = false;
                self.put_fence(Fence::Failed(error));
            }
        }
    }

    /// Whether the job of this number is done here too.
    fn sampled(&self, number: u64) -> bool {
        let sample = u64::from(self.lanes.limits.sample);
        // Spread by Knuth's multiplication, so that no pattern of jobs escapes it.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        sample > 0 && (number < self.sure || spread.is_multiple_of(sample))
    }

    /// Takes the results of a lane whose batch is done, those that are compared first.
    fn complete(&mut self, lane: usize, now: Duration) {
        let Some(mut batch) = self.running[lane].take() else { return };
        let jobs = std::mem::take(&mut batch.jobs);
        let all = jobs.len() as u64;
        let (sampled, believed): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|(turn, _)| self.sampled(turn.number));
        let compared = sampled.len() as u64;
        for (turn, placed) in sampled {
            self.compare(lane, turn, &placed);
        }
        for (mut turn, placed) in believed {
            let outcome = match self.take(lane, &mut turn, &placed) {
                Some(answer) => Outcome::Done(answer, turn.job.outputs),
                None => {
                    let untouched = placed.outputs.is_some();
                    Outcome::Back(Back::Fenced, untouched.then_some(turn.job))
                }
            };
            self.finish(turn.tag, outcome);
        }
        let took = now.saturating_sub(batch.since.max(self.last));
        self.last = now;
        if all == 0 {
            return;
        }
        self.ended.push(Passed { jobs: all, bytes: batch.bytes, sampled: compared, took });
    }

    /// Takes a job's result as it is, unless the device is not believed any more.
    fn take(&mut self, lane: usize, turn: &mut Turn<I, O, T>, placed: &Placed) -> Option<Answer> {
        if self.fence.is_some() {
            return None;
        }
        self.unchecked += 1;
        let own = &self.lanes.lanes[lane];
        let answer = own.take(&*self.lanes.device, (&turn.plan, placed), &mut turn.job);
        if answer.is_none() {
            self.put_fence(Fence::Undone { kind: turn.plan.kind });
        }
        answer
    }

    /// Does a job here too. What was computed here is its result.
    fn compare(&mut self, lane: usize, mut turn: Turn<I, O, T>, placed: &Placed) {
        let mut outputs: Vec<Vec<u8>> =
            turn.job.outputs.iter().map(|o| o.as_ref().to_vec()).collect();
        if !turn.plan.kind.adds() {
            outputs.iter_mut().for_each(|output| output.fill(0));
        }
        let answer = turn.job.operation.compute_in(&turn.job.inputs, &mut outputs);
        let right = (answer, outputs);
        let own = &self.lanes.lanes[lane];
        if own.agrees(&*self.lanes.device, (&turn.plan, placed), &turn.job, &right) {
            self.unchecked = 0;
        } else {
            let (kind, unchecked) = (turn.plan.kind, self.unchecked);
            self.put_fence(Fence::Wrong { kind, unchecked });
        }
        for (output, right) in turn.job.outputs.iter_mut().zip(&right.1) {
            output.as_mut().copy_from_slice(right);
        }
        self.finish(turn.tag, Outcome::Done(right.0, turn.job.outputs));
    }

    /// Gives a lane all waiting jobs of the oldest one's kind that fit.
    fn fill(&mut self, lane: usize, now: Duration) {
        let oldest = |turns: &VecDeque<Turn<I, O, T>>| turns.front().map(|turn| turn.number);
        let kinds = (0..self.waiting.len()).filter(|&kind| !self.waiting[kind].is_empty());
        let Some(kind) = kinds.min_by_key(|&kind| oldest(&self.waiting[kind])) else { return };
        let Lanes { device, lanes, ranges, .. } = &mut self.lanes;
        let (own, turns) = (&mut lanes[lane], &mut self.waiting[kind]);
        own.packer().begin(Kind::ALL[kind]);
        let mut jobs = Vec::with_capacity(turns.len().min(1024));
        while let Some(turn) = turns.front() {
            let Some(placed) = own.push((&mut **device, ranges), &turn.plan, &turn.job) else {
                break;
            };
            jobs.extend(turns.pop_front().map(|turn| (turn, placed)));
        }
        assert!(!own.packer().is_empty(), "a job that fits has room in an empty lane");
        let (batch, started): (Packed, _) = own.start((&mut **device, ranges));
        // What failed midway may have begun.
        let marked = started.is_ok() || own.mark(&mut **device).is_ok();
        self.running[lane] = Some(Batch {
            kind: batch.kind(),
            since: now,
            bytes: batch.work as u64,
            jobs,
            limbo: Vec::new(),
            late: None,
            marked,
            passed: false,
        });
        if let Err(error) = started {
            self.put_fence(Fence::Failed(error));
        }
    }

    /// Gives back all jobs that have not finished. What the device may reach for stays here.
    fn drain(&mut self) {
        for turns in 0..self.waiting.len() {
            while let Some(turn) = self.waiting[turns].pop_front() {
                self.finish(turn.tag, Outcome::Back(Back::Fenced, Some(turn.job)));
            }
        }
        for lane in 0..self.running.len() {
            let Some(batch) = &mut self.running[lane] else { continue };
            debug_assert!(batch.jobs.iter().all(|(turn, _)| turn.plan.kind == batch.kind));
            let mut tags = Vec::new();
            for (turn, placed) in std::mem::take(&mut batch.jobs) {
                if placed.reached {
                    batch.limbo.push(turn.job);
                    tags.push((turn.tag, None));
                } else {
                    tags.push((turn.tag, Some(turn.job)));
                }
            }
            for (tag, job) in tags {
                self.finish(tag, Outcome::Back(Back::Fenced, job));
            }
        }
    }

    fn finish(&mut self, tag: T, outcome: Outcome<I, O>) {
        self.count -= 1;
        self.finished.push((tag, outcome));
    }
}
