//! Departures: tables of cases, and random histories against a log that is read from its start.

use super::*;
use proptest::prelude::*;

/// A drive of the tests: an array, and a slot of it.
type Key = (usize, u16);

/// An array: of each group its slots, and how many of these may be missing.
type Groups = Vec<(Vec<u16>, usize)>;

/// Arrays whose drives are named by where they are.
#[derive(Clone, Debug, Default)]
struct Fleet {
    arrays: Vec<Groups>,
    /// What is failed or missing.
    lacking: BTreeSet<Key>,
}

fn group(slots: core::ops::Range<u16>, may_miss: usize) -> (Vec<u16>, usize) {
    (slots.collect(), may_miss)
}

fn raid0() -> Groups {
    vec![group(0..4, 0)]
}

fn raid5() -> Groups {
    vec![group(0..4, 1)]
}

fn raid6() -> Groups {
    vec![group(0..6, 2)]
}

fn raid10() -> Groups {
    vec![group(0..2, 1), group(2..4, 1)]
}

impl Fleet {
    fn of(arrays: &[Groups]) -> Self {
        Self { arrays: arrays.to_vec(), lacking: BTreeSet::new() }
    }
}

impl Arrays<Key, usize> for Fleet {
    fn uses(&self, key: &Key, place: &Place<usize>) -> bool {
        *key == (place.array, place.slot) && !self.lacking.contains(key)
    }

    fn covers(&self, array: &usize, slots: &BTreeSet<u16>) -> bool {
        self.arrays[*array].iter().all(|(own, may_miss)| {
            let misses =
                |slot: &&u16| slots.contains(slot) || self.lacking.contains(&(*array, **slot));
            own.iter().filter(misses).count() <= *may_miss
        })
    }
}

const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn went(departures: &mut Departures<Key, usize>, key: Key, is_remote: bool, at: u64) {
    departures.gone(key, Place { array: key.0, slot: key.1 }, is_remote, ms(at));
}

/// Settles all that is gathered, when it is due.
fn settled(departures: &mut Departures<Key, usize>, fleet: &Fleet) -> Vec<Verdict<Key>> {
    let due = departures.due().expect("something is gathered");
    assert_eq!(departures.clone().settle(due - ms(1), fleet), [], "it is not due before");
    let verdicts = departures.settle(due, fleet);
    assert_eq!((departures.due(), departures.settle(due, fleet)), (None, Vec::new()));
    verdicts
}

/// What is said of local drives that go together, of arrays that lack some already.
fn of(arrays: &[Groups], lacking: &[Key], gone: &[Key]) -> Vec<Verdict<Key>> {
    let mut fleet = Fleet::of(arrays);
    fleet.lacking.extend(lacking);
    let mut departures = Departures::default();
    for key in gone {
        went(&mut departures, *key, false, 0);
    }
    settled(&mut departures, &fleet)
}

#[test]
fn drives_are_failed_only_where_redundancy_covers_all_that_went() {
    type Case = (&'static str, Vec<Groups>, &'static [Key], &'static [Key], bool);
    let cases: &[Case] = &[
        ("one of RAID 5", vec![raid5()], &[], &[(0, 1)], true),
        ("two of RAID 5", vec![raid5()], &[], &[(0, 1), (0, 2)], false),
        ("one of RAID 5 that lacks one", vec![raid5()], &[(0, 0)], &[(0, 1)], false),
        ("two of RAID 6", vec![raid6()], &[], &[(0, 1), (0, 2)], true),
        ("three of RAID 6", vec![raid6()], &[], &[(0, 1), (0, 2), (0, 3)], false),
        ("one of RAID 6 that lacks one", vec![raid6()], &[(0, 0)], &[(0, 1)], true),
        ("two of RAID 6 that lacks one", vec![raid6()], &[(0, 0)], &[(0, 1), (0, 2)], false),
        ("both of a pair of RAID 10", vec![raid10()], &[], &[(0, 2), (0, 3)], false),
        ("two of two pairs of RAID 10", vec![raid10()], &[], &[(0, 1), (0, 2)], true),
        ("all of RAID 10", vec![raid10()], &[], &[(0, 0), (0, 1), (0, 2), (0, 3)], false),
        ("one of RAID 0", vec![raid0()], &[], &[(0, 3)], false),
        ("one each of two RAID 5", vec![raid5(), raid5()], &[], &[(0, 1), (1, 2)], true),
        (
            "a cable: RAID 6 could spare its two, RAID 5 not its four",
            vec![raid6(), raid5()],
            &[],
            &[(0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)],
            false,
        ),
        (
            "RAID 5 could spare its one, RAID 0 not",
            vec![raid5(), raid0()],
            &[],
            &[(0, 1), (1, 0)],
            false,
        ),
    ];
    for (case, arrays, lacking, gone, are_failed) in cases {
        let keys = gone.to_vec();
        let expected = if *are_failed { Verdict::Fail(keys) } else { Verdict::Hold(keys) };
        assert_eq!(of(arrays, lacking, gone), [expected], "{case}");
    }
}

#[test]
fn a_gathering_waits_for_more_but_not_for_long() {
    let cases: &[(&[u64], u64)] = &[
        (&[0], 300),
        (&[1_000], 1_300),
        (&[0, 100], 400),
        (&[0, 299], 599),
        (&[0, 250, 500], 600),
        (&[0, 250, 500, 590], 600),
        // Told out of order.
        (&[200, 0], 500),
    ];
    for (moments, due) in cases {
        let mut departures = Departures::default();
        for (slot, at) in moments.iter().enumerate() {
            went(&mut departures, (0, slot as u16), false, *at);
        }
        assert_eq!(departures.due(), Some(ms(*due)), "{moments:?}");
    }
    assert_eq!(Departures::<Key, usize>::default().due(), None);
}

#[test]
fn a_drive_that_comes_back_before_it_is_judged_never_went() {
    let fleet = Fleet::of(&[raid5()]);
    let mut departures = Departures::default();
    went(&mut departures, (0, 0), false, 0);
    went(&mut departures, (0, 1), false, 250);
    assert_eq!(departures.back(&(0, 0)), Some(State::Gathered));
    assert_eq!(departures.due(), Some(ms(550)), "what came back counts for nothing");
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Fail(vec![(0, 1)])]);
    went(&mut departures, (0, 2), false, 9_000);
    assert_eq!(departures.back(&(0, 2)), Some(State::Gathered));
    assert_eq!(departures.back(&(0, 2)), None);
    assert_eq!((departures.due(), departures.settle(ms(99_000), &fleet)), (None, Vec::new()));
}

#[test]
fn what_is_told_to_fail_counts_as_failed_before_it_is() {
    let fleet = Fleet::of(&[raid5()]);
    let mut departures = Departures::default();
    went(&mut departures, (0, 0), false, 0);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Fail(vec![(0, 0)])]);
    // The array did not do it yet.
    went(&mut departures, (0, 1), false, 350);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Hold(vec![(0, 1)])]);
    assert_eq!(departures.back(&(0, 0)), Some(State::Failing));
    assert_eq!(departures.back(&(0, 1)), Some(State::Held));
}

#[test]
fn held_drives_stay_held_while_others_come_back() {
    let mut fleet = Fleet::of(&[raid5()]);
    let mut departures = Departures::default();
    let all = [(0, 0), (0, 1), (0, 2), (0, 3)];
    for key in all {
        went(&mut departures, key, false, 0);
    }
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Hold(all.to_vec())]);
    for (key, left) in [((0, 0), 3), ((0, 2), 2), ((0, 3), 1)] {
        assert_eq!(departures.back(&key), Some(State::Held));
        departures.look(&fleet);
        assert_eq!(departures.due(), None, "nobody judges the rest, though it would be covered");
        assert_eq!(departures.settle(ms(60_000), &fleet), []);
        assert_eq!(departures.held().count(), left);
    }
    // A request, or a person, decides about the last one.
    fleet.lacking.insert((0, 1));
    departures.look(&fleet);
    assert_eq!(departures.held().count(), 0);
    assert_eq!(departures.back(&(0, 1)), None);
}

#[test]
fn a_drive_that_goes_while_others_are_held_is_judged_with_these() {
    let fleet = Fleet::of(&[raid6(), raid0(), raid5()]);
    let mut departures = Departures::default();
    went(&mut departures, (0, 0), false, 0);
    went(&mut departures, (1, 0), false, 0);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Hold(vec![(0, 0), (1, 0)])]);
    // With the held one, RAID 6 lacks two.
    went(&mut departures, (0, 3), false, 9_000);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Fail(vec![(0, 3)])]);
    went(&mut departures, (0, 5), false, 20_000);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Hold(vec![(0, 5)])]);
    // What is held of others is nothing to an array that has all its drives.
    went(&mut departures, (2, 1), false, 30_000);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Fail(vec![(2, 1)])]);
    assert_eq!(
        departures.held().map(|(key, _)| *key).collect::<Vec<_>>(),
        [(0, 0), (0, 5), (1, 0)]
    );
}

#[test]
fn remote_drives_are_waited_for() {
    let fleet = Fleet::of(&[raid5(), raid5()]);
    let mut departures = Departures::default();
    went(&mut departures, (0, 0), true, 0);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Wait(vec![(0, 0)])]);
    // A local one of the same array: two are gone of it.
    went(&mut departures, (0, 1), false, 1_000);
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Hold(vec![(0, 1)])]);
    // Many remote ones speak for no local one of another array.
    let mut departures = Departures::default();
    for slot in 0..4 {
        went(&mut departures, (0, slot), true, 0);
    }
    went(&mut departures, (1, 2), false, 0);
    let remote = (0..4).map(|slot| (0, slot)).collect();
    let expected = [Verdict::Fail(vec![(1, 2)]), Verdict::Wait(remote)];
    assert_eq!(settled(&mut departures, &fleet), expected);
    assert_eq!(departures.waiting().count(), 4);
    assert_eq!(departures.back(&(0, 3)), Some(State::Waiting));
}

#[test]
fn a_drive_that_is_not_used_any_more_is_no_departure() {
    let mut fleet = Fleet::of(&[raid5()]);
    let mut departures = Departures::default();
    went(&mut departures, (0, 0), false, 0);
    went(&mut departures, (0, 1), false, 0);
    // A request failed one of the two meanwhile: the other one can't be spared.
    fleet.lacking.insert((0, 0));
    assert_eq!(settled(&mut departures, &fleet), [Verdict::Hold(vec![(0, 1)])]);
    assert_eq!((departures.state(&(0, 0)), departures.state(&(0, 1))), (None, Some(State::Held)));
}

#[test]
fn a_drive_that_the_array_could_not_fail_is_held() {
    let fleet = Fleet::of(&[raid5()]);
    let mut departures = Departures::default();
    went(&mut departures, (0, 0), false, 0);
    departures.refused(&(0, 0));
    assert_eq!(departures.state(&(0, 0)), Some(State::Gathered), "nobody was told to fail it");
    settled(&mut departures, &fleet);
    departures.refused(&(0, 0));
    assert_eq!(departures.state(&(0, 0)), Some(State::Held));
}

#[test]
fn a_drive_that_goes_again_from_elsewhere_goes_anew() {
    let mut departures = Departures::default();
    departures.gone(7, Place { array: 0, slot: 0 }, false, ms(0));
    departures.gone(7, Place { array: 0, slot: 0 }, false, ms(200));
    assert_eq!(departures.due(), Some(ms(300)), "it is gone already");
    departures.gone(7, Place { array: 0, slot: 1 }, false, ms(200));
    assert_eq!(departures.due(), Some(ms(500)));
}

/// What happens in a history.
#[derive(Clone, Debug)]
enum Event {
    Gone(Key, Duration),
    Back(Key),
    Refused(Key),
    /// The array uses the drive no more.
    Out(Key),
    /// Time passes, and what is due is settled; what came of it.
    Settled(Vec<Verdict<Key>>),
}

fn is_remote(key: Key) -> bool {
    key.1 == 3
}

/// The oracle: knows nothing but the log, and reads it from its start whenever it is asked.
fn state_of(log: &[Event], key: Key) -> Option<(State, Duration)> {
    let mut state = None;
    for event in log {
        match event {
            Event::Gone(own, at) if *own == key && state.is_none() => {
                state = Some((State::Gathered, *at));
            }
            Event::Back(own) | Event::Out(own) if *own == key => state = None,
            Event::Refused(own) if *own == key => {
                state = state.map(|(was, at)| match was {
                    State::Failing => (State::Held, at),
                    _ => (was, at),
                });
            }
            Event::Settled(verdicts) => {
                for verdict in verdicts.iter().filter(|verdict| verdict.keys().contains(&key)) {
                    let is = match verdict {
                        Verdict::Fail(_) => State::Failing,
                        Verdict::Hold(_) => State::Held,
                        Verdict::Wait(_) => State::Waiting,
                    };
                    state = state.map(|(_, at)| (is, at));
                }
            }
            _ => {}
        }
    }
    state
}

fn keys(fleet: &Fleet) -> Vec<Key> {
    let slots = |array: &Groups| array.iter().flat_map(|(slots, _)| slots.clone()).collect();
    let all = fleet.arrays.iter().map(slots).enumerate();
    all.flat_map(|(array, slots): (usize, Vec<u16>)| slots.into_iter().map(move |s| (array, s)))
        .collect()
}

/// What has to be said now, by the log.
fn expected(log: &[Event], fleet: &Fleet, now: Duration) -> Vec<Verdict<Key>> {
    let gone: Vec<_> = keys(fleet)
        .into_iter()
        .filter_map(|key| state_of(log, key).map(|(state, at)| (key, state, at)))
        .collect();
    let new: Vec<_> = gone.iter().filter(|(_, state, _)| *state == State::Gathered).collect();
    let is_quiet = new.iter().all(|(.., at)| now >= *at + QUIET);
    let is_long = new.iter().any(|(.., at)| now >= *at + LONGEST);
    if new.is_empty() || !(is_quiet || is_long) {
        return Vec::new();
    }
    let (remote, local): (Vec<Key>, Vec<Key>) =
        new.iter().map(|(key, ..)| *key).partition(|key| is_remote(*key));
    let is_covered = local.iter().all(|(array, _)| {
        fleet.arrays[*array].iter().all(|(slots, may_miss)| {
            let is_missing = |slot: &&u16| {
                let key = (*array, **slot);
                fleet.lacking.contains(&key) || gone.iter().any(|(own, ..)| *own == key)
            };
            slots.iter().filter(is_missing).count() <= *may_miss
        })
    });
    let local = if is_covered { Verdict::Fail(local) } else { Verdict::Hold(local) };
    [local, Verdict::Wait(remote)].into_iter().filter(|v| !v.keys().is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn histories_are_judged_as_by_their_log(
        steps in prop::collection::vec((0u8..8, any::<prop::sample::Index>(), 0u64..400), 1..60)
    ) {
        let mut fleet = Fleet::of(&[raid5(), raid6(), raid10()]);
        let all = keys(&fleet);
        let (mut departures, mut log, mut now) = (Departures::default(), Vec::new(), ms(0));
        for (what, which, wait) in steps {
            let key = all[which.index(all.len())];
            match what {
                // More often than not drives go together.
                0..=2 => {
                    if fleet.lacking.contains(&key) {
                        continue;
                    }
                    went(&mut departures, key, is_remote(key), now.as_millis() as u64);
                    log.push(Event::Gone(key, now));
                }
                3 => {
                    let was = state_of(&log, key).map(|(state, _)| state);
                    prop_assert_eq!(departures.back(&key), was);
                    fleet.lacking.remove(&key);
                    log.push(Event::Back(key));
                }
                4 => {
                    departures.refused(&key);
                    log.push(Event::Refused(key));
                }
                5 => {
                    fleet.lacking.insert(key);
                    departures.look(&fleet);
                    log.push(Event::Out(key));
                }
                _ => {
                    now += ms(wait);
                    let expected = expected(&log, &fleet, now);
                    let verdicts = departures.settle(now, &fleet);
                    prop_assert_eq!(&verdicts, &expected, "{:?}", log);
                    log.push(Event::Settled(verdicts));
                }
            }
            for key in &all {
                let state = state_of(&log, *key).map(|(state, _)| state);
                prop_assert_eq!(departures.state(key), state, "{:?} {:?}", key, log);
            }
        }
    }
}
