//! The operations of `sweep`: what each job does at one offset of all strips.
//!
//! Purpose: the equations of the crate's documentation, one `step` each.
//! Invariants: pointers to outputs come from exclusive borrows that outlive the operation, so
//! outputs overlap neither inputs nor each other; a null pointer is a strip nobody wants.
#![allow(unsafe_code)]

use crate::sweep::Operation;
use crate::tables::Tables;
use crate::vector::Vector;

/// Loads from strip `i` of `data` at offset `at`.
#[inline(always)]
unsafe fn load<V: Vector>(data: &[&[u8]], i: usize, at: usize) -> V {
    debug_assert!(at + V::BYTES <= data[i].len());
    // SAFETY: the caller vouches for `i`, the offset and the processor.
    unsafe { V::load(data.get_unchecked(i).as_ptr().add(at)) }
}

/// Loads from `strip` at offset `at`.
#[inline(always)]
unsafe fn load_at<V: Vector>(strip: &[u8], at: usize) -> V {
    debug_assert!(at + V::BYTES <= strip.len());
    // SAFETY: the caller vouches for the offset and the processor.
    unsafe { V::load(strip.as_ptr().add(at)) }
}

/// Stores at offset `at` of a strip that may be unwanted (null).
#[inline(always)]
unsafe fn store_if<V: Vector>(value: V, to: *mut u8, at: usize) {
    if !to.is_null() {
        // SAFETY: the caller vouches for the offset and the processor.
        unsafe { value.store(to.add(at)) }
    }
}

/// The sum of all strips at `at`, two strips at a time.
#[inline(always)]
unsafe fn sum<V: Vector>(data: &[&[u8]], at: usize) -> V {
    let mut i = data.len() - 1;
    // SAFETY: indexes stay below `data.len()`; the caller vouches for the rest.
    unsafe {
        let mut p = load::<V>(data, i, at);
        while i >= 2 {
            p = p.xor3(load(data, i - 1, at), load(data, i - 2, at));
            i -= 2;
        }
        if i == 1 { p.xor(load(data, 0, at)) } else { p }
    }
}

/// The sum of g^i·strip i at `at`.
#[inline(always)]
unsafe fn horner_q<V: Vector>(data: &[&[u8]], at: usize) -> V {
    let mut i = data.len() - 1;
    // SAFETY: indexes stay below `data.len()`; the caller vouches for the rest.
    unsafe {
        let mut q = load::<V>(data, i, at);
        while i > 0 {
            i -= 1;
            q = q.double_xor(load(data, i, at));
        }
        q
    }
}

/// P and Q at `at` of the strips that are not gaps; `gaps` descend.
#[inline(always)]
unsafe fn horner<V: Vector, const G: usize>(data: &[&[u8]], gaps: [usize; G], at: usize) -> (V, V) {
    let mut end = data.len();
    // SAFETY: indexes stay below `data.len()`; the caller vouches for the rest.
    unsafe {
        let (mut p, mut q) = (V::zero(), V::zero());
        if G == 0 {
            end -= 1;
            p = load(data, end, at);
            q = p;
        }
        for gap in gaps {
            (p, q) = horner_run(data, gap + 1, end, at, (p, q));
            q = q.double_xor(V::zero());
            end = gap;
        }
        horner_run(data, 0, end, at, (p, q))
    }
}

/// Runs of strips up to this long are taken two strips at a time. Measured on a Zen 5 core with
/// strips in the second-level cache: pairs are a third faster with 3 and 4 strips in all, one
/// by one is up to half faster with 6 to 8, where the prefetcher follows single streams better.
const PAIRED: usize = 3;

/// Carries P and Q on over strips `start..end`, from the last to the first.
#[inline(always)]
unsafe fn horner_run<V: Vector>(
    data: &[&[u8]],
    start: usize,
    end: usize,
    at: usize,
    (mut p, mut q): (V, V),
) -> (V, V) {
    let mut i = end;
    // SAFETY: indexes stay in `start..end`; the caller vouches for the rest.
    unsafe {
        while end - start <= PAIRED && i >= start + 2 {
            i -= 2;
            let (high, low) = (load::<V>(data, i + 1, at), load::<V>(data, i, at));
            (p, q) = (p.xor3(high, low), q.double_xor(high).double_xor(low));
        }
        while i > start {
            i -= 1;
            let d = load::<V>(data, i, at);
            (p, q) = (p.xor(d), q.double_xor(d));
        }
    }
    (p, q)
}

/// P, Q and R at `at`.
#[inline(always)]
unsafe fn horner_pqr<V: Vector>(data: &[&[u8]], at: usize) -> (V, V, V) {
    let mut i = data.len() - 1;
    // SAFETY: indexes stay below `data.len()`; the caller vouches for the rest.
    unsafe {
        let mut p = load::<V>(data, i, at);
        let (mut q, mut r) = (p, p);
        while i > 0 {
            i -= 1;
            let d = load(data, i, at);
            p = p.xor(d);
            q = q.double_xor(d);
            r = r.quadruple_xor(d);
        }
        (p, q, r)
    }
}

/// The sum of the strips.
pub(crate) struct P<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) p: *mut u8,
}

impl Operation for P<'_> {
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            sum::<V>(self.data, at).store(self.p.add(at));
            false
        }
    }
}

/// The sum of the strips, each times its power of the generator.
pub(crate) struct Q<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) q: *mut u8,
}

impl Operation for Q<'_> {
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            horner_q::<V>(self.data, at).store(self.q.add(at));
            false
        }
    }
}

/// Both sums.
pub(crate) struct Pq<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) p: *mut u8,
    pub(crate) q: *mut u8,
}

impl Operation for Pq<'_> {
    const FOUR: bool = true;
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q) = horner::<V, 0>(self.data, [], at);
            p.store(self.p.add(at));
            q.store(self.q.add(at));
            false
        }
    }
}

/// The three sums.
pub(crate) struct Pqr<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) p: *mut u8,
    pub(crate) q: *mut u8,
    pub(crate) r: *mut u8,
}

impl Operation for Pqr<'_> {
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q, r) = horner_pqr::<V>(self.data, at);
            p.store(self.p.add(at));
            q.store(self.q.add(at));
            r.store(self.r.add(at));
            false
        }
    }
}

/// Adds the change of one strip to P.
pub(crate) struct DeltaP<'a> {
    pub(crate) old: &'a [u8],
    pub(crate) new: &'a [u8],
    pub(crate) p: *mut u8,
}

impl Operation for DeltaP<'_> {
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let p = V::load(self.p.add(at)).xor3(load_at(self.old, at), load_at(self.new, at));
            p.store(self.p.add(at));
            false
        }
    }
}

/// Adds the change of one strip, times its coefficient, to Q.
pub(crate) struct DeltaQ<'a> {
    pub(crate) old: &'a [u8],
    pub(crate) new: &'a [u8],
    pub(crate) q: *mut u8,
    pub(crate) factor: u8,
    pub(crate) tables: &'a Tables,
}

impl Operation for DeltaQ<'_> {
    type Prepared<V: Vector> = V::Factor;

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) -> V::Factor {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::factor(self.tables, self.factor) }
    }
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, factor: V::Factor, at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let change = load_at::<V>(self.old, at).xor(load_at(self.new, at));
            change.multiply_xor(factor, V::load(self.q.add(at))).store(self.q.add(at));
            false
        }
    }
}

/// Adds the change of one strip to P and Q.
pub(crate) struct DeltaPq<'a> {
    pub(crate) old: &'a [u8],
    pub(crate) new: &'a [u8],
    pub(crate) p: *mut u8,
    pub(crate) q: *mut u8,
    pub(crate) factor: u8,
    pub(crate) tables: &'a Tables,
}

impl Operation for DeltaPq<'_> {
    type Prepared<V: Vector> = V::Factor;

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) -> V::Factor {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::factor(self.tables, self.factor) }
    }
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, factor: V::Factor, at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let change = load_at::<V>(self.old, at).xor(load_at(self.new, at));
            // All loads come before any store: P and Q are often a multiple of 4096 bytes
            // apart, and a load waits for a store before it that ends in the same 12 bits.
            let (p, q) = (V::load(self.p.add(at)), V::load(self.q.add(at)));
            p.xor(change).store(self.p.add(at));
            change.multiply_xor(factor, q).store(self.q.add(at));
            false
        }
    }
}

/// Solves for a data strip by P, then for Q.
pub(crate) struct ViaP<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) gap: usize,
    pub(crate) p: &'a [u8],
    pub(crate) factor: u8,
    pub(crate) d: *mut u8,
    pub(crate) q: *mut u8,
    pub(crate) tables: &'a Tables,
}

impl Operation for ViaP<'_> {
    type Prepared<V: Vector> = V::Factor;

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) -> V::Factor {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::factor(self.tables, self.factor) }
    }
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, factor: V::Factor, at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q) = horner::<V, 1>(self.data, [self.gap], at);
            let d = p.xor(load_at(self.p, at));
            store_if(d, self.d, at);
            d.multiply_xor(factor, q).store(self.q.add(at));
            false
        }
    }
}

/// Solves for a data strip by Q, then for P.
pub(crate) struct ViaQ<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) gap: usize,
    pub(crate) q: &'a [u8],
    pub(crate) factor: u8,
    pub(crate) d: *mut u8,
    pub(crate) p: *mut u8,
    pub(crate) tables: &'a Tables,
}

impl Operation for ViaQ<'_> {
    type Prepared<V: Vector> = V::Factor;

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) -> V::Factor {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::factor(self.tables, self.factor) }
    }
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, factor: V::Factor, at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q) = horner::<V, 1>(self.data, [self.gap], at);
            let d = q.xor(load_at(self.q, at)).multiply(factor);
            store_if(d, self.d, at);
            store_if(p.xor(d), self.p, at);
            false
        }
    }
}

/// Solves for two data strips by P and Q.
pub(crate) struct Two<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) gaps: [usize; 2],
    pub(crate) p: &'a [u8],
    pub(crate) q: &'a [u8],
    pub(crate) factors: [u8; 2],
    pub(crate) x: *mut u8,
    pub(crate) y: *mut u8,
    pub(crate) tables: &'a Tables,
}

impl Operation for Two<'_> {
    type Prepared<V: Vector> = [V::Factor; 2];

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) -> [V::Factor; 2] {
        // SAFETY: the caller vouches for the processor.
        unsafe {
            [V::factor(self.tables, self.factors[0]), V::factor(self.tables, self.factors[1])]
        }
    }
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, factors: [V::Factor; 2], at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q) = horner::<V, 2>(self.data, self.gaps, at);
            let (p, q) = (p.xor(load_at(self.p, at)), q.xor(load_at(self.q, at)));
            let x = p.multiply_xor(factors[0], q.multiply(factors[1]));
            store_if(x, self.x, at);
            store_if(p.xor(x), self.y, at);
            false
        }
    }
}

/// Stops where P is not the sum.
pub(crate) struct CheckP<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) p: &'a [u8],
}

impl Operation for CheckP<'_> {
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe { !sum::<V>(self.data, at).xor(load_at(self.p, at)).is_zero() }
    }
}

/// Stops where P or Q is not the sum.
pub(crate) struct CheckPq<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) p: &'a [u8],
    pub(crate) q: &'a [u8],
}

impl Operation for CheckPq<'_> {
    const FOUR: bool = true;
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q) = horner::<V, 0>(self.data, [], at);
            let (p, q) = (p.xor(load_at(self.p, at)), q.xor(load_at(self.q, at)));
            !p.is_zero() || !q.is_zero()
        }
    }
}

/// Stops where P, Q or R is not the sum.
pub(crate) struct CheckPqr<'a> {
    pub(crate) data: &'a [&'a [u8]],
    pub(crate) p: &'a [u8],
    pub(crate) q: &'a [u8],
    pub(crate) r: &'a [u8],
}

impl Operation for CheckPqr<'_> {
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            let (p, q, r) = horner_pqr::<V>(self.data, at);
            let (p, q) = (p.xor(load_at(self.p, at)), q.xor(load_at(self.q, at)));
            !p.is_zero() || !q.is_zero() || !r.xor(load_at(self.r, at)).is_zero()
        }
    }
}
