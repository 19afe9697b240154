//! Seeds that once found something find nothing; some others neither; a seed runs the same twice;
//! one operation on the smallest arrays, cut everywhere, loses nothing.

use layout::Level;
use trials::campaign::one;
use trials::scenario::{Cuts, Scenario};
use trials::tally::Tally;
use trials::{exhaustive, regressions, trial};

#[test]
fn old_failures_stay_away() {
    for (seed, cuts) in regressions::all() {
        if let Err(failure) = one(seed, &cuts, &mut Tally::default()) {
            panic!("seed {seed}{cuts}: {failure}");
        }
    }
}

#[test]
fn some_seeds_find_nothing() {
    let mut tally = Tally::default();
    for seed in 0..6 {
        if let Err(failure) = one(seed, &Cuts::default(), &mut tally) {
            panic!("seed {seed}: {failure}");
        }
    }
    assert!(tally.points > 50, "{tally:?}");
}

#[test]
fn a_seed_runs_the_same_twice() {
    let run = || {
        let mut tally = Tally::default();
        trial::run(&Scenario::new(9), &Cuts::default(), &mut tally).unwrap();
        tally
    };
    assert_eq!(run(), run());
}

#[test]
fn one_operation_cut_everywhere() {
    let mut tally = Tally::default();
    exhaustive::run(Level::Raid1, 1, None, &mut tally).unwrap();
    let [all, tried, left_out] = tally.combinations;
    assert!(tally.points > 20 && all > tried && left_out == 0, "{tally:?}");
}
