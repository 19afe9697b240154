//! A kernel: one function that does every job on one kind of processor.
//!
//! Purpose: keep the two conditions of calling such a function in one place: the processor has
//! the features, and the job's slices have one length.
//! Invariant: a `Kernel` exists only for a candidate whose features were found.
#![allow(unsafe_code)]

use crate::job::Job;
use crate::sweep::{self, Processor};
use crate::tables::Tables;

/// A kernel before its processor features have been looked for.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    /// Its name in reports and in `PALISADE_PARITY`.
    pub(crate) name: &'static str,
    /// Whether this processor has the features.
    pub(crate) supported: fn() -> bool,
    /// Does a job whose slices have one length. Unsafe without the features.
    pub(crate) run: unsafe fn(Job<'_>, &Tables) -> Option<usize>,
}

impl Candidate {
    /// The kernel over a processor's vectors.
    pub(crate) const fn of<C: Processor>(name: &'static str) -> Candidate {
        Candidate { name, supported: C::supported, run: sweep::run::<C> }
    }
}

/// A kernel that this processor can run.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    candidate: Candidate,
    tables: &'static Tables,
}

impl Kernel {
    /// The candidate as a kernel over `tables`, or `None` if the processor cannot run it.
    pub(crate) fn probe(candidate: Candidate, tables: &'static Tables) -> Option<Kernel> {
        (candidate.supported)().then_some(Kernel { candidate, tables })
    }

    /// The kernel's name.
    pub(crate) fn name(&self) -> &'static str {
        self.candidate.name
    }

    /// The tables it looks things up in.
    pub(crate) fn tables(&self) -> &'static Tables {
        self.tables
    }

    /// Does `job`; a check answers the first offset that differs, every other job `None`.
    ///
    /// # Panics
    ///
    /// If the job's slices differ in length.
    #[inline]
    pub(crate) fn run(&self, job: Job<'_>) -> Option<usize> {
        job.checked_len();
        // SAFETY: `probe` found the processor's features, and the lengths were just checked.
        unsafe { (self.candidate.run)(job, self.tables) }
    }
}

/// Kernels with planted faults, for the tests of the start-up test.
#[cfg(test)]
pub(crate) mod spoiled {
    use super::Candidate;
    use crate::job::Job;
    use crate::tables::Tables;
    use crate::tests::streams;
    use crate::{Stores, portable};

    /// The kinds of jobs that can stream.
    pub(crate) const STREAMING: usize = 8;

    /// Which kind of streaming job it is, and one of its outputs.
    fn streaming(job: &mut Job<'_>) -> Option<(usize, *mut u8)> {
        let one = |strip: &mut Option<&mut [u8]>| strip.as_mut().map(|strip| strip.as_mut_ptr());
        let (kind, to, stores) = match job {
            Job::P { p, stores, .. } => (0, p.as_mut_ptr(), stores),
            Job::Q { q, stores, .. } => (1, q.as_mut_ptr(), stores),
            Job::Pq { q, stores, .. } => (2, q.as_mut_ptr(), stores),
            Job::Pqr { r, stores, .. } => (3, r.as_mut_ptr(), stores),
            Job::Dot { outputs, stores, .. } => (4, outputs.starts()[0], stores),
            Job::ViaP { q, stores, .. } => (5, q.as_mut_ptr(), stores),
            Job::ViaQ { d, p, stores, .. } => (6, one(d).or(one(p))?, stores),
            Job::Two { x, y, stores, .. } => (7, one(x).or(one(y))?, stores),
            _ => return None,
        };
        (*stores == Stores::Streaming).then_some((kind, to))
    }

    /// A kernel that streams a wrong byte in jobs of one kind; none of kind `STREAMING`.
    pub(crate) const fn streaming_wrongly<const KIND: usize>() -> Candidate {
        Candidate { name: "spoiled", supported: || true, run: spoiled::<KIND> }
    }

    /// A kernel that finds no fault in any single row.
    pub(crate) const TRUSTING: Candidate =
        Candidate { name: "trusting", supported: || true, run: trusting };

    /// A kernel whose product with 0 is not 0.
    pub(crate) const CARELESS: Candidate =
        Candidate { name: "careless", supported: || true, run: careless };

    /// The portable kernel, with a wrong byte in what jobs of one kind stream.
    unsafe fn spoiled<const KIND: usize>(mut job: Job<'_>, tables: &Tables) -> Option<usize> {
        let output = streaming(&mut job);
        streams::SWEPT.set(0);
        // SAFETY: the portable kernel needs no processor feature; the caller vouches for the job.
        let answer = unsafe { (portable::CANDIDATE.run)(job, tables) };
        if let Some((kind, to)) = output
            && kind == KIND
            && streams::SWEPT.get() > 0
        {
            // SAFETY: what was streamed lies before the output's end, and 32 bytes are the least.
            unsafe { *to.add(31) ^= 0x20 };
        }
        answer
    }

    /// The portable kernel, with a wrong byte in a change times 0.
    unsafe fn careless(job: Job<'_>, tables: &Tables) -> Option<usize> {
        match job {
            Job::DeltaQ { factor: 0, q, .. } => {
                q[0] ^= 1;
                None
            }
            // SAFETY: as above.
            _ => unsafe { (portable::CANDIDATE.run)(job, tables) },
        }
    }

    /// Says that all is well wherever a single row is checked.
    unsafe fn trusting(job: Job<'_>, tables: &Tables) -> Option<usize> {
        match job {
            Job::CheckDot { rows: [_], .. } => None,
            // SAFETY: as above.
            _ => unsafe { (portable::CANDIDATE.run)(job, tables) },
        }
    }
}
