//! A file system image made from real files of this machine.

use super::child::{self, Interrupt};
use super::error::DemoError;
use super::place::Scratch;
use super::tools;
use std::fs;
use std::path::{Path, PathBuf};

/// Where files come from, best first; what can't be read is left out.
const SOURCES: &[&str] = &["/etc", "/usr/bin", "/usr/lib", "/usr/share"];
/// Largest file taken, in bytes: many files, not a few.
const FILE_MAX: u64 = 8 << 20;
/// Most files and most bytes of them: what a slow machine copies in seconds.
const MOST: Budget = Budget { bytes: 384 << 20, files: 3000 };
/// Block of the file system, in bytes.
const BLOCK: u64 = 4096;
/// Bytes of the image for each inode.
const INODE_RATIO: u64 = 8192;

/// What may still be taken.
struct Budget {
    bytes: u64,
    files: u64,
}

/// Makes an ext4 image of `bytes` at `path`, up to 70 % full, and checks it. Returns how many files
/// are in it.
///
/// # Errors
/// If files can't be copied, or mke2fs or e2fsck fails.
pub fn make(path: &Path, bytes: u64, interrupt: &Interrupt) -> Result<u64, DemoError> {
    let staging = Scratch::new()?;
    let all = MOST.files.min(bytes / INODE_RATIO * 3 / 4);
    let mut budget = Budget { bytes: MOST.bytes.min(bytes / 100 * 70), files: all };
    for source in SOURCES {
        let to = staging.path().join(source.trim_start_matches('/').replace('/', "-"));
        gather(Path::new(source), &to, &mut budget, interrupt)?;
    }
    let mut command = tools::program("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-m", "0", "-L", "palisade-demo"]);
    command.args(["-b", &BLOCK.to_string(), "-i", &INODE_RATIO.to_string(), "-d"]);
    command.arg(staging.path()).arg(path).arg((bytes / BLOCK).to_string());
    child::run(&mut command, interrupt)?;
    check(path, interrupt)?;
    Ok(all - budget.files)
}

/// Checks a file system image without changing it.
///
/// # Errors
/// If e2fsck finds anything.
pub fn check(path: &Path, interrupt: &Interrupt) -> Result<(), DemoError> {
    child::run(tools::program("e2fsck").arg("-fn").arg(path), interrupt).map(|_| ())
}

/// Copies regular files below `from` to `to` as long as the budget lasts, in order of names.
fn gather(
    from: &Path,
    to: &Path,
    budget: &mut Budget,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    interrupt.check()?;
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    if budget.files == 0 || paths.is_empty() || !charge(budget, 0) {
        return Ok(());
    }
    fs::create_dir_all(to).map_err(DemoError::file(to))?;
    for path in paths {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let Some(name) = path.file_name() else { continue };
        if about.is_dir() {
            gather(&path, &to.join(name), budget, interrupt)?;
        } else if about.is_file() && about.len() <= FILE_MAX && charge(budget, about.len()) {
            // Files that this user may not read are no loss.
            let _ = fs::copy(&path, to.join(name));
        }
    }
    Ok(())
}

/// Takes a file or folder of `bytes` from the budget; false if it does not fit.
fn charge(budget: &mut Budget, bytes: u64) -> bool {
    let cost = bytes.max(1).next_multiple_of(BLOCK);
    if budget.files == 0 || budget.bytes < cost {
        return false;
    }
    budget.bytes -= cost;
    budget.files -= 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let from = dir.path().join("from");
        fs::create_dir_all(from.join("inner")).expect("made");
        for name in ["a", "b", "inner/c"] {
            fs::write(from.join(name), [7; 5000]).expect("written");
        }
        // Two folders and two files of two blocks each.
        let mut budget = Budget { bytes: 6 * BLOCK, files: 9 };
        let to = dir.path().join("to");
        gather(&from, &to, &mut budget, &Interrupt::default()).expect("gathered");
        assert_eq!(fs::read(to.join("a")).expect("copied"), [7; 5000]);
        assert!(to.join("b").exists() && !to.join("inner/c").exists());
        assert_eq!((budget.bytes, budget.files), (0, 5));
    }
}
