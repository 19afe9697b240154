//! The columns that one core is writing: pure, without I/O, of a fixed size.
//!
//! | an entry is | becomes | when                                                                |
//! |-------------|---------|---------------------------------------------------------------------|
//! | free        | open    | a write of columns begins that no entry has                         |
//! | open        | over    | every write that used it is over, and who missed it is out; caches  |
//! |             |         | may hold some of it                                                 |
//! | open        | safe    | the same, and no cache holds anything of it                         |
//! | over        | open    | another write of the same columns begins                            |
//! | over        | safe    | the drives were flushed since the last write that caches may hold   |
//! | safe        | open    | another write of the same columns begins                            |
//! | safe        | free    | a page is made: it is left out of it                                |
//!
//! An entry is *named* once a page with it is durable; a page has every entry that is not safe.
//! Only who finds its entry named may write in place.
//!
//! Invariants
//! - The newest durable page names every entry that is open and named, or over.
//! - What is free is in no page that is made later.

use format::flight::Columns;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// So many writes use it.
    Open(u32),
    Over,
    Safe,
}

#[derive(Clone, Copy)]
struct Entry {
    columns: Columns,
    state: State,
    /// How many flushes had begun when the last write was over that caches may hold.
    cached: Option<u64>,
    /// The first page that names it; 0: none yet.
    page: u64,
    /// The next in its bucket, or in the list of free ones.
    next: u32,
    /// Where it is among those that are not free.
    place: u32,
}

/// Names an entry to who uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(u32);

/// See the module above.
pub struct InFlight {
    entries: Vec<Entry>,
    /// Those that are not free, in any order: few, where there is room for thousands.
    used: Vec<u32>,
    buckets: Vec<u32>,
    free: u32,
    /// The newest page that was made, and the newest that is durable.
    made: u64,
    durable: u64,
    /// Entries that no page was made with.
    fresh: usize,
    over: usize,
    safe: usize,
}

impl InFlight {
    /// Room for so many entries.
    pub fn new(most: usize) -> Self {
        let (columns, state) = (Columns::default(), State::Free);
        let free = Entry { columns, state, cached: None, page: 0, next: NONE, place: 0 };
        let mut entries = vec![free; most];
        for (i, entry) in (1u32..).zip(&mut entries[..most - 1]) {
            entry.next = i;
        }
        let buckets = vec![NONE; most.next_power_of_two()];
        let used = Vec::with_capacity(most);
        let (made, durable, fresh, over, safe) = (0, 0, 0, 0, 0);
        Self { entries, used, buckets, free: 0, made, durable, fresh, over, safe }
    }

    fn bucket(&self, stripe: u64) -> usize {
        let mixed = stripe.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.buckets.len() - 1)
    }

    /// Begins a write of columns; `None` while there is no room. Wider columns are not shared: they
    /// would stay named for as long as writes within them follow each other.
    pub fn enter(&mut self, columns: Columns) -> Option<Ticket> {
        let bucket = self.bucket(columns.stripe);
        let mut at = self.buckets[bucket];
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            if entry.columns == columns {
                match entry.state {
                    State::Open(n) => entry.state = State::Open(n + 1),
                    State::Over | State::Safe => {
                        self.over -= usize::from(entry.state != State::Safe);
                        self.safe -= usize::from(entry.state == State::Safe);
                        entry.state = State::Open(1);
                    }
                    State::Free => unreachable!("what is free is in no bucket"),
                }
                return Some(Ticket(at));
            }
            at = entry.next;
        }
        let at = self.free;
        let entry = self.entries.get_mut(at as usize)?;
        self.free = entry.next;
        let (next, place) = (self.buckets[bucket], self.used.len() as u32);
        *entry = Entry { columns, state: State::Open(1), cached: None, page: 0, next, place };
        self.buckets[bucket] = at;
        self.used.push(at);
        self.fresh += 1;
        Some(Ticket(at))
    }

    /// Whether a durable page names it.
    pub fn named(&self, ticket: Ticket) -> bool {
        let page = self.entries[ticket.0 as usize].page;
        page != 0 && page <= self.durable
    }

    /// A write is over, and who missed it is out; how many flushes have begun, if caches may hold
    /// some of it.
    pub fn over(&mut self, ticket: Ticket, cached: Option<u64>) {
        let entry = &mut self.entries[ticket.0 as usize];
        let State::Open(users) = entry.state else { unreachable!("a write is over once") };
        entry.cached = cached.or(entry.cached);
        entry.state = match (users, entry.cached) {
            (1, None) => State::Safe,
            (1, Some(_)) => State::Over,
            _ => State::Open(users - 1),
        };
        self.over += usize::from(entry.state == State::Over);
        self.safe += usize::from(entry.state == State::Safe);
    }

    /// Whether there are entries that no page was made with.
    pub const fn any_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// Whether there are entries that are over, or safe.
    pub const fn any_over(&self) -> bool {
        self.over + self.safe > 0
    }

    /// Whether a flush would make any safe.
    pub const fn any_unflushed(&self) -> bool {
        self.over > 0
    }

    /// Whether there is little room left.
    pub const fn crowded(&self) -> bool {
        self.used.len() * 4 > self.entries.len() * 3
    }

    /// The flush of all drives that began as this one, counted from 1, ended well.
    pub fn flushed(&mut self, flush: u64) {
        for at in &self.used {
            let entry = &mut self.entries[*at as usize];
            if entry.cached.is_some_and(|begun| begun < flush) {
                entry.cached = None;
                if entry.state == State::Over {
                    entry.state = State::Safe;
                    self.over -= 1;
                    self.safe += 1;
                }
            }
        }
    }

    /// Makes the next page: its number. [`InFlight::named_now`] has its entries until the next
    /// change.
    pub fn make(&mut self) -> u64 {
        self.made += 1;
        // From behind: what is released changes places only with one that had its turn.
        for place in (0..self.used.len()).rev() {
            let at = self.used[place];
            let entry = &mut self.entries[at as usize];
            if entry.state == State::Safe {
                self.release(at);
            } else if entry.page == 0 {
                entry.page = self.made;
            }
        }
        self.fresh = 0;
        self.made
    }

    fn release(&mut self, at: u32) {
        let Entry { columns, next, page, place, .. } = self.entries[at as usize];
        let bucket = self.bucket(columns.stripe);
        let mut link = self.buckets[bucket];
        if link == at {
            self.buckets[bucket] = next;
        } else {
            while self.entries[link as usize].next != at {
                link = self.entries[link as usize].next;
            }
            self.entries[link as usize].next = next;
        }
        self.fresh -= usize::from(page == 0);
        self.safe -= 1;
        self.used.swap_remove(place as usize);
        if let Some(moved) = self.used.get(place as usize) {
            self.entries[*moved as usize].place = place;
        }
        self.entries[at as usize].state = State::Free;
        self.entries[at as usize].next = self.free;
        self.free = at;
    }

    /// How many entries the page has that was made last.
    pub const fn used(&self) -> usize {
        self.used.len()
    }

    /// All entries that are not free.
    pub fn named_now(&self) -> impl Iterator<Item = Columns> + '_ {
        self.used.iter().map(|at| self.entries[*at as usize].columns)
    }

    /// The page that was made last is durable.
    pub fn durable(&mut self) {
        self.durable = self.made;
    }

    /// No page made so far counts any more: under a new key nothing is in flight but what is open.
    pub fn renew(&mut self) {
        for place in (0..self.used.len()).rev() {
            let at = self.used[place];
            let entry = &mut self.entries[at as usize];
            if matches!(entry.state, State::Open(_)) {
                self.fresh += usize::from(entry.page != 0);
                entry.page = 0;
                continue;
            }
            if entry.state == State::Over {
                entry.state = State::Safe;
                self.over -= 1;
                self.safe += 1;
            }
            self.release(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn columns(stripe: u64, from: u32, to: u32) -> Columns {
        Columns { stripe, from, to }
    }

    proptest! {
        /// Beside the pages that were written, and lists of who writes and who may be in a cache.
        #[test]
        fn the_newest_page_names_all_that_is_in_flight(
            steps in prop::collection::vec(
                (0u8..10, 0u64..5, 0u32..4, 1u32..3, any::<bool>()),
                1..300
            )
        ) {
            let mut table = InFlight::new(8);
            let mut page = BTreeSet::new();
            let mut writing: Vec<(Ticket, Columns, bool)> = Vec::new();
            let mut cached: Vec<(Columns, u64)> = Vec::new();
            let mut flushes: Vec<u64> = Vec::new();
            let mut begun = 0;
            for (what, stripe, from, n, safe) in steps {
                match what {
                    0..4 => {
                        let wanted = columns(stripe, from, from + n);
                        if let Some(ticket) = table.enter(wanted) {
                            writing.push((ticket, wanted, false));
                        } else {
                            prop_assert_eq!(table.used(), 8);
                        }
                    }
                    4..6 if !writing.is_empty() => {
                        let (ticket, was, wrote) = writing.remove(stripe as usize % writing.len());
                        if wrote && !safe {
                            cached.push((was, begun + 1));
                        }
                        table.over(ticket, Some(begun).filter(|_| !safe));
                    }
                    6 => {
                        begun += 1;
                        flushes.push(begun);
                    }
                    7 if !flushes.is_empty() => {
                        let flush = flushes.remove(stripe as usize % flushes.len());
                        table.flushed(flush);
                        cached.retain(|c| c.1 > flush);
                    }
                    8 => {
                        table.make();
                        page = table.named_now().map(|c| (c.stripe, c.from, c.to)).collect();
                        table.durable();
                    }
                    // Everything that is over was flushed, and what is open is planned anew.
                    9 if n == 1 => {
                        table.renew();
                        (page, cached) = (BTreeSet::new(), Vec::new());
                        writing.iter_mut().for_each(|w| w.2 = false);
                    }
                    _ => {}
                }
                for (ticket, _, begun) in &mut writing {
                    *begun |= table.named(*ticket);
                }
                let begun = writing.iter().filter(|w| w.2).map(|w| w.1);
                for c in begun.chain(cached.iter().map(|c| c.0)) {
                    let has = |p: &(u64, u32, u32)| p.0 == c.stripe && p.1 <= c.from && c.to <= p.2;
                    prop_assert!(page.iter().any(has), "{:?} is not in {:?}", c, page);
                }
                prop_assert!(table.used() <= 8);
            }
            writing.into_iter().for_each(|(ticket, ..)| table.over(ticket, None));
            table.flushed(begun + 1);
            table.make();
            prop_assert_eq!((table.used(), table.any_over(), table.any_fresh()), (0, false, false));
        }
    }

    #[test]
    fn a_new_key_names_only_what_is_open() {
        let mut table = InFlight::new(4);
        let one = table.enter(columns(1, 0, 8)).unwrap();
        let two = table.enter(columns(2, 0, 8)).unwrap();
        table.make();
        assert!(!table.named(one));
        table.durable();
        assert!(table.named(one) && table.named(two));
        assert_eq!(table.enter(columns(1, 0, 8)), Some(one), "what is named costs nothing");
        table.over(two, Some(0));
        table.renew();
        assert!(table.any_fresh() && !table.named(one) && table.used() == 1);
        table.make();
        table.durable();
        assert!(table.named(one) && !table.any_fresh());
        table.over(one, None);
        table.over(one, None);
        table.make();
        assert_eq!(table.used(), 0);
    }

    #[test]
    fn a_column_is_named_no_longer_than_it_is_written() {
        let mut table = InFlight::new(4);
        let wide = table.enter(columns(1, 0, 8)).unwrap();
        let first = table.enter(columns(1, 2, 4)).unwrap();
        table.make();
        table.durable();
        table.over(wide, None);
        // Writes within it follow each other without a pause.
        let second = table.enter(columns(1, 2, 4)).unwrap();
        table.over(first, None);
        table.make();
        assert_eq!(table.named_now().collect::<Vec<_>>(), [columns(1, 2, 4)]);
        assert!(table.named(second));
    }
}
