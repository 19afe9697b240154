//! A port: what the drives behind it share.
//!
//! It serves requests one after the other, whatever they do. Bytes of reads and of writes go in
//! opposite directions and don't wait for each other.

use crate::cost::{Cost, Point, Rate};
use crate::drive::Op;
use crate::model::PortModel;
use crate::work::Busy;
use units::Nanos;

/// A port's state.
#[derive(Debug)]
pub struct Port {
    request: u64,
    bytes: Cost,
    requests: Busy,
    reads: Busy,
    writes: Busy,
}

impl Port {
    /// An idle port of this model, `slower` times as slow.
    pub fn new(model: &PortModel, slower: f64) -> Self {
        let limit = |rate| [Point { bytes: 1, rate, source: "" }];
        Self {
            request: Cost::new(&limit(Rate::Requests(model.requests.value)), slower).of(1),
            bytes: Cost::new(&limit(Rate::Bytes(model.bytes.value)), slower),
            requests: Busy::default(),
            reads: Busy::default(),
            writes: Busy::default(),
        }
    }

    /// Serves a request that comes `now`; when it is served.
    pub(crate) fn serve(&self, now: Nanos, op: Op, bytes: u64) -> Nanos {
        let served = self.requests.serve(now, self.request);
        match op {
            Op::Read => served.max(self.reads.serve(now, self.bytes.of(bytes))),
            Op::Write => served.max(self.writes.serve(now, self.bytes.of(bytes))),
            Op::Other => served,
        }
    }
}
