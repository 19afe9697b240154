//! Drives as devices, and what is around them, for tests.

use super::Random;
use crate::view::*;

/// A drive as a device; often nothing is known.
pub fn of_drive(random: &mut Random) -> Hardware {
    if random.chance() {
        return Hardware::default();
    }
    Hardware {
        kind: random.maybe(|r| r.pick(&["nvme", "scsi", "virtio", "loop"]).to_owned()),
        transport: random.maybe(|r| r.pick(&["pcie", "tcp", "rdma", "fc"]).to_owned()),
        controller: random.maybe(|r| format!("nvme{}", r.below(99))),
        namespace: random.maybe(|r| r.below(1 << 32) as u32),
        firmware: random.maybe(Random::text),
        bus_address: random.maybe(|_| "0000:01:00.0".to_owned()),
        link: random.maybe(link),
        place: random.maybe(|r| DrivePlace {
            enclosure: r.pick(&["shelf.0", "gone", "local"]).to_owned(),
            slot: r.pick(&["0", "7", "bay ä/7", ""]).to_owned(),
        }),
        located: random.maybe(Random::chance),
        health: health(random),
        reasons: random.several(3, |r, _| Reason {
            rule: r.pick(&["wear", "temperature", "link"]).to_owned(),
            health: health(r),
            what: r.text(),
            action: r.text(),
            since: r.moment(),
        }),
        smart: random.maybe(smart),
        sensor_celsius: random.maybe(celsius),
        warning_celsius: random.maybe(celsius),
        critical_celsius: random.maybe(celsius),
        power: random
            .maybe(|r| DrivePower { state: r.below(32) as u8, states: r.several(5, power_state) }),
        worn_out: random.maybe(Random::moment),
        asked: random.maybe(Random::moment),
        problem: random.maybe(Random::text),
    }
}

/// A shelf of drives of which all is known: two in five are not well.
pub fn shelf() -> View {
    let random = &mut Random::new(28);
    let mut view = super::view(28);
    view.drives = (0..24)
        .map(|number| {
            let mut known = super::drive(random, number);
            let health = Health::ALL[(number % 5 % 3) as usize];
            known.drive.path = format!("/dev/nvme{number}n1");
            known.hardware = of_shelf(random, number, health).into();
            known
        })
        .collect();
    let slot = |number: usize| EnclosureSlot {
        slot: number.to_string(),
        drive: view.drives.get(number).filter(|_| number != 7).map(|known| known.id.clone()),
        located: Some(number == 3),
    };
    let module = |name: &str, ports: [&str; 2]| Module {
        name: name.to_owned(),
        ports: ports.map(str::to_owned).to_vec(),
    };
    let shelf = Enclosure {
        id: "shelf.0".to_owned(),
        name: "Shelf".to_owned(),
        model: Some("Data24".to_owned()),
        columns: 24,
        slots: (0..24).map(slot).collect(),
        modules: vec![module("A", ["eth0", "eth1"]), module("B", ["eth2", "gone"])],
        shelf: None,
    };
    view.surroundings = Surroundings {
        enclosures: vec![shelf],
        sensors: (0..8)
            .map(|number| Sensor { id: format!("hwmon{number}.temp1"), ..sensor(random, number) })
            .collect(),
        fans: (0..2)
            .map(|number| Fan {
                id: format!("fan{number}"),
                name: format!("Fan {number}"),
                rpm: (number == 0).then_some(9_000),
                least_rpm: Some(1_000),
                health: Health::ALL[number],
            })
            .collect(),
        supplies: (0..2)
            .map(|number| Supply {
                id: format!("psu{number}"),
                name: format!("Supply {number}"),
                is_on: Some(number == 0),
                input_microwatts: Some(123_456_789),
                health: Health::ALL[number],
            })
            .collect(),
        ports: (0..3).map(|number| port(random, number)).collect(),
    }
    .into();
    view
}

fn of_shelf(random: &mut Random, number: u64, health: Health) -> Hardware {
    let text = |text: &str| Some(text.to_owned());
    let since = random.moment();
    let reason = |health| Reason {
        rule: "wear".to_owned(),
        health,
        what: "93% of its life is used".to_owned(),
        action: "replace it".to_owned(),
        since,
    };
    Hardware {
        kind: text("nvme"),
        transport: text(if number < 20 { "pcie" } else { "tcp" }),
        controller: Some(format!("nvme{number}")),
        namespace: Some(1),
        firmware: text("EXA7301Q"),
        bus_address: Some(format!("0000:{number:02x}:00.0")),
        link: Some(link(random)),
        place: Some(DrivePlace { enclosure: "shelf.0".to_owned(), slot: number.to_string() }),
        located: Some(number == 3),
        health,
        reasons: (health != Health::Ok).then(|| reason(health)).into_iter().collect(),
        smart: Some(smart(random)),
        sensor_celsius: Some(31),
        warning_celsius: Some(70),
        critical_celsius: Some(80),
        power: Some(DrivePower {
            state: 0,
            states: (0..5).map(|state| power_state(random, state)).collect(),
        }),
        worn_out: Some(2_000_000_000),
        asked: Some(1_700_000_000),
        problem: random.maybe(Random::text),
    }
}

/// What is around these drives.
pub fn surroundings(random: &mut Random, drives: &[KnownDrive]) -> Surroundings {
    let slot = |random: &mut Random, number: u64| EnclosureSlot {
        slot: format!("{number} ä"),
        drive: match drives {
            [] => None,
            some => random.maybe(|random| random.pick(some).id),
        },
        located: random.maybe(Random::chance),
    };
    let mut ids = vec!["shelf.0", "local", "a b"];
    ids.truncate(random.below(4) as usize);
    let shelf = |random: &mut Random| shelf_of(random, drives);
    let enclosure = |id: &str| Enclosure {
        id: id.to_owned(),
        name: random.text(),
        model: random.maybe(Random::text),
        columns: random.below(30) as u16,
        slots: random.several(5, slot),
        modules: random.several(2, |random, _| Module {
            name: random.text(),
            ports: random.several(3, |_, number| format!("eth{number}")),
        }),
        shelf: random.maybe(shelf),
    };
    Surroundings {
        enclosures: ids.into_iter().map(enclosure).collect(),
        sensors: random.several(4, sensor),
        fans: random.several(3, |random, number| Fan {
            id: format!("fan {number}"),
            name: random.text(),
            rpm: random.maybe(|random| random.below(20_000) as u32),
            least_rpm: random.maybe(|random| random.below(2_000) as u32),
            health: health(random),
        }),
        supplies: random.several(3, |random, number| Supply {
            id: format!("psu.{number}"),
            name: random.text(),
            is_on: random.maybe(Random::chance),
            input_microwatts: random.maybe(|random| random.below(1 << 40)),
            health: health(random),
        }),
        ports: random.several(3, port),
    }
}

/// What a shelf with these drives says of itself.
fn shelf_of(random: &mut Random, drives: &[KnownDrive]) -> Shelf {
    let state = |random: &mut Random| {
        random.pick(&[ShelfState::Enabled, ShelfState::Offline, ShelfState::Absent])
    };
    let small = |random: &mut Random| random.below(1 << 20) as u32;
    let value = |random: &mut Random| random.below(1 << 20) as i64 - 1000;
    Shelf {
        url: "https://shelf.example:8443".to_owned(),
        read: random.maybe(Random::moment),
        silence: random.maybe(|r| Silence { since: r.moment(), why: r.text() }),
        serial: random.maybe(Random::text),
        is_on: random.maybe(Random::chance),
        health: health(random),
        bays: random.several(4, |random, number| ShelfBay {
            slot: format!("{number} ä"),
            state: state(random),
            health: health(random),
            serial: random.maybe(Random::text),
            model: random.maybe(Random::text),
            bytes: random.maybe(|random| random.below(1 << 50)),
            subsystem: random.maybe(Random::text),
            is_located: random.maybe(Random::chance),
            own: drives.iter().filter(|_| random.chance()).map(|own| own.id.clone()).collect(),
        }),
        ports: random.several(3, |random, number| ShelfPort {
            module: random.text(),
            name: format!("A{number}"),
            address: random.maybe(Random::text),
            has_link: random.maybe(Random::chance),
            is_enabled: random.maybe(Random::chance),
            megabits: random.maybe(small),
            mtu: random.maybe(small),
            health: health(random),
        }),
        parts: random.several(5, |random, _| ShelfPart {
            kind: random.pick(&[
                ShelfKind::Module,
                ShelfKind::Supply,
                ShelfKind::Fan,
                ShelfKind::Sensor,
            ]),
            name: random.text(),
            state: state(random),
            health: health(random),
            reading: random.maybe(value),
            unit: random.maybe(|random| {
                random.pick(&[
                    ShelfUnit::Celsius,
                    ShelfUnit::Rpm,
                    ShelfUnit::Percent,
                    ShelfUnit::Watts,
                    ShelfUnit::Volts,
                    ShelfUnit::Amperes,
                ])
            }),
            warning: random.maybe(value),
            critical: random.maybe(value),
        }),
    }
}

fn sensor(random: &mut Random, number: u64) -> Sensor {
    use Measures::*;
    let value = |random: &mut Random| random.below(1 << 30) as i64 - (1 << 20);
    Sensor {
        id: format!("hwmon.{number}/temp1"),
        name: random.text(),
        measures: random.pick(&[Temperature, Voltage, Current, Power]),
        reading: random.maybe(value),
        high: random.maybe(value),
        critical: random.maybe(value),
        health: health(random),
    }
}

fn port(random: &mut Random, number: u64) -> NetworkPort {
    let old = random.several(2, |random, _| format!("192.0.2.1/{}", random.below(33)));
    let new = random.several(2, |random, _| format!("fe80::1/{}", random.below(129)));
    NetworkPort {
        id: format!("eth{number}"),
        mac: random.maybe(|_| "00:11:22:aa:bb:cc".to_owned()),
        has_link: random.chance(),
        is_enabled: random.chance(),
        megabits: random.maybe(|random| random.pick(&[10, 1_000, 200_000])),
        full_duplex: random.maybe(Random::chance),
        mtu: random.pick(&[1_500, 9_000, 65_536]),
        addresses: old.into_iter().chain(new).collect(),
    }
}

pub fn health(random: &mut Random) -> Health {
    random.pick(&Health::ALL)
}

fn celsius(random: &mut Random) -> i32 {
    random.below(140) as i32 - 40
}

fn link(random: &mut Random) -> PcieLink {
    PcieLink {
        lanes: random.pick(&[1, 2, 4]),
        max_lanes: 4,
        megatransfers: random.pick(&[2_500, 8_000, 16_000]),
        max_megatransfers: 16_000,
    }
}

fn power_state(random: &mut Random, state: u64) -> DrivePowerState {
    DrivePowerState {
        state: state as u8,
        max_milliwatts: random.maybe(|r| r.below(1 << 20) as u32),
        serves: random.chance(),
        enter_us: random.below(1 << 32) as u32,
        exit_us: random.below(1 << 32) as u32,
    }
}

/// Bytes are whole data units of NVMe.
fn smart(random: &mut Random) -> Smart {
    let mut count = || u128::from(random.number());
    let (read, written) = (count() * 512_000, count() * 512_000);
    Smart {
        read_bytes: read,
        written_bytes: written,
        read_commands: count(),
        write_commands: count(),
        busy_minutes: count(),
        power_cycles: count(),
        power_on_hours: count(),
        unsafe_shutdowns: count(),
        media_errors: count(),
        error_log_entries: count(),
        critical_warning: random.below(256) as u8,
        celsius: random.maybe(celsius),
        available_spare_percent: random.below(101) as u8,
        spare_threshold_percent: random.below(101) as u8,
        percentage_used: random.below(256) as u8,
        warning_minutes: random.below(1 << 32) as u32,
        critical_minutes: random.below(1 << 32) as u32,
        sensors_celsius: random.several(8, |r, _| r.maybe(celsius)),
    }
}
