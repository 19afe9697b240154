//! Which file of a crate may use which: rows from bottom to top, and no circles.
//!
//! A file *uses* another where a path in its code leads there: `crate::a::b`, `super::b`, or
//! `b::c` of a module that it declares. The crate's root (`lib.rs`, `main.rs`) only names modules:
//! it is no file here, nor are tests.
//!
//! Invariants
//! - Of the crates in [`ROWS`] a file uses files of lower rows only, or of its own circle.
//! - Files that use each other in a circle stand in [`CIRCLES`]. That list only shrinks: a file
//!   that has left its circle leaves the list.

use super::Finding;
use super::files::File;
use super::scan::{is_word, line_of, places, without_tests};
use std::collections::{BTreeMap, BTreeSet};

/// The files of a crate from bottom to top. A file may use files of lower rows only.
type Rows = [(&'static str, &'static [&'static [&'static str]])];

/// The files of one known circle, and their crate.
type Circles = [(&'static str, &'static [&'static str])];

const ROWS: &Rows = &[
    (
        "control",
        &[
            &["lock"],
            &[
                "certificate/der",
                "chance",
                "cores",
                "digest",
                "holds",
                "lookup",
                "mute",
                "nameplate",
                "notify",
                "pattern",
                "peer",
                "plugs",
                "pools",
                "reply",
                "stall",
            ],
            &["body", "certificate", "console", "room", "usage"],
            &[
                "address", "asking", "counters", "failure", "gpu", "http", "jobs", "memory",
                "metrics", "next", "state",
            ],
            &["chap", "config/spans", "fc", "iscsi", "shares"],
            &["config/enclosures", "config/fabrics", "config/rates"],
            &["config/shelves"],
            &["pinned"],
            &["around"],
            &["history", "https", "wellness"],
            &["config"],
            &["local"],
            &["caller"],
            &[
                "accounts/basic",
                "accounts/hasher",
                "accounts/kept",
                "accounts/lockout",
                "accounts/turns",
            ],
            &["accounts/look", "audit/chain", "audit/quiet"],
            &["audit/files"],
            &["fabrics"],
            &["nvme", "ownership"],
            &["connection"],
            &["here"],
            &["devices", "files", "rings"],
            &["data"],
            &["services/kinds", "services/shown", "services/talk", "services/users"],
            &["services", "machines"],
            &["exports", "returns"],
            &["convert", "inventory", "look", "probe"],
            &["names", "paths", "snapshot"],
            &["events/client", "events/ring"],
            &["events/kept", "events/webhooks"],
            &["events"],
            &["alerts/kept", "alerts/mail"],
            &["alerts"],
            &["accounts", "audit", "confirm", "tasks"],
            &["plan"],
            &["shelves/chassis"],
            &["shelves/service"],
            &["shelves"],
            &["claims", "manager"],
            &[
                "attending",
                "changes",
                "creating",
                "hardware",
                "owning",
                "planning",
                "plugging",
                "reach",
                "renewal",
                "seats",
                "served",
                "starting",
                "telemetry",
            ],
            &["reload", "returning", "sharing"],
            &["login"],
            &["act"],
            &["slow", "watching"],
            &["answer"],
            &["server"],
            &["stranger"],
        ],
    ),
    (
        "nvme-target",
        &[
            &["limits", "mutants", "session/slots"],
            &["access"],
            &["controller"],
            &["visits"],
            &["target"],
            &[
                "server",
                "session",
                "session/begin",
                "session/fused",
                "session/receive",
                "session/reply",
                "volume",
            ],
            &["admin", "admin/features", "admin/identify"],
            &["admin/logs"],
        ],
    ),
];

/// Crates whose files may go in circles only as listed, beside those of [`ROWS`].
const CHECKED: &[&str] = &["engine"];

/// The circles of today. Nothing is added.
const CIRCLES: &Circles = &[
    ("control", &["convert", "inventory", "look", "probe"]),
    ("control", &["claims", "manager"]),
    (
        "nvme-target",
        &[
            "server",
            "session",
            "session/begin",
            "session/fused",
            "session/receive",
            "session/reply",
            "volume",
        ],
    ),
    ("nvme-target", &["admin", "admin/features", "admin/identify"]),
    ("engine", &["watch", "watch/flush", "watch/ticket"]),
    ("engine", &["array/message", "array/view", "region/message", "stripe/table"]),
    (
        "engine",
        &[
            "array",
            "array/hold",
            "core",
            "journal",
            "journal/flight",
            "journal/lane",
            "manage",
            "manage/discard",
            "manage/guard",
            "manage/keeper",
            "manage/lost",
            "manage/managed",
            "manage/owner",
            "manage/pause",
            "manage/scrub",
            "manage/tasks",
            "stripe/check",
            "stripe/compute",
            "stripe/execute",
            "stripe/give_up",
            "stripe/worker",
        ],
    ),
];

/// Where the tables are.
const HERE: &str = "xtask/src/tidy/circles.rs";

/// Files use files of lower rows, and go in known circles only.
pub fn inside(files: &[File]) -> Vec<Finding> {
    look(files, ROWS, CIRCLES, CHECKED)
}

fn look(files: &[File], rows: &Rows, circles: &Circles, checked: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let in_rows = rows.iter().map(|(name, _)| *name);
    for name in in_rows.chain(checked.iter().copied()) {
        let uses = uses_of(files, name);
        if uses.is_empty() {
            continue;
        }
        let known: Vec<&[&str]> =
            circles.iter().filter(|(of, _)| *of == name).map(|(_, files)| *files).collect();
        if let Some((_, rows)) = rows.iter().find(|(of, _)| *of == name) {
            findings.extend(upward(name, &uses, rows, &known));
        }
        findings.extend(unknown_circles(&uses, &known));
        findings.extend(left_circles(name, &uses, &known));
    }
    findings
}

/// One file, and where it first uses each other one.
struct Uses<'a> {
    file: &'a File,
    of: BTreeMap<String, usize>,
}

/// The files of a crate by name (`session/reply` for `src/session/reply.rs`), with their uses.
fn uses_of<'a>(files: &'a [File], name: &str) -> BTreeMap<String, Uses<'a>> {
    let folder = format!("crates/{name}/src/");
    let mut found = BTreeMap::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let Some(inner) = file.path.strip_prefix(&folder) else { continue };
        let module = inner.trim_end_matches(".rs").trim_end_matches("/mod");
        let is_test = module.split('/').any(|part| part.ends_with("tests"));
        if !is_test && !matches!(module, "lib" | "main") {
            found.insert(module.to_owned(), Uses { file, of: BTreeMap::new() });
        }
    }
    let modules: BTreeSet<String> = found.keys().cloned().collect();
    for (module, uses) in &mut found {
        let code = without_tests(&uses.file.code);
        for (at, path) in paths(&code, module) {
            let lengths = (1..=path.len()).rev();
            let mut names = lengths.map(|length| path[..length].join("/"));
            if let Some(used) = names.find(|name| modules.contains(name))
                && used != *module
            {
                let first = uses.of.entry(used).or_insert(at);
                *first = at.min(*first);
            }
        }
    }
    found
}

/// The paths in the code of a module, from the root of its crate, and where each begins.
fn paths(code: &str, module: &str) -> Vec<(usize, Vec<String>)> {
    let own: Vec<String> = module.split('/').map(str::to_owned).collect();
    let mut found = Vec::new();
    for (word, from) in [("crate::", 0), ("self::", own.len()), ("super::", own.len() - 1)] {
        for at in places(code, word).filter(|at| !code[..*at].ends_with("::")) {
            let mut ends = Vec::new();
            branches(&own[..from], &code[at + word.len()..], &mut ends);
            found.extend(ends.into_iter().map(|path| (at, path)));
        }
    }
    for at in places(code, "mod ") {
        let length = code[at + 4..].bytes().take_while(|byte| is_word(*byte)).count();
        let name = &code[at + 4..][..length];
        let declared = !name.is_empty() && code[at + 4 + name.len()..].starts_with(';');
        if declared && let Some(used) = places(code, &format!("{name}::")).next() {
            found.push((used, own.iter().cloned().chain([name.to_owned()]).collect()));
        }
    }
    found
}

/// Adds every path that the tree of a `use`, or a path, has behind its first word.
fn branches(before: &[String], code: &str, ends: &mut Vec<Vec<String>>) {
    let code = code.trim_start();
    if let Some(inner) = code.strip_prefix('{') {
        for part in parts(inner) {
            branches(before, part, ends);
        }
        return;
    }
    let length = code.bytes().take_while(|byte| is_word(*byte)).count();
    let mut path = before.to_vec();
    match &code[..length] {
        "" => return ends.push(path),
        "super" => drop(path.pop()),
        "self" => {}
        word => path.push(word.to_owned()),
    }
    match code[length..].trim_start().strip_prefix("::") {
        Some(rest) => branches(&path, rest, ends),
        None => ends.push(path),
    }
}

/// What stands between the commas behind a brace, up to the one that closes it.
fn parts(code: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0usize, 0, Vec::new());
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'}' => {
                found.push(&code[start..at]);
                break;
            }
            b',' if depth == 0 => {
                found.push(&code[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Uses of files that are not in a lower row, nor in the same circle.
fn upward(
    name: &str,
    uses: &BTreeMap<String, Uses<'_>>,
    rows: &[&[&str]],
    known: &[&[&str]],
) -> Vec<Finding> {
    let row = |module: &str| rows.iter().position(|row| row.contains(&module));
    let mut findings = Vec::new();
    for (module, Uses { file, of }) in uses {
        let Some(own) = row(module) else {
            let message = format!("`{module}` of `{name}` has no row: add it to ROWS in {HERE}");
            findings.push(Finding::new(file, 1, message));
            continue;
        };
        for (used, at) in of {
            let together =
                known.iter().any(|c| c.contains(&module.as_str()) && c.contains(&used.as_str()));
            if row(used).is_some_and(|row| row >= own) && !together {
                let message = format!(
                    "`{module}` must not use `{used}`: files use files of lower rows only (ROWS \
                     in {HERE}); move what both need further down"
                );
                findings.push(Finding::new(file, line_of(&file.code, *at), message));
            }
        }
    }
    let gone = rows.iter().flat_map(|row| row.iter()).filter(|m| !uses.contains_key(**m));
    findings.extend(gone.map(|module| stale(format!("`{name}` has no `{module}`: take it away"))));
    findings
}

/// A finding about a table of this file.
fn stale(message: String) -> Finding {
    Finding { path: HERE.to_owned(), line: 1, message }
}

/// Every file that a file leads to.
fn reached(uses: &BTreeMap<String, Uses<'_>>, from: &str) -> BTreeSet<String> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = next.pop() {
        for used in uses[&module].of.keys() {
            if seen.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    seen
}

/// The circles of files that lead to each other.
fn circles_in(uses: &BTreeMap<String, Uses<'_>>) -> BTreeSet<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<String>> =
        uses.keys().map(|module| (module, reached(uses, module))).collect();
    let back = |module: &String, other: &String| reached[other].contains(module);
    let circle = |module: &String| -> Vec<String> {
        reached[module].iter().filter(|other| back(module, other)).cloned().collect()
    };
    uses.keys().map(circle).filter(|circle| !circle.is_empty()).collect()
}

/// Circles that are no part of a known one.
fn unknown_circles(uses: &BTreeMap<String, Uses<'_>>, known: &[&[&str]]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for circle in circles_in(uses) {
        let inside = |k: &&[&str]| circle.iter().all(|module| k.contains(&module.as_str()));
        if known.iter().any(inside) {
            continue;
        }
        let is_known = |m: &&String| known.iter().any(|k| k.contains(&m.as_str()));
        let at = circle.iter().find(|module| !is_known(module)).unwrap_or(&circle[0]);
        let Uses { file, of } = &uses[at];
        let line = of.iter().find(|(used, _)| circle.contains(used));
        let line = line.map_or(1, |(_, at)| line_of(&file.code, *at));
        let message = format!(
            "a new circle of files: {}; let one side know nothing of the other",
            circle.join(", ")
        );
        findings.push(Finding::new(file, line, message));
    }
    findings
}

/// Files of known circles that are in no circle any more.
fn left_circles(name: &str, uses: &BTreeMap<String, Uses<'_>>, known: &[&[&str]]) -> Vec<Finding> {
    let circles = circles_in(uses);
    let still = |module: &str| circles.iter().any(|circle| circle.iter().any(|m| m == module));
    let gone = known.iter().flat_map(|circle| circle.iter()).filter(|module| !still(module));
    gone.map(|module| {
        stale(format!("`{module}` of `{name}` is in no circle any more: take it from CIRCLES"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)], rows: &Rows, circles: &Circles) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| {
            File::new(&format!("crates/control/src/{path}"), text, false)
        };
        let files: Vec<File> = files.iter().map(file).collect();
        let checked: &[&str] = if rows.is_empty() { &["control"] } else { &[] };
        let findings = look(&files, rows, circles, checked);
        findings.iter().map(|f| format!("{}:{}", f.path, f.line)).collect()
    }

    #[test]
    fn a_made_up_circle_is_found() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
            ("a.rs", "//! A.\nuse crate::b::{self, B};\n"),
            ("b.rs", "//! B.\n// use crate::a;\nuse crate::{X, c::{C, D}};\n"),
            ("c.rs", "//! C.\nfn f() {\n    super::a::g();\n}\n"),
        ];
        assert_eq!(found(&files, &[], &[]), ["crates/control/src/a.rs:2"]);
        let known: &Circles = &[("control", &["a", "b", "c"])];
        assert!(found(&files, &[], known).is_empty());
        let part: &Circles = &[("control", &["a", "b"])];
        assert_eq!(found(&files, &[], part), ["crates/control/src/c.rs:3"]);
    }

    #[test]
    fn who_left_a_circle_leaves_the_list() {
        let files = [("a.rs", "use crate::b;\n"), ("b.rs", "use crate::a;\n"), ("c.rs", "")];
        let known: &Circles = &[("control", &["a", "b", "c"])];
        assert_eq!(found(&files, &[], known), [format!("{HERE}:1")]);
    }

    #[test]
    fn uses_of_tests_and_of_other_crates_do_not_count() {
        let test = "#[cfg(test)]\nmod tests {\n    use crate::b;\n}\nuse engine::b::crate_b;\n";
        let files = [("a.rs", test), ("a_tests.rs", "use crate::b;\n"), ("b.rs", "use crate::a;")];
        assert!(found(&files, &[], &[]).is_empty());
    }

    #[test]
    fn a_folder_and_its_files_may_go_in_a_circle() {
        let files = [
            ("one/mod.rs", "mod two;\nfn f() { two::g() }\n"),
            ("one/two.rs", "use super::three::H;\nfn g() { super::f() }\n"),
            ("one/three.rs", "use self::x;\n"),
        ];
        assert_eq!(found(&files, &[], &[]), ["crates/control/src/one/mod.rs:2"]);
    }

    #[test]
    fn uses_of_the_same_or_a_higher_row_are_found() {
        let rows: &Rows = &[("control", &[&["a", "b"], &["c", "gone"]])];
        let files = [
            ("a.rs", "use crate::c::C;\n"),
            ("b.rs", "\nuse crate::a;\n"),
            ("c.rs", "use crate::b;\n"),
            ("new.rs", ""),
        ];
        let places = [
            "crates/control/src/a.rs:1",
            "crates/control/src/b.rs:2",
            "crates/control/src/new.rs:1",
            "xtask/src/tidy/circles.rs:1",
            "crates/control/src/a.rs:1",
        ];
        assert_eq!(found(&files, rows, &[]), places);
    }
}
