//! The known-answer test that a kernel must pass before it is used.
//!
//! Purpose: a processor, hypervisor or compiler that gets one instruction wrong must not
//! corrupt arrays. Every job kind runs at a length that uses every step width, and with every
//! kind of stores that it has; the deltas use all 256 constants on all 256 byte values, so every
//! table entry is read.
//! Invariant: expected bytes and coefficients come from `reference` only.

use crate::code::{Change, Code, Located, Stores};
use crate::job::Job;
use crate::kernel::Kernel;
use crate::locate;
use crate::recover;
use crate::reference;

/// Bytes of an output before its first multiple of 64, where streaming begins.
const HEAD: usize = 7;
/// The head, four 64-byte vectors, one more, seven words, seven bytes: every width of every
/// kernel.
const LEN: usize = HEAD + 256 + 64 + 56 + 7;
/// Both kinds of stores.
const BOTH: [Stores; 2] = [Stores::Cached, Stores::Streaming];

/// Most data strips in the test of generation.
const STRIPS: usize = 4;
/// Data strips in the test of recovery, fewer, because it tries every loss.
const LOSSY: usize = 3;
/// Parities: one group of four rows, and one more.
const PARITIES: usize = 5;

/// Whether `kernel` computes what the reference computes.
pub(crate) fn passes(kernel: &Kernel) -> bool {
    coefficients(kernel)
        && multiplies(kernel)
        && multiplies_bytes(kernel)
        && generates(kernel)
        && recovers(kernel)
}

/// Places for outputs, all `HEAD` bytes before a multiple of 64, so that they can be streamed to.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Place([u8; 64 - HEAD + LEN]);

impl Place {
    const EMPTY: Place = Place([0; 64 - HEAD + LEN]);

    fn strip(&self) -> &[u8] {
        &self.0[64 - HEAD..]
    }

    fn strip_mut(&mut self) -> &mut [u8] {
        &mut self.0[64 - HEAD..]
    }
}

/// Bytes in which each run of 256 holds all values, in an order that `seed` picks.
fn pattern(seed: usize) -> [u8; LEN] {
    core::array::from_fn(|i| (i * (2 * seed + 1) + seed * 29) as u8)
}

/// Every constant times every byte, through the deltas.
fn multiplies(kernel: &Kernel) -> bool {
    let zeros = [0; LEN];
    (0..=255).all(|factor| {
        let new = pattern(usize::from(factor));
        let (mut p, mut q) = (pattern(1), pattern(2));
        let both = Job::DeltaPq { old: &zeros, new: &new, p: &mut p, q: &mut q, factor };
        kernel.run(both);
        kernel.run(Job::DeltaP { old: &new, new: &zeros, p: &mut p });
        let right = new.iter().zip(pattern(2)).map(|(&d, q)| q ^ reference::multiply(factor, d));
        let multiplied = right.eq(q.iter().copied());
        kernel.run(Job::DeltaQ { old: &new, new: &zeros, q: &mut q, factor });
        multiplied && p == pattern(1) && q == pattern(2)
    })
}

/// Every constant times every nibble, in strips so short that only single bytes are left.
fn multiplies_bytes(kernel: &Kernel) -> bool {
    let bytes: [u8; 16] = core::array::from_fn(|n| (n * 0x11) as u8);
    let zeros = [0; 7];
    (0..=255).all(|factor| {
        bytes.chunks(7).all(|new| {
            let mut q = [0; 7];
            let (old, q) = (&zeros[..new.len()], &mut q[..new.len()]);
            kernel.run(Job::DeltaQ { old, new, q, factor });
            new.iter().zip(q).all(|(&d, q)| *q == reference::multiply(factor, d))
        })
    })
}

/// The coefficients that the codes take from the tables.
fn coefficients(kernel: &Kernel) -> bool {
    [3, Code::MAX_PARITIES].into_iter().all(|parities| {
        (0..parities).all(|row| {
            let coefficients = kernel.tables().row(parities, row).iter().enumerate();
            let mut used = coefficients.take(Code::max_data(parities));
            used.all(|(i, &c)| c == reference::coefficient(parities, row, i))
        })
    }) && (4..Code::MAX_PARITIES).all(|parities| {
        // The narrower the code, the more data strips it has.
        let index = Code::max_data(parities) - 1;
        (0..parities).all(|row| {
            let coefficient = kernel.tables().row(parities, row)[index];
            coefficient == reference::coefficient(parities, row, index)
        })
    })
}

/// A stripe of `k` data strips and `m` parities from the reference.
fn stripe(k: usize, m: usize) -> [[u8; LEN]; STRIPS + PARITIES] {
    let mut strips = core::array::from_fn(pattern);
    for at in 0..LEN {
        for row in 0..m {
            let data = strips[..k].iter().map(|strip: &[u8; LEN]| strip[at]);
            strips[k + row][at] = reference::parity_byte(m, row, data);
        }
    }
    strips
}

/// Every number of parities that has code of its own, with both kinds of stores, and the checks.
fn generates(kernel: &Kernel) -> bool {
    let shapes = (1..=STRIPS).flat_map(|k| (1..=PARITIES).map(move |m| (k, m)));
    shapes.into_iter().all(|(k, m)| {
        let Ok(code) = Code::new(k, m) else { return false };
        let strips = stripe(k, m);
        let refs: [&[u8]; STRIPS + PARITIES] = core::array::from_fn(|i| &strips[i][..]);
        BOTH.into_iter().all(|stores| {
            let mut parity = [Place::EMPTY; PARITIES];
            let mut out = parity.each_mut().map(Place::strip_mut);
            code.generate_with(kernel, &refs[..k], &mut out[..m], stores);
            parity.iter().zip(&strips[k..k + m]).all(|(found, right)| found.strip() == right)
        }) && checks(kernel, code, &strips)
            && changes(kernel, code, &strips)
    })
}

/// Whether a wrong byte in any strip is found where it is and its strip named, and none without
/// it.
fn checks(kernel: &Kernel, code: Code, strips: &[[u8; LEN]; STRIPS + PARITIES]) -> bool {
    let right = |strips: &[[u8; LEN]; STRIPS + PARITIES]| {
        let refs: [&[u8]; STRIPS + PARITIES] = core::array::from_fn(|i| &strips[i][..]);
        let refs = &refs[..code.strips()];
        (code.verify_with(kernel, refs), locate::locate(kernel, code, refs))
    };
    let mut bad = *strips;
    // Two bad strips are not taken for one, whatever the first difference says.
    let two = [(0, 1), (code.strips() - 1, LEN - 1)];
    two.into_iter().for_each(|(strip, at)| bad[strip][at] ^= 0x04);
    let many = right(&bad) == (Some(1), Located::Unknown);
    bad = *strips;
    many && right(strips) == (None, Located::Clean)
        && (0..LEN).step_by(41).enumerate().all(|(i, at)| {
            let strip = i % code.strips();
            bad[strip][at] ^= 0x40;
            let found = right(&bad);
            bad[strip][at] ^= 0x40;
            let named = match code.parities() {
                1 => Located::Unknown,
                _ => Located::Strip(strip),
            };
            found == (Some(at), named)
        })
}

/// Whether the parities follow when all data strips change at once.
fn changes(kernel: &Kernel, code: Code, strips: &[[u8; LEN]; STRIPS + PARITIES]) -> bool {
    let (k, m) = (code.data(), code.parities());
    let zeros = [0; LEN];
    let changes: [Change<'_>; STRIPS] =
        core::array::from_fn(|index| Change { index, old: &strips[index], new: &zeros });
    let mut parity = *strips;
    let mut out = parity.each_mut().map(|strip| Some(&mut strip[..]));
    code.update_with(kernel, &changes[..k], &mut out[k..k + m]);
    parity[k..k + m].iter().all(|strip| *strip == zeros)
}

/// Every loss of as many strips as there are parities, all of it wanted and all but one strip,
/// with both kinds of stores.
fn recovers(kernel: &Kernel) -> bool {
    (1..=PARITIES).all(|m| {
        let strips = stripe(LOSSY, m);
        let Ok(code) = Code::new(LOSSY, m) else { return false };
        let patterns = (0..1u32 << code.strips()).filter(|p| p.count_ones() as usize == m);
        patterns.into_iter().all(|missing| recovers_all(kernel, code, &strips, missing))
    })
}

/// Recovers the strips whose bits are set, all of them, then all but the first.
fn recovers_all(
    kernel: &Kernel,
    code: Code,
    strips: &[[u8; LEN]; STRIPS + PARITIES],
    missing: u32,
) -> bool {
    let left: [Option<&[u8]>; STRIPS + PARITIES] =
        core::array::from_fn(|i| (missing >> i & 1 == 0).then_some(&strips[i][..]));
    let mut lost = [0; PARITIES];
    let missing = (0..code.strips()).filter(|i| missing >> i & 1 == 1);
    lost.iter_mut().zip(missing).for_each(|(to, index)| *to = index);
    let lost = &lost[..code.parities()];
    let wanted = [lost, &lost[1..]].into_iter().flat_map(|lost| BOTH.map(|stores| (lost, stores)));
    wanted.into_iter().all(|(lost, stores)| {
        let mut found = [Place::EMPTY; PARITIES];
        let mut out = found.each_mut().map(Place::strip_mut);
        let (left, out) = (&left[..code.strips()], &mut out[..lost.len()]);
        recover::recover(kernel, code, left, lost, out, stores).is_ok()
            && lost.iter().zip(&found).all(|(&i, found)| found.strip() == strips[i])
    })
}
