//! Jobs: the one interface between the codes and whatever computes them.
//!
//! Purpose: say what is to be computed, by value, so that every kernel is one function and a
//! back end that is not a processor can take the same jobs.
//! Invariant: `Job::checked_len` accepts a job only if every slice that will be touched has one
//! common length; kernels then need no bounds checks.

use core::marker::PhantomData;

use crate::code::{Change, Code, Stores};

/// Most outputs of one job.
const OUTPUTS: usize = Code::MAX_PARITIES;

/// Strips to write, exclusive borrows of one length.
pub(crate) struct Outputs<'a> {
    starts: [*mut u8; OUTPUTS],
    count: usize,
    len: usize,
    strips: PhantomData<&'a mut [u8]>,
}

impl<'a> Outputs<'a> {
    /// # Panics
    ///
    /// If the lengths differ or there are more strips than a code has parities.
    pub(crate) fn new(strips: impl Iterator<Item = &'a mut [u8]>) -> Outputs<'a> {
        let mut all = Outputs {
            starts: [core::ptr::null_mut(); OUTPUTS],
            count: 0,
            len: 0,
            strips: PhantomData,
        };
        for strip in strips {
            if all.count == 0 {
                all.len = strip.len();
            }
            same(all.len, strip.len());
            all.starts[all.count] = strip.as_mut_ptr();
            all.count += 1;
        }
        all
    }

    /// The strips' first bytes.
    pub(crate) fn starts(&self) -> &[*mut u8] {
        &self.starts[..self.count]
    }

    /// The strips' length.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// One pass over memory. P is the sum of the data, Q the sum of g^i times data strip i, R the
/// sum of g^2i times data strip i.
///
/// In the jobs that solve for lost strips, `data` holds an empty slice at each gap. A row holds
/// one coefficient for each input, or more; `sum` says that the first row is all ones.
pub(crate) enum Job<'a> {
    /// P of the data; also any plain sum of strips.
    P { data: &'a [&'a [u8]], p: &'a mut [u8], stores: Stores },
    /// Q of the data.
    Q { data: &'a [&'a [u8]], q: &'a mut [u8], stores: Stores },
    /// P and Q of the data.
    Pq { data: &'a [&'a [u8]], p: &'a mut [u8], q: &'a mut [u8], stores: Stores },
    /// P, Q and R of the data.
    Pqr { data: &'a [&'a [u8]], p: &'a mut [u8], q: &'a mut [u8], r: &'a mut [u8], stores: Stores },
    /// Each output is its row's coefficients times the inputs.
    Dot {
        inputs: &'a [&'a [u8]],
        rows: &'a [&'a [u8]],
        sum: bool,
        outputs: &'a Outputs<'a>,
        stores: Stores,
    },
    /// P ^= old ^ new.
    DeltaP { old: &'a [u8], new: &'a [u8], p: &'a mut [u8] },
    /// Q ^= factor·(old ^ new).
    DeltaQ { old: &'a [u8], new: &'a [u8], q: &'a mut [u8], factor: u8 },
    /// Both deltas.
    DeltaPq { old: &'a [u8], new: &'a [u8], p: &'a mut [u8], q: &'a mut [u8], factor: u8 },
    /// To each output is added, for each change, its row's coefficient at the change's index
    /// times (old ^ new).
    Deltas { changes: &'a [Change<'a>], rows: &'a [&'a [u8]], sum: bool, outputs: &'a Outputs<'a> },
    /// One data strip and Q lost: D = P ^ P', Q = Q' ^ factor·D; factor = g^gap.
    ViaP {
        data: &'a [&'a [u8]],
        gap: usize,
        p: &'a [u8],
        factor: u8,
        d: Option<&'a mut [u8]>,
        q: &'a mut [u8],
        stores: Stores,
    },
    /// One data strip and P lost: D = factor·(Q ^ Q'), P = P' ^ D; factor = g^-gap.
    ViaQ {
        data: &'a [&'a [u8]],
        gap: usize,
        q: &'a [u8],
        factor: u8,
        d: Option<&'a mut [u8]>,
        p: Option<&'a mut [u8]>,
        stores: Stores,
    },
    /// Two data strips lost: Dx = factors[0]·(P ^ P') ^ factors[1]·(Q ^ Q'), Dy = P ^ P' ^ Dx.
    Two {
        data: &'a [&'a [u8]],
        /// The greater gap first, because Horner's rule starts at the highest power.
        gaps: [usize; 2],
        p: &'a [u8],
        q: &'a [u8],
        factors: [u8; 2],
        x: Option<&'a mut [u8]>,
        y: Option<&'a mut [u8]>,
        stores: Stores,
    },
    /// Whether P is the data's; answers the first offset where not.
    CheckP { data: &'a [&'a [u8]], p: &'a [u8] },
    /// Whether P and Q are the data's; answers the first offset where not.
    CheckPq { data: &'a [&'a [u8]], p: &'a [u8], q: &'a [u8] },
    /// Whether P, Q and R are the data's; answers the first offset where not.
    CheckPqr { data: &'a [&'a [u8]], p: &'a [u8], q: &'a [u8], r: &'a [u8] },
    /// Whether each expected strip is its row's coefficients times the inputs.
    CheckDot { inputs: &'a [&'a [u8]], rows: &'a [&'a [u8]], sum: bool, expected: &'a [&'a [u8]] },
}

impl Job<'_> {
    /// The common length of all slices.
    ///
    /// # Panics
    ///
    /// If lengths differ, a code has no data, or gaps are not in order and in range.
    pub(crate) fn checked_len(&self) -> usize {
        match self {
            Job::P { data, p, .. } => with_data(data, &[], p.len()),
            Job::Q { data, q, .. } => with_data(data, &[], q.len()),
            Job::Pq { data, p, q, .. } => same(with_data(data, &[], p.len()), q.len()),
            Job::Pqr { data, p, q, r, .. } => {
                same(same(with_data(data, &[], p.len()), q.len()), r.len())
            }
            Job::Dot { inputs, rows, outputs, .. } => {
                with_rows(rows, inputs.len(), outputs.starts().len());
                with_data(inputs, &[], outputs.len())
            }
            Job::DeltaP { old, new, p } => same(same(old.len(), new.len()), p.len()),
            Job::DeltaQ { old, new, q, .. } => same(same(old.len(), new.len()), q.len()),
            Job::DeltaPq { old, new, p, q, .. } => {
                same(same(old.len(), new.len()), same(p.len(), q.len()))
            }
            Job::Deltas { changes, rows, outputs, .. } => {
                let above = changes.iter().map(|change| change.index + 1).max().unwrap_or(0);
                with_rows(rows, above, outputs.starts().len());
                for change in *changes {
                    same(same(change.old.len(), change.new.len()), outputs.len());
                }
                outputs.len()
            }
            Job::ViaP { data, gap, p, d, q, .. } => {
                let len = same(with_data(data, &[*gap], p.len()), q.len());
                optional(d, len)
            }
            Job::ViaQ { data, gap, q, d, p, .. } => {
                let len = with_data(data, &[*gap], q.len());
                optional(p, optional(d, len))
            }
            Job::Two { data, gaps, p, q, x, y, .. } => {
                let len = same(with_data(data, gaps, p.len()), q.len());
                optional(y, optional(x, len))
            }
            Job::CheckP { data, p } => with_data(data, &[], p.len()),
            Job::CheckPq { data, p, q } => same(with_data(data, &[], p.len()), q.len()),
            Job::CheckPqr { data, p, q, r } => {
                same(same(with_data(data, &[], p.len()), q.len()), r.len())
            }
            Job::CheckDot { inputs, rows, expected, .. } => {
                with_rows(rows, inputs.len(), expected.len());
                let len = with_data(inputs, &[], inputs[0].len());
                expected.iter().fold(len, |len, strip| same(len, strip.len()))
            }
        }
    }
}

fn same(a: usize, b: usize) -> usize {
    assert_eq!(a, b, "strips of different lengths");
    a
}

fn optional(strip: &Option<&mut [u8]>, len: usize) -> usize {
    strip.as_ref().map_or(len, |s| same(s.len(), len))
}

/// Checks that each of `count` results has a row of at least `inputs` coefficients.
fn with_rows(rows: &[&[u8]], inputs: usize, count: usize) {
    assert!(count > 0, "no results");
    assert_eq!(rows.len(), count, "one row of coefficients for each result");
    assert!(rows.iter().all(|row| row.len() >= inputs), "a coefficient for each input");
}

/// Checks `data` against `len`; `gaps` descend.
fn with_data(data: &[&[u8]], gaps: &[usize], len: usize) -> usize {
    assert!(!data.is_empty(), "no data strips");
    let mut above = data.len();
    for &gap in gaps {
        assert!(gap < above, "gaps out of order or out of range");
        above = gap;
    }
    for (i, strip) in data.iter().enumerate() {
        if !gaps.contains(&i) {
            same(strip.len(), len);
        }
    }
    len
}
