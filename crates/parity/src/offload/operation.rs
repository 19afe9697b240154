//! Operations by value: what is done with which strips, whatever buffers they are in.
//!
//! Purpose: work out once what is the same for every job of one shape, and do it here.
//! Invariant: `reads` and `writes` say which strips the buffers of a job are, in order.

use std::sync::Arc;

use crate::code::{Change, Code, CodeError};

/// What is done with the strips of a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// All parities of all data strips.
    Generate(Code),
    /// Changes of data strips are carried over to parities.
    Update(Code),
    /// Missing strips are computed from others.
    Recover(Code),
    /// Whether the parities are the data's.
    Verify(Code),
    /// CRC-32C of each block of so many bytes.
    Checksum(usize),
}

/// One operation on chosen strips, ready to be done any number of times, here or elsewhere.
///
/// Its jobs have *inputs*, which are read, and *outputs*, which are written; an update adds to
/// its outputs. The parities that a verification compares are inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    what: What,
    reads: Vec<usize>,
    writes: Vec<usize>,
}

/// What a job found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Nothing but its outputs.
    Written,
    /// The offset of the first byte at which some parity differs.
    Differs(Option<usize>),
    /// CRC-32C of each block, input by input.
    Checksums(Vec<u32>),
}

impl Operation {
    /// All parities of all data strips. Inputs: the data strips; outputs: the parities.
    ///
    /// # Panics
    ///
    /// If the code has no parities.
    pub fn generate(code: Code) -> Arc<Operation> {
        assert!(code.parities() > 0, "parities to compute");
        let (reads, writes) = (0..code.data(), code.data()..code.strips());
        Arc::new(Operation {
            what: What::Generate(code),
            reads: reads.collect(),
            writes: writes.collect(),
        })
    }

    /// Carries changes of the data strips `changed` over to `parities`, strip indexes both.
    /// Inputs: for each changed strip what it held and what it will hold; outputs: the parities,
    /// which are added to.
    ///
    /// # Panics
    ///
    /// If there are no changed strips or no parities, an index is not the code's, or the parities
    /// are not ascending.
    pub fn update(code: Code, changed: &[usize], parities: &[usize]) -> Arc<Operation> {
        assert!(!changed.is_empty() && !parities.is_empty(), "an update of something");
        assert!(parities.is_sorted_by(|a, b| a < b), "parities in ascending order");
        assert!(changed.iter().all(|&strip| strip < code.data()), "data strips that change");
        let is_parity = |strip: &usize| (code.data()..code.strips()).contains(strip);
        assert!(parities.iter().all(is_parity), "parities that take the change");
        Arc::new(Operation {
            what: What::Update(code),
            reads: changed.iter().flat_map(|&strip| [strip, strip]).collect(),
            writes: parities.to_vec(),
        })
    }

    /// Computes the missing strips `lost` (ascending) where `present` says for each strip whether
    /// it is there. Inputs: see [`Operation::reads`]; outputs: the lost strips.
    ///
    /// # Errors
    ///
    /// [`CodeError::TooManyMissing`] if fewer strips are there than the code has data strips.
    ///
    /// # Panics
    ///
    /// If `present` has not an entry for each strip, `lost` is empty, not ascending, or names a
    /// strip that is there.
    pub fn recover(
        code: Code,
        present: &[bool],
        lost: &[usize],
    ) -> Result<Arc<Operation>, CodeError> {
        assert_eq!(present.len(), code.strips(), "an entry for each strip");
        assert!(!lost.is_empty(), "something to recover");
        assert!(lost.is_sorted_by(|a, b| a < b), "lost strips in ascending order");
        assert!(lost.iter().all(|&strip| !present[strip]), "what is lost is not there");
        let reads = chosen(code, present)?;
        Ok(Arc::new(Operation { what: What::Recover(code), reads, writes: lost.to_vec() }))
    }

    /// Whether all parities are the data's. Inputs: all strips; no outputs.
    ///
    /// # Panics
    ///
    /// If the code has no parities.
    pub fn verify(code: Code) -> Arc<Operation> {
        assert!(code.parities() > 0, "parities to compare");
        let reads = (0..code.strips()).collect();
        Arc::new(Operation { what: What::Verify(code), reads, writes: Vec::new() })
    }

    /// CRC-32C of each block of `block` bytes of `strips` strips. Inputs: the strips; no outputs.
    ///
    /// # Panics
    ///
    /// If there are no strips, or `block` is not a multiple of 16 from 16 to 64 KiB.
    pub fn checksum(strips: usize, block: usize) -> Arc<Operation> {
        assert!(strips > 0, "strips to check");
        assert!((16..=64 << 10).contains(&block) && block.is_multiple_of(16), "a block's bytes");
        let reads = (0..strips).collect();
        Arc::new(Operation { what: What::Checksum(block), reads, writes: Vec::new() })
    }

    /// What is done.
    pub fn what(&self) -> What {
        self.what
    }

    /// Which strips a job reads, in the order of its input buffers. A changed strip stands there
    /// twice, for what it held and what it will hold.
    pub fn reads(&self) -> &[usize] {
        &self.reads
    }

    /// Which strips a job writes, in the order of its output buffers.
    pub fn writes(&self) -> &[usize] {
        &self.writes
    }

    /// Does the operation here.
    ///
    /// # Panics
    ///
    /// If counts or lengths of buffers are not the operation's.
    pub fn compute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Answer {
        match self.what {
            What::Generate(code) => code.generate(inputs, outputs),
            What::Update(code) => self.update_here(code, inputs, outputs),
            What::Recover(code) => {
                let mut strips = vec![None; code.strips()];
                self.reads.iter().zip(inputs).for_each(|(&i, input)| strips[i] = Some(*input));
                let recovered = code.recover(&strips, &self.writes, outputs);
                recovered.expect("the operation was made for what is there");
            }
            What::Verify(code) => return Answer::Differs(code.verify(inputs)),
            What::Checksum(block) => {
                let blocks = inputs.iter().flat_map(|input| input.chunks(block));
                return Answer::Checksums(blocks.map(|bytes| crate::crc32c(0, bytes)).collect());
            }
        }
        Answer::Written
    }

    /// As [`Operation::compute`], whatever the buffers are.
    pub fn compute_in<I: AsRef<[u8]>, O: AsMut<[u8]>>(
        &self,
        inputs: &[I],
        outputs: &mut [O],
    ) -> Answer {
        let inputs: Vec<&[u8]> = inputs.iter().map(AsRef::as_ref).collect();
        let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(AsMut::as_mut).collect();
        self.compute(&inputs, &mut outputs)
    }

    fn update_here(&self, code: Code, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let pairs = inputs.chunks_exact(2).zip(self.reads.iter().step_by(2));
        let changes: Vec<_> =
            pairs.map(|(pair, &index)| Change { index, old: pair[0], new: pair[1] }).collect();
        let mut parity: Vec<Option<&mut [u8]>> = (0..code.parities()).map(|_| None).collect();
        for (&strip, output) in self.writes.iter().zip(outputs) {
            parity[strip - code.data()] = Some(output);
        }
        code.update_many(&changes, &mut parity);
    }
}

/// As many strips that are there as the code has data strips: each missing data strip's place is
/// taken by a parity.
fn chosen(code: Code, present: &[bool]) -> Result<Vec<usize>, CodeError> {
    let missing = present.iter().filter(|present| !**present).count();
    let mut parities = (code.data()..code.strips()).filter(|&strip| present[strip]);
    let input = |strip: usize| if present[strip] { Some(strip) } else { parities.next() };
    let inputs: Option<Vec<_>> = (0..code.data()).map(input).collect();
    inputs.ok_or(CodeError::TooManyMissing { missing, parities: code.parities() })
}
