//! The content of a drive as shared pages, copied when they are written.
//!
//! Invariant: pages that two images share hold the same bytes in both for as long as they do.

use crate::rng::{Rng, mix};
use std::sync::{Arc, OnceLock};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Pages of different bytes that a littered drive is made of.
const LITTER: usize = 16;

/// A page's bytes.
#[derive(Clone)]
struct Page {
    bytes: [u8; PAGE],
    /// A number that stands for the bytes, once somebody asked for it.
    digest: OnceLock<u64>,
}

impl Page {
    fn new(bytes: [u8; PAGE]) -> Arc<Self> {
        Arc::new(Self { bytes, digest: OnceLock::new() })
    }

    fn digest(&self) -> u64 {
        *self.digest.get_or_init(|| {
            self.bytes.chunks_exact(8).fold(0, |hash, word| {
                let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
            })
        })
    }
}

/// Pages that are shared together.
const RUN: usize = 32;

/// Pages that lie one behind the other; of the last run of an image, what there is.
type Run = Arc<Vec<Arc<Page>>>;

/// The content of a drive. A clone costs one count, its first change a count for each run of pages,
/// and the first in a run one for each of its pages.
#[derive(Clone)]
pub struct Image {
    bytes: usize,
    runs: Arc<Vec<Run>>,
    zero: Arc<Page>,
}

impl Image {
    /// An image of random bytes.
    pub fn random(bytes: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self::made(bytes, |_| {
            let mut page = [0; PAGE];
            rng.fill(&mut page);
            Page::new(page)
        })
    }

    /// An image of few different pages of random bytes; cheap to make.
    pub fn littered(bytes: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let litter: [Arc<Page>; LITTER] = core::array::from_fn(|_| {
            let mut page = [0; PAGE];
            rng.fill(&mut page);
            Page::new(page)
        });
        Self::made(bytes, |_| litter[rng.index(LITTER)].clone())
    }

    fn made(bytes: usize, page: impl FnMut(usize) -> Arc<Page>) -> Self {
        let mut pages = (0..bytes.div_ceil(PAGE)).map(page);
        let run =
            || Some(pages.by_ref().take(RUN).collect()).filter(|run: &Vec<_>| !run.is_empty());
        let runs = Arc::new(core::iter::from_fn(run).map(Arc::new).collect());
        Self { bytes, runs, zero: Page::new([0; PAGE]) }
    }

    fn at(&self, page: usize) -> &Arc<Page> {
        &self.runs[page / RUN][page % RUN]
    }

    fn change(&mut self, page: usize) -> &mut Arc<Page> {
        let run = &mut Arc::make_mut(&mut self.runs)[page / RUN];
        &mut Arc::make_mut(run)[page % RUN]
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The page that begins at `number` times [`PAGE`]; the last may reach behind the end.
    ///
    /// # Panics
    /// If it begins behind the end.
    pub fn page(&self, number: usize) -> &[u8; PAGE] {
        &self.at(number).bytes
    }

    /// Fills `into` from `at`.
    ///
    /// # Panics
    /// If that is outside.
    pub fn read(&self, mut at: usize, mut into: &mut [u8]) {
        assert!(at + into.len() <= self.bytes, "outside the image");
        while !into.is_empty() {
            let (page, from) = (at / PAGE, at % PAGE);
            let n = into.len().min(PAGE - from);
            let (now, rest) = into.split_at_mut(n);
            now.copy_from_slice(&self.at(page).bytes[from..from + n]);
            (into, at) = (rest, at + n);
        }
    }

    /// Puts `data` at `at`.
    ///
    /// # Panics
    /// If that is outside.
    pub fn write(&mut self, mut at: usize, mut data: &[u8]) {
        assert!(at + data.len() <= self.bytes, "outside the image");
        while !data.is_empty() {
            let (page, from) = (at / PAGE, at % PAGE);
            let n = data.len().min(PAGE - from);
            let (now, rest) = data.split_at(n);
            if n == PAGE && now == self.zero.bytes {
                if !Arc::ptr_eq(self.at(page), &self.zero) {
                    *self.change(page) = self.zero.clone();
                }
            } else if self.at(page).bytes[from..from + n] != *now {
                let page = Arc::make_mut(self.change(page));
                page.bytes[from..from + n].copy_from_slice(now);
                page.digest.take();
            }
            (data, at) = (rest, at + n);
        }
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = vec![0; self.bytes];
        self.read(0, &mut all);
        all
    }

    /// Whether a page holds the same bytes in both images.
    pub fn same_page(&self, other: &Self, number: usize) -> bool {
        let (one, other) = (self.at(number), other.at(number));
        Arc::ptr_eq(one, other) || one.bytes == other.bytes
    }

    /// The runs that are not shared with `base`, with the number of the first page of each.
    fn unshared<'a>(
        &'a self,
        base: &'a Self,
    ) -> impl Iterator<Item = (usize, &'a Run, &'a Run)> + 'a {
        let count = if Arc::ptr_eq(&self.runs, &base.runs) { 0 } else { self.runs.len() };
        let pairs = self.runs.iter().zip(base.runs.iter()).take(count).enumerate();
        let unshared = pairs.filter(|(_, (one, other))| !Arc::ptr_eq(one, other));
        unshared.map(|(number, (one, other))| (number * RUN, one, other))
    }

    /// The numbers of the pages whose bytes are not those of `base`, an image of the same size.
    pub fn changed_from<'a>(&'a self, base: &'a Self) -> impl Iterator<Item = usize> + 'a {
        let pages = self.unshared(base).flat_map(|(first, run, _)| first..first + run.len());
        pages.filter(|n| !self.same_page(base, *n))
    }

    /// A number that tells images of one origin apart by what they changed of `base`.
    pub fn digest_from(&self, base: &Self) -> u64 {
        let of_run = |(first, run, other): (usize, &Run, &Run)| {
            let pairs = run.iter().zip(other.iter()).enumerate();
            let changed = pairs.filter(|(_, (one, other))| {
                !Arc::ptr_eq(one, other) && one.digest() != other.digest()
            });
            changed.fold(0, |sum, (n, (one, _))| sum ^ mix(mix((first + n) as u64) ^ one.digest()))
        };
        self.unshared(base).map(of_run).fold(0, |sum, run| sum ^ run)
    }
}
