//! Which drives an array can lose at the same time: of each group as many as it can lose, whatever
//! the others lose.
//!
//! Invariant: what bears a set bears every part of it.

use sim::Rng;

/// The groups of an array, each with how many of its drives it can lose.
#[derive(Clone, Debug)]
pub struct Losses {
    groups: Vec<(u64, usize)>,
}

impl Losses {
    /// Of these groups: a bit for each slot, and how many of them can go.
    pub fn new(groups: Vec<(u64, usize)>) -> Self {
        Self { groups }
    }

    /// Of groups of `group` drives side by side, each of which can lose `lose`.
    pub fn even(width: usize, group: usize, lose: usize) -> Self {
        let mask = |first: usize| (first..first + group).fold(0, |mask, slot| mask | 1 << slot);
        Self::new((0..width).step_by(group).map(|first| (mask(first), lose)).collect())
    }

    /// Whether all of a set can go at once.
    pub fn bears(&self, set: u64) -> bool {
        self.groups.iter().all(|(slots, lose)| (set & slots).count_ones() as usize <= *lose)
    }

    fn slots(&self) -> Vec<u32> {
        let all = self.groups.iter().fold(0, |all, (slots, _)| all | slots);
        (0..u64::BITS).filter(|slot| all >> slot & 1 == 1).collect()
    }

    /// Every set that can go, that of none first; nothing where there are more than `most` others.
    pub fn all(&self, most: usize) -> Option<Vec<u64>> {
        let mut sets = vec![0];
        for slot in self.slots() {
            let with: Vec<u64> = sets.iter().map(|set| set | 1 << slot).collect();
            sets.extend(with.into_iter().filter(|set| self.bears(*set)));
            if sets.len() > most + 1 {
                return None;
            }
        }
        Some(sets)
    }

    /// One of them by chance, as often as not one that bears no other drive's loss.
    pub fn any(&self, rng: &mut Rng) -> u64 {
        let (mut slots, most) = (self.slots(), rng.coin());
        let mut set = 0;
        while !slots.is_empty() {
            let more = set | 1 << slots.swap_remove(rng.index(slots.len()));
            if self.bears(more) && (most || rng.coin()) {
                set = more;
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_of_each_group_go_at_once() {
        let pairs = Losses::even(4, 2, 1);
        let mut all = pairs.all(100).unwrap();
        all.sort_unstable();
        assert_eq!(all, [0b0, 0b1, 0b10, 0b100, 0b101, 0b110, 0b1000, 0b1001, 0b1010]);
        assert_eq!(Losses::even(4, 4, 2).all(100).unwrap().len(), 1 + 4 + 6);
        assert_eq!(Losses::even(3, 3, 0).all(100).unwrap(), [0]);
        assert_eq!(Losses::even(64, 2, 1).all(100), None);
        assert_eq!(Losses::even(64, 64, 1).all(100).unwrap().len(), 1 + 64);
    }

    #[test]
    fn by_chance_there_are_those_of_several_groups() {
        let (pairs, mut rng) = (Losses::even(64, 2, 1), Rng::new(1));
        let sets: Vec<u64> = (0..50).map(|_| pairs.any(&mut rng)).collect();
        assert!(sets.iter().all(|set| pairs.bears(*set)));
        assert!(sets.iter().any(|set| set.count_ones() == 32));
    }
}
