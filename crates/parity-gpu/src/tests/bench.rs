//! Runs batches in plain memory and compares them with the CPU.

use std::sync::Arc;
use std::time::Duration;

use parity::offload::{Answer, Job, Operation, What};

use crate::fence::Limits;
use crate::host;
use crate::kind::Kind;
use crate::memory::Aligned;
use crate::pack::{Packed, Packer, Placed, Room, Stage, blocks};
use crate::plan::{Plan, Plans};
use crate::selftest::make_right;

/// Small lanes, so that there are many batches; time enough for a busy machine.
pub(crate) const LIMITS: Limits = Limits {
    lanes: 3,
    in_bytes: 1 << 19,
    out_bytes: 1 << 19,
    patience: Duration::from_secs(60),
    start: Duration::from_secs(60),
    late: Duration::from_secs(60),
    latency: Duration::from_millis(1),
    sample: 0,
};

/// Small deterministic generator (SplitMix64) for test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }
}

/// A job with plain buffers.
pub(crate) type Case = Job<Vec<u8>, Vec<u8>>;

/// What a job gave: its outputs and answer.
pub(crate) type Result = (Vec<Vec<u8>>, Answer);

/// A job on random strips of `len` bytes. Those of a verification are right.
pub(crate) fn case(random: &mut Random, operation: &Arc<Operation>, len: usize) -> Case {
    let inputs = operation.reads().iter().map(|_| random.bytes(len)).collect();
    let outputs = operation.writes().iter().map(|_| random.bytes(len)).collect();
    let mut case = Job { operation: operation.clone(), inputs, outputs };
    if let What::Verify(code) = operation.what() {
        make_right(code, &mut case);
    }
    case
}

/// By the parity crate.
pub(crate) fn by_cpu(case: &Case) -> Result {
    let mut case = case.clone();
    let answer = case.compute();
    (case.outputs, answer)
}

/// The kernel of a job.
pub(crate) fn kind(operation: &Arc<Operation>) -> Kind {
    Plan::new(operation).kind
}

/// A batch in memory, before its launch.
pub(crate) struct Image {
    pub(crate) packed: Packed,
    placed: Vec<(Arc<Plan>, Placed)>,
    pub(crate) input: Aligned,
    pub(crate) out: Aligned,
}

/// `in` and `out`; nothing else is reached.
struct Both(Aligned, Aligned);

impl Stage for Both {
    fn put_in(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_out(&mut self, at: usize, bytes: &[u8]) {
        self.1[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn reached(&self, _: &[u8]) -> Option<u64> {
        None
    }
}

/// Bytes behind the outputs that must not change.
const GUARD: usize = 4096;

impl Image {
    /// All cases, which have one kind. Places are offsets.
    pub(crate) fn new(cases: &[Case]) -> Image {
        let room = |bytes| Room { address: 0, bytes };
        let strips = |strips: &[Vec<u8>]| strips.iter().map(Vec::len).sum::<usize>();
        let need = |case: &Case| strips(&case.inputs) + strips(&case.outputs) + (32 << 10);
        let bytes = cases.iter().map(need).sum::<usize>() + (1 << 20);
        let mut both = Both(Aligned::zeros(bytes), Aligned::zeros(bytes));
        let mut packer = Packer::new(room(bytes), room(bytes));
        let mut plans = Plans::default();
        packer.begin(kind(&cases[0].operation));
        let place = |case: &Case| {
            let plan = plans.of(&case.operation);
            let strips = (&case.inputs[..], &case.outputs[..]);
            let placed = packer.push(&plan, strips, &mut both).expect("room for it");
            (plan, placed)
        };
        let placed: Vec<_> = cases.iter().map(place).collect();
        let packed = packer.finish(&mut both);
        let cut = |memory: &Aligned, len: usize| {
            let mut shorter = Aligned::zeros(len);
            shorter.copy_from_slice(&memory[..len]);
            shorter
        };
        let (input, out) = (cut(&both.0, packed.in_len), cut(&both.1, packed.out_len));
        Image { packed, placed, input, out }
    }

    /// `out` after the C++ form ran; memory beside it stays as it was.
    pub(crate) fn run(&self) -> Vec<u8> {
        let len = self.packed.out_len;
        let input = self.input.clone();
        let mut out = Aligned::zeros(len + GUARD);
        out[..len].copy_from_slice(&self.out);
        out[len..].fill(0xa5);
        run(&self.packed, (input.as_ptr(), out.as_mut_ptr()));
        assert_eq!(input[..], self.input[..], "inputs are not written");
        assert!(out[len..].iter().all(|&byte| byte == 0xa5), "nothing behind is written");
        out[..len].to_vec()
    }

    /// `out` as the parity crate has it.
    pub(crate) fn expected(&self, cases: &[Case]) -> Vec<u8> {
        let mut out = self.out.to_vec();
        for (case, (_, placed)) in cases.iter().zip(&self.placed) {
            let (outputs, answer) = by_cpu(case);
            let mut at = placed.outputs.unwrap_or_default();
            for strip in &outputs {
                out[at..at + strip.len()].copy_from_slice(strip);
                at += strip.len();
            }
            let words = match answer {
                Answer::Written => Vec::new(),
                Answer::Differs(at) => {
                    let blocks = blocks(case.strip_len()) as u32;
                    vec![at.map_or(0, |at| u32::MAX - at as u32), blocks]
                }
                Answer::Checksums(checksums) => checksums,
            };
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let at = placed.answers.0;
            out[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        out
    }
}

#[allow(unsafe_code)]
fn run(packed: &Packed, memory: (*const u8, *mut u8)) {
    let grid = (packed.blocks(), packed.count());
    // SAFETY: the packer laid everything out within the two vectors, which are aligned to 64.
    unsafe { host::launch(packed.kind(), memory, packed.jobs(), grid) }
}

/// What a job gave, of `out`.
fn taken(case: &Case, (plan, placed): &(Arc<Plan>, Placed), out: &[u8]) -> Result {
    let mut outputs = case.outputs.clone();
    let mut at = placed.outputs.unwrap_or_default();
    for output in &mut outputs {
        let end = at + output.len();
        output.copy_from_slice(&out[at..end]);
        at = end;
    }
    let (at, count) = placed.answers;
    let answer = plan.answer(&out[at..at + 4 * count], case.strip_len());
    (outputs, answer.expect("all of it was done"))
}

/// All cases, which have one kind, as one batch of the C++ form.
pub(crate) fn by_kernel(cases: &[Case]) -> Vec<Result> {
    let image = Image::new(cases);
    let out = image.run();
    cases.iter().zip(&image.placed).map(|(case, placed)| taken(case, placed, &out)).collect()
}

/// Runs all cases as one batch and compares each with the CPU.
pub(crate) fn check(cases: &[Case]) {
    for (i, (case, found)) in cases.iter().zip(by_kernel(cases)).enumerate() {
        let len = case.strip_len();
        assert!(found == by_cpu(case), "job {i}, {len} bytes: {:?}", case.operation);
    }
}
