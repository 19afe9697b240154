//! Paths with `*` (any run of characters) and `?` (any one) within a component.
//!
//! Invariant: a path without either names itself, whether it exists or not; one with them names
//! what exists, sorted. A leading dot must be matched by a dot.

#![allow(clippy::indexing_slicing, reason = "both places are held against their lengths")]

use std::path::{Component, Path, PathBuf};

/// The paths that a pattern names.
pub fn expand(pattern: &str) -> Vec<PathBuf> {
    if !has_wildcard(pattern) {
        return vec![PathBuf::from(pattern)];
    }
    let mut found = vec![PathBuf::new()];
    for component in Path::new(pattern).components() {
        found = match component {
            Component::Normal(name) if has_wildcard(&name.to_string_lossy()) => {
                found.iter().flat_map(|dir| inside(dir, &name.to_string_lossy())).collect()
            }
            plain => found.into_iter().map(|dir| dir.join(plain)).collect(),
        };
    }
    found.retain(|path| path.exists());
    found.sort();
    found
}

/// Whether a pattern names this path, whether or not anything is there.
pub fn names(pattern: &str, path: &Path) -> bool {
    let mut own = Path::new(pattern).components();
    let mut other = path.components();
    loop {
        match (own.next(), other.next()) {
            (None, None) => return true,
            (Some(Component::Normal(pattern)), Some(Component::Normal(name)))
                if matches(&pattern.to_string_lossy(), &name.to_string_lossy()) => {}
            (Some(one), Some(two)) if one == two => {}
            _ => return false,
        }
    }
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

fn inside(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let listed = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| matches(pattern, name)).map(|name| dir.join(name)).collect()
}

/// Whether `name` is one that `pattern` means.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last star and where its match ends for now.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, end)) = star else { return false };
                star = Some((at, end + 1));
                p = at + 1;
                n = end + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("*", "a", true),
            ("*", ".a", false),
            (".*", ".a", true),
            ("d?.img", "d1.img", true),
            ("d?.img", "d12.img", false),
            ("d*.img", "d12.img", true),
            ("d*.img", "d.img", true),
            ("*a*b", "xaab", true),
            ("*a*b", "xaabc", false),
            ("nvme?n*", "nvme0n1", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_path_is_named_whether_or_not_it_is_there() {
        for (pattern, path, expected) in [
            ("/dev/nvme0n1", "/dev/nvme0n1", true),
            ("/dev/nvme*n1", "/dev/nvme12n2", false),
            ("/dev/nvme*n?", "/dev/nvme12n2", true),
            ("/dev/nvme*n?", "/dev/nvme12", false),
            ("/dev/nvme*n?", "/dev/nvme12n1p2", false),
            ("/dev/nvme*", "/dev/nvme0n1/x", false),
            ("/dev/*/x", "/dev/y", false),
            ("nvme0n1", "/nvme0n1", false),
        ] {
            assert_eq!(names(pattern, Path::new(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn expands_sorted_over_several_components() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["b/2.img", "a/1.img", "a/x.txt"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
            std::fs::write(path, "").expect("written");
        }
        let pattern = format!("{}/?/*.img", dir.path().display());
        let found = expand(&pattern);
        assert_eq!(found, [dir.path().join("a/1.img"), dir.path().join("b/2.img")]);
        assert_eq!(expand("/no/such.img"), [PathBuf::from("/no/such.img")]);
        assert!(expand("/no/such*.img").is_empty());
    }
}
