//! The queue: jobs in, batches to a device, results in order, and everything back when it fails.
//!
//! Purpose: keep a device busy with what is waiting, and never let it cost a stripe. Nothing here
//! waits or knows a clock: whoever owns the queue polls it and says what time it is.
//!
//! Invariants: a job is finished exactly once, done or given back; jobs of one stripe are finished
//! in the order they came; a job that is given back has its outputs as they were, so the CPU can
//! do it; nothing computed by a device is believed after the first thing that was wrong.
//!
//! A job:
//!
//! | state | leaves it by |
//! |---|---|
//! | waiting | a lane that is idle and takes all waiting jobs of its kind, to *running* |
//! | | no lane having room for it, or the queue being fenced, to *ended*, given back |
//! | running | its lane's mark passed and what was sampled agreed, to *ended*, done |
//! | | the queue being fenced, to *ended*, given back |
//! | ended | all earlier jobs of its stripe finished: it is finished too |
//!
//! A lane is *idle* or *running* one batch; a mark that passed makes it idle.
//!
//! The queue is *open* until the device fails a call, is late by more than the bound, or computes
//! something wrong; then it is *fenced* for good, and all its jobs end. A hung device may wake up
//! and go on: it has nothing but the lanes' own memory, which no batch uses any more.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::driver::{Device, DriverError};
use crate::job::Job;
use crate::lane::Lane;
use crate::pack::{Packer, Placed};
use crate::plan::Answer;

/// What a queue may use, and how much it believes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Batches under way at once.
    pub lanes: usize,
    /// Bytes that a batch may read, its metadata included, on each side.
    pub in_bytes: usize,
    /// Bytes that a batch may write, on each side.
    pub out_bytes: usize,
    /// How long a batch may take; a device that takes longer hangs.
    pub patience: Duration,
    /// One job of this many is done on the CPU too and compared; 0: none.
    pub sample: u32,
}

impl Default for Limits {
    /// Three lanes of 16 MiB and 8 MiB, two seconds, one job of 1024.
    fn default() -> Limits {
        let patience = Duration::from_secs(2);
        Limits { lanes: 3, in_bytes: 16 << 20, out_bytes: 8 << 20, patience, sample: 1024 }
    }
}

/// Why a device is not used any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fence {
    /// A call failed.
    Failed(DriverError),
    /// A batch took longer than [`Limits::patience`].
    Hung,
    /// It computed something else than the CPU.
    Wrong(crate::Kind),
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fence::Failed(error) => write!(f, "{error}"),
            Fence::Hung => f.write_str("a batch did not end in time"),
            Fence::Wrong(kind) => {
                write!(f, "kernel {} computed something else than the CPU", kind.name())
            }
        }
    }
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done: by the device, or here, if it was sampled.
    Done(Answer),
    /// Given back as it came: do it with [`Job::compute`].
    Back(Back),
}

/// Why a job was given back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Back {
    /// No lane has room for it, or its length is not for kernels.
    Unfit,
    /// The device is fenced.
    Fenced,
}

/// A job that ended.
#[derive(Clone, Debug)]
pub struct Finished<I, O> {
    /// The job, with its buffers.
    pub job: Job<I, O>,
    /// How it ended.
    pub outcome: Outcome,
}

/// A device with its lanes, free of jobs.
pub(crate) struct Lanes {
    device: Box<dyn Device>,
    lanes: Vec<Lane>,
    limits: Limits,
}

impl Lanes {
    /// All memory there will be.
    pub(crate) fn new(mut device: Box<dyn Device>, limits: Limits) -> Result<Lanes, DriverError> {
        let lane = |_| Lane::new(&mut *device, limits.in_bytes, limits.out_bytes);
        let lanes = (0..limits.lanes).map(lane).collect::<Result<_, _>>()?;
        Ok(Lanes { device, lanes, limits })
    }
}

/// A job with its turn: its number in the order of coming.
struct Turn<I, O> {
    number: u64,
    job: Job<I, O>,
}

/// What a lane runs.
struct Batch<I, O> {
    kind: crate::Kind,
    since: Duration,
    jobs: Vec<(Turn<I, O>, Placed)>,
}

/// See the module.
pub struct Queue<I, O> {
    lanes: Lanes,
    running: Vec<Option<Batch<I, O>>>,
    waiting: VecDeque<Turn<I, O>>,
    /// Unfinished jobs by stripe, in order.
    order: BTreeMap<u64, VecDeque<u64>>,
    /// Jobs that ended before an earlier one of their stripe.
    ended: BTreeMap<u64, Finished<I, O>>,
    finished: Vec<Finished<I, O>>,
    next: u64,
    fence: Option<Fence>,
}

impl<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>> Queue<I, O> {
    pub(crate) fn over(lanes: Lanes) -> Queue<I, O> {
        Queue {
            running: lanes.lanes.iter().map(|_| None).collect(),
            lanes,
            waiting: VecDeque::new(),
            order: BTreeMap::new(),
            ended: BTreeMap::new(),
            finished: Vec::new(),
            next: 0,
            fence: None,
        }
    }

    /// The device, if it is not fenced.
    pub(crate) fn into_lanes(self) -> Result<Lanes, Fence> {
        assert!(self.order.is_empty(), "jobs under way");
        self.fence.map_or(Ok(self.lanes), Err)
    }

    /// With another number of jobs of which one is sampled.
    pub(crate) fn sampling(mut self, sample: u32) -> Queue<I, O> {
        self.lanes.limits.sample = sample;
        self
    }

    /// With another bound on a batch's time.
    #[cfg(test)]
    pub(crate) fn patient(mut self, patience: Duration) -> Queue<I, O> {
        self.lanes.limits.patience = patience;
        self
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        self.lanes.device.name()
    }

    /// Why the device is not used any more, if so.
    pub fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }

    /// Jobs that are not finished.
    pub fn len(&self) -> usize {
        self.order.values().map(VecDeque::len).sum()
    }

    /// Whether all jobs are finished.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes a job; [`Queue::poll`] starts it.
    ///
    /// # Panics
    ///
    /// If counts or lengths of buffers are not the plan's.
    pub fn submit(&mut self, job: Job<I, O>) {
        assert!(job.is_whole(), "buffers as the plan wants them");
        let number = self.next;
        self.next += 1;
        self.order.entry(job.stripe).or_default().push_back(number);
        self.waiting.push_back(Turn { number, job });
    }

    /// Finishes what is done, starts what is waiting, and answers what is finished. `now` is the
    /// time since any fixed moment.
    pub fn poll(&mut self, now: Duration) -> Vec<Finished<I, O>> {
        for lane in 0..self.running.len() {
            if self.fence.is_none() {
                self.look(lane, now);
            }
        }
        for lane in 0..self.running.len() {
            if self.fence.is_none() && self.running[lane].is_none() && !self.waiting.is_empty() {
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
        let Some(batch) = &self.running[lane] else { return };
        let late = now.saturating_sub(batch.since) > self.lanes.limits.patience;
        match self.lanes.lanes[lane].passed(&mut *self.lanes.device) {
            Ok(true) => self.complete(lane),
            Ok(false) if late => self.fence = Some(Fence::Hung),
            Ok(false) => {}
            Err(error) => self.fence = Some(Fence::Failed(error)),
        }
    }

    /// Whether the job of this number is done here too.
    fn sampled(&self, number: u64) -> bool {
        let sample = u64::from(self.lanes.limits.sample);
        // Spread by Knuth's multiplication, so that no pattern of jobs escapes it.
        sample > 0 && (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).is_multiple_of(sample)
    }

    /// Takes the results of a lane whose batch is done, those that are compared first.
    fn complete(&mut self, lane: usize) {
        let Some(mut batch) = self.running[lane].take() else { return };
        let own = self.lanes.lanes[lane];
        let (sampled, believed): (Vec<_>, Vec<_>) =
            batch.jobs.drain(..).partition(|(turn, _)| self.sampled(turn.number));
        for (mut turn, placed) in sampled {
            let answer = turn.job.compute();
            if !own.agrees(&*self.lanes.device, &turn.job, &placed, &answer) {
                self.fence = Some(Fence::Wrong(batch.kind));
            }
            self.end(turn, Outcome::Done(answer));
        }
        for (mut turn, placed) in believed {
            let outcome = match self.fence {
                None => Outcome::Done(own.take(&*self.lanes.device, &mut turn.job, &placed)),
                Some(_) => Outcome::Back(Back::Fenced),
            };
            self.end(turn, outcome);
        }
    }

    /// Gives a lane all waiting jobs of the first one's kind that fit.
    fn fill(&mut self, lane: usize, now: Duration) {
        let Some(kind) = self.waiting.front().map(|turn| turn.job.plan.kind()) else { return };
        let limits = self.lanes.limits;
        let own = self.lanes.lanes[lane];
        let mut packer = Packer::new(kind, limits.in_bytes, limits.out_bytes);
        let mut jobs: Vec<(Turn<I, O>, Placed)> = Vec::new();
        let mut left = VecDeque::new();
        let mut full = false;
        while let Some(turn) = self.waiting.pop_front() {
            let (plan, len) = (&turn.job.plan, turn.job.strip_len());
            if full || plan.kind() != kind {
                left.push_back(turn);
                continue;
            }
            match plan.takes(len).then(|| packer.push(plan, len)).flatten() {
                Some(placed) => {
                    own.load(&mut *self.lanes.device, &turn.job, &placed);
                    jobs.push((turn, placed));
                }
                None if packer.is_empty() || !plan.takes(len) => {
                    self.end(turn, Outcome::Back(Back::Unfit));
                }
                None => {
                    full = true;
                    left.push_back(turn);
                }
            }
        }
        self.waiting = left;
        if packer.is_empty() {
            return;
        }
        if let Err(error) = own.start(&mut *self.lanes.device, &packer.finish()) {
            self.fence = Some(Fence::Failed(error));
        }
        self.running[lane] = Some(Batch { kind, since: now, jobs });
    }

    /// Gives back all jobs that have not ended.
    fn drain(&mut self) {
        let running = self.running.iter_mut().filter_map(Option::take);
        let mut jobs: Vec<_> = running.flat_map(|batch| batch.jobs).map(|(turn, _)| turn).collect();
        jobs.extend(self.waiting.drain(..));
        for turn in jobs {
            self.end(turn, Outcome::Back(Back::Fenced));
        }
    }

    /// Finishes a job, and those that waited for it, unless it has to wait itself.
    fn end(&mut self, turn: Turn<I, O>, outcome: Outcome) {
        let stripe = turn.job.stripe;
        self.ended.insert(turn.number, Finished { job: turn.job, outcome });
        let Some(order) = self.order.get_mut(&stripe) else { return };
        while let Some(finished) = order.front().and_then(|first| self.ended.remove(first)) {
            order.pop_front();
            self.finished.push(finished);
        }
        if order.is_empty() {
            self.order.remove(&stripe);
        }
    }
}
