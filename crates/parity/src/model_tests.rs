//! Each modelled instruction against the processor's, on random and on edge bytes.
//!
//! Purpose: convict the model wherever the processor has the instruction; a test whose
//! instructions are not there prints `skipped: …`.
//! Invariant: every function of the model is compared, see `every_function_is_compared`.
#![allow(clippy::useless_transmute, clippy::missing_transmute_annotations)]

use core::arch::x86_64 as real;
use core::mem::transmute;

use super::{_mm_sfence, _mm256_set1_epi8, _mm256_stream_si256, Relaxed, UNFENCED, turn};
use crate::model;
use crate::tests::Random;

/// Edge bytes and random bytes, for registers of any width.
fn samples() -> Vec<[u8; 64]> {
    let edges = [0x00, 0xff, 0x80, 0x7f, 0x01, 0xfe, 0x0f, 0xf0, 0x55, 0xaa];
    let mut all: Vec<_> = edges.map(|byte| [byte; 64]).into();
    all.push(core::array::from_fn(|i| i as u8));
    all.push(core::array::from_fn(|i| 255 - i as u8));
    all.push(core::array::from_fn(|i| (i * 4) as u8 | 0x80));
    // One bit each, at both ends and at borders of lanes.
    for bit in [0, 7, 8, 63, 64, 127, 128, 255, 256, 511] {
        all.push(core::array::from_fn(|i| if i == bit / 8 { 1 << (bit % 8) } else { 0 }));
    }
    let mut random = Random(9);
    all.extend((0..100).map(|_| core::array::from_fn(|_| random.next() as u8)));
    all
}

/// Three samples at a time: each with itself, with its neighbour and with a distant one.
fn triples() -> Vec<[[u8; 64]; 3]> {
    let all = samples();
    let at = |i: usize| all[i % all.len()];
    let mut triples = Vec::new();
    for i in 0..all.len() {
        for (b, c) in [(0, 0), (1, 2), (37, 71), (5, 0), (0, 3)] {
            triples.push([at(i), at(i + b), at(i + c)]);
        }
    }
    triples
}

/// The first bytes of a sample, as wide as a register.
fn first<const N: usize>(sample: &[u8; 64]) -> [u8; N] {
    core::array::from_fn(|i| sample[i])
}

/// All bytes of a result.
fn bytes<T: Copy>(result: T) -> Vec<u8> {
    let start = (&raw const result).cast::<u8>();
    // SAFETY: results are registers and integers, which have no padding.
    unsafe { core::slice::from_raw_parts(start, size_of::<T>()) }.to_vec()
}

/// Calls the instruction and its model with the same arguments; all bytes must be the same.
macro_rules! same {
    ($name:ident $(::<$immediate:literal>)? ($($argument:expr),*)) => {{
        // SAFETY: the model needs no feature; registers are arrays of bytes; pointers are to
        // samples of 64 bytes.
        let ours = unsafe { model::$name$(::<$immediate>)?($(transmute($argument)),*) };
        // SAFETY: the test has looked for the instruction's feature.
        let theirs = unsafe { real::$name$(::<$immediate>)?($(transmute($argument)),*) };
        assert_eq!(
            bytes(ours),
            bytes(theirs),
            concat!(stringify!($name), " {:x?}"),
            [$(bytes($argument)),*] as [Vec<u8>; _]
        );
    }};
}

/// Stores to memory by the instruction and by its model; all bytes must be the same.
macro_rules! same_store {
    ($name:ident ($argument:expr)) => {{
        #[repr(align(64))]
        struct Line([u8; 64]);
        let (mut ours, mut theirs) = (Line([0xa5; 64]), Line([0xa5; 64]));
        let _turn = turn();
        // SAFETY: both lines are aligned, and as wide as the widest register.
        unsafe { model::$name(ours.0.as_mut_ptr().cast(), transmute($argument)) };
        // SAFETY: the same, and the test has looked for the feature; a fence follows.
        unsafe {
            real::$name(theirs.0.as_mut_ptr().cast(), transmute($argument));
            real::_mm_sfence();
            _mm_sfence();
        }
        assert_eq!(ours.0, theirs.0, stringify!($name));
    }};
}

/// Whether the processor has all of the features; says so if not.
macro_rules! has {
    ($($feature:tt),*) => {{
        let all = $(std::arch::is_x86_feature_detected!($feature))&&*;
        if !all {
            println!("skipped: this processor lacks {:?}", [$($feature),*]);
        }
        all
    }};
}

#[test]
fn avx2() {
    if !has!("avx2") {
        return;
    }
    same!(_mm256_setzero_si256());
    for [a, b, _] in triples() {
        let (from, scalar) = (a.as_ptr(), a[0] as i8);
        same!(_mm_loadu_si128(from));
        same!(_mm256_loadu_si256(from));
        same!(_mm256_set1_epi8(scalar));
        same!(_mm256_set1_epi64x(i64::from_le_bytes(first(&a))));
        same_store!(_mm256_storeu_si256(first::<32>(&a)));
        same_store!(_mm256_stream_si256(first::<32>(&a)));
        let (a, b) = (first::<32>(&a), first::<32>(&b));
        same!(_mm256_xor_si256(a, b));
        same!(_mm256_and_si256(a, b));
        same!(_mm256_add_epi8(a, b));
        same!(_mm256_cmpgt_epi8(a, b));
        same!(_mm256_testz_si256(a, b));
        same!(_mm256_shuffle_epi8(a, b));
        same!(_mm256_srli_epi64::<0>(a));
        same!(_mm256_srli_epi64::<4>(a));
        same!(_mm256_srli_epi64::<63>(a));
        same!(_mm256_srli_epi64::<64>(a));
        same!(_mm256_permute2x128_si256::<0x00>(a, b));
        same!(_mm256_permute2x128_si256::<0x11>(a, b));
        same!(_mm256_permute2x128_si256::<0x32>(a, b));
        same!(_mm256_permute2x128_si256::<0x83>(a, b));
        same!(_mm256_permute2x128_si256::<0x28>(a, b));
    }
}

#[test]
fn gfni_avx2() {
    if !has!("avx2", "gfni") {
        return;
    }
    for [a, b, _] in triples() {
        let (a, b) = (first::<32>(&a), first::<32>(&b));
        same!(_mm256_gf2p8affine_epi64_epi8::<0>(a, b));
        same!(_mm256_gf2p8affine_epi64_epi8::<0x63>(a, b));
        same!(_mm256_gf2p8affine_epi64_epi8::<0xff>(a, b));
    }
}

#[test]
fn avx512() {
    if !has!("avx512f", "avx512bw") {
        return;
    }
    same!(_mm512_setzero_si512());
    for [a, b, c] in triples() {
        let (from, scalar) = (a.as_ptr(), a[0] as i8);
        same!(_mm512_loadu_si512(from));
        same!(_mm512_set1_epi8(scalar));
        same!(_mm512_set1_epi64(i64::from_le_bytes(first(&a))));
        same!(_mm512_broadcast_i32x4(first::<16>(&a)));
        same_store!(_mm512_storeu_si512(a));
        same_store!(_mm512_stream_si512(a));
        same!(_mm512_xor_si512(a, b));
        same!(_mm512_and_si512(a, b));
        same!(_mm512_add_epi8(a, b));
        same!(_mm512_shuffle_epi8(a, b));
        same!(_mm512_test_epi64_mask(a, b));
        same!(_mm512_srli_epi64::<0>(a));
        same!(_mm512_srli_epi64::<4>(a));
        same!(_mm512_srli_epi64::<63>(a));
        same!(_mm512_srli_epi64::<64>(a));
        same!(_mm512_ternarylogic_epi64::<0x96>(a, b, c));
        same!(_mm512_ternarylogic_epi64::<0xca>(a, b, c));
        same!(_mm512_ternarylogic_epi64::<0x1b>(a, b, c));
        same!(_mm512_ternarylogic_epi64::<0xd2>(a, b, c));
    }
}

#[test]
fn gfni_avx512() {
    if !has!("avx512f", "avx512bw", "gfni") {
        return;
    }
    for [a, b, _] in triples() {
        same!(_mm512_gf2p8affine_epi64_epi8::<0>(a, b));
        same!(_mm512_gf2p8affine_epi64_epi8::<0x63>(a, b));
        same!(_mm512_gf2p8affine_epi64_epi8::<0xff>(a, b));
    }
}

#[test]
fn every_function_is_compared() {
    let tests = include_str!("model_tests.rs");
    let functions: Vec<_> = include_str!("model.rs")
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("pub(crate) unsafe fn "))
        .map(|line| &line[..line.find(['(', '<']).unwrap()])
        .collect();
    assert!(functions.len() > 30, "the model's functions are not found");
    for name in functions.into_iter().filter(|name| *name != "_mm_sfence") {
        let compared = ["same!", "same_store!"].iter().any(|check| {
            tests.contains(&format!("{check}({name}("))
                || tests.contains(&format!("{check}({name}::"))
        });
        assert!(compared, "{name} is modelled and not compared");
    }
}

#[test]
fn fence_is_demanded() {
    let _turn = turn();
    let mut line = [0u64; 8];
    let start = line.as_mut_ptr().cast::<u8>();
    let start = start.wrapping_add(start.align_offset(32)).cast();
    assert!(!UNFENCED.load(Relaxed));
    // SAFETY: 32 aligned bytes are within the 64.
    unsafe { _mm256_stream_si256(start, _mm256_set1_epi8(1)) };
    assert!(UNFENCED.load(Relaxed));
    // SAFETY: the model's fence touches no memory.
    unsafe { _mm_sfence() };
    assert!(!UNFENCED.load(Relaxed));
}

#[test]
#[should_panic(expected = "not aligned")]
fn alignment_is_demanded() {
    let _turn = turn();
    let mut line = [0u64; 8];
    let start = line.as_mut_ptr().cast::<u8>();
    let start = start.wrapping_add(start.align_offset(32) + 1).cast();
    // SAFETY: the model stops before it stores.
    unsafe { _mm256_stream_si256(start, _mm256_set1_epi8(1)) };
}
