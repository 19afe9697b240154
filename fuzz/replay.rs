//! Replays the corpus of a fuzz target; a part of the tests of the crates that have targets.
//!
//! Purpose: what fuzzing found once stays tested where nobody fuzzes.

use std::path::{Path, PathBuf};

/// The files of a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it lies in the tree");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

/// Runs each case of a target's corpus, which has at least so many.
pub fn corpus(target: &str, least: usize, case: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = files(&corpus);
    assert!(files.len() >= least, "{} files in {}", files.len(), corpus.display());
    for file in files {
        println!("{}", file.display());
        case(&std::fs::read(&file).expect("readable"));
    }
}
