//! `cargo xtask sim`: starts the trials of the engine in the simulator.
//!
//! The trials are a program of their own, built with optimization; this passes the arguments on.
//! Mutants are a feature of the engine: a build with them has a folder of its own, so that the
//! engine the product links never has them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where builds with mutants go, within the folder of all builds.
const MUTANTS: &str = "mutants";

/// The folder of builds with mutants.
pub fn mutants_folder() -> PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into());
    Path::new(&target).join(MUTANTS)
}

/// Buffers of megabytes come and go for every world: memory is kept, not given back.
pub fn keep_memory(command: &mut Command) {
    command.env("MALLOC_MMAP_THRESHOLD_", "33554432").env("MALLOC_TRIM_THRESHOLD_", "1073741824");
}

/// Builds and runs `palisade-trials` with these arguments.
pub fn run(root: &Path, arguments: &[String]) -> ExitCode {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command.args(["run", "--quiet", "--release", "--locked", "--package", "palisade-trials"]);
    if arguments.iter().any(|a| a == "--mutant") {
        command.args(["--features", "mutants", "--target-dir"]).arg(mutants_folder());
    }
    keep_memory(&mut command);
    command.arg("--").args(arguments);
    match command.status() {
        Ok(status) => status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)),
        Err(error) => {
            eprintln!("sim: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
