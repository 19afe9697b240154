//! Jobs: the one interface between the codes and whatever computes them.
//!
//! Purpose: say what is to be computed, by value, so that every kernel is one function and a
//! back end that is not a processor can take the same jobs.
//! Invariant: `Job::checked_len` accepts a job only if every slice that will be touched has one
//! common length; kernels then need no bounds checks.

/// One pass over memory. P is the sum of the data, Q the sum of g^i times data strip i.
///
/// In the jobs that solve for lost strips, `data` holds an empty slice at each gap.
pub(crate) enum Job<'a> {
    /// P of the data; also any plain sum of strips.
    P { data: &'a [&'a [u8]], p: &'a mut [u8] },
    /// Q of the data.
    Q { data: &'a [&'a [u8]], q: &'a mut [u8] },
    /// P and Q of the data.
    Pq { data: &'a [&'a [u8]], p: &'a mut [u8], q: &'a mut [u8] },
    /// P ^= old ^ new.
    DeltaP { old: &'a [u8], new: &'a [u8], p: &'a mut [u8] },
    /// Q ^= factor·(old ^ new).
    DeltaQ { old: &'a [u8], new: &'a [u8], q: &'a mut [u8], factor: u8 },
    /// Both deltas.
    DeltaPq { old: &'a [u8], new: &'a [u8], p: &'a mut [u8], q: &'a mut [u8], factor: u8 },
    /// One data strip and Q lost: D = P ^ P', Q = Q' ^ factor·D; factor = g^gap.
    ViaP {
        data: &'a [&'a [u8]],
        gap: usize,
        p: &'a [u8],
        factor: u8,
        d: Option<&'a mut [u8]>,
        q: &'a mut [u8],
    },
    /// One data strip and P lost: D = factor·(Q ^ Q'), P = P' ^ D; factor = g^-gap.
    ViaQ {
        data: &'a [&'a [u8]],
        gap: usize,
        q: &'a [u8],
        factor: u8,
        d: Option<&'a mut [u8]>,
        p: Option<&'a mut [u8]>,
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
    },
    /// Whether P is the data's; answers the first offset where not.
    CheckP { data: &'a [&'a [u8]], p: &'a [u8] },
    /// Whether P and Q are the data's; answers the first offset where not.
    CheckPq { data: &'a [&'a [u8]], p: &'a [u8], q: &'a [u8] },
}

impl Job<'_> {
    /// The common length of all slices.
    ///
    /// # Panics
    ///
    /// If lengths differ, a code has no data, or gaps are not in order and in range.
    pub(crate) fn checked_len(&self) -> usize {
        match self {
            Job::P { data, p } => with_data(data, &[], p.len()),
            Job::Q { data, q } => with_data(data, &[], q.len()),
            Job::Pq { data, p, q } => same(with_data(data, &[], p.len()), q.len()),
            Job::DeltaP { old, new, p } => same(same(old.len(), new.len()), p.len()),
            Job::DeltaQ { old, new, q, .. } => same(same(old.len(), new.len()), q.len()),
            Job::DeltaPq { old, new, p, q, .. } => {
                same(same(old.len(), new.len()), same(p.len(), q.len()))
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
