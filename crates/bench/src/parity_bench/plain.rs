//! What outputs should be, byte by byte, by the definitions alone: what Palisade's outputs are
//! compared with where ISA-L is missing.
//!
//! The field has 256 elements, polynomial 0x11d; CRC-32C is that of RFC 3720 (polynomial
//! 0x11edc6f41, reflected, inverted before and after). Nothing here is shared with the kernels
//! that are measured: no table, no vector code.

/// The product of two elements of the field.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { 0x1d } else { 0 };
        b >>= 1;
    }
    product
}

/// Adds `factor` times `from` to `to`.
pub fn add_times(factor: u8, from: &[u8], to: &mut [u8]) {
    let products: [u8; 256] = core::array::from_fn(|byte| times(factor, byte as u8));
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= products[usize::from(*from)];
    }
}

/// CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let after = |byte: u32| {
        (0..8).fold(byte, |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    };
    let table: [u32; 256] = core::array::from_fn(|byte| after(byte as u32));
    let next = |crc: u32, byte: &u8| (crc >> 8) ^ table[(crc as u8 ^ byte) as usize];
    !bytes.iter().fold(!0, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_the_codes() {
        assert_eq!((times(2, 0x80), times(0x8e, 2), times(0, 7)), (0x1d, 1, 0));
        let code = ::parity::Code::new(16, 3).expect("a code within bounds");
        let (mut g, mut h) = (1, 1);
        for data in 0..16 {
            let found: [u8; 3] = core::array::from_fn(|parity| code.coefficient(parity, data));
            assert_eq!(found, [1, g, h], "coefficients of strip {data}");
            (g, h) = (times(g, 2), times(h, 4));
        }
    }

    #[test]
    fn products_are_added() {
        let mut to = [1, 2, 3];
        add_times(2, &[0x80, 0, 1], &mut to);
        assert_eq!(to, [0x1c, 2, 1]);
    }

    #[test]
    fn the_checksum_is_the_rfcs() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
