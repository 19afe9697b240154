//! The planner: a pure function from what is known of a slice to what is done with it.
//!
//! A *slice* is the same byte range of every strip of one stripe. The planner sees which data
//! strips the waiting writes cover in it and what can be read and written, and answers with the
//! plan that needs the fewest reads:
//!
//! | mode              | reads                                | needs                        |
//! |-------------------|--------------------------------------|------------------------------|
//! | full              | none                                 | all data strips covered whole|
//! | read-modify-write | old data written over, old parity    | trusted parity               |
//! | reconstruct-write | data strips not covered whole        | those strips readable        |
//! | degraded          | enough strips to recover lost data   | trusted parity               |
//!
//! Invariants
//! - A plan never derives anything from parity that is not trusted (in a region that owes a
//!   resync).
//! - Every parity that can be written is written, or provably unchanged: a parity on a drive
//!   being rebuilt is never updated from its own old content.
//! - Without a plan, more strips are lost than the parities cover, or what is lost hangs on
//!   untrusted parity: the caller reports the blocks as unavailable and writes nothing.

use crate::mutants::{self, Mutant};

pub use units::StripSet;

/// What the planner knows of a stripe: strips `0..k` are data, `k..k+m` parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripeState {
    /// Data strips.
    pub k: usize,
    /// Parity strips.
    pub m: usize,
    /// Strips whose content counts.
    pub readable: StripSet,
    /// Strips that take writes: the readable ones and those being rebuilt.
    pub writable: StripSet,
    /// Whether parity agrees with data (false in a region that owes a resync).
    pub parity_trusted: bool,
    /// Whether what is lost is computed from parity all the same: a person accepted what may be
    /// wrong, or that is only where nothing was ever written. No write is computed from what
    /// parity was: it stays wrong where it is, and the next failure would have new bytes computed
    /// from it.
    pub parity_gives: bool,
}

impl StripeState {
    fn data(&self) -> StripSet {
        StripSet::range(0, self.k)
    }
    fn parity(&self) -> StripSet {
        StripSet::range(self.k, self.k + self.m)
    }

    /// Whether the strips that can be read say what all should hold. Copies need one, the pinned
    /// one if they may differ; a stripe with parity its data, or as many if parity is trusted.
    pub fn says_all(&self, mirror: bool) -> bool {
        match mirror {
            true => !self.readable.is_empty(),
            false => self.sources(self.data()).is_some(),
        }
    }

    /// The strips to read so that every data strip of `wanted` is known; `None` if there is no
    /// such set. Prefers data to parity.
    pub fn sources(&self, wanted: StripSet) -> Option<StripSet> {
        if wanted.without(self.readable).is_empty() {
            return Some(wanted);
        }
        let all = self.data().or(self.parity()).and(self.readable);
        let gives = self.parity_trusted || self.parity_gives;
        (gives && all.len() >= self.k).then(|| all.first(self.k))
    }
}

/// How a slice is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Every data strip is covered whole: compute parity from what is written.
    Full,
    /// Read what is written over and the parity, apply the difference.
    ReadModifyWrite,
    /// Read what is not written, compute parity anew.
    ReconstructWrite,
    /// Recover the lost data first, then as reconstruct-write.
    Degraded,
}

/// What to read and how to go on. Written are the covered data strips and the parities, as far
/// as they are writable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How parity is computed.
    pub mode: Mode,
    /// Strips to read before anything is written.
    pub read: StripSet,
    /// Parities to write.
    pub parity: StripSet,
}

/// Plans the write of a slice in which `touched` data strips are written at least partly and
/// `whole` ones completely. `None`: it can't be written without guessing.
pub fn plan_write(state: &StripeState, touched: StripSet, whole: StripSet) -> Option<Plan> {
    assert!(!touched.is_empty() && whole.without(touched).is_empty());
    assert!(state.readable.without(state.writable).is_empty());
    let all = state.data().or(state.parity());
    if all.without(state.readable).len() > state.m {
        return None;
    }
    let parity = state.parity().and(state.writable);
    let with = |mode, read| Plan { mode, read, parity };
    let rest = state.data().without(whole);
    if rest.is_empty() {
        return Some(with(Mode::Full, StripSet::default()));
    }
    let reconstruct = rest.without(state.readable).is_empty();
    let old = if parity.is_empty() { StripSet::default() } else { touched.or(parity) };
    let old_there = match mutants::is(Mutant::ModifyUnread) {
        true => state.writable,
        false => state.readable,
    };
    let modify = old.without(old_there).is_empty() && (state.parity_trusted || parity.is_empty());
    match (modify, reconstruct) {
        (true, true) if old.len() <= rest.len() => Some(with(Mode::ReadModifyWrite, old)),
        (true, false) => Some(with(Mode::ReadModifyWrite, old)),
        (_, true) => Some(with(Mode::ReconstructWrite, rest)),
        (false, false) => state.sources(state.data()).map(|read| with(Mode::Degraded, read)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(k: usize, m: usize) -> StripeState {
        let all = StripSet::range(0, k + m);
        let (parity_trusted, parity_gives) = (true, false);
        StripeState { k, m, readable: all, writable: all, parity_trusted, parity_gives }
    }

    fn lose(mut s: StripeState, strip: usize) -> StripeState {
        s.readable = s.readable.without(StripSet::one(strip));
        s.writable = s.writable.without(StripSet::one(strip));
        s
    }

    fn set(strips: &[usize]) -> StripSet {
        strips.iter().copied().collect()
    }

    #[test]
    fn healthy_writes_take_the_fewest_reads() {
        let s = state(7, 1);
        let plan = |t: &[usize], w: &[usize]| plan_write(&s, set(t), set(w)).unwrap();
        assert_eq!(plan(&[2], &[2]).mode, Mode::ReadModifyWrite);
        assert_eq!(plan(&[2], &[2]).read, set(&[2, 7]));
        assert_eq!(plan(&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4]).read, set(&[5, 6]));
        assert_eq!(plan(&[0, 1, 2, 3, 4, 5, 6], &[0, 1, 2, 3, 4, 5, 6]).mode, Mode::Full);
        let six = state(4, 2);
        let one = plan_write(&six, set(&[0]), set(&[0])).unwrap();
        assert_eq!((one.mode, one.read), (Mode::ReadModifyWrite, set(&[0, 4, 5])));
    }

    #[test]
    fn untrusted_parity_is_never_read() {
        let s = StripeState { parity_trusted: false, ..state(7, 2) };
        let plan = plan_write(&s, set(&[3]), set(&[])).unwrap();
        assert_eq!((plan.mode, plan.read), (Mode::ReconstructWrite, StripSet::range(0, 7)));
        assert_eq!(plan_write(&lose(s, 1), set(&[3]), set(&[3])), None);
        assert_eq!(lose(s, 1).sources(set(&[1])), None);
    }

    #[test]
    fn accepted_parity_gives_what_is_lost_and_is_made_anew() {
        let s = StripeState { parity_trusted: false, parity_gives: true, ..state(4, 2) };
        let s = lose(s, 1);
        assert_eq!(s.sources(set(&[1])), Some(set(&[0, 2, 3, 4])));
        let plan = plan_write(&s, set(&[3]), set(&[3])).unwrap();
        assert_eq!((plan.mode, plan.parity), (Mode::Degraded, set(&[4, 5])));
        let whole = plan_write(&s, set(&[1]), set(&[1])).unwrap();
        assert_eq!((whole.mode, whole.read), (Mode::ReconstructWrite, set(&[0, 2, 3])));
    }

    #[test]
    fn degraded_writes_use_what_is_left() {
        // The lost strip is not written: the difference goes into parity.
        let s = lose(state(7, 1), 3);
        assert_eq!(plan_write(&s, set(&[0]), set(&[0])).unwrap().mode, Mode::ReadModifyWrite);
        // The lost strip is written whole: parity anew from the other data.
        assert_eq!(plan_write(&s, set(&[3]), set(&[3])).unwrap().mode, Mode::ReconstructWrite);
        // The lost strip is written in part: recover its rest first.
        let part = plan_write(&s, set(&[3]), set(&[])).unwrap();
        assert_eq!((part.mode, part.read), (Mode::Degraded, set(&[0, 1, 2, 4, 5, 6, 7])));
        // The parity is lost: data alone, without a read.
        let bare = plan_write(&lose(state(7, 1), 7), set(&[0]), set(&[])).unwrap();
        assert_eq!((bare.read, bare.parity), (set(&[]), set(&[])));
        // Two lost under one parity: nothing can be done.
        assert_eq!(plan_write(&lose(s, 5), set(&[0]), set(&[0])), None);
    }

    #[test]
    fn a_parity_being_rebuilt_is_computed_anew() {
        let mut s = state(4, 2);
        s.readable = s.readable.without(StripSet::one(5));
        let plan = plan_write(&s, set(&[0]), set(&[0])).unwrap();
        assert_eq!((plan.mode, plan.parity), (Mode::ReconstructWrite, set(&[4, 5])));
        let plan = plan_write(&lose(s, 1), set(&[0]), set(&[0])).unwrap();
        assert_eq!((plan.mode, plan.read), (Mode::Degraded, set(&[0, 2, 3, 4])));
    }
}
