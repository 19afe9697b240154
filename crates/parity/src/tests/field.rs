//! Laws of the field, and the two sets of tables against a third derivation.

use crate::{reference, tables};

/// a·b as polynomials over GF(2), then the remainder modulo 0x11d by long division.
pub(super) fn product(a: u8, b: u8) -> u8 {
    let mut wide = (0..8).filter(|i| b >> i & 1 == 1).fold(0u16, |sum, i| sum ^ (a as u16) << i);
    for bit in (8..16).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11d << (bit - 8);
        }
    }
    wide as u8
}

#[test]
fn all_products_agree() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(tables::multiply(a, b), product(a, b), "{a}·{b}");
            assert_eq!(reference::multiply(a, b), product(a, b), "{a}·{b}");
        }
    }
}

#[test]
fn tables_hold_products() {
    for c in 0..=255u8 {
        let nibbles = &tables::TABLES.nibbles[c as usize];
        let matrix = tables::TABLES.matrices[c as usize];
        for x in 0..=255u8 {
            let shuffled = nibbles[(x & 15) as usize] ^ nibbles[16 + (x >> 4) as usize];
            let row = |i: usize| (matrix >> (8 * (7 - i))) as u8;
            let affine = (0..8).map(|i| ((row(i) & x).count_ones() as u8 & 1) << i).sum();
            assert_eq!((shuffled, affine), (product(c, x), product(c, x)), "{c}·{x}");
        }
    }
}

#[test]
fn laws_hold() {
    for a in 0..=255u8 {
        for b in 0..=255u8 {
            assert_eq!(product(a, b), product(b, a));
            for c in [1, 2, 29, 142, 255] {
                assert_eq!(product(a, b ^ c), product(a, b) ^ product(a, c));
                assert_eq!(product(product(a, b), c), product(a, product(b, c)));
            }
            if b != 0 {
                assert_eq!(product(reference::divide(a, b), b), a);
                assert_eq!(product(a, tables::inverse(b)), reference::divide(a, b));
            }
        }
    }
}

#[test]
fn generator_has_order_255() {
    let mut power = 1;
    for exponent in 0..255 {
        assert!(exponent == 0 || power != 1, "order {exponent}");
        assert_eq!(tables::power(exponent), power);
        assert_eq!(reference::coefficient(3, 1, exponent), power);
        assert_eq!(reference::coefficient(3, 0, exponent), 1);
        power = product(power, 2);
    }
    assert_eq!(power, 1);
}

/// Values printed in "The mathematics of RAID-6" and known from Linux's tables.
#[test]
fn known_values() {
    assert_eq!(product(0x80, 2), 0x1d);
    assert_eq!(tables::power(8), 0x1d);
    assert_eq!(tables::inverse(2), 0x8e);
    assert_eq!(tables::power(254), 0x8e);
}
