//! What a model's numbers say of a steady load: so many requests under way at any time, each
//! followed by the next.
//!
//! It is found from the numbers alone, by another way than the drives' state is: a request's
//! service S and its latency L are taken as means over reads and writes. Then a drive does as many
//! requests a second as it serves, 1 / S, or as many as `depth` requests come to that take S + L
//! each, whichever is less. Between the two a drive does a little less than either, because
//! requests wait for each other: this is for loads that are well on one side.

use crate::cost::{Point, Rate};
use crate::model::{Model, Overlap};

/// A steady load on one drive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Steady {
    /// The part of requests that read, 0 to 1.
    pub reads: f64,
    /// Bytes of a request.
    pub bytes: u64,
    /// Requests under way.
    pub depth: u32,
}

/// Seconds that a drive with these rates serves a request.
pub(crate) fn service(points: &[Point], bytes: u64) -> f64 {
    let size = bytes as f64;
    let time = |point: &Point| match point.rate {
        Rate::Requests(rate) => 1.0 / rate,
        Rate::Bytes(rate) => point.bytes as f64 / rate,
    };
    let behind = points.iter().position(|point| point.bytes > bytes);
    match behind {
        Some(0) => time(&points[0]),
        None => {
            let last = &points[points.len() - 1];
            time(last) * size / last.bytes as f64
        }
        Some(at) => {
            let (below, above) = (&points[at - 1], &points[at]);
            let (from, to) = (below.bytes as f64, above.bytes as f64);
            match above.rate {
                Rate::Bytes(rate) if rate >= from / time(below) => time(below).max(size / rate),
                _ => {
                    let part = (size - from) / (to - from);
                    time(below) * (1.0 - part) + time(above) * part
                }
            }
        }
    }
}

impl Model {
    /// Seconds that a drive is busy with so many reads and so many writes of these times, which are
    /// asked for all along.
    pub(crate) fn busy(&self, reads: f64, writes: f64) -> f64 {
        match self.overlap {
            Overlap::Adds => reads + writes,
            Overlap::Squares => (reads * reads + writes * writes).sqrt(),
        }
    }

    /// Requests a second of one drive alone behind its port.
    pub fn rate(&self, load: Steady) -> f64 {
        let Steady { reads, bytes, depth } = load;
        let writes = 1.0 - reads;
        let filled = bytes.next_multiple_of(self.unit_bytes.value as u64);
        let served =
            self.busy(reads * service(self.reads, bytes), writes * service(self.writes, filled));
        let latency = reads * self.read_latency_us.value + writes * self.write_latency_us.value;
        let own = (1.0 / served).min(f64::from(depth) / (served + latency / 1e6));
        own.min(self.port_rate(reads, writes, bytes))
    }

    /// Requests a second of a port, of which these parts read and write so many bytes each.
    pub(crate) fn port_rate(&self, reads: f64, writes: f64, bytes: u64) -> f64 {
        let Some(port) = &self.port else { return f64::INFINITY };
        let one_way = reads.max(writes) * bytes as f64;
        (port.requests.value / (reads + writes)).min(port.bytes.value / one_way)
    }
}
