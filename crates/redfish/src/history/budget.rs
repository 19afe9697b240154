//! Who has a ring, where there is no room for all.
//!
//! Purpose: the memory of the past is bounded ([`BYTES`]). Rings are given in the order of their
//! class, and of those of one class the most active thing has its ring first.
//!
//! | first | rings                                                                            |
//! |-------|----------------------------------------------------------------------------------|
//! | 1     | all of the machine                                                               |
//! | 2     | hours of arrays, drives and volumes, in this order                               |
//! | 3     | minutes and seconds of arrays, of drives and of volumes, in this order            |
//! | 4     | of what was not seen for [`GONE`] seconds; who was seen last is first            |
//!
//! So 1,000 volumes have their 30 days by hours, and the busiest of them the day and the ten
//! minutes, too.
//!
//! Invariants
//! - Rings and what is kept without them take [`BYTES`] at most.
//! - Who has a ring loses it to one of its class only if that is twice as active.

use super::Step;
use super::object::Object;
use super::series::Kind;

/// What the past may take, in bytes: 16 MiB, less what is not counted.
pub const BYTES: usize = (16 << 20) - (256 << 10);

/// So many things have a past.
pub const MOST: usize = 4096;

/// What was not seen for so many seconds is gone.
pub const GONE: u64 = 120;

/// A ring that something wants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Want {
    /// The higher is given first.
    pub class: u8,
    /// Of those of one class, the more active one's.
    pub activity: f64,
    /// What it takes.
    pub bytes: usize,
    /// Whether it is there.
    pub has: bool,
}

impl Want {
    /// The ring of a thing.
    pub fn of(object: &Object, step: Step, now: u64) -> Self {
        let width = object.kind.fields().len();
        let has = object.rings.get(step as usize).is_some_and(Option::is_some);
        let is_gone = object.seen.saturating_add(GONE) < now;
        let class = match (object.kind, step) {
            (Kind::Machine, _) => 10,
            _ if is_gone => 0,
            (Kind::Array, Step::Hours) => 9,
            (Kind::Drive, Step::Hours) => 8,
            (Kind::Volume, Step::Hours) => 7,
            (Kind::Array, _) => 3,
            (Kind::Drive, _) => 2,
            (Kind::Volume, _) => 1,
        };
        let activity = if class == 0 { object.seen as f64 } else { f64::from(object.activity) };
        Self { class, activity, bytes: Object::ring_bytes(width, step), has }
    }

    fn rank(&self) -> (u8, f64) {
        let favour = if self.has && self.class > 0 { 2.0 } else { 1.0 };
        (self.class, self.activity * favour)
    }
}

/// Which of these are given in so much room. What is gone gets no ring that it has not.
pub fn given(wants: &[Want], room: usize) -> Vec<bool> {
    let mut given = vec![false; wants.len()];
    let mut order: Vec<(usize, &Want)> = wants.iter().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| {
        let (a, b) = ((a.rank(), a.has), (b.rank(), b.has));
        let by_activity = b.0.1.total_cmp(&a.0.1);
        b.0.0.cmp(&a.0.0).then(by_activity).then(b.1.cmp(&a.1))
    });
    let mut left = room;
    for (at, want) in order {
        if want.bytes <= left
            && (want.class > 0 || want.has)
            && let Some(own) = given.get_mut(at)
        {
            (*own, left) = (true, left - want.bytes);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Random;

    fn want(class: u8, activity: f64, has: bool) -> Want {
        Want { class, activity, bytes: 10, has }
    }

    #[test]
    fn the_class_comes_first_and_then_who_is_active() {
        let wants = [
            want(1, 100.0, true),
            want(2, 1.0, false),
            want(2, 3.0, false),
            want(0, 1e12, true),
            want(2, 2.0, true),
        ];
        let cases: [(usize, &[usize]); 5] =
            [(9, &[]), (10, &[4]), (29, &[4, 2]), (35, &[4, 2, 1]), (49, &[4, 2, 1, 0])];
        for (room, expected) in cases {
            let given = given(&wants, room);
            for (at, given) in given.iter().enumerate() {
                assert_eq!(*given, expected.contains(&at), "{at} in {room}");
            }
        }
    }

    #[test]
    fn who_has_a_ring_keeps_it_until_another_is_twice_as_active() {
        assert_eq!(given(&[want(2, 1.9, false), want(2, 1.0, true)], 10), [false, true]);
        assert_eq!(given(&[want(2, 2.1, false), want(2, 1.0, true)], 10), [true, false]);
        assert_eq!(given(&[want(2, 0.0, false), want(2, 0.0, true)], 10), [false, true]);
        assert_eq!(given(&[want(0, 1.0, false)], 10), [false], "what is gone gets none");
    }

    #[test]
    fn no_more_is_given_than_there_is_and_nothing_is_left_that_would_fit() {
        for seed in 0..500 {
            let random = &mut Random::new(seed);
            let wants: Vec<Want> = (0..random.below(40))
                .map(|_| Want {
                    class: random.below(4) as u8,
                    activity: random.below(5) as f64,
                    bytes: 1 + random.below(50) as usize,
                    has: random.below(2) == 0,
                })
                .collect();
            let room = random.below(400) as usize;
            let given = given(&wants, room);
            let own = || wants.iter().zip(&given);
            let taken: usize = own().filter(|(_, given)| **given).map(|(own, _)| own.bytes).sum();
            assert!(taken <= room);
            for (lacks, _) in own().filter(|(own, given)| !**given && (own.class > 0 || own.has)) {
                // Those before it took the room.
                let before = own().filter(|(own, given)| **given && own.rank() >= lacks.rank());
                let before: usize = before.map(|(own, _)| own.bytes).sum();
                assert!(before + lacks.bytes > room, "{lacks:?}");
            }
        }
    }
}
