//! Numbers of the past in 16 bits: a gap, or a number from 0 to some 10^14 with an error of at most
//! one in 2,000.
//!
//! Six bits are an exponent and ten a fraction, as in IEEE 754 but for the sign, infinities and
//! what is no number: a number of exponent 0 is its fraction times 2^-26, one of exponent e is (1 +
//! fraction / 1024) times 2^(e - 17).
//!
//! Invariants
//! - Codes have the order of their numbers.
//! - Whole numbers up to 2,048 are exact.

/// The code that stands for no number.
pub const GAP: u16 = u16::MAX;

/// Bits of the fraction.
const BITS: u32 = 10;

/// The least number of exponent 1 is 2 to this power.
const LEAST: i32 = -16;

/// The code of a number; of what is no number, a gap. Numbers below 0 count as 0.
pub fn encode(value: f64) -> u16 {
    if value.is_nan() {
        return GAP;
    }
    if value <= 0.0 {
        return 0;
    }
    let one = f64::from(1_u32 << BITS);
    // Of a normal number of IEEE 754 binary64; the exponent of smaller ones is too small, too.
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    let code = match exponent < LEAST {
        true => value * one / 2_f64.powi(LEAST),
        false => f64::from(exponent - LEAST) * one + value * one / 2_f64.powi(exponent),
    };
    // A fraction that is rounded up to 1 is the next exponent with the fraction 0.
    code.round().min(f64::from(GAP - 1)) as u16
}

/// The number of a code; none of a gap.
pub fn decode(code: u16) -> Option<f64> {
    let (exponent, fraction) = (i32::from(code >> BITS), f64::from(code % (1 << BITS)));
    let one = f64::from(1_u32 << BITS);
    match (code, exponent) {
        (GAP, _) => None,
        (_, 0) => Some(fraction / one * 2_f64.powi(LEAST)),
        _ => Some((1.0 + fraction / one) * 2_f64.powi(exponent - 1 + LEAST)),
    }
}

/// A number with the four digits that are known of it.
pub fn shown(value: f64) -> f64 {
    let digits = 3 - value.abs().log10().floor().clamp(-9.0, 15.0) as i32;
    if value == 0.0 {
        return 0.0;
    }
    match digits < 0 {
        true => (value / 10_f64.powi(-digits)).round() * 10_f64.powi(-digits),
        false => (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_its_numbers_own_and_in_order() {
        assert_eq!(decode(GAP), None);
        let mut last = -1.0;
        for code in 0..GAP {
            let number = decode(code).expect("a number");
            assert_eq!(encode(number), code, "{number}");
            assert!(number > last, "{code}");
            last = number;
        }
        assert!(last > 1e14);
    }

    #[test]
    fn numbers_keep_their_first_digits() {
        for number in 0..=2048 {
            assert_eq!(decode(encode(f64::from(number))), Some(f64::from(number)));
        }
        let mut number = 1e-4;
        while number < 1e14 {
            let kept = decode(encode(number)).expect("a number");
            assert!((kept - number).abs() <= number / 2000.0, "{number} {kept}");
            assert!((shown(kept) - number).abs() <= number / 900.0, "{number}");
            number *= 1.0137;
        }
        assert_eq!((encode(-1.0), encode(f64::NAN)), (0, GAP));
        assert_eq!(encode(f64::INFINITY), GAP - 1);
        assert_eq!(encode(1e-300), 0);
        let cases = [(12344.0, 12340.0), (0.123_44, 0.1234), (-12.0, -12.0), (0.0, 0.0)];
        for (number, expected) in cases {
            assert_eq!(shown(number), expected);
        }
        assert_eq!(shown(1_234_567_890_123.0), 1_235_000_000_000.0);
    }
}
