//! Every kind over many shapes, lengths and batch sizes.

use std::sync::Arc;

use parity::Code;
use parity::offload::{Answer, Operation};

use super::bench::{Case, Random, by_kernel, case, check, kind};
use crate::kind::Kind;

/// Jobs of `plans` with random lengths, as one batch.
fn batch(random: &mut Random, plans: &[Arc<Operation>], jobs: usize, unit: usize) -> Vec<Case> {
    let one = |_| {
        let plan = &plans[random.below(plans.len())];
        let most = if random.below(8) == 0 { 6000 } else { 300 } / (unit / 16);
        let len = unit * (1 + random.below(most.max(1)));
        case(random, plan, len)
    };
    (0..jobs).map(one).collect()
}

/// Codes of `m` parities, narrow and as wide as they can be.
fn codes(m: usize) -> Vec<Code> {
    let widths = [1, 2, 3, 4, 5, 8, 10, 17, 64, Code::max_data(m)];
    widths.iter().map(|&k| Code::new(k, m).unwrap()).collect()
}

#[test]
fn generates() {
    let mut random = Random(1);
    for m in 1..=3 {
        let plans: Vec<_> = codes(m).into_iter().map(Operation::generate).collect();
        let right = [Kind::GenerateP, Kind::GeneratePq, Kind::GeneratePqr][m - 1];
        assert!(plans.iter().all(|plan| kind(plan) == right));
        check(&batch(&mut random, &plans, 40, 16));
    }
    let plans: Vec<_> =
        [4, 5, 7, 8, 9, 32].into_iter().flat_map(codes).map(Operation::generate).collect();
    assert!(plans.iter().all(|plan| kind(plan) == Kind::Dot));
    check(&batch(&mut random, &plans, 40, 16));
}

/// A code of one data strip has ones for coefficients: every parity is a copy.
#[test]
fn verifies_what_is_right() {
    let mut random = Random(2);
    for m in [1, 2, 3, 4, 6, 32] {
        let plans: Vec<_> = codes(m).into_iter().map(Operation::verify).collect();
        let cases = batch(&mut random, &plans, 20, 16);
        for (_, answer) in by_kernel(&cases) {
            assert_eq!(answer, Answer::Differs(None));
        }
    }
}

/// Any strip, any byte: the first of several is answered.
#[test]
fn verifies_what_is_wrong() {
    let mut random = Random(3);
    for m in [1, 2, 3, 4, 6] {
        let plans: Vec<_> = codes(m).into_iter().map(Operation::verify).collect();
        let mut cases = batch(&mut random, &plans, 60, 16);
        let mut first = Vec::new();
        for case in &mut cases {
            let places: Vec<_> =
                (0..1 + random.below(3)).map(|_| random.below(case.strip_len())).collect();
            for &at in &places {
                let strip = random.below(case.inputs.len());
                case.inputs[strip][at] ^= 1 << random.below(8);
            }
            first.push(places.into_iter().min());
        }
        // Two flips at one place can cancel each other out only in one strip, or by the code.
        check(&cases);
        let found = by_kernel(&cases).into_iter().zip(first);
        let agree = found.filter(|((_, answer), at)| *answer == Answer::Differs(*at)).count();
        assert!(agree >= 59, "{agree} of 60 answers are the first place that was spoiled");
    }
}

#[test]
fn updates() {
    let mut random = Random(4);
    let code = Code::new(9, 2).unwrap();
    let wide = Code::new(200, 6).unwrap();
    let shapes: [(Kind, &[usize], Code); 4] = [
        (Kind::DeltaP, &[0], code),
        (Kind::DeltaQ, &[1], code),
        (Kind::DeltaPq, &[0, 1], code),
        (Kind::Deltas, &[0, 2, 3, 4, 5], wide),
    ];
    for (right, parities, code) in shapes {
        let parities: Vec<_> = parities.iter().map(|p| code.data() + p).collect();
        let changed: [&[usize]; 4] = [&[0], &[code.data() - 1], &[1, 2, 7], &[8, 3]];
        let plan = |changed: &&[usize]| Operation::update(code, changed, &parities);
        // Strip 0 has 1 for its coefficient in Q, which makes that delta one of P.
        let plans: Vec<_> = changed.iter().map(plan).filter(|plan| kind(plan) == right).collect();
        assert!(plans.len() >= 3);
        check(&batch(&mut random, &plans, 50, 16));
    }
}

#[test]
fn checksums() {
    let mut random = Random(5);
    for block in [16, 512, 4096] {
        let plans: Vec<_> = [1, 3, 8].map(|strips| Operation::checksum(strips, block)).into();
        check(&batch(&mut random, &plans, 20, block));
    }
}

/// More jobs than one, all alike: nothing depends on a job's number.
#[test]
fn a_large_batch() {
    let mut random = Random(6);
    let plan = Operation::generate(Code::new(4, 2).unwrap());
    let cases: Vec<_> = (0..5000).map(|_| case(&mut random, &plan, 512)).collect();
    check(&cases);
}
