//! Drives of made-up trees.

use super::*;
use crate::facts::Configured;
use control::config::Config;
use io::Pool;
use redfish::view;
use tempfile::TempDir;
use units::MIB;

/// Three NVMe drives: the first has a partition that is mounted and another below a mapping, the
/// second belongs to md with a partition of its own, the third is in no use. A drive behind a
/// network. And a drive of SATA with two partitions, and one with a similar name.
const SYSFS: &str = "\
class/block/nvme0n1 -> ../../devices/nvme0/nvme0n1
class/block/nvme0n1p1 -> ../../devices/nvme0/nvme0n1/nvme0n1p1
class/block/nvme0n1p2 -> ../../devices/nvme0/nvme0n1/nvme0n1p2
class/block/nvme1n1 -> ../../devices/nvme1/nvme1n1
class/block/nvme2n1 -> ../../devices/nvme2/nvme2n1
class/block/nvme3n1 -> ../../devices/nvme3/nvme3n1
class/block/dm-0 -> ../../devices/dm-0
class/block/md0 -> ../../devices/md0
class/block/md0p1 -> ../../devices/md0/md0p1
class/block/sda -> ../../devices/sda
class/block/sda1 -> ../../devices/sda/sda1
class/block/sda2 -> ../../devices/sda/sda2
class/block/sdaa -> ../../devices/sdaa
class/nvme/
devices/nvme0/transport = pcie
devices/nvme0/nvme0n1/dev = 259:0
devices/nvme0/nvme0n1/size = 8192
devices/nvme0/nvme0n1/device -> ..
devices/nvme0/nvme0n1/queue/logical_block_size = 4096
devices/nvme0/nvme0n1/nvme0n1p1/dev = 259:1
devices/nvme0/nvme0n1/nvme0n1p1/partition = 1
devices/nvme0/nvme0n1/nvme0n1p2/dev = 259:2
devices/nvme0/nvme0n1/nvme0n1p2/partition = 2
devices/nvme0/nvme0n1/nvme0n1p2/holders/dm-0 -> ../../../../dm-0
devices/nvme0/subsystem -> ../class/nvme
devices/nvme1/transport = pcie
devices/nvme1/nvme1n1/dev = 259:3
devices/nvme1/nvme1n1/size = 8192
devices/nvme1/nvme1n1/device -> ..
devices/nvme1/nvme1n1/holders/md0 -> ../../../md0
devices/nvme1/subsystem -> ../class/nvme
devices/nvme2/transport = pcie
devices/nvme2/nvme2n1/dev = 259:4
devices/nvme2/nvme2n1/size = 8192
devices/nvme2/nvme2n1/device -> ..
devices/nvme2/subsystem -> ../class/nvme
devices/nvme3/transport = tcp
devices/nvme3/nvme3n1/dev = 259:5
devices/nvme3/nvme3n1/size = 8192
devices/nvme3/nvme3n1/device -> ..
devices/nvme3/subsystem -> ../class/nvme
devices/sda/dev = 8:0
devices/sda/size = 8192
devices/sda/sda1/dev = 8:1
devices/sda/sda1/partition = 1
devices/sda/sda2/dev = 8:2
devices/sda/sda2/partition = 2
devices/sda/sda2/holders/dm-0 -> ../../../dm-0
devices/sdaa/dev = 65:160
devices/md0/md0p1/dev = 259:9
devices/md0/md0p1/partition = 1
devices/dm-0/dev = 254:0
devices/dm-0/dm/name = my--vg-lv
devices/dm-0/dm/uuid = LVM-abc
devices/md0/md/level = raid1
";

const PROC: &str = "\
self/mountinfo = 29 1 259:1 / /mnt/my\\\\040disk rw,relatime - ext4 /dev/nvme0n1p1 rw\\n\
30 1 0:50 / / rw - btrfs /dev/mapper/my--vg-lv rw\\n31 1 0:50 /home /home rw - btrfs \
/dev/mapper/my--vg-lv rw\\n32 1 259:9 / /srv rw - ext4 /dev/md0p1 rw\\n\
33 1 8:1 / /boot rw - ext4 /dev/sda1 rw
swaps = Filename Type Size Used Priority\\n/dev/nvme0n1p2 partition 1 0 -2
";

fn tree(text: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    drives::sysfs::tree::unpack(text, dir.path()).expect("unpacked");
    dir
}

fn configured(drives: &[&str]) -> Configured {
    let drives = drives.iter().map(|name| (*name).to_owned()).collect();
    let says = Config { drives, ..Config::default() };
    Configured { file: "/p.toml".into(), unread: None, mistakes: vec![], says }
}

fn seen(names: &[&str], daemon: &Daemon) -> Seen {
    let (sysfs, proc) = (tree(SYSFS), tree(PROC));
    look(&Proc(proc.path()), &configured(names), daemon, (sysfs.path(), false), 0)
}

#[test]
fn drives_are_those_that_are_named_and_other_local_ones() {
    let found = seen(&["/dev/nvme[0]n1", "/dev/nvme?n1", "/dev/nvme0n1"], &Daemon::Absent);
    let all: Vec<_> = found.drives.iter().map(|d| (d.path.as_str(), d.is_listed)).collect();
    let names = ["/dev/nvme0n1", "/dev/nvme1n1", "/dev/nvme2n1", "/dev/nvme3n1"];
    assert_eq!(all, names.map(|name| (name, true)));
    assert_eq!(found.absent, ["/dev/nvme[0]n1"]);
    let found = seen(&["/dev/nvme0n1p1"], &Daemon::Absent);
    let all: Vec<_> = found.drives.iter().map(|d| (d.path.as_str(), d.is_listed)).collect();
    let names = [("/dev/nvme0n1p1", true), ("/dev/nvme1n1", false), ("/dev/nvme2n1", false)];
    assert_eq!(all, names, "the whole of a part that is named is none that is left out");
    assert_eq!(found.drives[0].block_bytes, Some(4096), "its drive's");
}

#[test]
fn who_else_has_a_drive_or_a_part_of_it_is_found() {
    let found = seen(&["/dev/nvme*n1"], &Daemon::Absent);
    let of = |part: &str, by: By, mounts: &[&str]| Use {
        part: part.to_owned(),
        is_swap: part == "nvme0n1p2",
        by,
        mounts: mounts.iter().map(|at| (*at).to_owned()).collect(),
    };
    let mapper = || By::Mapper { name: "my--vg-lv".to_owned(), group: Some("my-vg".to_owned()) };
    assert_eq!(
        found.drives[0].uses,
        [
            of("nvme0n1p1", By::Mount, &["/mnt/my disk"]),
            of("nvme0n1p2", By::Swap, &["/", "/home"]),
            of("nvme0n1p2", mapper(), &["/", "/home"]),
        ]
    );
    assert_eq!(found.drives[1].uses, [of("nvme1n1", By::Md("/dev/md0".to_owned()), &["/srv"])]);
    assert_eq!(found.drives[2].uses, []);
    let found = seen(&["/dev/sda", "/dev/sdaa", "/dev/sda2"], &Daemon::Absent);
    let uses: Vec<_> = found.drives.iter().map(|drive| drive.uses.clone()).take(3).collect();
    let second = || of("sda2", mapper(), &["/", "/home"]);
    let expected = [vec![of("sda1", By::Mount, &["/boot"]), second()], vec![], vec![second()]];
    assert_eq!(uses, expected);
}

#[test]
fn what_the_daemon_knows_of_a_drive_is_found_by_its_path() {
    let known = view::KnownDrive {
        remote: None,
        id: "x".to_owned(),
        wwid: None,
        model: None,
        is_file: false,
        drive: view::Drive {
            path: "/dev/nvme2n1".to_owned(),
            serial: String::new(),
            bytes: 0,
            block_bytes: 512,
            state: DriveState::InUse,
            array: None,
            slot: None,
            signature: None,
            problem: None,
        },
        hardware: Default::default(),
    };
    let told = Told { drives: vec![known], ..Told::default() };
    let found = seen(&["/dev/nvme*n1"], &Daemon::Running(Box::new(told)));
    let known: Vec<_> = found.drives.iter().map(|drive| drive.known.is_some()).collect();
    assert_eq!(known, [false, false, true, false]);
    let told = |path: &str| {
        let drives = found.drives[2].known.iter().cloned().collect();
        let mut told = Told { drives, ..Told::default() };
        told.drives[0].drive.path = path.to_owned();
        Daemon::Running(Box::new(told))
    };
    let found = seen(&["/dev/nvme0n1"], &told("/files/a"));
    let last = found.drives.last().expect("one");
    assert_eq!((last.path.as_str(), last.is_listed), ("/files/a", false), "an array has it");
    assert!(last.known.is_some());
}

#[test]
fn a_volume_group_is_read_from_its_mappings_name() {
    for (name, expected) in [("vg-lv", "vg"), ("my--vg-a--b", "my-vg"), ("vg", "vg"), ("", "")] {
        assert_eq!(group(name), expected);
    }
}

#[test]
fn files_are_read_and_neither_claimed_nor_changed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("blank"), vec![0; 4 << 20]).expect("written");
    std::fs::write(path("foreign"), "what somebody needs ".repeat(200_000)).expect("written");
    // Somebody has it: it is looked at all the same, and stays theirs.
    let claim = SharedDrive::open(path("blank"), &OpenOptions::default()).expect("claimed");
    let names: Vec<_> = ["blank", "foreign", "none"].iter().map(|n| path(n)).collect();
    let names: Vec<_> = names.iter().map(|path| path.to_str().expect("text")).collect();
    let (sysfs, proc) = (tree(SYSFS), tree(PROC));
    let at = (sysfs.path(), false);
    let found = look(&Proc(proc.path()), &configured(&names), &Daemon::Absent, at, 0);
    let content = |at: usize| found.drives[at].content.clone();
    assert_eq!(content(0), Some(Content::Blank));
    assert!(matches!(content(1), Some(Content::Foreign(_))), "{:?}", content(1));
    assert_eq!(found.absent, [names[2]]);
    drop(claim);
}

#[test]
fn a_record_tells_array_slot_and_where_exports_listen() {
    use format::{ExportAddress, NvmeExport};
    use layout::{Layout, Level};
    use units::{Slot, Uuid};
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("member");
    std::fs::File::create(&path).expect("made").set_len(12 * MIB).expect("sized");
    let layout = Layout::new(Level::Raid1, 2, 65536, 8 * MIB).expect("it is possible");
    let id = |n| Uuid::from_random([n; 16]);
    let drives: Vec<_> = (1..3).map(|n| (id(n), format!("S{n}"))).collect();
    let split = format::split(12 * MIB);
    let mut record = ArrayRecord::new(id(9), "data", 7, 512, &layout, &split, &drives);
    let nvme = NvmeExport {
        subsystem: "nqn.2014-08.org.example:a".to_owned(),
        nsid: 1,
        listeners: ["192.0.2.1:4420", "host:4420"]
            .map(|address| format::Listener { address: address.to_owned(), advertise: None })
            .into(),
        hosts: None,
    };
    let volume = format::VolumeRecord {
        uuid: id(20),
        name: "v".to_owned(),
        bytes: MIB,
        extents: vec![format::Extent { array_start: 0, bytes: MIB }],
    };
    record.volumes = vec![volume];
    record.exports =
        vec![ExportRecord { id: 1, volume: id(20), address: ExportAddress::NvmeTcp(nvme) }];
    assert_eq!(record.check(), Ok(()));
    let image = format::encode(&record.for_slot(Slot(1)));
    let drive = SharedDrive::open(&path, &OpenOptions::default()).expect("opened");
    for offset in format::slot_offsets(12 * MIB) {
        let mut buffer = Pool::single(image.len());
        buffer.copy_from_slice(&image);
        drive.write_blocking(offset, &[buffer.freeze()]).expect("written");
    }
    drop(drive);
    let (content, listeners) = read(&path);
    let array = "data".to_owned();
    assert_eq!(content, Some(Content::Slot { array, slot: 1, latest: 0 }));
    let of = ListenerOf::Export { id: "data:1".to_owned(), is_nvme: true };
    let address = "192.0.2.1:4420".parse().expect("an address");
    assert_eq!(
        listeners,
        [Listener { address, of, is_local: None }],
        "a name is nobody's to look up"
    );
}
