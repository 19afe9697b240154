//! The naive reference: one byte at a time, by logarithms, as the definition says it.
//!
//! Purpose: the oracle of the start-up self-test, of the tests, and of whoever checks kernels
//! elsewhere. Slow on purpose.
//! Invariant: shares no table and no code with the kernels; its logarithms come from repeated
//! doubling, not from the polynomial multiplication of `tables`.

/// Powers of the generator, twice in a row so that sums of two logarithms need no reduction.
const ANTILOG: [u8; 510] = antilogarithms();
/// Logarithms to base 2; the entry of 0 is never used.
const LOG: [u8; 256] = logarithms();

const fn antilogarithms() -> [u8; 510] {
    let mut table = [0; 510];
    let (mut value, mut i) = (1u8, 0);
    while i < 255 {
        table[i] = value;
        table[i + 255] = value;
        value = if value < 128 { value * 2 } else { ((value - 128) * 2) ^ 0x1d };
        i += 1;
    }
    table
}

const fn logarithms() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 255 {
        table[ANTILOG[i] as usize] = i as u8;
        i += 1;
    }
    table
}

/// The product of `a` and `b`.
pub fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    ANTILOG[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// The quotient of `a` by `b`; `b` is not 0.
#[cfg(test)]
pub(crate) fn divide(a: u8, b: u8) -> u8 {
    assert!(b != 0, "division by zero");
    if a == 0 {
        return 0;
    }
    ANTILOG[LOG[a as usize] as usize + 255 - LOG[b as usize] as usize]
}

/// What strip `index` is multiplied by in parity `row` (0 for P, 1 for Q, 2 for R) of a code
/// with `parities` parities.
pub fn coefficient(parities: usize, row: usize, index: usize) -> u8 {
    if parities <= 3 || row <= 1 {
        return ANTILOG[row * index % 255];
    }
    let apart = ANTILOG[row - 1] ^ ANTILOG[255 - index];
    ANTILOG[255 - LOG[apart as usize] as usize]
}

/// The byte of parity `row`, of `parities`, over the data bytes `data`.
pub fn parity_byte(parities: usize, row: usize, data: impl Iterator<Item = u8>) -> u8 {
    data.enumerate().fold(0, |sum, (i, byte)| sum ^ multiply(coefficient(parities, row, i), byte))
}
