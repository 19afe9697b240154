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
