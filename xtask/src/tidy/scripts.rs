//! Scripts can be run, and say first what they do.

use super::Finding;
use super::files::File;

/// Every script is executable, names its interpreter and opens with a comment. Files ending in
/// `.sh` are read by other scripts and need only the comment.
pub fn runnable(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| is_script(&f.path)) {
        let mut lines = file.text.lines().peekable();
        let interpreter = lines.next_if(|line| line.starts_with("#!")).is_some();
        let sourced = file.path.ends_with(".sh");
        if !sourced && !interpreter {
            let message = "no `#!` line: begin with the interpreter, such as `#!/usr/bin/env bash`";
            findings.push(Finding::new(file, 1, message));
        }
        if !sourced && !file.executable {
            findings.push(Finding::new(file, 1, "not executable: `chmod +x` it"));
        }
        let says = |line: &&str| {
            let text = line.trim_start_matches(['#', '"', 'r', ' ']);
            (line.starts_with('#') || line.contains("\"\"\"")) && text.len() >= 20
        };
        if lines.next().filter(says).is_none() {
            let line = 1 + usize::from(interpreter);
            let message = "no comment at the top: say in a line what the script does";
            findings.push(Finding::new(file, line, message));
        }
    }
    findings
}

fn is_script(path: &str) -> bool {
    let folder = path.starts_with("script/") || path.starts_with(".ci/");
    folder && !path.ends_with(".py") && !path.ends_with(".md") && !path.contains("/data/")
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn scripts_that_do_not_run_or_explain_are_found() {
        let good = "#!/usr/bin/env bash\n# Builds and tests everything there is.\n";
        let files = [
            File::new("script/a", good, true),
            File::new("script/b", good, false),
            File::new("script/c", "# Says a lot, but runs by nothing.\n", true),
            File::new("script/d", "#!/bin/sh\nset -e\n", true),
            File::new("script/lib.sh", "# Functions that scripts share.\n", false),
            File::new(
                "script/e",
                "#!/usr/bin/env python3\n\"\"\"Reads an array from its files.\"\"\"",
                true,
            ),
            File::new("src/other", "", false),
        ];
        expect(runnable, &files, &["script/b:1", "script/c:1", "script/d:2"]);
    }
}
