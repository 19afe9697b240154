//! Packing: where the strips, lists, factors, descriptors and answers of a batch lie.
//!
//! Purpose: the host's half of the contract at the top of `kernels/parity.c`: all bounds and
//! alignments are decided and checked here, so that kernels need no checks.
//! Invariants: everything is aligned to 16; nothing overlaps; nothing lies past the two lengths
//! that the packer was made with. `out` holds outputs or answers, never both, since no kind has
//! both.

use std::sync::Arc;

use crate::kind::Kind;
use crate::plan::{Operation, Plan};

/// Alignment of all places, in bytes.
pub const ALIGN: usize = 16;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 48;
/// Most jobs of a launch: what any device takes along the grid's second dimension.
pub const MAX_JOBS: usize = 65_535;

/// Where the parts of one job lie, in bytes from the start of `in` and `out`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Its inputs, in `in`.
    pub inputs: Vec<usize>,
    /// Its outputs, in `out`; empty for kinds that answer.
    pub outputs: Vec<usize>,
    /// Its answers, in `out`: that many u32, from there on. None for kinds that write.
    pub answers: (usize, usize),
    /// Bytes of each strip.
    pub len: usize,
}

/// A batch of jobs of one kind that is being put together.
#[derive(Debug)]
pub struct Packer {
    kind: Kind,
    /// Bytes that there are in `in` and `out`.
    room: (usize, usize),
    /// Bytes that are taken, descriptors not counted.
    used: (usize, usize),
    /// Factors that lie in `in`, with the plan they belong to.
    factors: Vec<(Arc<Plan>, usize)>,
    metadata: Vec<(usize, Vec<u8>)>,
    descriptors: Vec<u8>,
    longest: usize,
}

/// A batch that is complete but for the bytes of its strips.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    /// The kernel.
    pub kind: Kind,
    /// How many jobs.
    pub count: usize,
    /// Bytes of the longest job's strips.
    pub longest: usize,
    /// Where the descriptors begin in `in`.
    pub jobs: usize,
    /// Bytes used of `in`.
    pub in_len: usize,
    /// Bytes used of `out`.
    pub out_len: usize,
    /// Lists, factors and descriptors, and where they go in `in`.
    pub metadata: Vec<(usize, Vec<u8>)>,
}

/// `bytes` up to the next multiple of [`ALIGN`].
fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

impl Packer {
    /// A batch of `kind` in `in_room` and `out_room` bytes.
    pub fn new(kind: Kind, in_room: usize, out_room: usize) -> Packer {
        Packer {
            kind,
            room: (in_room, out_room),
            used: (0, 0),
            factors: Vec::new(),
            metadata: Vec::new(),
            descriptors: Vec::new(),
            longest: 0,
        }
    }

    /// Whether nothing has been pushed.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Adds a job on strips of `len` bytes and says where its parts lie, or `None` if there is no
    /// room for it.
    ///
    /// # Panics
    ///
    /// If the plan is of another kind or does not take this length.
    pub fn push(&mut self, plan: &Arc<Plan>, len: usize) -> Option<Placed> {
        assert_eq!(plan.kind, self.kind, "a batch has one kind");
        assert!(plan.takes(len), "{len} bytes are not for a kernel");
        let known = self.factors.iter().find(|(of, _)| Arc::ptr_eq(of, plan)).map(|(_, at)| *at);
        let inputs = plan.input_strips().len();
        let outputs = plan.output_strips().len();
        let answers = answers(plan, len);
        let list = aligned(8 * (inputs + outputs));
        let factors = if known.is_none() { aligned(plan.factors.len()) } else { 0 };
        let more = (list + factors + inputs * aligned(len), outputs * len + aligned(4 * answers));
        let behind = self.descriptors.len() + DESCRIPTOR;
        if self.used.0 + more.0 + behind > self.room.0
            || self.used.1 + more.1 > self.room.1
            || behind > MAX_JOBS * DESCRIPTOR
        {
            return None;
        }
        let list_at = self.used.0;
        let factors_at = known.unwrap_or(list_at + list);
        let strips_at = list_at + list + factors;
        let placed = Placed {
            inputs: (0..inputs).map(|i| strips_at + i * len).collect(),
            outputs: (0..outputs).map(|i| self.used.1 + i * len).collect(),
            answers: (self.used.1 + outputs * len, answers),
            len,
        };
        let places = placed.inputs.iter().chain(&placed.outputs);
        let list = places.flat_map(|&at| (at as u64).to_le_bytes()).collect();
        self.metadata.push((list_at, list));
        if known.is_none() {
            self.metadata.push((factors_at, plan.factors.clone()));
            self.factors.push((plan.clone(), factors_at));
        }
        self.describe(plan, &placed, (list_at, factors_at));
        self.used = (self.used.0 + more.0, self.used.1 + more.1);
        self.longest = self.longest.max(len);
        Some(placed)
    }

    /// Appends the descriptor.
    fn describe(&mut self, plan: &Plan, placed: &Placed, (list, factors): (usize, usize)) {
        let compared = if plan.kind.compares() { plan.outputs.len() } else { 0 };
        let block = match plan.operation {
            Operation::Checksum { block } => block,
            _ => 0,
        };
        for place in [list, factors, placed.answers.0] {
            self.descriptors.extend((place as u64).to_le_bytes());
        }
        let inputs = placed.inputs.len() - compared;
        let outputs = placed.outputs.len() + compared;
        for count in [placed.len, inputs, outputs, block] {
            let count = u32::try_from(count).expect("a plan takes no more");
            self.descriptors.extend(count.to_le_bytes());
        }
        self.descriptors.extend([0; 8]);
    }

    /// Ends the batch.
    pub fn finish(mut self) -> Packed {
        let jobs = self.used.0;
        let in_len = jobs + self.descriptors.len();
        let count = self.descriptors.len() / DESCRIPTOR;
        self.metadata.push((jobs, self.descriptors));
        let (kind, longest, metadata) = (self.kind, self.longest, self.metadata);
        Packed { kind, count, longest, jobs, in_len, out_len: self.used.1, metadata }
    }
}

/// How many u32 a job answers with.
fn answers(plan: &Plan, len: usize) -> usize {
    match plan.operation {
        Operation::Verify(_) => 1,
        Operation::Checksum { block } => plan.inputs.len() * (len / block),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use parity::Code;

    use super::*;

    #[test]
    fn a_descriptor_is_as_documented() {
        let plan = Plan::update(Code::new(4, 3).unwrap(), &[1, 3], &[5, 6]);
        let mut packer = Packer::new(Kind::Deltas, 4096, 1024);
        let placed = packer.push(&plan, 512).unwrap();
        assert_eq!(placed.inputs, [176, 688, 1200, 1712]);
        assert_eq!(placed.outputs, [0, 512]);
        assert_eq!(packer.push(&plan, 512), None, "no room in `in`");
        let packed = packer.finish();
        assert_eq!((packed.count, packed.longest, packed.jobs), (1, 512, 2224));
        assert_eq!((packed.in_len, packed.out_len), (2224 + 48, 1024));
        let mut right = Vec::new();
        [0u64, 48, 1024].iter().for_each(|n| right.extend(n.to_le_bytes()));
        [512u32, 4, 2, 0, 0, 0].iter().for_each(|n| right.extend(n.to_le_bytes()));
        assert_eq!(packed.metadata.last().unwrap(), &(2224, right));
    }

    #[test]
    fn jobs_of_one_plan_share_its_factors() {
        let plan = Plan::checksum(1, 512);
        let mut packer = Packer::new(Kind::Crc32c, 4096, 64);
        let first = packer.push(&plan, 1024).unwrap();
        let second = packer.push(&plan, 512).unwrap();
        assert_eq!((first.answers, second.answers), ((0, 2), (16, 1)));
        assert_eq!((first.inputs[0], second.inputs[0]), (144, 144 + 1024 + 16));
        // One list each, one array of powers, and the descriptors.
        assert_eq!(packer.finish().metadata.len(), 4);
    }

    #[test]
    fn all_rooms_are_kept() {
        let plan = Plan::generate(Code::new(2, 1).unwrap());
        let mut packer = Packer::new(Kind::GenerateP, 1 << 20, 1000);
        assert!(packer.push(&plan, 992).is_some());
        assert_eq!(packer.push(&plan, 16), None);
        // A list of three strips takes 32 bytes, the strips 32 and the descriptor 48.
        let mut packer = Packer::new(Kind::GenerateP, 2 * 112, 1000);
        assert!(packer.push(&plan, 16).is_some() && packer.push(&plan, 16).is_some());
        assert_eq!(packer.push(&plan, 16), None);
    }
}
