//! Cuts a batch of writes to one stripe into slices.
//!
//! A batch becomes *fragments*: runs of new bytes within one strip, disjoint, the later write
//! winning where two overlap. Fragments whose byte ranges (in their strips) overlap or touch
//! share a slice, because they share parity bytes or neighbour them; slices are independent.

use crate::limits::SLICE_BYTES_MAX;
use crate::stripe::plan::StripSet;
use io::Buf;

/// New bytes for a run of one strip.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Which data strip of the stripe.
    pub strip: u16,
    /// First byte within the strip.
    pub from: u32,
    /// The bytes.
    pub data: Buf,
}

impl Fragment {
    /// The byte behind the last, within the strip.
    pub fn to(&self) -> u32 {
        self.from + self.data.len() as u32
    }

    /// The part of it within `lo..hi` of the strip, if any.
    pub fn within(&self, lo: u32, hi: u32) -> Option<Fragment> {
        let (from, to) = (self.from.max(lo), self.to().min(hi));
        (from < to).then(|| Fragment {
            strip: self.strip,
            from,
            data: if (from, to) == (self.from, self.to()) {
                self.data.clone()
            } else {
                self.data.slice((from - self.from) as usize..(to - self.from) as usize)
            },
        })
    }
}

/// The fragments of a batch, disjoint, ordered by strip and offset.
#[derive(Default)]
pub struct Batch {
    fragments: Vec<Fragment>,
    ranges: Vec<(u32, u32)>,
}

impl Batch {
    /// An empty batch with room for the usual.
    pub fn with_room() -> Self {
        Self { fragments: Vec::with_capacity(64), ranges: Vec::with_capacity(64) }
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.fragments.clear();
        self.ranges.clear();
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// All fragments.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// Adds a write of `data` at `at` in the stripe's data; it wins over what was added before.
    pub fn add(&mut self, at: u32, data: Buf, strip_bytes: u32) {
        let bytes = data.len() as u32;
        if at % strip_bytes + bytes <= strip_bytes {
            let (strip, from) = ((at / strip_bytes) as u16, at % strip_bytes);
            return self.insert(Fragment { strip, from, data });
        }
        for piece in pieces(at, bytes, strip_bytes) {
            let data = data.slice(piece.done as usize..(piece.done + piece.bytes) as usize);
            self.insert(Fragment { strip: piece.strip, from: piece.from, data });
        }
    }

    /// Adds a write of `bytes` zeros, taken from `zeros` (at least a strip of them).
    pub fn add_zeros(&mut self, at: u32, bytes: u32, zeros: &Buf, strip_bytes: u32) {
        for piece in pieces(at, bytes, strip_bytes) {
            let data = zeros.slice(..piece.bytes as usize);
            self.insert(Fragment { strip: piece.strip, from: piece.from, data });
        }
    }

    fn insert(&mut self, new: Fragment) {
        if new.data.is_empty() {
            return;
        }
        let key = |f: &Fragment| (f.strip, f.from);
        if self.fragments.last().is_none_or(|l| (l.strip, l.to()) <= key(&new)) {
            self.fragments.push(new);
            return;
        }
        let mut at = 0;
        while at < self.fragments.len() {
            let old = &self.fragments[at];
            let apart = old.strip != new.strip || old.to() <= new.from || new.to() <= old.from;
            if apart {
                at += 1;
                continue;
            }
            let old = self.fragments.remove(at);
            for (lo, hi) in [(old.from, new.from), (new.to(), old.to())] {
                if let Some(rest) = (lo < hi).then(|| old.within(lo, hi)).flatten() {
                    self.fragments.insert(at, rest);
                    at += 1;
                }
            }
        }
        let place = self.fragments.partition_point(|f| key(f) < key(&new));
        self.fragments.insert(place, new);
    }

    /// The slices' byte ranges within the strips, ascending, none longer than the limit, as
    /// [`Batch::cut`] found them.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Cuts what was added into slices.
    pub fn cut(&mut self) {
        self.ranges.clear();
        self.ranges.extend(self.fragments.iter().map(|f| (f.from, f.to())));
        if self.ranges.len() > 1 {
            self.ranges.sort_unstable();
            self.ranges.dedup_by(|next, last| {
                let joined = next.0 <= last.1;
                if joined {
                    last.1 = last.1.max(next.1);
                }
                joined
            });
        }
        let limit = SLICE_BYTES_MAX as u32;
        let mut at = 0;
        while at < self.ranges.len() {
            let (lo, hi) = self.ranges[at];
            let border = (lo / limit + 1) * limit;
            if hi > border {
                self.ranges[at].1 = border;
                self.ranges.insert(at + 1, (border, hi));
            }
            at += 1;
        }
    }
}

/// The part of a run of the stripe's data that lies in one strip.
struct Piece {
    strip: u16,
    from: u32,
    /// Bytes of the run before it.
    done: u32,
    bytes: u32,
}

/// Cuts `bytes` bytes from `at` of the stripe's data at the strips' borders.
fn pieces(at: u32, bytes: u32, strip_bytes: u32) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let (strip, from) = (((at + done) / strip_bytes) as u16, (at + done) % strip_bytes);
        let piece = Piece { strip, from, done, bytes: (strip_bytes - from).min(bytes - done) };
        done += piece.bytes;
        (piece.bytes > 0).then_some(piece)
    })
}

/// Which data strips `fragments` (cut to `lo..hi`) touch, and which they cover whole.
pub fn coverage(fragments: &[Fragment], lo: u32, hi: u32) -> (StripSet, StripSet) {
    let (mut touched, mut whole) = (StripSet::default(), StripSet::default());
    let mut at = 0;
    while at < fragments.len() {
        let strip = fragments[at].strip;
        let mut covered = 0;
        while at < fragments.len() && fragments[at].strip == strip {
            covered += fragments[at].data.len() as u32;
            at += 1;
        }
        touched = touched.or(StripSet::one(strip.into()));
        if covered == hi - lo {
            whole = whole.or(StripSet::one(strip.into()));
        }
    }
    (touched, whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use io::Pool;

    fn buf(len: usize, fill: u8) -> Buf {
        let mut b = Pool::single(len);
        b.fill(fill);
        b.freeze()
    }

    /// Applies a batch to a flat copy of the stripe's data.
    fn apply(batch: &Batch, strip_bytes: u32, image: &mut [u8]) {
        for f in batch.fragments() {
            let at = (u32::from(f.strip) * strip_bytes + f.from) as usize;
            image[at..at + f.data.len()].copy_from_slice(&f.data);
        }
    }

    #[test]
    fn later_writes_win_and_fragments_stay_disjoint() {
        let strip = 64u32;
        let mut seed = 7u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..500 {
            let (mut batch, mut wanted) = (Batch::default(), vec![0u8; 256]);
            for fill in 1..=6u8 {
                let at = next(250) as usize;
                let len = 1 + next((256 - at) as u64) as usize;
                batch.add(at as u32, buf(len, fill), strip);
                wanted[at..at + len].fill(fill);
            }
            let mut got = vec![0u8; 256];
            apply(&batch, strip, &mut got);
            assert_eq!(got, wanted);
            for pair in batch.fragments().windows(2) {
                assert!((pair[0].strip, pair[0].to()) <= (pair[1].strip, pair[1].from));
            }
            batch.cut();
            let fragments = batch.fragments().to_vec();
            let ranges = batch.ranges().to_vec();
            assert!(ranges.windows(2).all(|r| r[0].1 < r[1].0));
            for f in fragments {
                assert!(ranges.iter().any(|(lo, hi)| *lo <= f.from && f.to() <= *hi));
            }
        }
    }

    #[test]
    fn long_slices_are_cut() {
        let mut batch = Batch::default();
        let limit = SLICE_BYTES_MAX as u32;
        batch.add(100, buf(2 * SLICE_BYTES_MAX, 1), 4 * limit);
        batch.cut();
        assert_eq!(
            batch.ranges(),
            [(100, limit), (limit, 2 * limit), (2 * limit, 2 * limit + 100)]
        );
        let (touched, whole) = coverage(batch.fragments(), 100, 2 * limit + 100);
        assert_eq!((touched, whole), (StripSet::one(0), StripSet::one(0)));
    }
}
