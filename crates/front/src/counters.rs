//! Counts of one core's requests to one volume, by kind: how many, how long they took, how much
//! they moved, and how they failed.
//!
//! Purpose: who looks on reads them from another thread at any time, and takes no time of the core
//! that counts: no mail, no lock, no atomic step that two threads share.
//!
//! | a request is | counted in                                          | becomes              |
//! |--------------|-----------------------------------------------------|----------------------|
//! | under way    | `begun`                                             | over, by one of      |
//! | over         | `begun`, `over`, and the interval of its time, with | -                    |
//! |              | the time and its bytes: it was done                 |                      |
//! |              | or the errors of its reason: it failed              |                      |
//! |              | or `abandoned`: nobody waits for it any more, as    |                      |
//! |              | its future was dropped                              |                      |
//!
//! Invariants
//! - One [`Writer`] counts, and it stays on one thread at a time: a word is loaded and stored, and
//!   nobody stores between.
//! - The words of two writers are in different cache lines.
//! - All that a request is counted in stands before `over` says that it is over. So a reader that
//!   finds a [`Mark`] again has read all that there is, unless something is under way.
//! - Nothing falls: words only go up, and wrap after centuries.

use core::cell::Cell;
use core::marker::PhantomData;
use io::BlockError;
use io::histogram::{Histogram, Times, add};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// What is asked of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A read.
    Read,
    /// A write, or a compare and write.
    Write,
    /// A flush.
    Flush,
    /// A discard, or a write of zeros.
    Discard,
}

impl Kind {
    /// All of them, as they are numbered.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done, and moved so many bytes.
    Done(u64),
    /// It failed.
    Failed(BlockError),
    /// Nobody waits for it any more.
    Abandoned,
}

/// What the requests of a kind that are over are counted in: four cache lines.
#[derive(Default, Debug)]
struct Words {
    times: Histogram,
    bytes: AtomicU64,
    /// By reason: bounds, unavailable, stopped.
    failed: [AtomicU64; 3],
    abandoned: AtomicU64,
}

/// The words of one writer. Aligned to two cache lines, which processors fetch together.
#[repr(align(128))]
#[derive(Default, Debug)]
struct Counters {
    begun: [AtomicU64; 4],
    over: [AtomicU64; 4],
    kinds: [Words; 4],
}

/// Counts on one thread.
#[derive(Debug)]
pub struct Writer {
    counters: Arc<Counters>,
    /// Two threads don't share it.
    _one: PhantomData<Cell<()>>,
}

/// Reads what a [`Writer`] counts.
#[derive(Debug)]
pub struct Reader(Arc<Counters>);

/// Counters that are all 0.
pub fn counters() -> (Writer, Reader) {
    let counters = Arc::<Counters>::default();
    (Writer { counters: counters.clone(), _one: PhantomData }, Reader(counters))
}

impl Writer {
    /// Whether its reader is still there.
    pub fn is_read(&self) -> bool {
        Arc::strong_count(&self.counters) > 1
    }

    /// A request begins.
    #[inline]
    pub fn begin(&self, kind: Kind) {
        if let Some(begun) = self.counters.begun.get(kind as usize) {
            add(begun, 1);
        }
    }

    /// A request is over that began so long ago.
    #[inline]
    pub fn end(&self, kind: Kind, outcome: Outcome, time: Nanos) {
        let kind = kind as usize;
        let (Some(words), Some(over)) =
            (self.counters.kinds.get(kind), self.counters.over.get(kind))
        else {
            return;
        };
        match outcome {
            Outcome::Done(bytes) => {
                words.times.note(time);
                add(&words.bytes, bytes);
            }
            Outcome::Failed(error) => {
                let [bounds, unavailable, stopped] = &words.failed;
                let reason = match error {
                    BlockError::Bounds => bounds,
                    BlockError::Unavailable => unavailable,
                    BlockError::Stopped => stopped,
                };
                add(reason, 1);
            }
            Outcome::Abandoned => add(&words.abandoned, 1),
        }
        // Behind all the others: see the invariants.
        let count = over.load(Ordering::Relaxed).wrapping_add(1);
        over.store(count, Ordering::Release);
    }
}

/// How many requests were begun and how many are over: as long as that stays so, nothing else has
/// changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    begun: [u64; 4],
    over: [u64; 4],
}

impl Mark {
    /// Requests of a kind that are under way.
    pub fn under_way(&self, kind: Kind) -> u64 {
        let kind = kind as usize;
        match (self.begun.get(kind), self.over.get(kind)) {
            // What is over was begun, though the word that says so may have been read before.
            (Some(begun), Some(over)) => begun.saturating_sub(*over),
            _ => 0,
        }
    }

    /// Requests that were begun.
    pub fn begun(&self) -> u64 {
        self.begun.iter().fold(0, |sum, more| sum.wrapping_add(*more))
    }
}

/// The requests of a kind that are over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// How long those took that were done.
    pub times: Times,
    /// The bytes that they moved.
    pub bytes: u64,
    /// Those that failed: for bounds, as blocks were unavailable, as the volume was stopped.
    pub failed: [u64; 3],
    /// Those that nobody waits for any more.
    pub abandoned: u64,
}

impl Reader {
    /// How far its writer is. Read before the counts that it stands for.
    pub fn mark(&self) -> Mark {
        Mark {
            over: self.0.over.each_ref().map(|word| word.load(Ordering::Acquire)),
            begun: self.0.begun.each_ref().map(|word| word.load(Ordering::Relaxed)),
        }
    }

    /// What was counted of a kind.
    pub fn counts(&self, kind: Kind) -> Counts {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let Some(words) = self.0.kinds.get(kind as usize) else { return Counts::default() };
        Counts {
            times: words.times.read(),
            bytes: read(&words.bytes),
            failed: words.failed.each_ref().map(read),
            abandoned: read(&words.abandoned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_two_writers_share_no_line() {
        assert_eq!((align_of::<Counters>(), size_of::<Counters>() % 128), (128, 0));
        assert_eq!(size_of::<Words>(), 256);
    }

    #[test]
    fn a_writer_knows_whether_it_is_read() {
        let (writer, reader) = counters();
        assert!(writer.is_read());
        drop(reader);
        assert!(!writer.is_read());
    }

    /// Each thread counts in its own words while another reads: a mark that is found again stands
    /// for counts that do not change any more.
    #[test]
    fn a_mark_stands_for_all_that_is_over() {
        const EACH: u64 = 20_000;
        let (writer, reader) = counters();
        let (other, second) = counters();
        let count = |writer: Writer| {
            for n in 0..EACH {
                writer.begin(Kind::Write);
                writer.end(Kind::Write, Outcome::Done(3), Nanos(n));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(move || count(writer));
            scope.spawn(move || count(other));
            let mut last = 0;
            while last < EACH {
                let mark = reader.mark();
                let counts = reader.counts(Kind::Write);
                let done: u64 = counts.times.buckets.iter().sum();
                let [_, over, ..] = mark.over;
                assert!(done >= over && counts.bytes >= 3 * over, "{counts:?} {mark:?}");
                assert!(over >= last && mark.under_way(Kind::Write) <= EACH);
                last = over;
            }
        });
        for reader in [reader, second] {
            let counts = reader.counts(Kind::Write);
            assert_eq!(counts.times.buckets.iter().sum::<u64>(), EACH);
            assert_eq!((counts.bytes, counts.times.nanos), (3 * EACH, EACH * (EACH - 1) / 2));
            assert_eq!((reader.mark().begun(), reader.mark().under_way(Kind::Write)), (EACH, 0));
        }
    }
}
