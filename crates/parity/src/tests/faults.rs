//! A planted fault turns the suite red.
//!
//! Purpose: tests that cannot fail prove nothing. With one wrong table entry or coefficient, in
//! any kernel and on the model, both the start-up test and the test of all erasure patterns must
//! notice; the start-up test must notice, as well, a wrong byte in what any kind of job streams.
#![allow(unsafe_code)]

use super::{erasures, streams};
use crate::job::Job;
use crate::kernel::{Candidate, Kernel};
use crate::tables::{TABLES, Tables};
use crate::{Stores, portable, select, selftest};

/// What notices a fault: the self-test, and all patterns of eight data strips.
fn noticed(plant: impl Fn(&mut Tables), parities: usize) {
    let mut tables = TABLES.clone();
    plant(&mut tables);
    let tables: &'static Tables = Box::leak(Box::new(tables));
    for kernel in select::all_supported_over(tables) {
        assert!(!selftest::passes(&kernel), "{}: the self-test", kernel.name());
        let patterns = erasures::check_all(&[kernel], 8, parities);
        assert!(patterns.is_err(), "{}: the patterns", kernel.name());
    }
}

#[test]
fn no_fault_is_noticed_in_right_tables() {
    for kernel in select::all_supported() {
        assert!(selftest::passes(&kernel), "{}", kernel.name());
        erasures::check_all(&[kernel], 8, 3).unwrap();
    }
}

#[test]
fn wrong_product_is_noticed() {
    // 128 = g^7 is what the last of eight strips is multiplied by in Q.
    noticed(
        |tables| {
            tables.nibbles[128][1] ^= 0x10;
            tables.matrices[128] ^= 1 << 33;
        },
        3,
    );
}

#[test]
fn wrong_coefficient_of_q_is_noticed() {
    noticed(|tables| tables.coefficients[1][5] ^= 0x04, 4);
}

#[test]
fn wrong_coefficient_of_r_is_noticed() {
    noticed(|tables| tables.coefficients[2][5] ^= 0x80, 3);
}

#[test]
fn wrong_coefficient_of_a_fourth_parity_is_noticed() {
    noticed(|tables| tables.coefficients[4][7] ^= 0x01, 4);
}

/// The kinds of jobs that can stream.
const STREAMING: usize = 8;

/// Which kind of streaming job it is, and one of its outputs.
fn streaming(job: &mut Job<'_>) -> Option<(usize, *mut u8)> {
    let one = |strip: &mut Option<&mut [u8]>| strip.as_mut().map(|strip| strip.as_mut_ptr());
    let (kind, to, stores) = match job {
        Job::P { p, stores, .. } => (0, p.as_mut_ptr(), stores),
        Job::Q { q, stores, .. } => (1, q.as_mut_ptr(), stores),
        Job::Pq { q, stores, .. } => (2, q.as_mut_ptr(), stores),
        Job::Pqr { r, stores, .. } => (3, r.as_mut_ptr(), stores),
        Job::Dot { outputs, stores, .. } => (4, outputs.starts()[0], stores),
        Job::ViaP { q, stores, .. } => (5, q.as_mut_ptr(), stores),
        Job::ViaQ { d, p, stores, .. } => (6, one(d).or(one(p))?, stores),
        Job::Two { x, y, stores, .. } => (7, one(x).or(one(y))?, stores),
        _ => return None,
    };
    (*stores == Stores::Streaming).then_some((kind, to))
}

/// The portable kernel, with a wrong byte in what jobs of one kind stream.
unsafe fn spoiled<const KIND: usize>(mut job: Job<'_>, tables: &Tables) -> Option<usize> {
    let output = streaming(&mut job);
    streams::SWEPT.set(0);
    // SAFETY: the portable kernel needs no processor feature; the caller vouches for the job.
    let answer = unsafe { (portable::CANDIDATE.run)(job, tables) };
    if let Some((kind, to)) = output
        && kind == KIND
        && streams::SWEPT.get() > 0
    {
        // SAFETY: what was streamed lies before the output's end, and 32 bytes are the least.
        unsafe { *to.add(31) ^= 0x20 };
    }
    answer
}

/// Says that all is well wherever a single row is checked.
unsafe fn trusting(job: Job<'_>, tables: &Tables) -> Option<usize> {
    match job {
        Job::CheckDot { rows: [_], .. } => None,
        // SAFETY: as above.
        _ => unsafe { (portable::CANDIDATE.run)(job, tables) },
    }
}

/// Whether the self-test finds nothing wrong with `run`.
fn passes(run: unsafe fn(Job<'_>, &Tables) -> Option<usize>) -> bool {
    let candidate = Candidate { name: "spoiled", supported: || true, run };
    selftest::passes(&Kernel::probe(candidate, &TABLES).expect("supported"))
}

/// The self-test streams from every kind of job that can.
#[test]
fn wrong_streams_are_noticed_at_start() {
    assert!(passes(spoiled::<STREAMING>));
    assert!(!passes(spoiled::<0>), "P");
    assert!(!passes(spoiled::<1>), "Q");
    assert!(!passes(spoiled::<2>), "P and Q");
    assert!(!passes(spoiled::<3>), "P, Q and R");
    assert!(!passes(spoiled::<4>), "rows of coefficients");
    assert!(!passes(spoiled::<5>), "a strip by P, and Q");
    assert!(!passes(spoiled::<6>), "a strip by Q, and P");
    assert!(!passes(spoiled::<7>), "two strips");
}

/// The self-test locates, and what it locates is checked.
#[test]
fn a_strip_blamed_in_haste_is_noticed_at_start() {
    assert!(!passes(trusting));
}
