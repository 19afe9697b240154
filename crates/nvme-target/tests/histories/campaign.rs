//! Many histories, on several threads, each history on one; and known bugs that they must catch.
//!
//! Invariants
//! - What a history does depends on nothing but its seed.
//! - One that panics is named by its seed; of several that do, the smallest counts.

use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Which histories to run.
pub struct Extent {
    pub seeds: Range<u64>,
    /// No new one after so many seconds.
    pub seconds: f64,
}

/// What came of them.
#[derive(Default)]
pub struct Sum {
    /// Epochs that ended as they should.
    pub whole: u64,
    /// The first seed that was not run.
    pub next: u64,
    pub seconds: f64,
    /// The seed of one that failed, and what it said.
    pub failed: Option<(u64, String)>,
}

/// What a history that panicked said, in one line.
fn told(payload: &(dyn core::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Threads: as many as there are cores.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs histories until one fails, or it is far enough.
pub fn run(extent: &Extent, history: fn(u64) -> u64) -> Sum {
    let begun = Instant::now();
    let next = AtomicU64::new(extent.seeds.start);
    let over = AtomicBool::new(false);
    let sum = Mutex::new(Sum { next: extent.seeds.start, ..Sum::default() });
    let work = || {
        while !over.load(Ordering::Relaxed) && begun.elapsed().as_secs_f64() < extent.seconds {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= extent.seeds.end {
                return;
            }
            let outcome = catch_unwind(|| history(seed));
            let mut sum = sum.lock().unwrap();
            sum.next = sum.next.max(seed + 1);
            match outcome {
                Ok(whole) => sum.whole += whole,
                Err(payload) => {
                    over.store(true, Ordering::Relaxed);
                    if sum.failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                        sum.failed = Some((seed, told(&*payload)));
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(work);
        }
    });
    Sum { seconds: begun.elapsed().as_secs_f64(), ..sum.into_inner().unwrap() }
}

/// The histories that `PALISADE_HISTORIES=FROM..TO` names, or the first 200, for as long as
/// `PALISADE_HISTORIES_SECONDS` says.
pub fn extent() -> Extent {
    let range = std::env::var("PALISADE_HISTORIES").unwrap_or("0..200".into());
    let (from, to) = range.split_once("..").expect("FROM..TO");
    let seconds = std::env::var("PALISADE_HISTORIES_SECONDS");
    Extent {
        seeds: from.parse().unwrap()..to.parse().unwrap(),
        seconds: seconds.map_or(f64::INFINITY, |seconds| seconds.parse().unwrap()),
    }
}

/// Histories that failed once.
const FAILED_ONCE: &str = include_str!("regressions");

/// Runs the histories that failed once; the first that fails again. How many there are.
pub fn again(history: fn(u64) -> u64) -> Result<usize, (u64, String)> {
    let lines = FAILED_ONCE.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let seeds = lines.filter(|line| !line.is_empty()).map(|line| line.parse().expect("a seed"));
    let seeds: Vec<u64> = seeds.collect();
    for seed in &seeds {
        catch_unwind(|| history(*seed)).map_err(|payload| (*seed, told(&*payload)))?;
    }
    Ok(seeds.len())
}

/// Histories within which a mutant must be caught.
#[cfg(feature = "mutants")]
const MOST: u64 = 4000;

/// Runs histories with each mutant until one fails that does not without it; says which mutants
/// none did.
#[cfg(feature = "mutants")]
pub fn hunt(history: fn(u64) -> u64) -> Vec<&'static str> {
    use palisade_nvme_target::mutants::{ALL, OF_TRIALS, switch};
    let mut missed = Vec::new();
    let all: Vec<_> = ALL.iter().filter(|own| !OF_TRIALS.contains(&own.0)).collect();
    for (mutant, name, _) in &all {
        switch(Some(*mutant));
        let sum = run(&Extent { seeds: 0..MOST, seconds: f64::INFINITY }, history);
        switch(None);
        let (count, seconds) = (sum.next, sum.seconds);
        match sum.failed {
            Some((seed, why)) if catch_unwind(|| history(seed)).is_ok() => {
                let why: String = why.chars().take(80).collect();
                println!("{name:18} {count:5} histories {seconds:6.1} s  history {seed}: {why}");
            }
            other => {
                let why = other.map_or("no history fails", |_| "it fails without the mutant, too");
                println!("{name:18} {count:5} histories {seconds:6.1} s  NOT CAUGHT: {why}");
                missed.push(*name);
            }
        }
    }
    println!("{} of {} mutants caught", all.len() - missed.len(), all.len());
    missed
}
