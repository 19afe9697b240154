//! What is compared: the same work, done by Palisade and by ISA-L.
//!
//! A *pass* is the work on all strips once. Both sides read the same inputs and write to outputs
//! of their own, which are compared before anything is timed.
//!
//! Invariant: what a pass needs besides its strips (tables, inverted matrices, lists of slices or
//! of pointers) is made before.

use super::arena::Arena;
use super::plain;
use crate::isal::{Changes, Isal, Strips, Tables};
use ::parity::{Code, Stores};
use core::hint::black_box;
use workload::Random;

/// The work of one result.
pub trait Contest<'a> {
    /// One pass by Palisade.
    fn ours(&mut self);
    /// One pass by ISA-L.
    fn theirs(&mut self, isal: &Isal);
    /// What ISA-L would make, in its place, computed plainly.
    fn plain(&mut self);
    /// What must be equal after a pass of both: what Palisade made and what ISA-L made.
    fn outputs(&self) -> Pairs<'_>;
    /// The outputs, to be written.
    fn outputs_mut(&mut self) -> PairsMut<'_>;
    /// What `memcpy` and the read-only pass go over, and where `memcpy` copies to: the data
    /// processed in a pass, in the order in which it is processed.
    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]);

    /// Fills the outputs with what no pass makes, so that only a pass can make them right. The
    /// two sides get different bytes, unless outputs are inputs too.
    fn spoil(&mut self) {
        for (ours, theirs) in self.outputs_mut() {
            ours.fill(0xa5);
            theirs.fill(0x5a);
        }
    }

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

/// Strips that are read.
pub type Inputs<'a> = Vec<&'a [u8]>;
/// Strips that are written.
pub type Outputs<'a> = Vec<&'a mut [u8]>;
/// Palisade's outputs, each with that of the other side.
pub type Pairs<'s> = Vec<(&'s [u8], &'s [u8])>;
/// As [`Pairs`], to be written.
pub type PairsMut<'s> = Vec<(&'s mut [u8], &'s mut [u8])>;

/// The strips, to be read.
pub fn inputs(strips: &[io::BufMut]) -> Inputs<'_> {
    strips.iter().map(|strip| &**strip).collect()
}

/// The strips, to be written.
pub fn outputs(strips: &mut [io::BufMut]) -> Outputs<'_> {
    strips.iter_mut().map(|strip| &mut **strip).collect()
}

/// What two lists of outputs hold.
pub fn paired<'s>(ours: &'s [&mut [u8]], theirs: &'s [&mut [u8]]) -> Pairs<'s> {
    ours.iter().zip(theirs).map(|(a, b)| (&**a, &**b)).collect()
}

/// The parity rows of a code's matrix, one after the other.
fn rows(code: Code) -> Vec<u8> {
    let row = |parity| (0..code.data()).map(move |data| code.coefficient(parity, data));
    (0..code.parities()).flat_map(row).collect()
}

/// Palisade's outputs, each with ISA-L's.
fn beside<'s>(ours: &'s [&mut [u8]], theirs: &'s Strips<'_>) -> Pairs<'s> {
    ours.iter().map(|strip| &**strip).zip(theirs.outputs()).collect()
}

/// As `beside`, to be written.
fn beside_mut<'s>(ours: &'s mut [&mut [u8]], theirs: &'s mut Strips<'_>) -> PairsMut<'s> {
    ours.iter_mut().map(|strip| &mut **strip).zip(theirs.outputs_mut()).collect()
}

/// All parities of a stripe.
pub struct Generate<'a> {
    code: Code,
    stores: Stores,
    tables: Option<Tables>,
    data: Inputs<'a>,
    ours: Outputs<'a>,
    theirs: Strips<'a>,
    copies: Outputs<'a>,
}

impl<'a> Generate<'a> {
    /// The contest over `code`'s first strips of the arena.
    pub fn new(code: Code, stores: Stores, arena: &'a mut Arena, isal: Option<&Isal>) -> Self {
        let (k, m) = (code.data(), code.parities());
        let data = inputs(&arena.data[..k]);
        Self {
            code,
            stores,
            tables: isal.map(|isal| isal.tables(k, m, &rows(code))),
            ours: outputs(&mut arena.ours[..m]),
            theirs: Strips::new(&data, outputs(&mut arena.theirs[..m])),
            data,
            copies: outputs(&mut arena.copies[..k]),
        }
    }
}

impl<'a> Contest<'a> for Generate<'a> {
    fn ours(&mut self) {
        self.code.generate_to(&self.data, &mut self.ours, self.stores);
    }

    fn theirs(&mut self, isal: &Isal) {
        match (self.code.parities(), &self.tables) {
            (1, _) => isal.xor_gen(&mut self.theirs),
            (2, _) => isal.pq_gen(&mut self.theirs),
            (_, tables) => {
                isal.encode(tables.as_ref().expect("made with ISA-L"), &mut self.theirs);
            }
        }
    }

    fn plain(&mut self) {
        for (parity, to) in self.theirs.outputs_mut().enumerate() {
            to.fill(0);
            for (data, strip) in self.data.iter().enumerate() {
                plain::add_times(self.code.coefficient(parity, data), strip, to);
            }
        }
    }

    fn outputs(&self) -> Pairs<'_> {
        beside(&self.ours, &self.theirs)
    }

    fn outputs_mut(&mut self) -> PairsMut<'_> {
        beside_mut(&mut self.ours, &mut self.theirs)
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
    /// What the lost strips hold.
    right: Inputs<'a>,
    /// The strips that are there, as many as the code has data strips.
    present: Inputs<'a>,
    ours: Outputs<'a>,
    theirs: Strips<'a>,
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
        let present: Inputs<'a> = there.iter().map(|&i| all[i]).collect();
        Self {
            code,
            stores,
            lost,
            tables: isal.map(|isal| recovery(isal, code, &there, lost)),
            strips: (0..all.len()).map(|i| (!lost.contains(&i)).then_some(all[i])).collect(),
            right: lost.iter().map(|&i| all[i]).collect(),
            ours: outputs(&mut arena.ours[..lost.len()]),
            theirs: Strips::new(&present, outputs(&mut arena.theirs[..lost.len()])),
            present,
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
        isal.encode(self.tables.as_ref().expect("made with ISA-L"), &mut self.theirs);
    }

    fn plain(&mut self) {
        self.theirs.outputs_mut().zip(&self.right).for_each(|(to, from)| to.copy_from_slice(from));
    }

    fn outputs(&self) -> Pairs<'_> {
        beside(&self.ours, &self.theirs)
    }

    fn outputs_mut(&mut self) -> PairsMut<'_> {
        beside_mut(&mut self.ours, &mut self.theirs)
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
    theirs: Changes<'a, 2>,
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
        let (old, new) = (pick(&arena.data[..2], &order), pick(&arena.data[2..4], &order));
        let (our_p, our_q) = arena.ours[..4].split_at_mut(2);
        let (their_p, rest) = arena.theirs.split_at_mut(2);
        let (their_q, rest) = rest.split_at_mut(2);
        let mut theirs = Changes::new(&mut rest[0][..PIECE]);
        let parities = pick_mut(their_p, &order).into_iter().zip(pick_mut(their_q, &order));
        for ((old, new), (p, q)) in old.iter().zip(&new).zip(parities) {
            theirs.add(old, new, [p, q]);
        }
        Self {
            code,
            tables: isal.map(|isal| isal.tables(DELTA_DATA, 2, &rows(code))),
            old,
            new,
            ours: [pick_mut(our_p, &order), pick_mut(our_q, &order)],
            theirs,
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
        isal.change(tables, DELTA_INDEX, &mut self.theirs);
    }

    fn plain(&mut self) {
        let changes = self.old.iter().zip(&self.new).flat_map(|change| [(change, 0), (change, 1)]);
        for (to, ((old, new), parity)) in self.theirs.outputs_mut().zip(changes) {
            let factor = self.code.coefficient(parity, DELTA_INDEX);
            plain::add_times(factor, old, to);
            plain::add_times(factor, new, to);
        }
    }

    fn outputs(&self) -> Pairs<'_> {
        let [p, q] = &self.ours;
        let ours = p.iter().zip(q).flat_map(|(p, q)| [&**p, &**q]);
        ours.zip(self.theirs.outputs()).collect()
    }

    fn outputs_mut(&mut self) -> PairsMut<'_> {
        let [p, q] = &mut self.ours;
        let ours = p.iter_mut().zip(q).flat_map(|(p, q)| [&mut **p, &mut **q]);
        ours.zip(self.theirs.outputs_mut()).collect()
    }

    /// The parities are inputs too, so both sides begin with the same random bytes; a pass
    /// changes them all, because old and new differ.
    fn spoil(&mut self) {
        let mut random = Random::new(0x7370_6f69);
        for (ours, theirs) in self.outputs_mut() {
            random.fill(ours);
            theirs.copy_from_slice(ours);
        }
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        (&self.new, &mut self.copies)
    }
}
