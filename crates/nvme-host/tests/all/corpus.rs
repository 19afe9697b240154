//! The corpus of the fuzz target of what controllers send, and cases made at random.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "../support/sequence.rs"]
mod sequence;

use sim::Rng;

#[test]
fn corpus_of_the_fuzz_target() {
    replay::corpus("nvme-host-sequence", 10, sequence::run);
}

#[test]
fn cases_made_at_random() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut input = vec![0; rng.between(1, 400) as usize];
        rng.fill(&mut input);
        println!("seed {seed}");
        sequence::run(&input);
    }
}
