//! Whether it pays to look around before sleeping.
//!
//! Who waits may look again and again whether what it waits for has come: that spares the way
//! through the kernel, and costs CPU time. A [`Lookout`] says for how long the next wait is to
//! begin with looking, by how long the last ones were. The core has one for all that wakes it; each
//! connection has one for what its peer sends next, such as a command after a reply. The number of
//! CPUs plays no part: looking is bounded by the window, and soon ends where it only takes the CPU
//! from those who would have something to send.
//!
//! States: *looking*, with some credit from 1 to [`CREDIT`]; *resting*, with some short waits to
//! go. It begins looking with a credit of 1. Transitions are the ends of waits, by their length:
//!
//! - Looking, at most the window: the look has paid. Credit grows by [`PAID`]; the next rest is
//!   half as long.
//! - Looking, longer: it has not. Credit shrinks by 1; without any left it rests for so many short
//!   waits as the next rest has, and the one after that is twice as long.
//! - Resting, at most [`SHORT`] windows: a look might have paid, since a wait that is slept through
//!   takes longer. There is one less to go; after the last it looks, with a credit of 1.
//! - Resting, longer: nothing changes.
//!
//! Invariants
//! - While waits are long, it looks [`CREDIT`] times at most, however many there are.
//! - While looks do not pay, it looks in the end once in [`REST`] short waits and one.
//! - Where [`REST`] waits within the window have ended one after the other, it is looking.

use units::Nanos;

/// Most credit.
const CREDIT: u8 = 16;
/// Credit for a look that has paid. One in three does to go on.
const PAID: u8 = 2;
/// Longest rest, in short waits.
const REST: u16 = 256;
/// Windows of a short wait.
const SHORT: u64 = 8;

/// What the last waits tell of the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lookout {
    window: Nanos,
    /// 0: it rests.
    credit: u8,
    /// Short waits to go, while it rests.
    to_go: u16,
    /// Short waits of the next rest.
    next_rest: u16,
}

impl Lookout {
    /// Looks for at most `window`; for 0 never.
    pub(crate) fn new(window: Nanos) -> Self {
        Self { window, credit: 1, to_go: 0, next_rest: 1 }
    }

    /// For how long the next wait begins with looking.
    pub(crate) fn look(&self) -> Nanos {
        if self.credit > 0 { self.window } else { Nanos(0) }
    }

    /// A wait is over.
    pub(crate) fn ended(&mut self, waited: Nanos) {
        if self.credit == 0 {
            if waited.0 <= self.window.0.saturating_mul(SHORT) {
                self.to_go -= 1;
                self.credit = u8::from(self.to_go == 0);
            }
        } else if waited <= self.window {
            self.credit = (self.credit + PAID).min(CREDIT);
            self.next_rest = (self.next_rest / 2).max(1);
        } else {
            self.credit -= 1;
            if self.credit == 0 {
                self.to_go = self.next_rest;
                self.next_rest = (self.next_rest * 2).min(REST);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: u64 = 40_000;
    const PAYING: Nanos = Nanos(WINDOW);
    const LATE: Nanos = Nanos(WINDOW + 1);
    const LONG: Nanos = Nanos(WINDOW * SHORT + 1);

    fn lookout() -> Lookout {
        Lookout::new(Nanos(WINDOW))
    }

    /// How many of these waits began with a look.
    fn looks(lookout: &mut Lookout, waits: impl IntoIterator<Item = Nanos>) -> usize {
        let look = |waited| {
            let looked = lookout.look() > Nanos(0);
            lookout.ended(waited);
            usize::from(looked)
        };
        waits.into_iter().map(look).sum()
    }

    /// Whether the wait after these begins with a look, found anew from all of them.
    fn naive(waits: &[Nanos]) -> bool {
        let (mut tokens, mut doublings) = (vec![()], 0);
        let mut at = 0;
        while at < waits.len() {
            if waits[at] <= PAYING {
                tokens.extend([(); 2]);
                tokens.truncate(16);
                doublings -= i32::from(doublings > 0);
            } else {
                tokens.pop();
            }
            at += 1;
            if tokens.is_empty() {
                let short = (at..waits.len()).filter(|i| waits[*i].0 <= 8 * WINDOW);
                let Some(last) = short.take(1 << doublings).nth((1 << doublings) - 1) else {
                    return false;
                };
                (at, doublings) = (last + 1, (doublings + 1).min(8));
                tokens.push(());
            }
        }
        true
    }

    fn waits() -> impl Strategy<Value = Vec<Nanos>> {
        let wait = prop_oneof![
            2 => (0..=WINDOW).prop_map(Nanos),
            3 => (WINDOW..=WINDOW * SHORT).prop_map(Nanos),
            1 => (WINDOW * SHORT..=WINDOW * 1000).prop_map(Nanos),
            1 => prop_oneof![Just(PAYING), Just(LATE), Just(LONG), Just(Nanos(WINDOW * SHORT))],
        ];
        // Stretches of one kind, so that credit and rests reach their ends.
        let stretch = (wait, 1..40usize).prop_map(|(wait, count)| vec![wait; count]);
        prop::collection::vec(stretch, 0..40).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn it_looks_when_the_oracle_does(waits in waits()) {
            let mut lookout = lookout();
            for (at, waited) in waits.iter().enumerate() {
                let looks = lookout.look() > Nanos(0);
                prop_assert_eq!(looks, naive(&waits[..at]), "wait {}", at);
                lookout.ended(*waited);
            }
        }

        #[test]
        fn whatever_was_before_long_waits_end_it_and_paying_ones_begin_it(waits in waits()) {
            let mut lookout = lookout();
            looks(&mut lookout, waits);
            let mut idle = lookout;
            prop_assert!(looks(&mut idle, [LONG; 1000]) <= usize::from(CREDIT));
            prop_assert_eq!(looks(&mut idle, [LONG; 1000]), 0);
            let most = usize::from(REST);
            looks(&mut lookout, vec![PAYING; most]);
            prop_assert_eq!(looks(&mut lookout, [PAYING; 1000]), 1000);
        }
    }

    #[test]
    fn where_looks_never_pay_they_become_rare() {
        let mut lookout = lookout();
        let found = looks(&mut lookout, [LATE; 10_000]);
        // After the doublings 1 to 256 one in each 257.
        assert!((40..50).contains(&found), "{found} looks");
    }

    #[test]
    fn one_paying_wait_in_three_is_enough() {
        let mut lookout = lookout();
        looks(&mut lookout, [PAYING; 8]);
        let all = [LATE, LATE, PAYING].repeat(1000);
        assert_eq!(looks(&mut lookout, all), 3000);
    }

    #[test]
    fn without_a_window_it_never_looks() {
        let mut lookout = Lookout::new(Nanos(0));
        assert_eq!(looks(&mut lookout, [Nanos(0), PAYING, Nanos(0), Nanos(0)]), 0);
    }
}
