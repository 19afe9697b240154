//! What each block of a volume may read as, when power cuts and failures are about.
//!
//! Every write has a number; a block written by it is full of bytes drawn from that number and
//! the block's. A block has a list of numbers it may hold, oldest first: one for sure after an
//! acknowledgement that counts (FUA, no volatile cache, a flush begun later), several while a
//! write is under way or was cut off. What was read after a crash must stay as it was read.

use super::{Machine, Rig};
use engine::volume::Volume;
use io::{BlockError, Blocks, Env, Pool, Priority};
use sim::Rng;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const BLOCK: u64 = 512;

#[derive(Clone)]
struct Block {
    /// What it may hold, oldest first; empty: anything at all.
    allowed: Vec<u64>,
    /// What was acknowledged last.
    acknowledged: u64,
    /// Reads give what was acknowledged last.
    certain: bool,
    /// A request is under way.
    busy: bool,
}

/// The record of all blocks of one volume.
pub struct Oracle {
    blocks: RefCell<Vec<Block>>,
    next: Cell<u64>,
    running: Cell<usize>,
    /// Requests may fail.
    pub errors: Cell<bool>,
    /// Requests that ended well, and that failed.
    pub done: Cell<(u64, u64)>,
    /// The longest that a request of the load took.
    pub longest: Cell<Nanos>,
    volatile: bool,
}

fn fill(tag: u64, block: u64, into: &mut [u8]) {
    if tag == 0 {
        into.fill(0);
    } else {
        Rng::new(tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ block).fill(into);
    }
}

/// The load of one task: how many requests, how large, how many of them reads.
#[derive(Clone, Copy)]
pub struct Mix {
    pub tasks: usize,
    pub operations: usize,
    pub blocks_most: u64,
    pub read_percent: u64,
}

impl Oracle {
    pub fn new(bytes: u64, volatile: bool) -> Rc<Self> {
        let zero = Block { allowed: vec![0], acknowledged: 0, certain: true, busy: false };
        Rc::new(Self {
            blocks: RefCell::new(vec![zero; (bytes / BLOCK) as usize]),
            next: Cell::new(1),
            running: Cell::new(0),
            errors: Cell::new(false),
            done: Cell::new((0, 0)),
            longest: Cell::new(Nanos(0)),
            volatile,
        })
    }

    /// The same record for another course of events.
    pub fn fork(&self) -> Rc<Self> {
        let copy = Self {
            blocks: self.blocks.clone(),
            next: self.next.clone(),
            running: Cell::new(0),
            errors: Cell::new(false),
            done: Cell::new((0, 0)),
            longest: Cell::new(Nanos(0)),
            volatile: self.volatile,
        };
        copy.blocks.borrow_mut().iter_mut().for_each(|b| b.busy = false);
        Rc::new(copy)
    }

    /// After a crash: nothing is under way, and nothing is certain but what the lists say.
    pub fn crashed(&self) {
        self.running.set(0);
        for block in self.blocks.borrow_mut().iter_mut() {
            block.busy = false;
            // What was acknowledged and not flushed may be gone: a later flush proves nothing.
            (block.certain, block.acknowledged) = (false, u64::MAX);
        }
    }

    /// The bytes around `at` may read as anything from now on.
    pub fn forgive(&self, at: u64, bytes: u64) {
        let mut blocks = self.blocks.borrow_mut();
        let end = ((at + bytes) / BLOCK).min(blocks.len() as u64);
        for block in &mut blocks[(at / BLOCK) as usize..end as usize] {
            block.allowed.clear();
            block.certain = false;
        }
    }

    /// These bytes read as zeros from now on.
    pub fn forget(&self, at: u64, bytes: u64) {
        let range = (at / BLOCK) as usize..((at + bytes) / BLOCK) as usize;
        let zero = Block { allowed: vec![0], acknowledged: 0, certain: true, busy: false };
        self.blocks.borrow_mut()[range].fill(zero);
    }

    /// Ranges with more than one possible content, as (offset, bytes).
    pub fn uncertain(&self) -> Vec<(u64, u64)> {
        let blocks = self.blocks.borrow();
        let open = |i: &usize| !blocks[*i].certain;
        (0..blocks.len()).filter(open).map(|i| (i as u64 * BLOCK, BLOCK)).collect()
    }

    /// Blocks with one possible content are certain, whatever was cut off elsewhere.
    pub fn settle_single(&self) {
        for block in self.blocks.borrow_mut().iter_mut().filter(|b| b.allowed.len() == 1) {
            (block.certain, block.acknowledged) = (true, block.allowed[0]);
        }
    }

    fn claim(&self, from: u64, bytes: u64) -> bool {
        let mut blocks = self.blocks.borrow_mut();
        let range = (from / BLOCK) as usize..((from + bytes) / BLOCK) as usize;
        if blocks[range.clone()].iter().any(|b| b.busy) {
            return false;
        }
        blocks[range].iter_mut().for_each(|b| b.busy = true);
        true
    }

    fn release(&self, from: u64, bytes: u64) {
        let range = (from / BLOCK) as usize..((from + bytes) / BLOCK) as usize;
        self.blocks.borrow_mut()[range].iter_mut().for_each(|b| b.busy = false);
    }

    fn count(&self, result: Result<(), BlockError>) {
        let (good, bad) = self.done.get();
        assert!(result.is_ok() || self.errors.get(), "a request failed: {result:?}");
        self.done.set(if result.is_ok() { (good + 1, bad) } else { (good, bad + 1) });
    }

    /// Writes `bytes` at `from` and keeps record of it.
    pub async fn write(
        &self,
        volume: &Volume<Machine>,
        from: u64,
        bytes: u64,
        fua: bool,
    ) -> Result<(), BlockError> {
        let tag = self.next.replace(self.next.get() + 1);
        let range = (from / BLOCK) as usize..((from + bytes) / BLOCK) as usize;
        let mut data = Pool::single(bytes as usize);
        for (i, part) in data.chunks_mut(BLOCK as usize).enumerate() {
            fill(tag, from / BLOCK + i as u64, part);
        }
        for block in &mut self.blocks.borrow_mut()[range.clone()] {
            if !block.allowed.is_empty() {
                block.allowed.push(tag);
            }
            block.certain = false;
        }
        let result = volume.write(from, data.freeze(), fua).await;
        if result.is_ok() {
            for block in &mut self.blocks.borrow_mut()[range] {
                if fua || !self.volatile {
                    block.allowed = vec![tag];
                }
                (block.acknowledged, block.certain) = (tag, true);
            }
        }
        result
    }

    /// Flushes and keeps record of it.
    pub async fn flush(&self, volume: &Volume<Machine>) -> Result<(), BlockError> {
        let before: Vec<u64> = self.blocks.borrow().iter().map(|b| b.acknowledged).collect();
        let result = volume.flush().await;
        if result.is_ok() {
            for (block, tag) in self.blocks.borrow_mut().iter_mut().zip(before) {
                if let Some(at) = block.allowed.iter().position(|t| *t == tag) {
                    block.allowed.drain(..at);
                }
            }
        }
        result
    }

    /// Checks what was read from a volume that nobody writes; with `pin` it must stay so.
    pub fn check(&self, from: u64, got: &[u8], pin: bool) {
        let mut wanted = vec![0; BLOCK as usize];
        for (i, part) in got.chunks(BLOCK as usize).enumerate() {
            let number = from / BLOCK + i as u64;
            let block = &mut self.blocks.borrow_mut()[number as usize];
            if block.allowed.is_empty() {
                continue;
            }
            let list = if block.certain { vec![block.acknowledged] } else { block.allowed.clone() };
            let found = list.iter().rev().find(|tag| {
                fill(**tag, number, &mut wanted);
                wanted == part
            });
            let Some(tag) = found else {
                panic!("block {number} holds none of {list:?} (certain: {})", block.certain);
            };
            if pin {
                *block = Block { allowed: vec![*tag], acknowledged: *tag, certain: true, ..*block };
            }
        }
    }

    /// Reads `bytes` at `from` and checks them.
    pub async fn read(
        &self,
        volume: &Volume<Machine>,
        from: u64,
        bytes: u64,
    ) -> Result<(), BlockError> {
        let (result, got) = volume.read(from, Pool::single(bytes as usize)).await;
        if result.is_ok() {
            self.check(from, &got, false);
        }
        result
    }

    async fn operate(&self, volume: &Volume<Machine>, mix: Mix, rng: &mut Rng) {
        let total = volume.bytes().min(self.blocks.borrow().len() as u64 * BLOCK) / BLOCK;
        let n = (1 + rng.below(mix.blocks_most)).min(total);
        let (from, bytes) = (rng.below(total - n + 1) * BLOCK, n * BLOCK);
        if !self.claim(from, bytes) {
            return;
        }
        let result = if rng.below(100) < mix.read_percent {
            self.read(volume, from, bytes).await
        } else if rng.below(8) == 0 {
            self.flush(volume).await
        } else {
            self.write(volume, from, bytes, rng.below(4) == 0).await
        };
        self.count(result);
        self.release(from, bytes);
    }

    /// Starts a load over all cores.
    pub fn start(self: &Rc<Self>, rig: &Rig, volumes: &[Volume<Machine>], mix: Mix, seed: u64) {
        for task in 0..mix.tasks {
            let core = task % volumes.len();
            let (oracle, volume) = (self.clone(), volumes[core].clone());
            let mut rng = Rng::new(seed * 1000 + task as u64);
            self.running.set(self.running.get() + 1);
            let env = rig.world.env(CoreId(core as u16));
            let sleeper = env.clone();
            env.spawn(Priority::First, async move {
                for _ in 0..mix.operations {
                    let begin = sleeper.now();
                    oracle.operate(&volume, mix, &mut rng).await;
                    let took = sleeper.now().since(begin);
                    oracle.longest.set(oracle.longest.get().max(took));
                    sleeper.sleep(Nanos::from_micros(rng.below(3) * 20)).await;
                }
                oracle.running.set(oracle.running.get() - 1);
            });
        }
    }

    /// Runs the machine until the load is over.
    pub fn finish(&self, rig: &Rig) {
        for _ in 0..100_000 {
            if self.running.get() == 0 {
                return;
            }
            rig.world.run_for(Nanos::from_millis(1));
        }
        panic!("seed {}: the load never ends", rig.world.seed());
    }

    /// Reads everything back; with `pin` it must stay as it is now.
    pub fn verify(self: &Rc<Self>, rig: &Rig, volume: &Volume<Machine>, pin: bool) {
        let (oracle, volume) = (self.clone(), volume.clone());
        rig.world.block_on(CoreId(0), async move {
            let (mut at, end) = (0, oracle.blocks.borrow().len() as u64 * BLOCK);
            while at < end {
                let n = (MIB / 2).min(end - at);
                let (result, got) = volume.read(at, Pool::single(n as usize)).await;
                assert_eq!(result, Ok(()), "read back at {at}");
                oracle.check(at, &got, pin);
                at += n;
            }
        });
    }
}
