//! The contests of checksums: CRC-32C of strips or of short pieces, and with a copy.
//!
//! Invariant: as in [`super::contest`]: all lists are made before a pass.

use super::contest::{Contest, Inputs, Outputs, Pairs, PairsMut, inputs, outputs, paired};
use super::plain;
use crate::isal::Isal;
use crate::read_pass;

/// Checksums of pieces, each on its own.
pub struct Checksum<'a> {
    /// What all pieces are of.
    data: Inputs<'a>,
    pieces: Inputs<'a>,
    ours: Vec<[u8; 4]>,
    theirs: Vec<[u8; 4]>,
    copies: Outputs<'a>,
}

/// The longest begin of `bytes` bytes that is whole pieces and whole steps of the read-only pass.
fn whole(bytes: usize, piece: usize) -> usize {
    let mut steps = (1..).map(|steps| steps * read_pass::STEP);
    let step = steps.find(|step| step.is_multiple_of(piece)).expect("there is one");
    bytes - bytes % step
}

impl<'a> Checksum<'a> {
    /// The contest over whole strips.
    pub fn of_strips(data: &'a [io::BufMut], copies: &'a mut [io::BufMut]) -> Self {
        let strip = data[0].len();
        Self::of_pieces(strip, data, copies)
    }

    /// The contest over the strips' pieces of `piece` bytes; what is left over is not looked at.
    pub fn of_pieces(piece: usize, data: &'a [io::BufMut], copies: &'a mut [io::BufMut]) -> Self {
        let len = whole(data[0].len(), piece);
        assert!(len > 0, "strips of at least one step");
        let data: Inputs<'a> = inputs(data).into_iter().map(|strip| &strip[..len]).collect();
        let pieces: Inputs<'a> = data.iter().flat_map(|strip| strip.chunks_exact(piece)).collect();
        Self {
            ours: vec![[0; 4]; pieces.len()],
            theirs: vec![[0; 4]; pieces.len()],
            copies: outputs(copies).into_iter().map(|strip| &mut strip[..len]).collect(),
            data,
            pieces,
        }
    }
}

impl<'a> Contest<'a> for Checksum<'a> {
    fn ours(&mut self) {
        for (piece, crc) in self.pieces.iter().zip(&mut self.ours) {
            *crc = ::parity::crc32c(0, piece).to_le_bytes();
        }
    }

    fn theirs(&mut self, isal: &Isal) {
        for (piece, crc) in self.pieces.iter().zip(&mut self.theirs) {
            *crc = isal.crc32c(0, piece).to_le_bytes();
        }
    }

    fn plain(&mut self) {
        for (piece, crc) in self.pieces.iter().zip(&mut self.theirs) {
            *crc = plain::crc32c(piece).to_le_bytes();
        }
    }

    fn outputs(&self) -> Pairs<'_> {
        self.ours.iter().zip(&self.theirs).map(|(a, b)| (&a[..], &b[..])).collect()
    }

    fn outputs_mut(&mut self) -> PairsMut<'_> {
        let sides = self.ours.iter_mut().zip(&mut self.theirs);
        sides.map(|(a, b)| (&mut a[..], &mut b[..])).collect()
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
    /// The contest over the strips of `sums`, with as many outputs for each side.
    pub fn new(
        sums: Checksum<'a>,
        ours: &'a mut [io::BufMut],
        theirs: &'a mut [io::BufMut],
    ) -> Self {
        assert_eq!([sums.pieces.len(); 2], [ours.len(), theirs.len()], "an output per strip");
        Self { sums, ours: outputs(ours), theirs: outputs(theirs) }
    }
}

impl<'a> Contest<'a> for CopyChecksum<'a> {
    fn ours(&mut self) {
        let places = self.sums.pieces.iter().zip(&mut self.ours);
        for ((from, to), crc) in places.zip(&mut self.sums.ours) {
            *crc = ::parity::copy_crc32c(0, from, to).to_le_bytes();
        }
    }

    fn theirs(&mut self, isal: &Isal) {
        let places = self.sums.pieces.iter().zip(&mut self.theirs);
        for ((from, to), crc) in places.zip(&mut self.sums.theirs) {
            to.copy_from_slice(from);
            *crc = isal.crc32c(0, from).to_le_bytes();
        }
    }

    fn plain(&mut self) {
        let places = self.sums.pieces.iter().zip(&mut self.theirs);
        places.for_each(|(from, to)| to.copy_from_slice(from));
        self.sums.plain();
    }

    fn outputs(&self) -> Pairs<'_> {
        let copies = paired(&self.ours, &self.theirs);
        self.sums.outputs().into_iter().chain(copies).collect()
    }

    fn outputs_mut(&mut self) -> PairsMut<'_> {
        let copies = self.ours.iter_mut().zip(&mut self.theirs);
        let copies = copies.map(|(a, b)| (&mut **a, &mut **b));
        self.sums.outputs_mut().into_iter().chain(copies).collect()
    }

    fn yardstick(&mut self) -> (&[&'a [u8]], &mut [&'a mut [u8]]) {
        self.sums.yardstick()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fill_the_longest_begin_that_both_passes_can_go_over() {
        assert_eq!(
            [24, 72, 512, 16384].map(|piece| whole(16384, piece)),
            [15360, 13824, 16384, 16384]
        );
        assert_eq!(whole(4096, 72), 0);
    }
}
