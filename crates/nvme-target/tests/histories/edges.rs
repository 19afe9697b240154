//! Commands at the edges of what there is: no blocks, blocks behind the end or at numbers that
//! wrap, data that is shorter or longer than the blocks. Each has one answer.

use super::support::host::{admin_command, command};
use super::{BLOCK, BLOCKS, io_command};
use nvme::command::{Command, nvm};
use nvme::status::Status;
use sim::Rng;

/// A command and what has to come of it.
pub struct Edge {
    pub command: Command,
    /// Data of the host.
    pub data: Vec<u8>,
    /// Bytes that the host says it has room for; reads only.
    pub room: u32,
    pub status: Status,
}

/// First block and blocks of ranges that are not within a volume.
const OUTSIDE: [(u64, u64); 9] = [
    (BLOCKS, 1),
    (BLOCKS - 1, 2),
    (0, BLOCKS + 1),
    (0, 1 << 16),
    (BLOCKS, 1 << 16),
    (1 << 55, 1),
    (u64::MAX, 1),
    (u64::MAX, 2),
    (u64::MAX - 7, 8),
];

/// Draws one.
pub fn draw(rng: &mut Rng, nsid: u32) -> Edge {
    match rng.below(4) {
        0 => range(rng, nsid),
        1 => ranges(rng, nsid),
        2 => length(rng, nsid),
        _ => flush(rng, nsid),
    }
}

fn plain(command: Command, status: Status) -> Edge {
    Edge { command, data: vec![], room: 0, status }
}

/// Blocks that are not there.
fn range(rng: &mut Rng, nsid: u32) -> Edge {
    let (first, count) = OUTSIDE[rng.index(OUTSIDE.len())];
    let opcodes = [nvm::READ, nvm::WRITE, nvm::COMPARE, nvm::WRITE_ZEROES, nvm::VERIFY];
    let opcode = opcodes[rng.index(opcodes.len())];
    let edge = plain(io_command(opcode, nsid, first, count), Status::LBA_RANGE);
    let bytes = count.min(8) as usize * BLOCK;
    match opcode {
        nvm::READ => Edge { room: bytes as u32, ..edge },
        nvm::WRITE | nvm::COMPARE => Edge { data: vec![7; bytes], ..edge },
        _ => edge,
    }
}

/// Ranges to deallocate: without blocks, which is nothing to do, or with one that is not there.
fn ranges(rng: &mut Rng, nsid: u32) -> Edge {
    let count = rng.between(1, 3) as usize;
    let mut data = vec![0; 16 * count];
    for range in data.chunks_exact_mut(16) {
        let first = [0, BLOCKS - 1, BLOCKS, u64::MAX][rng.index(4)];
        range[8..].copy_from_slice(&first.to_le_bytes());
    }
    let is_outside = rng.coin();
    if is_outside {
        let (first, blocks) = OUTSIDE[rng.index(OUTSIDE.len())];
        let range = &mut data[16 * (count - 1)..];
        range[4..8].copy_from_slice(&(blocks as u32).to_le_bytes());
        range[8..].copy_from_slice(&first.to_le_bytes());
    }
    let command = admin_command(nvm::DATASET_MANAGEMENT, nsid, &[count as u32 - 1, 4]);
    let status = if is_outside { Status::LBA_RANGE } else { Status::SUCCESS };
    Edge { data, ..plain(command, status) }
}

/// Data of another length than the command's blocks have, aligned or not.
fn length(rng: &mut Rng, nsid: u32) -> Edge {
    let count = rng.between(1, 4);
    let right = count as usize * BLOCK;
    let wrong = [0, 1, BLOCK - 1, right - 1, right + 1, right + BLOCK, right - 4];
    let bytes = wrong[rng.index(wrong.len())];
    let opcode = [nvm::READ, nvm::WRITE, nvm::COMPARE][rng.index(3)];
    let first = rng.below(BLOCKS - count);
    let edge = plain(io_command(opcode, nsid, first, count), Status::SGL_LENGTH);
    match opcode {
        nvm::READ => Edge { room: bytes as u32, ..edge },
        _ => Edge { data: vec![7; bytes], ..edge },
    }
}

/// A Flush that names blocks and a number of them, none of which mean anything there.
fn flush(rng: &mut Rng, nsid: u32) -> Edge {
    let mut edge = plain(command(nvm::FLUSH, nsid), Status::SUCCESS);
    let (first, count) = OUTSIDE[rng.index(OUTSIDE.len())];
    edge.command.0[40..48].copy_from_slice(&first.to_le_bytes());
    edge.command.0[48..52].copy_from_slice(&(count as u32).to_le_bytes());
    edge
}
