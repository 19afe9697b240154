//! What a load's requests are.

/// In which order a job uses addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Each as likely as any other.
    Random,
    /// One behind the other, from the start again at the end.
    Sequential,
}

/// A load: jobs, each with requests under way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// Percentage of requests that read.
    pub reads: u8,
    /// Where they go.
    pub order: Order,
    /// Bytes of each, a multiple of [`crate::stamp::BLOCK`].
    pub bytes: usize,
    /// Jobs. Sequential ones begin at equal distances.
    pub jobs: usize,
    /// Requests that each job has under way; of an open load at most.
    pub depth: usize,
    /// Of an open load: so many requests come each second, whether or not those before are done. A
    /// closed one (`None`) makes the next request when one is done, so that a drive that stalls
    /// delays few: what would have come meanwhile is not there to wait.
    pub rate: Option<f64>,
    /// Bytes of the target that are used, from its begin.
    pub area: u64,
}

impl Shape {
    /// A load of one job over so many bytes.
    pub fn one(reads: u8, order: Order, bytes: usize, depth: usize, area: u64) -> Self {
        Self { reads, order, bytes, jobs: 1, depth, rate: None, area }
    }

    /// Requests that the area has places for.
    pub fn places(&self) -> u64 {
        self.area / self.bytes as u64
    }
}
