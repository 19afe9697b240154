//! A planted fault turns the suite red.
//!
//! Purpose: tests that cannot fail prove nothing. With one wrong table entry or coefficient, in
//! any kernel and on the model, both the start-up test and the test of all erasure patterns must
//! notice; the start-up test must notice, as well, a wrong byte in what any kind of job streams.

use super::erasures;
use crate::kernel::spoiled::{CARELESS, STREAMING, TRUSTING, streaming_wrongly};
use crate::kernel::{Candidate, Kernel};
use crate::tables::{TABLES, Tables};
use crate::{select, selftest};

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

/// Whether the self-test finds nothing wrong with a kernel.
fn passes(candidate: Candidate) -> bool {
    selftest::passes(&Kernel::probe(candidate, &TABLES).expect("supported"))
}

/// The self-test streams from every kind of job that can.
#[test]
fn wrong_streams_are_noticed_at_start() {
    assert!(passes(streaming_wrongly::<STREAMING>()));
    assert!(!passes(streaming_wrongly::<0>()), "P");
    assert!(!passes(streaming_wrongly::<1>()), "Q");
    assert!(!passes(streaming_wrongly::<2>()), "P and Q");
    assert!(!passes(streaming_wrongly::<3>()), "P, Q and R");
    assert!(!passes(streaming_wrongly::<4>()), "rows of coefficients");
    assert!(!passes(streaming_wrongly::<5>()), "a strip by P, and Q");
    assert!(!passes(streaming_wrongly::<6>()), "a strip by Q, and P");
    assert!(!passes(streaming_wrongly::<7>()), "two strips");
}

/// The self-test multiplies by 0.
#[test]
fn a_product_with_0_is_noticed_at_start() {
    assert!(!passes(CARELESS));
}

/// The self-test locates, and what it locates is checked.
#[test]
fn a_strip_blamed_in_haste_is_noticed_at_start() {
    assert!(!passes(TRUSTING));
}
