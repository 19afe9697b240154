//! What a module must say, and what it must not touch.

use super::Finding;
use super::files::File;
use super::scan::{line_of, places, without_tests, words};

/// Every Rust file opens with `//!`.
pub fn purpose(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let first = file.text.lines().find(|line| !line.trim().is_empty() && *line != "#![no_std]");
        if !first.is_some_and(|line| line.starts_with("//! ")) {
            let message = "no `//!` at the top: say the module's purpose and invariants \
                           (state machines: states, transitions, causes)";
            findings.push(Finding::new(file, 1, message));
        }
    }
    findings
}

/// Every file under a `src` is declared by a `mod` of the same crate.
pub fn reachable(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust()) {
        let Some((root, inner)) = file.path.split_once("src/") else { continue };
        let parts: Vec<&str> = inner.trim_end_matches(".rs").split('/').collect();
        let name = match parts[..] {
            ["lib" | "main"] | ["bin", ..] => continue,
            [.., parent, "mod"] => parent,
            [.., name] => name,
            [] => continue,
        };
        let declared = files.iter().filter(|f| f.is_rust() && f.path.starts_with(root)).any(|f| {
            places(&f.code, &format!("mod {name};")).next().is_some()
                || f.text.contains(&format!("#[path = \"{name}.rs\"]"))
        });
        if !declared {
            let message = format!("no `mod {name};` in this crate: declare the file or delete it");
            findings.push(Finding::new(file, 1, message));
        }
    }
    findings
}

/// Where `unsafe` may stand, and why (D12). A trailing `/` allows a whole folder.
const UNSAFE: &[(&str, &str)] = &[
    ("crates/io/src/buffer.rs", "aligned memory, shared without copying"),
    ("crates/runtime/", "io_uring and system calls"),
    ("crates/drives/", "system calls on drives"),
    ("crates/machines/src/map.rs", "a machine's memory is not locked"),
    ("crates/parity/src/dot.rs", "kernel body of rows times inputs"),
    ("crates/parity/src/kernel.rs", "the table of kernels: functions on pointers"),
    ("crates/parity/src/operations.rs", "kernel bodies, one per operation"),
    ("crates/parity/src/portable.rs", "64-bit words as vectors"),
    ("crates/parity/src/sweep.rs", "walks strips and calls kernels"),
    ("crates/parity/src/vector.rs", "vectors of every width"),
    ("crates/parity/src/avx2.rs", "vector instructions"),
    ("crates/parity/src/avx512.rs", "vector instructions"),
    ("crates/parity/src/neon.rs", "vector instructions"),
    ("crates/parity/src/ssse3.rs", "vector instructions"),
    ("crates/parity/src/model.rs", "a model of vector instructions, for tests"),
    ("crates/parity/src/model_tests.rs", "the model against the instructions"),
    ("crates/parity-gpu/src/cuda.rs", "NVIDIA's driver, loaded at run time"),
    ("crates/parity-gpu/src/cuda/", "NVIDIA's driver, loaded at run time"),
    ("crates/parity-gpu/src/driver.rs", "a launch trusts what lies in a device's memory"),
    ("crates/parity-gpu/src/fake.rs", "launches of the fake device"),
    ("crates/parity-gpu/src/host.rs", "the kernels' C form"),
    ("crates/parity-gpu/src/lane.rs", "launches"),
    ("crates/parity-gpu/src/power.rs", "NVIDIA's management library, loaded at run time"),
    ("crates/parity-gpu/src/track.rs", "launches"),
    ("crates/parity-gpu/src/tests/bench.rs", "launches of the kernels' C form"),
    ("crates/bench/src/isal.rs", "ISA-L, loaded at run time for comparison"),
    ("crates/bench/src/read_pass.rs", "code compiled for a processor feature"),
    ("/tests/allocations.rs", "an allocator that counts, for tests"),
];

/// `unsafe` only at its address.
pub fn unsafe_address(files: &[File]) -> Vec<Finding> {
    let allowed = |path: &str| {
        UNSAFE.iter().any(|(place, _)| match place {
            _ if place.starts_with('/') => path.ends_with(place),
            _ if place.ends_with('/') => path.starts_with(place),
            _ => path == *place,
        })
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust() && !allowed(&f.path)) {
        let places: Vec<usize> =
            words(&file.code).filter(|(_, word)| *word == "unsafe").map(|(at, _)| at).collect();
        if let Some(first) = places.first() {
            let message = format!(
                "`unsafe` ({} times) outside its addresses (UNSAFE in xtask/src/tidy/modules.rs): \
                 call a safe function of `io`, `runtime`, `drives` or `parity`",
                places.len()
            );
            findings.push(Finding::new(file, line_of(&file.code, *first), message));
        }
    }
    findings
}

/// Crates without I/O, clock, threads and chance of their own (D1).
const PURE: [&str; 8] =
    ["engine", "layout", "format", "parity", "nbd", "fuse", "ublk", "vhost-user"];

/// What pure crates must not name: pattern, what to use instead, whether tests may.
const IMPURE: &[(&str, &str, bool)] = &[
    ("std::fs", "drives and records go through `io::Drive`", true),
    ("std::net", "sockets belong to the runtime", true),
    ("std::os", "the operating system belongs to the runtime", true),
    ("std::thread", "tasks are spawned by `io::Env`", true),
    ("std::time", "time comes from `io::Env::now`", true),
    ("std::process", "processes belong to the program", true),
    ("tokio", "the engine is run by `io::Env`, never by tokio", false),
    ("io_uring", "drives are reached through `io::Drive`", false),
    ("libc", "system calls belong to the runtime", false),
    ("HashMap", "its order is random: use a BTreeMap, a Vec or a fixed hasher", false),
    ("HashSet", "its order is random: use a BTreeSet, a Vec or a fixed hasher", false),
    ("RandomState", "chance comes from `io::Env::random`", false),
    ("thread_local", "keep state in the core's own structures", false),
    ("static mut", "keep state in the core's own structures", false),
];

/// Pure crates name nothing impure.
pub fn purity(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|f| f.is_rust() && f.path.contains("/src/")) {
        if !file.crate_name().is_some_and(|name| PURE.contains(&name)) {
            continue;
        }
        let is_test = file.path.ends_with("tests.rs") || file.path.contains("/tests/");
        let product = if is_test { String::new() } else { without_tests(&file.code) };
        for (pattern, instead, tests_may) in IMPURE {
            let code = if *tests_may { &product } else { &file.code };
            for at in places(code, pattern) {
                let message = format!("`{pattern}` in a crate without I/O: {instead}");
                findings.push(Finding::new(file, line_of(code, at), message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    fn rust(path: &str, text: &str) -> File {
        File::new(path, text, false)
    }

    #[test]
    fn modules_without_a_purpose_are_found() {
        let files = [
            rust("a.rs", "//! A.\n"),
            rust("b.rs", "use x;\n//! late\n"),
            rust("c.rs", ""),
            rust("d.rs", "// plain\n"),
        ];
        expect(purpose, &files, &["b.rs:1", "c.rs:1", "d.rs:1"]);
    }

    #[test]
    fn dead_files_are_found() {
        let files = [
            rust("crates/a/src/lib.rs", "mod one;\n// mod two;\npub mod three;"),
            rust("crates/a/src/one.rs", ""),
            rust("crates/a/src/two.rs", ""),
            rust("crates/a/src/three/mod.rs", "mod four;"),
            rust("crates/a/src/three/four.rs", ""),
            rust("crates/b/src/one.rs", ""),
            rust("crates/a/tests/five.rs", ""),
        ];
        expect(reachable, &files, &["crates/a/src/two.rs:1", "crates/b/src/one.rs:1"]);
    }

    #[test]
    fn unsafe_elsewhere_is_found() {
        let text = "#![allow(unsafe_code)]\n// unsafe\nfn f() {\n unsafe { g() }\n}";
        let files = [
            rust("crates/io/src/buffer.rs", text),
            rust("crates/io/src/env.rs", text),
            rust("crates/runtime/src/reactor.rs", text),
            rust("crates/engine/tests/allocations.rs", text),
            rust("xtask/src/main.rs", text),
        ];
        expect(unsafe_address, &files, &["crates/io/src/env.rs:4", "xtask/src/main.rs:4"]);
    }

    #[test]
    fn impure_code_is_found_and_tests_are_treated_apart() {
        let text = "//! std::fs in words\nuse std::time::Instant;\n#[cfg(test)]\nmod tests {\n\
                    use std::fs;\nuse std::collections::HashMap;\n}\n";
        let files = [
            rust("crates/engine/src/a.rs", text),
            rust("crates/engine/src/tests.rs", "use std::fs;\nstatic mut X: u8 = 0;\n"),
            rust("crates/engine/tests/b.rs", text),
            rust("crates/drives/src/c.rs", text),
        ];
        let places = [
            "crates/engine/src/a.rs:2",
            "crates/engine/src/a.rs:6",
            "crates/engine/src/tests.rs:2",
        ];
        expect(purity, &files, &places);
    }

    #[test]
    fn every_ban_is_reported() {
        for (pattern, ..) in IMPURE {
            let file = rust("crates/nbd/src/lib.rs", &format!("use {pattern} ;\n"));
            expect(purity, &[file], &["crates/nbd/src/lib.rs:1"]);
        }
    }
}
