//! Picks the kernel, once.
//!
//! Purpose: at first use, look for each candidate's processor features, run its known-answer
//! test, and keep the first that passes in the order of `CANDIDATES`: wider vectors before
//! narrower, a bit matrix before shuffles. The rule is fixed and nothing is timed, so that the
//! same machine always picks the same kernel, even when it is busy at start.
//! `PALISADE_PARITY=name` picks one by name instead.
//! Invariants: a kernel that failed its test never runs a caller's job; the choice never
//! changes while the process lives. The one static of the crate is here.

use core::fmt;
use std::sync::OnceLock;

use crate::kernel::{Candidate, Kernel};
use crate::tables::{TABLES, Tables};
use crate::{portable, selftest};

/// The environment variable that forces a kernel.
pub const VARIABLE: &str = "PALISADE_PARITY";

/// All kernels of this architecture, best first.
#[cfg(target_arch = "x86_64")]
const CANDIDATES: &[Candidate] = &[
    crate::avx512::GFNI,
    crate::avx512::AVX512,
    crate::avx2::GFNI,
    crate::avx2::AVX2,
    crate::ssse3::SSSE3,
    portable::CANDIDATE,
];
#[cfg(target_arch = "aarch64")]
const CANDIDATES: &[Candidate] = &[crate::neon::EOR3, crate::neon::NEON, portable::CANDIDATE];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CANDIDATES: &[Candidate] = &[portable::CANDIDATE];

/// What became of a kernel at start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Passed its known-answer test.
    Usable,
    /// This processor lacks its features.
    Unsupported,
    /// Gave a wrong answer and is fenced off.
    Failed,
}

/// Why no kernel could be picked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SelectError {
    /// `PALISADE_PARITY` names no kernel of this architecture.
    Unknown(String),
    /// The kernel that `PALISADE_PARITY` names cannot be used.
    Unusable(&'static str, Standing),
    /// Every kernel failed its test; the machine cannot be trusted.
    NoneUsable,
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Unknown(name) => {
                write!(f, "{VARIABLE}={name}: no such parity kernel; there are")?;
                CANDIDATES.iter().try_for_each(|c| write!(f, " {}", c.name))
            }
            SelectError::Unusable(name, Standing::Failed) => {
                write!(f, "{VARIABLE}={name}: the kernel failed its known-answer test")
            }
            SelectError::Unusable(name, _) => {
                write!(f, "{VARIABLE}={name}: this processor lacks the kernel's features")
            }
            SelectError::NoneUsable => f.write_str("every parity kernel failed its self-test"),
        }
    }
}

impl std::error::Error for SelectError {}

/// The outcome of the start-up tests.
struct Selection {
    standings: Vec<(&'static str, Standing)>,
    chosen: Result<Kernel, SelectError>,
}

static SELECTION: OnceLock<Selection> = OnceLock::new();

fn selection() -> &'static Selection {
    SELECTION.get_or_init(|| {
        let forced = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
        select(CANDIDATES, &TABLES, forced)
    })
}

/// Tests every candidate and picks one: the one called `forced`, else the first usable.
fn select(candidates: &[Candidate], tables: &'static Tables, forced: Option<String>) -> Selection {
    let tested: Vec<_> = candidates.iter().map(|&c| (c.name, Kernel::probe(c, tables))).collect();
    let standings: Vec<_> =
        tested.iter().map(|(name, kernel)| (*name, standing(kernel.as_ref()))).collect();
    let chosen = match forced {
        None => standings
            .iter()
            .position(|(_, s)| *s == Standing::Usable)
            .ok_or(SelectError::NoneUsable),
        Some(wanted) => match standings.iter().position(|(name, _)| *name == wanted) {
            None => Err(SelectError::Unknown(wanted)),
            Some(i) if standings[i].1 == Standing::Usable => Ok(i),
            Some(i) => Err(SelectError::Unusable(standings[i].0, standings[i].1)),
        },
    };
    let chosen = chosen.and_then(|i| tested[i].1.ok_or(SelectError::NoneUsable));
    Selection { standings, chosen }
}

/// Tests a kernel, if the processor can run it.
fn standing(kernel: Option<&Kernel>) -> Standing {
    match kernel {
        None => Standing::Unsupported,
        Some(kernel) if selftest::passes(kernel) => Standing::Usable,
        Some(_) => Standing::Failed,
    }
}

/// The kernel that does all jobs.
///
/// # Panics
///
/// If none can be picked; programs call [`select_kernel`] at start to report that in peace.
#[inline]
pub(crate) fn kernel() -> &'static Kernel {
    match &selection().chosen {
        Ok(kernel) => kernel,
        Err(error) => panic!("{error}"),
    }
}

/// Picks the kernel now and answers its name, or says why none can be picked.
///
/// Operations of [`crate::Code`] pick at first use by themselves and panic on this error; a
/// program calls this first, so that a wrong `PALISADE_PARITY` ends in a message.
pub fn select_kernel() -> Result<&'static str, SelectError> {
    selection().chosen.as_ref().map(Kernel::name).map_err(Clone::clone)
}

/// The name of the kernel in use.
///
/// # Panics
///
/// If none can be picked, see [`select_kernel`].
pub fn selected() -> &'static str {
    kernel().name()
}

/// The kernels that this machine can use, best first.
pub fn kernels() -> Vec<&'static str> {
    let usable = standings().iter().filter(|(_, standing)| *standing == Standing::Usable);
    usable.map(|(name, _)| *name).collect()
}

/// One line for each kernel that computes wrongly on this machine and is fenced off; a program
/// prints them where its operator looks.
pub fn warnings() -> Vec<String> {
    warnings_of(standings())
}

fn warnings_of(standings: &[(&'static str, Standing)]) -> Vec<String> {
    let failed = standings.iter().filter(|(_, standing)| *standing == Standing::Failed);
    failed
        .map(|(name, _)| {
            format!(
                "parity kernel {name} failed its known-answer test and is not used: \
                 this processor or its hypervisor computes wrongly"
            )
        })
        .collect()
}

/// What became of every kernel of this architecture, best first; see also [`warnings`].
pub fn standings() -> &'static [(&'static str, Standing)] {
    &selection().standings
}

/// Every kernel this processor can run, tested or not, and those that run on the model.
#[cfg(test)]
pub(crate) fn all_supported() -> Vec<Kernel> {
    all_supported_over(&TABLES)
}

/// The same over `tables`, in which a test may have planted a fault.
#[cfg(test)]
pub(crate) fn all_supported_over(tables: &'static Tables) -> Vec<Kernel> {
    CANDIDATES.iter().chain(models()).filter_map(|&c| Kernel::probe(c, tables)).collect()
}

/// The kernels over the model of their instructions; their names end in `-model`.
#[cfg(test)]
pub(crate) fn models() -> impl Iterator<Item = &'static Candidate> {
    #[cfg(target_arch = "x86_64")]
    return crate::avx512::MODELS.iter().chain(&crate::avx2::MODELS);
    #[cfg(not(target_arch = "x86_64"))]
    core::iter::empty()
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
