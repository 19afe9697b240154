//! `cargo xtask sim`: starts the trials of the engine in the simulator.
//!
//! The trials are a program of their own, built with optimization; this passes the arguments on.
//! `--plain` is this command's own: the program without the known bugs.

use crate::trials::{self, Kind};
use std::path::Path;
use std::process::ExitCode;

/// Builds and runs `palisade-trials` with these arguments.
pub fn run(root: &Path, arguments: &[String]) -> ExitCode {
    let plain = arguments.iter().any(|argument| argument == "--plain");
    let kind = if plain { Kind::Plain } else { Kind::Mutable };
    let Some(programs) = trials::build(root, kind) else { return ExitCode::FAILURE };
    let passed = arguments.iter().filter(|argument| *argument != "--plain");
    match trials::command(&programs.trials).current_dir(root).args(passed).status() {
        Ok(status) => status.code().map_or_else(
            || {
                eprintln!(
                    "sim: the trials were ended: {status}; dmesg says whether memory was short"
                );
                ExitCode::FAILURE
            },
            |code| ExitCode::from(code as u8),
        ),
        Err(error) => {
            eprintln!("sim: cannot start {}: {error}", programs.trials.display());
            ExitCode::FAILURE
        }
    }
}
