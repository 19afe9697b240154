//! Reading below one root: bounded, and never outside.
//!
//! Purpose: [`Dir`] is a directory of the kernel's tree. Its methods give what is there, and `None`
//! for what can't be read.
//!
//! Invariants
//! - A [`Dir`]'s path below the root has no symbolic link: a link is followed by us, component by
//!   component, and one that leads out of the root leads nowhere.
//! - No more than [`MOST`] bytes of a file, and [`ENTRIES`] names of a directory, are read.

use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// The most bytes of a file that are read: a longer one says nothing.
const MOST: u64 = 64 << 10;
/// The most names of a directory that are read.
const ENTRIES: usize = 64 << 10;
/// How many links may be followed on one way, as the kernel allows.
const LINKS: usize = 40;

/// A directory below the root.
#[derive(Clone, Debug)]
pub(super) struct Dir<'a> {
    root: &'a Path,
    /// Below the root, without links.
    path: PathBuf,
}

impl<'a> Dir<'a> {
    /// The root itself.
    pub(super) fn root(root: &'a Path) -> Self {
        Self { root, path: PathBuf::new() }
    }

    /// Where it is below the root.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is.
    pub(super) fn whole_path(&self) -> PathBuf {
        self.root.join(&self.path)
    }

    /// Its own name.
    pub(super) fn name(&self) -> &str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// The directory that it is in.
    pub(super) fn parent(&self) -> Option<Self> {
        let path = self.path.parent()?.to_owned();
        Some(Self { root: self.root, path })
    }

    /// What is at `name` below it, which may lead through links.
    pub(super) fn at(&self, name: &str) -> Option<Self> {
        let path = resolve(self.root, &self.path, Path::new(name))?;
        Some(Self { root: self.root, path })
    }

    /// Whether something is at `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.at(name).is_some()
    }

    /// The name of what the link `name` in it leads to, such as that of a subsystem, whether or not
    /// that can be read.
    pub(super) fn linked(&self, name: &str) -> Option<String> {
        let target = std::fs::read_link(self.whole_path().join(name)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// The file at `name` as one line with single spaces; `None` for an empty one.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let text = self.at(name)?.read()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(words.join(" ")).filter(|text| !text.is_empty())
    }

    /// The number in the file at `name`.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// What is in it, by name.
    pub(super) fn entries(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.whole_path()) else { return Vec::new() };
        let names =
            entries.take(ENTRIES).flatten().filter_map(|e| e.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The directories that its entries are, or lead to.
    pub(super) fn children(&self) -> Vec<(String, Self)> {
        let entries = self.entries().into_iter();
        entries.filter_map(|name| self.at(&name).map(|dir| (name, dir))).collect()
    }

    fn read(&self) -> Option<String> {
        // Something other than a file, such as a pipe, must not make us wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.whole_path(), flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        File::from(file).take(MOST + 1).read_to_end(&mut bytes).ok()?;
        match bytes.len() as u64 > MOST {
            true => None,
            false => String::from_utf8(bytes).ok(),
        }
    }
}

/// Puts the parts of a path before those that are still to go.
fn put_before(rest: &mut VecDeque<OsString>, path: &Path) {
    for part in path.components().rev() {
        match part {
            Component::Normal(name) => rest.push_front(name.to_owned()),
            Component::ParentDir => rest.push_front("..".into()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
}

/// Where `path` leads to from `base`; both, and what is given, are below the root.
fn resolve(root: &Path, base: &Path, path: &Path) -> Option<PathBuf> {
    let (mut at, mut links, mut rest) = (base.to_owned(), 0, VecDeque::new());
    put_before(&mut rest, path);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            if !at.pop() {
                return None;
            }
            continue;
        }
        at.push(part);
        let target = match std::fs::read_link(root.join(&at)) {
            Ok(target) => target,
            // No link.
            Err(error) if error.kind() == ErrorKind::InvalidInput => continue,
            Err(_) => return None,
        };
        links += 1;
        if links > LINKS {
            return None;
        }
        if target.is_absolute() {
            at = PathBuf::new();
            put_before(&mut rest, target.strip_prefix(root).ok()?);
        } else {
            at.pop();
            put_before(&mut rest, &target);
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("sys");
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::write(root.join("a/b/text"), " two \t words\n").expect("written");
        std::fs::write(dir.path().join("outside"), "secret\n").expect("written");
        (dir, root)
    }

    #[test]
    fn links_are_followed_below_the_root() {
        let (_dir, root) = tree();
        symlink("a/b", root.join("relative")).expect("linked");
        symlink("../../relative", root.join("a/b/back")).expect("linked");
        symlink(root.join("a"), root.join("absolute")).expect("linked");
        let top = Dir::root(&root);
        for way in ["a/b", "relative", "a/b/back", "absolute/b", "a/../a/./b", "a/b/back/back"] {
            let dir = top.at(way).unwrap_or_else(|| panic!("{way}"));
            assert_eq!(dir.path(), Path::new("a/b"), "{way}");
            assert_eq!(dir.text("text").as_deref(), Some("two words"), "{way}");
        }
        assert_eq!(top.linked("relative").as_deref(), Some("b"));
        assert_eq!(top.linked("a"), None, "no link");
    }

    #[test]
    fn a_link_that_leads_out_leads_nowhere() {
        let (dir, root) = tree();
        let outside = dir.path().join("outside");
        symlink("../outside", root.join("up")).expect("linked");
        symlink("../../../outside", root.join("a/b/up")).expect("linked");
        symlink(&outside, root.join("absolute")).expect("linked");
        symlink("../sys", root.join("home")).expect("linked");
        symlink("turn", root.join("turn")).expect("linked");
        symlink("nothing", root.join("broken")).expect("linked");
        let top = Dir::root(&root);
        for way in [
            "up",
            "a/b/up",
            "absolute",
            "../outside",
            "../a/b/text",
            "home/a",
            "turn",
            "broken",
            "x",
        ] {
            assert_eq!(top.text(way), None, "{way}");
            assert!(!top.has(way), "{way}");
        }
        assert!(outside.exists(), "it is there, and was not read");
    }

    #[test]
    fn what_is_too_long_or_no_text_says_nothing() {
        let (_dir, root) = tree();
        let most = usize::try_from(MOST).expect("small");
        for (name, bytes, length) in [
            ("long", vec![b'x'; most + 1], None),
            ("fits", vec![b'x'; most], Some(most)),
            ("empty", b" \n".to_vec(), None),
            ("bytes", vec![0xff, 0xfe], None),
        ] {
            std::fs::write(root.join(name), bytes).expect("written");
            assert_eq!(Dir::root(&root).text(name).map(|text| text.len()), length, "{name}");
        }
        assert_eq!(Dir::root(&root).text("a"), None, "a directory");
        let pipe = root.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .expect("made");
        assert_eq!(Dir::root(&root).text("pipe"), None, "nobody is waited for");
    }
}
