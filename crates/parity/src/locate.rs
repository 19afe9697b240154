//! Which single strip is bad.
//!
//! Purpose: where the parities disagree with the data, name the one strip whose replacement
//! makes all agree, or say that there is none.
//! Invariants: nothing is written; every byte is looked at before a strip is named. The passes
//! are: find the first difference; guess from its syndromes; check the guess on all bytes.

use crate::code::{Code, Located};
use crate::job::Job;
use crate::kernel::Kernel;
use crate::tables::{inverse, multiply};

/// See [`Code::locate`].
pub(crate) fn locate(kernel: &Kernel, code: Code, strips: &[&[u8]]) -> Located {
    let Some(at) = code.verify_with(kernel, strips) else { return Located::Clean };
    let explained = suspect(code, strips, at).filter(|&strip| match strip < code.data() {
        true => agree_without_data(kernel, code, strips, strip),
        false => agree_without_parity(kernel, code, strips, strip),
    });
    explained.map_or(Located::Unknown, Located::Strip)
}

/// The only strip that can be bad if one alone is, by the syndromes at `at`.
fn suspect(code: Code, strips: &[&[u8]], at: usize) -> Option<usize> {
    let (data, parity) = strips.split_at(code.data());
    let syndrome = |row: usize| {
        let products = data.iter().enumerate();
        products.fold(parity[row][at], |sum, (i, strip)| {
            sum ^ multiply(code.coefficient(row, i), strip[at])
        })
    };
    if parity.len() < 2 {
        return None;
    }
    match (syndrome(0), syndrome(1)) {
        // The error e of data strip j gives P's syndrome e and Q's g^j·e.
        (p, q) if p != 0 && q != 0 => {
            let ratio = multiply(q, inverse(p));
            (0..code.data()).find(|&j| code.coefficient(1, j) == ratio)
        }
        (p, _) if p != 0 => Some(code.data()),
        (_, q) if q != 0 => Some(code.data() + 1),
        _ => (2..parity.len()).find(|&row| syndrome(row) != 0).map(|row| code.data() + row),
    }
}

/// Whether all parities but the strip `bad` are the data's.
fn agree_without_parity(kernel: &Kernel, code: Code, strips: &[&[u8]], bad: usize) -> bool {
    let (inputs, parity) = strips.split_at(code.data());
    let all = code.rows(kernel);
    let mut rows: [&[u8]; Code::MAX_PARITIES] = [&[]; _];
    let mut expected: [&[u8]; Code::MAX_PARITIES] = [&[]; _];
    let mut count = 0;
    for row in (0..parity.len()).filter(|row| code.data() + row != bad) {
        (rows[count], expected[count]) = (all[row], parity[row]);
        count += 1;
    }
    let (rows, expected) = (&rows[..count], &expected[..count]);
    let sum = bad != code.data();
    kernel.run(Job::CheckDot { inputs, rows, sum, expected }).is_none()
}

/// Whether the parities agree once data strip `bad` is what P says it is. Parity r is then
/// c(r, bad)·P plus the sum of (c(r, j) + c(r, bad))·D(j), in which `bad` falls out.
fn agree_without_data(kernel: &Kernel, code: Code, strips: &[&[u8]], bad: usize) -> bool {
    // The inputs are the data strips and P, which follows them.
    let inputs = &strips[..code.data() + 1];
    let expected = &strips[code.data() + 1..];
    let mut matrix = [[0u8; 256]; Code::MAX_PARITIES - 1];
    for (row, right) in matrix.iter_mut().zip(&code.rows(kernel)[1..code.parities()]) {
        let by_p = right[bad];
        for (to, c) in row.iter_mut().zip(&right[..code.data()]) {
            *to = c ^ by_p;
        }
        row[code.data()] = by_p;
    }
    let rows: [&[u8]; Code::MAX_PARITIES - 1] = core::array::from_fn(|i| &matrix[i][..]);
    let rows = &rows[..expected.len()];
    kernel.run(Job::CheckDot { inputs, rows, sum: false, expected }).is_none()
}
