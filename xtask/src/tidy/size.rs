//! Limits on size: files, functions and lines that a person can hold in mind.

use super::Finding;
use super::files::File;
use super::scan::{closing, line_of, words};

/// Most lines of a file, tests included.
const FILE_LINES: usize = 800;
/// Most lines of a function, from `fn` to its closing brace.
const FUNCTION_LINES: usize = 70;
/// Most columns of a line of Rust.
const COLUMNS: usize = 100;

/// What nobody writes by hand.
const GENERATED: [&str; 3] = [".lock", ".json", ".ptx"];

/// Sources, scripts and pages of at most [`FILE_LINES`] lines.
pub fn file_length(files: &[File]) -> Vec<Finding> {
    let counted = |file: &&File| !GENERATED.iter().any(|end| file.path.ends_with(end));
    let mut findings = Vec::new();
    for file in files.iter().filter(counted) {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            let message = format!(
                "file of {lines} lines, at most {FILE_LINES}: split it by what it is about"
            );
            findings.push(Finding::new(file, FILE_LINES + 1, message));
        }
    }
    findings
}

/// Lines of Rust of at most [`COLUMNS`] columns.
pub fn line_width(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for (index, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                let message = format!("line of {columns} columns, at most {COLUMNS}: break it");
                findings.push(Finding::new(file, index + 1, message));
            }
        }
    }
    findings
}

/// Functions of at most [`FUNCTION_LINES`] lines.
pub fn function_length(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        for (name, first, last) in functions(&file.code) {
            let lines = last - first + 1;
            if lines > FUNCTION_LINES {
                let message = format!(
                    "function `{name}` of {lines} lines, at most {FUNCTION_LINES}: \
                     take a part with a name of its own out of it"
                );
                findings.push(Finding::new(file, first, message));
            }
        }
    }
    findings
}

/// Name, first and last line of every function with a body.
fn functions(code: &str) -> Vec<(&str, usize, usize)> {
    let mut found = Vec::new();
    let all: Vec<_> = words(code).collect();
    for pair in all.windows(2) {
        let ((at, keyword), (name_at, name)) = (pair[0], pair[1]);
        let between = &code[at + keyword.len()..name_at];
        if keyword != "fn" || !between.chars().all(char::is_whitespace) {
            continue;
        }
        let Some(open) = body(code, name_at + name.len()) else { continue };
        let Some(end) = closing(code, open) else { continue };
        found.push((name, line_of(code, at), line_of(code, end - 1)));
    }
    found
}

/// The brace that opens the body of the function whose name ends at `from`.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, byte) in code.as_bytes()[from..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(from + offset),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("//! x\nfn f(a: [u8; 3]) -> u8\n{{\n{}}}\n", "    g();\n".repeat(lines - 3))
    }

    #[test]
    fn long_files_are_found() {
        let files = [
            File::new("a.rs", &"x\n".repeat(800), false),
            File::new("b.rs", &"x\n".repeat(801), false),
            File::new("script/c", &"x\n".repeat(900), true),
            File::new("Cargo.lock", &"x\n".repeat(900), false),
            File::new("kernels/a.ptx", &"x\n".repeat(900), false),
        ];
        expect(file_length, &files, &["b.rs:801", "script/c:801"]);
    }

    #[test]
    fn wide_lines_are_found() {
        let text = format!("{}\n{}\n", "é".repeat(100), "x".repeat(101));
        expect(line_width, &[File::new("a.rs", &text, false)], &["a.rs:2"]);
        expect(line_width, &[File::new("a.md", &text, false)], &[]);
    }

    #[test]
    fn long_functions_are_found() {
        expect(function_length, &[File::new("a.rs", &function_of(70), false)], &[]);
        expect(function_length, &[File::new("a.rs", &function_of(71), false)], &["a.rs:2"]);
    }

    #[test]
    fn declarations_and_pointers_are_not_functions() {
        let code = "trait T { fn a(&self); fn b(x: fn(u8) -> u8) { y } }";
        let names: Vec<_> = functions(code).iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, ["b"]);
    }
}
