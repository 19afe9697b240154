//! Plans: which kernel does an operation of a code, on which strips, with which factors.
//!
//! Purpose: all that is the same for every job of one kind and shape, worked out once, and the
//! same operation on the CPU.
//! Invariant: `kind`, `inputs`, `outputs` and `factors` say exactly what `operation` says.

use std::sync::Arc;

use parity::{Change, Code, CodeError};

use crate::factor;
use crate::kind::Kind;

/// What is done with the strips of a stripe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    Generate(Code),
    Update(Code),
    Recover(Code),
    Verify(Code),
    Checksum { block: usize },
}

/// One operation of one code, ready to be done any number of times, by a device or the CPU.
///
/// A plan has *inputs*, which are read, and *outputs*, which are written (updates add to them).
/// The parities that a verification compares are inputs.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) operation: Operation,
    pub(crate) kind: Kind,
    /// Strip indexes by input. An update has each changed strip once; its jobs have two buffers
    /// for it.
    pub(crate) inputs: Vec<usize>,
    /// Strip indexes by output; for a verification the strips compared.
    pub(crate) outputs: Vec<usize>,
    /// As kernels take them.
    pub(crate) factors: Vec<u8>,
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

impl Plan {
    /// All parities of all data strips. Inputs: the data strips; outputs: the parities.
    ///
    /// # Panics
    ///
    /// If the code has no parities.
    pub fn generate(code: Code) -> Arc<Plan> {
        let parities: Vec<_> = (code.data()..code.strips()).collect();
        let rows = rows(code, &parities, &(0..code.data()).collect::<Vec<_>>());
        let (kind, factors) = product(&rows);
        let inputs = (0..code.data()).collect();
        let operation = Operation::Generate(code);
        Arc::new(Plan { operation, kind, inputs, outputs: parities, factors })
    }

    /// Carries changes of the data strips `changed` over to `parities`, strip indexes both.
    /// Inputs: for each changed strip what it held and what it will hold; outputs: the parities,
    /// which are added to.
    ///
    /// # Panics
    ///
    /// If there are no changed strips or no parities, or an index is not the code's.
    pub fn update(code: Code, changed: &[usize], parities: &[usize]) -> Arc<Plan> {
        assert!(!changed.is_empty() && !parities.is_empty(), "an update of something");
        assert!(parities.is_sorted_by(|a, b| a < b), "parities in ascending order");
        let rows = rows(code, parities, changed);
        let (kind, used) = match &rows[..] {
            [p] if ones(p) => (Kind::DeltaP, &rows[..0]),
            [_] => (Kind::DeltaQ, &rows[..]),
            [p, _] if ones(p) => (Kind::DeltaPq, &rows[1..]),
            _ => (Kind::Deltas, &rows[..]),
        };
        let factors = encoded(used);
        let (inputs, outputs) = (changed.to_vec(), parities.to_vec());
        Arc::new(Plan { operation: Operation::Update(code), kind, inputs, outputs, factors })
    }

    /// Computes the missing strips `lost` (ascending) where `present` says for each strip whether
    /// it is there. Inputs: see [`Plan::input_strips`]; outputs: the lost strips.
    ///
    /// # Errors
    ///
    /// [`CodeError::TooManyMissing`] if fewer strips are there than the code has data strips.
    ///
    /// # Panics
    ///
    /// If `present` has not an entry for each strip, `lost` is empty, not ascending, or names a
    /// strip that is there.
    pub fn recover(code: Code, present: &[bool], lost: &[usize]) -> Result<Arc<Plan>, CodeError> {
        assert_eq!(present.len(), code.strips(), "an entry for each strip");
        assert!(!lost.is_empty(), "something to recover");
        let inputs = chosen(code, present)?;
        // A recovery is linear. Of strips that hold the unit vectors it gives its coefficients.
        let k = code.data();
        let units: Vec<Vec<u8>> =
            (0..k).map(|i| (0..k).map(|j| u8::from(i == j)).collect()).collect();
        let mut strips = vec![None; code.strips()];
        for (unit, &strip) in units.iter().zip(&inputs) {
            strips[strip] = Some(&unit[..]);
        }
        let mut rows = vec![vec![0; k]; lost.len()];
        let mut out: Vec<&mut [u8]> = rows.iter_mut().map(|row| &mut row[..]).collect();
        code.recover(&strips, lost, &mut out)?;
        let (kind, factors) = product(&rows);
        let operation = Operation::Recover(code);
        Ok(Arc::new(Plan { operation, kind, inputs, outputs: lost.to_vec(), factors }))
    }

    /// Whether all parities are the data's. Inputs: all strips; no outputs.
    ///
    /// # Panics
    ///
    /// If the code has no parities.
    pub fn verify(code: Code) -> Arc<Plan> {
        let Plan { kind, inputs, outputs, factors, .. } = Plan::clone(&Plan::generate(code));
        let kind = match kind {
            Kind::GenerateP => Kind::VerifyP,
            Kind::GeneratePq => Kind::VerifyPq,
            Kind::GeneratePqr => Kind::VerifyPqr,
            _ => Kind::VerifyDot,
        };
        Arc::new(Plan { operation: Operation::Verify(code), kind, inputs, outputs, factors })
    }

    /// CRC-32C of each block of `block` bytes of `strips` strips. Inputs: the strips; no outputs.
    ///
    /// # Panics
    ///
    /// If there are no strips, or `block` is not a multiple of 16 from 16 to 64 KiB.
    pub fn checksum(strips: usize, block: usize) -> Arc<Plan> {
        assert!(strips > 0, "strips to check");
        assert!((16..=64 << 10).contains(&block) && block.is_multiple_of(16), "a block's bytes");
        Arc::new(Plan {
            operation: Operation::Checksum { block },
            kind: Kind::Crc32c,
            inputs: (0..strips).collect(),
            outputs: Vec::new(),
            factors: factor::crc_powers(block),
        })
    }

    /// The kernel.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Which strips a job reads, in the order of its input buffers. A changed strip stands there
    /// twice, for what it held and what it will hold.
    pub fn input_strips(&self) -> Vec<usize> {
        match self.operation {
            Operation::Update(_) => self.inputs.iter().flat_map(|&strip| [strip, strip]).collect(),
            Operation::Verify(_) => [&self.inputs[..], &self.outputs].concat(),
            _ => self.inputs.clone(),
        }
    }

    /// Which strips a job writes, in the order of its output buffers.
    pub fn output_strips(&self) -> &[usize] {
        if self.kind.compares() { &[] } else { &self.outputs }
    }

    /// Whether strips of `len` bytes can be given to a kernel: a multiple of 16 (for checksums of
    /// the block) above 0 and below 2^32.
    pub fn takes(&self, len: usize) -> bool {
        let unit = match self.operation {
            Operation::Checksum { block } => block,
            _ => 16,
        };
        len > 0 && u32::try_from(len).is_ok() && len.is_multiple_of(unit)
    }

    /// Does the operation here, with the parity crate.
    ///
    /// # Panics
    ///
    /// If counts or lengths of buffers are not the plan's.
    pub fn compute(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Answer {
        match &self.operation {
            Operation::Generate(code) => code.generate(inputs, outputs),
            Operation::Update(code) => self.update_here(code, inputs, outputs),
            Operation::Recover(code) => {
                let mut strips = vec![None; code.strips()];
                self.inputs.iter().zip(inputs).for_each(|(&i, input)| strips[i] = Some(*input));
                let recovered = code.recover(&strips, &self.outputs, outputs);
                recovered.expect("the plan was made for what is there");
            }
            Operation::Verify(code) => return Answer::Differs(code.verify(inputs)),
            Operation::Checksum { block } => {
                let blocks = inputs.iter().flat_map(|input| input.chunks(*block));
                return Answer::Checksums(blocks.map(|bytes| parity::crc32c(0, bytes)).collect());
            }
        }
        Answer::Written
    }

    /// What a device answered in `bytes`, its answers.
    pub(crate) fn answer(&self, bytes: &[u8]) -> Answer {
        let words = bytes.chunks_exact(4);
        let mut words = words.map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
        match self.operation {
            Operation::Verify(_) => {
                let word = words.next().expect("one answer");
                Answer::Differs((word != 0).then_some((u32::MAX - word) as usize))
            }
            Operation::Checksum { .. } => Answer::Checksums(words.collect()),
            _ => Answer::Written,
        }
    }

    fn update_here(&self, code: &Code, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let pairs = inputs.chunks_exact(2).zip(&self.inputs);
        let changes: Vec<_> =
            pairs.map(|(pair, &index)| Change { index, old: pair[0], new: pair[1] }).collect();
        let mut parity: Vec<Option<&mut [u8]>> = (0..code.parities()).map(|_| None).collect();
        for (&strip, output) in self.outputs.iter().zip(outputs) {
            parity[strip - code.data()] = Some(output);
        }
        code.update_many(&changes, &mut parity);
    }
}

/// The coefficients of the data strips `data` in each of `parities`.
fn rows(code: Code, parities: &[usize], data: &[usize]) -> Vec<Vec<u8>> {
    let row = |&parity: &usize| {
        data.iter().map(|&strip| code.coefficient(parity - code.data(), strip)).collect()
    };
    parities.iter().map(row).collect()
}

fn ones(row: &[u8]) -> bool {
    row.iter().all(|&c| c == 1)
}

/// The kernel for `rows` times the inputs, and its factors: by doubling where they are P, Q, R.
fn product(rows: &[Vec<u8>]) -> (Kind, Vec<u8>) {
    assert!(!rows.is_empty(), "something to compute");
    let is_power = |(r, row): (usize, &Vec<u8>)| {
        row.iter().enumerate().all(|(i, &c)| c == factor::power(r * i))
    };
    let doubling = rows.len() <= 3 && rows.iter().enumerate().all(is_power);
    match rows.len() {
        1 if doubling => (Kind::GenerateP, Vec::new()),
        2 if doubling => (Kind::GeneratePq, Vec::new()),
        3 if doubling => (Kind::GeneratePqr, Vec::new()),
        _ => (Kind::Dot, encoded(rows)),
    }
}

fn encoded(rows: &[Vec<u8>]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|&c| factor::encode(c)).collect()
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
