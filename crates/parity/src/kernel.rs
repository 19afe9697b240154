//! A kernel: one function that does every job on one kind of processor.
//!
//! Purpose: keep the two conditions of calling such a function in one place: the processor has
//! the features, and the job's slices have one length.
//! Invariant: a `Kernel` exists only for a candidate whose features were found.
#![allow(unsafe_code)]

use crate::job::Job;
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
