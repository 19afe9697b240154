//! D2 from the reader's side: a write that left a failed drive out is acknowledged only when no
//! core reads that drive any more.

use crate::common;

use common::{Machine, Rig, drives};
use engine::array::view::SlotState;
use engine::manage::command::Request;
use engine::stripe::table::StripeKey;
use engine::volume::Volume;
use io::{Blocks, Env, Pool, Priority};
use layout::Level;
use sim::WorldConfig;
use std::cell::Cell;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, Slot};

const STRIP: u32 = 16 << 10;
const BYTES: usize = STRIP as usize;

/// Two cores whose mail is slow, so that they know different generations for long.
fn rig(seed: u64) -> Rig {
    let mut config = WorldConfig::new(seed).with_cores(2);
    config.mail_delay_most = Nanos::from_millis(5);
    config.mail_in_order = true;
    Rig::with(config)
}

async fn fill(volume: &Volume<Machine>, at: u64, byte: u8) {
    let mut data = Pool::single(BYTES);
    data.fill(byte);
    volume.write(at, data.freeze(), true).await.unwrap();
}

/// A drive is failed; as soon as one core knows and the other does not, the strip is written on
/// the first and read on the second. `None` if the second knew first.
fn read_after_write(level: Level, width: usize, seed: u64) -> Option<u8> {
    let rig = rig(seed);
    let id = rig.create(level, &drives(width, seed, false), STRIP).unwrap().id;
    let volumes = rig.volume(MIB);
    let arrays: Vec<_> = rig.cores.iter().map(|c| c.array(id).unwrap()).collect();
    let at_home = |at: &u64| {
        let place = arrays[0].bound().view.layout.locate(*at);
        arrays[0].home(StripeKey { group: place.group, stripe: place.stripe }) == CoreId(0)
    };
    let at = (0..MIB).step_by(BYTES).find(at_home).expect("a stripe of core 0");
    let place = arrays[0].bound().view.layout.locate(at);
    let slot: Slot = arrays[0].bound().view.layout.slot(place.group, place.stripe, place.strip);
    let volume = volumes[0].clone();
    rig.world.block_on(CoreId(0), async move { fill(&volume, at, 1).await });

    let _failing = rig.send(|r| Request::Fail("a".into(), vec![format!("slot:{}", slot.0)], r));
    let failed =
        |core: usize| arrays[core].bound().view.slots[slot.index()].state == SlotState::Failed;
    while !failed(0) && !failed(1) {
        rig.world.step();
    }
    if failed(1) {
        return None;
    }
    let written = Rc::new(Cell::new(false));
    let (done, volume) = (written.clone(), volumes[0].clone());
    rig.world.env(CoreId(0)).spawn(Priority::First, async move {
        fill(&volume, at, 2).await;
        done.set(true);
    });
    while !written.get() {
        rig.world.step();
    }
    let got = Rc::new(Cell::new(None));
    let (to, volume) = (got.clone(), volumes[1].clone());
    rig.world.env(CoreId(1)).spawn(Priority::First, async move {
        let (result, bytes) = volume.read(at, Pool::single(4096)).await;
        result.unwrap();
        to.set(Some(bytes[0]));
    });
    while got.get().is_none() {
        rig.world.step();
    }
    got.get()
}

#[test]
fn what_one_core_acknowledged_another_reads() {
    let levels = [(Level::Raid5, 4), (Level::Raid6, 5), (Level::Raid1, 3), (Level::Raid10, 4)];
    let mut met = 0;
    for (level, width) in levels {
        for seed in 0..10 {
            let got = read_after_write(level, width, seed);
            met += usize::from(got.is_some());
            assert!(got != Some(1), "{level} seed {seed}: bytes of before an acknowledged write");
        }
    }
    assert!(met >= 10, "only {met} of 40 runs met cores of different generations");
}
