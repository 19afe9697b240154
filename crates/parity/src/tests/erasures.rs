//! Every kernel over every erasure pattern, at odd lengths and offsets.
//!
//! Purpose: recovery is right for any loss a code promises to survive, whatever is wanted of it.
//! Invariants: the number of patterns is asserted, so that none is left out in silence; where
//! outputs lie is chosen, and whether results were stored past the caches is asserted.

use super::arena::Arena;
use super::{Random, each_kernel, streams, stripe};
use crate::kernel::Kernel;
use crate::{Code, Stores, recover};

/// Four vectors of 64 bytes, one more, a word and seven bytes: every step of every kernel.
const LONG: usize = 256 + 64 + 8 + 7;
/// Lengths that end in every step width, for what cannot have the long one every time.
const SHORT: [usize; 8] = [1, 67, 8, 33, 15, 64, 259, 31];
/// Most bytes before the first multiple of 64, where streaming begins.
const HEAD: usize = 63;
/// Most bytes of a pattern, with the largest offset.
const ROOM: usize = LONG + HEAD + 61;
/// The kernel that has every pattern even where kernels are emulated.
const EMULATED: &str = "neon";

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
    outputs: Arena,
    turn: usize,
}

impl Bench {
    fn new(random: &mut Random, k: usize, m: usize) -> Bench {
        let strips = stripe(random, k, m, ROOM);
        let outputs = Arena::new(m, LONG + HEAD);
        Bench { code: Code::new(k, m).unwrap(), strips, outputs, turn: 0 }
    }

    /// Recovers what is wanted of `missing`: all of it, or all but one.
    fn check(&mut self, kernels: &[Kernel], missing: &[usize]) -> Result<(), String> {
        self.turn += 1;
        let mut wanted = missing.to_vec();
        if self.turn % 3 == 0 && missing.len() > 1 {
            wanted.remove(self.turn / 3 % missing.len());
        }
        let stores = if self.turn % 2 == 0 { Stores::Cached } else { Stores::Streaming };
        let skew = self.turn * 5 % 64;
        // One of four has outputs that lie differently, and cannot stream.
        let apart = usize::from(self.turn / 2 % 4 == 0);
        let skews: Vec<_> = (0..wanted.len()).map(|i| (skew + i * apart) % 64).collect();
        for kernel in sample(kernels, self.turn) {
            for len in lengths(kernel, self.turn, skew) {
                self.recover(kernel, missing, &wanted, (len, &skews, stores)).map_err(|what| {
                    format!("{}, {:?} with {missing:?} missing: {what}", kernel.name(), self.code)
                })?;
            }
        }
        Ok(())
    }

    /// Recovers and compares.
    fn recover(
        &mut self,
        kernel: &Kernel,
        missing: &[usize],
        wanted: &[usize],
        (len, skews, stores): (usize, &[usize], Stores),
    ) -> Result<(), String> {
        let at = self.turn * 7 % 61;
        let mut left: Vec<_> = self.strips.iter().map(|s| Some(&s[at..at + len])).collect();
        missing.iter().for_each(|&i| left[i] = None);
        let mut outputs = self.outputs.place(len, skews);
        let recover = || recover::recover(kernel, self.code, &left, wanted, &mut outputs, stores);
        streams::checked(kernel, stores, len, skews, recover)?.unwrap();
        for (&index, found) in wanted.iter().zip(self.outputs.finished()) {
            if *found != self.strips[index][at..at + len] {
                return Err(format!(
                    "strip {index} is wrong, {len} bytes at {skews:?}, {stores:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Whether kernels are emulated, which takes ten times as long.
fn emulated() -> bool {
    std::env::var_os("PALISADE_EMULATOR").is_some()
}

/// All kernels; where they are emulated, NEON's and one of the others in turn.
fn sample(kernels: &[Kernel], turn: usize) -> impl Iterator<Item = &Kernel> {
    let others = kernels.iter().filter(|kernel| kernel.name() != EMULATED).count();
    let mut other = 0;
    kernels.iter().filter(move |kernel| {
        if !emulated() || kernel.name() == EMULATED {
            return true;
        }
        other += 1;
        other - 1 == turn / 3 % others
    })
}

/// The lengths that `kernel` has in this turn: the long one, from the first multiple of 64 on
/// where outputs begin at `skew`; on the model, where a byte takes a thousand times as long, a
/// short one, and the long one in one of 16 turns.
fn lengths(kernel: &Kernel, turn: usize, skew: usize) -> impl Iterator<Item = usize> {
    let model = kernel.name().ends_with("-model");
    let short = model.then_some(SHORT[turn % SHORT.len()]);
    let long = !model || turn / SHORT.len() % 16 == turn % 16;
    short.into_iter().chain(long.then_some(LONG + skew.wrapping_neg() % 64))
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
