//! The code as its users see it: how many data strips, how many parities, and what can be done.
//!
//! Purpose: check counts and lengths once, then hand one job to the kernel.
//! Invariants: no operation allocates; the coefficients of an id never change.

use core::fmt;

use crate::job::Job;
use crate::kernel::Kernel;
use crate::recover;
use crate::select::kernel;
use crate::tables::power;

/// A systematic erasure code: `data` strips and up to two parities, P and Q.
///
/// Strip indexes count the data strips from 0, then P, then Q.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    data: u8,
    parities: u8,
}

/// Why a code cannot be, or cannot recover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeError {
    /// The number of data strips is not in `1..=Code::MAX_DATA`.
    DataCount(usize),
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
        match self {
            CodeError::DataCount(n) => {
                write!(f, "{n} data strips; a code has 1 to {}", Code::MAX_DATA)
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
    /// Most data strips: the generator has 255 different powers.
    pub const MAX_DATA: usize = 255;
    /// Most parities.
    pub const MAX_PARITIES: usize = 2;

    /// A code of `data` data strips and `parities` parities.
    ///
    /// # Errors
    ///
    /// [`CodeError::DataCount`] or [`CodeError::ParityCount`] if a count is out of bounds.
    pub const fn new(data: usize, parities: usize) -> Result<Code, CodeError> {
        if data == 0 || data > Code::MAX_DATA {
            return Err(CodeError::DataCount(data));
        }
        if parities > Code::MAX_PARITIES {
            return Err(CodeError::ParityCount(parities));
        }
        Ok(Code { data: data as u8, parities: parities as u8 })
    }

    /// Identifies polynomial 0x11d, generator 2 and coefficients g^(row·index) in an array's
    /// record. A code with other coefficients gets another id.
    pub const fn id() -> u16 {
        1
    }

    /// Data strips.
    pub const fn data(&self) -> usize {
        self.data as usize
    }

    /// Parity strips.
    pub const fn parities(&self) -> usize {
        self.parities as usize
    }

    /// Computes all parities of the data strips.
    ///
    /// # Panics
    ///
    /// If the counts are not the code's or the lengths differ.
    pub fn generate(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) {
        self.generate_with(kernel(), data, parity);
    }

    /// Carries a change of data strip `index` from `old` to `new` over to the parities, in one
    /// pass. A parity that is `None` is skipped.
    ///
    /// # Panics
    ///
    /// If the index or the counts are not the code's or the lengths differ.
    pub fn update(&self, index: usize, old: &[u8], new: &[u8], parity: &mut [Option<&mut [u8]>]) {
        self.update_with(kernel(), index, old, new, parity);
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
        recover::recover(kernel(), *self, strips, lost, out)
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

    pub(crate) fn generate_with(&self, kernel: &Kernel, data: &[&[u8]], parity: &mut [&mut [u8]]) {
        assert_eq!(data.len(), self.data(), "one slice for each data strip");
        assert_eq!(parity.len(), self.parities(), "one slice for each parity");
        match parity {
            [p, q] => kernel.run(Job::Pq { data, p, q }),
            [p] => kernel.run(Job::P { data, p }),
            _ => None,
        };
    }

    pub(crate) fn update_with(
        &self,
        kernel: &Kernel,
        index: usize,
        old: &[u8],
        new: &[u8],
        parity: &mut [Option<&mut [u8]>],
    ) {
        assert!(index < self.data(), "strip {index} is not a data strip");
        assert_eq!(parity.len(), self.parities(), "one entry for each parity");
        let factor = power(index);
        match parity {
            [Some(p), Some(q)] => kernel.run(Job::DeltaPq { old, new, p, q, factor }),
            [Some(p)] | [Some(p), None] => kernel.run(Job::DeltaP { old, new, p }),
            [None, Some(q)] => kernel.run(Job::DeltaQ { old, new, q, factor }),
            _ => None,
        };
    }

    pub(crate) fn verify_with(&self, kernel: &Kernel, strips: &[&[u8]]) -> Option<usize> {
        assert_eq!(strips.len(), self.data() + self.parities(), "one slice for each strip");
        match strips.split_at(self.data()) {
            (data, [p, q]) => kernel.run(Job::CheckPq { data, p, q }),
            (data, [p]) => kernel.run(Job::CheckP { data, p }),
            _ => None,
        }
    }
}
