//! Reads over several strips of a stripe that lacks a drive: each drive that is left is read once.

use crate::common;

use common::{Rig, drives, read, write};
use layout::Level;
use sim::SharedSimDrive;

const STRIP: u64 = 16 << 10;
const BYTES: u64 = 1 << 20;

fn content(at: u64) -> u8 {
    (at / 512 % 251) as u8
}

fn reads(drives: &[SharedSimDrive]) -> u64 {
    drives.iter().map(|drive| drive.counters().reads).sum()
}

/// Writes a volume, takes drives out, and reads runs from everywhere: the most reads of drives that
/// one of a whole stripe took.
fn most_reads(level: Level, width: usize, lost: &[usize], cores: u16) -> u64 {
    let drives = drives(width, 3, false);
    let rig = Rig::new(3, cores);
    rig.create(level, &drives, STRIP as u32).unwrap();
    let volume = rig.volume(BYTES).remove(0);
    let data: Vec<u8> = (0..BYTES).map(content).collect();
    write(&rig, &volume, 0, &data).unwrap();
    for slot in lost {
        rig.fail(*slot).unwrap();
    }
    let data_strips = (width - usize::from(if level == Level::Raid6 { 2u8 } else { 1 })) as u64;
    let stripe = data_strips * STRIP;
    let mut most = 0;
    for at in 0..BYTES / stripe {
        let before = reads(&drives);
        assert_eq!(
            read(&rig, &volume, at * stripe, stripe).unwrap(),
            data[(at * stripe) as usize..][..stripe as usize]
        );
        most = most.max(reads(&drives) - before);
    }
    // Parts of strips at both ends, and more than a stripe.
    for (from, bytes) in
        [(512, 3 * STRIP), (STRIP - 512, 1024), (STRIP + 4096, STRIP), (1024, 3 * stripe)]
    {
        for start in (0..BYTES - bytes - from).step_by(STRIP as usize) {
            let from = start + from;
            let got = read(&rig, &volume, from, bytes).unwrap();
            assert_eq!(got, data[from as usize..][..bytes as usize], "{bytes} from {from}");
        }
    }
    most
}

#[test]
fn a_stripe_is_read_once() {
    for cores in [1, 2] {
        assert_eq!(most_reads(Level::Raid5, 4, &[], cores), 3);
        assert_eq!(most_reads(Level::Raid5, 4, &[1], cores), 3);
        assert_eq!(most_reads(Level::Raid6, 6, &[2], cores), 4);
    }
}

#[test]
fn a_stripe_that_lacks_two_is_read_strip_by_strip() {
    assert!(most_reads(Level::Raid6, 6, &[0, 3], 2) > 4);
}
