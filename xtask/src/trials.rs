//! What tries the engine and the NVMe/TCP target in the simulator: built once, for every command.
//!
//! Invariant: whoever runs one of these programs builds both, with the same profile and the same
//! features, so that no crate is compiled twice. The features switch known bugs on, one at a time,
//! where a command says so; a profile of their own keeps what they are built into apart from what
//! the product links.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is built.
pub struct Programs {
    /// `palisade-trials`, the trials of the engine.
    pub trials: PathBuf,
    /// The test program of `nvme-target`'s histories.
    pub histories: PathBuf,
}

/// All that is asked of cargo.
const BUILD: &[&str] = &[
    "build",
    "--quiet",
    "--locked",
    "--profile=trials",
    "--package=palisade-trials",
    "--package=palisade-nvme-target",
    "--features=palisade-trials/mutants,palisade-nvme-target/mutants",
    "--bin=palisade-trials",
    "--test=histories",
    "--message-format=json-render-diagnostics",
];

/// The program that a line of cargo's JSON says was made of the target of this name.
fn executable<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once("\"executable\":\"")?;
    let is_named = line.contains(&format!("\"name\":\"{name}\""));
    is_named.then(|| rest.split('"').next()).flatten()
}

/// Builds both programs; `None` where that fails, which cargo has said then.
pub fn build(root: &Path) -> Option<Programs> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut command = Command::new(cargo);
    let started = command.current_dir(root).args(BUILD).stdout(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            return None;
        }
    };
    let [mut trials, mut histories] = [None, None];
    let said = child.stdout.take().into_iter().flat_map(|said| BufReader::new(said).lines());
    for line in said.map_while(Result::ok) {
        for (name, place) in [("palisade-trials", &mut trials), ("histories", &mut histories)] {
            if let Some(path) = executable(&line, name) {
                *place = Some(PathBuf::from(path));
            }
        }
    }
    child.wait().ok().filter(|status| status.success())?;
    Some(Programs { trials: trials?, histories: histories? })
}

/// Starts one of them. Buffers of megabytes come and go for every world: memory is kept, not given
/// back.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("MALLOC_MMAP_THRESHOLD_", "33554432").env("MALLOC_TRIM_THRESHOLD_", "1073741824");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_their_targets() {
        let line = "{\"target\":{\"kind\":[\"test\"],\"name\":\"histories\"},\
                    \"executable\":\"/t/histories-1\",\"fresh\":true}";
        assert_eq!(executable(line, "histories"), Some("/t/histories-1"));
        assert_eq!(executable(line, "palisade-trials"), None);
        assert_eq!(executable("{\"name\":\"histories\",\"executable\":null}", "histories"), None);
    }
}
