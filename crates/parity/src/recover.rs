//! Recovery: turns a set of missing strips into one job.
//!
//! Purpose: pick the equations for what is missing and what is wanted, and their coefficients.
//! Invariants: one pass over memory for every case; no allocation, the list of present strips
//! lies on the stack; a strip that is missing and not wanted is never stored.

use crate::code::{Code, CodeError, Stores};
use crate::job::{Job, Outputs};
use crate::kernel::Kernel;
use crate::matrix;
use crate::tables::{inverse, multiply, power};

/// Strips of most stripes; their list is kept small, because it is cleared for every call.
const USUAL: usize = 64;

/// See [`Code::recover_to`].
pub(crate) fn recover(
    kernel: &Kernel,
    code: Code,
    strips: &[Option<&[u8]>],
    lost: &[usize],
    out: &mut [&mut [u8]],
    stores: Stores,
) -> Result<(), CodeError> {
    assert_eq!(strips.len(), code.strips(), "one entry for each strip");
    assert_eq!(lost.len(), out.len(), "one output for each strip to recover");
    assert!(lost.is_sorted_by(|a, b| a < b), "lost strips in ascending order");
    for &index in lost {
        assert!(strips[index].is_none(), "strip {index} is not missing");
    }
    let missing = strips.iter().filter(|strip| strip.is_none()).count();
    if missing > code.parities() {
        return Err(CodeError::TooManyMissing { missing, parities: code.parities() });
    }
    if lost.is_empty() {
        return Ok(());
    }
    if code.data() <= USUAL {
        solve::<USUAL>(kernel, code, strips, lost, out, stores);
    } else {
        solve::<{ Code::MAX_DATA }>(kernel, code, strips, lost, out, stores);
    }
    Ok(())
}

/// What is missing of a stripe.
struct Gaps {
    /// The missing data strips, ascending.
    data: [usize; Code::MAX_PARITIES],
    /// How many there are.
    count: usize,
}

/// Picks the job and does it; `N` is at least the number of data strips.
fn solve<const N: usize>(
    kernel: &Kernel,
    code: Code,
    strips: &[Option<&[u8]>],
    lost: &[usize],
    out: &mut [&mut [u8]],
    stores: Stores,
) {
    let k = code.data();
    let mut list: [&[u8]; N] = [&[]; N];
    let mut gaps = Gaps { data: [0; _], count: 0 };
    for (i, strip) in strips[..k].iter().enumerate() {
        match strip {
            Some(strip) => list[i] = strip,
            None => {
                gaps.data[gaps.count] = i;
                gaps.count += 1;
            }
        }
    }
    let parity = &strips[k..];
    let list = &mut list[..k];
    if !shortcut(kernel, list, &gaps, parity, lost, out, stores) {
        general(kernel, code, list, &gaps, parity, lost, out, stores);
    }
}

/// Does what P and Q alone can do, if that is all there is to do; both codes have them.
fn shortcut<'a>(
    kernel: &Kernel,
    data: &mut [&'a [u8]],
    gaps: &Gaps,
    parity: &[Option<&'a [u8]>],
    lost: &[usize],
    out: &mut [&mut [u8]],
    stores: Stores,
) -> bool {
    let k = data.len();
    if lost.iter().any(|&index| index > k + 1) {
        return false;
    }
    let gap = gaps.data[0];
    let (p, q) = (parity[0], parity.get(1).copied().flatten());
    match (gaps.count, p, q, lost, out) {
        (0, .., [_], [p]) if lost[0] == k => kernel.run(Job::P { data, p, stores }),
        (0, .., [_], [q]) => kernel.run(Job::Q { data, q, stores }),
        (0, .., [_, _], [p, q]) => kernel.run(Job::Pq { data, p, q, stores }),
        (1, Some(p), _, [x], [d]) if *x < k => {
            // P takes the missing strip's place: D is the sum of all others and P.
            data[gap] = p;
            kernel.run(Job::P { data, p: d, stores })
        }
        (1, Some(p), _, [_], [q]) => {
            kernel.run(Job::ViaP { data, gap, p, factor: power(gap), d: None, q, stores })
        }
        (1, Some(p), _, [_, _], [d, q]) => {
            kernel.run(Job::ViaP { data, gap, p, factor: power(gap), d: Some(d), q, stores })
        }
        (1, None, Some(q), [x], [d]) if *x < k => {
            kernel.run(by_q(data, gap, q, Some(d), None, stores))
        }
        (1, None, Some(q), [_], [p]) => kernel.run(by_q(data, gap, q, None, Some(p), stores)),
        (1, None, Some(q), [_, _], [d, p]) => {
            kernel.run(by_q(data, gap, q, Some(d), Some(p), stores))
        }
        (2, Some(p), Some(q), [x], [d]) if *x < k => {
            let (x, y) = if *x == gap { (Some(&mut **d), None) } else { (None, Some(&mut **d)) };
            kernel.run(two(data, gaps, p, q, x, y, stores))
        }
        (2, Some(p), Some(q), [_, y], [dx, dy]) if *y < k => {
            kernel.run(two(data, gaps, p, q, Some(dx), Some(dy), stores))
        }
        _ => return false,
    };
    true
}

/// Data strip `gap` and P are missing.
fn by_q<'a>(
    data: &'a [&'a [u8]],
    gap: usize,
    q: &'a [u8],
    d: Option<&'a mut [u8]>,
    p: Option<&'a mut [u8]>,
    stores: Stores,
) -> Job<'a> {
    Job::ViaQ { data, gap, q, factor: inverse(power(gap)), d, p, stores }
}

/// Data strips x < y are missing.
fn two<'a>(
    data: &'a [&'a [u8]],
    gaps: &Gaps,
    p: &'a [u8],
    q: &'a [u8],
    dx: Option<&'a mut [u8]>,
    dy: Option<&'a mut [u8]>,
    stores: Stores,
) -> Job<'a> {
    let (x, y) = (gaps.data[0], gaps.data[1]);
    let apart = power(y - x);
    let divisor = inverse(apart ^ 1);
    let factors = [multiply(apart, divisor), multiply(inverse(power(x)), divisor)];
    Job::Two { data, gaps: [y, x], p, q, factors, x: dx, y: dy, stores }
}

/// Any other loss. Each missing data strip's place is taken by a parity that is there; every
/// lost strip is then a row of coefficients times these k inputs.
#[expect(clippy::too_many_arguments, reason = "the parts of one call")]
fn general<'a>(
    kernel: &Kernel,
    code: Code,
    inputs: &mut [&'a [u8]],
    gaps: &Gaps,
    parity: &[Option<&'a [u8]>],
    lost: &[usize],
    out: &mut [&mut [u8]],
    stores: Stores,
) {
    let k = code.data();
    let gaps = &gaps.data[..gaps.count];
    let mut chosen = [0; Code::MAX_PARITIES];
    let present = parity.iter().enumerate().filter_map(|(row, strip)| Some((row, (*strip)?)));
    for ((gap, chosen), (row, strip)) in gaps.iter().zip(&mut chosen).zip(present) {
        inputs[*gap] = strip;
        *chosen = row;
    }
    let mut solved = [[0; WIDTH]; Code::MAX_PARITIES];
    solve_rows(kernel, code, gaps, &chosen[..gaps.len()], &mut solved);
    let mut wanted = [[0; WIDTH]; Code::MAX_PARITIES];
    for (row, &index) in wanted.iter_mut().zip(lost) {
        match gaps.binary_search(&index) {
            Ok(gap) => *row = solved[gap],
            Err(_) => parity_row(kernel, code, gaps, &solved, index - k, row),
        }
    }
    let rows: [&[u8]; Code::MAX_PARITIES] = core::array::from_fn(|i| &wanted[i][..]);
    let outputs = &Outputs::new(out.iter_mut().map(|strip| &mut **strip));
    let rows = &rows[..lost.len()];
    kernel.run(Job::Dot { inputs, rows, sum: false, outputs, stores });
}

/// Coefficients by input.
type Row = [u8; WIDTH];
/// At least the number of inputs, and a whole number of any kernel's vectors.
const WIDTH: usize = 256;

/// The missing data strips as rows over the inputs. With A the chosen parities' coefficients of
/// the missing strips, and S what is left of these parities after all other data is taken away,
/// the missing strips are A^-1·S.
fn solve_rows(kernel: &Kernel, code: Code, gaps: &[usize], chosen: &[usize], solved: &mut [Row]) {
    if gaps.is_empty() {
        return;
    }
    let all = code.rows(kernel);
    let mut square = [[0; Code::MAX_PARITIES]; Code::MAX_PARITIES];
    let mut rows: [&[u8]; Code::MAX_PARITIES] = [&[]; _];
    for (i, &row) in chosen.iter().enumerate() {
        rows[i] = all[row];
        for (to, &gap) in square[i].iter_mut().zip(gaps) {
            *to = all[row][gap];
        }
    }
    let n = gaps.len();
    matrix::invert(kernel.tables(), &mut square, n).expect("any square of a code is regular");
    let inverse: [&[u8]; Code::MAX_PARITIES] = core::array::from_fn(|i| &square[i][..n]);
    let outputs = &Outputs::new(solved[..n].iter_mut().map(|row| &mut row[..]));
    let (inputs, rows) = (&rows[..n], &inverse[..n]);
    let stores = Stores::Cached;
    kernel.run(Job::Dot { inputs, rows, sum: false, outputs, stores });
    for (row, inverse) in solved.iter_mut().zip(&square[..n]) {
        for (&gap, &by) in gaps.iter().zip(inverse) {
            row[gap] = by;
        }
    }
}

/// A parity as a row over the inputs: its coefficients of the data that is there, and of the
/// missing strips times their rows.
fn parity_row(
    kernel: &Kernel,
    code: Code,
    gaps: &[usize],
    solved: &[Row],
    parity: usize,
    row: &mut Row,
) {
    let right = code.rows(kernel)[parity];
    row.copy_from_slice(right);
    gaps.iter().for_each(|&gap| row[gap] = 0);
    for (&gap, solved) in gaps.iter().zip(solved) {
        for (to, by) in row.iter_mut().zip(solved) {
            *to ^= kernel.tables().product(right[gap], *by);
        }
    }
}
