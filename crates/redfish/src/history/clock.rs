//! In which second a sample was taken, where the machine's clock may be set.
//!
//! A clock that nobody sets counts seconds ([`crate::counters::Counters::nanos`]); the machine's
//! clock says once which ones they are. So seconds follow each other, whenever within a second a
//! sample is taken.
//!
//! | state     | becomes   | when                                                                |
//! |-----------|-----------|--------------------------------------------------------------------- |
//! | unset     | sure      | the clock says a moment that is not before what is kept ([`AWHILE`]) |
//! | unset     | in doubt  | it says an earlier one                                              |
//! | sure      | sure      | the clock is set forth by at most [`FORTH`], or back by [`AWHILE`]  |
//! | sure      | in doubt  | it is set further                                                   |
//! | in doubt  | sure      | the clock is right again, or has said the same for [`PATIENCE`]     |
//!
//! Invariants
//! - While it is in doubt nothing is kept: a machine that starts with a wrong clock does not lose
//!   its past to it.
//! - A clock that is set forth leaves a gap. Behind one that was set back what is kept of moments
//!   that are to come is dropped, once the clock is believed.

/// A clock may be wrong by so many milliseconds without being set.
const SLACK: i64 = 2_000;

/// So many seconds it may be set back without anything being dropped: they are waited for.
pub const AWHILE: u64 = 60;

/// So many seconds it may be set forth, and is believed at once.
pub const FORTH: u64 = 3_600;

/// So many seconds it has to say the same to be believed.
pub const PATIENCE: u64 = 300;

/// A second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Second {
    /// It is this one, of seconds since 1970.
    Is(u64),
    /// It is this one, and the clock was set back: what is kept of later ones is wrong.
    Back(u64),
    /// Nobody knows yet.
    Unknown,
}

/// The clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// How many milliseconds the machine's clock was ahead of the other when it was believed.
    ahead: Option<i64>,
    /// The same, as the clock says now, and since which second of the other.
    doubt: Option<(i64, u64)>,
}

impl Clock {
    /// The second of a sample: what the machine's clock says in milliseconds since 1970, and the
    /// other in nanoseconds; and the last second that is kept.
    pub fn second(&mut self, at: u64, nanos: u64, last: u64) -> Second {
        let ahead = at.cast_signed() - (nanos / 1_000_000).cast_signed();
        let seconds = nanos / 1_000_000_000;
        let is_like = |other: i64| (ahead - other).abs() <= SLACK;
        let second = |ahead: i64| ahead.div_euclid(1000).saturating_add_unsigned(seconds).max(0);
        let says = second(ahead).cast_unsigned();
        match self.ahead {
            Some(sure) if is_like(sure) => {
                self.doubt = None;
                return Second::Is(second(sure).cast_unsigned());
            }
            Some(sure) if ahead > sure => {
                let by = (ahead - sure).cast_unsigned() / 1000;
                if by <= FORTH {
                    return self.believe(ahead, says, last);
                }
            }
            _ if says.saturating_add(AWHILE) >= last => {
                return self.believe(ahead, says, last.min(says));
            }
            _ => {}
        }
        match self.doubt {
            Some((other, since)) if is_like(other) => {
                if seconds.saturating_sub(since) >= PATIENCE {
                    return self.believe(ahead, says, last);
                }
            }
            _ => self.doubt = Some((ahead, seconds)),
        }
        Second::Unknown
    }

    fn believe(&mut self, ahead: i64, says: u64, last: u64) -> Second {
        *self = Self { ahead: Some(ahead), doubt: None };
        if says < last { Second::Back(says) } else { Second::Is(says) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// What a clock says that is wrong by these seconds at these seconds of the other, given the
    /// last one that is kept.
    fn seconds(clock: &mut Clock, steps: &[(u64, i64)], last: u64) -> Vec<Second> {
        let second = |(steady, wrong): &(u64, i64)| {
            let at = (NOW + steady).checked_add_signed(*wrong).expect("after 1970");
            clock.second(at * 1000 + 300, steady * 1_000_000_000 + 70_000_000, last)
        };
        steps.iter().map(second).collect()
    }

    #[test]
    fn seconds_follow_each_other_whenever_a_sample_is_taken() {
        let mut clock = Clock::default();
        for k in 0..1000_u64 {
            // Up to half a second late, which is not the same each time.
            let late = k * 7919 % 500;
            let second =
                clock.second(NOW * 1000 + k * 1000 + late + 800, (k * 1000 + late) * 1_000_000, 0);
            assert_eq!(second, Second::Is(NOW + k));
        }
    }

    #[test]
    fn a_clock_that_is_set_a_little_is_believed_at_once() {
        let clock = &mut Clock::default();
        let told = seconds(clock, &[(0, 0), (1, 1), (2, 100), (3, 100), (4, 70)], NOW);
        let expected = [NOW, NOW + 1, NOW + 102, NOW + 103, NOW + 74].map(Second::Is);
        assert_eq!(told, expected);
        let forth = FORTH.cast_signed();
        assert_eq!(seconds(clock, &[(5, 70 + forth)], NOW), [Second::Is(NOW + 75 + FORTH)]);
    }

    #[test]
    fn a_clock_that_is_set_far_is_doubted_until_it_stays() {
        for far in [-1_000_000, 1_000_000] {
            let clock = &mut Clock::default();
            assert_eq!(seconds(clock, &[(0, 0)], NOW), [Second::Is(NOW)]);
            let told = seconds(clock, &[(1, far), (2, far), (3, 0), (4, far), (303, far)], NOW);
            let unknown = Second::Unknown;
            assert_eq!(told, [unknown, unknown, Second::Is(NOW + 3), unknown, unknown]);
            let at = (NOW + 304).checked_add_signed(far).expect("after 1970");
            let expected = if far < 0 { Second::Back(at) } else { Second::Is(at) };
            assert_eq!(seconds(clock, &[(304, far)], NOW + 3), [expected]);
        }
    }

    #[test]
    fn a_machine_that_starts_without_the_time_waits_for_it() {
        let clock = &mut Clock::default();
        let lost = -(NOW.cast_signed());
        let told = seconds(clock, &[(0, lost), (200, lost), (201, 0), (202, 0)], NOW - 50);
        let known = [NOW + 201, NOW + 202].map(Second::Is);
        assert_eq!(told, [Second::Unknown, Second::Unknown, known[0], known[1]]);
        // One that is a little late is waited for, and nothing is dropped.
        assert_eq!(seconds(&mut Clock::default(), &[(0, -60)], NOW), [Second::Is(NOW - 60)]);
        assert_eq!(seconds(&mut Clock::default(), &[(0, -61)], NOW), [Second::Unknown]);
    }
}
