//! Tests of what is around the drives, on recorded trees.

use super::*;

const SHELF: &str = include_str!("../../drives/tests/trees/shelf.tree");
const SES: &str = include_str!("../../drives/tests/trees/sas.tree");

fn recorded(text: &str) -> (tempfile::TempDir, Sysfs) {
    let dir = tempfile::tempdir().expect("a directory");
    sysfs::tree::unpack(text, dir.path()).expect("a tree");
    let sysfs = Sysfs::new(dir.path());
    (dir, sysfs)
}

/// The shelf's drives as the daemon knows them: identifier, path and serial number. No such drives
/// are on this machine.
fn shelf_drives() -> Vec<(String, String, String)> {
    let one =
        |n: usize| (format!("drive-{n}"), format!("/dev/nvme{}n1", n - 1), format!("SHELF{n:04}"));
    (1..=24).map(one).collect()
}

fn placed(drives: &[(String, String, String)]) -> Vec<Placed<'_>> {
    drives.iter().map(|(id, path, serial)| Placed { id, path, serial: Some(serial) }).collect()
}

/// The shelf as a configuration describes it, with the drives of its first slots.
fn shelf(drives: u16) -> Enclosure {
    let module = |name: &str, ports: [&str; 2]| Module {
        name: name.to_owned(),
        ports: ports.map(str::to_owned).to_vec(),
    };
    Enclosure {
        name: "Shelf 1".to_owned(),
        model: Some("Data24".to_owned()),
        slots: Some(24),
        columns: Some(24),
        modules: vec![
            module("A", ["ens1f0np0", "ens1f1np1"]),
            module("B", ["ens2f0np0", "ens2f1np1"]),
        ],
        drives: (1..=drives)
            .map(|slot| match slot % 2 {
                0 => (slot, format!("SHELF{slot:04}")),
                _ => (slot, format!("/dev/nvme{}n1", slot - 1)),
            })
            .collect(),
    }
}

#[test]
fn the_servers_slots_have_its_drives() {
    let (_dir, sysfs) = recorded(SHELF);
    let drives = shelf_drives();
    let around = surroundings(&sysfs, &[], &placed(&drives));
    let [server] = &around.enclosures[..] else { panic!("{:?}", around.enclosures) };
    assert_eq!((server.id.as_str(), server.name.as_str(), server.columns), ("server", "Server", 0));
    for (slot, (id, ..)) in server.slots.iter().zip(&drives) {
        assert_eq!(slot.drive.as_ref(), Some(id), "slot {}", slot.slot);
        assert_eq!(slot.located, Some(slot.slot == "3"));
    }
    let place = place(&around, "drive-8").expect("it is in one");
    assert_eq!((place.enclosure.as_str(), place.slot.as_str()), ("server", "8"));
    assert_eq!(super::place(&around, "drive-99"), None);
}

#[test]
fn what_the_configuration_describes_comes_first() {
    let (_dir, sysfs) = recorded(SHELF);
    let drives = shelf_drives();
    let around = surroundings(&sysfs, &[shelf(24)], &placed(&drives));
    let [own] = &around.enclosures[..] else { panic!("{:?}", around.enclosures) };
    assert_eq!((own.id.as_str(), own.name.as_str()), ("Shelf-1", "Shelf 1"));
    assert_eq!((own.model.as_deref(), own.columns, own.slots.len()), (Some("Data24"), 24, 24));
    for (slot, (id, ..)) in own.slots.iter().zip(&drives) {
        assert_eq!(slot.drive.as_ref(), Some(id), "slot {}", slot.slot);
        assert_eq!(slot.located, Some(slot.slot == "3"), "by its indicator");
    }
    assert_eq!(own.modules[1].ports, ["ens2f0np0", "ens2f1np1"]);
    let ports: Vec<&str> = around.ports.iter().map(|port| port.id.as_str()).collect();
    assert!(own.modules.iter().flat_map(|m| &m.ports).all(|p| ports.contains(&p.as_str())));
}

#[test]
fn what_it_does_not_describe_stays_where_the_kernel_says() {
    let (_dir, sysfs) = recorded(SHELF);
    let drives = shelf_drives();
    let around = surroundings(&sysfs, &[shelf(10)], &placed(&drives));
    let [own, server] = &around.enclosures[..] else { panic!("{:?}", around.enclosures) };
    assert_eq!(own.slots[10].drive, None, "nobody said what is in slot 11");
    assert_eq!((server.slots.len(), server.slots[0].slot.as_str()), (14, "11"));
    let mut seen = BTreeSet::new();
    let slots = around.enclosures.iter().flat_map(|enclosure| &enclosure.slots);
    assert!(slots.filter_map(|slot| slot.drive.as_ref()).all(|drive| seen.insert(drive.clone())));
    assert_eq!(seen.len(), 24, "each drive is in one slot");
}

#[test]
fn two_enclosures_of_one_name_differ() {
    let (_dir, sysfs) = recorded("class/block/\n");
    let two = [
        Enclosure { name: "a b".to_owned(), ..Enclosure::default() },
        Enclosure { name: "a/b".to_owned(), ..Enclosure::default() },
    ];
    let around = surroundings(&sysfs, &two, &[]);
    let ids: Vec<&str> = around.enclosures.iter().map(|e| e.id.as_str()).collect();
    assert_eq!(ids, ["a-b", "a-b-2"]);
}

#[test]
fn a_partition_is_where_its_drive_is() {
    let text = format!(
        "{SES}class/block/sdb1 -> ../../devices/pci0000:00/0000:00:01.0/host0/target0:0:1/0:0:1:0/\
         block/sdb/sdb1\ndevices/pci0000:00/0000:00:01.0/host0/target0:0:1/0:0:1:0/block/sdb/sdb1/\
         partition = 1\n"
    );
    let (_dir, sysfs) = recorded(&text);
    let drive = Placed { id: "part", path: "/dev/sdb1", serial: None };
    let around = surroundings(&sysfs, &[], &[drive]);
    let [shelf] = &around.enclosures[..] else { panic!("{:?}", around.enclosures) };
    let drives: Vec<_> = shelf.slots.iter().map(|slot| slot.drive.as_deref()).collect();
    assert_eq!(drives, [None, Some("part"), None, None]);
    assert_eq!((shelf.name.as_str(), shelf.slots[1].located), ("ACME JBOD-4", Some(true)));
}

/// A sensor of this quantity with these values.
fn reads(
    measures: Quantity,
    reading: i64,
    limits: [Option<i64>; 3],
    alarm: Alarm,
    is_faulty: bool,
) -> sysfs::Sensor {
    let [low, high, critical] = limits;
    sysfs::Sensor {
        id: "chip-x-temp1".to_owned(),
        chip: "chip".to_owned(),
        chip_id: "chip-x".to_owned(),
        measures,
        number: 1,
        label: None,
        reading: Some(reading),
        low,
        high,
        critical,
        alarm,
        is_faulty,
    }
}

#[test]
fn how_well_it_is_follows_from_limits_and_alarms() {
    use Health::{Critical, Ok, Warning};
    use Quantity::{Fan, Temperature, Voltage};
    let most = [None, Some(80_000), Some(90_000)];
    for (measures, reading, limits, alarm, faulty, expected) in [
        (Temperature, 20_000, most, Alarm::None, false, Ok),
        (Temperature, 79_999, most, Alarm::None, false, Ok),
        (Temperature, 80_000, most, Alarm::None, false, Warning),
        (Temperature, 90_000, most, Alarm::None, false, Critical),
        (Temperature, 20_000, most, Alarm::Raised, false, Warning),
        (Temperature, 20_000, most, Alarm::Critical, false, Critical),
        (Temperature, 95_000, most, Alarm::Raised, false, Critical),
        (Temperature, 20_000, most, Alarm::None, true, Warning),
        (Temperature, 20_000, [None; 3], Alarm::None, false, Ok),
        (Voltage, 11_000, [Some(11_400), None, None], Alarm::None, false, Warning),
        (Voltage, 12_000, [Some(11_400), Some(0), Some(0)], Alarm::None, false, Ok),
        (Fan, 0, [Some(2000), None, None], Alarm::None, false, Critical),
        (Fan, 0, [None; 3], Alarm::None, false, Ok),
        (Fan, 0, [None; 3], Alarm::Raised, false, Critical),
        (Fan, 1500, [Some(2000), None, None], Alarm::None, false, Warning),
        (Fan, 9000, [Some(2000), None, None], Alarm::None, true, Critical),
        (Fan, 9000, [Some(2000), None, None], Alarm::None, false, Ok),
    ] {
        let one = reads(measures, reading, limits, alarm, faulty);
        let found = match sensor(&one, &[]) {
            Some(sensor) => sensor.health,
            None => fan(&one, &[]).health,
        };
        assert_eq!(found, expected, "{one:?}");
    }
}

#[test]
fn sensors_fans_and_supplies_are_told_apart() {
    let (_dir, sysfs) = recorded(SHELF);
    let around = surroundings(&sysfs, &[], &[]);
    let ids: BTreeSet<&str> = around
        .sensors
        .iter()
        .map(|sensor| sensor.id.as_str())
        .chain(around.fans.iter().map(|fan| fan.id.as_str()))
        .collect();
    assert_eq!(ids.len(), around.sensors.len() + around.fans.len(), "each has one");
    let ambient = around.sensors.iter().find(|s| s.name == "Ambient").expect("it is there");
    assert_eq!((ambient.measures, ambient.reading), (view::Measures::Temperature, Some(24_500)));
    assert_eq!((ambient.high, ambient.critical), (Some(40_000), Some(50_000)));
    let fans: Vec<&str> = around.fans.iter().map(|fan| fan.name.as_str()).collect();
    assert_eq!(fans[..5], ["Fan 1", "Fan 2", "Fan 3", "Fan 4", "Fan 5"]);
    assert_eq!(fans[5..], ["Power supply 1 fan1", "Power supply 2 fan1"]);
    assert_eq!((around.fans[0].rpm, around.fans[0].least_rpm), (Some(9100), Some(2000)));
    let names: BTreeSet<&str> = around.sensors.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names.len(), around.sensors.len(), "people can tell them apart");
    let supplies: Vec<_> =
        around.supplies.iter().map(|s| (s.name.as_str(), s.is_on, s.health)).collect();
    let well = |name| (name, Some(true), Health::Ok);
    assert_eq!(supplies, [well("Power supply 1"), well("Power supply 2")]);
    let unplugged = sysfs::Supply {
        id: String::new(),
        chip: String::new(),
        is_on: Some(false),
        input_microwatts: None,
        alarm: Alarm::Raised,
        is_faulty: false,
    };
    assert_eq!(supply((0, &unplugged)).health, Health::Critical);
}

#[test]
fn shelves_that_tell_of_themselves_come_last_and_take_nobodys_drive() {
    let bay = |own: &[&str]| view::ShelfBay {
        slot: "1".to_owned(),
        own: own.iter().map(|id| (*id).to_owned()).collect(),
        ..view::ShelfBay::default()
    };
    let slot = |drive: &str| view::EnclosureSlot {
        drive: Some(drive.to_owned()),
        ..view::EnclosureSlot::default()
    };
    let told = |id: &str, own: &[&str]| view::Enclosure {
        id: id.to_owned(),
        slots: vec![slot(own[0])],
        shelf: Some(view::Shelf { bays: vec![bay(own)], ..view::Shelf::default() }),
        ..view::Enclosure::default()
    };
    let described =
        view::Enclosure { id: "left".to_owned(), slots: vec![slot("a")], ..Default::default() };
    let seen = view::Surroundings { enclosures: vec![described], ..Default::default() };
    let shelves = [told("left", &["a", "b"]), told("local", &["b", "c", "d"])];
    let around = with_shelves(seen, &shelves);
    let ids: Vec<&str> = around.enclosures.iter().map(|own| own.id.as_str()).collect();
    assert_eq!(ids, ["left", "left-2", "local-2"]);
    let first = |at: usize| around.enclosures[at].slots[0].drive.as_deref();
    assert_eq!([0, 1, 2].map(first), ["a", "b", "c"].map(Some));
    let place = |drive: &str| place(&around, drive).map(|place| (place.enclosure, place.slot));
    assert_eq!(place("d"), Some(("local-2".to_owned(), "1".to_owned())));
    assert_eq!((place("a").expect("has one").0.as_str(), place("x")), ("left", None));
}
