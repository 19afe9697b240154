//! Dependencies point downward only, and the crates below the runtimes stay free of the outside.

use super::Finding;
use super::files::File;

/// The crates from bottom to top. A crate may use crates of lower rows only.
const ROWS: &[&[&str]] = &[
    &["units"],
    &["io"],
    &["layout", "parity"],
    &["format"],
    &["engine"],
    &["runtime", "sim", "nbd"],
    &["drives"],
    &["control"],
    &["bench"],
    &["palisade"],
];

/// Narrower than the rows: all that a crate may know, and why.
const NARROW: &[(&str, &[&str], &str)] = &[
    ("parity", &["units", "io"], "it is mathematics, used without an engine"),
    ("layout", &["units"], "it is a pure map"),
    ("nbd", &["units", "io"], "a front end sees `io::Blocks`, never the engine"),
    ("runtime", &["units", "io"], "it runs any code written against `io`"),
    ("drives", &["units", "io", "runtime"], "a drive knows nothing of arrays"),
];

/// Outside crates that crates below the runtimes must not use.
const OUTSIDE: &[&str] =
    &["tokio", "libc", "io-uring", "nix", "rustix", "mio", "hyper", "axum", "rand", "getrandom"];
/// The crates below the runtimes.
const INSIDE: &[&str] = &["units", "io", "layout", "parity", "format", "engine", "nbd"];

fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

/// The manifests of workspace crates, with their names.
fn manifests(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    files.iter().filter_map(|file| {
        let name = file.crate_name()?;
        (file.path == format!("crates/{name}/Cargo.toml")).then_some((name, file))
    })
}

/// Line and name of every dependency that is built into the product (not of tests).
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut counts = false;
    for (index, line) in manifest.lines().map(str::trim).enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            let table = section.rsplit('.').next().unwrap_or("");
            counts = !section.contains("dev-dependencies") && table.ends_with("dependencies");
            if let Some((_, name)) = section.split_once("dependencies.")
                && !section.contains("dev-")
            {
                found.push((index + 1, name));
            }
        } else if counts && !line.starts_with('#') {
            let name = line.split(['=', '.', ' ']).next().unwrap_or("");
            if !name.is_empty() {
                found.push((index + 1, name));
            }
        }
    }
    found
}

/// A crate depends only on crates below it.
pub fn direction(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, file) in manifests(files) {
        let Some(own) = row(name) else {
            let message =
                format!("crate `{name}` has no row: add it to ROWS in xtask/src/tidy/crates.rs");
            findings.push(Finding::new(file, 1, message));
            continue;
        };
        for (line, used) in dependencies(&file.text) {
            let Some(other) = row(used) else { continue };
            let narrow = NARROW.iter().find(|(crate_name, ..)| *crate_name == name);
            if other >= own {
                let message = format!(
                    "`{name}` must not use `{used}`: dependencies point downward \
                     (ROWS in xtask/src/tidy/crates.rs); move what both need further down"
                );
                findings.push(Finding::new(file, line, message));
            } else if let Some((_, allowed, why)) = narrow
                && !allowed.contains(&used)
            {
                let message = format!("`{name}` must not use `{used}`: {why}");
                findings.push(Finding::new(file, line, message));
            }
        }
    }
    findings
}

/// Crates below the runtimes use nothing that does I/O or makes chance.
pub fn outside(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, file) in manifests(files).filter(|(name, _)| INSIDE.contains(name)) {
        for (line, used) in dependencies(&file.text) {
            if OUTSIDE.contains(&used) {
                let message = format!(
                    "`{name}` must not use `{used}`: it does no I/O; ask for what it needs \
                     through a trait of `io`"
                );
                findings.push(Finding::new(file, line, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn manifest(name: &str, text: &str) -> File {
        File::new(&format!("crates/{name}/Cargo.toml"), text, false)
    }

    #[test]
    fn dependencies_are_read_from_every_table() {
        let text = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\nb.workspace = true\n\
                    # c = 1\n\n[dev-dependencies]\nd = \"1\"\n[target.'cfg(unix)'.dependencies]\n\
                    e = { version = \"1\" }\n[build-dependencies]\nf = \"1\"\n\
                    [dependencies.g]\nversion = \"1\"\n";
        let names: Vec<_> = dependencies(text).iter().map(|(_, name)| *name).collect();
        assert_eq!(names, ["a", "b", "e", "f", "g"]);
    }

    #[test]
    fn upward_and_sideways_dependencies_are_found() {
        let files = [
            manifest(
                "engine",
                "[dependencies]\nlayout = 1\nruntime = 1\n[dev-dependencies]\nsim = 1",
            ),
            manifest("sim", "[dependencies]\nengine = 1\nruntime = 1\n"),
            manifest("nbd", "[dependencies]\nio = 1\nengine = 1\n"),
            manifest("stranger", "[dependencies]\n"),
        ];
        let places = [
            "crates/engine/Cargo.toml:3",
            "crates/sim/Cargo.toml:3",
            "crates/nbd/Cargo.toml:3",
            "crates/stranger/Cargo.toml:1",
        ];
        expect(direction, &files, &places);
    }

    #[test]
    fn outside_crates_are_found_below_the_runtimes_only() {
        let text = "[dependencies]\nlibc = { workspace = true }\ntokio = 1\narrayvec = 1\n";
        let files = [manifest("io", text), manifest("drives", text)];
        expect(outside, &files, &["crates/io/Cargo.toml:2", "crates/io/Cargo.toml:3"]);
    }
}
