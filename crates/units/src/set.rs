//! Sets of small numbers, of one kind each, as the bits of one word.
//!
//! Invariant: every operation is right for all numbers below [`SlotSet::MOST`], also where a set
//! holds all of them; a larger one is a mistake of ours and panics.

use crate::Slot;
use core::fmt;

/// The bits below `n`.
const fn below(n: usize) -> u64 {
    assert!(n <= u64::BITS as usize, "a set has bits for 64 numbers");
    if n == u64::BITS as usize { u64::MAX } else { (1 << n) - 1 }
}

const fn slot_index(slot: Slot) -> usize {
    slot.index()
}

const fn slot_of(index: usize) -> Slot {
    Slot(index as u16)
}

const fn same(index: usize) -> usize {
    index
}

macro_rules! set {
    ($(#[$doc:meta])* $name:ident of $item:ty, $index:path, $item_of:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl $name {
            /// How many numbers there are that a set can hold: those below this.
            pub const MOST: usize = u64::BITS as usize;
            /// The set of none.
            pub const EMPTY: Self = Self(0);

            /// The set of one.
            pub const fn one(item: $item) -> Self {
                let index = $index(item);
                Self(below(index + 1) & !below(index))
            }
            /// Those from the first to before the second.
            pub const fn range(from: $item, to: $item) -> Self {
                Self(below($index(to)) & !below($index(from)))
            }
            /// Whether it is in the set.
            pub const fn has(self, item: $item) -> bool {
                let index = $index(item);
                index < Self::MOST && self.0 >> index & 1 == 1
            }
            /// Puts one more into it.
            pub const fn insert(&mut self, item: $item) {
                *self = self.or(Self::one(item));
            }
            /// How many are in it.
            pub const fn len(self) -> usize {
                self.0.count_ones() as usize
            }
            /// Whether none is.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }
            /// Those of either.
            pub const fn or(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
            /// Those of both.
            pub const fn and(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
            /// Those of this that are not in `other`.
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
            /// The first `n` of them (all, if there are fewer).
            pub fn first(self, n: usize) -> Self {
                self.iter().take(n).collect()
            }
            /// All of them, in ascending order.
            pub fn iter(self) -> impl Iterator<Item = $item> + Clone {
                let next = |rest: &u64| Some(rest & (rest - 1)).filter(|rest| *rest != 0);
                let first = Some(self.0).filter(|bits| *bits != 0);
                core::iter::successors(first, next)
                    .map(|bits| $item_of(bits.trailing_zeros() as usize))
            }
        }

        impl FromIterator<$item> for $name {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                items.into_iter().fold(Self::EMPTY, |set, item| set.or(Self::one(item)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_set().entries(self.iter().map($index)).finish()
            }
        }
    };
}

set! {
    /// Slots of an array.
    SlotSet of Slot, slot_index, slot_of
}
set! {
    /// Strips of a stripe, by their index.
    StripSet of usize, same, same
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_64_make_a_set() {
        let all = SlotSet::range(Slot(0), Slot(64));
        assert_eq!((all.len(), all.has(Slot(63)), all.has(Slot(64))), (64, true, false));
        assert_eq!(all.iter().collect::<Vec<_>>(), (0..64).map(Slot).collect::<Vec<_>>());
        assert_eq!(SlotSet::one(Slot(63)), SlotSet::range(Slot(63), Slot(64)));
        assert!(SlotSet::range(Slot(64), Slot(64)).is_empty());
        assert_eq!(format!("{:?}", StripSet::range(62, 64)), "{62, 63}");
    }

    #[test]
    #[should_panic(expected = "64 numbers")]
    fn a_65th_is_our_mistake() {
        let _ = StripSet::one(64);
    }

    proptest! {
        /// Beside sets of the standard library.
        #[test]
        fn sets_hold_what_was_put_in(
            a in prop::collection::btree_set(0usize..64, 0..64),
            b in prop::collection::btree_set(0usize..64, 0..64),
            n in 0usize..70,
            (from, to) in (0usize..=64, 0usize..=64),
        ) {
            let set = |items: &BTreeSet<usize>| items.iter().copied().collect::<StripSet>();
            let (one, other) = (set(&a), set(&b));
            prop_assert_eq!(one.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!((one.len(), one.is_empty()), (a.len(), a.is_empty()));
            prop_assert_eq!(one.or(other), set(&(&a | &b)));
            prop_assert_eq!(one.and(other), set(&(&a & &b)));
            prop_assert_eq!(one.without(other), set(&(&a - &b)));
            prop_assert_eq!(one.first(n), set(&a.iter().copied().take(n).collect()));
            prop_assert_eq!(StripSet::range(from, to), set(&(from..to).collect()));
            prop_assert!((0..70).all(|n| one.has(n) == a.contains(&n)));
            let mut more = one;
            b.iter().for_each(|item| more.insert(*item));
            prop_assert_eq!(more, one.or(other));
        }
    }
}
