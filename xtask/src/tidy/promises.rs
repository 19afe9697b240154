//! The page of tests behind each promise, made of docs/promises.toml.
//!
//! Invariants: every promise of docs/promises.md has tests, every test exists, and the page is
//! what `cargo xtask tidy --write` would write.

use super::Finding;
use super::docs::{has_test, named_word};
use super::files::File;

/// Which tests hold which promise.
const LISTS: &str = "docs/promises.toml";
/// The table of promises.
const TABLE: &str = "docs/promises.md";
/// The page that is written.
const PAGE: &str = "docs/promises-tests.md";

/// The tests of one promise.
struct List<'a> {
    promise: &'a str,
    line: usize,
    /// Line and name of each: a test, or a named word of the trials.
    tests: Vec<(usize, &'a str)>,
}

fn file<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    files.iter().find(|file| file.path == path)
}

/// The lists `P1 = [`, a name in quotes a line, `]`.
fn lists(text: &str) -> Vec<List<'_>> {
    let mut found: Vec<List<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        if let Some((promise, _)) = line.split_once(" = [") {
            found.push(List { promise, line: index + 1, tests: Vec::new() });
        } else if let (Some(name), Some(list)) = (line.split('"').nth(1), found.last_mut()) {
            list.tests.push((index + 1, name));
        }
    }
    found
}

/// Number, title and line of each promise of the table: `| P1 | **Title.** …`.
fn promises(text: &str) -> Vec<(&str, &str, usize)> {
    let row = |line: &'_ str| -> Option<(usize, usize, usize)> {
        let end = 3 + line.strip_prefix("| P")?.find(' ')?;
        let from = line.find("**")? + 2;
        Some((end, from, from + line[from..].find("**")?))
    };
    let lines = text.lines().enumerate();
    let found = lines.filter_map(|(index, line)| {
        let (end, from, to) = row(line)?;
        Some((&line[2..end], line[from..to].trim_end_matches('.'), index + 1))
    });
    found.collect()
}

/// The file that has a test: the one with a function of that name before one that a macro makes.
fn home<'a>(files: &'a [File], name: &str) -> Option<&'a File> {
    let function = format!("fn {name}(");
    let named = |f: &&File| f.is_rust() && has_test(&f.code, name) && f.code.contains(&function);
    let made = |f: &&File| f.is_rust() && has_test(&f.code, name);
    let python =
        |f: &&File| f.path.starts_with("script/") && f.text.contains(&format!("def {name}("));
    let mut all = files.iter();
    all.clone().find(named).or_else(|| all.clone().find(made)).or_else(|| all.find(python))
}

/// The page; `None` without its sources.
fn page(files: &[File]) -> Option<String> {
    let (lists_of, table) = (file(files, LISTS)?, file(files, TABLE)?);
    let mut text = String::from(
        "# The tests behind each promise\n\n\
         Written by `cargo xtask tidy --write` from [promises.toml](promises.toml), not by hand.\n\
         The promises are in [promises.md](promises.md). `cargo test NAME` runs `test:NAME`;\n\
         `cargo xtask sim --named NAME` runs `seed:NAME`, a named word of the trials.\n",
    );
    let lists = lists(&lists_of.text);
    for (promise, title, _) in promises(&table.text) {
        let tests = lists.iter().filter(|list| list.promise == promise).flat_map(|l| &l.tests);
        text += &format!("\n## {promise}: {title}\n\n| Test | File |\n|---|---|\n");
        for (_, name) in tests {
            let test = home(files, name).map(|home| ("test", home));
            let word = || named_word(files, name).map(|home| ("seed", home));
            if let Some((kind, home)) = test.or_else(word) {
                let path = &home.path;
                text += &format!("| `{kind}:{name}` | [{path}](../{path}) |\n");
            }
        }
    }
    Some(text)
}

/// Pages that are written, with their text.
pub fn written(files: &[File]) -> Vec<(&'static str, String)> {
    page(files).map(|text| (PAGE, text)).into_iter().collect()
}

/// Every promise has tests that exist, and the page says which.
pub fn tests_of_promises(files: &[File]) -> Vec<Finding> {
    let (Some(lists_of), Some(table)) = (file(files, LISTS), file(files, TABLE)) else {
        return Vec::new();
    };
    let (lists, promises) = (lists(&lists_of.text), promises(&table.text));
    let mut findings = Vec::new();
    for List { promise, line, tests } in &lists {
        if !promises.iter().any(|(name, ..)| name == promise) {
            let message = format!("no promise `{promise}` in {TABLE}");
            findings.push(Finding::new(lists_of, *line, message));
        }
        let is_gone = |name| home(files, name).or_else(|| named_word(files, name)).is_none();
        for (line, name) in tests.iter().filter(|(_, name)| is_gone(name)) {
            let message = format!("no test `{name}`: name the test that exists, or write it");
            findings.push(Finding::new(lists_of, *line, message));
        }
    }
    for (promise, _, line) in promises {
        if !lists.iter().any(|list| list.promise == promise && !list.tests.is_empty()) {
            let message = format!("`{promise}` has no test in {LISTS}: a promise is tested");
            findings.push(Finding::new(table, line, message));
        }
    }
    if let Some(text) = page(files)
        && file(files, PAGE).is_none_or(|page| page.text != text)
    {
        let message = "not what its sources say: run `cargo xtask tidy --write`".to_owned();
        findings.push(Finding { path: PAGE.to_owned(), line: 1, message });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const LISTED: &str = "# Tests.\n\
        P1 = [\n    \"one\",\n    \"gone\",\n    \"word\",\n]\n\
        P3 = [\n    \"two\",\n]\n";
    const PROMISED: &str =
        "| | Promise |\n|---|---|\n| P1 | **First.** Yes |\n| P2 | **Second.** |\n";

    fn tree(page: &str) -> [File; 5] {
        let tests = "#[test]\nfn one() {}\n#[test]\nfn two() {}\n";
        [
            File::new("crates/a/src/lib.rs", tests, false),
            File::new("crates/trials/src/named.rs", "word(\"word\", Raid5)", false),
            File::new(LISTS, LISTED, false),
            File::new(TABLE, PROMISED, false),
            File::new(PAGE, page, false),
        ]
    }

    #[test]
    fn promises_without_tests_and_tests_that_are_gone_are_found() {
        let right = page(&tree("")).unwrap();
        assert!(right.contains("## P1: First\n"), "{right}");
        assert!(right.contains("| `test:one` | [crates/a/src/lib.rs](../crates/a/src/lib.rs) |"));
        assert!(right.contains("| `seed:word` | [crates/trials/src/named.rs]"), "{right}");
        let places = ["docs/promises.toml:4", "docs/promises.toml:7", "docs/promises.md:4"];
        expect(tests_of_promises, &tree(&right), &places);
    }

    #[test]
    fn a_page_that_differs_is_found() {
        let old = page(&tree("")).unwrap().replace("First", "Older");
        let found = tests_of_promises(&tree(&old));
        assert_eq!(found.last().unwrap().path, PAGE);
        assert_eq!(found.len(), 4);
    }
}
