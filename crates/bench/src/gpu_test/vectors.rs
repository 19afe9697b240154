//! Test vectors: cases by a line of text each, with the checksum of what the reference makes.
//!
//! A line is an operation with its arguments, `lens` (bytes of strips, a job each), `seed`, and
//! after `=` the CRC-32C of all right outputs and answers of its jobs:
//!
//! ```text
//! generate DATA PARITIES lens LEN,… seed SEED = CRC
//! update DATA PARITIES CHANGED,… FOLLOWING,… lens …
//! recover DATA PARITIES LOST,… lens …
//! verify DATA PARITIES STRIP (or -: nothing is wrong) lens …
//! checksum STRIPS BLOCK lens …
//! ```
//!
//! Inputs are random bytes that follow from the seed. Right results come from
//! [`parity::reference`] and from [`plain`], which share nothing with any kernel.
//!
//! Invariant: the same line has the same inputs and results on every machine.

use crate::parity_bench::plain;
use ::parity::offload::{Answer, Operation, What};
use ::parity::{Code, reference};
use std::sync::Arc;
use workload::Random;

/// One line.
#[derive(Clone, Debug)]
pub struct Case {
    line: String,
    operation: Arc<Operation>,
    /// The strip with a wrong bit, for a verification.
    wrong: Option<usize>,
    lens: Vec<usize>,
    seed: u64,
    crc: Option<u32>,
}

/// One job of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// What it reads.
    pub inputs: Vec<Vec<u8>>,
    /// What its outputs hold before.
    pub before: Vec<Vec<u8>>,
    /// What they must hold after it.
    pub outputs: Vec<Vec<u8>>,
    /// What it must answer.
    pub answer: Answer,
}

/// A list of numbers, by commas.
fn numbers(word: &str) -> Option<Vec<usize>> {
    word.split(',').map(|number| number.parse().ok()).collect()
}

fn code(data: &str, parities: &str) -> Option<Code> {
    Code::new(data.parse().ok()?, parities.parse().ok()?).ok()
}

impl Case {
    /// The case of a line, with or without its checksum; `None` if it is none.
    pub fn parse(line: &str) -> Option<Case> {
        let (what, crc) = match line.split_once(" = ") {
            Some((what, crc)) => (what, Some(u32::from_str_radix(crc, 16).ok()?)),
            None => (line, None),
        };
        let (what, rest) = what.split_once(" lens ")?;
        let (lens, seed) = rest.split_once(" seed ")?;
        let mut wrong = None;
        let operation = match what.split(' ').collect::<Vec<_>>()[..] {
            ["generate", k, m] => Operation::generate(code(k, m)?),
            ["update", k, m, changed, following] => {
                Operation::update(code(k, m)?, &numbers(changed)?, &numbers(following)?)
            }
            ["recover", k, m, lost] => {
                let (code, lost) = (code(k, m)?, numbers(lost)?);
                let present: Vec<_> = (0..code.strips()).map(|i| !lost.contains(&i)).collect();
                Operation::recover(code, &present, &lost).ok()?
            }
            ["verify", k, m, at] => {
                let code = code(k, m)?;
                wrong = at.parse().ok().filter(|&at: &usize| at < code.strips());
                Operation::verify(code)
            }
            ["checksum", strips, block] => {
                Operation::checksum(strips.parse().ok()?, block.parse().ok()?)
            }
            _ => return None,
        };
        let (lens, seed) = (numbers(lens)?, seed.parse().ok()?);
        Some(Case { line: line.to_owned(), operation, wrong, lens, seed, crc })
    }

    /// As it was written.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// What its jobs do.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Bytes of the strips of each job.
    pub fn lens(&self) -> &[usize] {
        &self.lens
    }

    /// Its jobs.
    pub fn made(&self) -> Vec<Made> {
        let jobs = self.lens.iter().enumerate();
        jobs.map(|(job, &len)| self.job(self.seed * 16 + job as u64, len)).collect()
    }

    /// Whether the right results are those that were written down.
    pub fn is_as_written(&self, made: &[Made]) -> bool {
        self.crc.is_none_or(|crc| crc == checksum(made))
    }

    fn job(&self, seed: u64, len: usize) -> Made {
        let mut random = Random::new(seed);
        let mut strip = || {
            let mut bytes = vec![0; len];
            random.fill(&mut bytes);
            bytes
        };
        let (reads, writes) = (self.operation.reads(), self.operation.writes());
        let before = vec![vec![0x5a; len]; writes.len()];
        match self.operation.what() {
            What::Checksum(block) => {
                let inputs: Vec<Vec<u8>> = reads.iter().map(|_| strip()).collect();
                let blocks = inputs.iter().flat_map(|input| input.chunks(block));
                let answer = Answer::Checksums(blocks.map(plain::crc32c).collect());
                Made { inputs, before: Vec::new(), outputs: Vec::new(), answer }
            }
            What::Update(code) => {
                let old: Vec<Vec<u8>> = (0..code.data()).map(|_| strip()).collect();
                let (mut new, mut inputs) = (old.clone(), Vec::new());
                for &changed in reads.iter().step_by(2) {
                    new[changed] = strip();
                    inputs.extend([old[changed].clone(), new[changed].clone()]);
                }
                let of = |data: &[Vec<u8>]| -> Vec<Vec<u8>> {
                    writes.iter().map(|&strip| parity(code, data, strip)).collect()
                };
                Made { inputs, before: of(&old), outputs: of(&new), answer: Answer::Written }
            }
            What::Generate(code) | What::Recover(code) => {
                let strips = stripe(code, strip);
                let of = |list: &[usize]| list.iter().map(|&i| strips[i].clone()).collect();
                Made { inputs: of(reads), before, outputs: of(writes), answer: Answer::Written }
            }
            What::Verify(code) => {
                let mut inputs = stripe(code, strip);
                let at = len - 1 - len / 3;
                if let Some(wrong) = self.wrong {
                    inputs[wrong][at] ^= 0x10;
                }
                let answer = Answer::Differs(self.wrong.map(|_| at));
                Made { inputs, before: Vec::new(), outputs: Vec::new(), answer }
            }
        }
    }
}

/// The parity `strip` of `data`, by the reference.
fn parity(code: Code, data: &[Vec<u8>], strip: usize) -> Vec<u8> {
    let (row, parities) = (strip - code.data(), code.parities());
    let byte =
        |at| reference::parity_byte(parities, row, data.iter().map(|strip: &Vec<u8>| strip[at]));
    (0..data[0].len()).map(byte).collect()
}

/// Random data with its parities.
fn stripe(code: Code, mut strip: impl FnMut() -> Vec<u8>) -> Vec<Vec<u8>> {
    let data: Vec<Vec<u8>> = (0..code.data()).map(|_| strip()).collect();
    let parities: Vec<_> = (code.data()..code.strips()).map(|i| parity(code, &data, i)).collect();
    [data, parities].concat()
}

/// CRC-32C of all that jobs make.
fn checksum(made: &[Made]) -> u32 {
    let mut bytes = Vec::new();
    for made in made {
        made.outputs.iter().for_each(|output| bytes.extend(output));
        match &made.answer {
            Answer::Written => {}
            Answer::Differs(at) => {
                let at = at.map_or(u64::MAX, |at| at as u64);
                bytes.extend(at.to_le_bytes());
            }
            Answer::Checksums(sums) => {
                sums.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
            }
        }
    }
    plain::crc32c(&bytes)
}

/// Lengths that a GPU takes, below and above a block of its threads.
const EVEN: &str = "16,48,4112";
/// Lengths that only the processor takes.
const ODD: &str = "1,7,65,4099";

/// All lines, without checksums.
fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    let codes = [
        (1, 1),
        (2, 1),
        (8, 1),
        (1, 2),
        (4, 2),
        (8, 2),
        (16, 2),
        (8, 3),
        (16, 3),
        (3, 5),
        (8, 4),
        (16, 4),
        (20, 8),
    ];
    for (k, m) in codes {
        for lens in [EVEN, ODD] {
            lines.push(format!("generate {k} {m} lens {lens}"));
            lines.push(format!("verify {k} {m} - lens {lens}"));
            lines.push(format!("verify {k} {m} 0 lens {lens}"));
            lines.push(format!("verify {k} {m} {} lens {lens}", k + m - 1));
            lines.push(format!("update {k} {m} {} {k} lens {lens}", k - 1));
            let all: Vec<String> = (k..k + m).map(|strip| strip.to_string()).collect();
            lines.push(format!("update {k} {m} 0 {} lens {lens}", all.join(",")));
        }
    }
    // Every loss that small codes survive.
    for (k, m) in [(2, 1), (3, 2), (4, 2), (3, 3), (2, 4), (4, 4)] {
        for lost in 1u32..1 << (k + m) {
            let lost: Vec<String> =
                (0..k + m).filter(|i| lost >> i & 1 == 1).map(|i| i.to_string()).collect();
            if lost.len() <= m {
                lines.push(format!("recover {k} {m} {} lens 16,272", lost.join(",")));
                lines.push(format!("recover {k} {m} {} lens 31", lost.join(",")));
            }
        }
    }
    // Every constant of Q, and several changes at once.
    for index in 1..255 {
        lines.push(format!("update 255 2 {index} 256 lens 64"));
    }
    for (changed, following) in [("0,7,254", "255"), ("3,77,200", "255,256")] {
        lines.push(format!("update 255 2 {changed} {following} lens 16,272"));
    }
    lines.push("update 9 6 0,3,8 9,10,12,13,14 lens 16,272".to_owned());
    lines.push("generate 255 2 lens 16,272".to_owned());
    lines.push("recover 8 2 2,5 lens 16,4112,70000".to_owned());
    for (block, lens) in [(16, "16,4112"), (512, "512,4608"), (4096, "8192"), (512, "77,4099")] {
        lines.push(format!("checksum 3 {block} lens {lens}"));
    }
    lines
}

/// The file of test vectors.
///
/// # Panics
/// If a line is no case.
pub fn text() -> String {
    let mut text = String::new();
    for (seed, line) in lines().into_iter().enumerate() {
        let line = format!("{line} seed {seed}");
        let case = Case::parse(&line).expect("every line is a case");
        text.push_str(&format!("{line} = {:08x}\n", checksum(&case.made())));
    }
    text
}

/// The cases of a file.
///
/// # Errors
/// The first line that is none.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    let case = |line: &str| {
        let case = Case::parse(line).filter(|case| case.crc.is_some());
        case.ok_or_else(|| format!("not a test vector: {line}"))
    };
    text.lines().map(case).collect()
}
