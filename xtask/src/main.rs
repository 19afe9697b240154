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
usage: cargo xtask tidy [--write]
       cargo xtask sim [--plain] [--seeds A..B] [--json] …
       cargo xtask virtual --model NAME [--level 5] [--drives 8] [--cores N] [--json] …
       cargo xtask histories --seeds A..B [--plain] | --mutants
  tidy       check the house rules; --write: first make the pages anew that are made of others
  sim        try the engine in the simulator (see crates/trials)
  virtual    the engine over drives of a model, in virtual time (see crates/trials)
  histories  try the NVMe/TCP target in the simulator (see crates/nvme-target/tests)
  --plain    the same code as the daemon's: no known bugs compiled in";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => run_tidy(false),
        ["tidy", "--write"] => run_tidy(true),
        ["sim", ..] => sim::run(root(), &arguments[1..]),
        ["virtual", ..] => sim::run_in_virtual_time(root(), &arguments[1..]),
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

fn run_tidy(write: bool) -> ExitCode {
    let files = match read_tree(write) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("tidy: cannot read or write the tree: {error}");
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

/// The files of the tree, after pages that are made of others were written.
fn read_tree(write: bool) -> std::io::Result<Vec<tidy::files::File>> {
    let files = tidy::files::collect(root())?;
    if !write {
        return Ok(files);
    }
    for (path, text) in tidy::promises::written(&files) {
        std::fs::write(root().join(path), text)?;
    }
    tidy::files::collect(root())
}
