//! Launches as a file, so that the other forms of the kernels are tested with the same vectors.

use parity::Code;
use parity::offload::Operation;

use super::bench::{Case, Image, Random, case, kind};
use crate::kind::Kind;
use crate::pack::THREADS;

/// Where the file goes; without it nothing is written.
const VARIABLE: &str = "PALISADE_LAUNCHES";

/// Jobs of every kind, in batches of jobs of different lengths.
fn batches(random: &mut Random) -> Vec<Vec<Case>> {
    let code = |k, m| Code::new(k, m).unwrap();
    let mut plans = Vec::new();
    for (k, m) in [(1, 1), (8, 1), (1, 2), (5, 2), (10, 2), (7, 3), (6, 4), (5, 9)] {
        plans.push(vec![Operation::generate(code(k, m))]);
        plans.push(vec![Operation::verify(code(k, m))]);
    }
    let recover = |missing: &[usize]| {
        let present: Vec<_> = (0..9).map(|i| !missing.contains(&i)).collect();
        Operation::recover(code(6, 3), &present, missing).unwrap()
    };
    plans.push(vec![recover(&[0, 1]), recover(&[2, 6]), recover(&[0, 3, 5]), recover(&[1])]);
    plans.push(vec![recover(&[7])]);
    plans.push([[0], [5]].map(|changed| Operation::update(code(6, 2), &changed, &[6])).into());
    plans.push([[1], [5]].map(|changed| Operation::update(code(6, 2), &changed, &[7])).into());
    plans.push([[0], [5]].map(|changed| Operation::update(code(6, 2), &changed, &[6, 7])).into());
    plans.push(vec![Operation::update(code(6, 8), &[1, 2, 4], &[6, 7, 9, 10, 13])]);
    plans.push([512, 4096].map(|block| Operation::checksum(2, block)).into());
    let batch = |plans: Vec<std::sync::Arc<Operation>>| {
        let lengths = if kind(&plans[0]) == Kind::Crc32c { [8192, 4096] } else { [4112, 512] };
        let jobs = plans.iter().flat_map(|plan| lengths.map(|len| (plan, len)));
        jobs.map(|(plan, len)| case(random, plan, len)).collect::<Vec<_>>()
    };
    plans.into_iter().map(batch).collect()
}

/// Spoils every second verification, so that there is something to find.
fn spoil(random: &mut Random, cases: &mut [Case]) {
    let compares = |case: &&mut Case| kind(&case.operation).compares();
    for case in cases.iter_mut().skip(1).step_by(2).filter(compares) {
        let (strip, at) = (random.below(case.inputs.len()), random.below(case.strip_len()));
        case.inputs[strip][at] ^= 0x10;
    }
}

/// One launch of the file.
fn encode(image: &Image, after: &[u8]) -> Vec<u8> {
    let packed = &image.packed;
    let mut bytes = packed.kind().name().as_bytes().to_vec();
    bytes.resize(32, 0);
    for number in [packed.in_len as u64, packed.out_len as u64, packed.jobs()] {
        bytes.extend(number.to_le_bytes());
    }
    for number in [packed.blocks(), packed.count(), THREADS, 0] {
        bytes.extend(number.to_le_bytes());
    }
    [&image.input[..], &image.out, after].iter().for_each(|part| bytes.extend(*part));
    bytes
}

#[test]
fn every_kernel_is_written_down() {
    let mut random = Random(7);
    let mut file = b"PALIKRN2".to_vec();
    let mut kinds = Vec::new();
    for mut cases in batches(&mut random) {
        // Recoveries of one batch can be of different kinds.
        spoil(&mut random, &mut cases);
        while let Some(first) = cases.first().map(|case| kind(&case.operation)) {
            let (batch, rest): (Vec<_>, Vec<_>) =
                cases.into_iter().partition(|case| kind(&case.operation) == first);
            cases = rest;
            let image = Image::new(&batch);
            let after = image.expected(&batch);
            assert_eq!(image.run(), after, "{first:?}");
            file.extend(encode(&image, &after));
            kinds.push(first);
        }
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL);
    if let Some(path) = std::env::var_os(VARIABLE) {
        std::fs::write(path, file).unwrap();
    }
}
