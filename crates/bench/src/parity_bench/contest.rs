//! What is compared: the same work, done by Palisade and by ISA-L.
//!
//! A *pass* is the work on all strips once. Both sides read the same inputs and write to outputs
//! of their own, which are compared before anything is timed.
//!
//! Invariant: what a pass needs besides its strips (tables, inverted matrices, lists) is made
//! before.

use super::arena::Arena;
use crate::isal::{Isal, Tables};
use crate::record::Random;
use ::parity::{Code, Stores};
use core::hint::black_box;

/// The work of one result.
pub trait Contest<'a> {
    /// One pass by Palisade.
    fn ours(&mut self);
    /// One pass by ISA-L.
    fn theirs(&mut self, isal: &Isal);
    /// What must be equal after a pass of both: what Palisade made and what ISA-L made.
    fn outputs(&self) -> Vec<(&[u8], &[u8])>;
    /// What `memcpy` and the read-only pass go over, and where `memcpy` copies to: the data
    /// processed in a pass, in the order in which it is processed.
    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]);

    /// Bytes of data processed in a pass.
    fn bytes(&mut self) -> u64 {
        self.yardstick().0.iter().map(|piece| piece.len() as u64).sum()
    }

    /// One pass of `memcpy`.
    fn copy(&mut self) {
        let (from, to) = self.yardstick();
        for (from, to) in from.iter().zip(to) {
            to.copy_from_slice(from);
        }
    }

    /// One read-only pass.
    fn read(&mut self) {
        for piece in self.yardstick().0 {
            black_box(crate::read_pass::read(piece));
        }
    }
}

type Inputs<'a> = Vec<&'a [u8]>;
type Outputs<'a> = Vec<&'a mut [u8]>;

fn inputs(strips: &[io::BufMut]) -> Inputs<'_> {
    strips.iter().map(|strip| &**strip).collect()
}

fn outputs(strips: &mut [io::BufMut]) -> Outputs<'_> {
    strips.iter_mut().map(|strip| &mut **strip).collect()
}

/// What two lists of outputs hold.
fn paired<'s>(ours: &'s [&mut [u8]], theirs: &'s [&mut [u8]]) -> Vec<(&'s [u8], &'s [u8])> {
    ours.iter().zip(theirs).map(|(a, b)| (&**a, &**b)).collect()
}

/// The parity rows of a code's matrix, one after the other.
fn rows(code: Code) -> Vec<u8> {
    let row = |parity| (0..code.data()).map(move |data| code.coefficient(parity, data));
    (0..code.parities()).flat_map(row).collect()
}

/// All parities of a stripe.
pub struct Generate<'a> {
    code: Code,
    stores: Stores,
    tables: Option<Tables>,
    data: Inputs<'a>,
    ours: Outputs<'a>,
    theirs: Outputs<'a>,
    copies: Outputs<'a>,
}

impl<'a> Generate<'a> {
    /// The contest over `code`'s first strips of the arena.
    pub fn new(code: Code, stores: Stores, arena: &'a mut Arena, isal: Option<&Isal>) -> Self {
        let (k, m) = (code.data(), code.parities());
        Self {
            code,
            stores,
            tables: isal.map(|isal| isal.tables(k, m, &rows(code))),
            data: inputs(&arena.data[..k]),
            ours: outputs(&mut arena.ours[..m]),
            theirs: outputs(&mut arena.theirs[..m]),
            copies: outputs(&mut arena.copies[..k]),
        }
    }
}

impl<'a> Contest<'a> for Generate<'a> {
    fn ours(&mut self) {
        self.code.generate_to(&self.data, &mut self.ours, self.stores);
    }

    fn theirs(&mut self, isal: &Isal) {
        match &mut self.theirs[..] {
            [p] => isal.xor_gen(&self.data, p),
            [p, q] => isal.pq_gen(&self.data, p, q),
            all => isal.encode(self.tables.as_ref().expect("made with ISA-L"), &self.data, all),
        }
    }

    fn outputs(&self) -> Vec<(&[u8], &[u8])> {
        paired(&self.ours, &self.theirs)
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        (&self.data, &mut self.copies)
    }
}

/// Lost data strips of a stripe with P and Q.
pub struct Recover<'a> {
    code: Code,
    stores: Stores,
    lost: &'static [usize],
    tables: Option<Tables>,
    strips: Vec<Option<&'a [u8]>>,
    /// The strips that are there, as many as the code has data strips.
    present: Inputs<'a>,
    ours: Outputs<'a>,
    theirs: Outputs<'a>,
    copies: Outputs<'a>,
}

impl<'a> Recover<'a> {
    /// The contest for the data strips `lost`; P and Q are made first.
    pub fn new(
        data: usize,
        lost: &'static [usize],
        stores: Stores,
        arena: &'a mut Arena,
        isal: Option<&Isal>,
    ) -> Self {
        let code = Code::new(data, arena.parity.len()).expect("a code within bounds");
        let mut parity = outputs(&mut arena.parity);
        code.generate(&inputs(&arena.data[..data]), &mut parity);
        let parity = parity.into_iter().map(|strip| -> &'a [u8] { strip });
        let all: Inputs<'a> = inputs(&arena.data[..data]).into_iter().chain(parity).collect();
        let there = (0..all.len()).filter(|i| !lost.contains(i)).take(data);
        let there: Vec<usize> = there.collect();
        Self {
            code,
            stores,
            lost,
            tables: isal.map(|isal| recovery(isal, code, &there, lost)),
            strips: (0..all.len()).map(|i| (!lost.contains(&i)).then_some(all[i])).collect(),
            present: there.iter().map(|&i| all[i]).collect(),
            ours: outputs(&mut arena.ours[..lost.len()]),
            theirs: outputs(&mut arena.theirs[..lost.len()]),
            copies: outputs(&mut arena.copies[..data]),
        }
    }
}

/// The matrix that gives the strips `lost` from those that are `there`: the rows of the strips
/// that are there, inverted by ISA-L.
fn recovery(isal: &Isal, code: Code, there: &[usize], lost: &[usize]) -> Tables {
    let k = code.data();
    let identity = (0..k * k).map(|at| u8::from(at / k == at % k));
    let all: Vec<u8> = identity.chain(rows(code)).collect();
    let row = |matrix: &[u8], i: usize| matrix[i * k..(i + 1) * k].to_vec();
    let left: Vec<u8> = there.iter().flat_map(|&i| row(&all, i)).collect();
    let inverse = isal.inverse(&left, k).expect("every such matrix has an inverse");
    let wanted: Vec<u8> = lost.iter().flat_map(|&i| row(&inverse, i)).collect();
    isal.tables(k, lost.len(), &wanted)
}

impl<'a> Contest<'a> for Recover<'a> {
    fn ours(&mut self) {
        let done = self.code.recover_to(&self.strips, self.lost, &mut self.ours, self.stores);
        done.expect("no more is lost than the code bears");
    }

    fn theirs(&mut self, isal: &Isal) {
        let tables = self.tables.as_ref().expect("made with ISA-L");
        isal.encode(tables, &self.present, &mut self.theirs);
    }

    fn outputs(&self) -> Vec<(&[u8], &[u8])> {
        paired(&self.ours, &self.theirs)
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        (&self.present, &mut self.copies)
    }
}

/// Bytes of a piece in the contest of small writes.
pub const PIECE: usize = 4096;
/// Data strips of the stripe that the pieces are of, and the one that changes.
const DELTA_DATA: usize = 8;
const DELTA_INDEX: usize = 3;

/// Small writes: P and Q follow the change of one piece of one data strip.
pub struct Delta<'a> {
    code: Code,
    tables: Option<Tables>,
    old: Inputs<'a>,
    new: Inputs<'a>,
    ours: [Outputs<'a>; 2],
    theirs: [Outputs<'a>; 2],
    /// ISA-L's sum of old and new.
    change: io::BufMut,
    copies: Outputs<'a>,
}

/// A way to go through the pieces of a set: each once, in an order that looks random.
fn shuffled(pieces: usize) -> Vec<usize> {
    let (mut random, mut order) = (Random::new(4096), (0..pieces).collect::<Vec<_>>());
    for i in (1..pieces).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    order
}

/// The pieces of strips, in this order.
fn pick<'a>(strips: &'a [io::BufMut], order: &[usize]) -> Inputs<'a> {
    let all: Inputs<'a> = strips.iter().flat_map(|strip| strip.chunks_exact(PIECE)).collect();
    order.iter().map(|&i| all[i]).collect()
}

/// As `pick`, to be written.
fn pick_mut<'a>(strips: &'a mut [io::BufMut], order: &[usize]) -> Outputs<'a> {
    let all = strips.iter_mut().flat_map(|strip| strip.chunks_exact_mut(PIECE));
    let mut all: Vec<Option<&'a mut [u8]>> = all.map(Some).collect();
    order.iter().map(|&i| all[i].take().expect("each piece once")).collect()
}

impl<'a> Delta<'a> {
    /// The contest over `pieces` places, at most as many as two strips of the arena have.
    pub fn new(pieces: usize, arena: &'a mut Arena, isal: Option<&Isal>) -> Self {
        let code = Code::new(DELTA_DATA, 2).expect("a code within bounds");
        let order = shuffled(pieces.min(2 * arena.data[0].len() / PIECE));
        let ((our_p, our_q), (their_p, their_q)) =
            (arena.ours[..4].split_at_mut(2), arena.theirs[..4].split_at_mut(2));
        for (from, to) in [(&our_p, &mut *their_p), (&our_q, &mut *their_q)] {
            from.iter().zip(to).for_each(|(from, to)| to.copy_from_slice(from));
        }
        Self {
            code,
            tables: isal.map(|isal| isal.tables(DELTA_DATA, 2, &rows(code))),
            old: pick(&arena.data[..2], &order),
            new: pick(&arena.data[2..4], &order),
            ours: [pick_mut(our_p, &order), pick_mut(our_q, &order)],
            theirs: [pick_mut(their_p, &order), pick_mut(their_q, &order)],
            change: io::Pool::single(PIECE),
            copies: pick_mut(&mut arena.copies[..2], &order),
        }
    }
}

impl<'a> Contest<'a> for Delta<'a> {
    fn ours(&mut self) {
        let [p, q] = &mut self.ours;
        let places = self.old.iter().zip(&self.new).zip(p.iter_mut().zip(q));
        for ((old, new), (p, q)) in places {
            self.code.update(DELTA_INDEX, old, new, &mut [Some(&mut **p), Some(&mut **q)]);
        }
    }

    fn theirs(&mut self, isal: &Isal) {
        let tables = self.tables.as_ref().expect("made with ISA-L");
        let [p, q] = &mut self.theirs;
        let places = self.old.iter().zip(&self.new).zip(p.iter_mut().zip(q));
        for ((old, new), (p, q)) in places {
            isal.xor_gen(&[old, new], &mut self.change);
            isal.update(tables, DELTA_INDEX, &self.change, [&mut **p, &mut **q]);
        }
    }

    fn outputs(&self) -> Vec<(&[u8], &[u8])> {
        let sides = self.ours.iter().zip(&self.theirs);
        sides.flat_map(|(ours, theirs)| paired(ours, theirs)).collect()
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        (&self.new, &mut self.copies)
    }
}

/// Checksums of strips, each on its own.
pub struct Checksum<'a> {
    data: Inputs<'a>,
    ours: Vec<[u8; 4]>,
    theirs: Vec<[u8; 4]>,
    copies: Outputs<'a>,
}

impl<'a> Checksum<'a> {
    /// The contest over the first `data` strips.
    pub fn new(data: usize, arena: &'a mut Arena) -> Self {
        Self {
            data: inputs(&arena.data[..data]),
            ours: vec![[0; 4]; data],
            theirs: vec![[0xff; 4]; data],
            copies: outputs(&mut arena.copies[..data]),
        }
    }
}

impl<'a> Contest<'a> for Checksum<'a> {
    fn ours(&mut self) {
        for (strip, crc) in self.data.iter().zip(&mut self.ours) {
            *crc = ::parity::crc32c(0, strip).to_le_bytes();
        }
    }

    fn theirs(&mut self, isal: &Isal) {
        for (strip, crc) in self.data.iter().zip(&mut self.theirs) {
            *crc = isal.crc32c(0, strip).to_le_bytes();
        }
    }

    fn outputs(&self) -> Vec<(&[u8], &[u8])> {
        self.ours.iter().zip(&self.theirs).map(|(a, b)| (&a[..], &b[..])).collect()
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        (&self.data, &mut self.copies)
    }
}

/// Copies of strips and their checksums; ISA-L's side copies a strip by `memcpy`, then takes its
/// checksum, because ISA-L has no function for both.
pub struct CopyChecksum<'a> {
    sums: Checksum<'a>,
    ours: Outputs<'a>,
    theirs: Outputs<'a>,
}

impl<'a> CopyChecksum<'a> {
    /// The contest over the first `data` strips, at most as many as a side has outputs.
    pub fn new(data: usize, arena: &'a mut Arena) -> Self {
        Self {
            sums: Checksum {
                data: inputs(&arena.data[..data]),
                ours: vec![[0; 4]; data],
                theirs: vec![[0xff; 4]; data],
                copies: outputs(&mut arena.copies[..data]),
            },
            ours: outputs(&mut arena.ours[..data]),
            theirs: outputs(&mut arena.theirs[..data]),
        }
    }
}

impl<'a> Contest<'a> for CopyChecksum<'a> {
    fn ours(&mut self) {
        let places = self.sums.data.iter().zip(&mut self.ours);
        for ((from, to), crc) in places.zip(&mut self.sums.ours) {
            *crc = ::parity::copy_crc32c(0, from, to).to_le_bytes();
        }
    }

    fn theirs(&mut self, isal: &Isal) {
        let places = self.sums.data.iter().zip(&mut self.theirs);
        for ((from, to), crc) in places.zip(&mut self.sums.theirs) {
            to.copy_from_slice(from);
            *crc = isal.crc32c(0, from).to_le_bytes();
        }
    }

    fn outputs(&self) -> Vec<(&[u8], &[u8])> {
        let copies = paired(&self.ours, &self.theirs);
        self.sums.outputs().into_iter().chain(copies).collect()
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        self.sums.yardstick()
    }
}
