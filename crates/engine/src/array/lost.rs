//! An array's part in the lists of what nobody can give back ([`crate::lost`]): who finds such
//! blocks, or fills them anew, tells the manager.

use crate::Host;
use crate::array::message::{LostChange, Mail};
use crate::array::regions::done;
use crate::array::{Array, MANAGER};
use crate::mutants::{self, Mutant};
use crate::stripe::slice::Batch;
use crate::stripe::table::StripeKey;
use core::ops::Range;
use io::BlockError;

impl<E: Host> Array<E> {
    /// Has a list changed, and returns when that is durable and every core knows.
    ///
    /// # Errors
    /// `Unavailable` if it could not be recorded, or the list has no room.
    pub(crate) async fn change_lost(&self, change: LostChange) -> Result<(), BlockError> {
        done(self.ask_manager(|origin| Mail::Lost(change, Some(origin)))).await
    }

    /// Tells that blocks of a data strip could not be read, and nothing gave them.
    pub(crate) fn note(&self, key: StripeKey, strip: usize, span: (u32, u32)) {
        let bound = self.bound();
        let range = bound.view.addresses(key, strip, span);
        let lost = &bound.view.lost;
        let known = lost.noted.within(range.clone()).any(|(known, ())| known == range);
        if !known && !lost.refuses(range.clone()) {
            self.post(MANAGER, Mail::Lost(LostChange::Note(range), None));
        }
    }

    /// Tells that blocks were read, or written, that could not be read before.
    #[inline]
    pub(crate) fn readable_again(&self, range: Range<u64>) {
        let noted = !self.inner.bound.borrow().view.lost.noted.is_empty();
        if noted && self.bound().view.lost.noted.touches(range.clone()) {
            self.post(MANAGER, Mail::Lost(LostChange::Readable(range), None));
        }
    }

    /// Whether a block of the range is lost.
    #[inline]
    pub(crate) fn refuses(&self, range: Range<u64>) -> bool {
        self.inner.bound.borrow().view.lost.refuses(range)
    }

    /// The lost blocks that a batch writes.
    pub(crate) fn lost_of(&self, key: StripeKey, batch: &Batch) -> Vec<Range<u64>> {
        let bound = self.inner.bound.borrow();
        let view = &bound.view;
        if view.lost.listed.is_empty() || mutants::is(Mutant::LostKept) {
            return Vec::new();
        }
        let fragments = batch.fragments().iter();
        let written = fragments.map(|f| view.addresses(key, f.strip.into(), (f.from, f.to())));
        let lost = written.flat_map(|range| view.lost.listed.within(range).collect::<Vec<_>>());
        lost.map(|(range, _)| range).collect()
    }
}
