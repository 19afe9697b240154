//! Dependencies point downward only, and the crates below the runtimes stay free of the outside.

use super::Finding;
use super::files::File;
use super::scan::{line_of, places, without_tests};
use std::collections::BTreeMap;

/// The crates from bottom to top. A crate may use crates of lower rows only.
const ROWS: &[&[&str]] = &[
    &["units", "nvme", "redfish", "health", "console"],
    &["io", "pace"],
    &["layout", "parity", "workload"],
    &["format", "parity-gpu", "nvme-stream"],
    &["engine"],
    &["runtime", "sim", "front", "nvme-host"],
    &["drives", "nbd", "fuse", "ublk", "vhost-user", "nvme-target", "iscsi", "shares"],
    &["services", "machines"],
    &["control", "trials"],
    &["doctor", "shelf"],
    &["bench"],
    &["palisade"],
];

/// Narrower than the rows: all that a crate may know, and why.
const NARROW: &[(&str, &[&str], &str)] = &[
    ("parity", &["units", "io"], "it is mathematics, used without an engine"),
    ("parity-gpu", &["units", "io", "parity"], "it is parity's jobs, used without an engine"),
    ("layout", &["units"], "it is a pure map"),
    ("workload", &["units", "io"], "it is what hosts ask, whoever is asked"),
    ("pace", &["units"], "it is what drives take, whoever asks"),
    ("front", &["units", "io"], "it is what all front ends share"),
    ("nbd", &["units", "io", "front"], "a front end sees `io::Blocks`, never the engine"),
    ("fuse", &["units", "io", "front"], "a front end sees `io::Blocks`, never the engine"),
    ("ublk", &["units", "io", "front"], "a front end sees `io::Blocks`, never the engine"),
    ("vhost-user", &["units", "io", "front"], "a front end sees `io::Blocks`, never the engine"),
    ("nvme-stream", &["io", "nvme", "parity"], "it is bytes on a stream, whoever reads them"),
    (
        "nvme-target",
        &["units", "io", "front", "nvme", "nvme-stream", "parity"],
        "a front end sees `io::Blocks`",
    ),
    (
        "nvme-host",
        &["units", "io", "nvme", "nvme-stream", "parity"],
        "it is an `io::Drive`, whoever uses it",
    ),
    ("nvme", &[], "it is bytes, of use without a palisade"),
    (
        "shelf",
        &["units", "io", "nvme", "nvme-target", "pace", "runtime", "drives"],
        "it stands for machines of others: it knows nothing of arrays",
    ),
    (
        "services",
        &["units", "runtime", "ublk", "iscsi", "shares"],
        "it mounts what a daemon serves, and knows nothing of arrays",
    ),
    ("iscsi", &["units"], "it is names and an initiator, whoever asks"),
    ("shares", &[], "it is a file system on a device and its servers, whoever has the device"),
    ("machines", &["vhost-user"], "it is what machines say, whoever serves their rings"),
    ("health", &[], "it is rules for whatever tells of drives"),
    ("console", &[], "it is files, and which path leads to which"),
    ("redfish", &[], "it is what is told of arrays, not arrays"),
    ("runtime", &["units", "io"], "it runs any code written against `io`"),
    (
        "drives",
        &["units", "io", "nvme", "nvme-host", "pace", "runtime"],
        "a drive knows nothing of arrays",
    ),
];

/// The second reader of arrays, and what it must not name: it says what docs/format.md says.
const DECODER: &str = "crates/trials/src/decoder/";
const NOT_IN_DECODER: &[&str] = &["format::", "layout::", "parity::", "engine::", "sim::"];

/// Outside crates that crates below the runtimes must not use.
const OUTSIDE: &[&str] =
    &["tokio", "libc", "io-uring", "nix", "rustix", "mio", "hyper", "axum", "rand", "getrandom"];
/// The crates below the runtimes.
const INSIDE: &[&str] = &[
    "units",
    "io",
    "pace",
    "workload",
    "layout",
    "parity",
    "format",
    "engine",
    "front",
    "nbd",
    "fuse",
    "ublk",
    "vhost-user",
    "nvme",
    "nvme-stream",
    "nvme-host",
    "nvme-target",
    "redfish",
    "health",
];

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

/// The lock file of the fuzz targets, which are a workspace of their own.
const FUZZ_LOCK: &str = "fuzz/Cargo.lock";

/// The packages of a lock file, each with what it depends on, as the file writes it.
fn locked(lock: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    lock.split("[[package]]").skip(1).filter_map(|package| {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "))?;
        let (_, list) = package.split_once("dependencies = [").unwrap_or(("", ""));
        let list = list.split_once(']').map_or("", |(list, _)| list);
        let used = list.lines().map(|line| line.trim_matches([' ', ',', '"']));
        Some((name.trim_matches('"'), used.filter(|used| !used.is_empty()).collect()))
    })
}

/// The fuzz targets' lock file knows what our crates use of each other.
pub fn fuzz_lock(files: &[File]) -> Vec<Finding> {
    let Some(lock) = files.iter().find(|file| file.path == FUZZ_LOCK) else { return Vec::new() };
    let packages: BTreeMap<_, _> = locked(&lock.text).collect();
    let mut findings = Vec::new();
    for (name, file) in manifests(files) {
        let Some(known) = packages.get(&*format!("palisade-{name}")) else { continue };
        for (line, used) in dependencies(&file.text) {
            if row(used).is_some() && !known.contains(&format!("palisade-{used}").as_str()) {
                let message = format!(
                    "{FUZZ_LOCK} does not know that `{name}` uses `{used}`: \
                     cargo metadata --manifest-path fuzz/Cargo.toml >/dev/null brings it up to date"
                );
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

/// The trials' decoder shares no code with what it checks.
pub fn decoder(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust() && f.path.starts_with(DECODER)) {
        for pattern in NOT_IN_DECODER {
            for at in places(&file.code, pattern) {
                let message = format!(
                    "`{pattern}` in the decoder: it is written from docs/format.md alone, so that \
                     it does not share mistakes with the engine"
                );
                findings.push(Finding::new(file, line_of(&file.code, at), message));
            }
        }
    }
    findings
}

/// The crates that have mutants.
const MUTATED: [&str; 3] = ["engine", "nvme-target", "nvme-host"];

/// Whether the word at this place, which is `feature`, names one: `feature = "…"`. (It is also a
/// word of NVMe.)
fn names_feature(code: &str, at: usize) -> bool {
    let behind = code[at + "feature".len()..].trim_start();
    behind.strip_prefix('=').is_some_and(|value| value.trim_start().starts_with('"'))
}

/// The crates that the trials judge: as they are tried they are served.
const TRIED: &[&str] = &["io", "layout", "format", "engine"];

/// Nothing in the crates that are tried is built in another way for it, but their own tests.
pub fn conditions(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tried = |f: &&File| {
        let inside = |name| f.path.starts_with(&format!("crates/{name}/src/"));
        f.is_rust() && TRIED.iter().any(inside)
    };
    for file in files.iter().filter(tried) {
        for word in ["cfg", "cfg_attr"] {
            for at in places(&file.code, word) {
                let behind = file.code[at + word.len()..].trim_start_matches('!');
                if behind.starts_with('(') && !behind.starts_with("(test)") {
                    let message = "what is under trial is the product's: it is built in one way \
                                   only, but for `cfg(test)`";
                    findings.push(Finding::new(file, line_of(&file.code, at), message));
                }
            }
        }
    }
    findings
}

/// What the trials ask for.
const TRIALS: &str =
    "mutants = [\"engine/mutants\", \"nvme-host/mutants\", \"nvme-target/mutants\"]";

/// Only the trials ask for bugs (and `cargo xtask histories`, on its command line), and nothing
/// else is different there.
pub fn mutants(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mutated = |f: &&File| {
        let inside = |name| f.path.starts_with(&format!("crates/{name}/src/"));
        f.is_rust() && MUTATED.into_iter().any(inside)
    };
    for file in files.iter().filter(mutated).filter(|f| !f.path.ends_with("/mutants.rs")) {
        for at in places(&file.code, "feature").filter(|at| names_feature(&file.text, *at)) {
            let message = "what is under trial is the product's: features switch mutants only, \
                           in mutants.rs";
            findings.push(Finding::new(file, line_of(&file.code, at), message));
        }
    }
    for (name, file) in manifests(files) {
        let may_be = match name {
            "trials" => TRIALS,
            _ if MUTATED.contains(&name) => "mutants = []",
            _ => "",
        };
        for (index, line) in file.text.lines().map(str::trim).enumerate() {
            let is_text = line.starts_with('#') || line.starts_with("description =");
            if line.contains("mutants") && !is_text && line != may_be {
                let message = "`mutants` are for the trials and for tests alone";
                findings.push(Finding::new(file, index + 1, message.to_owned()));
            }
        }
    }
    findings
}

/// Who may start an engine that guards no write: the engine has it, the benchmark measures it.
const UNGUARDED: &[&str] = &["crates/engine/src/core.rs", "crates/bench/"];

/// Nobody else starts an engine whose arrays are wrong after a crash.
pub fn unguarded(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let others = |f: &&File| f.is_rust() && !UNGUARDED.iter().any(|own| f.path.starts_with(own));
    for file in files.iter().filter(others) {
        for at in places(&file.code, "start_unguarded") {
            let message = "what is written without guards is wrong after a crash: only `bench \
                           array` may (UNGUARDED in xtask/src/tidy/crates.rs)";
            findings.push(Finding::new(file, line_of(&file.code, at), message));
        }
    }
    findings
}

/// Crates that are not in the daemon, or in which what else is there prints.
const PRINTING: &[&str] = &["palisade", "bench", "trials", "sim"];
/// The daemon's file of those.
const SERVE: &str = "crates/palisade/src/serve.rs";
/// What panics where nobody takes the text.
const PRINTS: &[&str] = &["eprintln!", "eprint!", "println!", "print!", "dbg!"];

/// The daemon outlives those who read what it says.
pub fn printing(files: &[File]) -> Vec<Finding> {
    let is_daemon = |f: &&File| {
        let name = f.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        let counts = |(name, _)| !PRINTING.contains(&name) && !f.path.ends_with("tests.rs");
        f.is_rust() && (f.path == SERVE || name.is_some_and(counts))
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(is_daemon) {
        let code = without_tests(&file.code);
        for pattern in PRINTS {
            for at in places(&code, pattern) {
                let message = format!(
                    "`{pattern}` panics where nobody takes the text, and ends the daemon: what \
                     it reports goes through `runtime::say`"
                );
                findings.push(Finding::new(file, line_of(&code, at), message));
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
    fn a_decoder_that_borrows_is_found() {
        let rust = |path: &str| File::new(path, "//! A.\nuse format::decode;\n", false);
        let files = [rust("crates/trials/src/decoder/a.rs"), rust("crates/trials/src/b.rs")];
        expect(decoder, &files, &["crates/trials/src/decoder/a.rs:2"]);
    }

    #[test]
    fn what_panics_when_nobody_reads_is_found_in_the_daemon() {
        let rust = |path: &str| {
            let test = "#[cfg(test)]\nmod tests {\n    println!();\n}\n";
            File::new(path, &format!("//! println!\neprintln!(\"a\");\n{test}"), false)
        };
        let files = [
            rust("crates/control/src/a.rs"),
            rust("crates/parity/src/select_tests.rs"),
            rust("crates/engine/tests/a.rs"),
            rust("crates/palisade/src/serve.rs"),
            rust("crates/palisade/src/bench.rs"),
            rust("crates/trials/src/main.rs"),
        ];
        expect(printing, &files, &["crates/control/src/a.rs:2", "crates/palisade/src/serve.rs:2"]);
    }

    #[test]
    fn what_is_tried_is_built_in_one_way() {
        let text = "//! A.\n#[cfg(test)]\n#[cfg(debug_assertions)]\nif cfg!(fuzzing) {}\n\
                    #[cfg_attr(test, derive(Debug))]\n#[cfg(not(test))]\n";
        let files = ["engine", "trials"]
            .map(|name| File::new(&format!("crates/{name}/src/a.rs"), text, false));
        let places = [3, 4, 6, 5].map(|line| format!("crates/engine/src/a.rs:{line}"));
        expect(conditions, &files, &places.each_ref().map(String::as_str));
    }

    #[test]
    fn engines_without_guards_are_found() {
        let start = |path: &str| File::new(path, "//! A.\nCore::start_unguarded(env);\n", false);
        let paths =
            ["engine/src/core.rs", "engine/src/a.rs", "bench/src/rig.rs", "control/src/a.rs"];
        let files = paths.map(|path| start(&format!("crates/{path}")));
        expect(unguarded, &files, &["crates/engine/src/a.rs:2", "crates/control/src/a.rs:2"]);
    }

    #[test]
    fn mutants_elsewhere_are_found() {
        let declared = "[features]\nmutants = []\n";
        let asked = &format!("[features]\n{TRIALS}\n[dependencies]\n");
        let forced = format!("{asked}nvme-target = {{ features = [\"mutants\"] }}\n");
        let conditional = "//! A.\n#[cfg(feature = \"sim\")]\n";
        let files = [
            manifest("engine", declared),
            manifest("nvme-target", declared),
            manifest("palisade", &forced),
            manifest("trials", asked),
            manifest("nbd", declared),
            File::new("crates/engine/src/a.rs", conditional, false),
            File::new("crates/nvme-target/src/a.rs", conditional, false),
            File::new("crates/nvme-target/src/b.rs", "//! A.\nlet feature = 1;\n", false),
            File::new("crates/engine/src/mutants.rs", "#[cfg(feature = \"mutants\")]\n", false),
        ];
        let places = [
            "crates/engine/src/a.rs:2",
            "crates/nvme-target/src/a.rs:2",
            "crates/palisade/Cargo.toml:2",
            "crates/palisade/Cargo.toml:4",
            "crates/nbd/Cargo.toml:2",
        ];
        expect(mutants, &files, &places);
    }

    #[test]
    fn a_lock_file_that_is_behind_is_found() {
        let lock = "version = 4\n\n[[package]]\nname = \"palisade-nbd\"\ndependencies = [\n \
                    \"palisade-io\",\n \"serde\",\n]\n\n[[package]]\nname = \"serde\"\n";
        let files = [
            manifest("nbd", "[dependencies]\nio = 1\nserde = 1\nunits = 1\n"),
            manifest("bench", "[dependencies]\nio = 1\n"),
            File::new(FUZZ_LOCK, lock, false),
        ];
        expect(fuzz_lock, &files, &["crates/nbd/Cargo.toml:4"]);
    }

    #[test]
    fn outside_crates_are_found_below_the_runtimes_only() {
        let text = "[dependencies]\nlibc = { workspace = true }\ntokio = 1\narrayvec = 1\n";
        let files = [manifest("io", text), manifest("drives", text)];
        expect(outside, &files, &["crates/io/Cargo.toml:2", "crates/io/Cargo.toml:3"]);
    }
}
