//! Plans: which kernel does an operation, with which factors.
//!
//! Purpose: all that is the same for every job of one operation, worked out once.
//! Invariant: `kind` and `factors` say exactly what `operation` says.

use std::sync::Arc;

use parity::Code;
use parity::offload::{Answer, Operation, What};

use crate::factor;
use crate::kind::Kind;
use crate::pack::blocks;

/// One operation as a kernel does it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) operation: Arc<Operation>,
    pub(crate) kind: Kind,
    /// As kernels take them.
    pub(crate) factors: Vec<u8>,
}

impl Plan {
    pub(crate) fn new(operation: &Arc<Operation>) -> Arc<Plan> {
        let (reads, writes) = (operation.reads(), operation.writes());
        let (kind, factors) = match operation.what() {
            What::Generate(code) => product(&rows(code, writes, reads)),
            What::Update(code) => {
                let changed: Vec<_> = reads.iter().copied().step_by(2).collect();
                changes(&rows(code, writes, &changed))
            }
            What::Recover(code) => product(&recovery(code, reads, writes)),
            What::Verify(code) => {
                let strips: Vec<_> = (0..code.strips()).collect();
                let (data, parities) = strips.split_at(code.data());
                let (kind, factors) = product(&rows(code, parities, data));
                (comparing(kind), factors)
            }
            What::Checksum(block) => (Kind::Crc32c, factor::crc_powers(block)),
        };
        Arc::new(Plan { operation: operation.clone(), kind, factors })
    }

    /// Strips that are read to compute, strips that are compared, and strips that are written.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let reads = self.operation.reads().len();
        let compared = match self.operation.what() {
            What::Verify(code) => code.parities(),
            _ => 0,
        };
        (reads - compared, compared, self.operation.writes().len())
    }

    /// Bytes of a block that a checksum is of; 0 for other operations.
    pub(crate) fn block(&self) -> usize {
        match self.operation.what() {
            What::Checksum(block) => block,
            _ => 0,
        }
    }

    /// What a device answered in `bytes`, its answers, of a job on strips of `len` bytes. `None`:
    /// it has not done all of it.
    pub(crate) fn answer(&self, bytes: &[u8], len: usize) -> Option<Answer> {
        let words = bytes.chunks_exact(4);
        let mut words = words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        match self.operation.what() {
            What::Verify(_) => {
                let (first, compared) = (words.next()?, words.next()?);
                let whole = compared as usize == blocks(len);
                let first = (first != 0).then_some((u32::MAX - first) as usize);
                whole.then_some(Answer::Differs(first))
            }
            What::Checksum(_) => Some(Answer::Checksums(words.collect())),
            _ => Some(Answer::Written),
        }
    }
}

/// Whether strips of `len` bytes can be given to a kernel: a multiple of 16 (for checksums of the
/// block) above 0 and below 2^32.
pub(crate) fn takes(operation: &Operation, len: usize) -> bool {
    let unit = match operation.what() {
        What::Checksum(block) => block,
        _ => 16,
    };
    len > 0 && u32::try_from(len).is_ok() && len.is_multiple_of(unit)
}

/// How many u32 a job answers with.
pub(crate) fn answers(operation: &Operation, len: usize) -> usize {
    match operation.what() {
        What::Verify(_) => 2,
        What::Checksum(block) => operation.reads().len() * (len / block),
        _ => 0,
    }
}

/// The coefficients of the data strips `data` in each of `parities`.
fn rows(code: Code, parities: &[usize], data: &[usize]) -> Vec<Vec<u8>> {
    let row = |&parity: &usize| {
        data.iter().map(|&strip| code.coefficient(parity - code.data(), strip)).collect()
    };
    parities.iter().map(row).collect()
}

/// The coefficients of `reads` in each of `lost`. A recovery is linear: of strips that hold the
/// unit vectors it gives its coefficients.
fn recovery(code: Code, reads: &[usize], lost: &[usize]) -> Vec<Vec<u8>> {
    let k = code.data();
    let units: Vec<Vec<u8>> = (0..k).map(|i| (0..k).map(|j| u8::from(i == j)).collect()).collect();
    let mut strips = vec![None; code.strips()];
    for (unit, &strip) in units.iter().zip(reads) {
        strips[strip] = Some(&unit[..]);
    }
    let mut rows = vec![vec![0; k]; lost.len()];
    let mut out: Vec<&mut [u8]> = rows.iter_mut().map(|row| &mut row[..]).collect();
    code.recover(&strips, lost, &mut out).expect("the operation was made for what is there");
    rows
}

fn ones(row: &[u8]) -> bool {
    row.iter().all(|&c| c == 1)
}

/// The kernel that adds `rows` times the changes, and its factors.
fn changes(rows: &[Vec<u8>]) -> (Kind, Vec<u8>) {
    let (kind, used) = match rows {
        [p] if ones(p) => (Kind::DeltaP, &rows[..0]),
        [_] => (Kind::DeltaQ, rows),
        [p, _] if ones(p) => (Kind::DeltaPq, &rows[1..]),
        _ => (Kind::Deltas, rows),
    };
    (kind, encoded(used))
}

/// The kernel for `rows` times the inputs, and its factors: by doubling where they are P, Q, R.
fn product(rows: &[Vec<u8>]) -> (Kind, Vec<u8>) {
    assert!(!rows.is_empty(), "something to compute");
    let is_power = |(r, row): (usize, &Vec<u8>)| {
        row.iter().enumerate().all(|(i, &c)| c == factor::power(r * i))
    };
    let doubling = rows.len() <= 3 && rows.iter().enumerate().all(is_power);
    match rows.len() {
        1 if doubling => (Kind::GenerateP, Vec::new()),
        2 if doubling => (Kind::GeneratePq, Vec::new()),
        3 if doubling => (Kind::GeneratePqr, Vec::new()),
        _ => (Kind::Dot, encoded(rows)),
    }
}

/// The kernel that compares what `kind` writes.
fn comparing(kind: Kind) -> Kind {
    match kind {
        Kind::GenerateP => Kind::VerifyP,
        Kind::GeneratePq => Kind::VerifyPq,
        Kind::GeneratePqr => Kind::VerifyPqr,
        _ => Kind::VerifyDot,
    }
}

fn encoded(rows: &[Vec<u8>]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|&c| factor::encode(c)).collect()
}

/// How many plans are remembered.
const REMEMBERED: usize = 64;

/// Plans of the operations that jobs were for last.
#[derive(Default)]
pub(crate) struct Plans {
    plans: Vec<Arc<Plan>>,
    /// Which one goes next.
    oldest: usize,
}

impl Plans {
    /// The plan of an operation. Jobs of one shape share their operation, so its address nearly
    /// always finds it.
    pub(crate) fn of(&mut self, operation: &Arc<Operation>) -> Arc<Plan> {
        let same = |plan: &&Arc<Plan>| Arc::ptr_eq(&plan.operation, operation);
        let equal = |plan: &&Arc<Plan>| plan.operation == *operation;
        if let Some(plan) = self.plans.iter().find(same).or_else(|| self.plans.iter().find(equal)) {
            return plan.clone();
        }
        let plan = Plan::new(operation);
        if self.plans.len() < REMEMBERED {
            self.plans.push(plan.clone());
        } else {
            self.plans[self.oldest] = plan.clone();
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_found_by_address_and_by_value_and_are_bounded() {
        let code = Code::new(200, 2).unwrap();
        let mut plans = Plans::default();
        let first = Operation::update(code, &[0], &[201]);
        let plan = plans.of(&first);
        assert!(Arc::ptr_eq(&plan, &plans.of(&first)));
        assert!(Arc::ptr_eq(&plan, &plans.of(&Operation::update(code, &[0], &[201]))));
        for strip in 1..200 {
            plans.of(&Operation::update(code, &[strip], &[201]));
            assert!(plans.plans.len() <= REMEMBERED);
        }
        assert!(!Arc::ptr_eq(&plan, &plans.of(&first)), "forgotten by now");
    }
}
