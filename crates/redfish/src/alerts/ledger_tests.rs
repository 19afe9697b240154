//! Ledgers, against an oracle that looks at all that was ever seen.

use super::*;
use crate::sample::Random;

fn condition(key: &str, severity: Health) -> Condition {
    Condition {
        key: key.to_owned(),
        message: "ArrayDegraded".to_owned(),
        args: vec![key.to_owned()],
        severity,
        what: format!("array {key} is degraded"),
        action: "replace what failed".to_owned(),
        of: "/redfish/v1".to_owned(),
        name: key.to_owned(),
    }
}

fn warning(key: &str) -> Condition {
    condition(key, Health::Warning)
}

fn news(told: &[Told]) -> Vec<(&str, News)> {
    told.iter().map(|told| (told.alert.id.as_str(), told.news)).collect()
}

#[test]
fn it_is_told_once_that_it_is_so_and_once_that_it_is_over() {
    let mut ledger = Ledger::new(1);
    let is = [warning("a")];
    assert_eq!(news(&ledger.follow(&is, 100)), [("1", News::Raised)]);
    assert_eq!(news(&ledger.follow(&is, 101)), []);
    assert_eq!(ledger.alerts().alerts[0].raised, 100);
    let told = ledger.follow(&[], 200);
    assert_eq!(news(&told), [("1", News::Cleared)]);
    assert_eq!((told[0].at, told[0].alert.raised), (200, 100));
    assert_eq!(ledger.alerts().alerts, []);
    assert_eq!(news(&ledger.follow(&[], 200 + FLAP)), []);
    // What comes now is another alert.
    assert_eq!(news(&ledger.follow(&is, 201 + FLAP)), [("2", News::Raised)]);
}

#[test]
fn it_is_told_again_after_a_day_until_somebody_has_seen_it() {
    let mut ledger = Ledger::new(7);
    let is = [warning("a")];
    ledger.follow(&is, 0);
    assert_eq!(news(&ledger.follow(&is, DAY - 1)), []);
    assert_eq!(news(&ledger.follow(&is, DAY)), [("7", News::Stands)]);
    assert_eq!(news(&ledger.follow(&is, DAY + 1)), []);
    assert_eq!(ledger.acknowledge("8", "ana", DAY), Err(NotThere));
    let alert = ledger.acknowledge("7", "ana", DAY + 2).expect("is there");
    assert_eq!(alert.acknowledged, Some((DAY + 2, "ana".to_owned())));
    // The first who has seen it stays.
    let alert = ledger.acknowledge("7", "bob", DAY + 3).expect("is there");
    assert_eq!(alert.acknowledged, Some((DAY + 2, "ana".to_owned())));
    assert_eq!(news(&ledger.follow(&is, 9 * DAY)), []);
    assert_eq!(news(&ledger.follow(&[], 9 * DAY + 1)), [("7", News::Cleared)]);
    assert_eq!(ledger.acknowledge("7", "ana", 9 * DAY + 2), Err(NotThere), "it is over");
}

#[test]
fn what_gets_worse_is_told_again_though_it_was_seen_but_once() {
    let mut ledger = Ledger::new(1);
    ledger.follow(&[warning("a")], 0);
    ledger.acknowledge("1", "ana", 1).expect("is there");
    let worse = [condition("a", Health::Critical)];
    let told = ledger.follow(&worse, 2);
    assert_eq!(news(&told), [("1", News::Worse)]);
    assert_eq!((told[0].alert.severity, &told[0].alert.acknowledged), (Health::Critical, &None));
    for at in 3..10 {
        let is = if at % 2 == 0 { worse.clone() } else { [warning("a")] };
        assert_eq!(news(&ledger.follow(&is, at)), []);
    }
    // Who was told of critical alerts only is told that it is over.
    ledger.follow(&[warning("a")], 10);
    assert_eq!(ledger.follow(&[], 11)[0].alert.severity, Health::Critical);
}

#[test]
fn what_comes_and_goes_is_one_alert_and_told_when_it_lasts() {
    let mut ledger = Ledger::new(1);
    let is = [warning("a")];
    let mut told = Vec::new();
    for at in 0..1000 {
        let now = at * 10;
        told.extend(ledger.follow(if at % 2 == 0 { &is } else { &[] }, now));
    }
    // A second drive that fails soon is told at once; what goes on like that is not.
    let turn = [("1", News::Raised), ("1", News::Cleared)];
    assert_eq!(news(&told), [turn, turn, turn].concat());
    assert_eq!(news(&ledger.follow(&is, 10_000)), []);
    assert_eq!(ledger.alerts().alerts[0].raised, 0, "it is listed while it is so");
    assert_eq!(news(&ledger.follow(&is, 10_000 + FLAP)), [("1", News::Raised)]);
    assert_eq!(news(&ledger.follow(&[], 10_001 + FLAP)), []);
    assert_eq!(news(&ledger.follow(&[], 10_001 + 2 * FLAP)), [("1", News::Cleared)]);
}

#[test]
fn a_restart_tells_nothing_again_and_forgets_nothing() {
    let mut ledger = Ledger::new(1);
    let is = [warning("a"), warning("b")];
    ledger.follow(&is, 0);
    ledger.acknowledge("1", "ana", 5).expect("is there");
    let text = serde_json::to_string(&ledger.reserved()).expect("JSON");
    let read: Ledger = serde_json::from_str(&text).expect("read");
    let mut ledger = read.restarted(1000);
    assert_eq!(ledger.alerts().alerts.len(), 2);
    // What is not known yet is not over.
    assert_eq!(news(&ledger.follow(&[warning("b")], 1001)), []);
    assert_eq!(ledger.alerts().alerts[0].acknowledged, Some((5, "ana".to_owned())));
    assert_eq!(news(&ledger.follow(&[warning("b")], 1000 + START)), [("1", News::Cleared)]);
    // What was seen since the start is over as soon as it is gone.
    assert_eq!(news(&ledger.follow(&[], 1001 + START)), [("2", News::Cleared)]);
    // Identifiers that a file may not know are left out.
    let told = ledger.follow(&[warning("c")], 1002 + START);
    assert_eq!(news(&told), [("103", News::Raised)]);
}

#[test]
fn the_gravest_come_first() {
    let mut ledger = Ledger::new(1);
    ledger.follow(&[warning("a")], 0);
    ledger.follow(&[warning("a"), condition("b", Health::Critical), warning("c")], 1);
    let ids: Vec<_> = ledger.alerts().alerts.into_iter().map(|own| own.id).collect();
    assert_eq!(ids, ["2", "1", "3"]);
}

#[test]
fn what_is_told_is_an_event() {
    use crate::alerts::{Letter, event};
    let mut ledger = Ledger::new(1);
    let is = [warning("a"), condition("b", Health::Critical)];
    let raised = ledger.follow(&is, 0);
    let names =
        |told: &[Told]| -> Vec<String> { told.iter().map(|own| own.event().name).collect() };
    assert_eq!(names(&raised), ["AlertRaised", "CriticalAlertRaised"]);
    assert_eq!(raised[0].event().text(), "alert 1: array a is degraded");
    assert_eq!(names(&ledger.follow(&is, DAY)), ["AlertStands", "CriticalAlertStands"]);
    let over = ledger.follow(&[], DAY + 1);
    assert_eq!(names(&over), ["AlertCleared", "AlertCleared"]);
    let letter = |told: &[Told], left_out| Letter { told: told.to_vec(), left_out };
    let many = event(&letter(&[raised.clone(), over.clone()].concat(), 3));
    assert_eq!(many.name, "CriticalAlertsTogether");
    assert_eq!(many.args, ["5", "2"]);
    assert_eq!(event(&letter(&over, 0)).name, "AlertsTogether");
    assert_eq!(event(&letter(&raised[..1], 0)), raised[0].event());
}

/// What is told of one condition: of all moments at which it was looked for.
fn oracle(seen: &[(u64, bool)]) -> Vec<(u64, News)> {
    let mut told: Vec<(u64, News)> = Vec::new();
    // The first look of this alert.
    let mut life: Option<usize> = None;
    for (at, &(now, is)) in seen.iter().enumerate() {
        if life.is_none() && is {
            life = Some(at);
            told.push((now, News::Raised));
            continue;
        }
        let Some(first) = life else { continue };
        let own = &seen[first..=at];
        let rises = own.windows(2).filter(|two| !two[0].1 && two[1].1).count();
        let same = own.iter().rev().take_while(|(_, other)| *other == is).count();
        let lasts = now - own[own.len() - same].0 >= FLAP;
        let (told_at, last) = *told.last().expect("it was told");
        let stands = last != News::Cleared;
        if stands != is && (rises <= RISES as usize || lasts) {
            told.push((now, if is { News::Raised } else { News::Cleared }));
        } else if stands && is && now - told_at >= DAY {
            told.push((now, News::Stands));
        }
        let is_over = told.last().is_some_and(|(_, last)| *last == News::Cleared);
        if !is && is_over && lasts {
            life = None;
        }
    }
    told
}

/// One history of three conditions, held against the oracle.
fn history(seed: u64) {
    let random = &mut Random::new(seed);
    let keys = ["a", "b", "c"];
    let (mut ledger, mut now) = (Ledger::new(1), 1000);
    let mut seen: [Vec<(u64, bool)>; 3] = Default::default();
    let mut told: BTreeMap<String, Vec<(u64, News)>> = BTreeMap::new();
    let mut ids: Vec<(String, u64)> = Vec::new();
    for _ in 0..1 + random.below(120) {
        let longest = [20, 20, 700, 100_000][random.below(4) as usize];
        now += 1 + random.below(longest);
        if random.below(20) == 0 {
            // Written and read: nothing is otherwise.
            let text = serde_json::to_string(&ledger).expect("JSON");
            ledger = serde_json::from_str(&text).expect("read");
        }
        let present = [(); 3].map(|()| random.below(2) == 0);
        let is: Vec<Condition> =
            keys.iter().zip(present).filter(|own| own.1).map(|own| warning(own.0)).collect();
        seen.iter_mut().zip(present).for_each(|(own, is)| own.push((now, is)));
        for own in ledger.follow(&is, now) {
            assert_eq!(own.at, now);
            let id: u64 = own.alert.id.parse().expect("a number");
            let key = own.alert.name.clone();
            told.entry(key.clone()).or_default().push((now, own.news));
            if !ids.contains(&(key.clone(), id)) {
                assert!(ids.iter().all(|(_, other)| *other < id), "{id} is used again");
                ids.push((key, id));
            }
        }
        let names = |all: Vec<String>| BTreeSet::from_iter(all);
        let listed = ledger.alerts().alerts.into_iter().map(|own| own.name).collect();
        assert_eq!(names(listed), names(is.into_iter().map(|own| own.name).collect()));
    }
    for (key, seen) in keys.iter().zip(&seen) {
        let told = told.remove(*key).unwrap_or_default();
        assert_eq!(told, oracle(seen), "seed {seed}: {key}: {seen:?}");
    }
}

#[test]
fn what_is_told_is_what_follows_from_all_that_was_seen() {
    (0..500).for_each(history);
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_wait_longer_than_it_would() {
    const LATE: u64 = 1_000_000_000;
    const EARLY: u64 = 1000;
    let is = [warning("a")];
    // It is told again a day after the clock was set.
    let mut ledger = Ledger::new(1);
    ledger.follow(&is, LATE);
    assert_eq!(news(&ledger.follow(&is, EARLY)), []);
    assert_eq!(news(&ledger.follow(&is, EARLY + DAY - 1)), []);
    assert_eq!(news(&ledger.follow(&is, EARLY + DAY)), [("1", News::Stands)]);
    // One that flaps is told once it lasts.
    let mut ledger = Ledger::new(1);
    for at in 0..=u64::from(RISES) + 1 {
        ledger.follow(&is, LATE + 2 * at);
        ledger.follow(&[], LATE + 2 * at + 1);
    }
    ledger.follow(&is, LATE + 100);
    assert_eq!(news(&ledger.follow(&is, EARLY)), []);
    assert_eq!(news(&ledger.follow(&is, EARLY + FLAP)), [("1", News::Raised)]);
    // After a start one of before is over when it was looked for long enough.
    let mut ledger = Ledger::new(1);
    ledger.follow(&is, LATE);
    let mut ledger = ledger.restarted(LATE);
    assert_eq!(news(&ledger.follow(&[], EARLY)), []);
    assert_eq!(news(&ledger.follow(&[], EARLY + START)), [("1", News::Cleared)]);
    // What is over is another alert when it comes again.
    assert_eq!(news(&ledger.follow(&[], EARLY + START + FLAP)), []);
    assert_eq!(news(&ledger.follow(&is, EARLY + START + FLAP)), [("2", News::Raised)]);
}
