//! The bound on the data strips of each number of parities, and why any loss can be recovered.
//!
//! Purpose: a code survives any loss of m strips exactly if every square part of its matrix of
//! coefficients is regular. For up to four parities all of them are computed here; beyond, the
//! matrix is shown to have the form for which Cauchy's determinant says so, and parts are
//! sampled. One data strip more, and it fails.

use super::Random;
use super::field::product;
use crate::tables::TABLES;
use crate::{Code, CodeError, matrix};

/// All products, by long division.
fn products() -> Vec<[u8; 256]> {
    (0..=255).map(|a| core::array::from_fn(|b| product(a, b as u8))).collect()
}

/// Powers of the generator, by doubling as the tests' own multiplication does it.
fn power(exponent: usize) -> u8 {
    (0..exponent % 255).fold(1, |power, _| product(power, 2))
}

/// The widest code's coefficients by parity and data strip.
fn coefficients(m: usize) -> Vec<Vec<u8>> {
    let code = Code::new(Code::max_data(m), m).unwrap();
    (0..m).map(|row| (0..code.data()).map(|j| code.coefficient(row, j)).collect()).collect()
}

/// Whether every square part is regular. `minors[set]` are the determinants of the columns taken
/// so far and the rows in `set`; one column more is Laplace's expansion along it.
fn all_regular(times: &[[u8; 256]], rows: &[Vec<u8>], from: usize, minors: &[u8]) -> bool {
    let m = rows.len();
    let taken = minors.iter().position(|&minor| minor != 0).unwrap_or(0).count_ones() as usize;
    (from..rows[0].len()).all(|column| {
        let mut next = vec![0; 1 << m];
        for (set, minor) in next.iter_mut().enumerate() {
            if set.count_ones() as usize == taken + 1 {
                *minor = (0..m).filter(|row| set >> row & 1 == 1).fold(0, |sum, row| {
                    sum ^ times[rows[row][column] as usize][minors[set & !(1 << row)] as usize]
                });
                if *minor == 0 {
                    return false;
                }
            }
        }
        match taken + 2 {
            size if size > m => true,
            size if size == m => last_columns(times, rows, column + 1, &next),
            _ => all_regular(times, rows, column + 1, &next),
        }
    })
}

/// The same for the last column of the largest squares, where only one determinant is left.
fn last_columns(times: &[[u8; 256]], rows: &[Vec<u8>], from: usize, minors: &[u8]) -> bool {
    let m = rows.len();
    let all = (1 << m) - 1;
    let by: Vec<_> = (0..m).map(|row| &times[minors[all & !(1 << row)] as usize]).collect();
    (from..rows[0].len())
        .all(|column| (0..m).fold(0, |sum, row| sum ^ by[row][rows[row][column] as usize]) != 0)
}

#[test]
fn every_square_of_up_to_four_rows_is_regular() {
    let times = products();
    for m in 1..=4 {
        let mut minors = vec![0; 1 << m];
        minors[0] = 1;
        assert!(all_regular(&times, &coefficients(m), 0, &minors), "{m} parities");
    }
}

/// The check above can fail: one coefficient made a multiple of its neighbours' is found.
#[test]
fn singular_square_is_noticed() {
    let times = products();
    let mut rows = coefficients(3);
    for row in &mut rows {
        row[200] = product(row[7], 9) ^ product(row[90], 77);
    }
    assert!(!all_regular(&times, &rows, 0, &[1, 0, 0, 0, 0, 0, 0, 0]));
}

/// Rows past P are 1 / (x + y), with all x and y different: every square is regular.
#[test]
fn rows_are_an_extended_cauchy_matrix() {
    for m in 4..=Code::MAX_PARITIES {
        let rows = coefficients(m);
        let k = rows[0].len();
        let xs: Vec<_> = (1..m).map(|r| if r == 1 { 0 } else { power(r - 1) }).collect();
        let ys: Vec<_> = (0..k).map(|j| power(255 - j)).collect();
        let mut points: Vec<_> = xs.iter().chain(&ys).copied().collect();
        points.sort_unstable();
        points.dedup();
        assert_eq!(points.len(), m - 1 + k, "{m} parities: points differ");
        assert_eq!(points.len(), 256, "{m} parities: every point is used");
        assert!(rows[0].iter().all(|&c| c == 1), "P is the sum");
        for (row, x) in rows[1..].iter().zip(xs) {
            assert!(row.iter().zip(&ys).all(|(&c, y)| product(c, x ^ y) == 1), "{m} parities");
        }
    }
}

#[test]
fn sampled_squares_are_regular() {
    let mut random = Random(6);
    for m in 2..=Code::MAX_PARITIES {
        let rows = coefficients(m);
        for _ in 0..60 {
            let n = 1 + random.next() as usize % m;
            let picks = |random: &mut Random, of: usize| {
                let mut all: Vec<_> = (0..of).collect();
                (0..n).map(|_| all.swap_remove(random.next() as usize % all.len())).collect()
            };
            let (from, columns): (Vec<_>, Vec<_>) =
                (picks(&mut random, m), picks(&mut random, rows[0].len()));
            let mut square = [[0; Code::MAX_PARITIES]; Code::MAX_PARITIES];
            for (to, row) in square.iter_mut().zip(&from) {
                for (to, column) in to.iter_mut().zip(&columns) {
                    *to = rows[*row][*column];
                }
            }
            let right = square;
            matrix::invert(&TABLES, &mut square, n).expect("regular");
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let sum = (0..n).fold(0, |sum, l| sum ^ product(right[i][l], square[l][j]));
                assert_eq!(sum, u8::from(i == j), "the inverse of {n} rows");
            }
        }
    }
}

#[test]
fn singular_matrix_has_no_inverse() {
    let mut square = [[0; Code::MAX_PARITIES]; Code::MAX_PARITIES];
    for (i, row) in square.iter_mut().enumerate().take(3) {
        *row = core::array::from_fn(|j| product(i as u8 + 1, j as u8 + 5));
    }
    assert_eq!(matrix::invert(&TABLES, &mut square, 3), None);
}

/// P and Q are the same for any number of parities.
#[test]
fn codes_share_p_and_q() {
    for (m, row, j) in (2..=32).flat_map(|m| (0..225).flat_map(move |j| [(m, 0, j), (m, 1, j)])) {
        let code = Code::new(225, m).unwrap();
        assert_eq!(code.coefficient(row, j), if row == 0 { 1 } else { power(j) });
        assert_eq!(code.id(), if m <= 3 { 1 } else { 2 });
    }
}

/// One data strip more is refused, and would fail: up to three parities, its column is that of
/// strip 0, so that two losses could not be told apart; from four on, its y is the last x, and
/// its coefficient 1 / 0.
#[test]
fn bounds_are_tight() {
    for m in 0..=Code::MAX_PARITIES {
        let most = Code::max_data(m);
        assert!(Code::new(most, m).is_ok());
        assert_eq!(
            Code::new(most + 1, m),
            Err(CodeError::DataCount { data: most + 1, parities: m })
        );
        if m <= 3 {
            assert_eq!(most, 255);
            assert!((0..m).all(|row| power(row * most) == power(0)));
        } else {
            assert_eq!(most + m, 257);
            assert_eq!(power(255 - most), power(m - 2));
        }
    }
    assert_eq!(Code::new(1, 33), Err(CodeError::ParityCount(33)));
    assert_eq!(Code::new(0, 3), Err(CodeError::DataCount { data: 0, parities: 3 }));
}

/// R cannot be kept by going on with powers: whatever the exponent, the first 64 strips already
/// have a square that is singular.
#[test]
fn a_fourth_row_of_powers_fails_early() {
    let times = products();
    for exponent in 3..255 {
        let mut rows = coefficients(3);
        rows.push((0..255).map(|j| power(exponent * j)).collect());
        rows.iter_mut().for_each(|row| row.truncate(64));
        let mut minors = vec![0; 16];
        minors[0] = 1;
        assert!(!all_regular(&times, &rows, 0, &minors), "exponent {exponent}");
    }
}
