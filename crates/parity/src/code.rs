//! The code as its users see it: how many data strips, how many parities, and what can be done.
//!
//! Purpose: check counts and lengths once, then hand one job to the kernel.
//! Invariants: no operation allocates; the coefficients of an id never change.

use core::fmt;

use crate::job::{Job, Outputs};
use crate::kernel::Kernel;
use crate::locate;
use crate::recover;
use crate::select::kernel;
use crate::tables::TABLES;

/// A systematic erasure code: `data` strips and up to 32 parities.
///
/// Strip indexes count the data strips from 0, then the parities: P, Q, and so on.
///
/// All slices of one call have one length: they are the same range of bytes of their strips,
/// any range, since each offset stands for itself. Nothing outside of it is read or computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    data: u8,
    parities: u8,
}

/// Who reads the result next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stores {
    /// This processor, soon: results go to the caches.
    Cached,
    /// A drive, or nobody soon: results go past the caches to memory where the machine can, and
    /// leave the caches to others. They come before whatever this thread stores after the call,
    /// as plain stores do: who hands the strips to another thread or to a device needs what is
    /// needed after [`Stores::Cached`] (a lock, a channel, a system call), and nothing else.
    /// Where outputs lie differently within a vector, all of it is as `Cached`.
    Streaming,
}

/// The change of one data strip.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The data strip.
    pub index: usize,
    /// What the parities were computed from.
    pub old: &'a [u8],
    /// What they shall stand for.
    pub new: &'a [u8],
}

/// Which strip disagrees with all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Located {
    /// None: the parities are the data's.
    Clean,
    /// Only this one: with it recovered from the others, all agree.
    Strip(usize),
    /// More than one, or the code has fewer than two parities.
    Unknown,
}

/// Why a code cannot be, or cannot recover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeError {
    /// The number of data strips is 0 or more than [`Code::max_data`] of its parities.
    DataCount {
        /// Data strips asked for.
        data: usize,
        /// Parities asked for.
        parities: usize,
    },
    /// The number of parities is more than `Code::MAX_PARITIES`.
    ParityCount(usize),
    /// More strips are missing than the code has parities.
    TooManyMissing {
        /// Strips that are missing.
        missing: usize,
        /// Parities of the code.
        parities: usize,
    },
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            CodeError::DataCount { data, parities } => {
                let most = Code::max_data(parities);
                write!(f, "{data} data strips; a code of {parities} parities has 1 to {most}")
            }
            CodeError::ParityCount(n) => {
                write!(f, "{n} parities; a code has at most {}", Code::MAX_PARITIES)
            }
            CodeError::TooManyMissing { missing, parities } => {
                write!(f, "{missing} strips are missing and the code has {parities} parities")
            }
        }
    }
}

impl std::error::Error for CodeError {}

impl Code {
    /// Most data strips of any code: the generator has 255 different powers.
    pub const MAX_DATA: usize = 255;
    /// Most parities.
    pub const MAX_PARITIES: usize = 32;

    /// Most data strips of a code of `parities` parities: 255 up to three, then 257 less the
    /// parities. `parities` is at most [`Code::MAX_PARITIES`].
    pub const fn max_data(parities: usize) -> usize {
        assert!(parities <= Code::MAX_PARITIES, "more parities than a code can have");
        if parities <= 3 { Code::MAX_DATA } else { 257 - parities }
    }

    /// A code of `data` data strips and `parities` parities.
    ///
    /// # Errors
    ///
    /// [`CodeError::DataCount`] or [`CodeError::ParityCount`] if a count is out of bounds.
    pub const fn new(data: usize, parities: usize) -> Result<Code, CodeError> {
        if parities > Code::MAX_PARITIES {
            return Err(CodeError::ParityCount(parities));
        }
        if data == 0 || data > Code::max_data(parities) {
            return Err(CodeError::DataCount { data, parities });
        }
        Ok(Code { data: data as u8, parities: parities as u8 })
    }

    /// Identifies the coefficients in an array's record; see the crate's documentation.
    ///
    /// 1, up to three parities: g^(parity·data). 2, from four on: ones, then
    /// 1 / (x(parity) + g^-data). Both over polynomial 0x11d with generator g = 2. P and Q are
    /// the same in both. A code with other coefficients gets another id.
    pub const fn id(&self) -> u16 {
        if self.parities <= 3 { 1 } else { 2 }
    }

    /// What data strip `data` is multiplied by in parity `parity`, both counted from 0.
    ///
    /// # Panics
    ///
    /// If the code has no such strip.
    pub const fn coefficient(&self, parity: usize, data: usize) -> u8 {
        assert!(data < self.data(), "no such data strip");
        TABLES.row(self.parities(), parity)[data]
    }

    /// Data strips.
    pub const fn data(&self) -> usize {
        self.data as usize
    }

    /// Parity strips.
    pub const fn parities(&self) -> usize {
        self.parities as usize
    }

    /// All strips.
    pub const fn strips(&self) -> usize {
        self.data() + self.parities()
    }

    /// Computes all parities of the data strips.
    ///
    /// # Panics
    ///
    /// If the counts are not the code's or the lengths differ.
    pub fn generate(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) {
        self.generate_with(kernel(), data, parity, Stores::Cached);
    }

    /// As [`Code::generate`], with results stored as `stores` says.
    ///
    /// # Panics
    ///
    /// As [`Code::generate`].
    pub fn generate_to(&self, data: &[&[u8]], parity: &mut [&mut [u8]], stores: Stores) {
        self.generate_with(kernel(), data, parity, stores);
    }

    /// Carries a change of data strip `index` from `old` to `new` over to the parities, in one
    /// pass. A parity that is `None` is skipped.
    ///
    /// # Panics
    ///
    /// If the index or the counts are not the code's or the lengths differ.
    pub fn update(&self, index: usize, old: &[u8], new: &[u8], parity: &mut [Option<&mut [u8]>]) {
        self.update_with(kernel(), &[Change { index, old, new }], parity);
    }

    /// As [`Code::update`] for several data strips that change together: each parity is read
    /// and written once.
    ///
    /// # Panics
    ///
    /// As [`Code::update`].
    pub fn update_many(&self, changes: &[Change<'_>], parity: &mut [Option<&mut [u8]>]) {
        self.update_with(kernel(), changes, parity);
    }

    /// Computes missing strips. `strips` has one entry for each strip, `None` where it is
    /// missing; `lost` names, in ascending order, the missing strips to compute, and `out` has
    /// one output for each. A strip that is missing but not in `lost` is not wanted.
    ///
    /// # Errors
    ///
    /// [`CodeError::TooManyMissing`] if more strips are missing than the code has parities;
    /// nothing is written then.
    ///
    /// # Panics
    ///
    /// If the counts are not the code's, the lengths differ, or `lost` is not ascending or
    /// names a strip that is there.
    pub fn recover(
        &self,
        strips: &[Option<&[u8]>],
        lost: &[usize],
        out: &mut [&mut [u8]],
    ) -> Result<(), CodeError> {
        recover::recover(kernel(), *self, strips, lost, out, Stores::Cached)
    }

    /// As [`Code::recover`], with results stored as `stores` says.
    ///
    /// # Errors
    ///
    /// As [`Code::recover`].
    ///
    /// # Panics
    ///
    /// As [`Code::recover`].
    pub fn recover_to(
        &self,
        strips: &[Option<&[u8]>],
        lost: &[usize],
        out: &mut [&mut [u8]],
        stores: Stores,
    ) -> Result<(), CodeError> {
        recover::recover(kernel(), *self, strips, lost, out, stores)
    }

    /// Checks the parities, the last entries of `strips`, against the data: the offset of the
    /// first byte that differs, or `None` if all agree. Writes nothing.
    ///
    /// # Panics
    ///
    /// If the count is not the code's or the lengths differ.
    pub fn verify(&self, strips: &[&[u8]]) -> Option<usize> {
        self.verify_with(kernel(), strips)
    }

    /// As [`Code::verify`], and if something differs, which single strip explains it all.
    ///
    /// With m parities, up to m - 1 bad strips at one offset are never taken for another single
    /// one; more may be.
    ///
    /// # Panics
    ///
    /// As [`Code::verify`].
    pub fn locate(&self, strips: &[&[u8]]) -> Located {
        locate::locate(kernel(), *self, strips)
    }

    pub(crate) fn generate_with(
        &self,
        kernel: &Kernel,
        data: &[&[u8]],
        parity: &mut [&mut [u8]],
        stores: Stores,
    ) {
        assert_eq!(data.len(), self.data(), "one slice for each data strip");
        assert_eq!(parity.len(), self.parities(), "one slice for each parity");
        match parity {
            [] => {}
            [p] => drop(kernel.run(Job::P { data, p, stores })),
            [p, q] => drop(kernel.run(Job::Pq { data, p, q, stores })),
            [p, q, r] => drop(kernel.run(Job::Pqr { data, p, q, r, stores })),
            many => {
                let rows = self.rows(kernel);
                let rows = &rows[..many.len()];
                let outputs = &Outputs::new(many.iter_mut().map(|strip| &mut **strip));
                kernel.run(Job::Dot { inputs: data, rows, sum: true, outputs, stores });
            }
        }
    }

    pub(crate) fn update_with(
        &self,
        kernel: &Kernel,
        changes: &[Change<'_>],
        parity: &mut [Option<&mut [u8]>],
    ) {
        assert!(changes.iter().all(|c| c.index < self.data()), "an index is not a data strip's");
        assert_eq!(parity.len(), self.parities(), "one entry for each parity");
        match (changes, &mut *parity) {
            ([], _) | (_, []) => return,
            ([Change { old, new, .. }], [Some(p)] | [Some(p), None]) => {
                kernel.run(Job::DeltaP { old, new, p });
                return;
            }
            ([Change { index, old, new }], [p, Some(q)]) => {
                let factor = kernel.tables().coefficients[1][*index];
                kernel.run(match p {
                    Some(p) => Job::DeltaPq { old, new, p, q, factor },
                    None => Job::DeltaQ { old, new, q, factor },
                });
                return;
            }
            _ => {}
        }
        let all = self.rows(kernel);
        let mut rows: [&[u8]; Code::MAX_PARITIES] = [&[]; _];
        let mut count = 0;
        for (row, _) in all.iter().zip(&*parity).filter(|(_, strip)| strip.is_some()) {
            rows[count] = row;
            count += 1;
        }
        let sum = parity[0].is_some();
        let wanted = parity.iter_mut().filter_map(|strip| strip.as_deref_mut());
        let outputs = &Outputs::new(wanted);
        if count > 0 {
            kernel.run(Job::Deltas { changes, rows: &rows[..count], sum, outputs });
        }
    }

    pub(crate) fn verify_with(&self, kernel: &Kernel, strips: &[&[u8]]) -> Option<usize> {
        assert_eq!(strips.len(), self.strips(), "one slice for each strip");
        match strips.split_at(self.data()) {
            (_, []) => None,
            (data, [p]) => kernel.run(Job::CheckP { data, p }),
            (data, [p, q]) => kernel.run(Job::CheckPq { data, p, q }),
            (data, [p, q, r]) => kernel.run(Job::CheckPqr { data, p, q, r }),
            (inputs, expected) => {
                let rows = self.rows(kernel);
                let rows = &rows[..expected.len()];
                kernel.run(Job::CheckDot { inputs, rows, sum: true, expected })
            }
        }
    }

    /// The coefficients of each parity by data strip; empty past the last parity.
    pub(crate) fn rows(&self, kernel: &Kernel) -> [&'static [u8]; Code::MAX_PARITIES] {
        let mut rows: [&[u8]; Code::MAX_PARITIES] = [&[]; _];
        for (parity, row) in rows.iter_mut().enumerate().take(self.parities()) {
            *row = kernel.tables().row(self.parities(), parity);
        }
        rows
    }
}
