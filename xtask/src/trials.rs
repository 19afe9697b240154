//! What tries the engine and the NVMe/TCP target in the simulator: built once, for every command.
//!
//! Invariant: whoever runs one of these programs builds all, with the same profile and the same
//! features, so that no crate is compiled twice. The features compile known bugs in, each of them
//! off unless a command switches it on; a profile of their own keeps what they are built into apart
//! from what the product links. Plain programs are built without these features, in a folder of
//! their own: long runs try exactly the code that the daemon links.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is built.
pub struct Programs {
    /// `palisade-trials`, the trials of the engine.
    pub trials: PathBuf,
    /// The test program of `nvme-target`'s histories.
    pub histories: PathBuf,
    /// `palisade-virtual`, the engine in virtual time.
    pub in_virtual_time: PathBuf,
}

/// How the programs are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// With known bugs compiled in, each of them off until a command switches it on.
    Mutable,
    /// Without them.
    Plain,
}

/// All that is asked of cargo for either kind.
const BUILD: &[&str] = &[
    "build",
    "--quiet",
    "--locked",
    "--profile=trials",
    "--package=palisade-trials",
    "--package=palisade-nvme-target",
    "--bin=palisade-trials",
    "--bin=palisade-virtual",
    "--test=histories",
    "--message-format=json-render-diagnostics",
];

/// What is asked of cargo besides; `target` is its usual folder.
fn extra(kind: Kind, target: &Path) -> String {
    match kind {
        Kind::Mutable => "--features=palisade-trials/mutants,palisade-nvme-target/mutants".into(),
        Kind::Plain => format!("--target-dir={}", target.join("plain").display()),
    }
}

/// The program that a line of cargo's JSON says was made of the target of this name.
fn executable<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once("\"executable\":\"")?;
    let is_named = line.contains(&format!("\"name\":\"{name}\""));
    is_named.then(|| rest.split('"').next()).flatten()
}

/// Builds all programs; `None` where that fails, which cargo has said then.
pub fn build(root: &Path, kind: Kind) -> Option<Programs> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(BUILD).arg(extra(kind, Path::new(&target)));
    let started = command.stdout(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            eprintln!("cannot start cargo: {error}");
            return None;
        }
    };
    let [mut trials, mut histories, mut in_virtual_time] = [None, None, None];
    let said = child.stdout.take().into_iter().flat_map(|said| BufReader::new(said).lines());
    for line in said.map_while(Result::ok) {
        for (name, place) in [
            ("palisade-trials", &mut trials),
            ("histories", &mut histories),
            ("palisade-virtual", &mut in_virtual_time),
        ] {
            if let Some(path) = executable(&line, name) {
                *place = Some(PathBuf::from(path));
            }
        }
    }
    child.wait().ok().filter(|status| status.success())?;
    Some(Programs { trials: trials?, histories: histories?, in_virtual_time: in_virtual_time? })
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
    fn plain_programs_have_no_known_bugs_and_a_folder_of_their_own() {
        let [mutable, plain] = [Kind::Mutable, Kind::Plain].map(|kind| extra(kind, Path::new("t")));
        assert!(mutable.starts_with("--features=") && mutable.contains("mutants"), "{mutable}");
        assert_eq!(plain, "--target-dir=t/plain");
        assert!(!BUILD.iter().any(|word| word.contains("mutants")));
    }

    #[test]
    fn programs_are_found_by_their_targets() {
        let line = "{\"target\":{\"kind\":[\"test\"],\"name\":\"histories\"},\
                    \"executable\":\"/t/histories-1\",\"fresh\":true}";
        assert_eq!(executable(line, "histories"), Some("/t/histories-1"));
        assert_eq!(executable(line, "palisade-trials"), None);
        assert_eq!(executable("{\"name\":\"histories\",\"executable\":null}", "histories"), None);
    }
}
