//! `cargo xtask sim` and `cargo xtask virtual`: start the trials of the engine in the simulator,
//! and the engine in virtual time.
//!
//! They are programs of their own, built with optimization; this passes the arguments on.
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
    start(root, &programs.trials, passed)
}

/// Builds and runs `palisade-virtual` with these arguments.
pub fn run_in_virtual_time(root: &Path, arguments: &[String]) -> ExitCode {
    let Some(programs) = trials::build(root, Kind::Mutable) else { return ExitCode::FAILURE };
    start(root, &programs.in_virtual_time, arguments.iter())
}

fn start<'a>(root: &Path, program: &Path, arguments: impl Iterator<Item = &'a String>) -> ExitCode {
    match trials::command(program).current_dir(root).args(arguments).status() {
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
            eprintln!("sim: cannot start {}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}
