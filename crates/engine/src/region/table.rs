//! What one core knows of an array's region map. See [`crate::region`].
//!
//! An operation is counted where it enters, in the present of two *phases* of its region. Bits are
//! withdrawn, the phase changes, and who withdraws waits for those of the phase before: what enters
//! later knows that the bits are gone, and keeps nobody waiting, however much there is of it.
//!
//! Invariants
//! - `enter` and `leave` neither wait nor allocate; an operation that entered is counted until it
//!   leaves.
//! - In the phase that is not present nothing is counted but while somebody withdraws.
//! - A grant counts while its serial number is newer than `revoked`, whichever mail came first.

use crate::mutants::{self, Mutant};
use crate::region::Guards;
use crate::region::message::Bits;
use crate::stripe::table::StripeKey;
use core::cell::{Cell, RefCell};
use format::limits::REGION_BITS;
use io::local::Event;
use std::collections::BTreeMap;
use units::GroupNo;

/// What a core starts with.
#[derive(Clone, Debug)]
pub struct TableStart {
    /// A bit has 2 to the power of this stripes.
    pub bit_shift: u32,
    /// Of each group: whether its writes need grants, and the written bits of its regions.
    pub groups: Vec<(bool, Vec<u64>)>,
}

#[derive(Clone, Copy, Default)]
struct Region {
    written: u64,
    /// Withdrawn, and after a crash they may be written again.
    clearing: u64,
    /// Serial number of the newest grant.
    granted: u64,
    /// Grants up to this are void.
    revoked: u64,
    /// Operations under way that entered in each phase, and which is present.
    in_flight: [u32; 2],
    phase: usize,
    touched: bool,
}

struct Group {
    needs_grant: bool,
    regions: Vec<Region>,
}

/// An operation on a stripe that is counted, and must leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Entry {
    /// The stripe.
    pub key: StripeKey,
    phase: usize,
}

/// Whether an operation may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    /// It is counted now.
    In(Entry),
    /// Its band was never written.
    Unwritten,
    /// Its region is not granted.
    Ungranted,
}

/// The table. One per core and array.
pub struct Table {
    bit_shift: u32,
    guards: Guards,
    groups: RefCell<Vec<Group>>,
    /// Regions with a grant.
    held: RefCell<Vec<(GroupNo, u64)>>,
    /// How often bits were withdrawn.
    withdrawn: Cell<u64>,
    idle: Event,
    waiting: Cell<usize>,
}

impl Table {
    /// The table of a core that starts an array.
    pub(crate) fn new(start: &TableStart, guards: Guards) -> Self {
        let region = |written: &u64| Region { written: *written, ..Region::default() };
        let group = |(needs_grant, words): &(bool, Vec<u64>)| Group {
            needs_grant: *needs_grant,
            regions: words.iter().map(region).collect(),
        };
        Self {
            bit_shift: start.bit_shift,
            guards,
            groups: RefCell::new(start.groups.iter().map(group).collect()),
            held: RefCell::default(),
            withdrawn: Cell::new(0),
            idle: Event::default(),
            waiting: Cell::new(0),
        }
    }

    /// Stripes of a bit.
    pub const fn stripes_per_bit(&self) -> u64 {
        1 << self.bit_shift
    }

    /// The bit of a stripe.
    #[inline]
    pub fn bit(&self, key: StripeKey) -> u64 {
        key.stripe.0 >> self.bit_shift
    }

    #[inline]
    fn place(&self, key: StripeKey) -> (usize, usize, u64) {
        let bit = self.bit(key);
        (key.group.index(), (bit / REGION_BITS) as usize, 1 << (bit % REGION_BITS))
    }

    /// Whether the stripe's band was written.
    #[inline]
    pub fn written(&self, key: StripeKey) -> bool {
        if self.guards == Guards::Skipped {
            return true;
        }
        let (group, region, bit) = self.place(key);
        self.groups.borrow()[group].regions[region].written & bit != 0
    }

    /// Whether a crash may bring back what was in the stripe's band before it was withdrawn.
    #[inline]
    pub fn clearing(&self, key: StripeKey) -> bool {
        let (group, region, bit) = self.place(key);
        self.groups.borrow()[group].regions[region].clearing & bit != 0
    }

    /// How often bits were withdrawn: what was read before may not count after.
    #[inline]
    pub fn withdrawn(&self) -> u64 {
        self.withdrawn.get()
    }

    /// Begins an operation on a stripe; one that changes it needs a grant.
    #[inline]
    pub fn enter(&self, key: StripeKey, change: bool) -> Entered {
        if self.guards == Guards::Skipped {
            return Entered::In(Entry { key, phase: 0 });
        }
        let (group, region, bit) = self.place(key);
        let group = &mut self.groups.borrow_mut()[group];
        let region = &mut group.regions[region];
        let phase = region.phase;
        if region.written & bit == 0 {
            return Entered::Unwritten;
        }
        if change {
            if group.needs_grant && region.granted <= region.revoked {
                return Entered::Ungranted;
            }
            region.touched = true;
        }
        region.in_flight[phase] += 1;
        Entered::In(Entry { key, phase })
    }

    /// Ends an operation.
    #[inline]
    pub fn leave(&self, Entry { key, phase }: Entry) {
        if self.guards == Guards::Skipped {
            return;
        }
        let (group, region, _) = self.place(key);
        let region = &mut self.groups.borrow_mut()[group].regions[region];
        region.in_flight[phase] -= 1;
        if region.in_flight[phase] == 0 && self.waiting.get() > 0 {
            self.idle.notify();
        }
    }

    fn with<T>(&self, group: GroupNo, region: u64, work: impl FnOnce(&mut Region) -> T) -> T {
        work(&mut self.groups.borrow_mut()[group.index()].regions[region as usize])
    }

    /// These bits are written.
    pub fn set_written(&self, list: &[Bits]) {
        for b in list {
            self.with(b.group, b.region, |region| region.written |= b.bits);
        }
    }

    /// That these bits are unwritten is durable.
    pub fn cleared(&self, list: &[Bits]) {
        for b in list {
            self.with(b.group, b.region, |region| region.clearing &= !b.bits);
        }
    }

    /// A grant came.
    pub fn grant(&self, group: GroupNo, region: u64, serial: u64) {
        let new = self.with(group, region, |r| {
            let new = serial > r.revoked && r.granted <= r.revoked;
            r.granted = r.granted.max(serial);
            r.touched |= new;
            new
        });
        if new {
            self.held.borrow_mut().push((group, region));
        }
    }

    /// Voids the grants of regions that were not used since the last call, and tells which.
    pub fn sweep(&self) -> Vec<(GroupNo, u64, u64)> {
        let mut given = Vec::new();
        self.held.borrow_mut().retain(|(group, region)| {
            self.with(*group, *region, |r| {
                let busy = r.in_flight != [0, 0] && !mutants::is(Mutant::SweepInFlight);
                let used = r.touched || busy;
                r.touched = false;
                if !used {
                    r.revoked = r.revoked.max(r.granted);
                    given.push((*group, *region, r.granted));
                }
                used
            })
        });
        given
    }

    /// Withdraws bits and voids the grants of their regions; returns when nothing is under way
    /// there that entered before. One at a time.
    pub async fn withdraw(&self, list: Vec<Bits>, below: u64) {
        self.withdrawn.set(self.withdrawn.get() + 1);
        let mut before = BTreeMap::new();
        for b in &list {
            self.with(b.group, b.region, |r| {
                r.clearing |= r.written & b.bits;
                r.written &= !b.bits;
                r.revoked = r.revoked.max(below);
                before.entry((b.group, b.region)).or_insert_with(|| {
                    let old = r.phase;
                    r.phase = 1 - old;
                    assert_eq!(r.in_flight[r.phase], 0, "one at a time");
                    old
                });
            });
        }
        self.held.borrow_mut().retain(|(g, r)| self.with(*g, *r, |r| r.granted > r.revoked));
        self.waiting.set(self.waiting.get() + 1);
        let quiet = || {
            let over = |((g, r), old): (&(GroupNo, u64), &usize)| {
                self.with(*g, *r, |r| r.in_flight[*old] == 0)
            };
            before.iter().all(over).then_some(())
        };
        self.idle.wait_until(quiet).await;
        self.waiting.set(self.waiting.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Waker};
    use units::StripeNo;

    fn table() -> Table {
        let groups = vec![(true, vec![0b10, 0]), (false, vec![0b1])];
        Table::new(&TableStart { bit_shift: 4, groups }, Guards::All)
    }

    fn key(group: u16, stripe: u64) -> StripeKey {
        StripeKey { group: GroupNo(group), stripe: StripeNo(stripe) }
    }

    /// Enters, and says what came of it.
    fn enter(t: &Table, key: StripeKey, change: bool) -> Result<Entry, Entered> {
        match t.enter(key, change) {
            Entered::In(entry) => Ok(entry),
            other => Err(other),
        }
    }

    #[test]
    fn bands_are_written_and_regions_granted_before_a_change() {
        let t = table();
        let at = key(0, 16);
        assert_eq!(t.enter(key(0, 15), false), Entered::Unwritten);
        assert_eq!(t.enter(at, true), Entered::Ungranted);
        assert!(enter(&t, at, false).is_ok());
        t.grant(GroupNo(0), 0, 1);
        assert!(enter(&t, at, true).is_ok());
        assert_eq!(t.enter(key(0, 15), true), Entered::Unwritten);
        assert!(enter(&t, key(1, 0), true).is_ok(), "no redundancy, no grant");
        t.set_written(&[Bits { group: GroupNo(0), region: 1, bits: 1 }]);
        assert!(t.written(key(0, 1024)) && !t.written(key(0, 1040)));
        assert_eq!(t.enter(key(0, 1024), true), Entered::Ungranted, "another region");
    }

    #[test]
    fn a_grant_is_kept_while_it_is_used_and_void_for_ever_after() {
        let t = table();
        t.grant(GroupNo(0), 0, 6);
        assert_eq!(t.sweep(), [], "it is new");
        let entry = enter(&t, key(0, 16), true).unwrap();
        assert_eq!(t.sweep(), []);
        assert_eq!(t.sweep(), [], "an operation is under way");
        t.leave(entry);
        assert_eq!(t.sweep(), [(GroupNo(0), 0, 6)]);
        t.grant(GroupNo(0), 0, 5);
        assert_eq!(t.enter(key(0, 16), true), Entered::Ungranted, "that grant was late");
        t.grant(GroupNo(0), 0, 7);
        assert!(enter(&t, key(0, 16), true).is_ok());
    }

    #[test]
    fn who_withdraws_waits_for_what_entered_before() {
        let t = table();
        t.set_written(&[Bits { group: GroupNo(1), region: 0, bits: 0b111 }]);
        let mut cx = Context::from_waker(Waker::noop());
        let bits = |bits| vec![Bits { group: GroupNo(1), region: 0, bits }];
        let before = enter(&t, key(1, 16), true).unwrap();
        let mut first = pin!(t.withdraw(bits(0b001), 1));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert_eq!(t.enter(key(1, 0), true), Entered::Unwritten);
        let after = enter(&t, key(1, 16), true).unwrap();
        t.leave(before);
        assert!(first.as_mut().poll(&mut cx).is_ready(), "what came later is not waited for");
        let mut second = pin!(t.withdraw(bits(0b010), 2));
        assert!(second.as_mut().poll(&mut cx).is_pending());
        let last = enter(&t, key(1, 32), true).unwrap();
        t.leave(after);
        assert!(second.as_mut().poll(&mut cx).is_ready());
        t.leave(last);
    }
}
