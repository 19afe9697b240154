//! `cargo xtask sim`: starts the trials of the engine in the simulator.
//!
//! The trials are a program of their own, built with optimization; this passes the arguments on.

use crate::trials;
use std::path::Path;
use std::process::ExitCode;

/// Builds and runs `palisade-trials` with these arguments.
pub fn run(root: &Path, arguments: &[String]) -> ExitCode {
    let Some(programs) = trials::build(root) else { return ExitCode::FAILURE };
    match trials::command(&programs.trials).current_dir(root).args(arguments).status() {
        Ok(status) => status.code().map_or(ExitCode::FAILURE, |code| ExitCode::from(code as u8)),
        Err(error) => {
            eprintln!("sim: cannot start {}: {error}", programs.trials.display());
            ExitCode::FAILURE
        }
    }
}
