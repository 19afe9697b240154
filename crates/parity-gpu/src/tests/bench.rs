//! Runs batches in plain memory and compares them with the CPU.

use std::sync::Arc;

use crate::host;
use crate::kind::Kind;
use crate::memory::Aligned;
use crate::pack::{Packed, Packer, Placed};
use crate::plan::{Answer, Plan};

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

/// A job with its buffers.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) plan: Arc<Plan>,
    pub(crate) inputs: Vec<Vec<u8>>,
    pub(crate) outputs: Vec<Vec<u8>>,
}

/// What a job gave: its outputs and answer.
pub(crate) type Outcome = (Vec<Vec<u8>>, Answer);

impl Case {
    /// A job on random strips of `len` bytes. Those of a verification are right.
    pub(crate) fn new(random: &mut Random, plan: &Arc<Plan>, len: usize) -> Case {
        let inputs = plan.input_strips().iter().map(|_| random.bytes(len)).collect();
        let outputs = plan.output_strips().iter().map(|_| random.bytes(len)).collect();
        let mut case = Case { plan: plan.clone(), inputs, outputs };
        if let crate::plan::Operation::Verify(code) = plan.operation {
            let (data, parity) = case.inputs.split_at_mut(code.data());
            let data: Vec<_> = data.iter().map(Vec::as_slice).collect();
            let mut parity: Vec<_> = parity.iter_mut().map(Vec::as_mut_slice).collect();
            code.generate(&data, &mut parity);
        }
        case
    }

    pub(crate) fn len(&self) -> usize {
        self.inputs[0].len()
    }

    /// By the parity crate.
    pub(crate) fn by_cpu(&self) -> Outcome {
        let inputs: Vec<_> = self.inputs.iter().map(Vec::as_slice).collect();
        let mut outputs = self.outputs.clone();
        let mut refs: Vec<_> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let answer = self.plan.compute(&inputs, &mut refs);
        (outputs, answer)
    }

    fn fill(&self, placed: &Placed, input: &mut [u8], out: &mut [u8]) {
        for (&at, strip) in placed.inputs.iter().zip(&self.inputs) {
            input[at..at + placed.len].copy_from_slice(strip);
        }
        if self.plan.kind().adds() {
            for (&at, strip) in placed.outputs.iter().zip(&self.outputs) {
                out[at..at + placed.len].copy_from_slice(strip);
            }
        }
    }

    fn taken(&self, placed: &Placed, out: &[u8]) -> Outcome {
        let outputs = placed.outputs.iter().map(|&at| out[at..at + placed.len].to_vec()).collect();
        let (at, count) = placed.answers;
        (outputs, self.plan.answer(&out[at..at + 4 * count]))
    }
}

/// A batch in memory, before its launch.
pub(crate) struct Image {
    pub(crate) packed: Packed,
    placed: Vec<Placed>,
    pub(crate) input: Aligned,
    pub(crate) out: Aligned,
}

/// Bytes behind the outputs that must not change.
const GUARD: usize = 4096;

impl Image {
    /// All cases, which have one kind.
    pub(crate) fn new(cases: &[Case]) -> Image {
        let mut packer = Packer::new(cases[0].plan.kind(), 64 << 20, 64 << 20);
        let place = |case: &Case| packer.push(&case.plan, case.len()).unwrap();
        let placed: Vec<_> = cases.iter().map(place).collect();
        let packed = packer.finish();
        let mut input = Aligned::zeros(packed.in_len);
        let mut out = Aligned::zeros(packed.out_len);
        for (at, bytes) in &packed.metadata {
            input[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        for (case, placed) in cases.iter().zip(&placed) {
            case.fill(placed, &mut input, &mut out);
        }
        Image { packed, placed, input, out }
    }

    /// Blocks of the grid.
    pub(crate) fn blocks(&self) -> u32 {
        host::blocks(self.packed.longest)
    }

    /// `out` after the C form ran; memory beside it stays as it was.
    pub(crate) fn run(&self) -> Vec<u8> {
        let len = self.packed.out_len;
        let input = self.input.clone();
        let mut out = Aligned::zeros(len + GUARD);
        out[..len].copy_from_slice(&self.out);
        out[len..].fill(0xa5);
        let grid = (self.blocks(), self.packed.count as u32);
        let memory = (input.as_ptr(), out.as_mut_ptr());
        run(self.packed.kind, memory, self.packed.jobs as u64, grid);
        assert_eq!(input[..], self.input[..], "inputs are not written");
        assert!(out[len..].iter().all(|&byte| byte == 0xa5), "nothing behind is written");
        out[..len].to_vec()
    }

    /// `out` as the parity crate has it.
    pub(crate) fn expected(&self, cases: &[Case]) -> Vec<u8> {
        let mut out = self.out.to_vec();
        for (case, placed) in cases.iter().zip(&self.placed) {
            let (outputs, answer) = case.by_cpu();
            for (&at, strip) in placed.outputs.iter().zip(&outputs) {
                out[at..at + placed.len].copy_from_slice(strip);
            }
            let words = match answer {
                Answer::Written => Vec::new(),
                Answer::Differs(at) => vec![at.map_or(0, |at| u32::MAX - at as u32)],
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
fn run(kind: Kind, memory: (*const u8, *mut u8), jobs: u64, grid: (u32, u32)) {
    // SAFETY: the packer laid everything out within the two vectors, which are aligned to 64.
    unsafe { host::launch(kind, memory, jobs, grid) }
}

/// All cases, which have one kind, as one batch of the C form.
pub(crate) fn by_kernel(cases: &[Case]) -> Vec<Outcome> {
    let image = Image::new(cases);
    let out = image.run();
    cases.iter().zip(&image.placed).map(|(case, placed)| case.taken(placed, &out)).collect()
}

/// Runs all cases as one batch and compares each with the CPU.
pub(crate) fn check(cases: &[Case]) -> Result<(), String> {
    for (i, (case, found)) in cases.iter().zip(by_kernel(cases)).enumerate() {
        if found != case.by_cpu() {
            let (kind, len) = (case.plan.kind(), case.len());
            return Err(format!(
                "{kind:?}, job {i} of {}, {len} bytes: {:?}",
                cases.len(),
                case.plan
            ));
        }
    }
    Ok(())
}
