//! Some seeds find nothing; a seed runs the same twice. Seeds that once found something, and all
//! words of one operation, are run by `cargo xtask sim` in `script/test`.

use trials::campaign::one;
use trials::scenario::{Cuts, Scenario};
use trials::tally::Tally;
use trials::trial;

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
