//! Recovery: turns a set of missing strips into one job.
//!
//! Purpose: pick the equations for what is missing and what is wanted, and their coefficients.
//! Invariants: one pass over memory for every case; no allocation, the list of present strips
//! lies on the stack; a strip that is missing and not wanted is never stored.

use crate::Code;
use crate::code::CodeError;
use crate::job::Job;
use crate::kernel::Kernel;
use crate::tables::{inverse, multiply, power};

/// Strips of most stripes; their list is kept small, because it is cleared for every call.
const USUAL: usize = 64;

/// See [`Code::recover`].
pub(crate) fn recover(
    kernel: &Kernel,
    code: Code,
    strips: &[Option<&[u8]>],
    lost: &[usize],
    out: &mut [&mut [u8]],
) -> Result<(), CodeError> {
    assert_eq!(strips.len(), code.data() + code.parities(), "one entry for each strip");
    assert_eq!(lost.len(), out.len(), "one output for each strip to recover");
    let missing = strips.iter().filter(|strip| strip.is_none()).count();
    if missing > code.parities() {
        return Err(CodeError::TooManyMissing { missing, parities: code.parities() });
    }
    if lost.is_empty() {
        return Ok(());
    }
    let wanted = Wanted::new(code, strips, lost, out);
    if code.data() <= USUAL {
        solve::<USUAL>(kernel, code, strips, wanted);
    } else {
        solve::<{ Code::MAX_DATA }>(kernel, code, strips, wanted);
    }
    Ok(())
}

/// The outputs by role. At most two strips are missing, so at most two are `Some`.
#[derive(Default)]
struct Wanted<'a> {
    /// The missing data strip of the lowest index, if wanted.
    x: Option<&'a mut [u8]>,
    /// The other missing data strip, if there is one and it is wanted.
    y: Option<&'a mut [u8]>,
    p: Option<&'a mut [u8]>,
    q: Option<&'a mut [u8]>,
}

impl<'a> Wanted<'a> {
    fn new(code: Code, strips: &[Option<&[u8]>], lost: &[usize], out: &'a mut [&mut [u8]]) -> Self {
        assert!(lost.is_sorted_by(|a, b| a < b), "lost strips in ascending order");
        let first = strips.iter().position(Option::is_none);
        let mut wanted = Wanted::default();
        for (&index, strip) in lost.iter().zip(out) {
            assert!(strips[index].is_none(), "strip {index} is not missing");
            let role = if index == code.data() {
                &mut wanted.p
            } else if index > code.data() {
                &mut wanted.q
            } else if Some(index) == first {
                &mut wanted.x
            } else {
                &mut wanted.y
            };
            *role = Some(strip);
        }
        wanted
    }
}

/// Picks the job and does it; `N` is at least the number of data strips.
fn solve<const N: usize>(
    kernel: &Kernel,
    code: Code,
    strips: &[Option<&[u8]>],
    wanted: Wanted<'_>,
) {
    let k = code.data();
    let mut list: [&[u8]; N] = [&[]; N];
    let mut gaps = [k; 2];
    let mut lost = 0;
    for (i, strip) in strips[..k].iter().enumerate() {
        match strip {
            Some(strip) => list[i] = strip,
            None => {
                gaps[lost] = i;
                lost += 1;
            }
        }
    }
    let (p, q) = (strips.get(k).copied().flatten(), strips.get(k + 1).copied().flatten());
    let job = match (lost, p, q) {
        (0, ..) => Some(generation(&list[..k], wanted)),
        (1, Some(p), _) => Some(by_p(&mut list[..k], gaps[0], p, wanted)),
        (1, None, Some(q)) => Some(by_q(&list[..k], gaps[0], q, wanted)),
        (2, Some(p), Some(q)) => Some(two(&list[..k], gaps, p, q, wanted)),
        _ => None,
    };
    let job = job.expect("as many strips are left as the code has data strips");
    kernel.run(job);
}

/// No data strip is missing: the parities are generated again.
fn generation<'a>(data: &'a [&'a [u8]], wanted: Wanted<'a>) -> Job<'a> {
    match (wanted.p, wanted.q) {
        (Some(p), Some(q)) => Job::Pq { data, p, q },
        (Some(p), None) => Job::P { data, p },
        (None, Some(q)) => Job::Q { data, q },
        (None, None) => unreachable!("a strip is wanted, and only parities are missing"),
    }
}

/// Data strip `gap` is missing and P is there; Q may be missing as well.
fn by_p<'a>(data: &'a mut [&'a [u8]], gap: usize, p: &'a [u8], wanted: Wanted<'a>) -> Job<'a> {
    match (wanted.q, wanted.x) {
        (Some(q), d) => Job::ViaP { data, gap, p, factor: power(gap), d, q },
        (None, Some(d)) => {
            // P takes the missing strip's place: D is the sum of all others and P.
            data[gap] = p;
            Job::P { data, p: d }
        }
        (None, None) => unreachable!("a strip is wanted, and P is not missing"),
    }
}

/// Data strip `gap` and P are missing.
fn by_q<'a>(data: &'a [&'a [u8]], gap: usize, q: &'a [u8], wanted: Wanted<'a>) -> Job<'a> {
    Job::ViaQ { data, gap, q, factor: inverse(power(gap)), d: wanted.x, p: wanted.p }
}

/// Data strips `x` < `y` are missing.
fn two<'a>(
    data: &'a [&'a [u8]],
    [x, y]: [usize; 2],
    p: &'a [u8],
    q: &'a [u8],
    wanted: Wanted<'a>,
) -> Job<'a> {
    let apart = power(y - x);
    let divisor = inverse(apart ^ 1);
    let factors = [multiply(apart, divisor), multiply(inverse(power(x)), divisor)];
    Job::Two { data, gaps: [y, x], p, q, factors, x: wanted.x, y: wanted.y }
}
