//! What drives can't do is told in their words.

use super::*;
use redfish::view::{Drive, DrivePower, DrivePowerState, DriveState, Hardware};

fn drive(hardware: Hardware) -> KnownDrive {
    let drive = Drive {
        path: "/dev/a".to_owned(),
        serial: "A".to_owned(),
        bytes: 1 << 30,
        block_bytes: 4096,
        state: DriveState::Free,
        array: None,
        slot: None,
        signature: None,
        problem: None,
    };
    let id = "a".to_owned();
    KnownDrive { id, wwid: None, model: None, is_file: false, hardware: hardware.into(), drive }
}

fn nvme(states: u8, problem: Option<&str>) -> Hardware {
    let one = |state: u8| DrivePowerState {
        state,
        max_milliwatts: None,
        serves: true,
        enter_us: 0,
        exit_us: 0,
    };
    let power = DrivePower { state: 0, states: (0..states).map(one).collect() };
    Hardware {
        kind: Some("nvme".to_owned()),
        power: (states > 0).then_some(power),
        problem: problem.map(str::to_owned),
        ..Hardware::default()
    }
}

#[test]
fn what_a_drive_can_not_do_is_told_by_name() {
    let told = |hardware: Hardware, state: u8| no_power(&drive(hardware), state);
    let file = told(Hardware::default(), 0);
    assert!(file.is(&say::DRIVE_NOT_NVME), "{file:?}");
    for (hardware, why) in [
        (nvme(0, None), "it was not asked for its states"),
        (nvme(0, Some("no CAP_SYS_ADMIN")), "no CAP_SYS_ADMIN"),
        (nvme(3, None), "it has no power state 7"),
        (nvme(8, None), "power state 7 was not taken"),
    ] {
        let error = told(hardware, 7);
        assert!(error.is(&say::DRIVE_POWER_REFUSED), "{error:?}");
        assert_eq!(error.error, format!("/dev/a refused: {why}"));
    }
    assert!(no_indicator(&drive(Hardware::default())).is(&say::DRIVE_NO_INDICATOR));
    assert!(known(&View::default(), "gone").is_err_and(|error| error.is(&say::DRIVE_NOT_KNOWN)));
}
