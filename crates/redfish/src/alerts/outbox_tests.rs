//! Outboxes, against a plain list of what was sent when.

use super::*;
use crate::alerts::News;
use crate::sample::Random;
use crate::view::{Alert, Health};

pub(crate) fn told(id: u64) -> Told {
    let alert = Alert {
        id: id.to_string(),
        message: "ArrayDegraded".to_owned(),
        args: Vec::new(),
        severity: Health::Warning,
        what: "array tank is degraded".to_owned(),
        action: "replace what failed".to_owned(),
        of: "/redfish/v1".to_owned(),
        name: "tank".to_owned(),
        raised: 7,
        acknowledged: None,
    };
    Told { news: News::Raised, alert, at: 7 }
}

fn ids(letter: &Letter) -> Vec<u64> {
    letter.told.iter().map(|told| told.alert.id.parse().expect("a number")).collect()
}

/// Sends one letter.
fn sent_one(outbox: &mut Outbox, now: u64) -> Letter {
    let letter = outbox.next(now).expect("a letter");
    outbox.done(&letter, now);
    letter
}

/// Sends all that is due.
fn sent(outbox: &mut Outbox, now: u64) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    while let Some(letter) = outbox.next(now) {
        outbox.done(&letter, now);
        all.push(ids(&letter));
    }
    all
}

#[test]
fn ten_a_minute_are_sent_and_the_rest_together() {
    let mut outbox = Outbox::default();
    (1..=13).for_each(|id| outbox.put(told(id), 100));
    let alone: Vec<Vec<u64>> = (1..=10).map(|id| vec![id]).collect();
    assert_eq!(sent(&mut outbox, 100), alone);
    assert_eq!(sent(&mut outbox, 159), Vec::<Vec<u64>>::new());
    outbox.put(told(14), 159);
    assert_eq!(sent(&mut outbox, 160), [vec![11, 12, 13, 14]]);
    assert!(outbox.is_empty());
    // One was sent within the last minute: nine more are alone.
    (21..=30).for_each(|id| outbox.put(told(id), 170));
    assert_eq!(sent(&mut outbox, 170).len(), 9);
    assert_eq!(sent(&mut outbox, 230), [vec![30]]);
}

#[test]
fn what_is_not_sent_stays_and_what_is_too_much_is_counted() {
    let mut outbox = Outbox::default();
    (0..MOST as u64 + 3).for_each(|id| outbox.put(told(id), 0));
    let first = outbox.next(0).expect("a letter");
    assert_eq!((ids(&first), outbox.next(0)), (vec![0], Some(first.clone())));
    for _ in 0..A_MINUTE {
        let letter = outbox.next(0).expect("a letter");
        outbox.done(&letter, 0);
    }
    let rest = outbox.next(60).expect("a letter");
    assert_eq!((rest.told.len(), rest.left_out), (MOST - A_MINUTE, 3));
    // What comes while it is being sent is not lost with it.
    outbox.put(told(9999), 61);
    outbox.done(&rest, 61);
    assert_eq!(
        outbox.next(121).map(|letter| (ids(&letter), letter.left_out)),
        Some((vec![9999], 0))
    );
}

#[test]
fn what_was_left_out_while_the_last_was_being_sent_is_told() {
    let mut outbox = Outbox::default();
    (0..MOST as u64).for_each(|id| outbox.put(told(id), 0));
    (0..A_MINUTE).for_each(|_| drop(sent_one(&mut outbox, 0)));
    (0..A_MINUTE as u64).for_each(|id| outbox.put(told(1000 + id), 0));
    let together = outbox.next(60).expect("a letter");
    outbox.put(told(2000), 60);
    outbox.put(told(2001), 60);
    outbox.done(&together, 60);
    assert!(!outbox.is_empty(), "two are left out");
    assert_eq!(outbox.next(119), None);
    let rest = outbox.next(120).expect("a letter");
    assert_eq!((ids(&rest), rest.left_out), (Vec::new(), 2));
    outbox.done(&rest, 120);
    assert!(outbox.is_empty());
}

#[test]
fn what_comes_while_it_is_told_how_many_were_left_out_is_told_too() {
    let mut outbox = Outbox::default();
    (0..MOST as u64).for_each(|id| outbox.put(told(id), 0));
    (0..A_MINUTE).for_each(|_| drop(sent_one(&mut outbox, 0)));
    (1000..1010).for_each(|id| outbox.put(told(id), 0));
    let together = outbox.next(60).expect("what is held");
    // One more comes while they are sent, and is left out.
    outbox.put(told(2000), 60);
    outbox.done(&together, 60);
    let rest = outbox.next(120).expect("how many were left out");
    assert_eq!((ids(&rest), rest.left_out), (Vec::new(), 1));
    outbox.put(told(3000), 120);
    outbox.done(&rest, 120);
    let last = sent_one(&mut outbox, 180);
    assert_eq!((ids(&last), last.left_out), (vec![3000], 0));
    assert!(outbox.is_empty());
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_wait_for_ever() {
    let mut outbox = Outbox::default();
    (0..12).for_each(|id| outbox.put(told(id), 1_000_000));
    sent(&mut outbox, 1_000_000);
    assert_eq!(sent(&mut outbox, 1000), [vec![10, 11]]);
}

#[test]
fn all_is_sent_once_in_order_and_not_too_fast() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (mut outbox, mut now, mut next) = (Outbox::default(), 1000, 0);
        let mut log: Vec<(u64, Vec<u64>)> = Vec::new();
        let mut send = |outbox: &mut Outbox, now: u64| {
            log.extend(sent(outbox, now).into_iter().map(|ids| (now, ids)));
        };
        for _ in 0..random.below(80) {
            now += random.below(30);
            for _ in 0..random.below(8) {
                outbox.put(told(next), now);
                next += 1;
            }
            // Over a restart it is the same.
            let text = serde_json::to_string(&outbox).expect("JSON");
            assert_eq!(serde_json::from_str::<Outbox>(&text).expect("read"), outbox);
            if random.below(3) > 0 {
                send(&mut outbox, now);
            }
        }
        send(&mut outbox, now);
        send(&mut outbox, now + 60);
        assert!(outbox.is_empty());
        let all: Vec<u64> = log.iter().flat_map(|(_, ids)| ids.clone()).collect();
        assert_eq!(all, (0..next).collect::<Vec<_>>(), "seed {seed}");
        for (at, _) in &log {
            let within = log.iter().filter(|(other, _)| (*at..at + 60).contains(other)).count();
            assert!(within <= A_MINUTE + 1, "seed {seed}: {within} from {at}");
        }
    }
}
