//! Recovery over every erasure pattern.
//!
//! Invariant: the number of patterns is asserted, so that none is left out in silence.

use std::collections::BTreeMap;

use parity::Code;
use parity::offload::Operation;

use super::bench::{Case, Random, case, check, kind};
use crate::kind::Kind;

/// Bytes of a strip: more than a block of threads of one job, less of another.
const LENGTHS: [usize; 3] = [16, 48, 512];

/// The strips of each bit pattern with 1 to `most` of `n` bits set.
fn losses(n: usize, most: u32) -> impl Iterator<Item = Vec<usize>> {
    let sets = (1u32..1 << n).filter(move |set| set.count_ones() <= most);
    sets.map(move |set| (0..n).filter(|i| set >> i & 1 == 1).collect())
}

/// Recovers every loss of 1 to m strips of k+m, all of it wanted or, in one of three, all but one.
fn check_all(k: usize, m: usize) -> usize {
    let code = Code::new(k, m).unwrap();
    let mut random = Random((k * 100 + m) as u64);
    let mut batches: BTreeMap<Kind, Vec<Case>> = BTreeMap::new();
    let mut count = 0;
    for missing in losses(k + m, m as u32) {
        count += 1;
        let present: Vec<_> = (0..k + m).map(|i| !missing.contains(&i)).collect();
        let mut lost = missing;
        if count % 3 == 0 && lost.len() > 1 {
            lost.remove(count / 3 % lost.len());
        }
        let operation = Operation::recover(code, &present, &lost).unwrap();
        let case = case(&mut random, &operation, LENGTHS[count % LENGTHS.len()]);
        batches.entry(kind(&operation)).or_default().push(case);
    }
    batches.values().for_each(|cases| check(cases));
    count
}

/// Sum of the binomials of `n` over 1 to `most`.
fn patterns(n: usize, most: usize) -> usize {
    let binomial = |r: usize| (1..=r).fold(1, |b, i| b * (n - r + i) / i);
    (1..=most).map(binomial).sum()
}

#[test]
fn up_to_three_losses_of_up_to_16() {
    for (k, m) in (1..=13).flat_map(|k| (1..=3).map(move |m| (k, m))) {
        assert_eq!(check_all(k, m), patterns(k + m, m));
    }
}

#[test]
fn all_losses_of_up_to_6_and_8() {
    for (k, m) in (1..=6).flat_map(|k| (4..=8).map(move |m| (k, m))) {
        assert_eq!(check_all(k, m), patterns(k + m, m));
    }
}

/// What is missing beyond a code's strength is said, as the parity crate says it.
#[test]
fn too_many_losses_are_refused() {
    let code = Code::new(4, 2).unwrap();
    let present = [true, false, false, true, false, true];
    let error = Operation::recover(code, &present, &[1, 2]).unwrap_err();
    assert_eq!(error, parity::CodeError::TooManyMissing { missing: 3, parities: 2 });
}
