//! The known-answer test that a kernel must pass before it is used.
//!
//! Purpose: a processor, hypervisor or compiler that gets one instruction wrong must not
//! corrupt arrays. Every job kind runs at lengths that use every step width; the deltas use all
//! 255 coefficients on all 256 byte values, so every table entry is read.
//! Invariant: expected bytes come from `reference` only.

use crate::code::{Code, Stores};
use crate::job::Job;
use crate::kernel::Kernel;
use crate::recover;
use crate::reference;
use crate::tables;

/// Four 64-byte vectors, one more, seven words, seven bytes: every width of every kernel.
const LEN: usize = 256 + 64 + 56 + 7;

/// Data strips in the test of generation and recovery.
const STRIPS: usize = 5;

/// Whether `kernel` computes what the reference computes.
pub(crate) fn passes(kernel: &Kernel) -> bool {
    multiplies(kernel) && multiplies_bytes(kernel) && generates(kernel) && recovers(kernel)
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
        let coefficient = reference::coefficient(1, index);
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
        let coefficient = reference::coefficient(1, index);
        bytes.chunks(7).all(|new| {
            let mut q = [0; 7];
            let (old, q) = (&zeros[..new.len()], &mut q[..new.len()]);
            kernel.run(Job::DeltaQ { old, new, q, factor: tables::power(index) });
            new.iter().zip(q).all(|(&d, q)| *q == reference::multiply(coefficient, d))
        })
    })
}

/// A stripe of `k` data strips from the reference.
fn stripe(k: usize) -> [[u8; LEN]; STRIPS + 2] {
    let mut strips = core::array::from_fn(pattern);
    for at in 0..LEN {
        for row in 0..2 {
            strips[k + row][at] =
                reference::parity_byte(row, strips[..k].iter().map(|strip: &[u8; LEN]| strip[at]));
        }
    }
    strips
}

/// P, Q and both, and the checks of them.
fn generates(kernel: &Kernel) -> bool {
    (1..=STRIPS).all(|k| {
        let strips = stripe(k);
        let refs: [&[u8]; STRIPS + 2] = core::array::from_fn(|i| &strips[i][..]);
        let (data, right_p, right_q) = (&refs[..k], refs[k], refs[k + 1]);
        let (mut p, mut q) = ([0; LEN], [0; LEN]);
        kernel.run(Job::Pq { data, p: &mut p, q: &mut q, stores: Stores::Cached });
        let together = p == right_p && q == right_q;
        kernel.run(Job::P { data, p: &mut q, stores: Stores::Cached });
        kernel.run(Job::Q { data, q: &mut p, stores: Stores::Cached });
        let apart = q == right_p && p == right_q;
        together
            && apart
            && (0..LEN).step_by(41).all(|at| checks(kernel, data, right_p, right_q, at))
    })
}

/// Whether a wrong byte at `at` is found there, and none without it.
fn checks(kernel: &Kernel, data: &[&[u8]], p: &[u8], q: &[u8], at: usize) -> bool {
    let mut bad = [0; LEN];
    bad.copy_from_slice(q);
    bad[at] ^= 0x40;
    let found = kernel.run(Job::CheckPq { data, p, q: &bad }) == Some(at);
    bad.copy_from_slice(p);
    bad[at] ^= 0x01;
    found
        && kernel.run(Job::CheckP { data, p: &bad }) == Some(at)
        && kernel.run(Job::CheckPq { data, p: &bad, q }) == Some(at)
        && kernel.run(Job::CheckPq { data, p, q }).is_none()
        && kernel.run(Job::CheckP { data, p }).is_none()
}

/// Every loss of two strips.
fn recovers(kernel: &Kernel) -> bool {
    let strips = stripe(STRIPS);
    let Ok(code) = Code::new(STRIPS, 2) else { return false };
    let all = STRIPS + 2;
    (0..all).all(|x| {
        (x + 1..all).all(|y| {
            let left: [Option<&[u8]>; STRIPS + 2] =
                core::array::from_fn(|i| (i != x && i != y).then_some(&strips[i][..]));
            let (mut a, mut b) = ([0; LEN], [0; LEN]);
            let out: &mut [&mut [u8]] = &mut [&mut a, &mut b];
            recover::recover(kernel, code, &left, &[x, y], out, Stores::Cached).is_ok()
                && a == strips[x]
                && b == strips[y]
        })
    })
}
