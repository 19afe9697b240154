//! What kernels multiply by: constants of GF(2^8) as lookups, and powers of x for CRC-32C.
//!
//! Purpose: the encodings that the top of `kernels/parity.c` describes.
//! Invariant: computed from the definitions alone, so that the parity crate can convict it.

/// Bytes of a factor.
pub(crate) const BYTES: usize = 32;

/// The product in the parity crate's field: polynomials over GF(2) modulo 0x11d.
const fn multiply(a: u8, b: u8) -> u8 {
    let (mut a, mut b, mut product) = (a, b, 0);
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { 0x1d } else { 0 };
        b >>= 1;
    }
    product
}

/// The generator 2 to the power `exponent`.
pub(crate) fn power(exponent: usize) -> u8 {
    (0..exponent % 255).fold(1, |power, _| multiply(power, 2))
}

/// The factor `c`: `c` times 0 to 7, times 8·(0 to 7), times 64·(0 to 3), then zeros.
pub(crate) fn encode(c: u8) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for part in 0..8u8 {
        bytes[usize::from(part)] = multiply(c, part);
        bytes[8 + usize::from(part)] = multiply(c, part << 3);
    }
    for part in 0..4u8 {
        bytes[16 + usize::from(part)] = multiply(c, part << 6);
    }
    bytes
}

/// CRC-32C's polynomial without its top bit; bit 31 is x^0 (RFC 3720, section 12.1).
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// For each 16 bytes of a block of `block` bytes, x^(8·bytes behind them) modulo CRC-32C's
/// polynomial, little-endian.
pub(crate) fn crc_powers(block: usize) -> Vec<u8> {
    let mut power = 1u32 << 31;
    let mut powers = Vec::with_capacity(block / 4);
    for _ in 0..block / 16 {
        powers.push(power);
        for _ in 0..128 {
            power = (power >> 1) ^ if power & 1 == 1 { CASTAGNOLI } else { 0 };
        }
    }
    powers.iter().rev().flat_map(|power| power.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `parity` has constant c: as the coefficient of some strip in Q.
    #[test]
    fn factors_hold_the_parity_crates_products() {
        let code = parity::Code::new(255, 2).unwrap();
        for index in 0..255 {
            let c = code.coefficient(1, index);
            let new: [u8; 256] = core::array::from_fn(|i| i as u8);
            let mut q = [0; 256];
            code.update(index, &[0; 256], &new, &mut [None, Some(&mut q)]);
            let factor = encode(c);
            assert_eq!(power(index), c);
            for (byte, &right) in q.iter().enumerate() {
                let found =
                    factor[byte & 7] ^ factor[8 + (byte >> 3 & 7)] ^ factor[16 + (byte >> 6)];
                assert_eq!(found, right, "{c} times {byte}");
            }
        }
        assert_eq!(encode(0), [0; BYTES]);
    }
}
