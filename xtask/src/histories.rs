//! `cargo xtask histories`: starts the random histories of NVMe/TCP connections.
//!
//! They are a test of `nvme-target`, built as the trials of the engine are.

use crate::trials::{self, Kind};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{ExitCode, Stdio};

const USAGE: &str = "\
usage: cargo xtask histories --seeds A..B [--seconds N] [--plain]
       cargo xtask histories --mutants";

/// What to run.
#[derive(Default)]
struct Wanted {
    seeds: Option<String>,
    seconds: Option<String>,
    mutants: bool,
    plain: bool,
}

fn wanted(arguments: &[String]) -> Option<Wanted> {
    let mut wanted = Wanted::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seeds" => wanted.seeds = Some(rest.next()?.clone()),
            "--seconds" => wanted.seconds = Some(rest.next()?.clone()),
            "--mutants" => wanted.mutants = true,
            "--plain" => wanted.plain = true,
            _ => return None,
        }
    }
    let is_one = wanted.mutants != wanted.seeds.is_some() && !(wanted.mutants && wanted.plain);
    is_one.then_some(wanted)
}

/// What the test harness says around a test's own lines.
fn is_harness(line: &str) -> bool {
    let is_dots = line.chars().all(|c| matches!(c, '.' | 'F'));
    is_dots || line.starts_with("running ") || line.starts_with("test ")
}

/// Builds and runs the histories that the arguments name.
pub fn run(root: &Path, arguments: &[String]) -> ExitCode {
    let Some(wanted) = wanted(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let kind = if wanted.plain { Kind::Plain } else { Kind::Mutable };
    let Some(programs) = trials::build(root, kind) else { return ExitCode::FAILURE };
    let mut command = trials::command(&programs.histories);
    command.current_dir(root).stdout(Stdio::piped());
    for (name, value) in
        [("PALISADE_HISTORIES", &wanted.seeds), ("PALISADE_HISTORIES_SECONDS", &wanted.seconds)]
    {
        value.iter().for_each(|value| {
            command.env(name, value);
        });
    }
    let test = if wanted.mutants { "mutants_are_caught" } else { "histories_at_random" };
    command.args(["--quiet", "--nocapture", "--exact", test]);
    match command.spawn().and_then(|mut child| {
        let said = child.stdout.take().into_iter().flat_map(|said| BufReader::new(said).lines());
        let mut lines = 0;
        said.map_while(Result::ok).filter(|line| !is_harness(line)).for_each(|line| {
            println!("{line}");
            lines += 1;
        });
        child.wait().map(|status| (status, lines))
    }) {
        Ok((_, 0)) => {
            eprintln!("histories: there is no test {test} any more");
            ExitCode::FAILURE
        }
        Ok((status, _)) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("histories: cannot start {}: {error}", programs.histories.display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_or_mutants_are_wanted() {
        let said = |text: &str| {
            let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            wanted(&arguments).is_some()
        };
        assert!(said("--mutants") && said("--seeds 0..9") && said("--seconds 5 --seeds 0..9"));
        assert!(said("--seeds 0..9 --plain") && !said("--mutants --plain") && !said("--plain"));
        assert!(
            !said("") && !said("--seeds") && !said("--mutants --seeds 0..9") && !said("--seed")
        );
    }

    #[test]
    fn only_lines_of_tests_are_passed_on() {
        let lines = ["", ".", "running 1 test", "test result: ok. 1 passed", "3 of 3 caught"];
        assert_eq!(lines.map(is_harness), [true, true, true, true, false]);
    }
}
