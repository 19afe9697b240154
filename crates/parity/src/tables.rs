//! Multiplication tables and coefficients of GF(2^8), computed at compile time by carry-less
//! multiplication.
//!
//! Purpose: give the kernels what they need to multiply by a constant: two 16-entry nibble
//! tables for byte shuffles, or one 8x8 bit matrix for the GFNI affine instruction; and give the
//! codes their coefficients, so that no call computes them.
//! Invariant: nothing here is shared with `reference`, so that each can convict the other.

/// The field's polynomial x^8 + x^4 + x^3 + x^2 + 1, with its top bit.
pub(crate) const POLYNOMIAL: u16 = 0x11d;

/// Rows of coefficients: P, Q, R, then the rows from the third on of the codes with id 2.
pub(crate) const ROWS: usize = 33;

/// Everything a kernel looks up. A kernel is given its tables, so a test can plant a fault.
#[derive(Clone)]
pub(crate) struct Tables {
    /// For each constant c: c·0 to c·15, then c·0x00, c·0x10 to c·0xf0.
    pub(crate) nibbles: [[u8; 32]; 256],
    /// For each constant c: the matrix of x → c·x, the row of output bit i in byte 7-i.
    pub(crate) matrices: [u64; 256],
    /// The codes' coefficients by row and data strip; 0 where a row has no such strip.
    pub(crate) coefficients: [[u8; 256]; ROWS],
}

/// The matrix of the generator: x → 2·x.
#[cfg(target_arch = "x86_64")]
pub(crate) const DOUBLE: u64 = matrix(2);

/// The right tables.
pub(crate) static TABLES: Tables = Tables::build();

/// The inverses; the entry of 0 is 0 and never used.
static INVERSES: [u8; 256] = inverses();

/// The product of `a` and `b`: multiply as polynomials over GF(2), reducing at each shift.
pub(crate) const fn multiply(a: u8, b: u8) -> u8 {
    let (mut shifted, mut rest, mut product) = (a as u16, b, 0u16);
    while rest != 0 {
        if rest & 1 != 0 {
            product ^= shifted;
        }
        shifted <<= 1;
        if shifted & 0x100 != 0 {
            shifted ^= POLYNOMIAL;
        }
        rest >>= 1;
    }
    product as u8
}

/// The generator 2 to the power `exponent`.
pub(crate) const fn power(exponent: usize) -> u8 {
    let (mut base, mut rest, mut result) = (2u8, exponent, 1u8);
    while rest != 0 {
        if rest & 1 != 0 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        rest >>= 1;
    }
    result
}

/// The inverse of `a`, by its table.
pub(crate) fn inverse(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse");
    INVERSES[a as usize]
}

/// The inverse of `a`: a^254, because a^255 = 1 for every `a` but 0.
const fn invert(a: u8) -> u8 {
    let (mut square, mut result, mut i) = (a, 1u8, 1);
    // 254 = 2 + 4 + 8 + ... + 128.
    while i < 8 {
        square = multiply(square, square);
        result = multiply(result, square);
        i += 1;
    }
    result
}

const fn inverses() -> [u8; 256] {
    let (mut table, mut a) = ([0; 256], 1);
    while a < 256 {
        table[a] = invert(a as u8);
        a += 1;
    }
    table
}

impl Tables {
    const fn build() -> Tables {
        let coefficients = coefficients(&inverses());
        let mut tables = Tables { nibbles: [[0; 32]; 256], matrices: [0; 256], coefficients };
        let mut c = 0;
        while c < 256 {
            let mut n = 0;
            while n < 16 {
                tables.nibbles[c][n] = multiply(c as u8, n as u8);
                tables.nibbles[c][16 + n] = multiply(c as u8, (n << 4) as u8);
                n += 1;
            }
            tables.matrices[c] = matrix(c as u8);
            c += 1;
        }
        tables
    }

    /// The product of `a` and `b`, by the nibble tables.
    pub(crate) fn product(&self, a: u8, b: u8) -> u8 {
        let products = &self.nibbles[a as usize];
        products[(b & 15) as usize] ^ products[16 + (b >> 4) as usize]
    }

    /// The coefficients of `parity` in a code with `parities` parities, by data strip.
    pub(crate) const fn row(&self, parities: usize, parity: usize) -> &[u8; 256] {
        assert!(parity < parities, "no such parity");
        // Codes with id 2 have P and Q, but not R.
        let row = if parities > 3 && parity >= 2 { parity + 1 } else { parity };
        &self.coefficients[row]
    }
}

/// P: ones. Q: g^j. R: g^2j. Then, for r from 2 on, 1 / (g^(r-1) + g^-j); see the crate's
/// documentation.
const fn coefficients(inverses: &[u8; 256]) -> [[u8; 256]; ROWS] {
    let mut powers = [1; 256];
    let mut exponent = 1;
    while exponent < 256 {
        powers[exponent] = multiply(powers[exponent - 1], 2);
        exponent += 1;
    }
    let mut rows = [[0; 256]; ROWS];
    let mut j = 0;
    while j < 255 {
        rows[0][j] = 1;
        rows[1][j] = powers[j];
        rows[2][j] = powers[2 * j % 255];
        let mut r = 2;
        while r < 32 {
            rows[r + 1][j] = inverses[(powers[r - 1] ^ powers[255 - j]) as usize];
            r += 1;
        }
        j += 1;
    }
    rows
}

/// The matrix of x → c·x in the layout of `gf2p8affineqb`. Column j is c·2^j.
const fn matrix(c: u8) -> u64 {
    let (mut rows, mut j) = (0u64, 0);
    while j < 8 {
        let column = multiply(c, 1 << j);
        let mut i = 0;
        while i < 8 {
            rows |= (((column >> i) & 1) as u64) << (8 * (7 - i) + j);
            i += 1;
        }
        j += 1;
    }
    rows
}
