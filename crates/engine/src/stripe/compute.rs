//! What is computed of a stripe's strips: here, or by whoever does jobs for this core.
//!
//! Where there is an accelerator it is asked for each job that it may want: parities of new data,
//! lost strips, whether parities are the data's. Differences of small writes are applied here:
//! they are gone before anybody else has begun.
//!
//! Invariants
//! - A job's outputs are its own until it is done, its inputs are shared and not written.
//! - What was not done is computed here into other slices. The buffers of that job do not come
//!   back to this stripe: who took them may be late, and writes over nothing that is in use.

use crate::Host;
use crate::limits::PARITIES_MAX;
use crate::mutants::{self, Mutant};
use crate::stripe::execute::{Columns, STRIPS, Slice, Work};
use crate::stripe::plan::StripSet;
use crate::stripe::slice::Fragment;
use arrayvec::ArrayVec;
use core::cell::RefCell;
use io::{Buf, BufMut, Reach};
use parity::offload::{Answer, Job, Offload, Operation, Undone};
use parity::{Change, Code};
use std::rc::Rc;
use std::sync::Arc;

/// Operations that are kept worked out, for each array on each core: one for each loss of drives
/// that jobs were given for. More are rare, and cost a few microseconds each.
const KEPT: usize = 32;

/// Who does jobs for a core.
#[derive(Clone)]
pub struct Accelerator {
    /// The jobs' way to it.
    pub jobs: Rc<dyn Offload<Buf, BufMut>>,
    /// What memory it reaches by itself.
    pub reach: Arc<dyn Reach>,
}

/// An array's part of it: the operations of its codes.
pub(crate) struct Accelerated {
    jobs: Rc<dyn Offload<Buf, BufMut>>,
    kept: RefCell<Vec<(Wanted, Arc<Operation>)>>,
}

/// What shall be computed from what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The strips of the second set, from those of the first.
    Strips(Code, StripSet, StripSet),
    /// Whether the parities are the data's.
    Agreement(Code),
}

impl Accelerated {
    pub fn new(jobs: Rc<dyn Offload<Buf, BufMut>>) -> Self {
        Self { jobs, kept: RefCell::default() }
    }

    fn operation(&self, wanted: Wanted) -> Arc<Operation> {
        let mut kept = self.kept.borrow_mut();
        if let Some((_, operation)) = kept.iter().find(|(of, _)| *of == wanted) {
            return operation.clone();
        }
        let operation = wanted.operation();
        if kept.len() == KEPT {
            kept.clear();
        }
        kept.push((wanted, operation.clone()));
        operation
    }
}

impl Wanted {
    fn operation(self) -> Arc<Operation> {
        let (code, given, lost) = match self {
            Wanted::Agreement(code) => return Operation::verify(code),
            Wanted::Strips(code, given, lost) => (code, given, lost),
        };
        let data = StripSet::range(0, code.data());
        let parities = StripSet::range(code.data(), code.strips());
        if (data.without(given).is_empty(), lost) == (true, parities) {
            return Operation::generate(code);
        }
        let present: ArrayVec<bool, STRIPS> = (0..code.strips()).map(|s| given.has(s)).collect();
        let lost: ArrayVec<usize, STRIPS> = lost.iter().collect();
        let made = Operation::recover(code, &present, &lost);
        made.expect("the planner reads enough to recover")
    }
}

impl<E: Host> Work<'_, E> {
    /// The code of the stripe.
    pub fn code(&self) -> Code {
        Code::new(self.state.k, self.state.m).expect("a layout's k and m are a code's")
    }

    /// Read-modify-write: applies what changes to the parities in `columns`.
    pub(super) fn apply_difference(
        &self,
        slice: &Slice<'_>,
        parities: StripSet,
        columns: &mut Columns,
    ) {
        if parities.is_empty() {
            return;
        }
        let k = self.state.k;
        let (data, parity) = columns.split_at_mut(k);
        let mut rest = slice.fragments;
        while let Some(first) = rest.first() {
            // Strips that change in the same bytes go into parity in one pass over it.
            let alike = |f: &&Fragment| (f.from, f.to()) == (first.from, first.to());
            let (these, behind) = rest.split_at(rest.iter().take_while(alike).count());
            rest = behind;
            let range = (first.from - slice.lo) as usize..(first.to() - slice.lo) as usize;
            let mut outputs = ArrayVec::<Option<&mut [u8]>, PARITIES_MAX>::new();
            for column in parity.iter_mut().take(self.state.m) {
                outputs.push(column.as_mut().map(|c| &mut c[range.clone()]));
            }
            let mut changes = ArrayVec::<Change<'_>, STRIPS>::new();
            for fragment in these {
                let index = usize::from(fragment.strip);
                let (begin, _) = slice.span(index);
                let old = data[index].as_ref().expect("old data was read");
                let old = &old[(fragment.from - begin) as usize..(fragment.to() - begin) as usize];
                changes.push(Change { index, old, new: &fragment.data });
            }
            self.code().update_many(&changes, &mut outputs);
        }
    }

    /// Recovers every data strip that was not read from those that were.
    pub async fn recover_data(&self, bytes: usize, columns: &mut Columns) {
        let lost: ArrayVec<usize, PARITIES_MAX> =
            (0..self.state.k).filter(|strip| columns[*strip].is_none()).collect();
        self.recover(&lost, bytes, columns).await;
    }

    /// Recovers the `lost` strips into new columns.
    pub async fn recover(&self, lost: &[usize], bytes: usize, columns: &mut Columns) {
        if lost.is_empty() {
            return;
        }
        let given = (0..columns.len()).filter(|strip| columns[*strip].is_some()).collect();
        let wanted = Wanted::Strips(self.code(), given, lost.iter().copied().collect());
        let outputs = match self.elsewhere(wanted, bytes, |_| None, columns).await {
            Some((_, outputs)) => outputs.into_iter().collect(),
            None => {
                let strips: ArrayVec<Option<&[u8]>, STRIPS> =
                    columns.iter().map(|c| c.as_ref().map(|c| &c[..])).collect();
                self.here(wanted, (lost.len(), bytes), |out| {
                    let recovered = self.code().recover(&strips, lost, out);
                    recovered.expect("the planner reads enough to recover");
                })
            }
        };
        for (strip, output) in lost.iter().zip(outputs) {
            columns[*strip] = Some(output);
        }
    }

    /// Whether all strips, which are in `columns`, agree, if somebody else says so; `None`: nobody
    /// was asked or answered.
    pub async fn agree_elsewhere(&self, bytes: usize, columns: &mut Columns) -> Option<bool> {
        let wanted = Wanted::Agreement(self.code());
        let (answer, _) = self.elsewhere(wanted, bytes, |_| None, columns).await?;
        Some(answer == Answer::Differs(None))
    }

    /// Lays the new bytes over the old columns and computes all parities of the slice. They are
    /// stored through the caches: scratch slices are used again at once, and what hands them to a
    /// drive reads them next (a copy into the page cache, or the controller from the cache).
    pub(super) async fn compute_parity(
        &self,
        slice: &Slice<'_>,
        columns: &mut Columns,
        parity: &mut ArrayVec<Option<Buf>, PARITIES_MAX>,
    ) {
        for fragment in slice.fragments {
            let strip = usize::from(fragment.strip);
            if slice.single(strip).is_none() {
                let column = columns[strip].get_or_insert_with(|| self.scratch(slice.bytes()));
                let range =
                    (fragment.from - slice.lo) as usize..(fragment.to() - slice.lo) as usize;
                column[range].copy_from_slice(&fragment.data);
            }
        }
        let (code, bytes) = (self.code(), slice.bytes());
        let data = StripSet::range(0, code.data());
        let wanted = Wanted::Strips(code, data, StripSet::range(code.data(), code.strips()));
        let single = |strip| slice.single(strip).cloned();
        let mut outputs: ArrayVec<BufMut, PARITIES_MAX> =
            match self.elsewhere(wanted, bytes, single, columns).await {
                Some((_, outputs)) => outputs.into_iter().collect(),
                None => {
                    let data: ArrayVec<&[u8], STRIPS> = (0..self.state.k)
                        .map(|strip| match slice.single(strip) {
                            Some(new) => &new[..],
                            None => &columns[strip].as_ref().expect("read or written whole")[..],
                        })
                        .collect();
                    self.here(wanted, (self.state.m, bytes), |out| code.generate(&data, out))
                }
            };
        if let (true, Some(byte)) = (mutants::is(Mutant::Canary), outputs[0].last_mut()) {
            *byte ^= 1;
        }
        parity.extend(outputs.into_iter().map(|o| Some(o.freeze())));
    }

    /// Has `work` compute here what was wanted: so many strips, of so many bytes.
    fn here(
        &self,
        wanted: Wanted,
        (count, bytes): (usize, usize),
        work: impl Fn(&mut [&mut [u8]]),
    ) -> ArrayVec<BufMut, PARITIES_MAX> {
        let mut outputs: ArrayVec<BufMut, PARITIES_MAX> =
            (0..count).map(|_| self.scratch(bytes)).collect();
        let mut out: ArrayVec<&mut [u8], PARITIES_MAX> =
            outputs.iter_mut().map(|o| &mut o[..]).collect();
        match self.array.accelerated() {
            Some(helper) => {
                helper.jobs.here(&helper.operation(wanted), bytes, &mut || work(&mut out));
            }
            None => work(&mut out),
        }
        drop(out);
        outputs
    }

    /// Has somebody else do it, if there is one who wants to: what was found out, and the strips
    /// that were computed. A strip is read from what `single` has of it, else from its column.
    /// `None`: it is to be done here.
    async fn elsewhere(
        &self,
        wanted: Wanted,
        bytes: usize,
        single: impl Fn(usize) -> Option<Buf>,
        columns: &mut Columns,
    ) -> Option<(Answer, Vec<BufMut>)> {
        let helper = self.array.accelerated()?;
        let operation = helper.operation(wanted);
        if !helper.jobs.wants(&operation, bytes, self.array.scratch().is_lone()) {
            return None;
        }
        let mut shared = Vec::new();
        let mut share = |strip: usize| {
            let column = columns[strip].take().expect("read, or written whole").freeze();
            shared.push((strip, column.clone()));
            column
        };
        let inputs = operation.reads().iter();
        let inputs = inputs.map(|&s| single(s).unwrap_or_else(|| share(s))).collect();
        let outputs = || operation.writes().iter().map(|_| self.scratch(bytes)).collect();
        let job = Job { operation: operation.clone(), inputs, outputs: outputs() };
        let mut done = helper.jobs.submit(job).await;
        if done.is_err() && mutants::is(Mutant::UndoneBelieved) {
            done = Ok((Answer::Differs(None), outputs()));
        }
        for (strip, column) in shared {
            columns[strip] = Some(self.unshared(column));
        }
        done.map_err(|Undone| self.array.scratch().lent()).ok()
    }

    /// A column that was shared with a job. One that the job still reads is copied.
    fn unshared(&self, column: Buf) -> BufMut {
        column.try_thaw().unwrap_or_else(|column| {
            self.array.scratch().lent();
            let mut copy = self.scratch(column.len());
            copy.copy_from_slice(&column);
            copy
        })
    }
}
