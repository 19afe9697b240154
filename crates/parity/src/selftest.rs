//! The known-answer test that a kernel must pass before it is used.
//!
//! Purpose: a processor, hypervisor or compiler that gets one instruction wrong must not
//! corrupt arrays. Every job kind runs at lengths that use every step width; the deltas use all
//! 255 coefficients on all 256 byte values, so every table entry is read.
//! Invariant: expected bytes and coefficients come from `reference` only.

use crate::code::{Change, Code, Stores};
use crate::job::Job;
use crate::kernel::Kernel;
use crate::recover;
use crate::reference;
use crate::tables;

/// Four 64-byte vectors, one more, seven words, seven bytes: every width of every kernel.
const LEN: usize = 256 + 64 + 56 + 7;

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

/// Bytes in which each run of 256 holds all values, in an order that `seed` picks.
fn pattern(seed: usize) -> [u8; LEN] {
    core::array::from_fn(|i| (i * (2 * seed + 1) + seed * 29) as u8)
}

/// Every coefficient times every byte, through the deltas.
fn multiplies(kernel: &Kernel) -> bool {
    let zeros = [0; LEN];
    (0..255).all(|index| {
        let new = pattern(index);
        let factor = tables::power(index);
        let (mut p, mut q) = (pattern(1), pattern(2));
        let both = Job::DeltaPq { old: &zeros, new: &new, p: &mut p, q: &mut q, factor };
        kernel.run(both);
        kernel.run(Job::DeltaP { old: &new, new: &zeros, p: &mut p });
        let coefficient = reference::coefficient(2, 1, index);
        let right =
            new.iter().zip(pattern(2)).map(|(&d, q)| q ^ reference::multiply(coefficient, d));
        let multiplied = right.eq(q.iter().copied());
        kernel.run(Job::DeltaQ { old: &new, new: &zeros, q: &mut q, factor });
        multiplied && p == pattern(1) && q == pattern(2)
    })
}

/// Every coefficient times every nibble, in strips so short that only single bytes are left.
fn multiplies_bytes(kernel: &Kernel) -> bool {
    let bytes: [u8; 16] = core::array::from_fn(|n| (n * 0x11) as u8);
    let zeros = [0; 7];
    (0..255).all(|index| {
        let coefficient = reference::coefficient(2, 1, index);
        bytes.chunks(7).all(|new| {
            let mut q = [0; 7];
            let (old, q) = (&zeros[..new.len()], &mut q[..new.len()]);
            kernel.run(Job::DeltaQ { old, new, q, factor: tables::power(index) });
            new.iter().zip(q).all(|(&d, q)| *q == reference::multiply(coefficient, d))
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
        let both = [Stores::Cached, Stores::Streaming];
        both.into_iter().all(|stores| {
            let mut parity = [[0; LEN]; PARITIES];
            let mut out = parity.each_mut().map(|strip| &mut strip[..]);
            code.generate_with(kernel, &refs[..k], &mut out[..m], stores);
            parity[..m] == strips[k..k + m]
        }) && checks(kernel, code, &strips)
            && changes(kernel, code, &strips)
    })
}

/// Whether a wrong byte in any strip is found where it is, and none without it.
fn checks(kernel: &Kernel, code: Code, strips: &[[u8; LEN]; STRIPS + PARITIES]) -> bool {
    let right = |strips: &[[u8; LEN]; STRIPS + PARITIES]| {
        let refs: [&[u8]; STRIPS + PARITIES] = core::array::from_fn(|i| &strips[i][..]);
        code.verify_with(kernel, &refs[..code.strips()])
    };
    let mut bad = *strips;
    right(strips).is_none()
        && (0..LEN).step_by(41).enumerate().all(|(i, at)| {
            bad[i % code.strips()][at] ^= 0x40;
            let found = right(&bad);
            bad[i % code.strips()][at] ^= 0x40;
            found == Some(at)
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

/// Every loss of as many strips as there are parities, all of it wanted and all but one strip.
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
    [lost, &lost[1..]].into_iter().all(|lost| {
        let mut found = [[0; LEN]; PARITIES];
        let mut out = found.each_mut().map(|strip| &mut strip[..]);
        let (left, out) = (&left[..code.strips()], &mut out[..lost.len()]);
        recover::recover(kernel, code, left, lost, out, Stores::Cached).is_ok()
            && lost.iter().zip(&found).all(|(&i, strip)| *strip == strips[i])
    })
}
