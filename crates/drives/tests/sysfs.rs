//! Recorded trees of machines, read as the daemon reads `/sys`.

use palisade_drives::sysfs::{Change, Comparison, Device, Kind, Sysfs, Transport, Width, changes};

#[path = "support/recorded.rs"]
mod recorded;

use recorded::recorded;

const REMOTE: &str = include_str!("trees/remote.tree");
const NETWORK: &str = include_str!("trees/network.tree");
const MACHINE: &str = include_str!("trees/recorded.tree");

fn named<'a>(devices: &'a [Device], name: &str) -> &'a Device {
    devices.iter().find(|d| d.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The names of a device's controllers.
fn reached_by(device: &Device) -> Vec<&str> {
    device.controllers.iter().map(|controller| controller.name.as_str()).collect()
}

#[test]
fn a_machine_as_it_was_recorded() {
    let (_dir, sysfs) = recorded(MACHINE);
    let devices = sysfs.devices();
    let vda = named(&devices, "vda");
    assert_eq!(vda.kind, Kind::Virtio);
    assert_eq!((vda.number, vda.diskseq), (Some((254, 0)), Some(9)));
    assert_eq!(vda.bytes, Some(536_870_912 * 512));
    assert_eq!(vda.identity.serial.as_deref(), Some("serial-1"), "recorded without its own");
    assert_eq!(vda.pci.as_ref().map(|pci| pci.address.as_str()), Some("0000:00:02.0"));
    assert_eq!(vda.pci.as_ref().and_then(|pci| pci.link), None);
    assert!(vda.transport().is_none() && !vda.is_remote() && !vda.hidden);
    assert_eq!(named(&devices, "loop0").kind, Kind::Loop);
    assert_eq!(named(&devices, "loop0").bytes, Some(0));
    assert_eq!(named(&devices, "zram0").kind, Kind::Other);
    assert_eq!(sysfs.device(254, 0).as_ref(), Some(vda));
    assert_eq!(sysfs.device(254, 1), None);
}

#[test]
fn a_drive_behind_a_fabric_has_its_controllers() {
    let (_dir, sysfs) = recorded(REMOTE);
    let devices = sysfs.devices();
    for (name, controllers, transport, remote) in [
        ("nvme0n1", &["nvme0", "nvme1"][..], Transport::Tcp, true),
        ("nvme0n1p1", &["nvme0", "nvme1"], Transport::Tcp, true),
        ("nvme0n2", &["nvme0"], Transport::Tcp, true),
        ("nvme2n1", &["nvme2"], Transport::Rdma, true),
        ("nvme3n1", &["nvme3", "nvme4"], Transport::Pcie, false),
        ("nvme5n1", &["nvme5"], Transport::Fc, true),
        ("nvme6n1", &["nvme6"], Transport::Loop, false),
    ] {
        let device = named(&devices, name);
        assert_eq!((device.kind, device.hidden), (Kind::Nvme, false), "{name}");
        assert_eq!(reached_by(device), controllers, "{name}");
        assert_eq!((device.transport(), device.is_remote()), (Some(transport), remote), "{name}");
    }
    let first = &named(&devices, "nvme0n1").controllers[0];
    assert_eq!(first.node().to_str(), Some("/dev/nvme0"));
    assert_eq!(first.number, Some((242, 0)));
    assert_eq!(first.address.as_deref(), Some("traddr=192.0.2.1,trsvcid=4420"));
    assert_eq!((first.state.as_deref(), &first.pci), (Some("live"), &None));
    let hidden: Vec<&str> = devices.iter().filter(|d| d.hidden).map(|d| d.name.as_str()).collect();
    assert_eq!(hidden, ["nvme0c0n1", "nvme0c0n2", "nvme0c1n1", "nvme3c3n1", "nvme3c4n1"]);
    assert_eq!(named(&devices, "nvme0c1n1").number, None);
}

#[test]
fn a_device_behind_another_network_is_remote() {
    let (_dir, sysfs) = recorded(NETWORK);
    let devices = sysfs.devices();
    let mut expected = vec![
        ("sda", Kind::Scsi, None),
        ("sdb", Kind::Scsi, Some(Transport::Fc)),
        ("sdb1", Kind::Scsi, Some(Transport::Fc)),
        ("sdc", Kind::Scsi, Some(Transport::Fc)),
        ("sdd", Kind::Scsi, Some(Transport::Tcp)),
        ("sde", Kind::Scsi, Some(Transport::Rdma)),
        ("sdf", Kind::Scsi, Some(Transport::Rdma)),
        ("sdg", Kind::Scsi, Some(Transport::Tcp)),
        ("sdh", Kind::Scsi, None),
        ("nbd0", Kind::Other, Some(Transport::Tcp)),
        ("nbdx", Kind::Other, None),
        ("rbd0", Kind::Other, Some(Transport::Tcp)),
        ("rnbd1", Kind::Other, Some(Transport::Rdma)),
        ("dm-0", Kind::Mapper, Some(Transport::Fc)),
        ("dm-1", Kind::Mapper, None),
        ("dm-2", Kind::Mapper, Some(Transport::Fc)),
        ("dm-3", Kind::Mapper, Some(Transport::Rdma)),
        ("dm-4", Kind::Mapper, None),
        ("md0", Kind::Md, Some(Transport::Fc)),
        ("nvme0n1", Kind::Nvme, Some(Transport::Rdma)),
    ];
    expected.sort_by_key(|(name, ..)| *name);
    let found: Vec<_> = devices.iter().map(|d| (d.name.as_str(), d.kind, d.transport())).collect();
    assert_eq!(found, expected);
    for device in &devices {
        assert_eq!(device.is_remote(), device.transport().is_some(), "{}", device.name);
    }
}

#[test]
fn identities_are_of_drives_and_their_partitions() {
    let (_dir, sysfs) = recorded(REMOTE);
    let devices = sysfs.devices();
    let (drive, partition) = (named(&devices, "nvme0n1"), named(&devices, "nvme0n1p1"));
    assert_eq!(drive.identity.wwid.as_deref(), Some("eui.0000000000000001"));
    assert_eq!(drive.identity.serial.as_deref(), Some("S0001"));
    assert_eq!((drive.identity.namespace, drive.partition), (Some(1), None));
    assert_eq!(partition.identity.wwid.as_deref(), Some("eui.0000000000000001-part1"));
    assert_eq!(partition.identity.serial.as_deref(), Some("S0001"));
    assert_eq!((partition.partition, partition.diskseq), (Some(1), Some(21)));
    assert_eq!((drive.bytes, partition.bytes), (Some(7_681_501_126_656), Some(2 << 20)));
    assert_eq!(drive.model.as_deref(), Some("Shelf Drive 7.68TB"));
    assert_eq!(drive.firmware.as_deref(), Some("1.2"));
    let compare = |other: &str| drive.identity.compare(&named(&devices, other).identity);
    assert_eq!(compare("nvme0n1"), Comparison::Same);
    for device in devices.iter().filter(|device| !device.hidden) {
        let (major, minor) = device.number.expect("all but hidden ones have one");
        let (identity, model) = sysfs.identify(major, minor).expect("it is there");
        assert_eq!((&identity, &model), (&device.identity, &device.model), "{}", device.name);
    }
    for other in ["nvme0n1p1", "nvme0n2", "nvme2n1"] {
        assert_eq!(compare(other), Comparison::Other, "{other}");
    }
}

#[test]
fn a_link_that_could_be_wider_is_seen() {
    let (_dir, sysfs) = recorded(REMOTE);
    let devices = sysfs.devices();
    let drive = named(&devices, "nvme3n1");
    let links: Vec<_> = drive.controllers.iter().filter_map(|c| c.pci.clone()?.link).collect();
    let most = Width { lanes: 2, megatransfers: 16_000 };
    assert_eq!(links[0].could_be(), most, "the device has two, the port four");
    assert!(!links[0].is_reduced() && links[1].is_reduced());
    let slots: Vec<_> = drive.controllers.iter().filter_map(|c| c.pci.clone()?.slot).collect();
    assert_eq!(slots, ["7", "8"]);
    assert_eq!(drive.pci, drive.controllers[0].pci);
}

#[test]
fn what_was_written_is_counted() {
    let drive = "devices/virtual/block/loop0";
    let text = format!(
        "dev/block/7:0 -> ../../{drive}\n{drive}/stat =    1   2  3  4  50   60 700  8\n\
         dev/block/7:1 -> ../../{drive}1\n{drive}1/stat = 1 2 3 4 5\n"
    );
    let (_dir, sysfs) = recorded(&text);
    assert_eq!(sysfs.writes(7, 0), Some([50, 60, 700]));
    assert_eq!((sysfs.writes(7, 1), sysfs.writes(7, 2)), (None, None));
}

#[test]
fn what_is_not_there_is_not_known() {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(Sysfs::new(dir.path().join("nothing")).devices(), []);
    assert_eq!(Sysfs::new(dir.path()).devices(), []);
    let (_dir, sysfs) = recorded("class/block/odd/size = many\nclass/block/odd!one/dev = 1\n");
    let devices = sysfs.devices();
    assert_eq!(devices.len(), 2);
    assert_eq!((named(&devices, "odd").bytes, named(&devices, "odd/one").number), (None, None));
    assert!(named(&devices, "odd").identity.is_silent());
}

#[test]
fn a_path_that_goes_is_no_change_of_its_drive() {
    let (dir, sysfs) = recorded(REMOTE);
    let before = sysfs.devices();
    let remove = |name: &str| {
        let way = dir.path().join("class/block").join(name);
        let whole = std::fs::canonicalize(&way).expect("it is there");
        std::fs::remove_file(&way).expect("removed");
        std::fs::remove_dir_all(whole).expect("removed");
    };
    remove("nvme0c1n1");
    let after = sysfs.devices();
    assert_eq!(changes(&before, &after), []);
    assert_eq!(reached_by(named(&after, "nvme0n1")), ["nvme0"]);
    remove("nvme2n1");
    let gone = Change::Gone { name: "nvme2n1".to_owned() };
    assert_eq!(changes(&after, &sysfs.devices()), [gone]);
}

#[test]
fn this_machine_has_what_its_kernel_lists() {
    let devices = Sysfs::default().devices();
    let names = std::fs::read_dir("/sys/class/block").map_or(0, |entries| entries.count());
    assert_eq!(devices.len(), names);
    assert_eq!(changes(&devices, &devices), []);
}
