//! Mutants: known bugs, switched on one at a time, that the oracles must catch.
//!
//! The engine is built with its `mutants` feature for this only. A mutant is *caught* by a seed
//! that finds something with it and nothing without it. What runs with a mutant is a process of
//! its own, since assertions end processes; this one reads what it said.
//!
//! Some mutants show only in a trouble that few seeds have ([`crate::trouble`]): of these only the
//! seeds with that trouble are run, the same ones that any run has.

use std::process::ExitCode;

/// How mutants are looked for.
#[derive(Clone, Copy, Default, Debug)]
pub struct Hunt {
    /// Seeds are named: they are run with the mutant on, and nothing else is done.
    pub named: bool,
    /// Seconds that a mutant may take to be caught.
    pub seconds: Option<f64>,
    /// Threads.
    pub jobs: Option<usize>,
}

/// Carries out `--mutant WHAT`. `None`: the mutant is on, and the caller goes on with its seeds.
#[cfg(not(feature = "mutants"))]
pub fn command(_: &str, _: &Hunt) -> Option<ExitCode> {
    eprintln!("this build has no mutants: cargo xtask sim --mutant builds one that does");
    Some(ExitCode::from(2))
}

#[cfg(feature = "mutants")]
pub use hunting::command;

#[cfg(feature = "mutants")]
mod hunting {
    use super::{ExitCode, Hunt};
    use crate::campaign::{DEAD, SHELF, TAKEN};
    use crate::trouble::KINDS;
    use engine::mutants::Mutant;
    use std::process::{Command, Output};
    use std::time::Instant;

    /// Seconds that a mutant may take to be caught.
    const LIMIT: f64 = 600.0;

    /// A bug of whichever crate.
    #[derive(Clone, Copy)]
    enum Bug {
        Engine(Mutant),
        Host(nvme_host::mutants::Mutant),
        Target(nvme_target::mutants::Mutant),
    }

    impl Bug {
        fn switch_on(self) {
            match self {
                Self::Engine(own) => engine::mutants::switch(Some(own)),
                Self::Host(own) => nvme_host::mutants::switch(Some(own)),
                Self::Target(own) => nvme_target::mutants::switch(Some(own)),
            }
        }
    }

    /// All bugs that trials are to catch: what each is called, and what is wrong with it.
    fn all() -> Vec<(Bug, &'static str, &'static str)> {
        let engine = engine::mutants::ALL.iter().map(|own| (Bug::Engine(own.0), own.1, own.2));
        let host = nvme_host::mutants::ALL.iter().map(|own| (Bug::Host(own.0), own.1, own.2));
        let target = nvme_target::mutants::ALL.iter();
        let target = target.filter(|own| nvme_target::mutants::OF_TRIALS.contains(&own.0));
        let target = target.map(|own| (Bug::Target(own.0), own.1, own.2));
        engine.chain(host).chain(target).collect()
    }

    /// The trouble in which a mutant shows.
    fn trouble(bug: Bug) -> Option<&'static str> {
        use crate::trouble::Kind;
        let Bug::Engine(mutant) = bug else { return Some(SHELF) };
        if matches!(mutant, Mutant::OwnerUnread | Mutant::TakeOverEarly) {
            return Some(TAKEN);
        }
        if mutant == Mutant::ProcessKept {
            return Some(DEAD);
        }
        let kind = match mutant {
            Mutant::QuarantineOff | Mutant::TimeoutIsDone | Mutant::DeadlineOff => Kind::Hung,
            Mutant::MissedForgotten | Mutant::CatchUpSince | Mutant::CatchUpClean => Kind::Away,
            Mutant::JoinWithoutPages => Kind::Away,
            Mutant::SweepInFlight => Kind::Held,
            Mutant::PageErrorLost => Kind::First,
            Mutant::FlushErrorLost => Kind::Flush,
            Mutant::NoBarrier => Kind::Race,
            Mutant::FillFails | Mutant::LostUnlisted | Mutant::LostRead => Kind::Filled,
            Mutant::LostKept | Mutant::LostForgotten | Mutant::HealEarly => Kind::Filled,
            Mutant::JournalRingEarly => Kind::Again,
            Mutant::FlightSamePlace | Mutant::PageSamePlace => Kind::Brown,
            Mutant::DoubtUnlisted => Kind::Brown,
            Mutant::ReplayLoneNewest => Kind::Lone,
            Mutant::PauseForgotten | Mutant::ModifyUnread => Kind::Paused,
            Mutant::CatchUpTrusts => Kind::Paused,
            Mutant::NewRowsNotZeroed => Kind::Rows,
            _ => return None,
        };
        KINDS.iter().find(|(k, _)| *k == kind).map(|(_, name)| *name)
    }

    /// Carries out `--mutant WHAT`. `None`: the mutant is on, and the caller goes on with its
    /// seeds.
    pub fn command(what: &str, hunt: &Hunt) -> Option<ExitCode> {
        let all = all();
        if what == "list" {
            for (_, name, about) in all {
                println!("{name:28} {about}");
            }
            return Some(ExitCode::SUCCESS);
        }
        let names: Vec<&str> = match what {
            "all" => all.iter().map(|(_, name, _)| *name).collect(),
            list => list.split(',').collect(),
        };
        let known = |name: &&&str| !all.iter().any(|(_, n, _)| n == *name);
        if let Some(name) = names.iter().find(known) {
            eprintln!("no mutant is called {name}; see --mutant list");
            return Some(ExitCode::from(2));
        }
        let mutant = |name: &str| all.iter().find(|(_, n, _)| *n == name).expect("known").0;
        if hunt.named && names.len() == 1 {
            mutant(names[0]).switch_on();
            return None;
        }
        if what == "all" || names.len() > 1 {
            return Some(several(&names, mutant, hunt));
        }
        let line = one(names[0], trouble(mutant(names[0])), hunt);
        match line.as_deref().map(|line| (line, oracle(line))) {
            Some((line, oracle)) => println!("{line}\nmutant {what} caught by {oracle}"),
            None => println!("mutant {what} not caught"),
        }
        Some(if line.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// The oracle that a line names.
    fn oracle(line: &str) -> &str {
        line.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("?", |(o, _)| o)
    }

    /// Runs this program again.
    fn again(arguments: &[String]) -> Output {
        let program = std::env::current_exe().expect("this program has a path");
        let output = Command::new(program).args(arguments).arg("--once").output();
        output.expect("this program can be started again")
    }

    /// The line about what a run found.
    fn found(output: &Output) -> Option<String> {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.lines().find(|line| line.starts_with("seed ")).map(str::to_owned)
    }

    /// Runs seeds until one catches the mutant: its line.
    fn one(name: &str, trouble: Option<&str>, hunt: &Hunt) -> Option<String> {
        let begun = Instant::now();
        let limit = hunt.seconds.unwrap_or(LIMIT);
        let mut from = 0;
        loop {
            let left = limit - begun.elapsed().as_secs_f64();
            if left < 0.0 {
                return None;
            }
            let words = format!("--mutant {name} --seeds {from}..{} --seconds {left}", u64::MAX);
            let mut arguments: Vec<String> = words.split(' ').map(str::to_owned).collect();
            for (option, value) in [
                ("--trouble", trouble.map(str::to_owned)),
                ("--jobs", hunt.jobs.map(|n| n.to_string())),
            ] {
                arguments.extend(value.into_iter().flat_map(|v| [option.to_owned(), v]));
            }
            let line = found(&again(&arguments))?;
            let seed = line.split(' ').nth(1)?.to_owned();
            if again(&["--seed".to_owned(), seed.clone()]).status.success() {
                return Some(line);
            }
            // That would be found without the mutant as well.
            eprintln!("not the mutant's: {line}");
            from = seed.parse::<u64>().ok()? + 1;
        }
    }

    fn several(names: &[&str], mutant: impl Fn(&str) -> Bug, hunt: &Hunt) -> ExitCode {
        let mut caught = 0;
        for name in names {
            let begun = Instant::now();
            let line = one(name, trouble(mutant(name)), hunt);
            caught += usize::from(line.is_some());
            let line = line.unwrap_or_else(|| "NOT CAUGHT".into());
            let short: String = line.chars().take(150).collect();
            println!("{name:24} {:6.1} s  {short}", begun.elapsed().as_secs_f64());
        }
        println!("caught {caught} of {}", names.len());
        if caught == names.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
