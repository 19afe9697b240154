//! Load on a volume, held against the trials' record of what each of its blocks may hold.
//!
//! The load keeps ranges that are in flight apart, so that every read has an answer that is right
//! or wrong for certain; reads after a crash are pinned: what was read must stay.

use super::{Machine, Rig};
use engine::volume::Volume;
use io::{BlockError, Blocks, Env, Pool, Priority};
use sim::Rng;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use trials::versions::Versions;
use units::{CoreId, MIB, Nanos};

const BLOCK: u64 = 512;

/// One volume, and what it may hold.
pub struct Oracle {
    versions: RefCell<Versions>,
    running: Cell<usize>,
    /// Requests may fail.
    pub errors: Cell<bool>,
    /// Some writes are of zeros, and some discards.
    pub zeros: Cell<bool>,
    /// Requests begin and end at multiples of this many bytes.
    pub align: Cell<u64>,
    /// Requests that ended well, and that failed.
    pub done: Cell<(u64, u64)>,
    /// The longest that a request of the load took.
    pub longest: Cell<Nanos>,
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
        let mut versions = Versions::new(BLOCK as usize, volatile);
        versions.create("v", bytes);
        versions.settle(0, bytes);
        Self::of(versions)
    }

    fn of(versions: Versions) -> Rc<Self> {
        Rc::new(Self {
            versions: RefCell::new(versions),
            running: Cell::new(0),
            errors: Cell::new(false),
            zeros: Cell::new(false),
            align: Cell::new(BLOCK),
            done: Cell::new((0, 0)),
            longest: Cell::new(Nanos(0)),
        })
    }

    fn bytes(&self) -> u64 {
        self.versions.borrow().bytes(0)
    }

    /// The same record for another course of events.
    pub fn fork(&self) -> Rc<Self> {
        let mut versions = self.versions.borrow().clone();
        versions.release(0, 0, self.bytes());
        Self::of(versions)
    }

    /// After a crash nothing is under way.
    pub fn crashed(&self) {
        self.running.set(0);
        self.versions.borrow_mut().crashed();
    }

    /// The bytes around `at` may read as anything from now on.
    pub fn forgive(&self, at: u64, bytes: u64) {
        let bytes = bytes.min(self.bytes() - at);
        self.versions.borrow_mut().forgive(0, at, bytes);
    }

    /// These bytes read as zeros from now on.
    pub fn forget(&self, at: u64, bytes: u64) {
        let mut versions = self.versions.borrow_mut();
        let version = versions.begin(0, at, bytes, true);
        versions.end(0, at, bytes, version, true);
    }

    /// Where the blocks are that may hold more than one version.
    pub fn uncertain(&self) -> Vec<u64> {
        self.versions.borrow().uncertain(0)
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
        let version = self.versions.borrow_mut().begin(0, from, bytes, false);
        let mut data = Pool::single(bytes as usize);
        self.versions.borrow().data(0, from, version, &mut data);
        volume.write(from, data.freeze(), fua).await?;
        self.versions.borrow_mut().end(0, from, bytes, version, fua);
        Ok(())
    }

    /// Writes zeros, or discards: then some blocks are zeros and the rest as before, and a read
    /// tells which.
    async fn clear(
        &self,
        volume: &Volume<Machine>,
        from: u64,
        bytes: u64,
        rng: &mut Rng,
    ) -> Result<(), BlockError> {
        let version = self.versions.borrow_mut().begin(0, from, bytes, true);
        if rng.coin() {
            volume.discard(from, bytes).await?;
            return self.read(volume, from, bytes).await;
        }
        let fua = rng.coin();
        volume.write_zeroes(from, bytes, fua).await?;
        self.versions.borrow_mut().end(0, from, bytes, version, fua);
        Ok(())
    }

    /// Flushes and keeps record of it.
    pub async fn flush(&self, volume: &Volume<Machine>) -> Result<(), BlockError> {
        let flush = self.versions.borrow().flush_begins();
        volume.flush().await?;
        self.versions.borrow_mut().flush_ends(&flush);
        Ok(())
    }

    /// Checks what was read from a volume that nobody writes; with `pin` it must stay so.
    pub fn check(&self, from: u64, got: &[u8], pin: bool) {
        let checked = self.versions.borrow_mut().check(0, from, got, pin);
        checked.unwrap_or_else(|wrong| panic!("{wrong}"));
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
        let unit = self.align.get();
        let total = volume.bytes().min(self.bytes()) / unit;
        let n = (1 + rng.below((mix.blocks_most * BLOCK / unit).max(1))).min(total);
        let (from, bytes) = (rng.below(total - n + 1) * unit, n * unit);
        if !self.versions.borrow_mut().claim(0, from, bytes) {
            return;
        }
        let result = if rng.below(100) < mix.read_percent {
            self.read(volume, from, bytes).await
        } else if rng.below(8) == 0 {
            self.flush(volume).await
        } else if self.zeros.get() && rng.below(4) == 0 {
            self.clear(volume, from, bytes, rng).await
        } else {
            self.write(volume, from, bytes, rng.below(4) == 0).await
        };
        self.count(result);
        self.versions.borrow_mut().release(0, from, bytes);
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
            let (mut at, end) = (0, oracle.bytes());
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

#[test]
#[should_panic(expected = "block 1 of v holds nobody's bytes")]
fn a_wrong_byte_is_told() {
    let mut got = [0; 2 * BLOCK as usize];
    got[BLOCK as usize..].fill(7);
    Oracle::new(2 * BLOCK, false).check(0, &got, false);
}
