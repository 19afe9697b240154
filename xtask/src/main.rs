//! Developer commands, run as `cargo xtask NAME`.
//!
//! Purpose: checks and chores that `rustc` and clippy don't cover, in the project's own language.
//! Invariant: no dependencies, so that it builds in a second and before anything else does.

mod histories;
mod sim;
mod tidy;
mod trials;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy
       cargo xtask sim [--seeds A..B] [--json] …
       cargo xtask histories --seeds A..B | --mutants
  tidy       check the house rules
  sim        try the engine in the simulator (see crates/trials)
  histories  try the NVMe/TCP target in the simulator (see crates/nvme-target/tests)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => run_tidy(),
        ["sim", ..] => sim::run(root(), &arguments[1..]),
        ["histories", ..] => histories::run(root(), &arguments[1..]),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

fn run_tidy() -> ExitCode {
    let files = match tidy::files::collect(root()) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("tidy: cannot read the tree: {error}");
            return ExitCode::FAILURE;
        }
    };
    let findings = tidy::check(&files);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
