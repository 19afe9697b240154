//! Which drives form the array, and what its blocks hold, by the rules of docs/format.md.
//!
//! Invariant: a page is given only if the document says for certain what it holds: from the strip
//! itself where its drive counts, else from redundancy that can be trusted.

use super::code::{self, Page};
use super::flight::{self, Anew, Columns};
use super::journal::{self, Overlay};
use super::map::{self, GroupMap};
use super::record::{self, Range, Record, State, VolumeEntry};
use super::{PAGE, Raw, ZERO};
use std::collections::BTreeSet;

/// Why the document says that an array is not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No drive has an intact record.
    Nothing,
    /// A drive is there twice.
    Cloned,
    /// Histories went different ways.
    Diverged,
    /// A drive is named in another slot than its own.
    Swapped,
    /// The creation did not finish.
    Unfinished,
    /// More drives are lacking than redundancy makes up for.
    TooManyMissing,
    /// A person has to accept that data may be lost (rule 7).
    AcceptLoss,
    /// The same, because the journal has a gap.
    Gap,
}

/// An array as its drives have it.
pub struct Decoded<'a, R> {
    /// The newest record.
    pub record: Record,
    /// The drive of each slot that takes part.
    pub drives: Vec<Option<&'a R>>,
    /// The region map of each group.
    pub maps: Vec<GroupMap>,
    /// Pages that a start makes anew from batches, before it serves anything.
    pub(super) overlay: Overlay,
    /// Groups in whose journal batches are missing.
    gaps: BTreeSet<usize>,
    /// Pages with blocks that it makes anew because in-flight pages name them.
    pub(super) anew: Anew,
    /// What in-flight pages say.
    pub flight: flight::Said,
    /// What a start finds lost, as array addresses and bytes, beside what the record lists.
    pub doubted: Vec<(u64, u64)>,
    /// Slots whose drives are in sync by the newest record, and not yet by their own.
    joining: Slots,
    /// Slots whose drives were set back to an older state: they are left out, or filled anew.
    pub set_back: BTreeSet<usize>,
}

/// Where a page of a volume lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The address range.
    pub range: usize,
    /// The group within it.
    pub position: usize,
    /// The stripe of that group.
    pub stripe: u64,
    /// The data strip.
    pub strip: usize,
    /// Offset within the strip.
    pub at: u64,
}

/// A set of slots, a bit each.
pub type Slots = u64;

impl<'a, R: Raw> Decoded<'a, R> {
    /// Puts the array together from the drives that are there.
    ///
    /// # Errors
    /// What the document refuses. Rule 6 (disjoint halves) is the caller's to look at.
    pub fn open(drives: &'a [R]) -> Result<Self, Refusal> {
        let found: Vec<(&R, Record)> =
            drives.iter().filter_map(|d| Some((d, record::newest(d)?))).collect();
        for (i, (_, one)) in found.iter().enumerate() {
            if found[..i].iter().any(|(_, other)| other.drive == one.drive) {
                return Err(Refusal::Cloned);
            }
        }
        let age = |r: &&(&R, Record)| (!given_up(&r.1), r.1.epoch.counter, r.1.sequence);
        let mut newest = found.iter().max_by_key(age).ok_or(Refusal::Nothing)?.1.clone();
        for (_, own) in &found {
            contradicts(&newest, own)?;
        }
        let mut seats: Vec<Option<&R>> = newest.slots.iter().map(|_| None).collect();
        let mut joining: Slots = 0;
        for (drive, own) in &found {
            match newest.slots.iter().position(|s| s.drive == own.drive) {
                Some(at) if at != own.slot => return Err(Refusal::Swapped),
                Some(at) if takes_part(&newest, own) => {
                    seats[at] = Some(*drive);
                    joining |= Slots::from(own.slots[at].state != State::InSync) << at;
                }
                _ => {}
            }
        }
        if !newest.zeroed {
            return Err(Refusal::Unfinished);
        }
        let set_back = map::set_back(&newest, &seats);
        for slot in &set_back {
            match newest.slots[*slot].state {
                State::InSync => seats[*slot] = None,
                _ => newest.slots[*slot].state = State::Rebuilding(0),
            }
        }
        let maps = map::load(&newest, &seats);
        let mut all = Self {
            record: newest,
            drives: seats,
            maps,
            overlay: Overlay::new(),
            gaps: BTreeSet::new(),
            anew: Anew::new(),
            flight: flight::Said::default(),
            doubted: Vec::new(),
            joining,
            set_back,
        };
        (all.overlay, all.gaps) = journal::carry_out(&all);
        all.flight = flight::read(&all);
        all.doubted = flight::carry_out(&mut all);
        Ok(all)
    }

    /// Whether the array may start without a person accepting loss.
    ///
    /// # Errors
    /// Why not.
    pub fn may_start(&self) -> Result<(), Refusal> {
        let mut at_risk = false;
        for range in &self.record.ranges {
            for position in 0..range.groups {
                let lacking = self.lacking(range, position);
                if lacking > range.m {
                    return Err(Refusal::TooManyMissing);
                }
                let group = self.record.groups[range.first_group + position];
                let owes = group.unclean && !group.guarded;
                at_risk |= range.kind == 2 && lacking > 0 && owes;
            }
        }
        match at_risk {
            true => Err(Refusal::AcceptLoss),
            false if self.gaps.iter().any(|group| self.carried(*group)) => Err(Refusal::Gap),
            false => Ok(()),
        }
    }

    /// Where the batches of the journal stand that count, by lane and number.
    pub fn batches(&self) -> journal::Standing {
        journal::standing(self)
    }

    /// Whether they, or in-flight pages, have something that is not yet in place.
    pub fn carries_out(&self) -> bool {
        self.overlay.iter().any(|((slot, number), (page, _))| {
            self.drives[*slot].is_some_and(|drive| drive.page(*number) != &**page)
        })
    }

    /// Whether in-flight pages name something of a seat's page.
    pub fn in_flight(&self, seat: &Seat) -> bool {
        let group = self.record.ranges[seat.range].first_group + seat.position;
        let over = |c: &Columns| c.from < seat.at + PAGE as u64 && seat.at < c.to;
        self.flight.named.iter().any(|c| (c.group, c.stripe) == (group, seat.stripe) && over(c))
    }

    /// Whether the group is guarded under a key from when no drive lacked: what was under way is
    /// in in-flight pages.
    pub fn by_flight(&self, seat: &Seat) -> bool {
        let r = &self.record.ranges[seat.range];
        let group = self.record.groups[r.first_group + seat.position];
        let whole = self.record.slots.iter().all(|slot| slot.state == State::InSync);
        r.kind == 2 && group.guarded && whole
    }

    /// Whether an in-flight page may be hidden of a group that lacks no drive and was guarded: then
    /// its dirty regions are owed.
    pub fn hides(&self) -> bool {
        let ranges =
            || self.record.ranges.iter().filter(|r| r.kind == 2 && self.flight.blind > r.m);
        let mut all = ranges().flat_map(|r| (0..r.groups).map(move |position| (r, position)));
        all.any(|(r, position)| {
            let group = self.record.groups[r.first_group + position];
            group.guarded && group.unclean && self.lacking(r, position) == 0
        })
    }

    /// Whether the journal area stands for what was under way in a group, and is carried out: the
    /// group is guarded, and lacks a drive, or no in-flight page may be hidden.
    pub(super) fn carried(&self, group: usize) -> bool {
        let range = self.record.ranges.iter().rfind(|r| r.first_group <= group);
        let entry = self.record.groups[group];
        let says =
            |r: &Range| self.flight.blind <= r.m || self.lacking(r, group - r.first_group) > 0;
        entry.guarded && entry.unclean && range.is_some_and(says)
    }

    /// The map of a seat's group.
    fn map(&self, seat: &Seat) -> &GroupMap {
        &self.maps[self.record.ranges[seat.range].first_group + seat.position]
    }

    /// Whether the band of a stripe was ever written.
    pub fn written(&self, seat: &Seat) -> bool {
        self.map(seat).written(seat.stripe)
    }

    /// Whether writes to the stripe may have been under way when the array ended.
    pub fn dirty(&self, seat: &Seat) -> bool {
        self.map(seat).dirty(seat.stripe)
    }

    /// Whether redundancy of a group matches in all that was ever written to it.
    fn right(&self, group: usize) -> bool {
        self.carried(group) || !self.record.groups[group].unclean
    }

    /// Whether a group owes the resync of a region.
    pub fn owes_regions(&self) -> bool {
        let owes = |(group, map): (usize, &GroupMap)| {
            let range = self.record.ranges.iter().rfind(|r| r.first_group <= group);
            let lacks = range.is_some_and(|r| self.lacking(r, group - r.first_group) > 0);
            map.any_dirty() && (!self.right(group) || !lacks && map.any_forgotten())
        };
        self.maps.iter().enumerate().any(owes)
    }

    /// Whether the drive of a slot is there and in sync.
    pub fn counts(&self, slot: usize) -> bool {
        self.drives[slot].is_some() && self.record.slots[slot].state == State::InSync
    }

    /// The region map of a slot's groups as its drive alone has it.
    pub fn maps_of(&self, slot: usize) -> Vec<(usize, GroupMap)> {
        let own = |(i, drive): (usize, &Option<&'a R>)| drive.filter(|_| i == slot);
        let own: Vec<_> = self.drives.iter().enumerate().map(own).collect();
        let maps = map::load(&self.record, &own);
        let mine = |(group, _): &(usize, GroupMap)| {
            let range = self.record.ranges.iter().rfind(|r| r.first_group <= *group);
            range.is_some_and(|r| {
                let first = r.first_slot + (group - r.first_group) * (r.k + r.m);
                (first..first + r.k + r.m).contains(&slot)
            })
        };
        maps.into_iter().enumerate().filter(mine).collect()
    }

    /// Whether the region map is the same by the drives that are left with some erased.
    pub fn same_map(&self, erased: Slots) -> bool {
        let left = self.drives.iter().enumerate();
        let left: Vec<_> =
            left.map(|(slot, drive)| drive.filter(|_| erased >> slot & 1 == 0)).collect();
        map::load(&self.record, &left) == self.maps
    }

    /// A drive that has the written bits of a page of the map in one place only.
    pub fn one_place(&self) -> Option<String> {
        let there = self.drives.iter().enumerate().filter_map(|(i, drive)| Some((i, (*drive)?)));
        let unlike = |(i, drive): (usize, &R)| Some((i, map::unlike(&self.record, i, drive)?));
        let (slot, page) = there.into_iter().find_map(unlike)?;
        Some(format!("slot {slot} has the bits of page {page:?} of the map in one place"))
    }

    /// How many drives of the group do not hold everything.
    fn lacking(&self, range: &Range, position: usize) -> usize {
        let first = range.first_slot + position * (range.k + range.m);
        let whole =
            |s: &usize| self.drives[*s].is_some() && self.record.slots[*s].state == State::InSync;
        (first..first + range.k + range.m).filter(|s| !whole(s)).count()
    }

    /// How many more drives every group can lose.
    pub fn spare(&self) -> usize {
        self.spares().into_iter().map(|(_, left)| left).min().unwrap_or(0)
    }

    /// The slots of each group, and how many more of their drives it can lose. One that is about to
    /// join is of use only beside those that know of it.
    pub fn spares(&self) -> Vec<(Slots, usize)> {
        let groups = self.record.ranges.iter().flat_map(|r| (0..r.groups).map(move |g| (r, g)));
        let left = |(r, g): (&Range, usize)| {
            let first = r.first_slot + g * (r.k + r.m);
            let slots = first..first + r.k + r.m;
            let joins = |slot: &usize| self.counts(*slot) && self.joining >> slot & 1 == 1;
            let joining = slots.clone().filter(joins).count();
            let mask = slots.fold(0, |mask, slot| mask | 1 << slot);
            (mask, r.m.saturating_sub(self.lacking(r, g) + joining))
        };
        groups.map(left).collect()
    }

    /// The volume of this name.
    pub fn volume(&self, name: &str) -> Option<&VolumeEntry> {
        self.record.volumes.iter().find(|v| v.name == name)
    }

    /// Where a page of a volume lies; `None` behind its extents.
    pub fn seat(&self, volume: &VolumeEntry, mut offset: u64) -> Option<Seat> {
        for (start, bytes) in &volume.extents {
            if offset < *bytes {
                return self.locate(start + offset);
            }
            offset -= bytes;
        }
        None
    }

    /// Whether any of these bytes of a volume, in one strip, is lost by the list, or a start
    /// will list it.
    pub fn listed(&self, volume: &VolumeEntry, offset: u64, bytes: u64) -> bool {
        let meets = |list| self.meets(volume, (offset, bytes), list);
        meets(&self.record.lost) || meets(&self.doubted)
    }

    /// Whether any of them is lost because it was in flight at a crash: what only groups with
    /// parity may lose.
    pub fn lost_in_flight(&self, volume: &VolumeEntry, offset: u64, bytes: u64) -> bool {
        let meets = |list| self.meets(volume, (offset, bytes), list);
        let parity = |seat: Seat| self.record.ranges[seat.range].kind == 2;
        self.seat(volume, offset).is_some_and(parity)
            && (meets(&self.record.crashed) || meets(&self.doubted))
    }

    /// Whether bytes of a volume, in one strip, meet one of these array addresses.
    fn meets(
        &self,
        volume: &VolumeEntry,
        (mut offset, bytes): (u64, u64),
        list: &[(u64, u64)],
    ) -> bool {
        for (start, length) in &volume.extents {
            if offset < *length {
                let from = start + offset;
                return list.iter().any(|(at, long)| *at < from + bytes && from < at + long);
            }
            offset -= length;
        }
        false
    }

    fn locate(&self, address: u64) -> Option<Seat> {
        let inside =
            |r: &Range| r.array_start <= address && address < r.array_start + r.array_bytes;
        let range = self.record.ranges.iter().position(inside)?;
        let r = &self.record.ranges[range];
        let from = address - r.array_start;
        let (number, at) = (from / r.strip, from % r.strip);
        let (array_stripe, strip) = (number / r.k as u64, (number % r.k as u64) as usize);
        let (stripe, position) =
            (array_stripe / r.groups as u64, (array_stripe % r.groups as u64) as usize);
        Some(Seat { range, position, stripe, strip, at })
    }

    /// The slot of a strip.
    pub fn slot(&self, seat: &Seat, strip: usize) -> usize {
        let r = &self.record.ranges[seat.range];
        let n = r.k + r.m;
        let base = r.first_slot + seat.position * n;
        if r.rotation == 0 {
            return base + strip;
        }
        let p = n - 1 - (seat.stripe % n as u64) as usize;
        base + match strip.checked_sub(r.k) {
            None => (p + r.m + strip) % n,
            Some(parity) => (p + parity) % n,
        }
    }

    /// A stripe of a group: its first page.
    pub fn seat_of(&self, group: usize, stripe: u64) -> Option<Seat> {
        let range = self.record.ranges.iter().rposition(|r| r.first_group <= group)?;
        let r = &self.record.ranges[range];
        let position = group - r.first_group;
        (stripe < stripes(r)).then_some(Seat { range, position, stripe, strip: 0, at: 0 })
    }

    /// The array address of a data strip at a seat's offset.
    pub(super) fn address(&self, seat: &Seat, strip: usize) -> u64 {
        let r = &self.record.ranges[seat.range];
        let row = seat.stripe * r.groups as u64 + seat.position as u64;
        r.array_start + (row * r.k as u64 + strip as u64) * r.strip + seat.at
    }

    /// Where the strips of a seat's stripe begin on their drives.
    pub fn drive_offset(&self, seat: &Seat) -> u64 {
        let r = &self.record.ranges[seat.range];
        self.record.data_offset + r.drive_start + seat.stripe * r.strip
    }

    /// The page of a strip on its drive, if that counts and can be read. What lies in a band that
    /// was never written means nothing.
    pub fn page(&self, seat: &Seat, strip: usize, erased: Slots) -> Option<&Page> {
        self.page_by(seat, strip, erased, &self.anew)
    }

    /// The same, where a start makes these pages anew.
    fn page_by<'s>(
        &'s self,
        seat: &Seat,
        strip: usize,
        erased: Slots,
        anew: &'s Anew,
    ) -> Option<&'s Page> {
        let r = &self.record.ranges[seat.range];
        let slot = self.slot(seat, strip);
        let erased = if self.written(seat) { erased } else { Slots::MAX };
        let drive = self.drives[slot].filter(|_| erased >> slot & 1 == 0)?;
        let area = r.drive_start + seat.stripe * r.strip;
        let counts = match self.record.slots[slot].state {
            State::InSync => true,
            State::Rebuilding(border) => area + r.strip <= border,
            State::Failed => false,
        };
        let at = self.drive_offset(seat) + seat.at;
        let number = at / PAGE as u64;
        let place = (slot, number);
        if let Some((page, made)) = self.overlay.get(&place).or_else(|| anew.get(&place)) {
            let there = |i: u64| {
                made >> i & 1 == 1 || !drive.unreadable(number * PAGE as u64 + i * 512, 512)
            };
            return (counts && (0..PAGE as u64 / 512).all(there)).then_some(page);
        }
        let whole = counts && !drive.unreadable(at, PAGE as u64);
        whole.then(|| drive.page(number))
    }

    /// What the page of a data strip holds with the `erased` slots gone; `None` if the rest does
    /// not say.
    pub fn read(&self, seat: &Seat, erased: Slots) -> Option<Page> {
        let r = &self.record.ranges[seat.range];
        if !self.written(seat) {
            return Some(ZERO);
        }
        if r.kind == 1 {
            let copies = 0..r.k + r.m;
            return copies.into_iter().find_map(|c| self.page(seat, c, erased)).copied();
        }
        if let Some(page) = self.page(seat, seat.strip, erased) {
            return Some(*page);
        }
        if r.kind != 2 || !self.gives(seat) {
            return None;
        }
        let data: Vec<Option<&Page>> = (0..r.k).map(|s| self.page(seat, s, erased)).collect();
        let parity = |i| (i < r.m).then(|| self.page(seat, r.k + i, erased)).flatten();
        let mut there = data.iter().copied().chain([parity(0), parity(1)]).flatten();
        if there.clone().count() >= r.k && there.all(|page| page[..] == ZERO[..]) {
            return Some(ZERO);
        }
        let lost = (0..r.k).filter(|s| data[*s].is_none());
        let at = lost.into_iter().position(|s| s == seat.strip)?;
        code::recover(&data, [parity(0), parity(1)]).map(|pages| pages[at])
    }

    /// Whether redundancy of the stripe is to be believed where nobody else says what was written.
    fn gives(&self, seat: &Seat) -> bool {
        let group = self.record.ranges[seat.range].first_group + seat.position;
        self.trusted(seat) || self.right(group)
    }

    /// Whether the strips of the stripe are to agree, also where nothing was ever written.
    pub fn trusted(&self, seat: &Seat) -> bool {
        let r = &self.record.ranges[seat.range];
        let group = r.first_group + seat.position;
        let right = self.right(group);
        let group = self.record.groups[group];
        let map = self.map(seat);
        let right = right && !map.forgotten_at(seat.stripe);
        group.loss_accepted || right || !map.dirty(seat.stripe)
    }

    /// Looks at the redundancy of every page of every stripe, as it is before a start makes right
    /// what was in flight; the places of the first pages where
    /// strips that are all there do not agree, and how many pages were compared. With `dirty` also
    /// of regions that are dirty; never of bands that were not written.
    pub fn mismatches(&self, dirty: bool) -> (Vec<Seat>, u64) {
        let (mut wrong, mut compared) = (Vec::new(), 0);
        for (range, r) in self.record.ranges.iter().enumerate().filter(|(_, r)| r.m > 0) {
            for position in 0..r.groups {
                for stripe in 0..stripes(r) {
                    let first = Seat { range, position, stripe, strip: 0, at: 0 };
                    if !dirty && self.dirty(&first) || !self.written(&first) {
                        continue;
                    }
                    for at in (0..r.strip).step_by(PAGE) {
                        let seat = Seat { range, position, stripe, strip: 0, at };
                        let Some(agrees) = self.agrees(&seat) else { continue };
                        compared += 1;
                        if !agrees && wrong.len() < 8 {
                            wrong.push(seat);
                        }
                    }
                }
            }
        }
        (wrong, compared)
    }

    /// Whether the strips of a stripe agree at a page; `None` if one is not there.
    fn agrees(&self, seat: &Seat) -> Option<bool> {
        let r = &self.record.ranges[seat.range];
        let none = Anew::new();
        let own = |s| self.page_by(seat, s, 0, &none);
        let all: Vec<&Page> = (0..r.k + r.m).map(own).collect::<Option<_>>()?;
        if r.kind == 1 {
            return Some(all.iter().all(|page| page[..] == all[0][..]));
        }
        if all.iter().all(|page| page[..] == ZERO[..]) {
            return Some(true);
        }
        let data: Vec<Option<&Page>> = all[..r.k].iter().copied().map(Some).collect();
        let right = code::p(&data) == *all[r.k];
        Some(right && (r.m < 2 || code::q(&data) == *all[r.k + 1]))
    }
}

/// Stripes of a group of the range.
pub fn stripes(r: &Range) -> u64 {
    r.array_bytes / (r.groups * r.k) as u64 / r.strip
}

/// Rule 3: what the newest record knows of epochs, held against a drive's own.
fn contradicts(newest: &Record, own: &Record) -> Result<(), Refusal> {
    let before = record::Epoch { counter: newest.epoch.counter - 1, id: newest.before };
    let known = newest.slots.iter().map(|s| s.last).chain([newest.epoch, before]);
    if known.into_iter().any(|e| own.epoch.contradicts(e)) {
        return Err(Refusal::Diverged);
    }
    let Some(entry) = newest.slots.iter().find(|s| s.drive == own.drive) else { return Ok(()) };
    let failed = entry.state == State::Failed;
    let behind = !failed && entry.last != newest.epoch;
    let later = own.epoch.counter > entry.last.counter;
    let taken_again = behind && own.epoch == newest.epoch;
    if (failed || behind) && later && !taken_again { Err(Refusal::Diverged) } else { Ok(()) }
}

/// Rule 4: whether a drive takes part by its own slot's entry.
fn takes_part(newest: &Record, own: &Record) -> bool {
    let entry = &newest.slots[own.slot];
    let (counter, last) = (own.epoch.counter, entry.last.counter);
    let recent = own.epoch == newest.epoch || counter == last || counter + 1 == last;
    entry.state != State::Failed && !given_up(own) && recent
}

/// Whether a drive is being put back by its own record.
fn given_up(own: &Record) -> bool {
    own.slots[own.slot].state == State::Failed
}
