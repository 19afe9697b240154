//! `palisade-trials`: runs trials of the engine in the simulator. `cargo xtask sim` starts it.

use std::ops::Range;
use std::process::ExitCode;
use trials::campaign::{self, Extent, Only};
use trials::course::{self, Found, Sum};
use trials::scenario::{Cuts, Scenario};
use trials::tally::Tally;
use trials::{exhaustive, mutation, named, regressions, shrink};

const USAGE: &str = "\
usage: cargo xtask sim [--seeds A..B] [--json] [--jobs N] [--seconds N] [--points N]
                       [--least N] [--trouble KIND]
       cargo xtask sim --seed S [--trace] [--without N,…] [--one-core]
                       [--one-lane] [--sessions N] [--picture N]
       cargo xtask sim --mutant list|NAME|NAME,…|all
       cargo xtask sim --exhaustive OPS [--level 0|1|5|6|10|jbod] [--most N] [--json]
       cargo xtask sim --named NAME|all [--jobs N] [--json]
       cargo xtask sim --regressions
With --plain, beside any of these but --mutant, the known bugs are not compiled in.
Status: 0 nothing found, 1 found (a line `seed S commit C: …`), 2 not understood.";

/// What was asked for.
#[derive(Clone, Default)]
struct Wish {
    seeds: Option<Range<u64>>,
    seed: Option<u64>,
    cuts: Cuts,
    json: bool,
    trace: bool,
    once: bool,
    regressions: bool,
    jobs: Option<usize>,
    seconds: Option<f64>,
    points: Option<u64>,
    /// With fewer crash points the run fails.
    least: Option<u64>,
    mutant: Option<String>,
    only: Option<Only>,
    exhaustive: Option<usize>,
    level: Option<String>,
    most: Option<u64>,
    named: Option<String>,
}

fn parse(arguments: &[String]) -> Option<Wish> {
    let mut wish = Wish::default();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next();
        match word.as_str() {
            "--seeds" => {
                let (from, to) = value()?.split_once("..")?;
                wish.seeds = Some(from.parse().ok()?..to.parse().ok()?);
            }
            "--seed" => wish.seed = Some(value()?.parse().ok()?),
            "--without" => {
                let list = value()?.split(',').map(|n| n.parse().ok());
                wish.cuts.without = list.collect::<Option<_>>()?;
            }
            "--one-core" => wish.cuts.one_core = true,
            "--one-lane" => wish.cuts.one_lane = true,
            "--sessions" => wish.cuts.sessions = Some(value()?.parse().ok()?),
            "--picture" => wish.cuts.picture = Some(value()?.parse().ok()?),
            "--json" => wish.json = true,
            "--trace" => wish.trace = true,
            "--once" => wish.once = true,
            "--regressions" => wish.regressions = true,
            "--jobs" => wish.jobs = Some(value()?.parse().ok()?),
            "--seconds" => wish.seconds = Some(value()?.parse().ok()?),
            "--points" => wish.points = Some(value()?.parse().ok()?),
            "--least" => wish.least = Some(value()?.parse().ok()?),
            "--trouble" => wish.only = Some(Only::named(value()?)?),
            "--mutant" => wish.mutant = Some(value()?.clone()),
            "--exhaustive" => wish.exhaustive = Some(value()?.parse().ok()?),
            "--level" => wish.level = Some(value()?.clone()),
            "--named" => wish.named = Some(value()?.clone()),
            "--most" => wish.most = Some(value()?.parse().ok()?),
            _ => return None,
        }
    }
    Some(wish)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(wish) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let said = wish.clone();
    course::take_panics(move |sum| _ = end(sum, &[], &said));
    if let Some(mutant) = &wish.mutant
        && let Some(over) = mutation::command(mutant, &hunt(&wish))
    {
        return over;
    }
    if let Some(operations) = wish.exhaustive {
        return exhaustively(operations, &wish);
    }
    if let Some(name) = &wish.named {
        return named(name, &wish);
    }
    if let Some(seed) = wish.seed {
        return replay(seed, &wish);
    }
    if wish.mutant.is_none()
        && let Some(over) = again_first(&wish)
    {
        return over;
    }
    let seeds = wish.seeds.clone().unwrap_or(0..if wish.regressions { 0 } else { 1000 });
    campaign(seeds, &wish)
}

/// How mutants are looked for, if no seeds are named.
fn hunt(wish: &Wish) -> mutation::Hunt {
    let named = wish.seed.is_some() || wish.seeds.is_some() || wish.named.is_some();
    mutation::Hunt { named, seconds: wish.seconds, jobs: wish.jobs }
}

/// Replays what was found before; its end if that is found again.
fn again_first(wish: &Wish) -> Option<ExitCode> {
    course::from(wish.seeds.as_ref().map_or(0, |seeds| seeds.start));
    let list = regressions::all();
    for (seed, cuts) in &list {
        if let Err(failure) = campaign::one(*seed, cuts, &mut Tally::default()) {
            course::note(Found { called: format!("{seed}{cuts}"), failure });
            return Some(end(&course::so_far(), &[], wish));
        }
    }
    if !wish.json {
        println!("{} regression seeds find nothing", list.len());
    }
    None
}

fn campaign(seeds: Range<u64>, wish: &Wish) -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let extent = Extent {
        seeds,
        jobs: wish.jobs.unwrap_or(cores),
        seconds: wish.seconds,
        points: wish.points,
        only: wish.only,
    };
    let sum = campaign::run(&extent);
    let silent = campaign::silent(&sum.tally).into_iter();
    let silent = silent.map(|kind| format!("no fault of the kind `{kind}` ever fired"));
    let blind = campaign::blind(&sum.tally).into_iter();
    let blind = blind.map(|what| format!("no oracle ever looked at `{what}`"));
    let points = sum.tally.points;
    let few = wish.least.filter(|least| sum.found.is_none() && points < *least);
    let few = few.map(|least| format!("only {points} crash points of the {least} that must be"));
    end(&sum, &silent.chain(blind).chain(few).collect::<Vec<_>>(), wish)
}

/// Says what a run came to, what was found, and what it lacks; its status.
fn end(sum: &Sum, lacks: &[String], wish: &Wish) -> ExitCode {
    if wish.json {
        println!("{}", campaign::json(sum));
    }
    if let Some(found) = &sum.found {
        say(found, wish);
    }
    if !wish.json {
        println!("{}", campaign::report(sum));
    }
    lacks.iter().for_each(|line| println!("{line}"));
    if let (Some(found), false) = (&sum.found, wish.once) {
        // Once more at the end, where the tail of a log shows it.
        println!("{}", campaign::line(found));
    }
    if sum.found.is_none() && lacks.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Says what was found, and makes it small if nothing is cut from it.
fn say(found: &Found, wish: &Wish) {
    let line = campaign::line(found);
    println!("{line}");
    let whole = found.seed().filter(|seed| found.called == seed.to_string());
    let Some(seed) = whole.filter(|_| !wish.once && !wish.json && wish.seed.is_none()) else {
        return;
    };
    let (cuts, small) = shrink::shrink(seed, &line);
    println!("shrunk: --seed {seed}{cuts}\n{small}");
    print!("{}", Scenario::new(seed).reduced(&cuts));
}

fn replay(seed: u64, wish: &Wish) -> ExitCode {
    if wish.trace {
        print!("{}", Scenario::new(seed).reduced(&wish.cuts));
    }
    course::from(seed + 1);
    let mut tally = Tally::default();
    let outcome = campaign::one(seed, &wish.cuts, &mut tally);
    course::add(&tally, None);
    if let Err(failure) = outcome {
        course::note(Found { called: format!("{seed}{}", wish.cuts), failure });
    }
    let sum = course::so_far();
    if let Some(found) = &sum.found {
        println!("{}", campaign::line(found));
    }
    if wish.json {
        println!("{}", campaign::json(&sum));
    } else if !wish.once {
        println!("{}\nhash of events {:x}", campaign::report(&sum), sum.tally.trace);
    }
    if sum.found.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn named(name: &str, wish: &Wish) -> ExitCode {
    let list = named::called(name);
    if list.is_empty() {
        eprintln!("no word is called {name}; crates/trials/src/named.rs has them all");
        return ExitCode::from(2);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    named::run(&list, wish.jobs.unwrap_or(cores), !wish.json);
    end(&course::so_far(), &[], wish)
}

fn exhaustively(operations: usize, wish: &Wish) -> ExitCode {
    let Some(levels) = exhaustive::levels(wish.level.as_deref()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    for level in levels {
        let mut tally = Tally::default();
        course::begins(format!("exhaustive {level}"));
        let outcome = exhaustive::run(level, operations, wish.most, &mut tally);
        course::add(&tally, None);
        let called = course::ends().unwrap_or_default();
        if let Err(failure) = outcome {
            course::note(Found { called, failure });
            break;
        }
        if !wish.json {
            let ([all, tried, out], points) = (tally.combinations, tally.points);
            println!(
                "RAID {level}: {all} combinations, {tried} tried that differ, {out} left out; \
                 {points} crash points"
            );
        }
    }
    end(&course::so_far(), &[], wish)
}
