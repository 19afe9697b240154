//! The oracle of servers that reach the same drives, one behind the other: nothing of one lands
//! after another has the array.
//!
//! It sits where the shelf hands requests to its drives. There a request is some server's, since
//! each has ports of its own.
//!
//! | the array is    | becomes      | when                                                    |
//! |-----------------|--------------|---------------------------------------------------------|
//! | the first's     | the second's | the second changes anything, and be it an owner's page  |
//!
//! Invariants
//! - At that moment nothing is under way that the first has asked for, and nothing comes later.
//! - What the drives held then is what the second starts from: it has only read them.

use crate::fleet::{Picked, pick};
use io::blocks::OfDrive;
use io::{BlockError, Blocks, Buf, BufMut};
use sim::{SharedSimDrive, SimDrive};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Which of two servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Server {
    /// The one that had the array.
    First,
    /// The one that comes after it.
    Second,
}

/// What both have changed.
pub struct Book {
    drives: Vec<SharedSimDrive>,
    /// Changes of the first that have begun and not ended.
    under_way: Cell<u64>,
    /// What the drives held before the second changed them, once it has.
    before: RefCell<Option<Vec<Picked>>>,
    found: RefCell<Option<String>>,
    /// Changes of the second.
    seconds: Cell<u64>,
    /// The first stands still, or is no more; what of it has begun or ended since.
    is_over: Cell<bool>,
    late: Cell<u64>,
}

impl Book {
    /// Nobody has changed anything yet.
    pub fn new(drives: &[SharedSimDrive]) -> Rc<Self> {
        Rc::new(Self {
            drives: drives.to_vec(),
            under_way: Cell::new(0),
            before: RefCell::default(),
            found: RefCell::default(),
            seconds: Cell::new(0),
            is_over: Cell::new(false),
            late: Cell::new(0),
        })
    }

    /// What the drives held when the second made its first change, if it has made one.
    pub fn take_before(&self) -> Option<Vec<Picked>> {
        self.before.borrow_mut().as_mut().map(core::mem::take)
    }

    /// What was found.
    pub fn found(&self) -> Option<String> {
        self.found.borrow().clone()
    }

    /// The first stands still, or is no more.
    pub fn first_is_over(&self) {
        self.is_over.set(true);
    }

    /// How many changes of the second were looked at since it was asked, and begins and ends of
    /// changes of the first since that was over.
    pub fn looked(&self) -> (u64, u64) {
        (self.seconds.take(), self.late.take())
    }

    fn counts_late(&self) {
        self.late.set(self.late.get() + u64::from(self.is_over.get()));
    }

    fn begins(&self, by: Server, drive: usize, (at, bytes): (u64, u64)) {
        let has_another = self.before.borrow().is_some();
        match by {
            Server::First => {
                self.counts_late();
                self.under_way.set(self.under_way.get() + 1);
                if has_another {
                    self.note(format!(
                        "{bytes} bytes at {at} of drive {drive} are changed for a server, and \
                         another has the array"
                    ));
                }
            }
            Server::Second => {
                self.seconds.set(self.seconds.get() + 1);
                let left = self.under_way.get();
                if !has_another {
                    *self.before.borrow_mut() = Some(pick(&self.drives));
                    if left > 0 {
                        self.note(format!(
                            "a server begins to change drives, and {left} changes for the one \
                             that had the array are still under way"
                        ));
                    }
                }
            }
        }
    }

    fn ends(&self, by: Server) {
        if by == Server::First {
            self.counts_late();
            self.under_way.set(self.under_way.get() - 1);
        }
    }

    fn note(&self, text: String) {
        self.found.borrow_mut().get_or_insert(text);
    }
}

/// A drive as the shelf serves it to a server.
#[derive(Clone)]
pub struct Booked {
    /// The drive.
    pub volume: OfDrive<SimDrive>,
    /// Its number.
    pub number: usize,
    /// To whom.
    pub by: Server,
    /// Where that is written down.
    pub book: Rc<Book>,
}

impl Booked {
    async fn change<T>(&self, place: (u64, u64), change: impl Future<Output = T>) -> T {
        self.book.begins(self.by, self.number, place);
        // The target carries each to its end, whoever waits for it.
        let outcome = change.await;
        self.book.ends(self.by);
        outcome
    }
}

impl Blocks for Booked {
    fn bytes(&self) -> u64 {
        self.volume.bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.volume.block_bytes()
    }

    fn strip_bytes(&self) -> u32 {
        self.volume.strip_bytes()
    }

    fn stripe_bytes(&self) -> u32 {
        self.volume.stripe_bytes()
    }

    fn volatile_cache(&self) -> bool {
        self.volume.volatile_cache()
    }

    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        self.volume.read(offset, into).await
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        let place = (offset, data.len() as u64);
        self.change(place, self.volume.write(offset, data, fua)).await
    }

    async fn compare_and_write(
        &self,
        offset: u64,
        blocks: (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        self.volume.compare_and_write(offset, blocks, fua).await
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        self.change((offset, bytes), self.volume.write_zeroes(offset, bytes, fua)).await
    }

    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.change((offset, bytes), self.volume.discard(offset, bytes)).await
    }

    async fn flush(&self) -> Result<(), BlockError> {
        self.volume.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use format::limits::{OWNER_AT, OWNER_BYTES};
    use sim::DriveConfig;
    use units::MIB;

    fn book() -> Rc<Book> {
        Book::new(&[SharedSimDrive::new(DriveConfig::new(2 * MIB, 1))])
    }

    const PAGE: (u64, u64) = (OWNER_AT, OWNER_BYTES as u64);

    #[test]
    fn what_is_under_way_when_another_begins_is_found() {
        let own = book();
        own.begins(Server::First, 0, (8192, 512));
        assert_eq!((own.found(), own.take_before().is_some()), (None, false));
        own.begins(Server::Second, 0, PAGE);
        assert!(own.found().is_some_and(|text| text.contains("1 changes")));
    }

    #[test]
    fn what_comes_later_is_found_and_a_page_too() {
        for place in [(8192, 512), PAGE] {
            let own = book();
            own.begins(Server::First, 0, (8192, 512));
            own.ends(Server::First);
            own.begins(Server::Second, 0, (0, 4096));
            assert_eq!(own.found(), None);
            assert!(own.take_before().is_some_and(|drives| drives.len() == 1));
            own.begins(Server::First, 0, place);
            assert!(own.found().is_some_and(|text| text.contains("another has the array")));
        }
    }
}
