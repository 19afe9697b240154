//! What is measured: operations of the parity crate, with their strips.

use ::parity::Code;
use ::parity::offload::{Operation, What};
use std::sync::Arc;

/// Bytes of a strip.
const STRIP: usize = 64 << 10;
/// Bytes of a small write.
const SMALL: usize = 4 << 10;
/// Bytes of a block with a checksum.
const BLOCK: usize = 4 << 10;

/// The work of one result.
#[derive(Clone, Debug)]
pub struct Work {
    /// The last part of its results' names.
    pub name: &'static str,
    /// What a job does.
    pub operation: Arc<Operation>,
    /// Bytes of each of its strips.
    pub strip: usize,
}

impl Work {
    /// Bytes of data that a job processes; parities that it makes or follows up don't count.
    pub fn data(&self) -> u64 {
        let strips = match self.operation.what() {
            What::Update(_) => self.operation.reads().len() / 2,
            _ => self.operation.reads().len(),
        };
        (strips * self.strip) as u64
    }
}

fn code(data: usize, parities: usize) -> Code {
    Code::new(data, parities).expect("a code that there is")
}

fn recover(lost: &[usize]) -> Arc<Operation> {
    let present: Vec<_> = (0..10).map(|strip| !lost.contains(&strip)).collect();
    Operation::recover(code(8, 2), &present, lost).expect("no more lost than parities")
}

/// P+Q of 8 data strips, the work of the goals.
pub fn pq(strip: usize) -> Work {
    Work { name: "pq", operation: Operation::generate(code(8, 2)), strip }
}

/// All of them, the one of the goals first.
pub fn works() -> Vec<Work> {
    let generate = |name, data, parities| {
        let operation = Operation::generate(code(data, parities));
        Work { name, operation, strip: STRIP }
    };
    let recovery = |name, lost: &[usize]| Work { name, operation: recover(lost), strip: STRIP };
    let delta = Operation::update(code(8, 2), &[3], &[8, 9]);
    vec![
        pq(STRIP),
        generate("p", 8, 1),
        generate("pqr", 8, 3),
        generate("pq-4", 4, 2),
        generate("pq-16", 16, 2),
        generate("k8m4", 8, 4),
        generate("k16m4", 16, 4),
        recovery("recover1-8p2", &[2]),
        recovery("recover2-8p2", &[2, 5]),
        Work { name: "delta4k-pq", operation: delta, strip: SMALL },
        Work { name: "crc32c", operation: Operation::checksum(8, BLOCK), strip: STRIP },
    ]
}
