//! Inverses of small matrices over GF(2^8).
//!
//! Purpose: recovery inverts the square of lost strips times chosen parities, never more.
//! Invariant: no allocation; only the first `n` rows and columns are looked at.

use crate::code::Code;
use crate::tables::{Tables, inverse};

/// Room for the largest square: as many lost strips as a code has parities.
pub(crate) type Square = [[u8; Code::MAX_PARITIES]; Code::MAX_PARITIES];

/// Inverts the first `n` rows and columns of `a` in place, by Gauss and Jordan, with the pivots'
/// rows exchanged where a pivot is 0; `None` if `a` is singular.
pub(crate) fn invert(tables: &Tables, a: &mut Square, n: usize) -> Option<()> {
    let mut exchanged = [0; Code::MAX_PARITIES];
    for pivot in 0..n {
        let row = (pivot..n).find(|&row| a[row][pivot] != 0)?;
        a.swap(pivot, row);
        exchanged[pivot] = row;
        let scale = inverse(a[pivot][pivot]);
        // The pivot's column becomes that of the inverse as the identity's would.
        a[pivot][pivot] = 1;
        for value in &mut a[pivot][..n] {
            *value = tables.product(scale, *value);
        }
        let right = a[pivot];
        for row in (0..n).filter(|&row| row != pivot) {
            let times = core::mem::take(&mut a[row][pivot]);
            for (value, by) in a[row][..n].iter_mut().zip(&right) {
                *value ^= tables.product(times, *by);
            }
        }
    }
    // Exchanged rows of the matrix are exchanged columns of its inverse.
    for pivot in (0..n).rev() {
        a[..n].iter_mut().for_each(|row| row.swap(pivot, exchanged[pivot]));
    }
    Some(())
}
