//! An array's part in its region map: who may begin, who must ask, what reads as zeros.

use crate::Host;
use crate::array::message::{LostChange, Mail, Outcome};
use crate::array::pending::Answer;
use crate::array::{Array, MANAGER};
use crate::mail::Mail as EngineMail;
use crate::mutants::{self, Mutant};
use crate::region::message::{ToCore, ToKeeper};
use crate::region::table::{Entered, Entry};
use crate::stripe::table::{Origin, StripeKey};
use core::ops::Range;
use io::local::all_of;
use io::{BlockError, Priority};
use units::GroupNo;

impl<E: Host> Array<E> {
    /// Whether the stripe's band was never written: it reads as zeros.
    #[inline]
    pub(crate) fn never_written(&self, key: StripeKey) -> bool {
        !self.inner.regions.written(key)
    }

    /// Returns when a crash does not bring back what was in a band that reads as zeros by now:
    /// before, nobody may be told that zeros are there. Nobody who has entered anything waits here.
    pub(crate) async fn unwritten_durably(&self, key: StripeKey) -> Result<(), BlockError> {
        if !self.inner.regions.clearing(key) {
            return Ok(());
        }
        let (group, bits) = (key.group, 0..0);
        done(self.ask_keeper(|origin| ToKeeper::Clear { group, bits, origin })).await
    }

    /// How often written bits were withdrawn: a read that began before may not count.
    #[inline]
    pub(crate) fn withdrawn(&self) -> u64 {
        self.inner.regions.withdrawn()
    }

    /// Begins a change of a stripe at once, if it may.
    #[inline]
    pub(crate) fn try_enter_change(&self, key: StripeKey) -> Option<Entry> {
        self.try_enter(key, true)
    }

    /// Begins what changes nothing that counts; `None`: there is nothing, the band reads as zeros.
    #[inline]
    pub(crate) fn enter_unchanged(&self, key: StripeKey) -> Option<Entry> {
        self.try_enter(key, false)
    }

    #[inline]
    fn try_enter(&self, key: StripeKey, change: bool) -> Option<Entry> {
        match self.inner.regions.enter(key, change) {
            Entered::In(entry) => Some(entry),
            Entered::Unwritten | Entered::Ungranted => None,
        }
    }

    /// Ends what was entered.
    #[inline]
    pub(crate) fn leave(&self, entry: Entry) {
        self.inner.regions.leave(entry);
    }

    /// Begins a change of a stripe, once its band is written and its region dirty, durably. Nobody
    /// who has entered anything may wait for it.
    pub(crate) async fn enter_change(&self, key: StripeKey) -> Result<Entry, BlockError> {
        loop {
            if let Some(entry) = self.try_enter_change(key) {
                return Ok(entry);
            }
            self.prepare(key).await?;
        }
    }

    async fn prepare(&self, key: StripeKey) -> Result<(), BlockError> {
        let (group, bit) = (key.group, self.inner.regions.bit(key));
        done(self.ask_keeper(|origin| ToKeeper::Prepare { group, bit, origin })).await
    }

    fn ask_keeper(&self, mail: impl FnOnce(Origin) -> ToKeeper) -> Answer<'_> {
        self.ask_manager(|origin| Mail::Keeper(mail(origin)))
    }

    /// What lies wholly in a range of the rows that one written bit of every group stands for, as
    /// array addresses.
    pub(crate) fn whole_rows(&self, offset: u64, bytes: u64) -> Range<u64> {
        let (bound, end) = (self.bound(), offset + bytes);
        let layout = &bound.view.layout;
        let per_bit = self.inner.regions.stripes_per_bit() / layout.stripes_per_band();
        let (mut first, mut last) = (None, end);
        for range in layout.ranges() {
            let (lo, hi) = (range.array_start, range.array_start + range.array_bytes);
            if hi <= offset || lo >= end {
                continue;
            }
            let unit = layout.row_bytes(lo) * per_bit;
            let from = (lo + (offset.max(lo) - lo).next_multiple_of(unit)).min(hi);
            let to = if end < hi { lo + (end - lo) / unit * unit } else { hi };
            if from < to {
                first = first.or(Some(from));
                last = to;
            }
        }
        first.map_or(end..end, |first| first..last)
    }

    /// Has all bits of such rows unwritten.
    pub(crate) async fn clear_rows(&self, rows: Range<u64>) -> Result<(), BlockError> {
        let mut answers = Vec::new();
        let mut at = rows.start;
        while at < rows.end {
            let bound = self.bound();
            let layout = &bound.view.layout;
            let table = &self.inner.regions;
            let range = layout.ranges().iter().rfind(|range| range.array_start <= at);
            let range = range.expect("the address is in the array");
            let end = rows.end.min(range.array_start + range.array_bytes);
            let unit = layout.row_bytes(at) / layout.stripes_per_band() * table.stripes_per_bit();
            let (from, to) = (at - range.array_start, end - range.array_start);
            for position in 0..range.descriptor.groups {
                let group = GroupNo(range.first_group + position);
                let bits = from / unit..to.div_ceil(unit);
                answers.push(self.ask_keeper(|origin| ToKeeper::Clear { group, bits, origin }));
            }
            at = end;
        }
        let mut result = Ok(());
        for answer in answers {
            result = result.and(done(answer).await);
        }
        if result.is_ok() && self.bound().view.lost.touches(rows.clone()) {
            result = self.change_lost(LostChange::Heal(vec![rows])).await;
        }
        result
    }

    /// Takes mail from the keeper.
    pub(crate) fn region_mail(&self, mail: ToCore) {
        let table = &self.inner.regions;
        match mail {
            ToCore::Written(list) => {
                table.set_written(&list);
                self.post(MANAGER, Mail::Keeper(ToKeeper::Done));
            }
            ToCore::Cleared(list) => {
                table.cleared(&list);
                self.post(MANAGER, Mail::Keeper(ToKeeper::Done));
            }
            ToCore::Grant { group, region, serial } => table.grant(group, region, serial),
            ToCore::Sweep => {
                let regions = table.sweep();
                if !regions.is_empty() {
                    let core = self.inner.env.core();
                    self.post(MANAGER, Mail::Keeper(ToKeeper::GaveUp { core, regions }));
                }
            }
            ToCore::Withdraw(list, below) => {
                let array = self.clone();
                self.inner.env.spawn(Priority::First, async move {
                    array.inner.regions.withdraw(list, below).await;
                    // What was written there must not come back.
                    let skip = mutants::is(Mutant::JournalDiscarded);
                    let lanes = array.lanes().iter().filter(|_| !skip);
                    all_of(lanes.map(|lane| lane.forget(&array)).collect()).await;
                    let mail = Mail::Keeper(ToKeeper::Done);
                    let id = array.inner.id;
                    array.inner.env.post(MANAGER, EngineMail::Array(id, mail));
                });
            }
        }
    }
}

/// The outcome of what the keeper or a stripe was asked to do.
pub(super) async fn done(answer: Answer<'_>) -> Result<(), BlockError> {
    match answer.await {
        Outcome::Done(result) => result,
        other => unreachable!("a change is answered as done, not {other:?}"),
    }
}
