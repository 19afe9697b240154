//! Block devices as drives: loop devices of 512- and 4096-byte sectors, reached by symbolic links
//! as `/dev/disk/by-id` has them.

use crate::common::loops::{self, Loop};
use crate::common::place::{Daemon, Place};
use crate::common::{MIB, program, run, tools_are_there};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const TOOLS: &[&str] = &["losetup", "nbdcopy", "cmp", "python3", "blockdev"];

/// Loop devices over new drives of the place, and links to them that its daemon finds.
fn devices(place: &mut Place, sectors: &[&str]) -> (Vec<Loop>, Vec<String>) {
    let files = place.drives(sectors.len());
    let mut loops = Vec::new();
    let mut links = Vec::new();
    for (n, (file, sector)) in files.iter().zip(sectors).enumerate() {
        let backing = place.file(&format!("backing-{n}"));
        std::fs::rename(file, &backing).expect("renamed");
        let device = Loop::new(&backing, sector);
        let link = place.file(&format!("drive-loop-{n}.img"));
        std::os::unix::fs::symlink(&device.0, &link).expect("a link");
        links.push(link.to_string_lossy().into_owned());
        loops.push(device);
    }
    (loops, links)
}

/// Fills the served volume with what is in `image`, and reads it back cold.
fn round_trip(place: &Place, uri: &str, image: &Path) {
    let back = place.file("back.img");
    run(program("nbdcopy").arg(image).arg(uri));
    run(program("nbdcopy").arg(uri).arg(&back));
    run(program("cmp").arg(image).arg(&back));
}

#[test]
fn an_array_of_block_devices_serves_loses_one_and_is_rebuilt() {
    if !tools_are_there(TOOLS) || !loops::are_to_be_had() {
        return;
    }
    let mut place = Place::new("devices", 24);
    let (loops, links) = devices(&mut place, &["512", "4096", "512", "512", "4096"]);
    let daemon = Daemon::start(&place, 1);
    let made = daemon.create("a", "6", &links[..4], &["--strip", "16K"]);
    assert_eq!(made["block_bytes"], 4096, "the largest block of its drives: {made}");
    let volume = daemon.volume(&place, "a/v", "20M");
    let bytes = 20 * MIB;
    let image = place.file("image.img");
    crate::common::random_file(&image, bytes, &mut place.rng);
    round_trip(&place, &volume.uri, &image);

    // Not the kernel's cache: what is on the devices.
    for device in &loops {
        run(program("blockdev").args(["--flushbufs", &device.0]));
    }
    daemon.call(&["array", "fail", "a", "--drive", &links[2]]);
    round_trip(&place, &volume.uri, &image);
    daemon.call(&["array", "replace", "a", "--slot", "2", "--with", &links[4]]);
    assert_eq!(daemon.settle("a")["state"], "optimal");
    daemon.scrub("a");
    daemon.stop();

    let now = [&links[0], &links[1], &links[4], &links[3]].map(String::clone);
    Place::read_array(&["--check"], &now);
    let outside = place.read_volume("v", &now[1..3]);
    run(program("cmp").arg(&image).arg(outside));

    let daemon = Daemon::start(&place, 2);
    assert_eq!(daemon.show("a")["state"], "optimal");
    run(program("nbdcopy").arg(&volume.uri).arg(place.file("again.img")));
    run(program("cmp").arg(&image).arg(place.file("again.img")));
    daemon.stop();
}

#[test]
fn a_device_in_use_or_mounted_is_refused() {
    if !tools_are_there(TOOLS) || !loops::are_to_be_had() {
        return;
    }
    let mut place = Place::new("devices in use", 8);
    let (_loops, links) = devices(&mut place, &["512", "512"]);
    let claimed = std::fs::File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::EXCL.bits() as i32)
        .open(&links[0])
        .expect("claimed");
    let daemon = Daemon::start(&place, 1);
    let refused =
        daemon.refused(&["array", "create", "a", "--level", "1", "--drives", &links[0], &links[1]]);
    assert!(refused.contains("in use"), "{refused}");
    drop(claimed);
    daemon.stop();
}
