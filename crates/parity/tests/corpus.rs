//! The fuzz target's corpus, and cases made at random, on the kernel in use.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

#[path = "support/case.rs"]
mod case;

use std::path::Path;

#[test]
fn corpus_of_the_fuzz_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parity");
    let entries = std::fs::read_dir(&corpus).expect("the corpus lies in the tree");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{} files in {}", files.len(), corpus.display());
    for file in files {
        println!("{}", file.display());
        case::run(&std::fs::read(&file).expect("a readable file"));
    }
}

#[test]
fn cases_made_at_random() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..400 {
        let input: Vec<u8> = (0..128)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        case::run(&input);
    }
}
