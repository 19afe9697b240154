//! The files that rules look at: everything in the tree that git tracks or would track.

use super::scan;
use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

/// A text file of the tree.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the root, with `/`.
    pub path: String,
    /// Content as it is.
    pub text: String,
    /// For Rust: the content with comments, strings and characters blanked, same length and
    /// lines. Empty for other files.
    pub code: String,
    /// True if the owner may execute it.
    pub executable: bool,
}

impl File {
    /// A file from its parts.
    pub fn new(path: &str, text: &str, executable: bool) -> Self {
        let code = if path.ends_with(".rs") { scan::blank(text) } else { String::new() };
        Self { path: path.to_owned(), text: text.to_owned(), code, executable }
    }

    /// True for Rust sources.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate a file belongs to (`engine` for `crates/engine/src/lib.rs`).
    pub fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

/// Reads the tree at `root`. Files that are not UTF-8 are there, without a text.
///
/// # Errors
/// If neither git nor the file system lists the tree, or a listed file can't be read.
pub fn collect(root: &Path) -> Result<Vec<File>> {
    let mut paths = match listed_by_git(root) {
        Ok(paths) => paths,
        Err(_) => walked(root, Path::new(""))?,
    };
    paths.sort();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let full = root.join(&path);
        let Ok(meta) = std::fs::symlink_metadata(&full) else { continue };
        if !meta.is_file() {
            continue;
        }
        let text = String::from_utf8(std::fs::read(&full)?).unwrap_or_default();
        files.push(File::new(&path, &text, executable(&meta)));
    }
    Ok(files)
}

fn executable(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode() & 0o100 != 0
}

fn listed_by_git(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()?;
    if !output.status.success() {
        return Err(Error::other("git ls-files failed"));
    }
    let list = String::from_utf8(output.stdout).map_err(Error::other)?;
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// The tree without git: all but build output and git's own folder.
fn walked(root: &Path, under: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root.join(under))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = under.join(&name);
        if entry.file_type()?.is_dir() {
            if name != ".git" && path != Path::new("target") {
                paths.extend(walked(root, &path)?);
            }
        } else if let Some(path) = path.to_str() {
            paths.push(path.to_owned());
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_listing_find_this_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let walked = walked(root, Path::new("xtask")).unwrap();
        assert!(walked.contains(&"xtask/src/tidy/files.rs".to_owned()));
        let files = collect(root).unwrap();
        let this = files.iter().find(|f| f.path == "xtask/src/tidy/files.rs").unwrap();
        assert!(this.is_rust() && !this.executable && this.crate_name().is_none());
    }

    #[test]
    fn the_crate_of_a_file() {
        let file = File::new("crates/engine/src/lib.rs", "", false);
        assert_eq!(file.crate_name(), Some("engine"));
    }
}
