//! A planted fault turns the suite red.
//!
//! Purpose: tests that cannot fail prove nothing. With one wrong table entry or coefficient,
//! both the start-up test and the test of all erasure patterns must notice.

use super::erasures;
use crate::kernel::Kernel;
use crate::tables::{TABLES, Tables};
use crate::{portable, selftest};

/// The kernels to plant faults in: each looks up other tables.
fn kernels(tables: &'static Tables) -> Vec<Kernel> {
    let mut candidates = vec![portable::CANDIDATE];
    #[cfg(target_arch = "x86_64")]
    candidates.extend([
        crate::avx512::GFNI,
        crate::avx512::AVX512,
        crate::avx2::GFNI,
        crate::avx2::AVX2,
    ]);
    candidates.into_iter().filter_map(|candidate| Kernel::probe(candidate, tables)).collect()
}

/// What notices a fault: the self-test, and all patterns of eight data strips.
fn noticed(plant: impl Fn(&mut Tables), parities: usize) {
    let mut tables = TABLES.clone();
    plant(&mut tables);
    let tables: &'static Tables = Box::leak(Box::new(tables));
    for kernel in kernels(tables) {
        assert!(!selftest::passes(&kernel), "{}: the self-test", kernel.name());
        let patterns = erasures::check_all(&[kernel], 8, parities);
        assert!(patterns.is_err(), "{}: the patterns", kernel.name());
    }
}

#[test]
fn no_fault_is_noticed_in_right_tables() {
    for kernel in kernels(&TABLES) {
        assert!(selftest::passes(&kernel), "{}", kernel.name());
        assert!(erasures::check_all(&[kernel], 8, 3).is_ok(), "{}", kernel.name());
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
