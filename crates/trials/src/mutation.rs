//! Mutants: known bugs, switched on one at a time, that the oracles must catch.
//!
//! The engine is built with its `mutants` feature for this only. A mutant is *caught* when some
//! seed finds something; each runs in a process of its own, since assertions end processes.

use std::process::ExitCode;

/// Seconds that a mutant may take to be caught.
#[cfg(feature = "mutants")]
const LIMIT: f64 = 120.0;

/// Carries out `--mutant WHAT`. `None`: the mutant is on, and the caller goes on with its seed.
#[cfg(not(feature = "mutants"))]
pub fn command(_: &str, _: bool, _: Option<f64>) -> Option<ExitCode> {
    eprintln!("this build has no mutants: cargo xtask sim --mutant builds one that does");
    Some(ExitCode::from(2))
}

/// Carries out `--mutant WHAT`. `None`: the mutant is on, and the caller goes on with its seed.
#[cfg(feature = "mutants")]
pub fn command(what: &str, replay: bool, seconds: Option<f64>) -> Option<ExitCode> {
    use engine::mutants::{ALL, switch_on};
    if what == "list" {
        for (mutant, name, about) in ALL {
            println!("{name:28} {about} ({mutant:?})");
        }
        return Some(ExitCode::SUCCESS);
    }
    if what == "all" || what.contains(',') {
        let names: Vec<&str> = match what {
            "all" => ALL.iter().map(|(_, name, _)| *name).collect(),
            list => list.split(',').collect(),
        };
        return Some(several(&names, seconds.unwrap_or(LIMIT)));
    }
    let Some((mutant, name, _)) = ALL.iter().find(|(_, name, _)| *name == what) else {
        eprintln!("no mutant is called {what}; see --mutant list");
        return Some(ExitCode::from(2));
    };
    switch_on(*mutant);
    if replay {
        return None;
    }
    Some(one(name, seconds.unwrap_or(LIMIT)))
}

/// Runs seeds until the mutant that is on is caught.
#[cfg(feature = "mutants")]
fn one(name: &str, seconds: f64) -> ExitCode {
    use crate::campaign;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let extent =
        campaign::Extent { seeds: 0..u64::MAX, jobs: cores, seconds: Some(seconds), points: None };
    let sum = campaign::run(&extent);
    match &sum.found {
        Some((seed, failure)) => {
            println!("{}", campaign::line(&seed.to_string(), failure));
            println!("mutant {name} caught by {}", failure.oracle);
            ExitCode::FAILURE
        }
        None => {
            println!("mutant {name} not caught in {} crash points", sum.tally.points);
            ExitCode::SUCCESS
        }
    }
}

/// Runs each of these mutants in a process of its own.
#[cfg(feature = "mutants")]
fn several(names: &[&str], seconds: f64) -> ExitCode {
    let mut caught = 0;
    for name in names {
        let begun = std::time::Instant::now();
        let program = std::env::current_exe().expect("this program has a path");
        let limit = seconds.to_string();
        let arguments = ["--mutant", name, "--seconds", &limit];
        let output = std::process::Command::new(program).args(arguments).output();
        let output = output.expect("this program can be started again");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = output.status.code() == Some(1);
        caught += usize::from(found);
        let line = said.lines().find(|l| l.starts_with("seed ")).unwrap_or("NOT CAUGHT");
        let short: String = line.chars().take(150).collect();
        println!("{name:24} {:6.1} s  {short}", begun.elapsed().as_secs_f64());
    }
    println!("caught {caught} of {}", names.len());
    if caught == names.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
