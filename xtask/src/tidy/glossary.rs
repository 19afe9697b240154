//! The glossary and the modules of the engine: each module is the place of a word.
//!
//! A row of docs/glossary.md may name modules in its last column, as `` `journal::lane` ``.
//! Invariant: every module of `engine` is named by a row, and every named one exists.

use super::Finding;
use super::files::File;

const GLOSSARY: &str = "docs/glossary.md";
const ENGINE: &str = "crates/engine/src/";

/// A module's path within its crate (`journal::lane` for `journal/lane.rs`); `None` for the root.
fn module(path: &str) -> Option<String> {
    let inner = path.strip_prefix(ENGINE)?.strip_suffix(".rs")?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    (inner != "lib").then(|| inner.replace('/', "::"))
}

/// Line and path of every module that a row's last cell names.
fn named(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("| ")) {
        let cell = line.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or("");
        let words = cell.split('`').skip(1).step_by(2);
        found.extend(words.map(|word| (index + 1, word)));
    }
    found
}

/// Every module of the engine has a row in the glossary, and every row's module exists.
pub fn modules_have_a_row(files: &[File]) -> Vec<Finding> {
    let Some(glossary) = files.iter().find(|file| file.path == GLOSSARY) else {
        return Vec::new();
    };
    let named = named(&glossary.text);
    let modules: Vec<(String, &File)> =
        files.iter().filter_map(|file| Some((module(&file.path)?, file))).collect();
    let mut findings = Vec::new();
    for (module, file) in &modules {
        if !named.iter().any(|(_, name)| name == module) {
            let message = format!(
                "no row of {GLOSSARY} names `{module}`: add the word that this module is about, \
                 or name the module in the row of its word"
            );
            findings.push(Finding::new(file, 1, message));
        }
    }
    for (line, name) in named {
        if !modules.is_empty() && !modules.iter().any(|(module, _)| module == name) {
            let message = format!("`engine` has no module `{name}`: take it from the row");
            findings.push(Finding::new(glossary, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn a_module_without_a_row_is_found() {
        let text = "# Words\n\n| Word | Means | In the engine |\n|---|---|---|\n\
                    | lane | a `ring` of one core | `journal::lane` |\n\
                    | journal | what is to be written | `journal`, `journal::gone` |\n\
                    | strip | a run of one stripe on one drive | |\n";
        let files = [
            File::new(GLOSSARY, text, false),
            File::new("crates/engine/src/lib.rs", "", false),
            File::new("crates/engine/src/journal/mod.rs", "", false),
            File::new("crates/engine/src/journal/lane.rs", "", false),
            File::new("crates/engine/src/journal/ring.rs", "", false),
            File::new("crates/io/src/drive.rs", "", false),
        ];
        let places = ["crates/engine/src/journal/ring.rs:1", "docs/glossary.md:6"];
        expect(modules_have_a_row, &files, &places);
    }
}
