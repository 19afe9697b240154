//! The processor's side: the same jobs by the parity crate, on one core and on all.
//!
//! A core goes over jobs in memory of its own, far more than a core's caches hold, and stores
//! results through the caches, as the engine does.

use super::works::Work;
use crate::stats::Sample;
use core::hint::black_box;
use io::{BufMut, Pool};
use std::sync::Barrier;
use std::time::{Duration, Instant};
use workload::Random;

/// CPU time of this thread.
pub fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Memory of each core.
pub struct Cores {
    own: Vec<Own>,
}

struct Own {
    inputs: BufMut,
    outputs: BufMut,
}

/// A job's strips.
type Strips<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

impl Own {
    fn new(seed: u64, bytes: usize) -> Own {
        let strips = |seed| {
            let mut strips = Pool::new(bytes, 1).take(bytes).expect("one buffer of the pool");
            Random::new(seed).fill(&mut strips);
            strips
        };
        Own { inputs: strips(seed), outputs: strips(!seed) }
    }

    /// As many jobs as fit.
    fn jobs(&mut self, work: &Work) -> Vec<Strips<'_>> {
        let (reads, writes) = (work.operation.reads().len(), work.operation.writes().len());
        let mut inputs = self.inputs.chunks_exact(work.strip);
        let mut outputs = self.outputs.chunks_exact_mut(work.strip);
        let mut jobs = Vec::new();
        loop {
            let job: Strips<'_> =
                (inputs.by_ref().take(reads).collect(), outputs.by_ref().take(writes).collect());
            if job.0.len() < reads || job.1.len() < writes {
                return jobs;
            }
            jobs.push(job);
        }
    }

    /// Does jobs for `span` from when all are ready, at least one.
    fn turn(&mut self, work: &Work, span: Duration, ready: &Barrier) -> Sample {
        let mut jobs = self.jobs(work);
        let count = jobs.len();
        assert!(count > 0, "memory for a job");
        ready.wait();
        let (cpu, start) = (thread_time(), Instant::now());
        let mut operations = 0;
        loop {
            let (inputs, outputs) = &mut jobs[operations as usize % count];
            black_box(work.operation.compute(inputs, outputs));
            operations += 1;
            let elapsed = start.elapsed();
            if elapsed >= span {
                return Sample { operations, elapsed, cpu: thread_time().saturating_sub(cpu) };
            }
        }
    }
}

impl Cores {
    /// `bytes` of inputs, and as much for outputs, for each of `count` cores.
    pub fn new(count: usize, bytes: usize) -> Cores {
        Cores { own: (0..count as u64).map(|seed| Own::new(seed, bytes)).collect() }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.own.len()
    }

    /// One core's turn.
    pub fn one(&mut self, work: &Work, span: Duration) -> Sample {
        self.own[0].turn(work, span, &Barrier::new(1))
    }

    /// The turn of all cores at once.
    pub fn all(&mut self, work: &Work, span: Duration) -> Sample {
        let ready = Barrier::new(self.own.len());
        std::thread::scope(|scope| {
            let turn = |own| scope.spawn(|| Own::turn(own, work, span, &ready));
            let turns: Vec<_> = self.own.iter_mut().map(turn).collect();
            let mut sum = Sample::default();
            for turn in turns {
                let sample = turn.join().expect("a core's jobs");
                sum.operations += sample.operations;
                sum.elapsed = sum.elapsed.max(sample.elapsed);
                sum.cpu += sample.cpu;
            }
            sum
        })
    }
}
