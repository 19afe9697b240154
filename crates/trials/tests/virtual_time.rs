//! What drives limit: the engine over drives of a model, in virtual time. The same seed gives the
//! same figures, so that they can be asserted.

use layout::Level;
use pace::bound::State;
use trials::virtual_time::{Figure, Wanted};

fn wanted(cores: u16) -> Wanted {
    let model = pace::by_name("sn840").expect("is there");
    Wanted { model, level: Level::Raid5, drives: 8, strip: 64 << 10, cores, seed: 1 }
}

fn run(cores: u16, state: State) -> Vec<Figure> {
    wanted(cores).run(state).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Of the bound on one core and on two, at least. Where the goal is met it is the goal.
const LEAST: [(State, &str, [f64; 2]); 10] = [
    (State::Nominal, "128k-sequential-read", [0.98, 0.98]),
    (State::Nominal, "128k-sequential-write", [0.97, 0.97]),
    (State::Nominal, "4k-random-read", [0.98, 0.98]),
    (State::Nominal, "4k-random-mixed", [0.97, 0.97]),
    (State::Nominal, "4k-random-write", [0.96, 0.96]),
    (State::DeviceDown, "128k-sequential-read", [0.56, 0.56]),
    (State::DeviceDown, "128k-sequential-write", [0.49, 0.51]),
    (State::DeviceDown, "4k-random-read", [0.97, 0.97]),
    (State::DeviceDown, "4k-random-mixed", [0.80, 0.80]),
    (State::DeviceDown, "4k-random-write", [0.80, 0.80]),
];

#[test]
fn no_figure_is_less_than_it_was_and_none_is_more_than_the_bound() {
    for cores in [1, 2] {
        let figures = [State::Nominal, State::DeviceDown].map(|state| run(cores, state)).concat();
        assert_eq!(figures.len(), LEAST.len());
        for figure in figures {
            let of =
                LEAST.iter().find(|row| (row.0, row.1) == (figure.state, &figure.workload[..]));
            let least = of.expect("each figure has a row").2[usize::from(cores) - 1];
            let Figure { of_bound, .. } = figure;
            // What a window ends with may have begun before it.
            assert!((least..=1.01).contains(&of_bound), "{cores} cores: {figure:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    assert_eq!(run(2, State::DeviceDown), run(2, State::DeviceDown));
}
