//! The house rules that a program can check.
//!
//! Each rule is a function from the files of the tree to findings; a finding says where it is
//! and what to do about it. Rules look at text, not at types: they are quick, they err on the
//! side of silence, and each has a test on planted bad input that it must report.

pub mod circles;
pub mod crates;
pub mod docs;
pub mod files;
pub mod glossary;
pub mod json;
pub mod modules;
pub mod promises;
pub mod records;
pub mod scan;
pub mod scripts;
pub mod size;
pub mod words;

use files::File;
use std::fmt;

/// One broken rule at one place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// Path from the root of the tree.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    /// A finding in `file` at the 1-based `line`.
    pub fn new(file: &File, line: usize, message: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A rule: looks at all files, returns what is wrong.
type Rule = fn(&[File]) -> Vec<Finding>;

const RULES: [Rule; 29] = [
    size::file_length,
    size::line_width,
    size::function_length,
    modules::purpose,
    modules::reachable,
    modules::unsafe_address,
    modules::purity,
    words::vocabulary,
    words::unfinished,
    words::machine_paths,
    crates::direction,
    crates::outside,
    crates::fuzz_lock,
    crates::decoder,
    crates::conditions,
    crates::mutants,
    crates::unguarded,
    crates::printing,
    circles::inside,
    docs::crates_are_mentioned,
    docs::invariants_name_their_check,
    docs::named_tests_exist,
    docs::links_lead_somewhere,
    docs::mutants_exist,
    docs::quoted_paths_exist,
    glossary::modules_have_a_row,
    promises::tests_of_promises,
    scripts::runnable,
    records::readable,
];

/// Every finding of every rule, in order of place.
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(files)).collect();
    findings.sort();
    findings
}

/// Asserts that `rule` reports exactly the given `path:line` places; for tests of rules.
#[cfg(test)]
fn expect(rule: Rule, files: &[File], places: &[&str]) {
    let found: Vec<String> = rule(files).iter().map(|f| format!("{}:{}", f.path, f.line)).collect();
    assert_eq!(found, places, "findings: {:#?}", rule(files));
}
