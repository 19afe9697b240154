//! Every kernel over every erasure pattern, at odd lengths and offsets.
//!
//! Purpose: recovery is right for any loss a code promises to survive, whatever is wanted of it.
//! Invariant: the number of patterns is asserted, so that none is left out in silence.

use super::{Random, each_kernel, stripe};
use crate::kernel::Kernel;
use crate::{Code, Stores, recover};

/// Lengths that end in every step width; most are short, so that all patterns fit in a minute.
const LENGTHS: [usize; 8] = [1, 67, 8, 33, 15, 64, 259, 31];
/// Most bytes of a pattern, with the largest offset.
const ROOM: usize = 259 + 64;

/// Sets of 1 to `most` of `n` strips, in ascending order.
fn losses(n: usize, most: usize, mut each: impl FnMut(&[usize]) -> Result<(), String>) -> Outcome {
    let mut set = vec![0];
    let mut count = 0;
    loop {
        each(&set)?;
        count += 1;
        let last = set[set.len() - 1];
        if last + 1 < n && set.len() < most {
            set.push(last + 1);
        } else if last + 1 < n {
            *set.last_mut().expect("a set has members") += 1;
        } else {
            set.pop();
            match set.last_mut() {
                Some(last) => *last += 1,
                None => return Ok(count),
            }
        }
    }
}

/// How many patterns were right, or what was wrong with the first that was not.
type Outcome = Result<usize, String>;

/// A stripe and the places for what is recovered of it.
struct Bench {
    code: Code,
    strips: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
    turn: usize,
}

impl Bench {
    fn new(random: &mut Random, k: usize, m: usize) -> Bench {
        let strips = stripe(random, k, m, ROOM);
        let outputs = vec![vec![0; ROOM + 64]; m];
        Bench { code: Code::new(k, m).unwrap(), strips, outputs, turn: 0 }
    }

    /// Recovers what is wanted of `missing`: all of it, or all but one.
    fn check(&mut self, kernels: &[Kernel], missing: &[usize]) -> Result<(), String> {
        self.turn += 1;
        let len = LENGTHS[self.turn % LENGTHS.len()];
        let at = self.turn * 7 % 61;
        let mut wanted = missing.to_vec();
        if self.turn % 3 == 0 && missing.len() > 1 {
            wanted.remove(self.turn / 3 % missing.len());
        }
        let stores = if self.turn % 2 == 0 { Stores::Cached } else { Stores::Streaming };
        let mut left: Vec<_> = self.strips.iter().map(|s| Some(&s[at..at + len])).collect();
        missing.iter().for_each(|&i| left[i] = None);
        for kernel in sample(kernels, self.turn / 3) {
            for output in &mut self.outputs[..wanted.len()] {
                output.fill(0xa5);
            }
            let to = at % 13..at % 13 + len;
            let outputs = &mut self.outputs[..wanted.len()];
            let mut slices: Vec<_> = outputs.iter_mut().map(|o| &mut o[to.clone()]).collect();
            recover::recover(kernel, self.code, &left, &wanted, &mut slices, stores).unwrap();
            for (&index, output) in wanted.iter().zip(&self.outputs) {
                let right = output[to.clone()] == self.strips[index][at..at + len];
                let around = output[..to.start].iter().chain(&output[to.end..]);
                if !right || around.copied().any(|byte| byte != 0xa5) {
                    let (name, code) = (kernel.name(), self.code);
                    return Err(format!(
                        "{name}: strip {index} of {code:?} with {missing:?} missing, {len} bytes"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// All kernels; where they are emulated, which takes ten times as long, one of them in turn.
fn sample(kernels: &[Kernel], turn: usize) -> &[Kernel] {
    match std::env::var_os("PALISADE_EMULATOR") {
        Some(_) => &kernels[turn % kernels.len()..][..1],
        None => kernels,
    }
}

/// All losses of 1 to m strips of k+m.
pub(super) fn check_all(kernels: &[Kernel], k: usize, m: usize) -> Outcome {
    let mut bench = Bench::new(&mut Random((k * 100 + m) as u64), k, m);
    losses(k + m, m, |missing| bench.check(kernels, missing))
}

/// `count` losses of m strips of k+m, picked at random.
fn check_some(kernels: &[Kernel], k: usize, m: usize, count: usize) {
    let mut random = Random((k * 100 + m) as u64);
    let mut bench = Bench::new(&mut random, k, m);
    for _ in 0..count {
        let mut missing: Vec<usize> = Vec::new();
        while missing.len() < m {
            let strip = random.next() as usize % (k + m);
            // Half of all patterns are of data only.
            let strip = if random.next() % 2 == 0 { strip % k } else { strip };
            if !missing.contains(&strip) {
                missing.push(strip);
            }
        }
        missing.sort_unstable();
        bench.check(kernels, &missing).unwrap();
    }
}

/// One to 32 data strips and three parities: 66 664 patterns.
#[test]
fn three_losses_of_up_to_35() {
    let kernels = each_kernel();
    let patterns: usize = (1..=32).map(|k| check_all(&kernels, k, 3).unwrap()).sum();
    assert_eq!(patterns, 66_664);
}

/// Fewer parities leave other ways to recover.
#[test]
fn one_and_two_losses_of_up_to_34() {
    let kernels = each_kernel();
    let patterns: usize = (1..=32)
        .flat_map(|k| [check_all(&kernels, k, 1).unwrap(), check_all(&kernels, k, 2).unwrap()])
        .sum();
    // Sums of n and of n(n-1)/2, for n from 2 to 33 and from 3 to 34.
    assert_eq!(patterns, 560 + 592 + 6_544);
}

/// All shapes up to eight data strips and eight parities.
#[test]
fn all_losses_of_up_to_8_and_8() {
    let kernels = each_kernel();
    let shapes = (1..=8).flat_map(|k| (1..=8).map(move |m| (k, m)));
    let patterns: usize = shapes.map(|(k, m)| check_all(&kernels, k, m).unwrap()).sum();
    // For each shape, the sum of the binomials of k + m over 1 to m.
    let binomial = |n: usize, r: usize| (1..=r).fold(1, |b, i| b * (n - r + i) / i);
    let shapes = (1..=8).flat_map(|k| (1..=8).map(move |m| (k, m)));
    let expected: usize =
        shapes.map(|(k, m)| (1..=m).map(|lost| binomial(k + m, lost)).sum::<usize>()).sum();
    assert_eq!(patterns, expected);
}

/// Every number of parities, with the most data strips and with few.
#[test]
fn some_losses_of_every_other_shape() {
    let kernels = each_kernel();
    for m in 4..=Code::MAX_PARITIES {
        check_some(&kernels, Code::max_data(m), m, 2);
        check_some(&kernels, 9 + m, m, 6);
        check_some(&kernels, 1 + m % 5, m, 6);
    }
    for m in 1..=3 {
        check_some(&kernels, 255, m, 40);
        check_some(&kernels, 64, m, 40);
        check_some(&kernels, 65, m, 40);
    }
}
