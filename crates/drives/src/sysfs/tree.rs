//! Recorded trees: a part of some machine's `/sys` as text.
//!
//! Purpose: tests, here and in other crates, read what another machine had. `script/record-sysfs`
//! writes this form.
//!
//! A line is one of
//! - `PATH = TEXT`: a file with this text and a newline. In TEXT `\n` is a newline and `\\` a
//!   backslash.
//! - `PATH -> TARGET`: a symbolic link, with its target as the kernel gives it.
//! - `PATH/`: a directory that may be empty.
//! - empty, or begins with `#`.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

/// One line of a tree.
enum Entry<'a> {
    Text(&'a str, String),
    Link(&'a str, &'a str),
    Directory(&'a str),
}

/// The text without its escapes.
fn plain(text: &str) -> Option<String> {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let (path, entry) = if let Some((path, target)) = line.split_once(" -> ") {
        (path, Entry::Link(path, target))
    } else if let Some((path, text)) = line.split_once(" = ") {
        (path, Entry::Text(path, plain(text)? + "\n"))
    } else if let Some(path) = line.strip_suffix(" =") {
        (path, Entry::Text(path, "\n".to_owned()))
    } else {
        let path = line.strip_suffix('/')?;
        (path, Entry::Directory(path))
    };
    let mut parts = Path::new(path).components();
    let is_below = !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    is_below.then_some(entry)
}

fn make(into: &Path, entry: Entry<'_>) -> Result<()> {
    let (Entry::Text(path, _) | Entry::Link(path, _) | Entry::Directory(path)) = entry;
    let whole = into.join(path);
    if let Some(parent) = whole.parent() {
        fs::create_dir_all(parent)?;
    }
    match entry {
        Entry::Text(_, text) => fs::write(whole, text),
        Entry::Link(_, target) => symlink(target, whole),
        Entry::Directory(_) => fs::create_dir_all(whole),
    }
}

/// Makes the tree of this text below the directory `into`, which exists.
///
/// # Errors
/// The file system's, or [`ErrorKind::InvalidData`] with the number of a line that is none.
pub fn unpack(text: &str, into: &Path) -> Result<()> {
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| {
            let message = format!("line {} of the tree: {what}: {line}", number + 1);
            Error::new(ErrorKind::InvalidData, message)
        };
        let entry = entry(line).ok_or_else(|| wrong("no entry"))?;
        make(into, entry).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_made_of_its_lines() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = "# a comment\n\nclass/a -> ../devices/a\ndevices/a/text = two\\nlines \\\\\n\
                    devices/a/empty =\ndevices/b/\n";
        unpack(text, dir.path()).expect("unpacked");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("readable");
        assert_eq!(read("class/a/text"), "two\nlines \\\n");
        assert_eq!(read("devices/a/empty"), "\n");
        assert!(dir.path().join("devices/b").is_dir());
    }

    #[test]
    fn what_is_no_entry_is_refused_by_its_line() {
        for wrong in ["a", "/a = b", "../a = b", "a/../../b -> c", " = b", "a = \\x", "/"] {
            let dir = tempfile::tempdir().expect("a directory");
            let error = unpack(&format!("\n{wrong}\n"), dir.path()).expect_err(wrong);
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }
}
