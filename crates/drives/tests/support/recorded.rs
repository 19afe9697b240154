//! Recorded trees, unpacked.

use palisade_drives::sysfs::{Sysfs, tree};

/// A recorded tree, unpacked for as long as the directory is kept.
pub fn recorded(text: &str) -> (tempfile::TempDir, Sysfs) {
    let dir = tempfile::tempdir().expect("a directory");
    tree::unpack(text, dir.path()).expect("a tree");
    let sysfs = Sysfs::new(dir.path());
    (dir, sysfs)
}
