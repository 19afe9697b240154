//! What is around drives, on recorded trees.

use palisade_drives::sysfs::{
    Alarm, Device, Enclosure, LedError, Port, PortKind, Quantity, Sensor, Slot, Sysfs, tree,
};
use std::fs;
use std::path::Path;

#[path = "support/recorded.rs"]
mod recorded;

use recorded::recorded;

const SHELF: &str = include_str!("trees/shelf.tree");
const SES: &str = include_str!("trees/sas.tree");
const MACHINE: &str = include_str!("trees/recorded.tree");

fn device(sysfs: &Sysfs, name: &str) -> Device {
    let devices = sysfs.devices();
    devices.into_iter().find(|d| d.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn sensor(sysfs: &Sysfs, id: &str) -> Sensor {
    let (sensors, _) = sysfs.sensors();
    let ids: Vec<String> = sensors.iter().map(|sensor| sensor.id.clone()).collect();
    sensors.into_iter().find(|s| s.id == id).unwrap_or_else(|| panic!("no {id} in {ids:?}"))
}

/// Where a channel's files are.
fn chip(sysfs: &Sysfs, number: u32) -> std::path::PathBuf {
    fs::canonicalize(sysfs.root().join(format!("class/hwmon/hwmon{number}"))).expect("a chip")
}

fn slot<'a>(enclosure: &'a Enclosure, label: &str) -> &'a Slot {
    enclosure.slots.iter().find(|s| s.label == label).unwrap_or_else(|| panic!("no {label}"))
}

#[test]
fn sensors_have_readings_limits_and_names_that_stay() {
    let (_dir, sysfs) = recorded(SHELF);
    let (sensors, _) = sysfs.sensors();
    assert!(sensors.iter().all(|sensor| sensor.chip != "nvme"), "no drive is asked");
    let ambient = sensor(&sysfs, "tmp421-1-004c-temp1");
    assert_eq!(ambient.label.as_deref(), Some("Ambient"));
    assert_eq!((ambient.measures, ambient.number), (Quantity::Temperature, 1));
    assert_eq!(ambient.reading, Some(24_500));
    assert_eq!((ambient.high, ambient.critical, ambient.low), (Some(40_000), Some(50_000), None));
    assert_eq!((ambient.alarm, ambient.is_faulty), (Alarm::None, false));
    let fan = sensor(&sysfs, "emc2305-1-002c-fan3");
    assert_eq!((fan.measures, fan.reading, fan.low), (Quantity::Fan, Some(9300), Some(2000)));
    assert_eq!(sensor(&sysfs, "ina226-1-0040-power1").reading, Some(337_900_000));
    // After a restart the kernel counts otherwise.
    let class = sysfs.root().join("class/hwmon");
    let ids = |sysfs: &Sysfs| -> Vec<String> {
        sysfs.sensors().0.into_iter().map(|sensor| sensor.id).collect()
    };
    let before = ids(&sysfs);
    for (from, to) in [("hwmon2", "hwmon20"), ("hwmon3", "hwmon2")] {
        fs::rename(class.join(from), class.join(to)).expect("renamed");
    }
    assert_eq!(ids(&sysfs), before);
}

#[test]
fn alarms_and_faults_are_the_chips_own() {
    let (_dir, sysfs) = recorded(SHELF);
    let board = chip(&sysfs, 3);
    for (file, alarm, faulty) in [
        ("temp2_max_alarm", Alarm::Raised, false),
        ("temp2_crit_alarm", Alarm::Critical, false),
        ("temp2_fault", Alarm::Critical, true),
    ] {
        fs::write(board.join(file), "1\n").expect("written");
        let sensor = sensor(&sysfs, "tmp421-1-004c-temp2");
        assert_eq!((sensor.alarm, sensor.is_faulty), (alarm, faulty), "{file}");
        assert_eq!(sensor.reading.is_none(), faulty, "a broken sensor reads nothing");
    }
}

#[test]
fn chips_of_one_name_and_place_differ_by_number() {
    let text = "class/hwmon/hwmon0 -> ../../devices/a/x/hwmon/hwmon0\n\
                devices/a/x/hwmon/hwmon0/name = lm75\ndevices/a/x/hwmon/hwmon0/temp1_input = 1\n\
                devices/a/x/hwmon/hwmon0/device -> ../../../x\n\
                class/hwmon/hwmon1 -> ../../devices/b/x/hwmon/hwmon1\n\
                devices/b/x/hwmon/hwmon1/name = lm75\ndevices/b/x/hwmon/hwmon1/temp1_input = 2\n\
                devices/b/x/hwmon/hwmon1/device -> ../../../x\n";
    let (_dir, sysfs) = recorded(text);
    assert_eq!(sensor(&sysfs, "lm75-x-temp1").reading, Some(1));
    assert_eq!(sensor(&sysfs, "lm75-x-2-temp1").reading, Some(2));
}

#[test]
fn supplies_are_chips_that_measure_what_goes_in_and_have_a_fan() {
    let (_dir, sysfs) = recorded(SHELF);
    // A converter of the board measures what goes in, too.
    fs::write(chip(&sysfs, 1).join("in1_label"), "vin\n").expect("written");
    let (_, supplies) = sysfs.sensors();
    let ids: Vec<&str> = supplies.iter().map(|supply| supply.id.as_str()).collect();
    assert_eq!(ids, ["dps920ab-1-0058", "dps920ab-1-0059"]);
    assert_eq!((supplies[0].is_on, supplies[0].input_microwatts), (Some(true), Some(412_000_000)));
    assert_eq!((supplies[0].alarm, supplies[0].is_faulty), (Alarm::None, false));
    let second = chip(&sysfs, 5);
    for (file, text) in [("power2_input", "0"), ("in1_min_alarm", "1"), ("fan1_fault", "1")] {
        fs::write(second.join(file), text).expect("written");
    }
    let (_, supplies) = sysfs.sensors();
    assert_eq!(supplies[0].is_on, Some(true));
    assert_eq!(supplies[1].is_on, Some(false));
    assert_eq!((supplies[1].alarm, supplies[1].is_faulty), (Alarm::Raised, true));
}

#[test]
fn a_drive_has_its_own_temperature() {
    let (_dir, sysfs) = recorded(SHELF);
    let reading = |controller: &str| sysfs.temperature(controller).and_then(|s| s.reading);
    assert_eq!((reading("nvme0"), reading("nvme1")), (Some(38_850), Some(39_850)));
    assert_eq!((reading("nvme2"), reading("nvme99"), reading("../nvme0")), (None, None, None));
    assert_eq!(sysfs.temperature("nvme0").and_then(|s| s.critical), Some(84_850));
}

#[test]
fn the_server_has_the_slots_that_hold_drives() {
    let (_dir, sysfs) = recorded(SHELF);
    let enclosures = sysfs.enclosures(&sysfs.devices());
    let [server] = &enclosures[..] else { panic!("{enclosures:?}") };
    assert_eq!((server.id.as_str(), &server.name), ("server", &None));
    let labels: Vec<String> = server.slots.iter().map(|slot| slot.label.clone()).collect();
    let expected: Vec<String> = (1..=24).map(|number| number.to_string()).collect();
    assert_eq!(labels, expected, "in order, and not that of the network card");
    assert_eq!(slot(server, "8").devices, ["nvme7n1"]);
    let on: Vec<&str> = server
        .slots
        .iter()
        .filter(|slot| slot.located == Some(true))
        .map(|slot| slot.label.as_str())
        .collect();
    assert_eq!(on, ["3"]);
    // A slot from which a drive was taken stays.
    let drive = sysfs.root().join("class/block/nvme23n1");
    fs::remove_file(drive).expect("removed");
    fs::write(sysfs.root().join("bus/pci/slots/24/adapter"), "0\n").expect("written");
    let enclosures = sysfs.enclosures(&sysfs.devices());
    let empty = slot(&enclosures[0], "24");
    assert_eq!((empty.devices.len(), empty.located), (0, Some(false)));
}

#[test]
fn an_enclosure_that_speaks_ses_has_its_slots() {
    let (_dir, sysfs) = recorded(SES);
    let enclosures = sysfs.enclosures(&sysfs.devices());
    let [shelf] = &enclosures[..] else { panic!("it is there twice: {enclosures:?}") };
    assert_eq!(shelf.id, "ses-0x500a0b8000000001");
    assert_eq!(shelf.name.as_deref(), Some("ACME JBOD-4"));
    let told: Vec<_> = shelf
        .slots
        .iter()
        .map(|slot| (&slot.label[..], slot.devices.join(" "), slot.located, slot.is_faulty))
        .collect();
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(
        told,
        [
            ("1", "sda".to_owned(), no, no),
            ("2", "sdb".to_owned(), yes, no),
            ("3", "sdc".to_owned(), no, yes),
            ("4", String::new(), no, no),
        ]
    );
    assert_eq!(shelf.slots[2].status.as_deref(), Some("critical"));
    assert_eq!(sysfs.located(&device(&sysfs, "sdb")), yes);
    // By the other way to the same drive, too.
    assert_eq!(sysfs.located(&device(&sysfs, "sde")), yes);
}

#[test]
fn indicators_are_switched_by_the_way_the_machine_has() {
    let npem = "class/leds/0000:82:00.0:enclosure:locate/brightness";
    let ses = "class/enclosure/0:0:9:0/Slot 01/locate";
    for (tree, name, file) in [
        (SHELF, "nvme0n1", npem),
        (SHELF, "nvme12n1", "bus/pci/slots/13/attention"),
        (SES, "sda", ses),
    ] {
        let (_dir, sysfs) = recorded(tree);
        let device = device(&sysfs, name);
        let text = || fs::read_to_string(sysfs.root().join(file)).expect(file);
        for (on, value) in [(true, "1\n"), (true, "1\n"), (false, "0\n")] {
            sysfs.locate(&device, on).expect("switched");
            assert_eq!((text().as_str(), sysfs.located(&device)), (value, Some(on)), "{name}");
        }
    }
}

#[test]
fn behind_vmd_a_slot_takes_patterns() {
    let text = SHELF.replace("0000:83:00", "10000:83:00").replace("0000:82:00.0:enclosure", "x");
    let (_dir, sysfs) = recorded(&format!("{text}bus/pci/slots/1/attention = 15\n"));
    let device = device(&sysfs, "nvme0n1");
    let file = sysfs.root().join("bus/pci/slots/1/attention");
    sysfs.locate(&device, true).expect("switched");
    assert_eq!(fs::read_to_string(&file).expect("readable"), "7\n");
    fs::write(&file, "13\n").expect("written");
    assert_eq!(sysfs.located(&device), Some(false), "another pattern is not locate");
    sysfs.locate(&device, false).expect("switched");
    assert_eq!(fs::read_to_string(&file).expect("readable"), "15\n");
}

#[test]
fn what_has_no_indicator_or_refuses_says_so() {
    let (_dir, sysfs) = recorded(MACHINE);
    let vda = device(&sysfs, "vda");
    assert_eq!(sysfs.located(&vda), None);
    let error = sysfs.locate(&vda, true).expect_err("it has none");
    assert!(matches!(error, LedError::None { .. }) && error.to_string().contains("vda"));

    let (_dir, sysfs) = recorded(SHELF);
    let drive = device(&sysfs, "nvme0n1");
    let led = sysfs.root().join("class/leds/0000:82:00.0:enclosure:locate/brightness");
    fs::remove_file(&led).expect("removed");
    fs::create_dir(&led).expect("made");
    let error = sysfs.locate(&drive, true).expect_err("a directory");
    assert!(matches!(error, LedError::Refused { .. }), "{error}");
    assert!(!error.action().is_empty());
}

fn told(port: &Port) -> (PortKind, bool, bool, Option<u32>, Option<bool>, Option<u32>) {
    (port.kind, port.is_enabled, port.has_link, port.megabits, port.full_duplex, port.mtu)
}

#[test]
fn ports_are_those_that_carry_others_traffic() {
    let (_dir, sysfs) = recorded(SHELF);
    let ports = sysfs.ports();
    let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    let expected = ["bond0", "bond0.40", "br0", "ens1f0np0", "ens1f1np1", "ens2f0np0", "ens2f1np1"];
    assert_eq!(names, expected, "no bridge or tunnel without an address, no function of a guest");
    let (yes, fast) = (Some(true), Some(100_000));
    assert_eq!(told(&ports[3]), (PortKind::Physical, true, true, fast, yes, Some(9000)));
    assert_eq!(ports[3].addresses, ["192.0.2.10/24", "2001:db8::1/64"]);
    assert_eq!(ports[3].mac.as_deref(), Some("02:00:5e:00:01:01"));
    assert_eq!(told(&ports[6]), (PortKind::Physical, true, false, None, None, Some(9000)));
    assert_eq!(
        (ports[0].kind, ports[1].kind, ports[2].kind),
        (PortKind::Bond, PortKind::Vlan, PortKind::Other)
    );
}

#[test]
fn recorded_trees_don_t_have_this_machines_addresses() {
    let (_dir, sysfs) = recorded(MACHINE);
    let ports = sysfs.ports();
    let [eth0] = &ports[..] else { panic!("{ports:?}") };
    assert_eq!((eth0.name.as_str(), eth0.mac.as_deref()), ("eth0", None), "recorded without it");
    assert_eq!(eth0.addresses, Vec::<String>::new());
}

#[test]
fn nothing_is_around_where_nothing_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let sysfs = Sysfs::new(dir.path());
    assert_eq!(sysfs.surroundings(&[]), Default::default());
    tree::unpack(
        "class/hwmon/hwmon0/\nclass/enclosure/e/\nbus/pci/slots/1/\nclass/net/x/\n",
        dir.path(),
    )
    .expect("unpacked");
    let around = sysfs.surroundings(&[]);
    assert_eq!((around.sensors.len(), around.supplies.len(), around.ports.len()), (0, 0, 0));
    assert_eq!(around.enclosures.len(), 1);
    assert!(Path::new("/sys").exists() && Sysfs::default().surroundings(&[]).enclosures.len() < 99);
}
