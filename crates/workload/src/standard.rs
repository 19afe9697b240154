//! The workloads that arrays are measured with in every state, in real and in virtual time.

use crate::shape::{Order, Shape};

/// A kind of load.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Its name in results.
    pub name: String,
    /// Percentage of reads.
    pub reads: u8,
    /// Where requests go.
    pub order: Order,
    /// Bytes of a request.
    pub bytes: usize,
    /// Jobs.
    pub jobs: usize,
    /// Requests of each that are under way.
    pub depth: usize,
}

impl Workload {
    /// A load at random places.
    pub fn random(name: &str, reads: u8, bytes: usize, (jobs, depth): (usize, usize)) -> Self {
        Self { name: name.to_owned(), reads, order: Order::Random, bytes, jobs, depth }
    }

    /// A load of requests one behind the other.
    pub fn sequential(name: &str, reads: u8, bytes: usize, (jobs, depth): (usize, usize)) -> Self {
        Self { name: name.to_owned(), reads, order: Order::Sequential, bytes, jobs, depth }
    }

    /// Whether its figure is a bandwidth.
    pub fn is_sequential(&self) -> bool {
        self.order == Order::Sequential
    }

    /// The unit that its figure is shown in, and what that is of the figure: requests, or bytes, a
    /// second.
    pub fn unit(&self) -> (&'static str, f64) {
        if self.is_sequential() { ("GB/s", 1e9) } else { ("MIOPS", 1e6) }
    }

    /// As a load over so many bytes: an open one, if `rate` says how many requests come a second.
    pub fn shape(&self, area: u64, rate: Option<f64>) -> Shape {
        let Self { reads, order, bytes, jobs, depth, .. } = *self;
        Shape { reads, order, bytes, jobs, depth, rate, area }
    }
}

/// The workloads of a state, in the order of their phases: 128K sequential, then 4K random, with so
/// many per cent of reads in mixed ones.
pub fn workloads(mix: u8) -> Vec<Workload> {
    let (streams, many) = ((4, 32), (16, 32));
    vec![
        Workload::sequential("128k-sequential-read", 100, 128 << 10, streams),
        Workload::sequential("128k-sequential-write", 0, 128 << 10, streams),
        Workload::random("4k-random-read", 100, 4 << 10, many),
        Workload::random("4k-random-mixed", mix, 4 << 10, many),
        Workload::random("4k-random-write", 0, 4 << 10, many),
    ]
}
