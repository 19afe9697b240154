//! Words: one vocabulary in names, nothing unfinished, nothing of the machine it was written on.

use super::Finding;
use super::files::File;
use super::scan::{line_of, words};

/// Words that must not be part of a name, and the word of docs/glossary.md to use.
const BANNED: &[(&str, &str)] = &[
    ("chunk", "a drive's part of a stripe is a `strip`; a byte range of a stripe is a `slice`"),
    ("member", "what stores strips is a `drive`, its position a `slot`"),
    ("lun", "what hosts see is a `volume`, served as an `export`"),
    ("disk", "what stores strips is a `drive`"),
];

/// Names that an outside protocol or tool gave: path (or the start of one), word, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/nbd/", "chunk", "NBD's structured replies are made of chunks"),
    ("crates/redfish/", "member", "Redfish's collections have members"),
    ("crates/palisade/tests/all/redfish.rs", "member", "Redfish's collections have members"),
];

/// Names of the standard library that hold a banned word.
const STANDARD: &[&str] = &[
    "array_chunks",
    "as_chunks",
    "as_chunks_mut",
    "as_rchunks",
    "chunk_by",
    "chunk_by_mut",
    "chunks",
    "chunks_exact",
    "chunks_exact_mut",
    "chunks_mut",
    "first_chunk",
    "first_chunk_mut",
    "last_chunk",
    "last_chunk_mut",
    "rchunks",
    "rchunks_exact",
    "rchunks_mut",
    "split_first_chunk",
    "split_first_chunk_mut",
    "split_last_chunk",
    "split_last_chunk_mut",
    "Chunks",
    "ChunksExact",
    "ChunksExactMut",
    "ChunksMut",
];

/// Names in Rust use the glossary's words.
pub fn vocabulary(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for (at, name) in words(&file.code).filter(|(_, name)| !STANDARD.contains(name)) {
            let Some((word, instead)) = banned(name) else { continue };
            if EXCEPTIONS.iter().any(|(path, w, _)| *w == word && file.path.starts_with(path)) {
                continue;
            }
            let message = format!(
                "`{name}` holds `{word}`: {instead} (an outside protocol's word goes into \
                 EXCEPTIONS in xtask/src/tidy/words.rs)"
            );
            findings.push(Finding::new(file, line_of(&file.code, at), message));
        }
    }
    findings
}

/// The banned word in a name, if there is one.
fn banned(name: &str) -> Option<(&'static str, &'static str)> {
    let parts = parts(name);
    BANNED.iter().copied().find(|(word, _)| {
        parts.iter().any(|part| part == word || part.strip_suffix('s') == Some(word))
    })
}

/// The lower-case words a name is made of: `ReplyChunk`, `reply_chunk` and `REPLY_CHUNK` are two.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (was_lower && c.is_uppercase()) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if c != '_' {
            parts.last_mut().expect("never empty").extend(c.to_lowercase());
        }
    }
    parts
}

/// Marks of unfinished work. Cut in two so that this file does not hold them.
const UNFINISHED: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("XX", "X:")];
/// Macros of unfinished work.
const UNFINISHED_MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// The attribute that switches a test off.
const UNFINISHED_ATTRIBUTE: &str = "ignore";

/// Nothing unfinished lands.
pub fn unfinished(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            for (front, back) in UNFINISHED {
                let mark = format!("{front}{back}");
                if super::scan::places(line, &mark).next().is_some() {
                    let message =
                        format!("`{mark}`: finish it, or open an issue and drop the mark");
                    findings.push(Finding::new(file, index + 1, message));
                }
            }
        }
        for (at, name) in words(&file.code) {
            if UNFINISHED_MACROS.contains(&name) && file.code[at + name.len()..].starts_with('!') {
                let message = format!("`{name}!`: finish it before it lands");
                findings.push(Finding::new(file, line_of(&file.code, at), message));
            }
            if name == UNFINISHED_ATTRIBUTE && file.code[..at].ends_with("#[") {
                let message =
                    "a test switched off: make it run, or let it skip itself with a reason";
                findings.push(Finding::new(file, line_of(&file.code, at), message));
            }
        }
    }
    findings
}

/// Paths of one developer's machine. Cut in two so that this file does not hold them.
const MACHINE: &[(&str, &str)] =
    &[("/wo", "rk/"), ("/fa", "rm/"), ("../sha", "red"), ("../.lib", "rary")];

/// Files speak of this tree and of any machine, never of one.
pub fn machine_paths(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| !f.path.ends_with(".lock")) {
        for (index, line) in file.text.lines().enumerate() {
            for (front, back) in MACHINE {
                let path = format!("{front}{back}");
                if line.contains(&path) {
                    let message =
                        format!("`{path}` is a path of one machine: name a place in this tree");
                    findings.push(Finding::new(file, index + 1, message));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn names_are_cut_into_words() {
        assert_eq!(parts("ReplyChunk"), ["reply", "chunk"]);
        assert_eq!(parts("REPLY_CHUNKS"), ["reply", "chunks"]);
        assert_eq!(parts("diskless2Go"), ["diskless2", "go"]);
    }

    #[test]
    fn foreign_words_are_found() {
        let text = "//! member, in words\nfn member_count() {}\nstruct DiskId;\nlet a = \"lun\";\n\
                    let lun = 1;\nfor c in x.chunks(3) {}\nconst MY_CHUNKS: u8 = 1;\n\
                    let remember = diskette;\n";
        let file = File::new("crates/engine/src/a.rs", text, false);
        let places = [2, 3, 5, 7].map(|line| format!("crates/engine/src/a.rs:{line}"));
        expect(vocabulary, &[file], &places.each_ref().map(String::as_str));
    }

    #[test]
    fn a_protocols_own_words_are_allowed() {
        let text = "struct Chunk;\nstruct Disk;\n";
        let file = File::new("crates/nbd/src/a.rs", text, false);
        expect(vocabulary, &[file], &["crates/nbd/src/a.rs:2"]);
    }

    #[test]
    fn unfinished_work_is_found() {
        let mark = |index: usize| format!("{}{}", UNFINISHED[index].0, UNFINISHED[index].1);
        let text = format!(
            "// {} later\nfn f() {{ {}!() }}\nlet todo = 1;\n#[{}]\n",
            mark(0),
            UNFINISHED_MACROS[0],
            UNFINISHED_ATTRIBUTE
        );
        let files = [
            File::new("a.rs", &text, false),
            File::new("script/b", &format!("#!/bin/sh\n# {}\n", mark(1)), true),
        ];
        expect(unfinished, &files, &["a.rs:1", "a.rs:2", "a.rs:4", "script/b:2"]);
    }

    #[test]
    fn machine_paths_are_found() {
        for (front, back) in MACHINE {
            let files = [File::new("docs/a.md", &format!("x\nsee {front}{back}y\n"), false)];
            expect(machine_paths, &files, &["docs/a.md:2"]);
        }
    }
}
