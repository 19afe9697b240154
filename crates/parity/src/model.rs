//! A software model of the x86 vector instructions that the kernels use, for tests.
//!
//! Purpose: the tests run the AVX2, AVX-512 and GFNI kernels on any processor, byte for byte as
//! the instructions would; `tests` compares each function with its instruction wherever there
//! is one. Names and signatures are those of `core::arch::x86_64`; what each does is written
//! from "Operation" in Intel's Software Developer's Manual, volume 2, a byte or a word at a
//! time, and shares nothing with the kernels.
//! Invariants: only what the kernels use is here, and all of it is compared. A streaming store
//! that is misaligned, or that no fence follows before the job's end, panics; for that, one
//! thread at a time runs jobs here.
#![allow(unsafe_code, non_camel_case_types)]

use core::array::from_fn;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::job::Job;
use crate::kernel::Candidate;
use crate::sweep;
use crate::tables::Tables;
use crate::tests::streams::STREAMED;
use crate::vector::Vector;

/// Held while a job runs.
static TURN: Mutex<()> = Mutex::new(());
/// Whether whoever has the turn streamed a store that no fence has followed.
static UNFENCED: AtomicBool = AtomicBool::new(false);

/// Waits for the turn. A job that panicked leaves nothing behind.
fn turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    UNFENCED.store(false, Relaxed);
    turn
}

/// A kernel over vectors of the model.
pub(crate) const fn candidate<V: Vector>(name: &'static str) -> Candidate {
    Candidate { name, supported: || true, run: run::<V> }
}

/// See [`sweep::run`].
unsafe fn run<V: Vector>(job: Job<'_>, tables: &Tables) -> Option<usize> {
    let _turn = turn();
    // SAFETY: the model needs no processor feature; the caller vouches for the job.
    let answer = unsafe { sweep::run::<sweep::Any<V>>(job, tables) };
    assert!(!UNFENCED.load(Relaxed), "a job ended without a fence after its streaming stores");
    answer
}

/// A 16-byte register.
#[derive(Clone, Copy)]
pub(crate) struct __m128i([u8; 16]);
/// A 32-byte register.
#[derive(Clone, Copy)]
pub(crate) struct __m256i([u8; 32]);
/// A 64-byte register.
#[derive(Clone, Copy)]
pub(crate) struct __m512i([u8; 64]);

/// One byte of `a` and of `b` at a time.
fn bytes<const N: usize>(a: [u8; N], b: [u8; N], f: impl Fn(u8, u8) -> u8) -> [u8; N] {
    from_fn(|i| f(a[i], b[i]))
}

/// The 8-byte word that byte `i` is in, little-endian.
fn word<const N: usize>(a: &[u8; N], i: usize) -> u64 {
    let start = i / 8 * 8;
    (0..8).fold(0, |sum, j| sum | u64::from(a[start + j]) << (8 * j))
}

/// One 8-byte word at a time.
fn words<const N: usize>(a: [u8; N], f: impl Fn(u64) -> u64) -> [u8; N] {
    from_fn(|i| (f(word(&a, i)) >> (8 * (i % 8))) as u8)
}

/// PSHUFB, in each 16 bytes.
fn pshufb<const N: usize>(a: [u8; N], b: [u8; N]) -> [u8; N] {
    from_fn(|i| if b[i] & 0x80 != 0 { 0 } else { a[i / 16 * 16 + (b[i] & 15) as usize] })
}

/// GF2P8AFFINEQB: bit i of a byte is the parity of row 7 - i of its word's matrix, masked by
/// the byte, plus bit i of the immediate.
fn affine<const N: usize>(x: [u8; N], a: [u8; N], immediate: i32) -> [u8; N] {
    from_fn(|i| {
        let matrix = word(&a, i).to_le_bytes();
        (0..8).fold(immediate as u8, |y, bit| {
            y ^ (((matrix[7 - bit] & x[i]).count_ones() as u8 & 1) << bit)
        })
    })
}

/// What a streaming store demands.
fn stream(to: usize, width: usize) {
    assert!(to.is_multiple_of(width), "a streaming store is not aligned");
    STREAMED.set(STREAMED.get() + width);
    UNFENCED.store(true, Relaxed);
}

/// SFENCE.
pub(crate) unsafe fn _mm_sfence() {
    UNFENCED.store(false, Relaxed);
}

/// MOVDQU.
#[inline(never)]
pub(crate) unsafe fn _mm_loadu_si128(from: *const __m128i) -> __m128i {
    // SAFETY: the caller vouches for 16 bytes; the type has no alignment.
    unsafe { from.read() }
}

/// VPXOR of itself.
#[inline(never)]
pub(crate) unsafe fn _mm256_setzero_si256() -> __m256i {
    __m256i([0; 32])
}

/// VPBROADCASTB.
#[inline(never)]
pub(crate) unsafe fn _mm256_set1_epi8(a: i8) -> __m256i {
    __m256i([a as u8; 32])
}

/// VPBROADCASTQ.
#[inline(never)]
pub(crate) unsafe fn _mm256_set1_epi64x(a: i64) -> __m256i {
    __m256i(from_fn(|i| (a >> (8 * (i % 8))) as u8))
}

/// VMOVDQU.
#[inline(never)]
pub(crate) unsafe fn _mm256_loadu_si256(from: *const __m256i) -> __m256i {
    // SAFETY: the caller vouches for 32 bytes; the type has no alignment.
    unsafe { from.read() }
}

/// VMOVDQU.
#[inline(never)]
pub(crate) unsafe fn _mm256_storeu_si256(to: *mut __m256i, a: __m256i) {
    // SAFETY: the caller vouches for 32 bytes; the type has no alignment.
    unsafe { to.write(a) }
}

/// VMOVNTDQ.
#[inline(never)]
pub(crate) unsafe fn _mm256_stream_si256(to: *mut __m256i, a: __m256i) {
    stream(to.addr(), 32);
    // SAFETY: the caller vouches for 32 bytes.
    unsafe { to.write(a) }
}

/// VPXOR.
#[inline(never)]
pub(crate) unsafe fn _mm256_xor_si256(a: __m256i, b: __m256i) -> __m256i {
    __m256i(bytes(a.0, b.0, |a, b| a ^ b))
}

/// VPAND.
#[inline(never)]
pub(crate) unsafe fn _mm256_and_si256(a: __m256i, b: __m256i) -> __m256i {
    __m256i(bytes(a.0, b.0, |a, b| a & b))
}

/// VPADDB.
#[inline(never)]
pub(crate) unsafe fn _mm256_add_epi8(a: __m256i, b: __m256i) -> __m256i {
    __m256i(bytes(a.0, b.0, u8::wrapping_add))
}

/// VPCMPGTB, of signed bytes.
#[inline(never)]
pub(crate) unsafe fn _mm256_cmpgt_epi8(a: __m256i, b: __m256i) -> __m256i {
    __m256i(bytes(a.0, b.0, |a, b| if a as i8 > b as i8 { 0xff } else { 0 }))
}

/// VPTEST, its zero flag.
#[inline(never)]
pub(crate) unsafe fn _mm256_testz_si256(a: __m256i, b: __m256i) -> i32 {
    i32::from(bytes(a.0, b.0, |a, b| a & b) == [0; 32])
}

/// VPSRLQ.
#[inline(never)]
pub(crate) unsafe fn _mm256_srli_epi64<const IMM8: i32>(a: __m256i) -> __m256i {
    __m256i(words(a.0, |w| if IMM8 > 63 { 0 } else { w >> IMM8 }))
}

/// VPSHUFB.
#[inline(never)]
pub(crate) unsafe fn _mm256_shuffle_epi8(a: __m256i, b: __m256i) -> __m256i {
    __m256i(pshufb(a.0, b.0))
}

/// VPERM2I128: for each half, bits 1:0 of its part of the immediate pick one of the four source
/// halves, bit 3 clears.
#[inline(never)]
pub(crate) unsafe fn _mm256_permute2x128_si256<const IMM8: i32>(a: __m256i, b: __m256i) -> __m256i {
    __m256i(from_fn(|i| {
        let control = IMM8 >> (i / 16 * 4);
        let source = if control & 2 == 0 { a } else { b };
        if control & 8 != 0 { 0 } else { source.0[(control & 1) as usize * 16 + i % 16] }
    }))
}

/// VGF2P8AFFINEQB.
#[inline(never)]
pub(crate) unsafe fn _mm256_gf2p8affine_epi64_epi8<const B: i32>(
    x: __m256i,
    a: __m256i,
) -> __m256i {
    __m256i(affine(x.0, a.0, B))
}

/// VPXORD of itself.
#[inline(never)]
pub(crate) unsafe fn _mm512_setzero_si512() -> __m512i {
    __m512i([0; 64])
}

/// VPBROADCASTB.
#[inline(never)]
pub(crate) unsafe fn _mm512_set1_epi8(a: i8) -> __m512i {
    __m512i([a as u8; 64])
}

/// VPBROADCASTQ.
#[inline(never)]
pub(crate) unsafe fn _mm512_set1_epi64(a: i64) -> __m512i {
    __m512i(from_fn(|i| (a >> (8 * (i % 8))) as u8))
}

/// VBROADCASTI32X4.
#[inline(never)]
pub(crate) unsafe fn _mm512_broadcast_i32x4(a: __m128i) -> __m512i {
    __m512i(from_fn(|i| a.0[i % 16]))
}

/// VMOVDQU32.
#[inline(never)]
pub(crate) unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
    // SAFETY: the caller vouches for 64 bytes; the type has no alignment.
    unsafe { from.read() }
}

/// VMOVDQU32.
#[inline(never)]
pub(crate) unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
    // SAFETY: the caller vouches for 64 bytes; the type has no alignment.
    unsafe { to.write(a) }
}

/// VMOVNTDQ.
#[inline(never)]
pub(crate) unsafe fn _mm512_stream_si512(to: *mut __m512i, a: __m512i) {
    stream(to.addr(), 64);
    // SAFETY: the caller vouches for 64 bytes.
    unsafe { to.write(a) }
}

/// VPXORQ.
#[inline(never)]
pub(crate) unsafe fn _mm512_xor_si512(a: __m512i, b: __m512i) -> __m512i {
    __m512i(bytes(a.0, b.0, |a, b| a ^ b))
}

/// VPANDQ.
#[inline(never)]
pub(crate) unsafe fn _mm512_and_si512(a: __m512i, b: __m512i) -> __m512i {
    __m512i(bytes(a.0, b.0, |a, b| a & b))
}

/// VPADDB.
#[inline(never)]
pub(crate) unsafe fn _mm512_add_epi8(a: __m512i, b: __m512i) -> __m512i {
    __m512i(bytes(a.0, b.0, u8::wrapping_add))
}

/// VPTERNLOGQ: the bits of a, b and c, a's the highest, index the immediate.
#[inline(never)]
pub(crate) unsafe fn _mm512_ternarylogic_epi64<const IMM8: i32>(
    a: __m512i,
    b: __m512i,
    c: __m512i,
) -> __m512i {
    __m512i(from_fn(|i| {
        (0..8).fold(0, |y, bit| {
            let index = (a.0[i] >> bit & 1) << 2 | (b.0[i] >> bit & 1) << 1 | (c.0[i] >> bit & 1);
            y | ((IMM8 >> index & 1) as u8) << bit
        })
    }))
}

/// VPTESTMQ: a bit for each 8-byte word in which a & b is not 0.
#[inline(never)]
pub(crate) unsafe fn _mm512_test_epi64_mask(a: __m512i, b: __m512i) -> u8 {
    (0..8).fold(0, |mask, w| mask | u8::from(word(&a.0, 8 * w) & word(&b.0, 8 * w) != 0) << w)
}

/// VPSRLQ.
#[inline(never)]
pub(crate) unsafe fn _mm512_srli_epi64<const IMM8: u32>(a: __m512i) -> __m512i {
    __m512i(words(a.0, |w| if IMM8 > 63 { 0 } else { w >> IMM8 }))
}

/// VPSHUFB.
#[inline(never)]
pub(crate) unsafe fn _mm512_shuffle_epi8(a: __m512i, b: __m512i) -> __m512i {
    __m512i(pshufb(a.0, b.0))
}

/// VGF2P8AFFINEQB.
#[inline(never)]
pub(crate) unsafe fn _mm512_gf2p8affine_epi64_epi8<const B: i32>(
    x: __m512i,
    a: __m512i,
) -> __m512i {
    __m512i(affine(x.0, a.0, B))
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
