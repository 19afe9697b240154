//! How long a request keeps a drive or a port busy, by its size.
//!
//! A model gives rates at a few sizes. Between two of them the time follows from the larger one's
//! kind:
//! - a rate of *bytes* is a limit of bandwidth: a request takes what the size before takes, or what
//!   its bytes take at that rate, whichever is more;
//! - a rate of *requests* was measured at its size: times between two sizes lie on a straight line.
//!   So do they where a bandwidth is less than that of the size before.
//!
//! A request smaller than the first size takes as long as one of that size. Behind the last one the
//! time grows with the bytes.

/// Picoseconds of a second.
const SECOND: f64 = 1e12;

/// How fast requests of one size are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rate {
    /// So many a second.
    Requests(f64),
    /// So many bytes a second.
    Bytes(f64),
}

/// A rate at a size.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Bytes of a request.
    pub bytes: u64,
    /// How many are served with nothing else to do.
    pub rate: Rate,
    /// Where the number is from; begins with `assumed` where no source has it.
    pub source: &'static str,
}

impl Point {
    /// Picoseconds of one request.
    fn picos(&self) -> f64 {
        match self.rate {
            Rate::Requests(rate) => SECOND / rate,
            Rate::Bytes(rate) => self.bytes as f64 / rate * SECOND,
        }
    }
}

/// A straight piece: from `bytes` on `picos`, and `slope` for each further byte.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Piece {
    bytes: f64,
    picos: f64,
    slope: f64,
}

/// Time by size.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    pieces: Box<[Piece]>,
}

impl Cost {
    /// By rates at sizes in rising order; everything takes `slower` times as long.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(points: &[Point], slower: f64) -> Self {
        let mut pieces = Vec::with_capacity(2 * points.len());
        for (at, point) in points.iter().enumerate() {
            let (bytes, picos) = (point.bytes as f64, point.picos());
            match points.get(at + 1) {
                Some(next) => between(bytes, picos, next, &mut pieces),
                None => pieces.push(Piece { bytes, picos, slope: picos / bytes }),
            }
        }
        assert!(!pieces.is_empty(), "a cost has at least one rate");
        for piece in &mut pieces {
            piece.picos *= slower;
            piece.slope *= slower;
        }
        Self { pieces: pieces.into() }
    }

    /// Picoseconds that a request of so many bytes takes.
    #[inline]
    pub fn of(&self, bytes: u64) -> u64 {
        let bytes = bytes as f64;
        let first = self.pieces[0];
        let last = self.pieces.iter().rev().find(|piece| piece.bytes <= bytes);
        let Piece { bytes: from, picos, slope } = *last.unwrap_or(&first);
        (picos + (bytes - from).max(0.0) * slope + 0.5) as u64
    }
}

/// Adds the pieces from one size to the next.
fn between(bytes: f64, picos: f64, next: &Point, pieces: &mut Vec<Piece>) {
    let (to, slope) = (next.bytes as f64, next.picos() / next.bytes as f64);
    // Where the bytes begin to count.
    let knee = picos / slope;
    if matches!(next.rate, Rate::Bytes(_)) && knee >= bytes {
        pieces.push(Piece { bytes, picos, slope: 0.0 });
        pieces.push(Piece { bytes: knee, picos, slope });
    } else {
        pieces.push(Piece { bytes, picos, slope: (next.picos() - picos) / (to - bytes) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: u64, rate: Rate) -> Point {
        Point { bytes, rate, source: "a test" }
    }

    #[test]
    fn a_bandwidth_is_a_limit() {
        let cost = Cost::new(
            &[point(4096, Rate::Requests(1e6)), point(1 << 17, Rate::Bytes(8.192e9))],
            1.0,
        );
        let sizes = [512, 4096, 8192, 16384, 1 << 20];
        assert_eq!(
            sizes.map(|bytes| cost.of(bytes)),
            [1_000_000, 1_000_000, 1_000_000, 2_000_000, 128_000_000]
        );
    }

    #[test]
    fn between_measured_sizes_it_is_a_straight_line() {
        let points = [point(4096, Rate::Requests(1e6)), point(12288, Rate::Requests(2e5))];
        let cost = Cost::new(&points, 1.0);
        assert_eq!([4096, 8192, 12288].map(|b| cost.of(b)), [1_000_000, 3_000_000, 5_000_000]);
        let slow = Cost::new(&points, 4.0);
        assert_eq!([4096, 8192, 24576].map(|b| slow.of(b)), [4_000_000, 12_000_000, 40_000_000]);
    }

    #[test]
    fn a_bandwidth_below_what_small_requests_have_is_reached_at_its_size() {
        let points = [point(4096, Rate::Requests(1e6)), point(40960, Rate::Bytes(4.096e9 / 2.0))];
        let cost = Cost::new(&points, 1.0);
        assert_eq!([4096, 40960, 81920].map(|b| cost.of(b)), [1_000_000, 20_000_000, 40_000_000]);
        assert_eq!(cost.of(22528), 10_500_000);
    }
}
