//! Packing: where the strips, lists, factors, descriptors and answers of a batch lie.
//!
//! Purpose: the host's half of the contract at the top of `kernels/parity.c`: all bounds and
//! alignments are decided and checked here, so that kernels need no checks.
//! Invariants: everything is aligned to 16; nothing overlaps; what is staged lies within the two
//! rooms that the packer was made with, what is not lies in memory that the device reaches.
//! `out` holds staged outputs or answers, never both, since no kind has both.

use std::sync::Arc;

use parity::offload::Operation;

use crate::kind::Kind;
use crate::plan::{self, Plan};

/// Threads of a block, as `kernels/parity.c` has them.
pub(crate) const THREADS: u32 = 256;
/// Rows that a kernel computes while an input is in registers, as `kernels/parity.c` has them.
const ROWS: usize = 4;
/// Alignment of all places, in bytes.
pub(crate) const ALIGN: usize = 16;
/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR: usize = 48;
/// Most jobs of a launch: what any device takes along the grid's second dimension.
const MAX_JOBS: usize = 65_535;

/// Memory that batches are packed for: bytes that there are, and the address of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

/// Who puts things in their places.
pub(crate) trait Stage {
    /// Puts `bytes` at `at` of `in`.
    fn put_in(&mut self, at: usize, bytes: &[u8]);

    /// Puts `bytes` at `at` of `out`.
    fn put_out(&mut self, at: usize, bytes: &[u8]);

    /// The device's address of `bytes`, if it reaches them where they are.
    fn reached(&self, bytes: &[u8]) -> Option<u64>;
}

/// Where the results of one job lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    /// Bytes of each strip.
    pub(crate) len: usize,
    /// Its outputs, one behind the other from there on in `out`; `None` if the device writes them
    /// where they are.
    pub(crate) outputs: Option<usize>,
    /// Its answers, in `out`: that many u32, from there on. None for kinds that write.
    pub(crate) answers: (usize, usize),
    /// Whether the device reaches for any strip of the job's own.
    pub(crate) reached: bool,
}

/// A batch of jobs of one kind that is being put together. Made once and used again.
#[derive(Debug)]
pub(crate) struct Packer {
    kind: Kind,
    /// `in` and `out`.
    rooms: (Room, Room),
    /// Bytes that are taken, descriptors not counted.
    used: (usize, usize),
    /// Bytes that kernels read, staged or not.
    work: usize,
    /// Factors that lie in `in`, with the plan they belong to.
    factors: Vec<(Arc<Plan>, usize)>,
    list: Vec<u8>,
    descriptors: Vec<u8>,
    longest: usize,
}

/// A batch that is complete: what a launch needs to know. Only a packer makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    kind: Kind,
    count: usize,
    longest: usize,
    jobs: u64,
    pub(crate) in_len: usize,
    pub(crate) out_len: usize,
    /// Bytes that its kernel reads.
    pub(crate) work: usize,
}

impl Packed {
    /// The kernel.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many jobs.
    pub fn count(&self) -> u32 {
        self.count as u32
    }

    /// Blocks of threads along the longest job's strips.
    pub fn blocks(&self) -> u32 {
        blocks(self.longest) as u32
    }

    /// Where the descriptors begin.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }
}

/// Blocks of threads along strips of `len` bytes.
pub(crate) fn blocks(len: usize) -> usize {
    len.div_ceil(16 * THREADS as usize)
}

/// `bytes` up to the next multiple of [`ALIGN`].
fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN)
}

/// Whether a job of this operation on strips of `len` bytes can go into a batch of its own, all
/// of it staged, where there are so many bytes in `in` and `out`.
pub(crate) fn fits(operation: &Operation, len: usize, rooms: (usize, usize)) -> bool {
    if !plan::takes(operation, len) {
        return false;
    }
    let (reads, writes) = (operation.reads().len(), operation.writes().len());
    let factors = match operation.what() {
        parity::offload::What::Checksum(block) => block / 4,
        parity::offload::What::Verify(code) => 32 * code.parities() * code.data(),
        _ => 32 * reads * writes,
    };
    let list = aligned(8 * (reads + writes));
    let input = reads.checked_mul(len).map(|strips| strips + list + aligned(factors) + DESCRIPTOR);
    let answers = aligned(4 * plan::answers(operation, len));
    let out = writes.checked_mul(len).map(|strips| strips + answers);
    input.is_some_and(|bytes| bytes <= rooms.0) && out.is_some_and(|bytes| bytes <= rooms.1)
}

impl Packer {
    /// For batches in these rooms, `in` and `out`.
    pub(crate) fn new(input: Room, out: Room) -> Packer {
        Packer {
            kind: Kind::GenerateP,
            rooms: (input, out),
            used: (0, 0),
            work: 0,
            factors: Vec::new(),
            list: Vec::new(),
            descriptors: Vec::new(),
            longest: 0,
        }
    }

    /// Begins a batch of `kind`.
    pub(crate) fn begin(&mut self, kind: Kind) {
        self.kind = kind;
        (self.used, self.work, self.longest) = ((0, 0), 0, 0);
        self.factors.clear();
        self.descriptors.clear();
    }

    /// Whether nothing has been pushed.
    pub(crate) fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Adds a job on these strips, which are the plan's, or says `None` if there is no room for
    /// it. A batch that has jobs takes no more than the room's bytes, staged or not, so that
    /// batches end soon.
    ///
    /// # Panics
    ///
    /// If the plan is of another kind or does not take this length.
    pub(crate) fn push<I: AsRef<[u8]>, O: AsRef<[u8]>>(
        &mut self,
        plan: &Arc<Plan>,
        (inputs, outputs): (&[I], &[O]),
        stage: &mut impl Stage,
    ) -> Option<Placed> {
        let len = inputs.first().map_or(0, |input| input.as_ref().len());
        assert_eq!(plan.kind, self.kind, "a batch has one kind");
        assert!(plan::takes(&plan.operation, len), "{len} bytes are not for a kernel");
        // Over the link each byte goes once: what a kernel reads again for more rows is staged.
        let once = !(plan.kind.by_rows() && plan.counts().1 + plan.counts().2 > ROWS);
        let reached = |stage: &dyn Stage, bytes: &[u8]| stage.reached(bytes).filter(|_| once);
        let staged = inputs.iter().filter(|i| reached(stage, i.as_ref()).is_none()).count();
        // What adds to its outputs works on copies, so that a device that hangs changes no half.
        let apart = plan.kind.adds()
            || outputs.is_empty()
            || outputs.iter().any(|output| stage.reached(output.as_ref()).is_none());
        let known = self.factors.iter().find(|(of, _)| Arc::ptr_eq(of, plan)).map(|(_, at)| *at);
        let factors = if known.is_none() { aligned(plan.factors.len()) } else { 0 };
        let answers = plan::answers(&plan.operation, len);
        let list_at = self.used.0;
        let factors_at = list_at + aligned(8 * (inputs.len() + outputs.len()));
        let strips_at = factors_at + factors;
        let written = if apart { outputs.len() * len } else { 0 };
        let end = (strips_at + staged * len, self.used.1 + written + aligned(4 * answers));
        let behind = self.descriptors.len() + DESCRIPTOR;
        let work = self.work + inputs.len() * len;
        if end.0 + behind > self.rooms.0.bytes
            || end.1 > self.rooms.1.bytes
            || behind > MAX_JOBS * DESCRIPTOR
            || (work > self.rooms.0.bytes && !self.is_empty())
        {
            return None;
        }
        self.list.clear();
        let mut at = strips_at;
        for input in inputs.iter().map(AsRef::as_ref) {
            let address = reached(stage, input).unwrap_or_else(|| {
                stage.put_in(at, input);
                at += len;
                self.rooms.0.address + (at - len) as u64
            });
            self.list.extend(address.to_le_bytes());
        }
        for (i, output) in outputs.iter().map(AsRef::as_ref).enumerate() {
            let at = self.used.1 + i * len;
            if plan.kind.adds() {
                stage.put_out(at, output);
            }
            let address = stage.reached(output).filter(|_| !apart);
            let address = address.unwrap_or(self.rooms.1.address + at as u64);
            self.list.extend(address.to_le_bytes());
        }
        stage.put_in(list_at, &self.list);
        if known.is_none() {
            stage.put_in(factors_at, &plan.factors);
            self.factors.push((plan.clone(), factors_at));
        }
        let answers_at = self.used.1 + written;
        self.describe(plan, len, [list_at, known.unwrap_or(factors_at), answers_at]);
        (self.used, self.work, self.longest) = (end, work, self.longest.max(len));
        Some(Placed {
            len,
            outputs: apart.then_some(answers_at - written),
            answers: (answers_at, answers),
            reached: staged < inputs.len() || !apart,
        })
    }

    /// Appends the descriptor.
    fn describe(&mut self, plan: &Plan, len: usize, [list, factors, answers]: [usize; 3]) {
        let (input, out) = (self.rooms.0.address, self.rooms.1.address);
        for place in [input + list as u64, input + factors as u64, out + answers as u64] {
            self.descriptors.extend(place.to_le_bytes());
        }
        let (inputs, compared, outputs) = plan.counts();
        for count in [len, inputs, outputs + compared, plan.block()] {
            let count = u32::try_from(count).expect("a plan takes no more");
            self.descriptors.extend(count.to_le_bytes());
        }
        self.descriptors.extend([0; 8]);
    }

    /// Ends the batch.
    pub(crate) fn finish(&mut self, stage: &mut impl Stage) -> Packed {
        let jobs = self.used.0;
        stage.put_in(jobs, &self.descriptors);
        Packed {
            kind: self.kind,
            count: self.descriptors.len() / DESCRIPTOR,
            longest: self.longest,
            jobs: self.rooms.0.address + jobs as u64,
            in_len: jobs + self.descriptors.len(),
            out_len: self.used.1,
            work: self.work,
        }
    }
}

#[cfg(test)]
mod tests {
    use parity::Code;

    use super::*;
    use crate::plan::Plans;

    /// Remembers what was put where; reaches whole ranges of addresses.
    #[derive(Default)]
    struct Put {
        input: Vec<(usize, Vec<u8>)>,
        out: Vec<usize>,
        reached: std::ops::Range<usize>,
    }

    impl Stage for Put {
        fn put_in(&mut self, at: usize, bytes: &[u8]) {
            self.input.push((at, bytes.to_vec()));
        }

        fn put_out(&mut self, at: usize, _: &[u8]) {
            self.out.push(at);
        }

        fn reached(&self, bytes: &[u8]) -> Option<u64> {
            let at = bytes.as_ptr().addr();
            self.reached.contains(&at).then_some(at as u64)
        }
    }

    fn packer(kind: Kind, input: usize, out: usize) -> Packer {
        let room = |address, bytes| Room { address, bytes };
        let mut packer = Packer::new(room(0x10000, input), room(0x20000, out));
        packer.begin(kind);
        packer
    }

    fn words(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    fn strips(count: usize, len: usize) -> Vec<Vec<u8>> {
        vec![vec![0; len]; count]
    }

    #[test]
    fn a_descriptor_is_as_documented() {
        let plan = Plan::new(&Operation::update(Code::new(4, 3).unwrap(), &[1, 3], &[5, 6]));
        let (mut packer, mut put) = (packer(Kind::Deltas, 4096, 1024), Put::default());
        let (inputs, outputs) = (strips(4, 512), strips(2, 512));
        let placed = packer.push(&plan, (&inputs, &outputs), &mut put).unwrap();
        let right = Placed { len: 512, outputs: Some(0), answers: (1024, 0), reached: false };
        assert_eq!((placed, &put.out[..]), (right, &[0, 512][..]));
        assert_eq!(packer.push(&plan, (&inputs, &outputs), &mut put), None, "no room in `in`");
        let packed = packer.finish(&mut put);
        assert_eq!((packed.count(), packed.blocks(), packed.jobs()), (1, 1, 0x10000 + 2224));
        assert_eq!((packed.in_len, packed.out_len), (2224 + 48, 1024));
        let list = put.input.iter().find(|(at, _)| *at == 0).map(|(_, list)| words(list));
        let places = [176, 688, 1200, 1712].map(|at| 0x10000 + at);
        assert_eq!(list.unwrap(), [&places[..], &[0x20000, 0x20200]].concat());
        let mut right = Vec::new();
        [0x10000u64, 0x10030, 0x20400].iter().for_each(|n| right.extend(n.to_le_bytes()));
        [512u32, 4, 2, 0, 0, 0].iter().for_each(|n| right.extend(n.to_le_bytes()));
        assert_eq!(put.input.last().unwrap(), &(2224, right));
    }

    /// What the device reaches is not copied, but for what is added to, or read more than once.
    #[test]
    fn only_what_is_not_reached_is_staged() {
        let (inputs, outputs) = (strips(4, 1040), strips(5, 1040));
        let all = Put { reached: 0..usize::MAX, ..Put::default() };
        let cases = [
            (Kind::GeneratePq, Operation::generate(Code::new(4, 2).unwrap()), (0, None)),
            (Kind::Dot, Operation::generate(Code::new(4, 4).unwrap()), (0, None)),
            (Kind::Dot, Operation::generate(Code::new(4, 5).unwrap()), (4, None)),
            (
                Kind::DeltaPq,
                Operation::update(Code::new(4, 2).unwrap(), &[0, 1], &[4, 5]),
                (0, Some(0)),
            ),
        ];
        for (kind, operation, (copied, apart)) in cases {
            let mut put = Put { reached: all.reached.clone(), ..Put::default() };
            let plan = Plan::new(&operation);
            let mut packer = packer(kind, 1 << 20, 1 << 20);
            let outputs = &outputs[..operation.writes().len()];
            let placed = packer.push(&plan, (&inputs, outputs), &mut put).unwrap();
            assert_eq!((placed.outputs, placed.reached), (apart, copied == 0 || apart.is_none()));
            let strips = put.input.iter().filter(|(_, bytes)| bytes.len() == 1040).count();
            assert_eq!(strips, copied, "{kind:?}");
        }
    }

    #[test]
    fn jobs_of_one_plan_share_its_factors() {
        let plan = Plan::new(&Operation::checksum(1, 512));
        let (mut packer, mut put) = (packer(Kind::Crc32c, 4096, 64), Put::default());
        let none: [Vec<u8>; 0] = [];
        let first = packer.push(&plan, (&strips(1, 1024), &none), &mut put).unwrap();
        let second = packer.push(&plan, (&strips(1, 512), &none), &mut put).unwrap();
        assert_eq!((first.answers, second.answers), ((0, 2), (16, 1)));
        packer.finish(&mut put);
        // A strip and a list each, one array of powers, and the descriptors.
        assert_eq!(put.input.len(), 2 * 2 + 1 + 1);
    }

    #[test]
    fn all_rooms_are_kept() {
        let operation = Operation::generate(Code::new(2, 1).unwrap());
        let plan = Plans::default().of(&operation);
        let mut put = Put::default();
        let mut small = packer(Kind::GenerateP, 1 << 20, 1000);
        let mut push = |packer: &mut Packer, len| {
            packer.push(&plan, (&strips(2, len), &strips(1, len)), &mut put).is_some()
        };
        assert!(push(&mut small, 992) && !push(&mut small, 16));
        // A list of three strips takes 32 bytes, the strips 32 and the descriptor 48.
        let mut small = packer(Kind::GenerateP, 2 * 112, 1000);
        assert!(push(&mut small, 16) && push(&mut small, 16) && !push(&mut small, 16));
        assert!(fits(&operation, 992, (1 << 20, 1000)) && !fits(&operation, 1008, (1 << 20, 1000)));
        assert!(!fits(&operation, 1000, (1 << 20, 1 << 20)), "no multiple of 16");
    }

    #[test]
    fn the_source_has_the_same_constants() {
        let source = include_str!("../kernels/parity.c");
        assert!(source.contains(&format!("#define THREADS {THREADS}\n")));
        assert!(source.contains(&format!("#define ROWS {ROWS}\n")));
    }
}
