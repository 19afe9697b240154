//! Documents that must agree with the tree.

use super::Finding;
use super::files::File;
use super::scan::places;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

fn page<'a>(files: &'a [File], path: &str) -> Option<&'a File> {
    files.iter().find(|file| file.path == path)
}

/// Every crate is mentioned in ARCHITECTURE.md, as `` `crates/NAME` ``.
pub fn crates_are_mentioned(files: &[File]) -> Vec<Finding> {
    let Some(architecture) = page(files, ARCHITECTURE) else { return Vec::new() };
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.path.ends_with("/Cargo.toml")) {
        let folder = file.path.trim_end_matches("/Cargo.toml");
        if !architecture.text.contains(&format!("`{folder}`")) {
            let message = format!("`{folder}` is not mentioned: add it to the code map");
            findings.push(Finding::new(architecture, 1, message));
        }
    }
    findings
}

/// Every invariant of ARCHITECTURE.md names what checks it.
pub fn invariants_name_their_check(files: &[File]) -> Vec<Finding> {
    let Some(architecture) = page(files, ARCHITECTURE) else { return Vec::new() };
    let lines: Vec<&str> = architecture.text.lines().collect();
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if !line.starts_with("- **Invariant") {
            continue;
        }
        let more = lines[index + 1..].iter().take_while(|l| l.starts_with("  "));
        let checked = std::iter::once(line).chain(more).any(|l| l.contains("*Check:*"));
        if !checked {
            let message =
                "invariant without a check: end it with `*Check:*` and what keeps it true";
            findings.push(Finding::new(architecture, index + 1, message));
        }
    }
    findings
}

/// Whether a Rust source has a test of this name: a function with the attribute, or a case that a
/// macro makes one of.
pub(super) fn has_test(code: &str, name: &str) -> bool {
    places(code, name).any(|at| {
        let Some(before) = code[..at].strip_suffix("fn ") else {
            return code.contains("macro_rules!");
        };
        let item = before.rfind(['}', ';']).map_or(0, |end| end + 1);
        before[item..].contains("#[test]")
    })
}

/// Where the trials' named words are.
const NAMED: &str = "crates/trials/src/named.rs";

/// The file of the trials that has a word of this name.
pub(super) fn named_word<'a>(files: &'a [File], name: &str) -> Option<&'a File> {
    let word = format!("\"{name}\",");
    files.iter().find(|file| file.path == NAMED && file.text.contains(&word))
}

/// Every `` `test:NAME` `` of a page is a test of a Rust source, or a function of a Python one;
/// every `` `seed:NAME` `` a named word of the trials.
pub fn named_tests_exist(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            for rest in line.split("`seed:").skip(1) {
                let name = rest.split('`').next().unwrap_or("");
                if name != "NAME" && named_word(files, name).is_none() {
                    let message = format!("no named word `{name}` in {NAMED}: name one that is");
                    findings.push(Finding::new(file, index + 1, message));
                }
            }
            for rest in line.split("`test:").skip(1) {
                let name = rest.split('`').next().unwrap_or("");
                let plain = !name.is_empty() && name.bytes().all(super::scan::is_word);
                let python = format!("def {name}(");
                let exists = || {
                    files.iter().any(|f| match f.is_rust() {
                        true => has_test(&f.code, name),
                        false => !f.path.ends_with(".md") && f.text.contains(&python),
                    })
                };
                if plain && name != "NAME" && !exists() {
                    let message =
                        format!("no test `{name}`: name the test that exists, or write it");
                    findings.push(Finding::new(file, index + 1, message));
                }
            }
        }
    }
    findings
}

/// Every relative link of a page leads to a file or folder of the tree.
pub fn links_lead_somewhere(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (index, line) in file.text.lines().enumerate() {
            for rest in line.split("](").skip(1) {
                let target = rest.split([')', '#']).next().unwrap_or("");
                let outside = target.is_empty() || target.contains(':') || target.contains(' ');
                let path = joined(folder, target);
                let inside = format!("{path}/");
                let exists = files.iter().any(|f| f.path == path || f.path.starts_with(&inside));
                if !outside && !exists {
                    let message = format!("`{target}` does not exist: mend the link");
                    findings.push(Finding::new(file, index + 1, message));
                }
            }
        }
    }
    findings
}

/// The page whose table names mutants, and where these are declared.
const TRIALS: &str = "docs/reliability.md";
const MUTANTS: [&str; 3] = [
    "crates/engine/src/mutants.rs",
    "crates/nvme-host/src/mutants.rs",
    "crates/nvme-target/src/mutants.rs",
];

/// The words of a line that stand between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Every mutant in the table of bugs that others had is declared.
pub fn mutants_exist(files: &[File]) -> Vec<Finding> {
    let Some(trials) = page(files, TRIALS) else { return Vec::new() };
    let declared = |name: &str| {
        let called = format!("= \"{name}\":");
        MUTANTS.iter().filter_map(|path| page(files, path)).any(|f| f.text.contains(&called))
    };
    let mut findings = Vec::new();
    let mut is_table = false;
    for (index, line) in trials.text.lines().enumerate() {
        is_table = line.starts_with('|') && (is_table || line.contains("| Mutants |"));
        let cell = line.split('|').nth(3).filter(|_| is_table).unwrap_or("");
        for name in quoted(cell).filter(|name| !name.contains('/') && !declared(name)) {
            let message = format!("no mutant `{name}`: name one that {} has", MUTANTS.join(" or "));
            findings.push(Finding::new(trials, index + 1, message));
        }
    }
    findings
}

/// Every path to a source, a page or a script that a page quotes as code leads to a file.
pub fn quoted_paths_exist(files: &[File]) -> Vec<Finding> {
    let is_path = |word: &str| {
        let plain = word.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
        let kind = [".rs", ".md", ".py", ".sh", ".toml"].iter().any(|end| word.ends_with(end));
        let (first, _) = word.split_once('/').unwrap_or_default();
        plain && kind && ["crates", "docs", "fuzz", "script", "xtask"].contains(&first)
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            for path in quoted(line).filter(|word| is_path(word) && page(files, word).is_none()) {
                let message = format!("`{path}` does not exist: mend the path");
                findings.push(Finding::new(file, index + 1, message));
            }
        }
    }
    findings
}

/// The path from the root of a link `target` in a page of `folder`.
fn joined(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let text =
            "[a](b.md) [c](../LICENSE#x) [d](https://e.example)\n[f](gone.md) [g](../src/)\n";
        let files = [
            File::new("docs/a.md", text, false),
            File::new("docs/b.md", "", false),
            File::new("LICENSE", "", false),
            File::new("src/x.rs", "", false),
        ];
        expect(links_lead_somewhere, &files, &["docs/a.md:2"]);
    }

    #[test]
    fn mutants_that_do_not_exist_are_found() {
        let text = "| `old` |\n\n| Row | Bug | Mutants | Tests |\n|---|---|---|---|\n\
                    | 1 | `x` | `one` `gone` | `y` |\n| 2 | b | of the target: `two` | |\n\
                    | 3 | c | none (`a/b.rs`) | |\n\n| 4 | d | `old` | |\n";
        let files = [
            File::new(TRIALS, text, false),
            File::new(MUTANTS[0], "One = \"one\": \"text\";\n", false),
            File::new(MUTANTS[1], "Two = \"two\": \"text\";\n", false),
        ];
        expect(mutants_exist, &files, &["docs/reliability.md:5"]);
    }

    #[test]
    fn quoted_paths_that_lead_nowhere_are_found() {
        let text = "`crates/a/src/lib.rs` and `crates/a/gone.rs`\n`fuzz/TARGET-crash` `src/x.rs`\n\
                    crates/a/gone.rs, `docs/x …/gone.md`\n`script/gone.py`\n";
        let files = [
            File::new("docs/a.md", text, false),
            File::new("crates/a/src/lib.rs", "//! A.\n", false),
        ];
        expect(quoted_paths_exist, &files, &["docs/a.md:1", "docs/a.md:4"]);
    }

    #[test]
    fn unmentioned_crates_are_found() {
        let files = [
            File::new(ARCHITECTURE, "- `crates/a`: first\n- crates/b in passing\n", false),
            File::new("crates/a/Cargo.toml", "", false),
            File::new("crates/b/Cargo.toml", "", false),
            File::new("Cargo.toml", "", false),
        ];
        expect(crates_are_mentioned, &files, &["ARCHITECTURE.md:1"]);
    }

    #[test]
    fn unchecked_invariants_are_found() {
        let text = "- **Invariant.** One. *Check:* tidy.\n- **Invariant.** Two.\n\
                    - **Invariant.** Three,\n  on two lines. *Check:* tests.\n";
        expect(
            invariants_name_their_check,
            &[File::new(ARCHITECTURE, text, false)],
            &["ARCHITECTURE.md:2"],
        );
    }

    #[test]
    fn named_tests_that_do_not_exist_are_found() {
        let files = [
            File::new("docs/a.md", "`test:one` and `test:two`\n`test:three` `test:four`\n", false),
            File::new("docs/b.md", "`test:help`\n`test:five`\n`test:called`\n", false),
            File::new("crates/a/src/lib.rs", "#[test]\nfn one() {}\n// fn two() {}\n", false),
            File::new(
                "crates/a/tests/a.rs",
                "use a;\nfn help() {}\n#[test]\n#[should_panic]\nfn x() { called(); }\n",
                false,
            ),
            File::new(
                "crates/a/tests/b.rs",
                "macro_rules! cases {}\ncases! { five = 0; }\n",
                false,
            ),
            File::new("script/test_x.py", "def three():\n", false),
            File::new("docs/c.md", "`seed:six`\n`seed:seven` `seed:NAME`\n", false),
            File::new(NAMED, "//! A.\nword(\"six\", Raid5);\n", false),
        ];
        expect(
            named_tests_exist,
            &files,
            &["docs/a.md:1", "docs/a.md:2", "docs/b.md:1", "docs/b.md:3", "docs/c.md:2"],
        );
    }
}
