//! The web console's files, as they are served: what `script/console build` left in `console/dist`.
//!
//! Purpose: the daemon holds the console itself, and its build needs neither npm nor a file system
//! to find it in. What HTTP says of a file is the matter of whoever serves it.
//!
//! Invariants
//! - A path leads to a file of the table or to nothing: no path is put together from a request.
//! - The name of a file below `/assets/` has the hash of its content: what it holds never changes.

#[path = "../../../console/dist/index.rs"]
mod index;

/// A file of the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct File {
    /// Where it is served, such as `/assets/index-1a2b3c4d.js`; that of the page is `/`.
    pub path: &'static str,
    /// Its type (RFC 9110, section 8.3).
    pub kind: &'static str,
    /// The beginning of the SHA-256 of what it holds, in hexadecimal digits.
    pub hash: &'static str,
    /// What it holds.
    pub plain: &'static [u8],
    /// The same by gzip (RFC 1952).
    pub gzip: &'static [u8],
}

impl File {
    /// Whether its name tells what it holds, so that it can be kept for ever.
    pub fn is_lasting(&self) -> bool {
        self.path.starts_with("/assets/")
    }
}

/// The pages besides the first: each is the same file, and the script in it shows the page.
const PAGES: &[&str] = &[
    "/shelf",
    "/drives",
    "/arrays",
    "/volumes",
    "/exports",
    "/shares",
    "/ports",
    "/jobs",
    "/alerts",
    "/events",
    "/audit",
    "/accounts",
];

/// The pages of one thing each: an identifier follows.
const PAGES_OF: &[&str] = &["/drives/", "/arrays/"];

/// What is served at a path, if anything is.
pub fn find(path: &str) -> Option<&'static File> {
    let path = if is_page(path) { "/" } else { path };
    index::FILES.iter().find(|file| file.path == path)
}

/// All files.
pub const fn all() -> &'static [File] {
    index::FILES
}

fn is_page(path: &str) -> bool {
    let is_of = |start: &&str| {
        path.strip_prefix(*start).is_some_and(|id| !id.is_empty() && !id.contains('/'))
    };
    PAGES.contains(&path) || PAGES_OF.iter().any(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_files_are_found_and_nothing_else() {
        let page = find("/").expect("the page");
        assert!(page.kind.starts_with("text/html") && !page.is_lasting());
        for path in PAGES.iter().copied().chain(["/drives/nvme-1", "/arrays/5d41%402a"]) {
            assert_eq!(find(path), Some(page), "{path}");
        }
        for file in all() {
            assert_eq!(find(file.path), Some(file));
        }
        for path in [
            "",
            "/shelf/",
            "/shelf/1",
            "/drives/",
            "/drives/a/b",
            "/volumes/1",
            "/index.html",
            "/index.rs",
            "/assets/",
            "/assets/../index.html",
            "/../index.rs",
            "//",
            "/redfish",
        ] {
            assert_eq!(find(path), None, "{path}");
        }
    }

    /// What the page asks for is there, and comes from nowhere else.
    #[test]
    fn the_page_names_its_files_only() {
        let page = find("/").expect("the page");
        let text = core::str::from_utf8(page.plain).expect("a text");
        let named = text.split('"').filter(|part| part.starts_with("/assets/"));
        let named: Vec<&str> = named.collect();
        assert!(named.len() >= 2, "{named:?}");
        for path in named {
            assert!(find(path).is_some(), "{path}");
        }
        assert!(!text.contains("<script>") && !text.contains("style=") && !text.contains("//"));
    }

    /// The console stays small: 300 KiB for all of it.
    #[test]
    fn all_files_are_small() {
        let bytes: usize = all().iter().map(|file| file.gzip.len()).sum();
        assert!(bytes <= 300 << 10, "{bytes}");
        for file in all() {
            assert!(file.gzip.starts_with(&[0x1f, 0x8b, 8]), "{}", file.path);
            assert!(!file.plain.is_empty() && file.hash.len() == 16, "{}", file.path);
        }
    }
}
