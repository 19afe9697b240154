//! The corpus of the fuzz target of sequences, and cases made at random.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

mod support;

use sim::Rng;
use std::path::Path;
use support::sequence;

#[test]
fn corpus_of_the_fuzz_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/nvme-sequence");
    let entries = std::fs::read_dir(&corpus).expect("the corpus lies in the tree");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.sort();
    assert!(files.len() >= 10, "{} files in {}", files.len(), corpus.display());
    for file in files {
        println!("{}", file.display());
        sequence::run(&std::fs::read(&file).expect("a readable file"));
    }
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
