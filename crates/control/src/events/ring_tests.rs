//! The ring against a plain list.

use super::*;
use proptest::prelude::*;
use redfish::messages as say;

fn event(number: usize) -> Event {
    Event::new(&say::ARRAY_STOPPED, &[&number], "")
}

fn ids(batch: &Batch) -> Vec<u64> {
    batch.events.iter().map(|event| event.id).collect()
}

proptest! {
    #[test]
    fn a_reader_has_each_event_once_or_knows_what_it_missed(
        steps in prop::collection::vec((0_usize..3000, 0_usize..3000), 1..12),
        last in 0_u64..10,
    ) {
        let ring = Ring::new(Begin { last, ..Begin::default() });
        let (mut all, mut had, mut missed) = (Vec::new(), Vec::new(), 0);
        let mut place = ring.end();
        for (come, read) in steps {
            ring.put((0..come).map(event).collect(), 5);
            all.extend((0..come).map(|_| 0).enumerate().map(|(at, _)| at));
            let batch = ring.after(place, read);
            // What the reader had, missed, and has still before it, is all that there was.
            let before = had.len() as u64 + missed;
            let kept = (all.len() as u64).min(MOST as u64);
            let oldest = (all.len() as u64 - kept).max(before);
            prop_assert_eq!(batch.missed, oldest - before);
            missed += batch.missed;
            let expected: Vec<u64> = (oldest..all.len() as u64).take(read)
                .map(|at| last + at + 1).collect();
            prop_assert_eq!(ids(&batch), expected);
            had.extend(ids(&batch));
            place = batch.place;
        }
        prop_assert!(had.is_sorted_by(|a, b| a < b));
        prop_assert!(ring.entries().len() <= MOST);
    }
}

#[test]
fn a_reader_that_comes_back_is_told_what_came_since() {
    let kept: Vec<Event> = [7, 9].map(|id| Event { id, ..event(0) }).into();
    let ring = Ring::new(Begin { events: kept, last: 20, gone: 5 });
    ring.put(vec![event(1)], 1);
    let after = |id| {
        let (place, missed) = ring.place_after(id);
        (ids(&ring.after(place, 10)), missed)
    };
    assert_eq!(after(4), (vec![7, 9, 21], true), "older than what is kept");
    assert_eq!(after(5), (vec![7, 9, 21], false), "the last that is not kept");
    assert_eq!(after(7), (vec![9, 21], false));
    assert_eq!(after(8), (vec![9, 21], false), "one that there never was");
    assert_eq!(after(9), (vec![21], false));
    assert_eq!(after(21), (vec![], false));
    assert_eq!(after(22), (vec![7, 9, 21], true), "of another time");
}

#[test]
fn what_is_long_is_clipped() {
    let ring = Ring::new(Begin::default());
    ring.put(vec![Event::new(&say::ARRAY_STOPPED, &[&"ä".repeat(1000)], "")], 1);
    let batch = ring.after(0, 1);
    assert_eq!(batch.events[0].args[0].chars().count(), ARGUMENT_BYTES / 2 + 1);
    let text = "\u{1}\"".repeat(1000);
    ring.put(vec![Event::new(&say::ARRAY_STOPPED, &[&text], "")], 1);
    let json = serde_json::to_string(&ring.after(1, 1).events[0].args[0]).expect("JSON");
    assert!((500..=ARGUMENT_BYTES + 5).contains(&json.len()), "{json}");
}

#[test]
fn whoever_reads_can_name_the_event_before_its_place() {
    let ring = Ring::new(Begin { last: 20, gone: 20, ..Begin::default() });
    assert_eq!(ring.id_before(ring.end()), 20);
    ring.put((0..MOST + 2).map(event).collect(), 1);
    for (place, id) in [(0, 22), (2, 22), (3, 23), (ring.end(), 22 + MOST as u64)] {
        assert_eq!(ring.id_before(place), id, "at {place}");
        assert_eq!(ring.place_after(id), (place.max(2), false));
    }
}
