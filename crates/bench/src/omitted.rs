//! Parity that is not computed: what an array costs without that part of its work.
//!
//! Purpose: the other end of what a GPU can save. Writes go all their ways, jobs and tickets and
//! parity's writes included, but nobody computes the parity.
//! Invariant: nothing of such an array counts but its time: its drives hold no redundancy.

use io::{Buf, BufMut};
use parity::offload::{Answer, Job, Offload, Operation, Ticket, What, ticket};

/// Says of every parity of new data that it is computed, and leaves what the buffers held. For
/// benchmarks alone, of arrays that are never read back.
pub struct Omitted;

impl Offload<Buf, BufMut> for Omitted {
    fn wants(&self, operation: &Operation, _: usize, _: bool) -> bool {
        matches!(operation.what(), What::Generate(_))
    }

    fn submit(&self, job: Job<Buf, BufMut>) -> Ticket<BufMut> {
        let (answerer, ticket) = ticket();
        answerer.answer(Ok((Answer::Written, job.outputs)));
        ticket
    }
}
